//! Result of a history.

use farcast_core::Time;
use farcast_delivery::{Milestone, NakFate, Phase};

use super::{Interval, Point};

/// Events of one replication. Times count from its beginning; points are in the order of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Number of receivers.
    pub receivers: u32,
    /// Time of the last event.
    pub end: Time,
    /// Passes.
    pub passes: Vec<Pass>,
    /// Passes behind the limit, which are not kept.
    pub passes_left_out: u64,
    /// Intervals in which data left, with their numbers of DTUs.
    pub data: Vec<Interval>,
    /// Waits of the sender.
    pub waits: Vec<Wait>,
    /// Waits behind the limit, which are not kept.
    pub waits_left_out: u64,
    /// Announcements that left.
    pub announcements: Vec<Point>,
    /// Registrations that the sender took.
    pub registrations: Vec<Point>,
    /// Status requests that left.
    pub status_requests: Vec<Point>,
    /// NAKs that left receivers, except those of a population that sends them merged.
    pub naks_sent: Vec<Point>,
    /// NAKs that reached the sender and made it schedule something.
    pub naks_used: Vec<Point>,
    /// NAKs that reached the sender and asked for nothing new.
    pub naks_known: Vec<Point>,
    /// NAKs that reached the sender after a later pass than the one that they answer had begun.
    pub naks_late: Vec<Point>,
    /// Confirmations that left: of Dones, or of the end of the transmission.
    pub confirmations: Vec<Point>,
    /// Receivers from which the sender heard that they are done.
    pub dones: Vec<Point>,
    /// Receivers that declined, quit or were given up.
    pub leavings: Vec<Point>,
    /// Receivers that became complete.
    pub completions: Vec<Point>,
    /// Milestones of the transmission: it began, every receiver had everything, it ended.
    pub milestones: Vec<(Time, Milestone)>,
    /// Lanes of single receivers, receiver n at index n, if there are few.
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

/// Pass of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Number of the pass, from 1.
    pub number: u32,
    /// Time of its beginning.
    pub begin: Time,
    /// Time at which its last datagram, which may be a status request, had left.
    pub end: Time,
    /// DTUs that were scheduled for the pass when it began.
    pub scheduled: u32,
    /// DTUs that the pass sent, including parity symbols and repetitions.
    pub dtus: u64,
}

/// Time in which the sender had nothing to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Beginning of the wait.
    pub begin: Time,
    /// End of the wait.
    pub end: Time,
    /// Reason for the wait.
    pub waits_for: WaitFor,
    /// Pass before the wait; 0 before data.
    pub after_pass: u32,
    /// NAKs that came during the wait.
    pub naks: NakCounts,
}

impl Wait {
    pub(super) const fn new(at: Time, waits_for: WaitFor, after_pass: u32) -> Self {
        Self { begin: at, end: at, waits_for, after_pass, naks: NakCounts { used: 0, known: 0, late: 0 } }
    }
}

/// Reason for which a sender waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitFor {
    /// Receivers that register.
    Registrations,
    /// Receivers to join the group that carries data.
    Joining,
    /// Answers to a status request. The wait ends with the Status Retry Timer, or with the first answer under the
    /// draft's pass rule.
    Answers,
    /// Repeated Dones for want of a confirmation, or the time for repeating the last message.
    Closing,
}

impl WaitFor {
    /// Returns the reason for waiting in `phase`, if the sender waits.
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
    /// NAKs that made the sender schedule something.
    pub used: u64,
    /// NAKs that asked for nothing new.
    pub known: u64,
    /// NAKs that answer a pass before the last.
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

/// Events of one receiver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lane {
    /// NAKs of the receiver, in the order in which they left.
    pub naks: Vec<LaneNak>,
    /// NAKs behind the limit, which are not kept.
    pub naks_left_out: u64,
    /// Time at which the receiver had everything.
    pub completed: Option<Time>,
}

/// NAK of one receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneNak {
    /// Departure time.
    pub sent: Time,
    /// Pass that the NAK answers.
    pub pass: u32,
    /// Block of the NAK, from 0.
    pub block: u32,
    /// DTUs that the NAK asks for.
    pub dtus: u32,
    /// Time at which the NAK reached the sender, with its fate; `None` if it was lost.
    pub reached: Option<(Time, NakFate)>,
}

/// Pass and wait that have begun and not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Open {
    pub(super) pass: Option<Pass>,
    pub(super) wait: Option<Wait>,
    /// Last pass that began.
    pub(super) after_pass: u32,
}

impl Open {
    pub(super) fn waits_for(&self, waits_for: WaitFor) -> bool {
        self.wait.is_some_and(|wait| wait.waits_for == waits_for)
    }
}
