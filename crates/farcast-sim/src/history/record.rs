//! What a history comes to.

use farcast_core::Time;
use farcast_delivery::{Milestone, NakFate, Phase};

use super::{Interval, Point};

/// What happened in one replication. Times count from its beginning; points are in the order of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// How many receivers there are.
    pub receivers: u32,
    /// When the last thing happened.
    pub end: Time,
    /// The passes.
    pub passes: Vec<Pass>,
    /// Passes behind these, which are not kept.
    pub passes_left_out: u64,
    /// When data left, and how many DTUs.
    pub data: Vec<Interval>,
    /// What the sender waited for.
    pub waits: Vec<Wait>,
    /// Waits behind these, which are not kept.
    pub waits_left_out: u64,
    /// Announcements that left.
    pub announcements: Vec<Point>,
    /// Registrations that the sender took.
    pub registrations: Vec<Point>,
    /// Status requests that left.
    pub status_requests: Vec<Point>,
    /// NAKs that left receivers. Those of a population that says them merged are not told of.
    pub naks_sent: Vec<Point>,
    /// NAKs that reached the sender and made it schedule something.
    pub naks_used: Vec<Point>,
    /// NAKs that reached it and asked for nothing new.
    pub naks_known: Vec<Point>,
    /// NAKs that reached it once a later pass than the one that they answer had begun.
    pub naks_late: Vec<Point>,
    /// Completions of the protocol that left: confirmations of Dones, or the word that it is over.
    pub confirmations: Vec<Point>,
    /// Receivers that the sender heard to be done.
    pub dones: Vec<Point>,
    /// Receivers that declined, quit or were given up.
    pub leavings: Vec<Point>,
    /// Receivers that came to have everything.
    pub completions: Vec<Point>,
    /// Turns of the transmission: it began, everyone had everything, it ended.
    pub milestones: Vec<(Time, Milestone)>,
    /// The receivers one by one, receiver n at place n, if they are few.
    pub lanes: Vec<Lane>,
}

impl Record {
    pub(super) fn new(receivers: u32, lanes: u32) -> Self {
        Self {
            receivers,
            end: Time::ZERO,
            passes: Vec::new(),
            passes_left_out: 0,
            data: Vec::new(),
            waits: Vec::new(),
            waits_left_out: 0,
            announcements: Vec::new(),
            registrations: Vec::new(),
            status_requests: Vec::new(),
            naks_sent: Vec::new(),
            naks_used: Vec::new(),
            naks_known: Vec::new(),
            naks_late: Vec::new(),
            confirmations: Vec::new(),
            dones: Vec::new(),
            leavings: Vec::new(),
            completions: Vec::new(),
            milestones: Vec::new(),
            lanes: vec![Lane::default(); lanes as usize],
        }
    }
}

/// A pass of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Its number, from 1.
    pub number: u32,
    /// When it began.
    pub begin: Time,
    /// When its last datagram, which may be a status request, had left.
    pub end: Time,
    /// DTUs that were scheduled for it when it began.
    pub scheduled: u32,
    /// DTUs that it sent, parity symbols and repetitions among them.
    pub dtus: u64,
}

/// A time in which the sender had nothing to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When it began.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
    /// For what.
    pub waits_for: WaitFor,
    /// The pass before it; 0 before data.
    pub after_pass: u32,
    /// NAKs that came meanwhile.
    pub naks: NakCounts,
}

impl Wait {
    pub(super) const fn new(at: Time, waits_for: WaitFor, after_pass: u32) -> Self {
        Self { begin: at, end: at, waits_for, after_pass, naks: NakCounts { used: 0, known: 0, late: 0 } }
    }
}

/// What a sender waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitFor {
    /// Receivers that register.
    Registrations,
    /// Receivers to join the group that carries data.
    Joining,
    /// Answers to a status request: until the Status Retry Timer expires, or until the first of them where the pass
    /// rule is the draft's.
    Answers,
    /// Dones that come again for want of a confirmation, or the time to repeat what is said last.
    Closing,
}

impl WaitFor {
    /// What is waited for in `phase`, if anything is.
    pub(super) const fn in_phase(phase: Phase) -> Option<Self> {
        match phase {
            Phase::Announcing => Some(Self::Registrations),
            Phase::Joining => Some(Self::Joining),
            Phase::Waiting => Some(Self::Answers),
            Phase::Completing | Phase::Aborting => Some(Self::Closing),
            Phase::Idle | Phase::Sending | Phase::Ended => None,
        }
    }
}

/// NAKs by their fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NakCounts {
    /// Made the sender schedule something.
    pub used: u64,
    /// Asked for nothing new.
    pub known: u64,
    /// Answer a pass before the last.
    pub late: u64,
}

impl NakCounts {
    pub(super) fn add(&mut self, count: u64, fate: NakFate) {
        let counter = match fate {
            NakFate::Used => &mut self.used,
            NakFate::Known => &mut self.known,
            NakFate::Late => &mut self.late,
        };
        *counter = counter.saturating_add(count);
    }
}

/// One receiver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lane {
    /// Its NAKs, in the order in which they left.
    pub naks: Vec<LaneNak>,
    /// NAKs behind these, which are not kept.
    pub naks_left_out: u64,
    /// When it had everything.
    pub completed: Option<Time>,
}

/// A NAK of one receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneNak {
    /// When it left.
    pub sent: Time,
    /// The pass that it answers.
    pub pass: u32,
    /// Its block, from 0.
    pub block: u32,
    /// DTUs that it asks for.
    pub dtus: u32,
    /// When it reached the sender and what became of it; `None` if it was lost.
    pub reached: Option<(Time, NakFate)>,
}

/// What has begun and not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Open {
    pub(super) pass: Option<Pass>,
    pub(super) wait: Option<Wait>,
    /// The last pass that began.
    pub(super) after_pass: u32,
}

impl Open {
    pub(super) fn waits_for(&self, waits_for: WaitFor) -> bool {
        self.wait.is_some_and(|wait| wait.waits_for == waits_for)
    }
}
