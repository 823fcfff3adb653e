//! Triggers of polls (TS 25.322 section 9.7.1).

use farcast_core::{Payload, Time};

use super::Sender;
use crate::common::{Common, Timer, next_period};

/// State of polls: the pending triggers, and the counts of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Polls {
    /// VT(PDU).
    pdus: u32,
    /// VT(SDU).
    sdus: u32,
    /// `true` if the next PDU carries a poll; a PDU is sent again for it if nothing else waits.
    requested: bool,
    /// `true` if a poll waits for `Timer_Poll_Prohibit`.
    held: bool,
    /// VT(S) after the last poll.
    until: u64,
    /// Time at which `Timer_Poll_Periodic` was last due, or began.
    period_began: Option<Time>,
}

impl Polls {
    pub(super) const fn is_requested(&self) -> bool {
        self.requested
    }

    /// Starts the periodic timer again, in its rhythm: it stops while there is nothing to ask about.
    pub(super) fn wake<P>(&mut self, now: Time, common: &mut Common<P>) {
        let Some(period) = common.config.polling.periodic else { return };
        if !common.is_running(Timer::PollPeriodic) {
            let began = *self.period_began.get_or_insert(now);
            common.start_at(Timer::PollPeriodic, next_period(began, period, now));
        }
    }

    /// Counts an SDU that is begun. Returns `true` if its last octets carry a poll.
    pub(super) fn on_sdu<P>(&mut self, common: &Common<P>) -> bool {
        count_to(&mut self.sdus, common.config.polling.poll_sdu.map(Into::into))
    }

    /// Returns `true` if a PDU that is sent now carries a poll. `triggered` is `true` if a trigger concerns this PDU,
    /// and `next` is VT(S) behind it.
    pub(super) fn on_send<P>(
        &mut self,
        now: Time,
        triggered: bool,
        next: u64,
        common: &mut Common<P>,
    ) -> bool {
        let counted = count_to(&mut self.pdus, common.config.polling.poll_pdu.map(Into::into));
        let requested = core::mem::take(&mut self.requested);
        if !(triggered || counted || requested) {
            return false;
        }
        self.held = common.is_running(Timer::PollProhibit);
        if self.held {
            return false;
        }
        let polling = common.config.polling;
        common.start(Timer::Poll, now, polling.timer);
        common.start(Timer::PollProhibit, now, polling.prohibit);
        common.counters.polls += 1;
        self.until = next;
        true
    }

    /// Requests a poll, if there `is_something` to ask about.
    fn request<P>(&mut self, is_something: bool, common: &Common<P>) {
        let prohibited = common.is_running(Timer::PollProhibit);
        self.held |= is_something && prohibited;
        self.requested |= is_something && !prohibited;
    }

    /// Drops the pending triggers.
    pub(super) fn forget(&mut self) {
        (self.requested, self.held) = (false, false);
    }

    /// Stops `Timer_Poll` once every PDU that was sent before the poll is acknowledged.
    pub(super) fn on_acknowledged<P>(&mut self, acknowledged: u64, common: &mut Common<P>) {
        if acknowledged >= self.until {
            common.stop(Timer::Poll);
        }
    }

    /// Stops `Timer_Poll` once the peer asks for the last PDU before the poll.
    pub(super) fn on_missing<P>(&mut self, pdu: u64, common: &mut Common<P>) {
        if pdu + 1 == self.until {
            common.stop(Timer::Poll);
        }
    }

    pub(super) fn on_timer<P>(
        &mut self,
        timer: Timer,
        due: Time,
        now: Time,
        is_something: bool,
        common: &mut Common<P>,
    ) {
        match timer {
            Timer::PollProhibit => {
                let held = core::mem::take(&mut self.held);
                self.request(held && is_something, common);
            }
            Timer::PollPeriodic => {
                self.period_began = Some(due);
                if is_something {
                    self.wake(now, common);
                }
                self.request(is_something, common);
            }
            _ => self.request(is_something, common),
        }
    }

    /// Starts anew; the periodic timer goes on (section 11.4).
    pub(super) fn reset(&mut self) {
        *self = Self { period_began: self.period_began, ..Self::default() };
    }
}

impl<P: Payload> Sender<P> {
    /// Returns `true` if `occupied` PDUs, VT(A) to VT(S) and one more, are the share of the window that triggers a
    /// poll.
    pub(super) fn is_window_share_reached(&self, occupied: usize, common: &Common<P>) -> bool {
        let share = |percent| occupied * 100 >= usize::from(percent) * usize::from(self.window);
        common.config.polling.window_percent.is_some_and(share)
    }

    /// Returns the last PDU that is neither acknowledged nor given up: VT(S) - 1 unless that is settled.
    pub(super) fn last_outstanding(&self) -> Option<u64> {
        let offset = self.sent.iter().rposition(|sent| sent.state != super::State::Settled)?;
        Some(self.acknowledged + offset as u64)
    }

    /// Drops the pending triggers if there is nothing to ask about.
    pub(super) fn forget_idle_polls(&mut self) {
        if self.outstanding == 0 && !self.has_new() {
            self.polls.forget();
        }
    }
}

/// Counts one. Returns `true` at `most`, and then begins anew.
fn count_to(count: &mut u32, most: Option<u32>) -> bool {
    let Some(most) = most else { return false };
    *count += 1;
    let reached = *count >= most;
    if reached {
        *count = 0;
    }
    reached
}
