//! Parity that a source has yet to send, by transmission group (RFC 3208 §11.3).

use alloc::collections::{BTreeMap, VecDeque};
use core::num::NonZeroU32;

use farcast_core::engine::{Message as _, Transmit};
use farcast_core::{Run, Span, Time};
use farcast_delivery::Content;

use super::Sender;
use crate::config::{Grouping, parity_of};
use crate::message::{Body, Data, DataKind, DataOptions, Message, Origin, Parity};
use crate::sqn::{GroupWant, Place};

/// Number of groups whose last request for parity is remembered.
const REMEMBERED: usize = 1 << 16;

/// A parity packet that is due: the place at which its group begins, and its index in the group's parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Due {
    pub(super) base: Place,
    pub(super) index: u32,
    /// A receiver asked for it.
    pub(super) is_repair: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parities {
    /// First place of the group that has just been sent, and the number of its unasked parity packets that have left.
    ahead: Option<(Place, u32)>,
    /// Packets that were asked for and are still being gathered, by group.
    gathered: BTreeMap<Place, u32>,
    /// Packets that are to be sent, by group.
    ready: BTreeMap<Place, u32>,
    /// Index of the next parity packet, by group, for groups that were asked for.
    next: BTreeMap<Place, u32>,
    /// Time and number of packets of the last request or repair, by group, while later requests are held off.
    recent: BTreeMap<Place, (Time, u32)>,
    order: VecDeque<(Time, Place)>,
}

impl Parities {
    /// Returns `true` if anything is to be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.ahead.is_some() || !self.ready.is_empty()
    }

    /// Returns `true` if anything is to be sent or is being gathered.
    pub(super) fn is_any(&self) -> bool {
        self.is_ready() || !self.gathered.is_empty()
    }

    /// Returns the number of packets that were asked for and are to be sent.
    pub(super) fn len(&self) -> u32 {
        self.ready.values().sum()
    }

    /// Begins the unasked parity of the group at `base`, all of which has left.
    pub(super) fn begin(&mut self, base: Place, grouping: &Grouping) {
        if grouping.ahead > 0 {
            self.ahead = Some((base, 0));
        }
    }

    /// Notes a request for packets of a group. Returns `true` if it asks for more than the latest
    /// one.
    pub(super) fn ask(&mut self, now: Time, GroupWant { base, count }: GroupWant, holdoff: Span) -> bool {
        while let Some((at, old)) = self
            .order
            .front()
            .copied()
            .filter(|&(at, _)| now.since(at) >= holdoff || self.order.len() > REMEMBERED)
        {
            self.order.pop_front();
            if self.recent.get(&old).is_some_and(|&(noted, _)| noted == at) {
                self.recent.remove(&old);
            }
        }
        let lately = self.recent.get(&base).map_or(0, |&(_, count)| count);
        if count <= lately {
            return false;
        }
        self.note(now, base, count);
        // Some of those asked for lately may have left, so only the difference is added.
        let pending = self.gathered.get(&base).copied().unwrap_or(0);
        let waiting = self.ready.get(&base).copied().unwrap_or(0);
        let more = if lately > 0 { count - lately } else { count.saturating_sub(pending + waiting) };
        if more > 0 {
            self.gathered.insert(base, pending + more);
        }
        true
    }

    fn note(&mut self, at: Time, base: Place, count: u32) {
        self.recent.insert(base, (at, count));
        self.order.push_back((at, base));
    }

    /// Moves the gathered packets to those that are to be sent.
    pub(super) fn commit(&mut self) {
        for (base, count) in core::mem::take(&mut self.gathered) {
            *self.ready.entry(base).or_default() += count;
        }
    }

    /// Returns the next packet to send; unasked packets come first.
    pub(super) fn next(&self, grouping: &Grouping) -> Option<Due> {
        self.unasked().or_else(|| self.asked(grouping))
    }

    /// Returns the next unasked packet.
    pub(super) fn unasked(&self) -> Option<Due> {
        self.ahead.map(|(base, index)| Due { base, index, is_repair: false })
    }

    /// Returns the next packet that was asked for.
    pub(super) fn asked(&self, grouping: &Grouping) -> Option<Due> {
        let &base = self.ready.first_key_value()?.0;
        let index = self.next.get(&base).copied().unwrap_or(grouping.ahead);
        Some(Due { base, index, is_repair: true })
    }

    /// Notes that `due` was sent at `at`.
    pub(super) fn sent(&mut self, at: Time, due: Due, grouping: &Grouping) {
        let Due { base, index, is_repair } = due;
        if !is_repair {
            self.ahead = Some((base, index + 1)).filter(|&(_, next)| next < grouping.ahead);
            return;
        }
        // Each repair takes a new parity packet, as long as there are any (RFC 3208 §11.3).
        self.next.insert(base, (index + 1) % parity_of(grouping.size));
        if let Some(left) = self.ready.get_mut(&base) {
            *left -= 1;
            if *left == 0 {
                self.ready.remove(&base);
            }
        }
        let lately = self.recent.get(&base).map_or(1, |&(_, count)| count);
        self.note(at, base, lately);
    }

    /// Forgets the group at `base`, which has no parity.
    pub(super) fn forget(&mut self, base: Place) {
        self.ahead = self.ahead.filter(|&(ahead, _)| ahead != base);
        self.ready.remove(&base);
    }
}

impl Sender {
    /// Returns the TPDUs of parity sent.
    pub fn parity_sent(&self) -> u64 {
        self.parity_sent
    }

    /// Returns the parity packet `due` (RFC 3208 §11.1), whose number is one of its group's.
    pub(super) fn parity(&mut self, now: Time, due: Due) -> Option<Transmit<Message>> {
        let Due { base, index, is_repair } = due;
        let grouping = self.config.parity?;
        let Some((object, block, count, len)) = self.window.group_at(base) else {
            self.parities.forget(base);
            return None;
        };
        self.core.pacer.settle(now);
        let group_size = (count < grouping.size).then_some(count);
        let message = self.message(Body::Data(Data {
            kind: if is_repair { DataKind::Repair } else { DataKind::Original },
            sqn: base.plus(index % grouping.size).sqn(),
            count: NonZeroU32::MIN,
            trail: self.window.trail.sqn(),
            parity: Some(Parity { group: index / grouping.size, var_len: false }),
            options: DataOptions { group_size, ..DataOptions::default() },
            descriptor: None,
            len,
            last_len: len,
            origin: Origin(Content::Parity { object, block, symbols: Run::one(index) }),
        }));
        let spacing = self.core.pacer.span(message.wire_len(0));
        self.core.pacer.charge(spacing);
        self.parities.sent(now, due, &grouping);
        self.parity_sent += 1;
        self.sent.1 += u64::from(is_repair);
        self.note_sent(now);
        let router_alert = self.config.router_alert && is_repair;
        Some(Transmit { router_alert, ..Transmit::new(message, self.config.group).spaced(spacing) })
    }
}
