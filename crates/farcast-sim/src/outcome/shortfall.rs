//! Reasons for which receivers of a transfer were left incomplete, and settings that help.

use farcast_core::Time;
use farcast_delivery::{Ending, ObjectId, Protocol, SenderEngine as _};

use super::Replication;
use crate::world::{FinalState, Group};

/// Limit that ended a transfer before all receivers had everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Time limit of the replication; the sender was not done.
    Time,
    /// Time limit of the transfer.
    TransferTime,
    /// Silence: the sender heard nothing of receivers that it waited for, and gave them up.
    Silence,
    /// Requests: no repair request reached the sender any more, although receivers lacked something.
    Requests,
    /// Absence of receivers: none was there when content was to begin.
    Nobody,
    /// Forward link: nothing that the sender sent reached any receiver.
    Forward,
    /// Return link: receivers answered, but the sender heard none of them.
    Return,
}

impl Limit {
    /// Returns the limit that `shortfall` names, or the direction of `replication` that carried nothing at all.
    fn of(replication: &Replication, shortfall: &Shortfall) -> Self {
        let Shortfall { limit, unaware, receivers, incomplete, lacking, segments, requests, .. } = *shortfall;
        let (sent, answered) = (replication.forward.datagrams > 0, replication.back.datagrams > 0);
        let began = replication.transfer.as_ref().is_some_and(|transfer| transfer.data_begins_s.is_some());
        let bare = incomplete == receivers && lacking.is_none_or(|(least, _)| least == segments);
        if sent && (unaware == receivers && !answered || bare && began) {
            Self::Forward
        } else if limit == Self::Nobody && answered
            || limit == Self::Requests && requests.0 > 0 && requests.1 == 0
        {
            Self::Return
        } else {
            limit
        }
    }
}

/// State of an incomplete transfer at its end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shortfall {
    /// Limit that ended the transfer.
    pub limit: Limit,
    /// Time of the end, in seconds.
    pub stopped_s: f64,
    /// Number of all receivers.
    pub receivers: u64,
    /// Receivers that lack something.
    pub incomplete: u64,
    /// Incomplete receivers that have not even heard the number of segments.
    pub unaware: u64,
    /// Minimum and maximum number of segments that one of the other incomplete receivers lacks.
    pub lacking: Option<(u32, u32)>,
    /// Number of segments of the first object.
    pub segments: u32,
    /// Receivers that the sender gave up.
    pub given_up: u64,
    /// Repair requests that receivers sent, and those of them that reached the sender.
    pub requests: (u64, u64),
}

impl Shortfall {
    /// Returns the shortfall of the receivers in `groups`; `None` if no receiver lacks anything.
    pub(crate) fn of<P: Protocol>(
        sender: &P::Sender,
        groups: &[Group<P>],
        stop: &FinalState,
    ) -> Option<Self> {
        let each = || groups.iter().flat_map(|group| (0..group.receivers()).map(move |n| (group, n)));
        let left = || each().filter(|(group, n)| group.completed(*n) == Time::NEVER);
        let incomplete = left().count() as u64;
        if incomplete == 0 {
            return None;
        }
        let lacks = || left().filter_map(|(group, n)| group.lacks(n));
        let (limit, at) = match stop.ending {
            None => (Limit::Time, stop.end),
            Some((at, Ending::TimeLimit)) => (Limit::TransferTime, at),
            Some((at, Ending::Nobody)) => (Limit::Nobody, at),
            Some((at, Ending::Silence)) => (Limit::Silence, at),
            Some((at, Ending::Finished)) if stop.left > 0 => (Limit::Silence, at),
            Some((at, Ending::Finished)) => (Limit::Requests, at),
        };
        Some(Self {
            limit,
            stopped_s: at.as_secs_f64(),
            receivers: each().count() as u64,
            incomplete,
            unaware: incomplete - lacks().count() as u64,
            lacking: lacks().min().zip(lacks().max()),
            segments: sender.geometry(ObjectId::FIRST).map_or(0, farcast_delivery::Geometry::segments),
            given_up: stop.left,
            requests: (stop.requests.sent, stop.requests.used + stop.requests.late),
        })
    }
}

/// Remedies against each limit that a transfer may meet: keys of a scenario, or options of `farcast send`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remedies {
    /// Against [`Limit::Time`].
    pub time: &'static str,
    /// Against [`Limit::TransferTime`].
    pub transfer_time: &'static str,
    /// Against [`Limit::Silence`].
    pub silence: &'static str,
    /// Against [`Limit::Requests`].
    pub requests: &'static str,
    /// Against [`Limit::Nobody`].
    pub nobody: &'static str,
}

impl Remedies {
    const fn of(&self, limit: Limit) -> &'static str {
        match limit {
            Limit::Time => self.time,
            Limit::TransferTime => self.transfer_time,
            Limit::Silence => self.silence,
            Limit::Requests => self.requests,
            Limit::Nobody => self.nobody,
            Limit::Forward => {
                "Look at the losses and the delay of link.forward: no setting of the transfer helps."
            }
            Limit::Return => "Look at the losses of link.return before any setting of the transfer.",
        }
    }
}

/// Returns a sentence for each limit that ended transfers of `replications`: its frequency, the receivers and segments
/// that lack, and the remedy.
pub fn reasons<'a>(replications: impl IntoIterator<Item = &'a Replication>, help: &Remedies) -> Vec<String> {
    let mut all = 0;
    let mut by_limit: std::collections::BTreeMap<Limit, Vec<Shortfall>> = std::collections::BTreeMap::new();
    for one in replications {
        all += 1;
        if let Some(shortfall) = one.transfer.as_ref().and_then(|transfer| transfer.shortfall) {
            by_limit.entry(Limit::of(one, &shortfall)).or_default().push(shortfall);
        }
    }
    by_limit.iter().map(|(limit, some)| sentence(*limit, some, all, help.of(*limit))).collect()
}

fn sentence(limit: Limit, some: &[Shortfall], all: u64, help: &str) -> String {
    let stopped = some.iter().map(|one| one.stopped_s);
    let times = (stopped.clone().fold(f64::INFINITY, f64::min), stopped.fold(0.0, f64::max));
    let seconds = |value: f64| if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let after = match times {
        (least, most) if seconds(least) == seconds(most) => format!("{} s", seconds(most)),
        (least, most) => format!("{} to {} s", seconds(least), seconds(most)),
    };
    let given_up = span(some.iter().map(|one| one.given_up));
    let what = match limit {
        Limit::Time => format!("the time limit was reached after {after}, before the sender was done"),
        Limit::TransferTime => format!("the transfer's own time limit was reached after {after}"),
        Limit::Silence => format!(
            "the sender ended after {after}; it had heard nothing of {given_up} receivers for too long and given them up"
        ),
        Limit::Requests => {
            format!("the sender ended after {after}, as no request for repair reached it any more")
        }
        Limit::Nobody => format!("the sender ended after {after}, as nobody was there"),
        Limit::Forward => format!("nothing of the content came through the link in {after}"),
        Limit::Return => {
            format!("the sender ended after {after}, as no answer of a receiver came through the link")
        }
    };
    format!("in {} of {all}: {what}; {}{}. {help}", some.len(), who(some), requests(some))
}

/// Returns the part of a sentence with the receivers that were left and the segments that they lacked.
fn who(some: &[Shortfall]) -> String {
    let incomplete = span(some.iter().map(|one| one.incomplete));
    let receivers = some.iter().map(|one| one.receivers).max().unwrap_or(0);
    let segments = some.iter().map(|one| one.segments).max().unwrap_or(0);
    let lacking: Vec<(u32, u32)> = some.iter().filter_map(|one| one.lacking).collect();
    let unaware: u64 = some.iter().map(|one| one.unaware).max().unwrap_or(0);
    let mut parts = vec![format!("{incomplete} of {receivers} receivers were left")];
    if !lacking.is_empty() {
        let lacks = span(lacking.iter().flat_map(|&(least, most)| [least.into(), most.into()]));
        parts.push(format!("and lacked {lacks} of {segments} segments"));
    }
    match unaware {
        0 => {}
        _ if lacking.is_empty() => parts.push("and had heard nothing of what is sent".into()),
        unaware => parts.push(format!("of whom up to {unaware} had heard nothing of what is sent")),
    }
    parts.join(", ")
}

/// Returns the part of a sentence with the requests that reached the sender; empty if all did.
fn requests(some: &[Shortfall]) -> String {
    let sum = |of: &dyn Fn(&Shortfall) -> u64| some.iter().map(of).sum::<u64>();
    let (sent, heard) = (sum(&|one| one.requests.0), sum(&|one| one.requests.1));
    if heard >= sent {
        return String::new();
    }
    format!("; of {sent} requests for repair the return channel brought {heard}")
}

/// Returns a range as text: `3`, or `1 to 3`.
fn span(values: impl Iterator<Item = u64> + Clone) -> String {
    let (least, most) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}
