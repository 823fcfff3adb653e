//! The end of a source.

use farcast_core::{Time, Timers};
use farcast_delivery::Phase;
use farcast_delivery::nack::SenderOutcome;

use super::{LAST_SPMS, Sender, Timer};
use crate::event::SenderEvent;

impl Sender {
    /// Closes the source: no more messages come. Sends what was accepted, and tells receivers that the session ends.
    pub fn finish(&mut self, now: Time) {
        self.is_closed = true;
        self.look_whether_sent(now);
        if self.core.phase == Phase::Waiting {
            self.spms = self.spms.max(1);
            self.beat = self.config.heartbeat;
            self.timers.set(Timer::Heartbeat, now + self.beat);
        }
    }

    /// Changes to waiting for requests once everything was sent.
    pub(super) fn look_whether_sent(&mut self, at: Time) {
        if self.core.phase == Phase::Sending && self.is_closed && self.window.next == self.window.end {
            self.core.phase = Phase::Waiting;
            self.timers.set(Timer::Linger, at + self.linger());
            self.conclude_if_settled();
        }
    }

    /// Ends the session if everything was sent and the named receivers that lack it are no longer waited for.
    pub(super) fn conclude_if_settled(&mut self) {
        if self.core.phase == Phase::Waiting && self.lacking.is_empty() && self.core.has_dismissed() {
            self.conclude();
        }
    }

    pub(super) fn conclude(&mut self) {
        let lacking = self.lacking.len() + self.keeping.lost() as usize;
        let outcome = self.core.outcome(self.config.named.len(), lacking, self.is_cut_short);
        self.core.events.extend(self.lacking.drain(..).map(SenderEvent::Lost));
        self.end(outcome);
    }

    /// Begins the end: the last SPMs leave, and then `outcome` is reported.
    pub(super) fn end(&mut self, outcome: SenderOutcome) {
        self.core.end(outcome);
        self.timers = Timers::default();
        self.confirmations.clear();
        self.spms = LAST_SPMS;
    }
}
