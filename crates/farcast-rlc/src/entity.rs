//! An entity of RLC in Acknowledged Mode: both sides, and the order in which they send.

use farcast_core::{Deadline, Payload, Time};
use smallvec::SmallVec;

use crate::common::{Common, Timer};
use crate::config::{BufferLimit, Config, ErroneousStatus};
use crate::error::{ConfigError, Reject};
use crate::event::{Counters, Event};
use crate::pdu::{DataPdu, Pdu, Status, SuperField};
use crate::receiver::{Receiver, StatusPart};
use crate::sender::{Choice, Sender};
use crate::status::STATUS_HEADER_BITS;

mod reset;

use reset::Resetting;

/// One end of a link: turns SDUs into PDUs, and PDUs into SDUs. The other end is an entity as well.
///
/// It has no clock and no carrier. Its owner
///
/// 1. changes it by [`submit`](Self::submit), [`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout) or
///    [`tti`](Self::tti),
/// 2. takes as many PDUs as fit a transport block from [`poll_pdu`](Self::poll_pdu), whenever a block leaves,
/// 3. drains [`poll_event`](Self::poll_event), and
/// 4. wakes it when [`poll_timeout`](Self::poll_timeout) says.
///
/// Time never goes back over all calls. Timers that are due act before anything else that happens at the same instant.
/// A late wake-up is legal, an early one changes nothing.
///
/// Where the standard is silent or leaves a choice:
///
/// - the poll with the last PDU goes with the last that the window allows as well, see
///   [`Polling::last_pdu`](crate::config::Polling::last_pdu);
/// - a report acknowledges by its ACK alone: PDUs that a BITMAP reports as arrived beyond LSN are not counted, for a
///   bitmap may reach further than its sender has seen;
/// - an SDU that is given up while it is being sent ends at a PDU number that is skipped, so that no later data can be
///   taken for its rest before the peer has moved its window;
/// - requests to move the window name only the last SDU that was given up ("Send MRW" is not configured); requests of a
///   peer that name all of them are understood.
///
/// Memory is bounded by the windows, by [`Config::transmission_buffer`] and by [`Config::max_sdu_octets`].
#[derive(Clone, Debug)]
pub struct Entity<P> {
    common: Common<P>,
    sender: Sender<P>,
    receiver: Receiver<P>,
    resetting: Resetting,
    stopped: bool,
}

/// A STATUS PDU that has not been sent.
struct Draft {
    /// Super fields before the report.
    control: PendingSuperFields,
    report: Option<StatusPart>,
}

/// Super fields that stand before a report, with a flag for each kind among them.
#[derive(Default)]
struct PendingSuperFields {
    fields: SmallVec<[SuperField; 2]>,
    move_ack: bool,
    move_request: bool,
    window: bool,
}

impl<P: Payload> Entity<P> {
    /// Creates an entity at the beginning of a connection.
    ///
    /// # Errors
    /// The error of [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Sender::new(config.tx_window),
            receiver: Receiver::new(),
            resetting: Resetting::default(),
            stopped: false,
            common: Common::new(config),
        })
    }

    /// Takes an SDU from above. Returns `true` if it was taken. It must not be empty or longer than
    /// [`Config::max_sdu_octets`], and [`Config::transmission_buffer`] must have room for it. SDUs that are taken are
    /// numbered from 0.
    pub fn submit(&mut self, now: Time, sdu: P) -> bool {
        self.expire(now);
        let taken = !self.stopped && self.sender.submit(now, sdu, &mut self.common);
        let counters = &mut self.common.counters;
        counters.sdus_submitted += u64::from(taken);
        counters.sdus_refused += u64::from(!taken);
        taken
    }

    /// Returns the next PDU of the transport block that leaves now: a reset, status reports, retransmissions, new data,
    /// in this order. `None` if no PDU wants to leave.
    pub fn poll_pdu(&mut self, now: Time) -> Option<Pdu<P>> {
        self.expire(now);
        if self.stopped {
            return None;
        }
        if self.resetting.is_idle() {
            // A PDU that must not be sent again may call for a reset or for a request to move the window.
            let choice = self.sender.choose(&mut self.common);
            self.begin_reset_if_wanted();
            if self.resetting.is_idle() {
                return match (choice, self.draft()) {
                    (choice, Some(draft)) if !self.fits_behind(choice, &draft) => {
                        self.common.counters.status_pdus += 1;
                        Some(Pdu::Status(self.commit(now, draft)))
                    }
                    (Some(choice), draft) => {
                        let mut pdu = self.sender.send(now, choice, &mut self.common);
                        self.common.counters.piggybacked += u64::from(draft.is_some());
                        pdu.piggybacked = draft.map(|draft| self.commit(now, draft));
                        Some(Pdu::Data(pdu))
                    }
                    (None, _) => None,
                };
            }
        }
        self.resetting.poll_pdu(now, &mut self.common).map(Pdu::Reset)
    }

    /// Returns `true` if [`poll_pdu`](Self::poll_pdu) may return a PDU. In the end it may still return `None`.
    pub fn has_output(&self, now: Time) -> bool {
        if self.stopped {
            return false;
        }
        let due = self.common.timers().next().is_some_and(|deadline| deadline.at <= now);
        due || self.resetting.has_output() || !self.resetting.is_pending() && self.has_status_or_data()
    }

    fn has_status_or_data(&self) -> bool {
        self.has_status() || self.sender.has_output()
    }

    /// Returns `true` if a STATUS PDU wants to leave.
    fn has_status(&self) -> bool {
        self.receiver.has_report(&self.common)
            || self.receiver.has_control()
            || self.sender.has_move_request()
    }

    /// Notes that a TTI has passed in which `expected` PDUs could have come: the estimated PDU counter counts them
    /// (TS 25.322 section 9.7.4). To be called after the PDUs of that TTI, while [`counts_ttis`](Self::counts_ttis) is
    /// `true`.
    pub fn tti(&mut self, now: Time, expected: u16) {
        self.expire(now);
        self.receiver.on_tti(expected);
    }

    /// Returns `true` while [`tti`](Self::tti) counts.
    pub fn counts_ttis(&self) -> bool {
        self.receiver.counts_ttis()
    }

    /// Tells the peer the limit of its outstanding PDUs (the WINDOW super field), with the next STATUS PDU. A peer
    /// ignores 0.
    pub fn set_peer_window(&mut self, window: u16) {
        self.receiver.set_peer_window(window);
    }

    /// Limits the SDUs that wait for their first transmission ([`Config::transmission_buffer`]) from now on. SDUs that
    /// wait stay, even if they exceed the limit.
    pub fn limit_transmission_buffer(&mut self, limit: BufferLimit) {
        self.common.config.transmission_buffer = Some(limit);
    }

    /// Takes a PDU from the peer. The polling bit and the piggybacked report of a data PDU count even if the receiver
    /// rejects its data.
    ///
    /// # Errors
    /// [`Reject`] gives the reason for which the PDU, or a part of it, was rejected.
    pub fn handle(&mut self, now: Time, pdu: Pdu<P>) -> Result<(), Reject> {
        self.expire(now);
        let result = match pdu {
            _ if self.stopped => Err(Reject::Stopped),
            Pdu::Reset(reset) => self.on_reset(reset),
            _ if self.resetting.is_pending() => Err(Reject::Resetting),
            Pdu::Status(status) => self.on_status(&status),
            Pdu::Data(pdu) => self.on_data(now, pdu),
        };
        self.begin_reset_if_wanted();
        self.common.counters.rejected.note(result)
    }

    fn on_data(&mut self, now: Time, mut pdu: DataPdu<P>) -> Result<(), Reject> {
        let reported = pdu.piggybacked.take().map_or(Ok(()), |status| self.on_status(&status));
        let result = self.receiver.on_data(now, pdu, &mut self.common);
        result.and(reported)
    }

    fn on_status(&mut self, status: &Status) -> Result<(), Reject> {
        status.fields.iter().try_for_each(check_field)?;
        if let Err(reject) = self.sender.check(status) {
            self.common.reset_wanted |= self.common.config.erroneous_status == ErroneousStatus::Reset;
            return Err(reject);
        }
        self.common.counters.status_received += 1;
        for field in &status.fields {
            match field {
                SuperField::MoveWindow(field) => self.receiver.move_window(field, &mut self.common),
                SuperField::Poll(_) => self.receiver.request_report(),
                _ => (),
            }
        }
        self.sender.on_status(status, &mut self.common)
    }

    /// Returns the content of the next STATUS PDU, as far as one PDU holds it; `None` if there is none.
    fn draft(&self) -> Option<Draft> {
        if !self.has_status() {
            return None;
        }
        let room = self.common.config.format.status_bits().saturating_sub(STATUS_HEADER_BITS);
        let control = self.control(room);
        let taken: usize = control.fields.iter().map(SuperField::bits).sum();
        let report = self.receiver.report(room + STATUS_HEADER_BITS, &self.common);
        // Beside other fields, a report goes along only if it is complete in the space that they leave.
        let report = report.filter(|part| taken == 0 || part.is_last() && taken + part.bits() <= room);
        Some(Draft { control, report })
    }

    /// Returns the super fields besides the report, as many as fit.
    fn control(&self, mut room: usize) -> PendingSuperFields {
        let mut control = PendingSuperFields::default();
        let mut add = |field: Option<SuperField>, fields: &mut SmallVec<[SuperField; 2]>| {
            let Some(field) = field.filter(|field| field.bits() <= room) else { return false };
            room -= field.bits();
            fields.push(field);
            true
        };
        control.move_ack = add(self.receiver.move_ack(), &mut control.fields);
        control.move_request = add(self.sender.move_request(), &mut control.fields);
        control.window = add(self.receiver.window_field(), &mut control.fields);
        control
    }

    /// Returns `true` if `draft` fits behind the last SDU of the PDU that was chosen.
    fn fits_behind(&self, choice: Option<Choice>, draft: &Draft) -> bool {
        let config = &self.common.config;
        let whole = draft.report.as_ref().is_none_or(StatusPart::is_last);
        config.piggyback
            && whole
            && choice.is_some_and(|choice| {
                let left = self.sender.left(choice, &self.common);
                draft.bits() <= config.format.piggyback_bits(left)
            })
    }

    /// Turns a draft into a STATUS, which is sent now.
    fn commit(&mut self, now: Time, draft: Draft) -> Status {
        let Draft { control, report } = draft;
        if control.move_ack {
            self.receiver.on_move_ack_sent();
        }
        if control.move_request {
            self.sender.on_move_request_sent(now, &mut self.common);
        }
        if control.window {
            self.receiver.on_window_sent();
        }
        let mut fields = control.fields;
        if let Some(part) = report {
            self.common.counters.reports += 1;
            self.receiver.on_report_sent(now, &part, &mut self.common);
            fields.extend(part.fields);
        }
        Status { fields }
    }

    /// Acts on every timer that is due at `now`. Called early, it does nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.expire(now);
    }

    fn expire(&mut self, now: Time) {
        while let Some((timer, due)) = self.common.expire(now) {
            match timer {
                Timer::Reset => self.repeat_reset(),
                Timer::StatusPeriodic | Timer::StatusProhibit | Timer::Epc => {
                    self.receiver.on_timer(timer, due, now, &mut self.common);
                }
                _ => self.sender.on_timer(timer, due, now, &mut self.common),
            }
            self.begin_reset_if_wanted();
        }
    }

    /// Returns the time at which the entity wants to be woken, and the timer that causes it (TS 25.322 section 9.5).
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.common.timers().next()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event<P>> {
        self.common.events.pop_front()
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &Counters {
        &self.common.counters
    }
}

/// Checks that a super field is within its ranges. The codec lets no other pass.
fn check_field(field: &SuperField) -> Result<(), Reject> {
    let makes_sense = match field {
        SuperField::List(pairs) => {
            (1..=15).contains(&pairs.len()) && pairs.iter().all(|&(_, more)| more <= 15)
        }
        SuperField::Bitmap(bitmap) => (1..=16).contains(&bitmap.octets.len()),
        SuperField::RelativeList(list) => list.is_valid(),
        SuperField::MoveWindow(field) => {
            let listed = if field.beyond_window { 1..=1 } else { 1..=15 };
            listed.contains(&field.sns.len()) && field.n_length <= 15
        }
        _ => true,
    };
    if makes_sense { Ok(()) } else { Err(Reject::InvalidField) }
}

impl Draft {
    fn bits(&self) -> usize {
        let control: usize = self.control.fields.iter().map(SuperField::bits).sum();
        STATUS_HEADER_BITS + control + self.report.as_ref().map_or(0, StatusPart::bits)
    }
}
