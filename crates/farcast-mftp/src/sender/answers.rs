//! Answers of receivers: NAKs, ACKs, Dones and Quits (draft §11.2.1).

use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Span, Time};

use super::members::MemberState;
use super::{Phase, Sender, Timer};
use crate::config::PassWait;
use crate::event::SenderEvent;
use crate::message::{Ack, ClientId, Done, Message, Nak, Naks, Quit};

/// Evidence that a receiver takes no parity: none held of at least this many symbols of a block, this often in a row.
const REFUSED: (u32, u32) = (8, 3);

impl Sender {
    /// Checks that an answer comes from a member, and records that it was heard.
    ///
    /// A member that was given up takes part again: an outage may be longer than the sender's patience.
    fn heard(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        server: SocketAddr,
        message: &Message,
    ) -> Result<(), Reject> {
        if server != self.config.server {
            return Err(Reject::OtherSession);
        }
        self.check_speaker(now, source, client, message)?;
        let member = self.members.get_mut(client).ok_or(Reject::Stranger)?;
        if member.barred {
            return Err(Reject::Limit);
        }
        (member.heard, member.silent_rounds, member.silent_since) = (true, 0, None);
        member.heard_at = Some(now);
        match member.state {
            MemberState::Active => Ok(()),
            MemberState::Lost(_) => {
                self.members.change(client, MemberState::Active);
                Ok(())
            }
            MemberState::Done => Err(Reject::Duplicate),
            _ => Err(Reject::Stranger),
        }
    }

    /// Checks that the member `client` is the author of a message. A member with proofs proves it. For another, the
    /// source host must be the one that registered, and must have proved its address if the sender has a secret. The
    /// port may change on the way, so it is not compared.
    fn check_speaker(
        &mut self,
        now: Time,
        source: SocketAddr,
        client: ClientId,
        message: &Message,
    ) -> Result<(), Reject> {
        if self.admit_by(now, source, client, message) {
            return Ok(());
        }
        let member = self.members.get(&client).ok_or(Reject::Stranger)?;
        let address = member.address.ok_or(Reject::Stranger)?;
        // A restarted receiver may have its new token although its registration from the new port was lost.
        let speaks_from =
            |at: &SocketAddr| member.nonce.is_some_and(|nonce| self.proves(message, client, *at, nonce));
        if let Some(at) = [address, source].into_iter().find(speaks_from) {
            if let Some(member) = self.members.get_mut(client).filter(|m| !m.validated || at != address) {
                (member.validated, member.address) = (true, Some(at));
                self.confirm_soon(now);
            }
            return Ok(());
        }
        let by_draft = member.nonce.is_none() && address.ip() == source.ip();
        if by_draft && (member.validated || self.config.secret.is_none()) {
            return Ok(());
        }
        if by_draft || member.nonce.is_some() {
            // A message from one address must not make the sender ask a member at another.
            if by_draft || address == source {
                self.ask_member_to_show(now, client);
            }
            return Err(Reject::Unproven);
        }
        Err(Reject::Stranger)
    }

    fn sample_answer(&mut self, now: Time, pass: u32, block: u32) {
        if let Some(request) = self.progress.last_request
            && request.pass == pass
            && request.blocks.contains(block)
        {
            self.sample_round_trip(request.at, now);
        } else if (1..self.progress.pass).contains(&pass) {
            // The answer's request left before this pass began.
            self.prolong_round_trip(self.progress.pass_began, now);
        }
    }

    /// Handles a NAK of a receiver that has not registered, or has not proved itself, while receivers take turns.
    /// Anybody may have sent it, so it changes nothing that is known of members, and all such NAKs together may ask for
    /// a few times the product.
    fn nak_of_unknown(&mut self, now: Time, m: &Nak) -> Result<(), Reject> {
        if self.config.secret.is_some() && self.unproved_repairs() > self.most_unproved() {
            return Err(Reject::Limit);
        }
        self.progress.heard = true;
        self.sample_answer(now, m.pass, m.block);
        self.stats.naks += 1;
        let rest = self.without_withdrawn(m.block, &m.missing);
        let wanted = rest.as_ref().unwrap_or(&m.missing);
        let needs = !wanted.is_empty();
        if needs {
            let held = m.parity_held.min(self.config.parity_symbols);
            let scheduled = self.schedule_nak(now, m.pass, m.block, wanted, Some(held));
            self.note_unproved_repairs(scheduled);
        }
        self.count_answer(m.pass, m.block, needs);
        Ok(())
    }

    pub(super) fn nak(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Nak,
        message: &Message,
    ) -> Result<(), Reject> {
        self.check_nak(m.pass, m.block, &m.missing)?;
        if self.has_members() {
            match self.heard(now, source, m.client, m.server, message) {
                Err(Reject::Stranger | Reject::Unproven) if self.by_turns() => {
                    if !self.register_by_nak(now, source, m.client) {
                        return self.nak_of_unknown(now, m);
                    }
                }
                heard => heard?,
            }
        } else if m.server != self.config.server {
            return Err(Reject::OtherSession);
        }
        if !self.has_members() && self.config.secret.is_some() && self.stats.scheduled > self.most_unknown() {
            return Err(Reject::Limit);
        }
        self.progress.heard = true;
        let gone = self.without_gone(m.block, &m.missing);
        let missing = gone.as_ref().unwrap_or(&m.missing);
        // `true` for the first report of a member on a block of the first pass that it may have heard completely.
        let mut surveyed = self.is_of_first_pass(m);
        if let Some(member) = self.members.get_mut(m.client) {
            member.naks += 1;
            let need = m.missing.count().saturating_sub(m.parity_held);
            self.flight.report(m.pass, m.block, m.client, need);
            let since = member.since_block <= m.block;
            surveyed &= member.note_missing(m.block, m.missing.count()) && since;
            // DTUs that a restart has not sent yet were not lost.
            let symbols = self.schedule.symbols_until(m.block, m.pass);
            let account = member.account(m, symbols);
            let lost = self.schedule.sent_of(m.block, account.pass, m.pass, missing);
            member.note_lost(m, lost + account.symbols_lost(m, symbols), symbols);
        }
        self.sample_answer(now, m.pass, m.block);
        if self.members.get(&m.client).is_none_or(|member| member.since_block <= m.block) {
            self.note_loss(m.pass, m.block, missing);
        }
        self.stats.naks += 1;
        if self.nak_of_list(now, m) {
            self.count_answer(m.pass, m.block, true);
            return self.charge(m.client, m.missing.count());
        }
        let held = self.parity_held(m);
        let rest = self.without_withdrawn(m.block, &m.missing);
        let needs = rest.as_ref().is_none_or(|rest| !rest.is_empty());
        if rest.is_some() {
            self.note_bereft(m.client);
        }
        let scheduled = match rest {
            Some(rest) if rest.is_empty() => 0,
            rest => self.schedule_nak(now, m.pass, m.block, rest.as_ref().unwrap_or(&m.missing), held),
        };
        self.count_answer(m.pass, m.block, needs);
        if surveyed && self.has_members() {
            self.survey_report(now, m, scheduled);
        }
        self.charge(m.client, scheduled)
    }

    /// Returns the number of parity symbols that a NAK reports as held; `None` if its receiver has no memory for
    /// symbols and takes none.
    fn parity_held(&mut self, m: &Nak) -> Option<u32> {
        let sent = self.schedule.parity_sent(m.block, m.pass);
        if let Some(member) = self.members.get_mut(m.client) {
            // The receiver may also have lost all of them, in a burst. One that joined later has not heard them.
            let none = m.parity_held == 0 && sent >= REFUSED.0 && member.since_block <= m.block;
            member.refusals = match m.parity_held {
                0 => member.refusals.saturating_add(u32::from(none)),
                _ => 0,
            };
            if none && member.refusals >= REFUSED.1 {
                return None;
            }
        }
        Some(m.parity_held.min(self.config.parity_symbols))
    }

    /// Handles merged NAKs of many receivers for one block that arrive at one instant. If [merging](Self::may_merge) is
    /// allowed, the result is the same as if they were [handled](farcast_core::Engine::handle) one by one.
    ///
    /// # Errors
    /// Returns the error of a single NAK, or [`Reject::Unexpected`] if NAKs may not be merged.
    pub fn handle_naks(&mut self, now: Time, m: &Naks) -> Result<(), Reject> {
        let (pass, scheduled) = (self.progress.pass, self.stats.scheduled);
        let result = self.naks(now, m);
        self.asked = Some(self.judge_nak(m.pass, m.count, pass, scheduled));
        self.rejects.note(result)
    }

    /// Returns `true` if NAKs that arrive at one instant may be merged. Three conditions: the group has no members; a
    /// pass does not begin with the first NAK; and there is no parity, for which the need of each receiver would
    /// matter.
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
        self.schedule_nak(now, m.pass, m.block, &m.missing, Some(0));
        Ok(())
    }

    /// Schedules the missing DTUs, and begins the next pass if it may begin. Returns the number of newly scheduled
    /// DTUs.
    fn schedule_nak(
        &mut self,
        now: Time,
        pass: u32,
        block: u32,
        missing: &Bitmap,
        parity_held: Option<u32>,
    ) -> u32 {
        let len = self.geometry.block_len(block);
        if let Some(asked) = &mut self.progress.asked {
            let first = block * self.geometry.block_size();
            let of = |run: Run| Run::new(first + run.first(), run.count())?.clip(first, first + len);
            for run in missing.iter_runs().filter_map(of) {
                asked.insert_run(run);
            }
        }
        let scheduled = self.schedule.nak(block, len, pass, missing, parity_held);
        self.stats.scheduled += u64::from(scheduled);
        if self.phase != Phase::Waiting {
            return scheduled;
        }
        if self.config.pass_wait == PassWait::FixedTimer {
            if self.config.nak_restarts_wait {
                self.timers.set(Timer::StatusRetry, now + self.status_retry());
            }
        } else if !self.schedule.is_empty() && self.may_begin(now) {
            self.begin_pass(now);
        }
        scheduled
    }

    /// Returns `true` if the next pass may begin now: at once if answers are not spread and there is no parity, and
    /// otherwise when all members that were asked have answered. If answers are spread, the first answer would cut
    /// short the spreading of all others. If parity may replace DTUs, all needs must be known first.
    fn may_begin(&self, now: Time) -> bool {
        if self.awaits_comparison(now) || self.by_turns() {
            return false;
        }
        let at_once = self.config.backoff_window.is_zero() && self.progress.parity == 0;
        at_once
            || (self.has_members() && self.members.values().all(|m| !m.is_active() || !m.asked || m.heard))
    }

    /// Checks that a NAK can be an answer to a status request.
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

    pub(super) fn ack(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Ack,
        message: &Message,
    ) -> Result<(), Reject> {
        if m.pass > self.progress.pass || m.blocks.end() > self.geometry.blocks() {
            return Err(Reject::OutOfRange);
        }
        self.heard(now, source, m.client, m.server, message)?;
        let answered = self.progress.last_request.filter(|r| (r.pass, r.blocks) == (m.pass, m.blocks));
        if let Some(request) = answered {
            self.sample_round_trip(request.at, now);
        }
        let serial =
            answered.map(|request| request.serial).or_else(|| self.flight.serial(m.pass, m.blocks.last()));
        if let (Some(serial), Some(member)) = (serial, self.members.get_mut(m.client)) {
            let before = member.acked;
            if serial > before {
                (member.acked, member.progress_at) = (serial, now);
            }
            self.progress.silent_rounds = 0;
            self.tighten(m.client);
            self.note_acknowledged(now, m.client, before, serial);
            self.unstall(now);
        }
        Ok(())
    }

    pub(super) fn done(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Done,
        message: &Message,
    ) -> Result<(), Reject> {
        self.spoke(now, m.client, m.round);
        let repeated = match self.heard(now, source, m.client, m.server, message) {
            Ok(()) => false,
            // The receiver has missed its confirmation.
            Err(Reject::Duplicate) => true,
            Err(other) => return Err(other),
        };
        // A Done that was repeated before its confirmation could arrive needs no second confirmation.
        let under_way = repeated
            && self.closing.was_confirmed_within(now, self.round_trip.longest().unwrap_or(Span::ZERO));
        if !repeated || self.is_of_round(m.round) {
            self.note_news();
        }
        let Some(member) = self.members.get_mut(m.client) else { return Err(Reject::Stranger) };
        if !under_way {
            member.confirmations = 0;
        }
        // A complete receiver need not wait until its old address has failed to answer.
        if member.contender.as_ref().is_some_and(|(contender, _)| *contender == source) {
            (member.contender, member.address) = (None, Some(source));
        }
        if !repeated {
            member.done_at = Some(now);
            member.forget_missing();
            self.members.change(m.client, MemberState::Done);
            self.events.push_back(SenderEvent::Done { client: m.client });
        }
        self.one_less(now);
        self.confirm_done(now, m.client);
        if repeated { Err(Reject::Duplicate) } else { Ok(()) }
    }

    pub(super) fn quit(
        &mut self,
        now: Time,
        source: SocketAddr,
        m: &Quit,
        message: &Message,
    ) -> Result<(), Reject> {
        // The draft's QUIT does not name the client, so the source address must identify it.
        let client = m.client.or_else(|| {
            self.members.iter().find(|(_, member)| member.address == Some(source)).map(|(&id, _)| id)
        });
        let client = client.ok_or(Reject::Stranger)?;
        let member = self.members.get(&client).filter(|m| m.is_active()).ok_or(Reject::Stranger)?;
        if member.nonce.is_none() && member.address != Some(source) {
            return Err(Reject::Stranger);
        }
        self.check_speaker(now, source, client, message)?;
        if let Some(member) = self.members.get_mut(client) {
            member.heard_at = Some(now);
        }
        self.members.change(client, MemberState::Quit(m.reason, m.text.clone()));
        self.events.push_back(SenderEvent::Quit { client, reason: m.reason, text: m.text.clone() });
        self.one_less(now);
        Ok(())
    }

    /// Checks the consequences of a member that no longer takes part: perhaps there is nobody left to wait for.
    pub(super) fn one_less(&mut self, now: Time) {
        self.unstall(now);
        if self.phase == Phase::Announcing {
            self.try_start(now);
        } else if self.phase == Phase::Waiting && self.everyone_accounted() {
            self.begin_completing(now);
        } else if self.phase == Phase::Waiting
            && self.config.pass_wait == PassWait::Draft
            && !self.schedule.is_empty()
            && self.may_begin(now)
        {
            // The others have answered, and waited for this member.
            self.begin_pass(now);
        }
    }
}
