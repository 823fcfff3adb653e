//! One round of turns after the other, and the end of the turns.
//!
//! Turns end when few receivers are left that can still speak. Until then a round follows another. Whether it brings
//! anything new decides, because anybody may send answers that bring nothing.

use alloc::vec::Vec;

use farcast_core::{Run, Span, Time};

use super::super::{Member, OUTAGE_RETRY, Phase, Sender, Timer, all_blocks};
use super::{APART, HANDFUL, SPOKEN, STEP};
use crate::config::Group;
use crate::message::{Body, ClientId, Completion, StatusRequest, StatusType};
use crate::turn::Turn;

/// Time from one round of registrations to the next, once receivers are known.
const PAUSE: Span = Span::from_secs(5);
/// Number of receivers that are asked by name after the turns, at most.
const BY_NAME: usize = 64;
/// Number of times that all of them are asked in vain.
const IN_VAIN: u32 = 3;
/// Number of complete receivers from which a request names the others, although there were no turns.
const MANY_ENDED: u32 = 16;

/// Progress of asking unheard receivers by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// Time since which none answers.
    since: Time,
    /// Last receiver that was asked.
    after: Option<ClientId>,
    /// Number of times that all were asked since one answered.
    vain: u32,
}

impl Sender {
    /// Calls the next receivers, and confirms reports.
    pub(in crate::sender) fn next_turn(&mut self, now: Time) {
        if !self.turns.on
            || !matches!(self.phase, Phase::Announcing | Phase::Joining | Phase::Sending | Phase::Waiting)
        {
            return;
        }
        if matches!(self.config.group, Group::Closed(_)) && self.awaits_latecomers() {
            // Whoever was not called yet had no chance to come.
            self.timers.set(Timer::Latecomers, now + self.config.silence);
        }
        if self.turns.named.is_some() {
            self.confirm_by_turns(None);
            return self.ask_unheard(now);
        }
        self.turns.settle(now);
        self.settle_polls(now);
        self.judge_losses(now);
        if self.turns.is_round_over() {
            if self.ends_turns(now) {
                return;
            }
            let pause = self.follow_round(now);
            self.confirm_by_turns(None);
            return self.timers.set(Timer::Turn, now + pause);
        }
        let wait = self.turns.step();
        let registered = f64::from(self.members.active()) / self.group_size().max(1.0);
        let octets = self.turns.octets(registered.min(1.0));
        let turn = self.turns.call(now, octets);
        self.confirm_by_turns(turn);
        self.timers.set(Timer::Turn, now + wait);
    }

    /// Begins the round after one that is over. Returns the time until its first call.
    fn follow_round(&mut self, now: Time) -> Span {
        let quiet = !self.turns.news;
        let since = self.turns.quiet_since.filter(|_| quiet).unwrap_or(now);
        self.turns.quiet_since = quiet.then_some(since);
        let reports = self.turns.reports || self.progress.pass > 1 || self.phase == Phase::Waiting;
        if self.members.is_empty() && self.turns.counted == 0.0 && self.turns.answers == 0.0 {
            // Nobody was heard. Receivers may still be switched on, or the way back may be interrupted.
            self.turns.begin_round(self.turns.prior, reports);
            self.turns.counts = true;
            return STEP.1;
        }
        let prior = self.left_to_speak(reports);
        self.turns.begin_round(prior, reports);
        // Confirmations of the last registrations are still to come.
        if reports { self.turns.shortest_step } else { PAUSE }
    }

    /// Returns the number of receivers that will probably speak in a round after this one.
    fn left_to_speak(&self, reports: bool) -> f64 {
        let counted = self.turns.counted.max(self.turns.answers).max(self.members.len() as f64);
        let silent =
            if reports { self.members.complete() } else { self.members.active() + self.members.complete() };
        // Some have missed their confirmation.
        (counted - f64::from(silent)).max(counted / 50.0).max(self.turns.answers / 4.0)
    }

    /// Ends the turns if few receivers are left that can still speak. Returns `true` if they are over.
    fn ends_turns(&mut self, now: Time) -> bool {
        let at_once = (self.turns.allowance.probable_rate() * SPOKEN / APART).max(HANDFUL);
        let over = match self.phase {
            // All were called, and all that answered may speak at once from now on.
            Phase::Announcing | Phase::Joining | Phase::Sending
                if self.full_pass() || self.progress.pass == 0 =>
            {
                let all = self.turns.counted.max(self.members.len() as f64).max(self.turns.answers);
                let served = self.phase == Phase::Announcing
                    && !self.turns.news
                    && self.accepted() == 0
                    && self.somebody_is_done();
                !self.turns.reports && (served || (all > 0.0 && all <= at_once))
            }
            Phase::Waiting => {
                let quiet = self.turns.reports && !self.turns.news && self.is_quiet();
                let long =
                    self.turns.quiet_since.is_some_and(|since| now.since(since) >= self.config.silence);
                let few = f64::from(self.members.active() + self.members.awaited()) <= at_once;
                if quiet && long && !few {
                    self.turns.named = Some(Named { since: now, after: None, vain: 0 });
                    self.ask_unheard(now);
                    return true;
                }
                quiet && few
            }
            _ => false,
        };
        if over {
            self.leave_turns(now);
        }
        over
    }

    /// Ends the turns.
    fn leave_turns(&mut self, now: Time) {
        self.turns.on = false;
        self.confirm_by_turns(None);
        self.announce(now);
        self.await_untold(now);
        match self.phase {
            Phase::Waiting => self.timers.set(Timer::StatusRetry, now),
            Phase::Announcing => self.try_start(now),
            _ => {}
        }
    }

    /// Asks the receivers that were not heard by name, a part of them at a time, before they are given up. A receiver whose
    /// confirmation was forged answers no call any more, but a request that names it. All are asked again while any
    /// answers, because the return may have dropped what others said. If none answers for as long as `silence`, or
    /// however often all are asked, those that are left are given up.
    fn ask_unheard(&mut self, now: Time) {
        let Some(mut named) = self.turns.named else { return };
        if core::mem::take(&mut self.turns.news) {
            (named.since, named.vain) = (now, 0);
        }
        let octets = self.turns.octets(0.0);
        let room = (self.turns.allowance.per_second() * STEP.1.as_secs_f64() / octets).max(HANDFUL) as usize;
        let mut hosts = self.unheard_after(named.after, room.min(BY_NAME));
        if hosts.is_empty() {
            named.vain += 1;
            hosts = self.unheard_after(None, room.min(BY_NAME));
        }
        let Some(&last) = hosts.last() else { return self.end_naming(now) };
        if named.vain >= IN_VAIN || now.since(named.since) >= self.config.silence {
            return self.end_naming(now);
        }
        named.after = Some(last);
        self.turns.named = Some(named);
        let octets = hosts.len() as f64 * octets;
        self.turns.allowance.take(octets);
        self.ask_by_name(hosts);
        let carried = Span::from_secs_f64((octets / self.turns.allowance.per_second()).min(60.0));
        // All answers have come before any receiver is asked again.
        let more = !self.unheard_after(Some(last), 1).is_empty();
        let wait = if more { carried.max(STEP.0) } else { self.turns.settles_in(carried) };
        self.timers.set(Timer::Turn, now + wait);
    }

    /// Asks `hosts` what they lack.
    fn ask_by_name(&mut self, hosts: Vec<ClientId>) {
        let (blocks, dtus) = (all_blocks(&self.geometry), Run::new(0, self.geometry.block_len(0)));
        let (pass, status) = (self.progress.pass, StatusType::NakOnly);
        let (hosts, dtus) = (Some(hosts), dtus.unwrap_or(Run::one(0)));
        self.queue(
            Body::StatusRequest(StatusRequest { pass, blocks, dtus, status, hosts, turn: None }),
            self.config.private,
        );
        self.stats.status_requests += 1;
    }

    /// Returns up to `count` receivers with an id beyond `after` that have registered and were not heard. One that lacks
    /// only withdrawn segments has said so.
    fn unheard_after(&self, after: Option<ClientId>, count: usize) -> Vec<ClientId> {
        let bereft = |member: &Member| member.bereft == Some(self.progress.pass);
        let unheard = |member: &Member| member.is_active() && !bereft(member) || member.is_pending();
        let left = |(id, member): &(&ClientId, &Member)| unheard(member) && Some(**id) > after;
        self.members.iter().filter(left).map(|(&id, _)| id).take(count).collect()
    }

    /// Gives up the receivers that have not answered a request by name, and ends the turns.
    fn end_naming(&mut self, now: Time) {
        self.turns.named = None;
        self.give_up_unheard();
        self.leave_turns(now);
    }

    /// Begins a round of reports, because the first pass is over.
    pub(in crate::sender) fn ask_for_reports(&mut self, now: Time) {
        if self.turns.on && !self.turns.reports {
            let (all, unknown) = (self.group_size(), self.turns.is_blind());
            self.turns.begin_round(all, true);
            // If a queue has dropped answers, more receivers than were counted answer: the round shows it.
            self.turns.counts = unknown;
            // The last data is still on its way.
            self.timers.set(Timer::Turn, now + STEP.0 * 2);
        }
    }

    /// Asks a part of the receivers again what they lack, because nothing more is scheduled.
    pub(in crate::sender) fn ask_by_turns(&mut self, now: Time) {
        self.give_up_idle(now);
        if self.is_quiet() && self.end_bereft(now) {
            return;
        }
        self.ask_all(now);
        let wait = if self.is_quiet() { OUTAGE_RETRY } else { Span::ZERO };
        self.timers.set(Timer::StatusRetry, now + self.status_retry().max(wait));
    }

    /// Returns the receivers to be asked by name, because others have ended that would answer too: many of them, or so
    /// many for the return that it drops the answers of those that are left. `None` to ask everyone.
    pub(in crate::sender) fn asked_by_name(&self) -> Option<Vec<ClientId>> {
        let unanswered = |m: &Member| m.is_active() && m.silent_rounds > self.config.status_retry_count;
        let drowned = || self.members.active() == 0 || self.members.values().any(unanswered);
        let many =
            self.turns.taken || self.config.turns && (self.members.complete() >= MANY_ENDED || drowned());
        if self.turns.on || !many {
            return None;
        }
        let left: Vec<ClientId> =
            self.members.iter().filter(|(_, member)| member.is_wanted()).map(|(&id, _)| id).collect();
        (!left.is_empty() && left.len() <= BY_NAME && left.len() < self.members.len()).then_some(left)
    }

    /// Sends a call and the confirmations that are due.
    fn confirm_by_turns(&mut self, turn: Option<Turn>) {
        let due: Vec<ClientId> = core::mem::take(&mut self.turns.unconfirmed).into_iter().collect();
        let room = (self.config.datagram - crate::wire::HEADER_LEN - 20) / 4;
        let mut pieces: Vec<&[ClientId]> = due.chunks(room).collect();
        if pieces.is_empty() && turn.is_some() {
            pieces.push(&[]);
        }
        for hosts in pieces {
            for host in hosts {
                if let Some(member) = self.members.get_mut(*host) {
                    // A receiver that has missed it is called again.
                    member.confirmations = self.config.repeats;
                }
            }
            let body = Body::Completion(Completion { hosts: Some(hosts.to_vec()), turn });
            self.queue(body, self.config.private);
        }
    }

    /// Confirms the reports that are due, because no further call follows.
    pub(in crate::sender) fn confirm_last_turns(&mut self) {
        if self.turns.on {
            self.confirm_by_turns(None);
            self.turns.on = false;
        }
    }

    /// Confirms the report of `client` with the next call.
    pub(in crate::sender) fn confirm_by_turn(&mut self, client: ClientId) {
        self.turns.unconfirmed.insert(client);
    }
}
