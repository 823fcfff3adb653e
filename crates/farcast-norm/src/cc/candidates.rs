//! Receivers that limit a sender, or may come to do so (RFC 5740 §5.5.2).

use alloc::vec::Vec;
use core::mem;

use farcast_core::Span;

use crate::message::{NodeId, ProbedNode, cc};
use crate::quantise::{Rate, Rtt};

/// Maximum number of potential limiting receivers (PLR).
const POTENTIAL: usize = 4;
/// Maximum number of other receivers whose round trips the next probe contains.
const TOLD: usize = 16;
/// Relative difference up to which two rates count as equal; then the longer round trip limits.
const ALIKE: f64 = 0.1;
/// Weight of the old mean in the smoothing of round trips: for the limiting receiver, and for the others.
const KEPT: (f64, f64) = (0.9, 0.5);

/// Report of a receiver that may limit the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) node: NodeId,
    /// Round trip in seconds, smoothed.
    pub(super) trip: f64,
    /// Rate that the receiver can take, in octets per second.
    pub(super) rate: f64,
    /// `true` if the receiver has not lost anything.
    pub(super) start: bool,
    /// Sequence number of the probe that the receiver answered last.
    pub(super) sequence: u16,
    /// Number of probes since then.
    pub(super) unanswered: u32,
}

impl Candidate {
    /// Returns `true` if this receiver limits the sender more than `other` does.
    fn limits_more(&self, other: &Self) -> bool {
        let alike = (self.rate - other.rate).abs() <= other.rate * ALIKE;
        if alike { self.trip > other.trip } else { self.rate < other.rate }
    }

    fn take(&mut self, new: &Self, kept: f64) {
        let trip = self.trip * kept + new.trip * (1.0 - kept);
        *self = Self { trip, ..*new };
    }

    /// Returns the receiver's entry in a probe, with the flag `role`.
    fn told(&self, role: u8) -> ProbedNode {
        let start = if self.start { cc::START } else { 0 };
        let rtt = Rtt::of(Span::from_secs_f64(self.trip));
        ProbedNode { node: self.node, flags: role | cc::RTT | start, rtt, rate: Rate::of(self.rate) }
    }
}

/// Limiting receiver, potential limiting receivers, and others to name in the next probe.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    limiting: Option<Candidate>,
    potential: Vec<Candidate>,
    /// Other receivers that have answered since the last probe.
    told: Vec<ProbedNode>,
}

impl Candidates {
    /// Returns the receiver that limits the sender.
    pub(super) fn limiting(&self) -> Option<&Candidate> {
        self.limiting.as_ref()
    }

    /// Returns the report of `node`, if it is the limiting receiver or a potential one.
    pub(super) fn known(&self, node: NodeId) -> Option<&Candidate> {
        self.limiting.iter().chain(&self.potential).find(|candidate| candidate.node == node)
    }

    /// Notes a receiver's report. Returns `true` if it updates or replaces the limiting receiver.
    pub(super) fn heard(&mut self, new: &Candidate) -> bool {
        let before = self.limiting.map(|limiting| limiting.node);
        match &mut self.limiting {
            Some(limiting) if limiting.node == new.node => limiting.take(new, KEPT.0),
            None => self.limiting = Some(*new),
            Some(_) => self.heard_other(new),
        }
        self.settle();
        let after = self.limiting.map(|limiting| limiting.node);
        after == Some(new.node) || after != before
    }

    /// Notes the report of a receiver that does not limit.
    fn heard_other(&mut self, new: &Candidate) {
        if let Some(known) = self.potential.iter_mut().find(|known| known.node == new.node) {
            known.take(new, KEPT.1);
            return;
        }
        self.tell(new);
        if self.potential.len() < POTENTIAL {
            self.potential.push(*new);
        } else if let Some(least) = self.potential.iter_mut().max_by(|a, b| a.rate.total_cmp(&b.rate))
            && new.limits_more(least)
        {
            *least = *new;
        }
    }

    /// Puts a receiver's round trip into the next probe.
    pub(super) fn tell(&mut self, new: &Candidate) {
        self.told.retain(|told| told.node != new.node);
        if self.told.len() < TOLD {
            self.told.push(new.told(0));
        }
    }

    /// Makes the receiver that limits most the limiting one.
    fn settle(&mut self) {
        for potential in &mut self.potential {
            match &mut self.limiting {
                Some(limiting) if !potential.limits_more(limiting) => {}
                Some(limiting) => mem::swap(limiting, potential),
                None => {}
            }
        }
        if self.limiting.is_none() {
            let next = (0..self.potential.len()).min_by(|&a, &b| {
                let [a, b] = [a, b].map(|at| self.potential[at].rate);
                a.total_cmp(&b)
            });
            self.limiting = next.map(|at| self.potential.swap_remove(at));
        }
    }

    /// Removes `node`, which has left.
    pub(super) fn remove(&mut self, node: NodeId) {
        self.potential.retain(|potential| potential.node != node);
        self.told.retain(|told| told.node != node);
        self.limiting.take_if(|limiting| limiting.node == node);
        self.settle();
    }

    /// Counts a probe that leaves, and removes receivers that left more than `most` probes unanswered. Returns `true`
    /// if the limiting receiver was removed.
    pub(super) fn age(&mut self, most: u32) -> bool {
        for candidate in self.limiting.iter_mut().chain(&mut self.potential) {
            candidate.unanswered += 1;
        }
        self.potential.retain(|potential| potential.unanswered <= most);
        let gone = self.limiting.take_if(|limiting| limiting.unanswered > most).is_some();
        self.settle();
        gone
    }

    /// Returns the entries of a probe: the limiting receiver, the potential ones, and each other receiver once.
    pub(super) fn list(&mut self) -> Vec<ProbedNode> {
        let limiting = self.limiting.iter().map(|candidate| candidate.told(cc::CLR));
        let potential = self.potential.iter().map(|candidate| candidate.told(cc::PLR));
        let mut list: Vec<ProbedNode> = limiting.chain(potential).collect();
        for told in mem::take(&mut self.told) {
            if self.known(told.node).is_none() {
                list.push(told);
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(node: u32, rate: f64, trip: f64) -> Candidate {
        Candidate { node: NodeId(node), trip, rate, start: false, sequence: 0, unanswered: 0 }
    }

    fn limiting(candidates: &Candidates) -> u32 {
        candidates.limiting().expect("one limits").node.0
    }

    #[test]
    fn the_lowest_rate_limits_and_of_like_rates_the_longer_round_trip() {
        let mut candidates = Candidates::default();
        assert!(candidates.heard(&candidate(1, 1000.0, 0.1)));
        assert!(!candidates.heard(&candidate(2, 1200.0, 0.5)), "a higher rate");
        assert_eq!(limiting(&candidates), 1);
        assert!(candidates.heard(&candidate(3, 1050.0, 0.2)), "the same, further away");
        assert!(!candidates.heard(&candidate(4, 1050.0, 0.19)));
        assert_eq!(limiting(&candidates), 3);
        assert!(candidates.heard(&candidate(4, 500.0, 0.01)));
        assert_eq!(limiting(&candidates), 4);
        // Node 4 recovers, and one of the others limits again.
        assert!(candidates.heard(&candidate(4, 5000.0, 0.01)));
        assert_eq!(limiting(&candidates), 3);
        candidates.remove(NodeId(3));
        assert_eq!(limiting(&candidates), 1);
        let flags: Vec<u8> = candidates.list().iter().map(|node| node.flags).collect();
        assert_eq!(flags, [cc::CLR | cc::RTT, cc::PLR | cc::RTT, cc::PLR | cc::RTT]);
    }

    #[test]
    fn round_trips_are_smoothed_more_of_the_one_that_limits() {
        let mut candidates = Candidates::default();
        for _ in 0..2 {
            candidates.heard(&candidate(1, 1000.0, 0.1));
            candidates.heard(&candidate(2, 2000.0, 0.1));
        }
        candidates.heard(&candidate(1, 1000.0, 0.2));
        candidates.heard(&candidate(2, 2000.0, 0.2));
        let trips = [1, 2].map(|node| candidates.known(NodeId(node)).expect("known").trip);
        assert!((trips[0] - 0.11).abs() < 1e-9 && (trips[1] - 0.15).abs() < 1e-9, "{trips:?}");
    }

    #[test]
    fn who_does_not_answer_is_forgotten() {
        let mut candidates = Candidates::default();
        candidates.heard(&candidate(1, 1000.0, 0.1));
        candidates.heard(&candidate(2, 2000.0, 0.1));
        for _ in 0..3 {
            assert!(!candidates.age(4));
            candidates.heard(&candidate(2, 2000.0, 0.1));
        }
        assert!(!candidates.age(4));
        assert!(candidates.age(4), "five of them");
        assert_eq!(limiting(&candidates), 2);
    }

    #[test]
    fn however_many_speak_few_are_kept() {
        let mut candidates = Candidates::default();
        for node in 1..10_000 {
            candidates.heard(&candidate(node, 1e6 + f64::from(node), 0.1));
        }
        assert_eq!((limiting(&candidates), candidates.potential.len()), (1, POTENTIAL));
        let list = candidates.list();
        assert!(list.len() <= 1 + POTENTIAL + TOLD, "{}", list.len());
        assert!(candidates.heard(&candidate(7777, 10.0, 0.1)));
        assert_eq!(limiting(&candidates), 7777);
    }
}
