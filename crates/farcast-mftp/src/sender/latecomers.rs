//! Receivers that register once data runs, and the time that they have to come.
//!
//! If data begins with the first receivers, the others find it running: their head is repaired like any other loss, and
//! they are asked about it by name. The sender does not end before each of them had its time to come.

use farcast_core::engine::Transmit;
use farcast_core::{Run, Span, Time};

use super::members::{Member, MemberState};
use super::{OUTAGE_RETRY, Phase, Sender, Timer, all_blocks};
use crate::config::{Group, PassWait};
use crate::message::{Body, ClientId, Data, DataKind, Message, StatusRequest, StatusType};
use crate::wire;

/// Margin of the wait for further registrations. If data flows meanwhile, the wait is a round trip and this, from the
/// first registration. If not, it is as long as registrations have been coming, and this, from the last one.
const GRACE: Span = Span::from_millis(100);
/// Maximum time beyond a round trip for which registrations that go on coming hold data.
const HOLD: Span = Span::from_secs(1);
/// Time beyond two round trips for which an open group stays open after a receiver has registered.
const MORE: Span = Span::from_secs(1);
/// Divisor of `silence`. The result is the time after the last registration for which absent listed receivers are still
/// waited for. The return may carry registrations one after the other for minutes.
const FOLLOWS: u64 = 4;
/// Number of announcements after the turns from which receivers learn that the turns are over.
const UNTOLD: u64 = 3;
/// Maximum number of newcomers that are asked by name.
const FEW: usize = 16;

/// Time for which data waits for other receivers after the first registration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starting {
    /// Time of the first registration.
    first: Time,
    /// Time at which data begins, even if registrations go on coming.
    latest: Time,
}

impl Sender {
    /// Returns `true` if data begins with the first receivers. Where receivers do not register, none is the first.
    pub(super) fn begins_with_first(&self) -> bool {
        self.config.start.with_first && self.has_members()
    }

    /// Starts the time within which receivers may come.
    pub(super) fn expect_latecomers(&mut self, now: Time) {
        let come = match self.config.group {
            Group::Closed(_) => self.config.silence,
            Group::OpenLimited { .. } => self.config.start.after.unwrap_or(Span::ZERO),
            Group::OpenUnlimited => Span::ZERO,
        };
        if self.begins_with_first() && self.config.late_entry && !come.is_zero() {
            self.timers.set(Timer::Latecomers, now + come);
        }
    }

    /// Returns `true` if receivers that have not registered may still come.
    pub(super) fn awaits_latecomers(&self) -> bool {
        let room = match self.config.group {
            Group::Closed(_) => self.members.awaited() > 0,
            Group::OpenLimited { limit } => self.members.len() < limit as usize,
            Group::OpenUnlimited => false,
        };
        room && self.timers.is_set(Timer::Latecomers)
    }

    /// Ends the time to come of those that have not registered. In a closed group the time is longer while others come.
    pub(super) fn latecomers_expired(&mut self, now: Time) {
        let until = self.joined_at + self.config.silence / FOLLOWS;
        let closed = matches!(self.config.group, Group::Closed(_));
        if closed && self.members.awaited() > 0 && now < until {
            return self.timers.set(Timer::Latecomers, until);
        }
        self.one_less(now);
    }

    /// Returns the listed receivers that have not registered and may still come.
    pub fn awaited(&self) -> impl Iterator<Item = &Member> {
        let absent = |m: &&Member| m.state == MemberState::Invited && !m.remembered;
        self.members.values().filter(absent).filter(|_| self.config.late_entry)
    }

    /// Returns `true` if all receivers that have come are served, and only others are waited for.
    pub fn is_resting(&self) -> bool {
        self.phase == Phase::Waiting && self.has_only_latecomers()
    }

    /// Returns `true` if all receivers that have come are served, and others may still come. A receiver that was given
    /// up comes back only if it is asked.
    pub(super) fn has_only_latecomers(&self) -> bool {
        let lost = |m: &Member| matches!(m.state, MemberState::Lost(_));
        !self.by_turns()
            && self.members.active() == 0
            && self.awaits_latecomers()
            && !self.members.values().any(lost)
    }

    /// Sends only announcements until a receiver comes or may no longer come. A receiver whose registration is unproved
    /// gets a status request, because its answer carries a proof.
    pub(super) fn rest(&mut self, now: Time) {
        self.schedule.clear();
        self.progress.drop_runs();
        self.wait_for_answers(now);
        self.timers.stop(Timer::StatusRetry);
        if self.members.values().any(Member::is_pending) {
            self.ask_all(now);
            self.expect_proof(now);
        }
    }

    /// Asks for a proof of a registration soon, if the sender rests: the token goes out and comes back meanwhile.
    pub(super) fn expect_proof(&mut self, now: Time) {
        if self.phase == Phase::Waiting && !self.timers.is_set(Timer::StatusRetry) {
            self.timers.set(Timer::StatusRetry, now + (self.round_trip() * 2).max(OUTAGE_RETRY));
        }
    }

    /// Returns `true` if the time to start with the registered receivers has come.
    pub(super) fn may_start(&self) -> bool {
        // Timer::StartAfter is stopped once it has expired.
        let timed = if self.begins_with_first() {
            self.accepted() > 0 || self.somebody_is_done()
        } else {
            self.config.start.after.is_some()
        };
        timed && !self.timers.is_set(Timer::StartAfter)
    }

    /// Keeps an open group open for a while after a receiver has registered. Other receivers whose registrations were
    /// lost can then register again.
    fn stay_open(&mut self, now: Time) {
        let open = self.begins_with_first() && matches!(self.config.group, Group::OpenLimited { .. });
        let until = now + self.round_trip() * 2 + MORE;
        let due = self.timers.due(Timer::Latecomers);
        if open && self.config.late_entry && (due < until || !self.timers.is_set(Timer::Latecomers)) {
            self.timers.set(Timer::Latecomers, until);
        }
    }

    /// Keeps an open group open after the turns, until receivers have heard that they may speak at any time.
    pub(super) fn await_untold(&mut self, now: Time) {
        if matches!(self.config.group, Group::OpenLimited { .. }) && self.config.late_entry {
            let until = now + self.config.announce_interval * UNTOLD + self.round_trip() * 2 + MORE;
            if !self.timers.is_set(Timer::Latecomers) || self.timers.due(Timer::Latecomers) < until {
                self.timers.set(Timer::Latecomers, until);
            }
        }
    }

    /// Handles the registration of `client`, which is a member now.
    pub(super) fn joined(&mut self, now: Time, client: ClientId) {
        let shown = self.members.get(&client).is_some_and(|m| m.validated || self.config.secret.is_none());
        if shown {
            self.stay_open(now);
        }
        match self.phase {
            Phase::Announcing if self.begins_with_first() => self.start_soon(now),
            // Who takes turns is asked with the others.
            Phase::Sending | Phase::Waiting if self.by_turns() => {}
            Phase::Sending if self.newcomers.len() < FEW && !self.newcomers.contains(&client) => {
                self.newcomers.push(client);
            }
            // The sender rests. Nothing but this receiver's answer is waited for.
            Phase::Waiting if !self.timers.is_set(Timer::StatusRetry) => {
                let prompt = self.config.pass_wait == PassWait::Draft;
                let wait = if prompt { Span::ZERO } else { self.status_retry() };
                self.timers.set(Timer::StatusRetry, now + wait);
            }
            _ => {}
        }
    }

    /// Starts data formally soon, because a receiver has registered. The others that are present answer the same
    /// announcement, so their registrations follow closely. One that is farther away finds data running.
    fn start_soon(&mut self, now: Time) {
        let is_first = !self.timers.is_set(Timer::StartAfter);
        let waits = self.round_trip() + self.config.backoff_window;
        // A receiver that cannot join later has the whole time.
        let closes = self.is_early_set() || !self.config.late_entry;
        if closes && !is_first {
            return;
        }
        let grace = if self.is_early_set() { GRACE } else { HOLD };
        if is_first {
            self.starting = Starting { first: now, latest: now + waits + grace };
        }
        let Starting { first, latest } = self.starting;
        let quiet = now.max(first + self.config.backoff_window) + now.since(first) + GRACE;
        self.timers.set(Timer::StartAfter, if closes { latest } else { quiet.min(latest) });
    }

    /// Asks the receivers that have just joined what they lack of the blocks before `block`, which they did not hear.
    pub(super) fn ask_newcomers(&mut self, block: u32) {
        let blocks = if self.full_pass() { Run::new(0, block) } else { Some(all_blocks(&self.geometry)) };
        let Some(blocks) = blocks.filter(|_| !self.newcomers.is_empty()) else { return };
        let hosts = Some(core::mem::take(&mut self.newcomers));
        let dtus = Run::new(0, self.geometry.block_len(0)).unwrap_or(Run::one(0));
        let (pass, status) = (self.progress.pass, StatusType::NakOnly);
        let body = Body::StatusRequest(StatusRequest { pass, blocks, dtus, status, hosts, turn: None });
        self.stats.status_requests += 1;
        self.outbox
            .push_back(Transmit::new(Message::new(self.config.transmission, body), self.config.private));
        self.send_head_again();
    }

    /// Sends the head of the product once more. Receivers that were not ready for the first data lack the head, which
    /// lists the files. Until they have it they keep other data only up to a limit.
    pub(super) fn send_head_again(&mut self) {
        let len = self.geometry.segment_size();
        let head = self.config.head_segments.min(self.geometry.block_len(0));
        let Some(dtus) = Run::new(0, head).filter(|_| self.full_pass()) else { return };
        if self.still_sent(0, self.geometry.block_len(0)).first().is_none_or(|sent| sent.count() < head) {
            return;
        }
        if let Some(pass) = self.stats.dtus_per_pass.last_mut() {
            *pass += u64::from(head);
        }
        let last_len = self.geometry.payload_len(head - 1);
        let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus, len, last_len };
        self.outbox.push_back(Transmit::new(
            Message::new(self.config.transmission, Body::Data(data)),
            self.config.private,
        ));
        self.pacer.owe(self.pacer.span(wire::data_len(len.into())) * u64::from(head - 1));
    }
}
