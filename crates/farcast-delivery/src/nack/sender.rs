//! State of a sender that does not depend on its protocol.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Deadline, RejectCounts};

use super::{NodeId, SenderEvent, SenderOutcome};
use crate::figure::{Figure, RequestCounts};
use crate::pacer::{Pacer, RatePace};
use crate::sender::{Asked, NakFate, Phase, RoundProgress};

/// Number of rounds that are counted one by one. Symbols of later rounds count for the last of these.
const ROUNDS: usize = 4096;

/// Phase, pace, rounds and reports of a sender.
#[derive(Debug)]
pub struct SenderCore<X> {
    /// Phase of the transmission.
    pub phase: Phase,
    /// Departure times.
    pub pacer: Pacer,
    /// Outcome, while the last messages leave.
    pub ending: Option<SenderOutcome>,
    /// Repair request in the message that was handled last, if there was one.
    pub asked: Option<Asked>,
    /// Number of refused messages, by reason.
    pub rejects: RejectCounts,
    /// Events that the owner has not taken.
    pub events: VecDeque<SenderEvent<X>>,
    progress: RoundProgress,
    /// Segments and symbols sent in each round.
    rounds: Vec<u64>,
    /// Number of named receivers that are no longer waited for.
    dismissed: usize,
    /// Named receivers, each with the time at which it was heard last.
    heard: BTreeMap<NodeId, Option<Time>>,
}

impl<X> SenderCore<X> {
    /// Makes the state of a sender that has not begun.
    pub fn new(pace: RatePace) -> Self {
        Self {
            phase: Phase::Idle,
            pacer: Pacer::new(Some(pace)),
            ending: None,
            asked: None,
            rejects: RejectCounts::default(),
            events: VecDeque::new(),
            progress: RoundProgress::default(),
            rounds: Vec::new(),
            dismissed: 0,
            heard: BTreeMap::new(),
        }
    }

    /// Returns the state of a sender to which `named` are to acknowledge, and which keeps when it heard them last.
    #[must_use]
    pub fn with_named(self, named: &[NodeId]) -> Self {
        Self { heard: named.iter().map(|&node| (node, None)).collect(), ..self }
    }

    /// Records a valid message of `node`, if it is a named receiver.
    pub fn note_heard(&mut self, now: Time, node: NodeId) {
        if let Some(heard) = self.heard.get_mut(&node) {
            *heard = Some(now);
        }
    }

    /// Returns the time at which the named receiver `node` was heard last.
    pub fn heard(&self, node: NodeId) -> Option<Time> {
        self.heard.get(&node).copied().flatten()
    }

    /// Begins to send to receivers of which `named` are to acknowledge. Returns `false` if the sender had begun before.
    pub fn begin(&mut self, now: Time, named: usize) -> bool {
        if self.phase != Phase::Idle {
            return false;
        }
        self.phase = Phase::Sending;
        self.pacer.begin(now);
        self.events.push_back(SenderEvent::Started { named: named as u32 });
        true
    }

    /// Begins a round of `segments` segments and symbols.
    pub fn begin_round(&mut self, segments: u32) {
        if self.rounds.len() < ROUNDS {
            self.rounds.push(0);
        }
        let round = self.progress.round.saturating_add(1);
        self.progress = RoundProgress { round, sent: 0, segments };
        self.events.push_back(SenderEvent::Round { round, segments });
    }

    /// Adds `segments` to those that the current round sends.
    pub fn extend_round(&mut self, segments: u32) {
        self.progress.segments = self.progress.segments.saturating_add(segments);
    }

    /// Counts segments and symbols that have left.
    pub fn note_sent(&mut self, count: u32) {
        self.progress.sent = self.progress.sent.saturating_add(count);
        if let Some(round) = self.rounds.last_mut() {
            *round += u64::from(count);
        }
    }

    /// Notes a repair request of one receiver. It is of use if it asks for anything `new`.
    pub fn note_request(&mut self, new: bool) {
        let fate = if new { NakFate::Used } else { NakFate::Known };
        self.asked = Some(Asked { round: self.progress.round, count: 1, fate });
    }

    /// Notes that the named receiver `node`, which lacks something, is no longer waited for.
    pub fn dismiss(&mut self, node: NodeId) {
        self.dismissed += 1;
        self.events.push_back(SenderEvent::Lost(node));
    }

    /// Returns `true` if a named receiver that lacks something is no longer waited for.
    pub fn has_dismissed(&self) -> bool {
        self.dismissed > 0
    }

    /// Returns the outcome where `lacking` receivers of those that are still waited for have not acknowledged. `named`
    /// counts these and those that have.
    pub fn outcome(&self, named: usize, lacking: usize, cut_short: bool) -> SenderOutcome {
        SenderOutcome::of(named + self.dismissed, (lacking + self.dismissed) as u32, cut_short)
    }

    /// Returns the progress of the current round.
    pub fn progress(&self) -> RoundProgress {
        self.progress
    }

    /// Returns the numbers of segments and symbols sent in each round.
    pub fn sent_per_round(&self) -> &[u64] {
        &self.rounds
    }

    /// Returns `true` if receivers may still ask.
    pub fn is_at_work(&self) -> bool {
        matches!(self.phase, Phase::Sending | Phase::Waiting)
    }

    /// Returns to sending. Returns `true` if the sender had nothing to send, which is not made up for.
    pub fn resume(&mut self, now: Time) -> bool {
        let waited = self.phase == Phase::Waiting;
        if waited {
            self.pacer.begin(now);
        }
        self.phase = Phase::Sending;
        waited
    }

    /// Charges the rate for other datagrams that have left, with their octets in all.
    pub fn spend(&mut self, datagrams: u64, octets: u64) {
        self.pacer.charge(self.pacer.span_beside(datagrams, octets));
    }

    /// Returns `true` if the transmission may still be aborted.
    pub fn may_abort(&self) -> bool {
        self.ending.is_none() && self.phase != Phase::Ended
    }

    /// Begins the end: the last messages leave, and then `outcome` is reported.
    pub fn end(&mut self, outcome: SenderOutcome) {
        self.phase = if outcome == SenderOutcome::Aborted { Phase::Aborting } else { Phase::Completing };
        self.ending = Some(outcome);
    }

    /// Reports the outcome, if the last messages have left.
    pub fn finish(&mut self) {
        if let Some(outcome) = self.ending.take() {
            self.phase = Phase::Ended;
            self.events.push_back(SenderEvent::Ended(outcome));
        }
    }

    /// Returns the earlier one of `timer` and the next departure, if anything is to depart.
    pub fn deadline(&self, timer: Option<Deadline>, has_data: bool) -> Option<Deadline> {
        let pace = Deadline { at: self.pacer.next(), timer: "pace" };
        match timer {
            _ if !has_data => timer,
            Some(timer) if timer.at <= pace.at => Some(timer),
            _ => Some(pace),
        }
    }

    /// Returns the figures of a transfer with NACKs.
    pub fn figures(&self, nacks: &RequestCounts) -> Vec<Figure> {
        alloc::vec![
            Figure::count("rounds", self.rounds.len() as u64).labelled("rounds"),
            Figure::counts("segments_per_round", self.rounds.clone()).labelled("segments sent"),
            Figure::count("nacks.sent", nacks.sent).labelled("NACKs sent"),
            Figure::count("nacks.collided", nacks.collided).labelled("requests collided"),
            Figure::count("nacks.late", nacks.late).labelled("NACKs too late"),
            Figure::count("nacks.used", nacks.used),
        ]
    }
}
