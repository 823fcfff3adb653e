//! Passes, blocks, status requests and their answers (draft §11.2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::engine::Transmit;
use farcast_core::{Message as _, Run, Time};

use super::members::{Member, MemberState};
use super::schedule::{Schedule, ScheduledWork};
use super::{Phase, Sender, Timer, all_blocks};
use crate::config::{NakTiming, Pace, PassWait};
use crate::event::SenderEvent;
use crate::message::{Body, ClientId, Data, DataKind, Message, StatusRequest, StatusType};
use crate::wire;

/// Next step of sending, once the pacer allows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum SendStep {
    /// Take the next block, or end the pass.
    #[default]
    NextBlock,
    /// Send the rest of the block.
    Data,
    /// Ask which DTUs of the block are missing.
    Request,
    /// The window is full: wait for an acknowledgement.
    Stalled,
    /// Wait for the acknowledgement of the block's first DTUs.
    Train,
}

/// Progress of sending.
#[derive(Clone, Debug)]
pub(super) struct SendProgress {
    /// Number of the pass, from 1; 0 before data.
    pub(super) pass: u32,
    /// `true` if pass 1 sends only requested DTUs, because every receiver held something.
    pub(super) restart: bool,
    pub(super) step: SendStep,
    pub(super) sent_in_pass: u32,
    /// Current block; `None` at the start of a pass.
    pub(super) block: Option<u32>,
    pub(super) kind: DataKind,
    /// Remaining runs of the block.
    pub(super) runs: VecDeque<Run>,
    /// Number of DTUs in these runs and in `behind`.
    left: u32,
    pub(super) sent_in_block: u32,
    /// `true` if this pass is sent twice.
    pub(super) twice: bool,
    /// Maximum number of parity symbols of a block in this pass; 0 while a receiver takes part that may know nothing of
    /// parity.
    pub(super) parity: u32,
    /// Parity symbols that follow the block's DTUs.
    pub(super) behind: Option<Run>,
    pub(super) last_request: Option<RepairRequest>,
    /// Time at which the current pass began. It is not set for a first pass that left early.
    pub(super) pass_began: Time,
    /// Time until which data may leave before its formal start.
    pub(super) early_until: Option<Time>,
    /// Approximate number of segments that had left early, before the sender asked all receivers first after all.
    pub(super) left_early: u32,
    /// Segments that were sent or requested, if only requested ones are sent.
    pub(super) asked: Option<farcast_core::Bitmap>,
    /// List of files, if it is sent before the first pass.
    pub(super) listing: Option<super::comparing::Listing>,
    /// Number of rounds in which an open-unlimited group requested nothing.
    pub(super) silent_rounds: u32,
    pub(super) heard: bool,
    /// Time since which the window is full.
    pub(super) stalled_since: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RepairRequest {
    pub(super) pass: u32,
    pub(super) blocks: Run,
    pub(super) at: Time,
    /// Newest flight entry that an ACK of the request acknowledges.
    pub(super) serial: u64,
}

impl Default for SendProgress {
    fn default() -> Self {
        Self {
            pass: 0,
            restart: false,
            step: SendStep::NextBlock,
            sent_in_pass: 0,
            block: None,
            kind: DataKind::Source,
            runs: VecDeque::new(),
            left: 0,
            sent_in_block: 0,
            twice: false,
            parity: 0,
            behind: None,
            last_request: None,
            pass_began: Time::ZERO,
            early_until: None,
            left_early: 0,
            asked: None,
            listing: None,
            silent_rounds: 0,
            heard: false,
            stalled_since: None,
        }
    }
}

impl SendProgress {
    pub(super) fn left_in_block(&self) -> u32 {
        self.left
    }

    /// Drops the remaining runs of the current block.
    pub(super) fn drop_runs(&mut self) {
        self.runs.clear();
        (self.left, self.behind) = (0, None);
    }
}

impl Sender {
    /// Returns the number of DTUs that the current pass has yet to send, as far as is known.
    pub(super) fn left_in_pass(&self) -> u32 {
        let left = self.progress.left_in_block();
        let next = self.progress.block.map_or(0, |block| block + 1);
        if self.full_pass() {
            let ahead =
                self.geometry.segments().saturating_sub(next.saturating_mul(self.geometry.block_size()));
            if self.phase == Phase::Sending || self.is_early() { left + ahead } else { 0 }
        } else {
            left + self.left_of_list().unwrap_or_else(|| self.schedule.count())
        }
    }

    /// Returns `true` if the current pass sends everything.
    pub(super) fn full_pass(&self) -> bool {
        self.progress.pass == 1 && !self.progress.restart
    }

    /// Begins data, after all receivers have registered and had time to join.
    pub(super) fn begin_data(&mut self, now: Time) {
        let receivers = self.members.active();
        let restart = self.progress.restart;
        self.events.push_back(SenderEvent::Started { receivers, restart });
        self.timers.set(Timer::TransferLimit, now + self.config.transfer_limit);
        if restart || self.progress.pass == 0 {
            self.schedule = Schedule::new(restart);
        }
        if self.go_on_early(now) {
            return;
        }
        self.progress.asked = restart.then(|| farcast_core::Bitmap::new(self.geometry.segments()));
        if let (Some(asked), Some(left)) = (&mut self.progress.asked, Run::new(0, self.progress.left_early)) {
            asked.insert_run(left);
        }
        // The request at the end of the list asks what is missing.
        if restart && self.begin_listing(now) {
            return;
        }
        if restart {
            // The sender asks before the first pass what is missing at all (draft §11.2.1, pass number 0).
            self.phase = Phase::Waiting;
            self.ask_all(now);
            self.timers.set(Timer::StatusRetry, now + self.status_retry());
        } else {
            self.begin_pass(now);
        }
    }

    pub(super) fn begin_pass(&mut self, now: Time) {
        self.phase = Phase::Sending;
        self.timers.stop(Timer::StatusRetry);
        self.pacer.begin(now);
        self.note_idle();
        self.forget_poll_of_all();
        if self.progress.pass == 1 {
            self.ask_for_reports(now);
        }
        let progress = &mut self.progress;
        progress.pass += 1;
        progress.pass_began = now;
        (progress.block, progress.step, progress.sent_in_pass, progress.silent_rounds) =
            (None, SendStep::NextBlock, 0, 0);
        self.progress.twice = true;
        if self.progress.pass == 1 {
            self.begin_search(now);
        }
        self.progress.parity = self.parity_of_pass();
        self.stats.dtus_per_pass.push(0);
        if self.config.pass_wait == PassWait::FixedTimer && !self.full_pass() {
            let geometry = self.geometry;
            self.schedule.freeze(self.progress.pass, |block| geometry.block_len(block));
        }
        let dtus = if self.full_pass() { self.geometry.segments() } else { self.schedule.count() };
        self.events.push_back(SenderEvent::Pass { pass: self.progress.pass, dtus });
    }

    /// Returns the number of parity symbols that a block may have now. Receivers without proofs are taken for
    /// implementations of the draft, which has no parity.
    pub(super) fn parity_of_pass(&self) -> u32 {
        let plain = |m: &Member| m.is_active() && m.validated && m.nonce.is_none();
        let plain = self.config.secret.is_some() && self.members.values().any(plain);
        if plain { 0 } else { self.config.parity_symbols }
    }

    /// Returns `true` if a block that is taken now is sent twice.
    pub(super) fn sends_twice(&self) -> bool {
        self.progress.twice && self.is_small_pass()
    }

    /// Returns `true` if this pass is so short that sending it twice costs no capacity that the link could use
    /// meanwhile. A pass begins with the first NAK and grows with later ones, so each block checks again.
    fn is_small_pass(&self) -> bool {
        let Pace::Rate { .. } = self.config.pace else { return false };
        let span = self.pacer.span(wire::data_len(self.geometry.segment_size().into()));
        // All DTUs so far were sent twice, or this would not be asked.
        let ahead = self.left_of_list().unwrap_or_else(|| self.schedule.count());
        let dtus = self.progress.sent_in_pass / 2 + ahead;
        self.config.repeat_small_passes
            && self.config.pass_wait == PassWait::Draft
            && !self.full_pass()
            && span * u64::from(dtus) < self.round_trip() / 8
    }

    /// Returns the next message while a pass is being sent.
    pub(super) fn poll_sending(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        self.pacer.settle(now);
        while (self.phase == Phase::Sending || self.is_early()) && self.pacer.next() <= now {
            let transmit = match self.progress.step {
                SendStep::Data if self.left_of_train() == Some(0) => Some(self.train_request(now)),
                SendStep::Data => self.data_run(until),
                SendStep::Request => self.block_request(now),
                SendStep::NextBlock => {
                    self.next_block(now);
                    None
                }
                SendStep::Stalled | SendStep::Train => return None,
            };
            if transmit.is_some() {
                return transmit;
            }
        }
        self.outbox.pop_front()
    }

    fn data_run(&mut self, until: Time) -> Option<Transmit<Message>> {
        let train = self.left_of_train();
        let progress = &mut self.progress;
        if progress.runs.is_empty()
            && let Some(behind) = progress.behind.take()
        {
            self.stats.parity_sent += u64::from(behind.count());
            progress.kind = DataKind::Parity;
            progress.runs.push_back(behind);
        }
        let (Some(run), Some(block)) = (progress.runs.pop_front(), progress.block) else {
            progress.step = SendStep::Request;
            return None;
        };
        let len = self.geometry.segment_size();
        let span = self.pacer.span(wire::data_len(len.into()));
        let count = self.pacer.departures_before(until, span).min(run.count()).min(train.unwrap_or(u32::MAX));
        let (head, tail) = run.split(core::num::NonZeroU32::new(count)?);
        if let Some(tail) = tail {
            progress.runs.push_front(tail);
        }
        let last_len = match progress.kind {
            DataKind::Source => self.geometry.payload_len(block * self.geometry.block_size() + head.last()),
            DataKind::Parity => len,
        };
        progress.left -= head.count();
        progress.sent_in_pass += head.count();
        progress.sent_in_block += head.count();
        if let Some(pass) = self.stats.dtus_per_pass.last_mut() {
            *pass += u64::from(head.count());
        }
        self.pacer.charge(span * u64::from(head.count() - 1));
        self.pacer.charge(self.pacer.span(wire::data_len(last_len.into())));
        let data = Data { pass: progress.pass, block, kind: progress.kind, dtus: head, len, last_len };
        let message = Message::new(self.config.transmission, Body::Data(data));
        Some(Transmit::new(message, self.config.private).spaced(span))
    }

    /// Returns the request behind a block, if one is due there.
    fn block_request(&mut self, now: Time) -> Option<Transmit<Message>> {
        let block = self.progress.block?;
        self.progress.step = SendStep::NextBlock;
        if self.is_early() {
            // There are no members that would answer; the request follows when data formally begins.
            return None;
        }
        if matches!(self.config.pace, Pace::Window { .. }) {
            self.put_under_way(now, block);
        }
        let last = self.following(block).is_none();
        let late_naks = self.config.nak_timing == NakTiming::EndOfFirstPass && self.full_pass();
        // Where receivers take turns, few lack some of a repaired block, and one request asks for all of them.
        let repairs = self.by_turns() && !self.full_pass();
        if (late_naks || repairs) && !last {
            return None;
        }
        // At the end of a pass with nothing else to send, one request asks about all blocks.
        let idle = self.config.pass_wait == PassWait::Draft && self.schedule.is_empty();
        let all = last && (late_naks || repairs || idle || self.is_listing());
        let blocks = if all { all_blocks(&self.geometry) } else { Run::one(block) };
        if last {
            self.expect_answers(now, all);
        }
        let transmit = Transmit::new(self.status_request(now, blocks), self.config.private);
        self.ask_newcomers(block);
        self.pacer.charge(self.pacer.span(transmit.message.wire_len(0)));
        if all && self.config.ask_twice && !self.by_turns() {
            // Nothing else prompts an answer before the retry timer, so a lost request costs a whole round.
            self.outbox.push_back(transmit.clone());
        }
        Some(transmit)
    }

    pub(super) fn status_request(&mut self, now: Time, blocks: Run) -> Message {
        let dtus = if blocks.count() == 1 {
            self.geometry.block_len(blocks.first())
        } else {
            self.geometry.block_size()
        };
        let dtus = Run::new(0, dtus.min(self.geometry.segments())).unwrap_or(Run::one(0));
        self.request(now, self.progress.pass, blocks, dtus)
    }

    /// Returns a status request after `pass` about `dtus` of `blocks`.
    pub(super) fn request(&mut self, now: Time, pass: u32, blocks: Run, dtus: Run) -> Message {
        let status = match self.config.pace {
            Pace::Window { .. } => StatusType::All,
            Pace::Rate { .. } => StatusType::NakOnly,
        };
        self.stats.status_requests += 1;
        self.progress.last_request =
            Some(RepairRequest { pass, blocks, at: now, serial: self.flight.newest() });
        let turn = self.poll_turn(now, pass, blocks);
        let request = StatusRequest { pass, blocks, dtus, status, hosts: None, turn };
        Message::new(self.config.transmission, Body::StatusRequest(request))
    }

    pub(super) fn ask_all(&mut self, now: Time) {
        self.expect_answers(now, true);
        let mut message = self.status_request(now, all_blocks(&self.geometry));
        if let (Body::StatusRequest(request), Some(hosts)) = (&mut message.body, self.still_comparing(now)) {
            for (_, member) in self.members.iter_mut().filter(|(id, _)| !hosts.contains(id)) {
                (member.heard, member.silent_since) = (true, None);
            }
            request.hosts = Some(hosts);
        } else if let Body::StatusRequest(request) = &mut message.body {
            let named = self.asked_by_name();
            if let Some(named) = &named {
                for (id, member) in self.members.iter_mut() {
                    member.asked = named.contains(id);
                }
            }
            request.hosts = named;
        }
        self.outbox.push_back(Transmit::new(message, self.config.private));
    }

    /// Records that a request leaves that all members must answer, if it asks about `all` blocks.
    pub(super) fn expect_answers(&mut self, now: Time, all: bool) {
        self.progress.heard = false;
        let by_turns = self.by_turns();
        for member in self.members.values_mut() {
            (member.heard, member.asked) = (false, true);
            if all && member.is_active() && !by_turns {
                member.silent_since.get_or_insert(now);
            }
        }
    }

    /// Returns the block after `block` that this pass sends.
    pub(super) fn following(&self, block: u32) -> Option<u32> {
        let next = block.checked_add(1)?;
        if self.is_listing() {
            self.list_block(next)
        } else if self.full_pass() {
            (next < self.geometry.blocks()).then_some(next)
        } else {
            self.schedule.next_block(next)
        }
    }

    fn next_block(&mut self, now: Time) {
        self.pacer.pay_debt();
        if self.is_early() {
            let last = self.progress.block.is_some_and(|block| self.following(block).is_none());
            if last || self.is_early_over(now) {
                return self.hold_early();
            }
        } else if self.everyone_accounted() {
            return self.begin_completing(now);
        } else if self.has_only_latecomers() {
            return self.rest(now);
        }
        let next = match self.progress.block {
            Some(block) => self.following(block),
            None if self.is_listing() => self.list_block(0),
            None if self.full_pass() => Some(0),
            None => self.schedule.next_block(0),
        };
        let Some(block) = next else { return self.end_pass(now) };
        if self.window_is_full(block) {
            self.progress.step = SendStep::Stalled;
            self.progress.stalled_since.get_or_insert(now);
            if !self.timers.is_set(Timer::Stall) {
                self.timers.set(Timer::Stall, self.look_again(now));
            }
            return;
        }
        self.timers.stop(Timer::Stall);
        self.progress.stalled_since = None;
        self.pace_block(now, block);
        self.take_block(block);
    }

    fn take_block(&mut self, block: u32) {
        let len = self.geometry.block_len(block);
        self.progress.twice = self.sends_twice();
        let mut behind = self.parity_behind(block);
        let (kind, runs) = if self.full_pass() {
            // The manifest is sent twice: without it a receiver cannot tell which file a DTU belongs to.
            let head = Run::new(0, self.config.head_segments.min(len)).filter(|_| block == 0);
            (DataKind::Source, head.into_iter().chain(self.still_sent(block, len)).collect())
        } else if self.is_listing() {
            let (runs, times) = (self.take_list(block), if self.progress.twice { 2 } else { 1 });
            (DataKind::Source, core::iter::repeat_n(runs, times).flatten().collect())
        } else {
            let parity = if self.is_torn(block) { 0 } else { self.progress.parity };
            let margin = self.margin_of(block, len);
            match self.schedule.take(block, len, self.progress.pass, parity, self.progress.twice, margin) {
                Some(ScheduledWork::Source(runs)) if self.progress.twice => {
                    (DataKind::Source, runs.iter().chain(&runs).copied().collect())
                }
                Some(ScheduledWork::Source(runs)) => {
                    let again = runs.iter().map(|run| run.count()).sum();
                    behind = self.parity_behind_repair(block, len, again).filter(|_| !self.is_torn(block));
                    if again == len || behind.is_some() {
                        self.note_topped_up(block);
                    }
                    (DataKind::Source, runs.into())
                }
                Some(ScheduledWork::Parity(run)) => {
                    self.stats.parity_sent += u64::from(run.count());
                    self.note_topped_up(block);
                    (DataKind::Parity, VecDeque::from([run]))
                }
                None => (DataKind::Source, VecDeque::new()),
            }
        };
        let behind = behind.filter(|_| !self.is_torn(block));
        if let Some(symbols) = behind {
            self.schedule.note_parity(block, symbols, self.progress.pass);
        }
        let progress = &mut self.progress;
        progress.left = runs.iter().chain(&behind).map(|run: &Run| run.count()).sum();
        (progress.block, progress.kind, progress.runs, progress.behind) = (Some(block), kind, runs, behind);
        (progress.sent_in_block, progress.step) = (0, SendStep::Data);
    }

    /// Returns the DTUs of a block of `len`, without the withdrawn ones.
    pub(super) fn still_sent(&self, block: u32, len: u32) -> Vec<Run> {
        let (mut sent, mut at) = (Vec::new(), 0);
        for gone in self.withdrawn_of(block) {
            sent.extend(Run::new(at, gone.first() - at));
            at = gone.end();
        }
        sent.extend(Run::new(at, len - at));
        sent
    }

    fn end_pass(&mut self, now: Time) {
        if self.end_list(now) {
            return self.send_list(now);
        }
        self.top_up();
        let waits = self.awaits_comparison(now);
        if !waits && self.config.pass_wait == PassWait::Draft && !self.schedule.is_empty() {
            return self.begin_pass(now);
        }
        self.wait_for_answers(now);
    }

    pub(super) fn wait_for_answers(&mut self, now: Time) {
        self.phase = Phase::Waiting;
        self.progress.step = SendStep::NextBlock;
        self.ask_for_reports(now);
        self.timers.set(Timer::StatusRetry, now + self.status_retry());
    }

    /// Handles the end of the Status Retry Timer without answers, or of the fixed wait after a pass.
    pub(super) fn status_retry_expired(&mut self, now: Time) {
        if self.phase != Phase::Waiting {
            return;
        }
        if self.has_only_latecomers() {
            return self.rest(now);
        }
        if !self.schedule.is_empty() && !self.awaits_comparison(now) {
            return self.begin_pass(now);
        }
        if self.by_turns() {
            return self.ask_by_turns(now);
        }
        self.count_silent(now);
        let heard = self.progress.heard || self.members.values().any(|m| m.is_active() && m.heard);
        self.progress.silent_rounds = if heard { 0 } else { self.progress.silent_rounds + 1 };
        let nobody = !self.has_members() && self.progress.silent_rounds > self.config.status_retry_count;
        if nobody || self.everyone_accounted() {
            return self.begin_completing(now);
        }
        if self.end_bereft(now) {
            return;
        }
        self.count_comparing();
        self.ask_all(now);
        self.timers.set(Timer::StatusRetry, now + self.status_retry());
    }

    pub(super) fn everyone_accounted(&self) -> bool {
        // Receivers of an open group that had no turn yet are not known, and listed ones may be there.
        let closed = matches!(self.config.group, crate::config::Group::Closed(_));
        let may_come = self.members.awaited() + self.members.remembered();
        let counts = self.by_turns() && (!closed || may_come > 0);
        self.has_members()
            && !counts
            && self.members.active() == 0
            && !self.awaits_remembered()
            && !self.awaits_latecomers()
            // With proofs a claim never replaces a member that is present, so the sender does not wait for it.
            && (self.config.secret.is_some() || !self.members.values().any(|m| m.contender.is_some()))
    }

    /// Checks again if the window admits the next block.
    pub(super) fn unstall(&mut self, now: Time) {
        if self.phase == Phase::Sending && self.progress.step == SendStep::Stalled {
            self.progress.step = SendStep::NextBlock;
            self.pacer.begin(now);
        }
    }

    /// Aborts the transmission for `reason`, one of [`cancel`](crate::message::cancel), with an optional text.
    pub fn abort(&mut self, now: Time, reason: u32, text: Option<alloc::string::String>) {
        self.abort_with(now, reason, text);
    }

    /// Returns the number of segments that receiver `client` has, as far as its answers tell.
    pub fn received_by(&self, client: ClientId) -> u32 {
        let Some(member) = self.members.get(&client) else { return 0 };
        let total = self.geometry.segments();
        match member.state {
            MemberState::Done => return total,
            // An absent receiver requests nothing, which tells nothing.
            MemberState::Invited | MemberState::Declined(_) => return 0,
            MemberState::Active | MemberState::Quit(..) | MemberState::Lost(_) => {}
        }
        let asked = if self.full_pass() && self.phase == Phase::Sending {
            let blocks = self.progress.block.unwrap_or(0);
            blocks.saturating_mul(self.geometry.block_size()).min(total)
        } else if self.progress.pass == 0 || self.phase == Phase::Announcing {
            member.held
        } else {
            total
        };
        asked.max(member.held).saturating_sub(u32::try_from(member.missing()).unwrap_or(u32::MAX))
    }
}
