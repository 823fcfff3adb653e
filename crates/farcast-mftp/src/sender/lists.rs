//! Clients that announcements list (draft §11.1).
//!
//! The draft's list takes 8 octets for each client, in every announcement. Where many take turns, a [`HostSet`] names the
//! invited ones in its place. Receivers that know nothing of it find themselves in the draft's list, which leaves in
//! parts, one with each announcement. Both are sent more often if many of those who were called are silent: they may
//! be switched on later, or may not have understood.

use alloc::vec::Vec;

use farcast_core::{Span, Time};

use super::members::MemberState;
use super::{Phase, Sender};
use crate::config::{Group, Pace};
use crate::hostset::{HostSet, LONGEST};
use crate::message::{Body, ClientId, HostState, Message};
use crate::wire;

/// Number of invited receivers up to which every announcement has the draft's list.
const FEW: usize = 64;
/// Number of announcements at the beginning that have the whole set, shortly after one another: a receiver that misses
/// them misses the data behind them.
const FIRST: u32 = 3;
/// Parts of the rate for sets, and for parts of the draft's list, while many of those who were called are silent: one of
/// so many octets.
const SET_PART: u64 = 33;
const LIST_PART: u64 = 300;
/// Factor by which both leave more seldom if nearly all who were called have answered. Once the first pass is over, they
/// leave more seldom in any case, because whoever comes then misses nothing more by waiting.
const SELDOM: u64 = 8;
const LATER: u64 = 4;
const LATER_SELDOM: u64 = 16;
/// Divisor of the rate for announcements with the draft's list of few who take turns.
const SHORT_PART: u64 = 100;
/// Octets of an entry of the draft's list.
const ENTRY: usize = 8;
/// Octets of a parameter before its value, of a state, and of padding.
const SET_OCTETS: usize = 4 + 4 + 3;

/// State of the lists that announcements have by parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lists {
    /// Time at which the set has left last, and the sending time that it took.
    set_at: Time,
    set_span: Span,
    /// Client whose entry in the draft's list has left last, and the time of that part of the list.
    last_entry: Option<ClientId>,
    part_at: Time,
}

/// Clients that one announcement lists.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) hosts: Option<Vec<(ClientId, HostState)>>,
    pub(super) set: Option<HostSet>,
}

impl Sender {
    /// Returns `true` if announcements have a set, and the draft's list in parts.
    pub(super) fn lists_in_short(&self) -> bool {
        matches!(self.config.group, Group::Closed(_))
            && (self.by_turns() || self.have_taken_turns())
            && self.members.len() > FEW
    }

    /// Returns `true` if the announcement that leaves now is one of the first with a set, and another follows.
    pub(super) fn is_first_of_sets(&self) -> bool {
        self.lists_in_short() && self.phase == Phase::Announcing && self.announced < FIRST
    }

    /// Returns the sending time of the set that has left last.
    pub(super) fn set_span(&self) -> Span {
        self.lists.set_span
    }

    /// Lets the next announcement have the whole set.
    pub(super) fn list_soon(&mut self) {
        self.lists.set_span = Span::ZERO;
    }

    /// Returns the lists of the next announcements, each of which fits a datagram; one, possibly empty, if few are
    /// listed.
    pub(super) fn listings(&mut self, now: Time) -> Vec<Listing> {
        let mut hosts = self.records();
        let mut listings = Vec::new();
        if self.lists_in_short() {
            let others: Vec<_> =
                hosts.extract_if(.., |(_, standing)| *standing != HostState::Accepted).collect();
            let due = self.lists.set_at + self.lists.set_span * self.one_of(SET_PART);
            if self.announced <= FIRST || now >= due {
                listings = self.sets(&others);
                (self.lists.set_at, self.lists.set_span) = (now, self.span_of(&listings));
            }
            let part = self.part_of_list(now, hosts.len(), &others);
            hosts.extend(part);
        }
        let room = self.room_for_list().max(1);
        listings.extend(hosts.chunks(room).map(|piece| Listing { hosts: Some(piece.to_vec()), set: None }));
        if listings.is_empty() {
            listings.push(Listing::default());
        }
        listings
    }

    /// Returns the sets of the invited clients.
    fn sets(&self, hosts: &[(ClientId, HostState)]) -> Vec<Listing> {
        let room = (self.room_for_list() * ENTRY).saturating_sub(SET_OCTETS).max(LONGEST);
        let pending = hosts.iter().filter(|(_, standing)| *standing == HostState::Pending);
        let mut pending = pending.map(|&(host, _)| host).peekable();
        let next = || HostSet::take(HostState::Pending, &mut pending, room);
        core::iter::from_fn(next).map(|set| Listing { hosts: None, set: Some(set) }).collect()
    }

    /// Returns the next entries of the draft's list, beside `named` others: as many as take their part of the rate, and
    /// at least half a datagram.
    fn part_of_list(
        &mut self,
        now: Time,
        named: usize,
        hosts: &[(ClientId, HostState)],
    ) -> Vec<(ClientId, HostState)> {
        let room = self.room_for_list().max(1);
        let each = self.pacer.span(self.config.datagram) * self.one_of(LIST_PART);
        let datagrams = now.since(self.lists.part_at).as_nanos() / each.as_nanos().max(1);
        // The others leave room in their last datagram, which is filled, and is enough if that is half of it.
        let rest = room - named % room;
        let more = if rest * 2 < room { datagrams.max(1) } else { datagrams.saturating_sub(1) };
        let count = (rest + more as usize * room).min(hosts.len());
        self.lists.part_at = now;
        let from = match self.lists.last_entry {
            Some(after) => hosts.partition_point(|(host, _)| *host <= after),
            None => 0,
        };
        let entries: Vec<_> = hosts[from..].iter().chain(&hosts[..from]).take(count).copied().collect();
        self.lists.last_entry = entries.last().map(|(host, _)| *host);
        entries
    }

    /// Returns the divisor of the rate that stands for `part`, as often as lists are needed now.
    fn one_of(&self, part: u64) -> u64 {
        let later = self.progress.pass > 1 || self.phase == Phase::Waiting;
        part * match (later, self.are_nearly_all_here()) {
            (false, false) => 1,
            (false, true) => SELDOM,
            (true, false) => LATER,
            (true, true) => LATER_SELDOM,
        }
    }

    /// Returns the sending time of announcements with these sets.
    fn span_of(&self, sets: &[Listing]) -> Span {
        let octets = |set: &Listing| set.set.as_ref().map_or(0, |set| set.octets().len());
        let fixed = self.config.datagram - self.room_for_list() * ENTRY;
        let span = |set| self.pacer.span(fixed + octets(set));
        sets.iter().fold(Span::ZERO, |sum, set| sum + span(set))
    }

    /// Returns the number of entries of the draft's list that fit an announcement.
    fn room_for_list(&self) -> usize {
        let empty = Listing { hosts: Some(Vec::new()), set: None };
        let empty = Body::Announce(self.announcement(Time::ZERO, empty).into());
        self.config.datagram.saturating_sub(wire::encoded_len(&Message::new(0, empty), 0)) / ENTRY
    }

    /// Returns the clients that announcements list, in the order of their ids, and counts their confirmations.
    fn records(&mut self) -> Vec<(ClientId, HostState)> {
        let repeats = self.confirmations();
        let closed = matches!(self.config.group, Group::Closed(_));
        let mut records = Vec::new();
        for (&id, member) in self.members.iter_mut() {
            let unshown = self.config.secret.is_some() && !member.validated;
            let standing = match member.state {
                MemberState::Active if unshown && !closed => continue,
                MemberState::Active if unshown => HostState::Pending,
                MemberState::Invited => HostState::Pending,
                MemberState::Declined(reason) => HostState::Declined(reason),
                // A confirmation is kept for a few announcements before it is pruned (draft §1.1).
                _ if member.confirmations >= repeats => {
                    if !closed || member.state == MemberState::Done {
                        continue;
                    }
                    // A receiver that is not in the list of a closed group stays out (draft §6). One that is started
                    // again, or comes back, must find itself there. One that takes part ignores its entry.
                    HostState::Pending
                }
                _ => {
                    member.confirmations += 1;
                    HostState::Accepted
                }
            };
            records.push((id, standing));
        }
        records
    }

    /// Returns the interval between announcements once data has begun. Those with the draft's list take a small part of
    /// the rate where receivers take turns.
    pub(super) fn late_interval(&self) -> Span {
        let interval = self.config.late_announce_interval;
        match (&self.config.group, self.config.pace) {
            _ if self.lists_in_short() => {
                // Each fills about a datagram with entries.
                let datagram = self.pacer.span(self.config.datagram);
                self.config.brief_announce_interval.max(datagram * SET_PART)
            }
            (Group::Closed(_), Pace::Rate { rate, .. }) if self.by_turns() => {
                interval.max(rate.time_of_bytes((ENTRY * self.members.len()) as u64) * SHORT_PART)
            }
            _ => interval,
        }
    }
}
