//! Requests that name receivers, where others would answer too.

use alloc::vec::Vec;

use farcast_core::{Run, Span, Time};

use super::super::{Member, Phase, Sender, Timer, all_blocks};
use super::{HANDFUL, STEP};
use crate::message::{Body, ClientId, StatusRequest, StatusType};

/// Maximum number of receivers that a request names.
const BY_NAME: usize = 64;
/// Number of times that all of them are asked in vain at the end of the turns.
const IN_VAIN: u32 = 3;
/// Number of complete receivers from which a request names the others, although there were no turns.
const MANY_ENDED: u32 = 16;

/// Progress of asking unheard receivers by name at the end of the turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    /// Time since which none answers.
    since: Time,
    /// Last receiver that was asked.
    after: Option<ClientId>,
    /// Number of times that all were asked since one answered.
    vain: u32,
    /// Number of receivers that were complete when one answered last.
    complete: u32,
}

/// Last receivers that a request named: of those that take part, and of the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastNamed {
    active: Option<ClientId>,
    others: Option<ClientId>,
}

/// Returns up to `count` of the sorted `ids` after `last`, as if they were in a circle, and notes the last of them.
fn next_of(ids: &[ClientId], last: &mut Option<ClientId>, count: usize) -> Vec<ClientId> {
    let (before, behind) = ids.split_at(ids.partition_point(|&id| Some(id) <= *last));
    let next: Vec<ClientId> = behind.iter().chain(before).take(count).copied().collect();
    *last = next.last().copied().or(*last);
    next
}

impl Sender {
    /// Begins to ask the receivers that were not heard by name, before they are given up.
    pub(super) fn begin_naming(&mut self, now: Time) {
        let complete = self.members.complete();
        self.turns.naming = Some(Naming { since: now, after: None, vain: 0, complete });
        self.ask_unheard(now);
    }

    /// Asks the receivers that were not heard by name, a part of them at a time. A receiver whose confirmation was forged
    /// answers no call any more, but a request that names it. All are asked again while any answers, because the return
    /// may have dropped what others said. If none answers for as long as `silence`, or however often all are asked, those
    /// that are left are given up.
    pub(super) fn ask_unheard(&mut self, now: Time) {
        let Some(mut naming) = self.turns.naming else { return };
        self.give_up_idle(now);
        let complete = self.members.complete();
        let answered = |member: &Member| member.is_active() && member.heard_at >= Some(naming.since);
        let repairs = self.phase == Phase::Sending;
        if repairs || complete > naming.complete || self.members.values().any(answered) {
            (naming.since, naming.vain, naming.complete) = (now, 0, complete);
        }
        if repairs {
            // The receivers answer when the repairs that they asked for have left.
            self.turns.naming = Some(naming);
            return self.timers.set(Timer::Turn, now + self.turns.settles_in(Span::ZERO));
        }
        let octets = self.turns.octets(0.0);
        let room = (self.turns.allowance.per_second() * STEP.1.as_secs_f64() / octets).max(HANDFUL) as usize;
        let mut hosts = self.unheard_after(naming.after, room.min(BY_NAME));
        if hosts.is_empty() {
            naming.vain += 1;
            hosts = self.unheard_after(None, room.min(BY_NAME));
        }
        let Some(&last) = hosts.last() else { return self.end_naming(now) };
        if naming.vain >= IN_VAIN || now.since(naming.since) >= self.config.silence {
            return self.end_naming(now);
        }
        naming.after = Some(last);
        self.turns.naming = Some(naming);
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

    /// Returns up to `count` receivers with an id beyond `after` that have registered and are not complete. One that lacks
    /// only withdrawn segments has said so.
    fn unheard_after(&self, after: Option<ClientId>, count: usize) -> Vec<ClientId> {
        let bereft = |member: &Member| member.bereft == Some(self.progress.pass);
        let unheard = |member: &Member| member.is_active() && !bereft(member) || member.is_pending();
        let left = |(id, member): &(&ClientId, &Member)| unheard(member) && Some(**id) > after;
        self.members.iter().filter(left).map(|(&id, _)| id).take(count).collect()
    }

    /// Gives up the receivers that have not answered a request by name, and ends the turns.
    fn end_naming(&mut self, now: Time) {
        self.turns.naming = None;
        let unheard = self.unheard_after(None, usize::MAX);
        let active = |id: &ClientId| self.members.get(id).is_some_and(Member::is_active);
        self.give_up_all(unheard.into_iter().filter(active).collect());
        self.leave_turns(now);
    }

    /// Returns the next receivers to be asked by name, because others have ended that would answer too: many of them, or
    /// so many for the return that it drops the answers of those that are left. Those that take part come first. `None`
    /// to ask everyone.
    pub(in crate::sender) fn asked_by_name(&mut self) -> Option<Vec<ClientId>> {
        let unanswered = |m: &Member| m.is_active() && m.silent_rounds > self.config.status_retry_count;
        let drowned = || self.members.active() == 0 || self.members.values().any(unanswered);
        let many =
            self.turns.taken || self.config.turns && (self.members.complete() >= MANY_ENDED || drowned());
        if self.turns.on || !many {
            return None;
        }
        let ids = |wanted: fn(&Member) -> bool| {
            let wanted = self.members.iter().filter(move |(_, member)| wanted(member));
            wanted.map(|(&id, _)| id).collect::<Vec<_>>()
        };
        let active = ids(Member::is_active);
        let others = ids(|member| member.is_wanted() && !member.is_active());
        if active.len() + others.len() >= self.members.len() {
            return None;
        }
        let last = &mut self.turns.last_named;
        let mut named = next_of(&active, &mut last.active, BY_NAME);
        named.extend(next_of(&others, &mut last.others, BY_NAME - named.len()));
        (!named.is_empty()).then_some(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_named_in_turn() {
        let ids: Vec<ClientId> = (0..5).map(ClientId).collect();
        let mut last = None;
        let mut next =
            |ids: &[ClientId]| next_of(ids, &mut last, 2).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(
            (next(&ids), next(&ids), next(&ids)),
            (alloc::vec![0, 1], alloc::vec![2, 3], alloc::vec![4, 0])
        );
        assert_eq!(next(&ids[..1]), [0], "the others have answered");
        assert!(next(&[]).is_empty());
        assert_eq!(next(&ids), [1, 2]);
    }
}
