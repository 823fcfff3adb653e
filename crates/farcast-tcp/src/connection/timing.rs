//! The timers of a connection.

use farcast_core::{Span, Time, timers};

use super::recovery::RecoveryPhase;
use super::{Connection, State};
use crate::event::Failure;

timers! {
    /// Timers of a connection, by the meaning of their expiry.
    pub(super) enum Timer {
        /// The last segment may be lost (RFC 8985 section 7). If a timeout is due at the same time, the probe goes
        /// first and the timeout waits once more (section 7.2).
        Probe = "tail loss probe",
        /// Something in flight is taken to be lost (RFC 6298).
        Retransmit = "retransmit",
        /// The peer's window has been closed for long (RFC 9293 section 3.8.6.1).
        Persist = "persist",
        /// An acknowledgment has waited long enough.
        Acknowledge = "delayed acknowledgment",
        /// A segment that looked reordered is lost (RFC 8985 section 6.2).
        Reorder = "reordering",
        /// The end of TIME-WAIT.
        Linger = "time wait",
    }
}

/// Longest time between probes of a closed window.
const MOST_PERSIST: Span = Span::from_secs(60);

/// Counts of transmissions without an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unanswered {
    /// Timeouts in a row, and unanswered probes in a row.
    pub retries: u32,
    /// Probes since the peer's window closed.
    pub probes: u32,
}

impl Connection {
    pub(super) fn time_out(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Retransmit => self.retransmission_is_due(now),
            Timer::Probe => self.probe_is_due(now),
            Timer::Persist => self.window_stayed_closed(),
            Timer::Acknowledge => self.acknowledger.now(),
            Timer::Reorder => self.find_losses_by_time(now),
            Timer::Linger => self.end(),
        }
    }

    fn probe_is_due(&mut self, now: Time) {
        self.due.tail_probe = true;
        if !self.board.is_empty() {
            self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        }
    }

    fn retransmission_is_due(&mut self, now: Time) {
        self.unanswered.retries += 1;
        if self.unanswered.retries > self.config.most_retries {
            return self.fail(Failure::TimedOut);
        }
        self.stats.timeouts += 1;
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.due.syn = true;
            self.estimator.back_off();
            return;
        }
        self.time_is_out();
        self.estimator.back_off();
        self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
    }

    fn window_stayed_closed(&mut self) {
        self.unanswered.retries += 1;
        self.unanswered.probes += 1;
        if self.unanswered.retries > self.config.most_retries {
            return self.fail(Failure::TimedOut);
        }
        self.outgoing.any_size = self.peer.size > 0;
        self.due.window_probe = !self.outgoing.any_size;
    }

    /// Sets the timers of the sending direction after something was sent.
    pub(super) fn time_what_was_sent(&mut self, now: Time, new: bool) {
        if !self.timers.is_set(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        }
        if new {
            // As in Linux, the probe leaves no later than a timeout after the first segment in flight was sent.
            let age = self.board.age_of_first(now).unwrap_or(Span::ZERO);
            let left = self.estimator.timeout().saturating_sub(age);
            self.time_probe(now, if left.is_zero() { Time::NEVER } else { now + left });
            if self.timers.is_set(Timer::Probe) {
                // Linux has one timer for both: a segment that looked reordered waits for an acknowledgment or the
                // probe.
                self.timers.stop(Timer::Reorder);
            }
        }
    }

    /// Restarts the timers after an acknowledgment of new data (RFC 6298 rules 5.2 and 5.3).
    pub(super) fn time_again(&mut self, now: Time, restart: bool) {
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Probe);
            return;
        }
        if restart {
            self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        }
        self.time_probe(now, Time::NEVER);
    }

    /// Sets the tail loss probe timer (RFC 8985 section 7.2), no later than `bound` or the retransmission timer.
    fn time_probe(&mut self, now: Time, bound: Time) {
        let wanted = self.config.tail_loss_probe
            && self.agreed.sack
            && self.repair.phase == RecoveryPhase::Open
            && self.repair.probe.is_none()
            && self.board.sacked() == 0;
        if !wanted {
            self.timers.stop(Timer::Probe);
            return;
        }
        let patience = self.estimator.smoothed().map_or(Span::from_secs(1), |smoothed| {
            let one = self.board.len() == 1;
            smoothed * 2 + if one { MOST_ACK_DELAY } else { LEAST_PATIENCE }
        });
        let at = (now + patience).min(self.timers.due(Timer::Retransmit)).min(bound);
        self.timers.set(Timer::Probe, at);
    }

    /// Starts the persist timer, which waits for the peer's window to open, unless it runs.
    pub(super) fn time_persist(&mut self, now: Time) {
        if !self.timers.is_set(Timer::Persist) {
            let doubled = self.estimator.timeout() * (1u64 << self.unanswered.probes.min(16));
            self.timers.set(Timer::Persist, now + doubled.min(MOST_PERSIST));
        }
    }
}

/// Margin of a tail loss probe beyond two round trips, which may be microseconds: as in Linux.
const LEAST_PATIENCE: Span = Span::from_millis(2);

/// Longest time that a peer may delay an acknowledgment, as a tail loss probe assumes (RFC 8985 section 7.2).
const MOST_ACK_DELAY: Span = Span::from_millis(200);
