//! Handling of the peer's reports (TS 25.322 sections 9.2.2.11 and 11.5).

use core::ops::Range;

use farcast_core::Payload;

use super::{Sender, State, number};
use crate::common::Common;
use crate::error::Reject;
use crate::pdu::{SequenceNumber, Status, SuperField};

impl<P: Payload> Sender<P> {
    /// Checks that all numbers of a report lie between VT(A) and VT(S). Numbers that a bitmap reports as arrived may
    /// lie before.
    pub(crate) fn check(&self, status: &Status) -> Result<(), Reject> {
        let span = self.sent.len();
        let offset = |sn: SequenceNumber| usize::from(sn.since(number(self.acknowledged)));
        let missing = status.missing().all(|(first, count)| offset(first) + usize::from(count) <= span);
        let arrived = status.ack().is_none_or(|lsn| offset(lsn) <= span);
        if missing && arrived { Ok(()) } else { Err(Reject::ErroneousSequenceNumber) }
    }

    /// Acts on a report that has passed the [`check`](Self::check).
    pub(crate) fn on_status(&mut self, status: &Status, common: &mut Common<P>) -> Result<(), Reject> {
        // The report's numbers count from here, even when VT(A) has moved.
        let base = self.acknowledged;
        let result = self.on_move_ack(status, common);
        self.set_window(status, common);
        if let Some(lsn) = status.ack() {
            self.on_ack(base + since(lsn, base), status, base, common);
        }
        self.on_missing(status, base, common);
        self.give_up_exhausted(common);
        self.arm_discard(common);
        self.forget_idle_polls();
        result
    }

    /// Sets VT(WS): 0 is ignored, and the configured window is the limit (section 9.2.2.11.3).
    fn set_window(&mut self, status: &Status, common: &Common<P>) {
        for field in &status.fields {
            match *field {
                SuperField::Window(window) if window > 0 => self.window = window.min(common.config.tx_window),
                _ => (),
            }
        }
    }

    /// Acknowledges every PDU before `lsn` that the report does not name as missing. Moves VT(A) to the first missing
    /// PDU, or to `lsn` (section 9.2.2.11.2).
    fn on_ack(&mut self, lsn: u64, status: &Status, base: u64, common: &mut Common<P>) {
        let mut first_missing = lsn;
        for pdu in runs(status, base).flatten() {
            first_missing = first_missing.min(pdu);
            self.mark_missing(pdu, true);
        }
        for pdu in first_missing..lsn {
            if self.get(pdu).is_some_and(|sent| !sent.missing) {
                self.settle(pdu);
            }
        }
        runs(status, base).flatten().for_each(|pdu| self.mark_missing(pdu, false));
        self.advance(first_missing, common);
    }

    fn mark_missing(&mut self, pdu: u64, missing: bool) {
        if let Some(offset) = pdu.checked_sub(self.acknowledged)
            && let Some(sent) = self.sent.get_mut(offset as usize)
        {
            sent.missing = missing;
        }
    }

    /// Moves VT(A) to `to`, unless it is already there or beyond.
    pub(super) fn advance(&mut self, to: u64, common: &mut Common<P>) {
        while self.acknowledged < to && !self.sent.is_empty() {
            self.settle(self.acknowledged);
            self.sent.pop_front();
            self.acknowledged += 1;
        }
        while self.begun.front().is_some_and(|sdu| sdu.end.is_some_and(|(end, _)| end < self.acknowledged)) {
            self.begun.pop_front();
            self.oldest += 1;
        }
        self.polls.on_acknowledged(self.acknowledged, common);
        self.end_move_passed(common);
    }

    /// Queues the missing PDUs. A queued PDU is not queued again; a PDU that may not be sent again is given up.
    fn on_missing(&mut self, status: &Status, base: u64, common: &mut Common<P>) {
        for pdu in runs(status, base).flatten() {
            self.polls.on_missing(pdu, common);
            self.queue(pdu, common);
        }
    }

    fn queue(&mut self, pdu: u64, common: &mut Common<P>) {
        let Some(offset) = pdu.checked_sub(self.acknowledged) else { return };
        let Some(sent) = self.sent.get_mut(offset as usize) else { return };
        if sent.state != State::Outstanding {
            return;
        }
        if sent.transmissions >= common.config.transmission_limit() {
            self.exhaust(pdu, common);
            return;
        }
        sent.state = State::Queued;
        self.queued += 1;
        self.again.push_back(pdu);
    }
}

/// Returns the number of PDUs from `base` to `sn`.
fn since(sn: SequenceNumber, base: u64) -> u64 {
    u64::from(sn.since(number(base)))
}

/// Returns the PDUs that the report names as missing, in runs.
fn runs(status: &Status, base: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    status.missing().map(move |(first, count)| {
        let first = base + since(first, base);
        first..first + u64::from(count)
    })
}
