//! Announcements, registrations, and the start of data (draft §11.1).

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};

use super::members::{self, Member, MemberState};
use super::{Phase, Sender, Timer};
use crate::config::{Group, Pace};
use crate::event::{SenderEvent, SenderOutcome};
use crate::message::{
    Abort, Announce, AnnounceOptions, Body, ClientId, DeclineReason, Echo, GroupModel, Message, Registration,
    Standing, cancel,
};
use crate::wire;

impl Sender {
    /// Begins to announce.
    pub fn open(&mut self, now: Time) {
        if self.phase != Phase::Idle {
            return;
        }
        self.phase = Phase::Announcing;
        self.timers.set(Timer::AnnounceLimit as usize, now + self.config.announce_limit);
        if let Some(after) = self.config.start.after {
            self.timers.set(Timer::StartAfter as usize, now + after);
        }
        self.announce(now);
    }

    /// Notes, before [`open`](Self::open), that `client` has everything from an earlier run of the same transfer:
    /// it is not waited for.
    pub fn mark_done(&mut self, client: ClientId) {
        if self.phase != Phase::Idle {
            return;
        }
        let repeats = self.config.repeats;
        let fresh = || Member::new(alloc::format!("{client}"), MemberState::Done);
        let member = self.members.entry(client).or_insert_with(fresh);
        // Nothing is to be confirmed to it: it knows.
        (member.state, member.confirmations) = (MemberState::Done, repeats);
    }

    /// Starts data with whoever has registered, on the owner's demand. Without anyone it goes on announcing.
    pub fn start(&mut self, now: Time) {
        if self.phase == Phase::Announcing && (self.accepted() > 0 || !self.has_members()) {
            self.begin_join(now);
        }
    }

    /// Sends an announcement, split where its host list is long, and sets the timer for the next.
    pub(super) fn announce(&mut self, now: Time) {
        let (first, interval) = match self.phase {
            Phase::Announcing => (self.announced == 0, self.config.announce_interval),
            Phase::Joining | Phase::Sending | Phase::Waiting => (false, self.config.late_announce_interval),
            _ => return,
        };
        // The second follows so soon that it leaves the measure of the first as good as it was.
        self.first_announce =
            if first { Some(now) } else { self.first_announce.filter(|_| self.announced == 1) };
        self.announced += 1;
        for hosts in self.host_lists() {
            let announce = self.announcement(now, hosts);
            self.queue(Body::Announce(announce.into()), self.config.public);
        }
        // Once data runs, announcements are for those who come late or missed their confirmation.
        if self.phase == Phase::Announcing || self.config.late_entry || self.unconfirmed() {
            // Whoever misses the first announcement holds everyone up for a whole interval, so it is soon repeated.
            let wait = if first { interval / 10 } else { interval };
            self.timers.set(Timer::Announce as usize, now + wait);
        }
    }

    fn unconfirmed(&self) -> bool {
        self.members.values().any(|m| m.is_active() && m.confirmations < self.config.repeats)
    }

    /// The host list in pieces that fit a datagram; one piece, possibly absent, if it is short.
    fn host_lists(&mut self) -> Vec<Option<Vec<(ClientId, Standing)>>> {
        let repeats = self.config.repeats;
        let closed = matches!(self.config.group, Group::Closed(_));
        let mut records = Vec::new();
        for (&id, member) in &mut self.members {
            let standing = match member.state {
                MemberState::Invited => Standing::Pending,
                MemberState::Declined(reason) => Standing::Declined(reason),
                // A confirmation is kept for a few announcements before it is pruned (draft §1.1).
                _ if member.confirmations >= repeats => {
                    if !closed || member.state == MemberState::Done {
                        continue;
                    }
                    // Who is not in the list of a closed group stays out (draft §6): a receiver that is started
                    // again, or comes back, must find itself there. One that takes part passes over it.
                    Standing::Pending
                }
                _ => {
                    member.confirmations += 1;
                    Standing::Accepted
                }
            };
            records.push((id, standing));
        }
        if records.is_empty() {
            return alloc::vec![None];
        }
        let fixed = wire::encoded_len(
            &Message {
                transmission: 0,
                body: Body::Announce(self.announcement(Time::ZERO, Some(Vec::new())).into()),
            },
            0,
        );
        let room = (self.config.datagram.saturating_sub(fixed) / 8).max(1);
        records.chunks(room).map(|piece| Some(piece.to_vec())).collect()
    }

    fn announcement(&self, now: Time, hosts: Option<Vec<(ClientId, Standing)>>) -> Announce {
        let seconds = |span: Span| u32::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
        let left = match self.phase {
            Phase::Announcing => self.timers.due(Timer::AnnounceLimit as usize).since(now),
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
            dtu_size: u32::from(self.geometry.dtu_size()),
            product_size: self.geometry.size(),
            error_threshold: None,
            user_data: None,
            hosts,
            backoff_window_ms: (!self.config.backoff_window.is_zero())
                .then(|| u32::try_from(self.config.backoff_window.as_millis()).unwrap_or(u32::MAX)),
            product_id: Some(self.config.product.id),
            parity_symbols: (self.config.parity_symbols > 0).then_some(self.config.parity_symbols),
        }
    }

    fn accepted(&self) -> u32 {
        self.members.values().filter(|member| member.is_active()).count() as u32
    }

    pub(super) fn registration(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Registration,
    ) -> Result<(), Reject> {
        if m.server != self.config.server {
            return Err(Reject::OtherSession);
        }
        if !self.has_members() || matches!(self.phase, Phase::Completing | Phase::Aborting) {
            return Err(Reject::Unexpected);
        }
        let mut result = Ok(());
        for entry in &m.entries {
            let one = match entry.response {
                Ok(()) => self.register(now, source, entry.client, m),
                Err(reason) => self.decline(source, entry.client, reason, m),
            };
            result = result.and(one);
        }
        self.try_start(now);
        result
    }

    fn decline(
        &mut self,
        source: SocketAddr,
        client: ClientId,
        reason: DeclineReason,
        m: &Registration,
    ) -> Result<(), Reject> {
        if let (false, Group::OpenLimited { limit }) =
            (self.members.contains_key(&client), &self.config.group)
        {
            // Nobody waits for it, but the user sees why it stays out.
            if self.members.len() >= *limit as usize {
                return Err(Reject::Limit);
            }
            let label = members::label(client, m.name.as_ref(), source);
            self.members.insert(client, Member::new(label, MemberState::Invited));
        }
        let member = self.members.get_mut(&client).ok_or(Reject::Stranger)?;
        // Once it has registered, only the host that did may take that back.
        if member.address.is_some_and(|address| address.ip() != source.ip()) {
            return Err(Reject::Stranger);
        }
        match member.state {
            MemberState::Invited | MemberState::Active => {
                member.state = MemberState::Declined(reason);
                self.events.push_back(SenderEvent::Declined { client, reason });
                Ok(())
            }
            _ => Err(Reject::Duplicate),
        }
    }

    fn register(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        m: &Registration,
    ) -> Result<(), Reject> {
        let late = !matches!(self.phase, Phase::Announcing);
        let Some(member) = self.members.get_mut(&client) else {
            return self.register_new(now, source, client, m);
        };
        if late && !self.config.late_entry && !member.is_active() {
            return Err(Reject::Unexpected);
        }
        match member.address {
            // Before it first registered, or the same receiver again: it has missed its confirmation.
            None => {}
            Some(known) if known == source => {
                member.confirmations = 0;
                if member.is_active() || member.state == MemberState::Done {
                    self.confirm_soon(now);
                    return Ok(());
                }
            }
            Some(known) => {
                if member.name != m.name || known.ip() != source.ip() && m.name.is_none() {
                    return self.refuse(source, client, true);
                }
                if member.is_active() || member.state == MemberState::Done {
                    return self.probe(now, source, client, m);
                }
            }
        }
        self.admit(now, source, client, m);
        Ok(())
    }

    fn register_new(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        m: &Registration,
    ) -> Result<(), Reject> {
        match self.config.group {
            Group::Closed(_) => self.refuse(source, client, false),
            // A registration beyond the limit is simply passed over (draft §12.2.1).
            Group::OpenLimited { limit } if self.members.len() >= limit as usize => Err(Reject::Limit),
            _ if self.phase != Phase::Announcing && !self.config.late_entry => Err(Reject::Unexpected),
            _ => {
                let label = members::label(client, m.name.as_ref(), source);
                self.members.insert(client, Member::new(label, MemberState::Active));
                self.admit(now, source, client, m);
                Ok(())
            }
        }
    }

    fn admit(&mut self, now: Time, source: SocketAddr, client: ClientId, m: &Registration) {
        if let Some(announced) = self.first_announce {
            self.sample_round_trip(announced, now);
        }
        let newest = self.flight.newest();
        let Some(member) = self.members.get_mut(&client) else { return };
        member.address = Some(source);
        if matches!(self.config.group, Group::OpenLimited { .. }) {
            member.label = members::label(client, m.name.as_ref(), source);
        }
        member.last_heard = now;
        member.name.clone_from(&m.name);
        member.receive_buffer = m.receive_buffer_bytes;
        member.held = m.segments_held.unwrap_or(0).min(self.geometry.segments());
        member.state = MemberState::Active;
        member.contender = None;
        member.missing.clear();
        (member.confirmations, member.silent_rounds, member.heard, member.done_at) = (0, 0, true, None);
        // What left before it came is not in its window.
        member.acked = newest;
        let held = member.held;
        self.events.push_back(SenderEvent::Registered { client, address: source, held });
        self.confirm_soon(now);
    }

    /// Lets the next announcement, which carries the confirmation, come early once data runs.
    fn confirm_soon(&mut self, now: Time) {
        if self.phase != Phase::Announcing {
            let soon = now + self.config.announce_interval / 4;
            let due = self.timers.due(Timer::Announce as usize);
            self.timers.set(Timer::Announce as usize, due.min(soon));
        }
    }

    fn refuse(&mut self, source: SocketAddr, client: ClientId, collision: bool) -> Result<(), Reject> {
        let (reason, text) = if collision {
            (
                cancel::ABORT_COLLISION,
                "another receiver has this name or address; start this one with another --name",
            )
        } else {
            (cancel::ABORT_NOT_INVITED, "the sender's list of receivers does not have this one")
        };
        let abort = Abort { reason, hosts: Some(alloc::vec![client]), text: Some(text.into()) };
        self.queue(Body::Abort(abort), source);
        self.events.push_back(SenderEvent::Refused { client, address: source, collision });
        Err(if collision { Reject::Collision } else { Reject::Stranger })
    }

    /// Asks a member's old address whether it is still there before a new address takes its place: a receiver
    /// that was started again has a new port, and so has a second receiver with the same name.
    fn probe(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        m: &Registration,
    ) -> Result<(), Reject> {
        let wait = self.round_trip() * 2 + Span::from_millis(200);
        let Some(member) = self.members.get_mut(&client) else { return Err(Reject::Stranger) };
        if member.contender.as_ref().is_some_and(|(contender, _)| *contender != source) {
            return Err(Reject::Collision);
        }
        let first = member.contender.is_none();
        member.contender = Some((source, m.clone()));
        if let (true, Some(address)) = (first, member.address) {
            for _ in 0..2 {
                self.queue(Body::Echo(Echo { sequence: client.0, data: None, hosts: None }), address);
            }
            self.timers.set(Timer::Probe as usize, now + wait);
        }
        Ok(())
    }

    /// Nobody answered at the old addresses: the new ones take over.
    pub(super) fn probe_expired(&mut self, now: Time) {
        let contended = self.members.iter_mut().filter_map(|(&id, m)| m.contender.take().map(|c| (id, c)));
        let contended: Vec<_> = contended.collect();
        for (client, (source, registration)) in contended {
            self.admit(now, source, client, &registration);
        }
    }

    pub(super) fn echo_response(&mut self, source: SocketAddr, sequence: u32) -> Result<(), Reject> {
        let client = ClientId(sequence);
        let member = self.members.get_mut(&client).ok_or(Reject::Stranger)?;
        if member.address != Some(source) {
            return Err(Reject::Stranger);
        }
        let (contender, _) = member.contender.take().ok_or(Reject::Unexpected)?;
        member.heard = true;
        self.refuse(contender, client, true).or(Ok(()))
    }

    /// Another transmission's message: on our private group while we announce, it means that the group is taken.
    pub(super) fn foreign(&mut self, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let ours = self.config.private;
        let taken = match &message.body {
            Body::Data(_) | Body::StatusRequest(_) => from.destination == ours,
            // Of two that begin at once, the one with the smaller identity stays.
            Body::Announce(a) => {
                let theirs = (a.server, message.transmission);
                let running = a.announce_duration_s == 0;
                SocketAddr::new(a.private, from.destination.port()) == ours
                    && (running || theirs < (self.config.server, self.config.transmission))
            }
            _ => false,
        };
        if taken && self.phase == Phase::Announcing && ours.ip().is_multicast() {
            self.end(SenderOutcome::GroupInUse { by: from.source });
        }
        Err(Reject::OtherSession)
    }

    pub(super) fn try_start(&mut self, now: Time) {
        if self.phase != Phase::Announcing {
            return;
        }
        // Timer::StartAfter is stopped once it has expired.
        let late = self.config.start.after.is_some() && !self.timers.is_set(Timer::StartAfter as usize);
        if let (Group::OpenLimited { limit }, false) = (&self.config.group, late) {
            // Where too few are known at all, counting those who take part tells nothing.
            let wanted = self.config.start.receivers.unwrap_or(*limit).min(*limit);
            if self.members.len() < wanted as usize {
                return;
            }
        }
        let accepted = self.accepted();
        let answered = self.members.values().all(|member| member.state != MemberState::Invited);
        let full = match self.config.group {
            Group::Closed(_) => answered,
            Group::OpenLimited { limit } => accepted >= limit,
            Group::OpenUnlimited => false,
        };
        let enough = self.config.start.receivers.is_some_and(|n| accepted >= n);
        let done = self.members.values().any(|member| member.state == MemberState::Done);
        if done && accepted == 0 && (full || late) {
            // Those who answered had everything already.
            self.begin_completing(now);
        } else if self.model() == GroupModel::Closed && answered && accepted == 0 {
            self.end(SenderOutcome::NoReceivers);
        } else if (accepted > 0 && (full || enough || late)) || (!self.has_members() && late) {
            self.begin_join(now);
        }
    }

    pub(super) fn announce_limit(&mut self, now: Time) {
        if self.phase != Phase::Announcing {
            return;
        }
        if self.accepted() > 0 || !self.has_members() {
            self.begin_join(now);
        } else if self.members.values().any(|member| member.state == MemberState::Done) {
            self.begin_completing(now);
        } else {
            self.end(SenderOutcome::NoReceivers);
        }
    }

    /// The last announcement before data: it confirms those who have just registered.
    fn begin_join(&mut self, now: Time) {
        self.phase = Phase::Joining;
        self.timers.stop(Timer::AnnounceLimit as usize);
        self.timers.stop(Timer::StartAfter as usize);
        for member in self.members.values_mut().filter(|m| m.state == MemberState::Invited) {
            // It may still come late; until then it is not waited for.
            member.confirmations = 0;
        }
        let mut active = self.members.values().filter(|m| m.is_active()).peekable();
        let restart = active.peek().is_some() && active.all(|member| member.held > 0);
        self.progress.restart = restart;
        self.announce(now);
        if self.config.join_delay.is_zero() {
            self.begin_data(now);
        } else {
            self.timers.set(Timer::Join as usize, now + self.config.join_delay);
        }
    }
}
