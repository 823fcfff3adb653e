//! Triggers and content of reports (TS 25.322 sections 9.7.2 and 9.7.4).

use farcast_core::{Payload, Time};
use smallvec::SmallVec;

use super::{Receiver, number};
use crate::common::{Common, Timer, next_period};
use crate::pdu::{SequenceNumber, Status, SuperField};
use crate::report::report;

/// State of reports: the pending triggers, and the estimated PDU counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Reporting {
    /// `true` if a report is to be sent.
    requested: bool,
    /// PDU from which the next STATUS PDU of a report that takes several goes on.
    rest: Option<u64>,
    /// Number of PDUs that the STATUS PDUs of this report have asked for so far.
    asked: u32,
    epc: Option<Epc>,
}

/// The estimated PDU counter.
#[derive(Clone, Copy, Debug)]
struct Epc {
    /// VR(EP).
    left: u32,
    /// VR(H) at the report: every PDU that it asked for lies before.
    until: u64,
    /// `true` once `Timer_EPC` has ended, and TTIs count.
    counts: bool,
}

/// A STATUS PDU of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StatusPart {
    pub(crate) fields: SmallVec<[SuperField; 2]>,
    /// PDU from which the next STATUS PDU goes on; `None` if this is the last.
    rest: Option<u64>,
    /// Number of PDUs that this STATUS PDU asks for.
    asks: u32,
}

impl StatusPart {
    /// Returns the length of its fields in bits.
    pub(crate) fn bits(&self) -> usize {
        self.fields.iter().map(SuperField::bits).sum()
    }

    /// Returns `true` if no further STATUS PDU of the report follows.
    pub(crate) const fn is_last(&self) -> bool {
        self.rest.is_none()
    }
}

impl Reporting {
    /// Notes that a data PDU has come.
    pub(super) fn on_data<P>(&mut self, now: Time, poll: bool, common: &mut Common<P>) {
        self.requested |= poll;
        if !common.is_running(Timer::StatusPeriodic) {
            common.start(Timer::StatusPeriodic, now, common.config.status.periodic);
        }
    }

    /// Notes that a PDU has shown that others are missing.
    pub(super) const fn on_gap<P>(&mut self, common: &Common<P>) {
        self.requested |= common.config.status.missing_pdu;
    }

    /// Notes that VR(R) has moved: the counter stops once every PDU asked for has arrived.
    pub(super) fn on_advance<P>(&mut self, next: u64, common: &mut Common<P>) {
        if self.epc.is_some_and(|epc| epc.until <= next) {
            self.epc = None;
            common.stop(Timer::Epc);
        }
    }

    /// Starts the counter behind a report that asked for `asked` PDUs, all before `until`.
    fn start_epc<P>(&mut self, now: Time, asked: u32, until: u64, common: &mut Common<P>) {
        self.epc = Some(Epc { left: asked, until, counts: false }).filter(|_| asked > 0);
        self.epc = self.epc.filter(|_| common.config.status.epc.is_some());
        if self.epc.is_some() {
            common.start(Timer::Epc, now, common.config.status.epc);
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl<P: Payload> Receiver<P> {
    /// Requests a report, because the peer wants one.
    pub(crate) fn request_report(&mut self) {
        self.reporting.requested = true;
    }

    /// Returns `true` if a report may be sent: one is requested, or goes on.
    pub(crate) fn has_report(&self, common: &Common<P>) -> bool {
        self.reporting.rest.is_some() || self.reporting.requested && !common.is_running(Timer::StatusProhibit)
    }

    /// Returns the next STATUS PDU of the report, of at most `room_bits`, for the present state.
    pub(crate) fn report(&self, room_bits: usize, common: &Common<P>) -> Option<StatusPart> {
        if !self.has_report(common) {
            return None;
        }
        let (vr_r, vr_h) = (number(self.next), number(self.highest()));
        let from = self.reporting.rest.unwrap_or(self.next);
        let (form, window) = (common.config.status.form, common.config.rx_window);
        let mut parts = report(form, vr_r, vr_h, window, self.missing(from), room_bits).into_iter();
        let Status { mut fields } = parts.next()?;
        let goes_on = parts.next().is_some();
        if self.reporting.rest.is_some() {
            // Earlier STATUS PDUs have named a part of the missing PDUs: LSN is VR(R) (section 9.2.2.11.2).
            fields.retain(|field| !matches!(field, SuperField::Ack(_)));
            fields.push(SuperField::Ack(vr_r));
        }
        let runs = fields.iter().flat_map(SuperField::missing);
        let (end, asks) = runs.fold((from, 0), |(end, asks), (first, count)| {
            let first = self.next + u64::from(first.since(vr_r));
            (end.max(first + u64::from(count)), asks + u32::from(count))
        });
        // A STATUS PDU that names nothing has no room for any PDU; the report would go on for good.
        Some(StatusPart { rest: Some(end).filter(|_| goes_on && asks > 0), asks, fields })
    }

    /// Notes that a STATUS PDU of the report has been sent.
    pub(crate) fn on_report_sent(&mut self, now: Time, part: &StatusPart, common: &mut Common<P>) {
        let reporting = &mut self.reporting;
        if reporting.rest.is_none() {
            (reporting.requested, reporting.asked) = (false, 0);
        }
        reporting.asked = reporting.asked.saturating_add(part.asks);
        reporting.rest = part.rest;
        if part.is_last() {
            common.start(Timer::StatusProhibit, now, common.config.status.prohibit);
            let (asked, until) = (reporting.asked, self.next + self.slots.len() as u64);
            self.reporting.start_epc(now, asked, until, common);
        }
    }

    /// Returns the missing PDUs from `from` to VR(H), in runs: the first of each, and its length.
    fn missing(&self, from: u64) -> impl Iterator<Item = (SequenceNumber, u16)> + Clone + '_ {
        let mut at = from.saturating_sub(self.next) as usize;
        core::iter::from_fn(move || {
            let first = (at..self.slots.len()).find(|&offset| self.slots[offset].is_none())?;
            at = (first..self.slots.len())
                .find(|&offset| self.slots[offset].is_some())
                .unwrap_or(self.slots.len());
            Some((number(self.next + first as u64), (at - first) as u16))
        })
    }

    /// Notes that a TTI has passed in which `expected` PDUs could have come.
    pub(crate) fn on_tti(&mut self, expected: u16) {
        let Some(epc) = self.reporting.epc.as_mut().filter(|epc| epc.counts) else { return };
        epc.left = epc.left.saturating_sub(u32::from(expected));
        if epc.left == 0 {
            self.reporting.epc = None;
            self.reporting.requested = true;
        }
    }

    /// Returns `true` while TTIs count.
    pub(crate) fn counts_ttis(&self) -> bool {
        self.reporting.epc.is_some_and(|epc| epc.counts)
    }

    /// Acts on a timer of the receiving side, which was due at `due`.
    pub(crate) fn on_timer(&mut self, timer: Timer, due: Time, now: Time, common: &mut Common<P>) {
        match timer {
            Timer::Epc => {
                if let Some(epc) = &mut self.reporting.epc {
                    epc.counts = true;
                }
            }
            Timer::StatusPeriodic => {
                self.reporting.requested = true;
                if let Some(period) = common.config.status.periodic {
                    common.start_at(Timer::StatusPeriodic, next_period(due, period, now));
                }
            }
            // A report that has been requested meanwhile may be sent now.
            _ => (),
        }
    }

    /// Sets the window that the peer is to be told.
    pub(crate) fn set_peer_window(&mut self, window: u16) {
        self.peer_window = Some(window);
    }

    /// Returns the window that the peer is to be told, if any.
    pub(crate) fn window_field(&self) -> Option<SuperField> {
        self.peer_window.map(SuperField::Window)
    }

    /// Notes that the peer has been told.
    pub(crate) fn on_window_sent(&mut self) {
        self.peer_window = None;
    }
}
