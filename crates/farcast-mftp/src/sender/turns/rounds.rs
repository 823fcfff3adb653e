//! One round of turns after the other, and the end of the turns.
//!
//! Turns end when few receivers are left that can still speak. Until then a round follows another. Whether it brings
//! anything new decides, because anybody may send answers that bring nothing.

use alloc::vec::Vec;

use farcast_core::{Span, Time};

use super::super::{OUTAGE_RETRY, Phase, Sender, Timer};
use super::{APART, HANDFUL, SPOKEN, STEP};
use crate::config::Group;
use crate::message::{Body, ClientId, Completion};
use crate::turn::Turn;

/// Time from one round of registrations to the next, once receivers are known.
const PAUSE: Span = Span::from_secs(5);
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
        if self.turns.naming.is_some() {
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
        let registered = registered.min(1.0);
        let octets = self.turns.octets(registered);
        let turn = self.turns.call(now, octets, registered);
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
                    self.begin_naming(now);
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
    pub(super) fn leave_turns(&mut self, now: Time) {
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
