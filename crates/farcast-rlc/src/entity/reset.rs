//! The reset procedure (TS 25.322 section 11.4).

use farcast_core::timers::TimerSet as _;
use farcast_core::{Payload, Time};

use super::Entity;
use crate::common::{Common, Timer};
use crate::error::Reject;
use crate::event::Event;
use crate::pdu::Reset;

/// State of resets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resetting {
    /// The RSN of the next procedure.
    next_rsn: bool,
    /// The procedure under way.
    pending: Option<Pending>,
    /// The RSN of the peer's last RESET.
    last_of_peer: Option<bool>,
    /// The RSN of the RESET that is to be acknowledged.
    answer: Option<bool>,
}

/// A reset procedure under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    rsn: bool,
    /// VT(RST).
    count: u32,
    /// `true` if the RESET is to be sent.
    due: bool,
}

impl Resetting {
    /// Returns `true` if no procedure is under way and no answer is due.
    pub(super) const fn is_idle(&self) -> bool {
        self.pending.is_none() && self.answer.is_none()
    }

    /// Returns `true` if a procedure is under way.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn has_output(&self) -> bool {
        self.answer.is_some() || self.pending.is_some_and(|pending| pending.due)
    }

    /// Returns the next RESET or RESET ACK.
    pub(super) fn poll_pdu<P>(&mut self, now: Time, common: &mut Common<P>) -> Option<Reset> {
        // Hyper frame numbers are for ciphering, which this entity does not have.
        if let Some(rsn) = self.answer.take() {
            return Some(Reset { acknowledges: true, rsn, hfni: 0 });
        }
        let pending = self.pending.as_mut().filter(|pending| pending.due)?;
        pending.due = false;
        common.counters.reset_pdus += 1;
        common.start(Timer::Reset, now, Some(common.config.reset.timer));
        Some(Reset { acknowledges: false, rsn: pending.rsn, hfni: 0 })
    }
}

impl<P: Payload> Entity<P> {
    /// Begins a reset procedure, if something calls for one and none is under way.
    pub(super) fn begin_reset_if_wanted(&mut self) {
        if !core::mem::take(&mut self.common.reset_wanted) || self.resetting.is_pending() || self.stopped {
            return;
        }
        self.common.counters.resets += 1;
        self.stop_timers();
        let rsn = self.resetting.next_rsn;
        self.resetting.next_rsn = !rsn;
        self.resetting.pending = Some(Pending { rsn, count: 0, due: false });
        self.repeat_reset();
    }

    /// Sends the RESET again, or gives up if that has been tried too often.
    pub(super) fn repeat_reset(&mut self) {
        let Some(pending) = &mut self.resetting.pending else { return };
        pending.count += 1;
        pending.due = pending.count < self.common.config.reset.max_rst;
        if !pending.due {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.stopped = true;
        self.resetting = Resetting::default();
        self.receiver.reset();
        self.sender.give_up(&mut self.common);
        for &timer in Timer::ALL {
            self.common.stop(timer);
        }
        self.common.events.push_back(Event::Unrecoverable);
    }

    pub(super) fn on_reset(&mut self, reset: Reset) -> Result<(), Reject> {
        if reset.acknowledges {
            let answers = |pending: Pending| pending.rsn == reset.rsn && pending.count > 0;
            if !self.resetting.pending.is_some_and(answers) {
                return Err(Reject::Unexpected);
            }
            self.resetting.pending = None;
            self.common.stop(Timer::Reset);
            self.start_anew();
            return Ok(());
        }
        self.resetting.answer = Some(reset.rsn);
        // A RESET with the same number is a repetition: only the answer was lost.
        if self.resetting.last_of_peer.replace(reset.rsn) != Some(reset.rsn) {
            self.common.counters.resets_of_peer += 1;
            self.start_anew();
        }
        Ok(())
    }

    /// Starts both sides anew at number 0.
    fn start_anew(&mut self) {
        self.stop_timers();
        self.receiver.reset();
        self.sender.reset(&mut self.common);
        self.common.events.push_back(Event::Reset);
    }

    /// Stops all timers but the periodic ones, and the one that waits for the peer's answer.
    fn stop_timers(&mut self) {
        let goes_on =
            |timer: &Timer| matches!(timer, Timer::PollPeriodic | Timer::StatusPeriodic | Timer::Reset);
        for timer in Timer::ALL.iter().copied().filter(|timer| !goes_on(timer)) {
            self.common.stop(timer);
        }
    }
}
