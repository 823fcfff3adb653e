//! What receivers answer: NAKs, ACKs, Dones and Quits (draft §11.2.1).

use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Span, Time};

use super::members::MemberState;
use super::{Phase, Sender, Timer};
use crate::config::PassWait;
use crate::event::SenderEvent;
use crate::message::{Ack, ClientId, Done, Nak, Naks, Quit};

impl Sender {
    /// The member that an answer comes from, marked as heard.
    ///
    /// A member that was given up takes part again: an outage may be longer than our patience. The host that an answer
    /// comes from must be the one that registered; its port may change on the way, so it is not compared.
    fn heard(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        server: SocketAddr,
    ) -> Result<(), Reject> {
        if server != self.config.server {
            return Err(Reject::OtherSession);
        }
        let member = self.members.get_mut(&client).ok_or(Reject::Stranger)?;
        if member.address.is_none_or(|address| address.ip() != source.ip()) {
            return Err(Reject::Stranger);
        }
        match member.state {
            MemberState::Active | MemberState::Lost => {
                member.state = MemberState::Active;
                (member.heard, member.silent_rounds, member.last_heard) = (true, 0, now);
                Ok(())
            }
            MemberState::Done => Err(Reject::Duplicate),
            _ => Err(Reject::Stranger),
        }
    }

    fn sample_answer(&mut self, now: Time, pass: u32, block: u32) {
        if let Some(request) = self.progress.last_request
            && request.pass == pass
            && request.blocks.contains(block)
        {
            self.sample_round_trip(request.at, now);
        }
    }

    pub(super) fn nak(&mut self, now: Time, source: SocketAddr, m: &Nak) -> Result<(), Reject> {
        self.check_nak(m.pass, m.block, &m.missing)?;
        if self.has_members() {
            self.heard(now, source, m.client, m.server)?;
        } else if m.server != self.config.server {
            return Err(Reject::OtherSession);
        }
        self.progress.heard = true;
        if let Some(member) = self.members.get_mut(&m.client) {
            member.naks += 1;
            // What a restart asks for was not lost: it was never sent.
            member.naked_dtus += if m.pass == 0 { 0 } else { u64::from(m.missing.count()) };
            member.missing.insert(m.block, m.missing.count());
        }
        self.sample_answer(now, m.pass, m.block);
        self.stats.naks += 1;
        self.schedule_nak(now, m.pass, m.block, &m.missing, m.parity_held.min(self.config.parity_symbols));
        Ok(())
    }

    /// Takes the NAKs of many receivers for one block that arrive at one instant as one. Where
    /// [merging](Self::may_merge) is allowed, nothing comes out otherwise than if they were
    /// [handled](farcast_core::Engine::handle) one by one.
    ///
    /// # Errors
    /// As of a single NAK; [`Reject::Unexpected`] where NAKs may not be merged.
    pub fn handle_naks(&mut self, now: Time, m: &Naks) -> Result<(), Reject> {
        let result = self.naks(now, m);
        self.rejects.note(result)
    }

    /// Whether NAKs that arrive at one instant may be merged: the group has no members to keep account of, no pass
    /// begins with the first of them, and no parity makes it matter how much each receiver needs.
    pub fn may_merge(&self) -> bool {
        !self.has_members()
            && self.config.pass_wait == PassWait::FixedTimer
            && self.config.parity_symbols == 0
    }

    fn naks(&mut self, now: Time, m: &Naks) -> Result<(), Reject> {
        if !self.may_merge() {
            return Err(Reject::Unexpected);
        }
        self.check_nak(m.pass, m.block, &m.missing)?;
        if m.server != self.config.server {
            return Err(Reject::OtherSession);
        }
        self.progress.heard = true;
        self.sample_answer(now, m.pass, m.block);
        self.stats.naks += m.count;
        self.schedule_nak(now, m.pass, m.block, &m.missing, 0);
        Ok(())
    }

    fn schedule_nak(&mut self, now: Time, pass: u32, block: u32, missing: &Bitmap, parity_held: u32) {
        let len = self.geometry.block_len(block);
        self.stats.scheduled += u64::from(self.schedule.nak(block, len, pass, missing, parity_held));
        if self.phase != Phase::Waiting {
            return;
        }
        if self.config.pass_wait == PassWait::FixedTimer {
            if self.config.nak_restarts_wait {
                self.timers.set(Timer::StatusRetry as usize, now + self.status_retry());
            }
        } else if !self.schedule.is_empty() && self.may_begin() {
            self.begin_pass(now);
        }
    }

    /// Whether the next pass may begin while some have not answered. Where answers are spread, the first would
    /// cut short the spreading of all others; where parity may replace DTUs, their needs must be known to choose.
    fn may_begin(&self) -> bool {
        let at_once = self.config.backoff_window.is_zero() && self.config.parity_symbols == 0;
        at_once || (self.has_members() && self.members.values().all(|m| !m.is_active() || m.heard))
    }

    /// Whether a NAK can be an answer to something that was asked.
    fn check_nak(&self, pass: u32, block: u32, missing: &Bitmap) -> Result<(), Reject> {
        if !matches!(self.phase, Phase::Sending | Phase::Waiting) {
            return Err(Reject::Unexpected);
        }
        let len = self.geometry.block_len(block);
        if len == 0 || pass > self.progress.pass {
            return Err(Reject::OutOfRange);
        }
        let fits = missing.len() >= len && missing.len() < len + 8;
        if !fits || missing.is_empty() || missing.next_set(len).is_some() {
            return Err(Reject::Inconsistent);
        }
        let unsent = self.full_pass() && self.phase == Phase::Sending && Some(block) > self.progress.block;
        if unsent { Err(Reject::Unexpected) } else { Ok(()) }
    }

    pub(super) fn ack(&mut self, now: Time, source: SocketAddr, m: &Ack) -> Result<(), Reject> {
        if m.pass > self.progress.pass || m.blocks.end() > self.geometry.blocks() {
            return Err(Reject::OutOfRange);
        }
        self.heard(now, source, m.client, m.server)?;
        let answered = self.progress.last_request.filter(|r| (r.pass, r.blocks) == (m.pass, m.blocks));
        if let Some(request) = answered {
            self.sample_round_trip(request.at, now);
        }
        let serial =
            answered.map(|request| request.serial).or_else(|| self.flight.serial(m.pass, m.blocks.last()));
        if let (Some(serial), Some(member)) = (serial, self.members.get_mut(&m.client)) {
            member.acked = member.acked.max(serial);
            self.progress.silent_rounds = 0;
            self.unstall();
        }
        Ok(())
    }

    pub(super) fn done(&mut self, now: Time, source: SocketAddr, m: &Done) -> Result<(), Reject> {
        let repeated = match self.heard(now, source, m.client, m.server) {
            Ok(()) => false,
            // It has missed its confirmation.
            Err(Reject::Duplicate) => true,
            Err(other) => return Err(other),
        };
        // A Done that was repeated before its confirmation could arrive does not ask for another.
        let under_way =
            repeated && self.closing.was_confirmed_within(now, self.round_trip.unwrap_or(Span::ZERO));
        let Some(member) = self.members.get_mut(&m.client) else { return Err(Reject::Stranger) };
        if !under_way {
            member.confirmations = 0;
        }
        if !repeated {
            member.state = MemberState::Done;
            member.done_at = Some(now);
            member.missing.clear();
            self.events.push_back(SenderEvent::Done { client: m.client, naked_dtus: m.naked_dtus });
        }
        self.one_less(now);
        self.confirm_done(now);
        if repeated { Err(Reject::Duplicate) } else { Ok(()) }
    }

    pub(super) fn quit(&mut self, now: Time, source: SocketAddr, m: &Quit) -> Result<(), Reject> {
        // The draft's QUIT does not say who; then the source address must.
        let client = m.client.or_else(|| {
            self.members.iter().find(|(_, member)| member.address == Some(source)).map(|(&id, _)| id)
        });
        let client = client.ok_or(Reject::Stranger)?;
        let member = self.members.get_mut(&client).filter(|m| m.is_active()).ok_or(Reject::Stranger)?;
        if member.address != Some(source) {
            return Err(Reject::Stranger);
        }
        member.state = MemberState::Quit(m.reason, m.text.clone());
        self.events.push_back(SenderEvent::Quit { client, reason: m.reason, text: m.text.clone() });
        self.one_less(now);
        Ok(())
    }

    /// A member no longer takes part: perhaps nobody is left to wait for.
    fn one_less(&mut self, now: Time) {
        self.unstall();
        if self.phase == Phase::Waiting && self.everyone_accounted() {
            self.begin_completing(now);
        }
    }
}
