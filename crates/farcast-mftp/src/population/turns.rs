//! Turns of a population's receivers, and the losses that they report when they register.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use farcast_core::{Run, Time};

use super::Population;
use crate::receiver::answers::Question;
use crate::receiver::control::{Action, Control, Terms};
use crate::turn::{HeardData, Turn, place};

/// Value for a receiver that has not spoken in any round, and for one that has heard no data.
const NONE: u32 = u32::MAX;

/// Turns of all receivers.
#[derive(Clone, Debug)]
pub(super) struct PopulationTurns {
    /// Places of the receivers in `round`, in ascending order, with the receivers.
    places: Vec<(u32, u32)>,
    round: Option<u16>,
    /// Round in which each receiver last spoke by turn.
    spoke: Vec<u32>,
    /// Receivers that will speak, by time, and the time of each.
    due: BTreeSet<(Time, u32)>,
    times: BTreeMap<u32, Time>,
}

impl PopulationTurns {
    pub(super) fn new(receivers: u32) -> Self {
        let spoke = alloc::vec![NONE; receivers as usize];
        Self { places: Vec::new(), round: None, spoke, due: BTreeSet::new(), times: BTreeMap::new() }
    }

    /// Returns the time at which the next receiver speaks.
    pub(super) fn next_due(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |&(at, _)| at)
    }
}

/// DTUs of the first pass that each receiver heard. Most receivers have heard the last one, and are kept together.
#[derive(Clone, Debug)]
pub(super) struct HeardByAll {
    /// First segment that each receiver heard, or [`NONE`].
    first: Vec<u32>,
    /// Segments that each receiver lost since, without those that all of them missed since `base`.
    lost: Vec<u32>,
    /// End of the segments that each receiver in `behind` heard.
    ends: Vec<u32>,
    /// Number of segments that all had missed when a receiver caught up last.
    base: Vec<u32>,
    /// Receivers that have not heard the last segment, in ascending order.
    behind: Vec<u32>,
    /// End of the segments that the others have heard, and the number of segments that passed none of them.
    end: u32,
    missed: u32,
}

impl HeardByAll {
    pub(super) fn new(receivers: u32) -> Self {
        let zeros = || alloc::vec![0; receivers as usize];
        Self {
            first: alloc::vec![NONE; receivers as usize],
            lost: zeros(),
            ends: zeros(),
            base: zeros(),
            behind: (0..receivers).collect(),
            end: 0,
            missed: 0,
        }
    }

    /// Records that `segment` was sent in the first pass. The receivers in `lost`, in ascending order, did not get it; if
    /// it was sent before, of the others only those in `among` needed it.
    pub(super) fn sent(&mut self, segment: u32, lost: &[u32], among: Option<&[u32]>) {
        let news = segment >= self.end;
        let deaf = |receiver: u32| {
            lost.binary_search(&receiver).is_ok()
                || among.is_some_and(|among| among.binary_search(&receiver).is_err())
        };
        if news && among.is_some() {
            let all = 0..self.first.len() as u32;
            let deaf: Vec<u32> = all.filter(|&receiver| deaf(receiver)).collect();
            return self.sent(segment, &deaf, None);
        }
        let mut behind = core::mem::take(&mut self.behind);
        if news {
            let caught_up: Vec<u32> =
                lost.iter().copied().filter(|receiver| behind.binary_search(receiver).is_err()).collect();
            for &receiver in &caught_up {
                self.fall_behind(receiver);
            }
            if segment > self.end && self.end > 0 {
                self.missed += segment - self.end;
            }
        }
        let fallen = behind.len();
        behind.retain(|&receiver| {
            let at = receiver as usize;
            let began = self.first[at] != NONE;
            if deaf(receiver) || (began && segment < self.ends[at]) {
                return true;
            }
            if began {
                self.lost[at] += segment - self.ends[at];
            } else {
                self.first[at] = segment;
            }
            (self.ends[at], self.base[at]) = (segment + 1, self.missed);
            !news
        });
        if news {
            self.end = segment + 1;
            if !lost.is_empty() {
                let known = behind.len();
                behind.extend(lost.iter().copied().filter(|receiver| self.fell(*receiver)));
                if known > 0 || fallen > 0 {
                    behind.sort_unstable();
                    behind.dedup();
                }
            }
        }
        self.behind = behind;
    }

    /// Returns `true` if `receiver` has not heard the last segment.
    fn fell(&self, receiver: u32) -> bool {
        self.ends[receiver as usize] != self.end || self.first[receiver as usize] == NONE
    }

    /// Separates `receiver` from those that heard the last segment.
    fn fall_behind(&mut self, receiver: u32) {
        let at = receiver as usize;
        self.lost[at] += self.missed - self.base[at];
        (self.ends[at], self.base[at]) = (self.end, self.missed);
    }

    /// Records that `run` was sent for the first time, in the first pass, and reached every receiver.
    pub(super) fn sent_to_all(&mut self, run: Run) {
        self.sent(run.first(), &[], None);
        self.end = self.end.max(run.end());
    }

    /// Returns the losses that `receiver` reports.
    fn of(&self, receiver: u32) -> HeardData {
        let at = receiver as usize;
        let missed = self.first[at];
        if missed == NONE {
            return HeardData::default();
        }
        let behind = self.behind.binary_search(&receiver).is_ok();
        let end = if behind { self.ends[at] } else { self.end };
        let since = if behind { 0 } else { self.missed - self.base[at] };
        HeardData { missed, sent: end - missed, lost: self.lost[at] + since }
    }
}

impl Population {
    /// Lets the receivers that `turn` calls, and that hear it, speak after a part of its time. The receivers in
    /// `self.lost` do not hear it.
    pub(super) fn called(&mut self, now: Time, turn: Option<Turn>) {
        let (Some(turn), Some(transmission)) = (turn, self.terms.as_ref().map(|terms| terms.transmission))
        else {
            return;
        };
        if self.turns.round != Some(turn.round) {
            let places = (0..self.receivers)
                .map(|receiver| (place(transmission, turn.round, self.id(receiver)), receiver));
            let mut places: Vec<(u32, u32)> = places.collect();
            places.sort_unstable();
            (self.turns.places, self.turns.round) = (places, Some(turn.round));
        }
        let from = self.turns.places.partition_point(|&(place, _)| place < turn.first);
        let to = self.turns.places.partition_point(|&(place, _)| place <= turn.last);
        for index in from..to {
            let (_, receiver) = self.turns.places[index];
            let speaks = self.cohorts.control(self.cohorts.of(receiver)).is_some_and(Control::has_to_speak)
                && self.turns.spoke[receiver as usize] != u32::from(turn.round)
                && self.lost.binary_search(&receiver).is_err();
            if speaks {
                self.turns.spoke[receiver as usize] = turn.round.into();
                let wait = self.wait(now, receiver, turn.spread());
                if let Some(before) = self.turns.times.insert(receiver, now + wait) {
                    self.turns.due.remove(&(before, receiver));
                }
                self.turns.due.insert((now + wait, receiver));
            }
        }
    }

    /// Adds the receivers that `turn` does not call to those that lost the message.
    pub(super) fn pass_over_uncalled(&mut self, turn: &Turn) {
        let Some(transmission) = self.terms.as_ref().map(|terms| terms.transmission) else { return };
        if turn.first == 0 && turn.last == u32::MAX {
            return;
        }
        let lost = core::mem::take(&mut self.lost);
        let silent = |&receiver: &u32| {
            !turn.calls(transmission, self.id(receiver)) || lost.binary_search(&receiver).is_ok()
        };
        self.lost = (0..self.receivers).filter(silent).collect();
    }

    /// Adds the receivers that [came after](HeardData::came_after) the beginning of the block in question to those that
    /// lost the message.
    pub(super) fn pass_over_newcomers(&mut self, question: &Question) {
        let geometry = self.terms.as_ref().map(Terms::geometry);
        let Some(block) = geometry.and_then(|geometry| question.single_block(geometry)) else { return };
        let came_after = |&receiver: &u32| self.heard.of(receiver).came_after(block);
        let newcomers: Vec<u32> = (0..self.receivers).filter(came_after).collect();
        if !newcomers.is_empty() {
            self.lost.extend(newcomers);
            self.lost.sort_unstable();
            self.lost.dedup();
        }
    }

    /// Lets the receivers speak whose time has come.
    pub(super) fn speak_due(&mut self, now: Time) {
        while let Some(&(at, receiver)) = self.turns.due.first()
            && at <= now
        {
            self.turns.due.pop_first();
            self.turns.times.remove(&receiver);
            let act = self.cohorts.control(self.cohorts.of(receiver)).map_or(Action::Nothing, Control::speak);
            self.say_to_sender(at, receiver, &act);
        }
    }

    /// Returns the losses that `receiver` reports in its registration, if receivers take turns.
    pub(super) fn heard_by(&self, receiver: u32) -> Option<HeardData> {
        self.takes_turns(receiver).then(|| self.heard.of(receiver))
    }

    /// Returns the round in which `receiver` was last called, if receivers take turns.
    pub(super) fn round_of(&self, receiver: u32) -> Option<u16> {
        let round = u16::try_from(self.turns.spoke[receiver as usize]).ok();
        round.filter(|_| self.takes_turns(receiver))
    }

    fn takes_turns(&self, receiver: u32) -> bool {
        match self.cohorts.control(self.cohorts.of(receiver)) {
            Some(control) => control.speaks_by_turns(),
            None => self.proofs.as_ref().is_some_and(|proofs| proofs.finished_by_turns(receiver)),
        }
    }
}
