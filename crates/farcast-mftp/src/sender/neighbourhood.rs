//! Other transmissions on a group, and their use of it.

use core::net::SocketAddr;

use farcast_core::{Span, Time};

use crate::message::{Body, Message};

/// Signs of flowing data: a number of datagrams, over a minimum time, without a pause longer than `FLOW_PAUSE`.
const FLOW: (u32, Span) = (8, Span::from_secs(1));
const FLOW_PAUSE: Span = Span::from_secs(2);

/// Tracker of other transmissions on a group. The group is theirs while data of one flows. A single datagram, which
/// anyone may send, does not take the group, and neither does an announcement.
#[derive(Clone, Debug, Default)]
pub struct Neighbourhood(Option<Neighbour>);

/// Another transmission.
#[derive(Clone, Debug)]
struct Neighbour {
    /// Address of its sender, and its Transmission Identifier.
    of: (SocketAddr, u32),
    first: Time,
    last: Time,
    heard: u32,
    flows: bool,
}

impl Neighbour {
    /// Records another of its datagrams. Returns `true` if data flows.
    fn hear(&mut self, now: Time) -> bool {
        if now.since(self.last) > FLOW_PAUSE {
            (self.first, self.heard, self.flows) = (now, 0, false);
        }
        (self.last, self.heard) = (now, self.heard.saturating_add(1));
        let (datagrams, time) = FLOW;
        self.flows |= self.heard >= datagrams && now.since(self.first) >= time;
        self.flows
    }
}

impl Neighbourhood {
    /// Creates a tracker in which a transmission of `by` flows at `now`, as
    /// [`GroupInUse`](crate::SenderOutcome::GroupInUse) has reported.
    pub fn of(now: Time, by: SocketAddr, transmission: u32) -> Self {
        Self(Some(Neighbour { of: (by, transmission), first: now, last: now, heard: 0, flows: true }))
    }

    /// Records a message of another transmission that came to the group from `source`. Returns `true` if its data
    /// flows.
    pub fn hear(&mut self, now: Time, source: SocketAddr, message: &Message) -> bool {
        if !matches!(message.body, Body::Data(_) | Body::StatusRequest(_)) {
            return false;
        }
        let theirs = (source, message.transmission);
        let gone = |n: &Neighbour| n.of != theirs && now.since(n.last) > FLOW_PAUSE;
        if self.0.as_ref().is_none_or(gone) {
            self.0 = Some(Neighbour { of: theirs, first: now, last: now, heard: 0, flows: false });
        }
        self.0.as_mut().filter(|n| n.of == theirs).is_some_and(|n| n.hear(now))
    }

    /// Returns the sender that was heard last.
    pub fn sender(&self) -> Option<SocketAddr> {
        self.0.as_ref().map(|neighbour| neighbour.of.0)
    }

    /// Returns `true` if no data flows at `now`, nor has within the longest pause of a flow.
    pub fn is_free(&self, now: Time) -> bool {
        self.0.as_ref().is_none_or(|n| !n.flows || now.since(n.last) > FLOW_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use farcast_core::{Run, Span, Time};

    use super::Neighbourhood;
    use crate::message::{Body, Data, DataKind, Leave, Message};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn theirs() -> SocketAddr {
        "192.0.2.2:40000".parse().expect("address")
    }

    fn data(transmission: u32) -> Message {
        let dtus = Run::new(0, 1).expect("run");
        let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus, len: 8, last_len: 8 };
        Message::new(transmission, Body::Data(data))
    }

    #[test]
    fn a_group_is_taken_by_what_flows() {
        let mut heard = Neighbourhood::default();
        assert!(heard.is_free(at(0)));
        // Seven datagrams in any time are no flow, nor is any number in less than a second.
        let mut slow = Neighbourhood::default();
        let flows: [bool; 8] = core::array::from_fn(|n| slow.hear(at(n as u64 * 1900), theirs(), &data(9)));
        assert_eq!(flows, [false, false, false, false, false, false, false, true]);
        for ms in [0, 10, 20, 30, 40, 50, 60, 70, 999] {
            assert!(!heard.hear(at(ms), theirs(), &data(9)) && heard.is_free(at(ms)), "{ms}");
        }
        assert!(heard.hear(at(1000), theirs(), &data(9)) && !heard.is_free(at(3000)));
        assert!(heard.is_free(at(3001)));
        let leave = Leave { public: theirs().ip(), hosts: None };
        assert!(!heard.hear(at(1001), theirs(), &Message::new(9, Body::Leave(leave))), "that is no data");
    }

    #[test]
    fn of_whom_is_known_each_datagram_counts_until_it_pauses_too_long() {
        let mut heard = Neighbourhood::of(at(0), theirs(), 9);
        assert!(!heard.is_free(at(2000)) && heard.is_free(at(2001)));
        assert!(heard.hear(at(1900), theirs(), &data(9)));
        assert!(!heard.hear(at(3000), theirs(), &data(8)), "another one is a stranger");
        assert!(!heard.is_free(at(3900)) && heard.is_free(at(3901)));
        assert!(!heard.hear(at(4000), theirs(), &data(9)), "it is a stranger again");
        assert!(heard.is_free(at(4000)));
    }
}
