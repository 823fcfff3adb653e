//! Announcements, and the start of data (draft §11.1).

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};

use super::lists::Listing;
use super::members::{Member, MemberState};
use super::{Phase, Sender, Timer, early};
use crate::config::{Group, Pace};
use crate::event::SenderOutcome;
use crate::message::{Announce, AnnounceOptions, Body, ClientId, GroupModel, Message};
use crate::proof::{Proof, commitment, grant, terms};

/// Time from the first announcement within which receivers that were complete in an earlier run can confirm that they
/// still are.
const CONFIRM_WAIT: Span = Span::from_secs(10);

/// Time for which a new address of the server is announced as often as a new transmission.
const MOVE_TIME: Span = Span::from_secs(15);

impl Sender {
    /// Begins to announce.
    pub fn open(&mut self, now: Time) {
        if self.phase != Phase::Idle {
            return;
        }
        self.phase = Phase::Announcing;
        self.timers.set(Timer::AnnounceLimit, now + self.config.announce_limit);
        if let Some(after) = self.config.start.after.filter(|_| !self.begins_with_first()) {
            self.timers.set(Timer::StartAfter, now + after);
        }
        self.expect_latecomers(now);
        self.timers.set(Timer::Remembered, now + CONFIRM_WAIT);
        self.begin_turns(now);
        self.announce(now);
        self.begin_early(now);
    }

    /// Records that `client` was complete in an earlier run of the same transfer, so that data begins without waiting
    /// for it. Only the receiver itself can tell that it still is.
    pub fn remember(&mut self, client: ClientId) {
        self.members.remember(client);
    }

    /// Starts data with the registered receivers, on the owner's demand. Without any, the sender continues to announce.
    pub fn start(&mut self, now: Time) {
        if self.phase == Phase::Announcing && (self.accepted() > 0 || !self.has_members()) {
            self.begin_join(now);
        }
    }

    /// Records `datagrams` with `octets` in all that left beside the engine's own. They count against its rate from the
    /// next block on.
    pub fn spend(&mut self, datagrams: u64, octets: u64) {
        self.pacer.owe(self.pacer.span_beside(datagrams, octets));
        self.stats.datagrams += datagrams;
        self.stats.bytes += octets;
    }

    /// Like [`spend`](Self::spend), for datagrams that have just left: the following ones wait for them.
    pub fn spend_at_once(&mut self, datagrams: u64, octets: u64) {
        self.pacer.charge(self.pacer.span_beside(datagrams, octets));
        self.stats.datagrams += datagrams;
        self.stats.bytes += octets;
    }

    /// Sends from `server` from now on, because the previous address is gone. Members keep their states, and learn of
    /// the change by the announcements that follow soon. Several are sent, because receivers trust the first only once
    /// the old address is silent.
    pub fn moved(&mut self, now: Time, server: SocketAddr) {
        if self.config.response == self.config.server {
            self.config.response = server;
        }
        self.config.server = server;
        self.moved_until = now + MOVE_TIME;
        self.list_soon();
        self.announce(now);
    }

    /// Sends an announcement, split if its host list is long, and sets the timer for the next.
    pub(super) fn announce(&mut self, now: Time) {
        let (first, interval) = match self.phase {
            Phase::Announcing if self.lists_in_short() => {
                (self.announced == 0, self.config.announce_interval.min(self.late_interval()))
            }
            Phase::Announcing => (self.announced == 0, self.config.announce_interval),
            Phase::Joining | Phase::Sending | Phase::Waiting
                if self.is_joined_often(now) && !self.by_turns() =>
            {
                (false, self.config.announce_interval)
            }
            Phase::Joining | Phase::Sending | Phase::Waiting => (false, self.late_interval()),
            _ => return,
        };
        // The second follows so soon that the measurement of the first stays valid.
        self.only_announced_at =
            if first { Some(now) } else { self.only_announced_at.filter(|_| self.announced == 1) };
        self.announced += 1;
        self.announced_at.get_or_insert(now);
        let listings = self.listings(now).into_iter();
        let pieces: Vec<Body> =
            listings.map(|list| Body::Announce(self.announcement(now, list).into())).collect();
        // A receiver that misses both bursts misses the data behind them too.
        let copies = if self.announced <= 2 { self.first_copies(&pieces) } else { 1 };
        for piece in pieces.iter().cycle().take(copies * pieces.len()) {
            self.queue(piece.clone(), self.config.public);
        }
        // Once data runs, announcements are for receivers that come late or missed their confirmation.
        let moved = now < self.moved_until;
        if self.phase == Phase::Announcing || self.config.late_entry || moved || self.unconfirmed() {
            // A receiver that misses the first announcement holds everyone up for a whole interval, so it is soon
            // repeated.
            let wait = match (first, copies) {
                (true, 2..) => early::BURST_PAUSE,
                _ if self.is_first_of_sets() => early::BURST_PAUSE.max(self.set_span()),
                (true, _) | (false, 2..) => interval / 10,
                (false, _) => interval,
            };
            self.timers.set(Timer::Announce, now + wait);
        }
    }

    /// Returns `true` if many receivers may need the next announcement: the sender has just moved, or an open group has
    /// just begun.
    fn is_joined_often(&self, now: Time) -> bool {
        let open = matches!(self.config.group, Group::OpenLimited { .. });
        now < self.moved_until || (open && self.awaits_latecomers())
    }

    /// Returns the number of times that each confirmation is sent. Receivers that take turns ask for a lost one.
    pub(super) fn confirmations(&self) -> u32 {
        if self.by_turns() { 1 } else { self.config.repeats }
    }

    fn unconfirmed(&self) -> bool {
        let repeats = self.confirmations();
        self.members.values().any(|m| m.is_active() && m.confirmations < repeats)
    }

    pub(super) fn announcement(&self, now: Time, list: Listing) -> Announce {
        let seconds = |span: Span| u32::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
        let left = match self.phase {
            Phase::Announcing => self.timers.due(Timer::AnnounceLimit).since(now),
            _ => Span::ZERO,
        };
        Announce {
            server: self.config.server,
            response: self.config.response,
            private: self.config.private.ip(),
            announce_duration_s: seconds(left),
            options: AnnounceOptions {
                model: self.model(),
                stay_in_group: self.config.private == self.config.public,
                restart: self.progress.restart,
                overwrite: true,
                late_entry: self.config.late_entry,
            },
            application: self.config.application.clone(),
            block_size: self.geometry.block_size(),
            data_rate_bps: match self.config.pace {
                Pace::Rate { rate, .. } => u32::try_from(rate.as_bps()).unwrap_or(u32::MAX),
                Pace::Window { .. } => u32::MAX,
            },
            product_name: self.config.product.name.clone(),
            transfer_duration_s: seconds(self.config.transfer_limit).max(1),
            dtu_size: u32::from(self.geometry.segment_size()),
            product_size: self.geometry.size(),
            error_threshold: None,
            user_data: None,
            hosts: list.hosts,
            host_set: list.set,
            backoff_window_ms: (!self.config.backoff_window.is_zero())
                .then(|| u32::try_from(self.config.backoff_window.as_millis()).unwrap_or(u32::MAX)),
            product_id: Some(self.config.product.id),
            parity_symbols: (self.config.parity_symbols > 0).then_some(self.config.parity_symbols),
            turn: self.announced_turn(now),
            commitment: self.config.secret.map(|secret| {
                let transmission = self.config.transmission;
                commitment(transmission, secret.end_key(transmission))
            }),
        }
    }

    /// Returns the proof for a receiver that registered with `nonce`: the token is from this sender, and the
    /// announcement that the receiver knows is too.
    pub(super) fn grant_proof(&self, nonce: Proof) -> Proof {
        grant(nonce, terms(self.config.transmission, &self.announcement(Time::ZERO, Listing::default())))
    }

    pub(super) fn accepted(&self) -> u32 {
        self.members.active()
    }

    /// Advances the next announcement, which carries the confirmation, once data runs.
    pub(super) fn confirm_soon(&mut self, now: Time) {
        // Where receivers take turns, many register, and none of them waits for its confirmation.
        if self.phase != Phase::Announcing && !self.by_turns() {
            let soon = now + self.config.announce_interval / 4;
            let due = self.timers.due(Timer::Announce);
            self.timers.set(Timer::Announce, due.min(soon));
        }
    }

    /// Handles a message of another transmission. If its data flows on this sender's private group during the
    /// announcement, and no receiver has registered, the group is taken.
    pub(super) fn foreign(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let ours = self.config.private;
        if from.destination == ours && matches!(message.body, Body::Data(_) | Body::StatusRequest(_)) {
            // It will show later whose group it is.
            self.hold_early();
        }
        if from.destination == ours
            && ours.ip().is_multicast()
            && self.phase == Phase::Announcing
            && self.neighbourhood.hear(now, from.source, message)
            && self.members.active() == 0
        {
            self.end(SenderOutcome::GroupInUse { by: from.source, transmission: message.transmission });
        }
        Err(Reject::OtherSession)
    }

    pub(super) fn try_start(&mut self, now: Time) {
        if self.phase != Phase::Announcing {
            return;
        }
        let late = self.may_start();
        if let (Group::OpenLimited { limit }, false) = (&self.config.group, late) {
            // If too few receivers are known at all, the number of active ones does not matter.
            let wanted = self.config.start.receivers.unwrap_or(*limit).min(*limit);
            if self.members.len() < wanted as usize {
                return;
            }
        }
        let accepted = self.accepted();
        let answered = self.members.awaited() == 0;
        let full = match self.config.group {
            Group::Closed(_) => answered,
            Group::OpenLimited { limit } => accepted >= limit,
            Group::OpenUnlimited => false,
        };
        let enough = self.config.start.receivers.is_some_and(|n| accepted >= n);
        if self.model() == GroupModel::Closed && accepted == 0 && self.all_declined() {
            self.end(SenderOutcome::NoReceivers);
        } else if accepted == 0 && (answered || late) && self.somebody_is_done() {
            // The receivers that answered were complete already.
            if !self.awaits_remembered() && !self.awaits_latecomers() && !self.by_turns() {
                self.begin_completing(now);
            }
        } else if (accepted > 0 && (full || enough || late)) || (!self.has_members() && late) {
            self.begin_join(now);
        }
    }

    /// Returns `true` if all invited receivers have declined, and have proved their identity.
    fn all_declined(&self) -> bool {
        let believed = |m: &Member| m.validated || self.config.secret.is_none();
        self.members.values().all(|m| matches!(m.state, MemberState::Declined(_)) && believed(m))
    }

    pub(super) fn announce_limit(&mut self, now: Time) {
        if self.phase != Phase::Announcing {
            return;
        }
        if self.accepted() > 0 || !self.has_members() {
            self.begin_join(now);
        } else if self.somebody_is_done() {
            self.begin_completing(now);
        } else {
            self.end(SenderOutcome::NoReceivers);
        }
    }

    pub(super) fn somebody_is_done(&self) -> bool {
        self.members.values().any(|m| m.state == MemberState::Done)
    }

    /// Returns `true` if a receiver that was complete in an earlier run has yet to confirm it.
    pub(super) fn awaits_remembered(&self) -> bool {
        self.members.remembered() > 0 && self.timers.is_set(Timer::Remembered)
    }

    /// Sends the last announcement before data, which confirms the receivers that have just registered.
    fn begin_join(&mut self, now: Time) {
        self.phase = Phase::Joining;
        self.timers.stop(Timer::AnnounceLimit);
        self.timers.stop(Timer::StartAfter);
        for member in self.members.values_mut().filter(|m| m.state == MemberState::Invited) {
            // The receiver may still come late; until then it is not waited for.
            member.confirmations = 0;
        }
        let mut active = self.members.values().filter(|m| m.is_active()).peekable();
        let listed = self.can_list();
        let holds = |member: &Member| member.held > 0 || (member.compares && listed);
        let restart = active.peek().is_some() && active.all(holds);
        self.progress.restart = restart;
        self.announce(now);
        if self.config.join_delay.is_zero() {
            self.begin_data(now);
        } else {
            self.timers.set(Timer::Join, now + self.config.join_delay);
        }
    }
}
