//! Discard of SDUs, and moves of the peer's window past them (TS 25.322 sections 9.7.3 and 11.6).

use farcast_core::{Payload, Time};
use smallvec::smallvec;

use super::{BegunSdu, Sender, SentPdu, State, number};
use crate::common::{Common, Timer};
use crate::config::Discard;
use crate::error::Reject;
use crate::event::Event;
use crate::pdu::{LastEnd, MoveWindow, Status, SuperField};

/// An MRW procedure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The last `SN_MRW`: the peer shall not wait for PDUs before it.
    to: u64,
    /// `N_LENGTH`: number of the ends in that PDU that belong to SDUs given up.
    n_length: u8,
    /// `true` if LENGTH is 0: `to` lies beyond the window.
    beyond_window: bool,
    /// VT(MRW).
    sent: u32,
    /// `true` if the request is to be sent.
    due: bool,
}

impl Move {
    /// Creates a procedure that begins, within the window.
    const fn to(to: u64, n_length: u8) -> Self {
        Self { to, n_length, beyond_window: false, sent: 0, due: true }
    }
}

impl<P: Payload> Sender<P> {
    /// Notes that `pdu` must not be sent again; calls for a reset if SDUs are never discarded.
    pub(super) fn exhaust(&mut self, pdu: u64, common: &mut Common<P>) {
        if common.config.discard == Discard::None {
            common.reset_wanted = true;
        }
        self.exhausted = self.exhausted.max(Some(pdu));
    }

    /// Gives up every SDU with a part in VT(A) up to the last exhausted PDU, unless an MRW procedure is under way.
    pub(super) fn give_up_exhausted(&mut self, common: &mut Common<P>) {
        if common.reset_wanted || self.mrw.is_some() {
            return;
        }
        let Some(pdu) = self.exhausted.take().filter(|&pdu| pdu >= self.acknowledged.max(self.floor)) else {
            return;
        };
        let count = self.begun.iter().take_while(|sdu| sdu.first <= pdu).count();
        self.discard(count, common);
    }

    /// Gives up SDUs that have waited too long. SDUs that have been begun stay while an MRW procedure is under way.
    pub(super) fn discard_expired(&mut self, now: Time, common: &mut Common<P>) {
        let Discard::Timer { after } = common.config.discard else { return };
        let expired = |submitted: Time| submitted + after <= now;
        if self.mrw.is_none() {
            let count = self.begun.iter().take_while(|sdu| expired(sdu.submitted)).count();
            self.discard(count, common);
        }
        if self.begun.is_empty() {
            let count = self.waiting.iter().take_while(|sdu| expired(sdu.submitted)).count();
            (0..count).for_each(|_| self.drop_waiting());
            self.report_discarded(count as u64, common);
        }
        self.forget_idle_polls();
        self.arm_discard(common);
    }

    /// Sets `Timer_Discard` for the oldest SDU that can be given up.
    pub(super) fn arm_discard(&self, common: &mut Common<P>) {
        let Discard::Timer { after } = common.config.discard else { return };
        let oldest = match (self.begun.front(), self.waiting.front()) {
            (Some(_), _) if self.mrw.is_some() => None,
            (Some(sdu), _) => Some(sdu.submitted),
            (None, sdu) => sdu.map(|sdu| sdu.submitted),
        };
        match oldest {
            Some(submitted) => common.start_at(Timer::Discard, submitted + after),
            None => common.stop(Timer::Discard),
        }
    }

    /// Reports that the first `count` SDUs are given up.
    pub(super) fn report_discarded(&mut self, count: u64, common: &mut Common<P>) {
        if count > 0 {
            let sdus = self.oldest..self.oldest + count;
            self.oldest = sdus.end;
            common.counters.sdus_discarded += count;
            common.events.push_back(Event::Discarded { sdus });
        }
    }

    /// Gives up the first `count` SDUs that have been begun, and begins an MRW procedure.
    fn discard(&mut self, count: usize, common: &mut Common<P>) {
        let Some(&last) = count.checked_sub(1).and_then(|last| self.begun.get(last)) else { return };
        let target = match (last.end, self.begun.get(count)) {
            (Some((pdu, end)), Some(&BegunSdu { first, .. })) if first == pdu => Move::to(pdu, end),
            (Some((pdu, _)), _) => Move::to(pdu + 1, 0),
            (None, _) => self.break_off(),
        };
        (self.acknowledged..target.to).for_each(|pdu| self.settle(pdu));
        self.floor = self.floor.max(target.to);
        self.begun.drain(..count);
        self.report_discarded(count as u64, common);
        self.mrw = Some(target);
        common.counters.window_moves += 1;
    }

    /// Ends the SDU that is being sent without its end. Returns the move that the peer's window has to make.
    ///
    /// Later data must not be taken for the rest of this SDU, even if they arrive before the request to move. So a
    /// number is skipped, if need be the first beyond the window. The peer cannot go past this number on its own, nor
    /// confirm that it has.
    fn break_off(&mut self) -> Move {
        if self.waiting.front().is_some_and(|sdu| sdu.begun) {
            self.drop_waiting();
        }
        self.pending_end = None;
        let beyond_window = !self.may_send_new();
        self.sent.push_back(SentPdu {
            ended_before: None,
            segments: smallvec![],
            last_end: LastEnd::Indicator,
            left: 0,
            transmissions: 0,
            state: State::Settled,
            missing: false,
        });
        Move { beyond_window, ..Move::to(self.next(), 0) }
    }

    /// Returns `true` if a request to move the window is to be sent.
    pub(crate) fn has_move_request(&self) -> bool {
        self.mrw.is_some_and(|mrw| mrw.due)
    }

    /// Returns the request to move the window, if it is to be sent.
    pub(crate) fn move_request(&self) -> Option<SuperField> {
        let mrw = self.mrw.filter(|mrw| mrw.due)?;
        Some(SuperField::MoveWindow(MoveWindow {
            sns: smallvec![number(mrw.to)],
            beyond_window: mrw.beyond_window,
            n_length: mrw.n_length,
        }))
    }

    /// Notes that the request has been sent.
    pub(crate) fn on_move_request_sent(&mut self, now: Time, common: &mut Common<P>) {
        if let Some(mrw) = &mut self.mrw {
            mrw.due = false;
            mrw.sent += 1;
            common.counters.mrw_sent += 1;
            common.start(Timer::Mrw, now, Some(common.config.mrw.timer));
        }
    }

    /// Sends the request again, or calls for a reset if it has been sent too often: `Timer_MRW` has run out.
    pub(super) fn repeat_move(&mut self, common: &mut Common<P>) {
        if let Some(mrw) = &mut self.mrw {
            mrw.due = mrw.sent < common.config.mrw.max_mrw;
            common.reset_wanted |= !mrw.due;
        }
    }

    /// Ends the MRW procedure and moves VT(A) if the peer confirms it (section 11.6.2).
    pub(super) fn on_move_ack(&mut self, status: &Status, common: &mut Common<P>) -> Result<(), Reject> {
        let mut result = Ok(());
        for field in &status.fields {
            let &SuperField::MoveWindowAck { sn, n } = field else { continue };
            let offset = usize::from(sn.since(number(self.acknowledged)));
            let at = self.acknowledged + offset as u64;
            let confirms = |mrw: Move| mrw.sent > 0 && (at > mrw.to || at == mrw.to && n == mrw.n_length);
            if offset <= self.sent.len() && self.mrw.is_some_and(confirms) {
                self.end_move(common);
                self.advance(at, common);
            } else {
                result = Err(Reject::Unexpected);
            }
        }
        result
    }

    /// Ends the MRW procedure once VT(A) is past its target: the peer moved there on its own.
    pub(super) fn end_move_passed(&mut self, common: &mut Common<P>) {
        if self.mrw.is_some_and(|mrw| self.acknowledged > mrw.to) {
            self.end_move(common);
        }
    }

    fn end_move(&mut self, common: &mut Common<P>) {
        self.mrw = None;
        common.stop(Timer::Mrw);
        common.events.push_back(Event::WindowMoved);
    }
}
