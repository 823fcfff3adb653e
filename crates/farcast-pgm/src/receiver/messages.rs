//! Messages (APDUs), reassembled and delivered in their turn (RFC 3208 §6.1, §9.2).

use alloc::collections::{BTreeMap, VecDeque};

use farcast_core::engine::Reject;

use super::window::Range;
use crate::event::{ApduId, MessageEvent, ReceiverEvent};
use crate::message::{Data, Tsi};
use crate::sqn::Place;

/// A message of which a part has come.
#[derive(Clone, Copy, Debug)]
struct Apdu {
    len: u32,
    /// Octets that have come.
    have: u32,
    /// One past the last TPDU that has come.
    end: Place,
}

#[derive(Clone, Debug)]
pub(super) struct Messages {
    is_ordered: bool,
    /// Place before which everything was delivered or reported as lost.
    next: Place,
    /// Incomplete or undelivered messages, by the places of their first TPDUs.
    apdus: BTreeMap<Place, Apdu>,
    /// First TPDU of the message, for each TPDU that has come and was not delivered.
    held: BTreeMap<Place, Place>,
    /// Octets of all of these messages, by their announced lengths.
    memory: u64,
    /// Ranges that can no longer be obtained and were not reported: first place to one behind the last.
    lost: BTreeMap<Place, Place>,
    /// Place before which everything was delivered and is kept by the owner.
    pub(super) settled: Option<Place>,
}

impl Messages {
    pub(super) const fn new(is_ordered: bool, next: Place) -> Self {
        Self {
            is_ordered,
            next,
            apdus: BTreeMap::new(),
            held: BTreeMap::new(),
            memory: 0,
            lost: BTreeMap::new(),
            settled: None,
        }
    }

    /// Notes that the owner has kept everything delivered so far.
    pub(super) fn settle(&mut self) {
        self.settled = Some(self.next);
    }

    /// Moves the beginning from `begin` back to `place`. Returns `true` if that is possible.
    pub(super) fn rejoin(&mut self, begin: Place, place: Place) -> bool {
        let can = place < begin && (!self.is_ordered || self.next == begin);
        if can {
            self.next = self.next.min(place);
        }
        can
    }

    /// Returns the first place, the length and the offset of the part that `data` at `place` is of its message.
    fn part(place: Place, data: &Data) -> Result<(Place, u32, u32), Reject> {
        let len = u32::from(data.len);
        let Some(fragment) = data.options.fragment else { return Ok((place, len, 0)) };
        let first = place.near(fragment.first);
        let end = fragment.offset.checked_add(len).filter(|&end| end <= fragment.len);
        let is_first = (first == place) == (fragment.offset == 0);
        if first > place || end.is_none() || len == 0 || !is_first {
            return Err(Reject::Inconsistent);
        }
        Ok((first, fragment.len, fragment.offset))
    }

    /// Checks that `data` can be taken, where pending messages may have `octets` octets and `tpdus` TPDUs.
    pub(super) fn check(&self, place: Place, data: &Data, octets: u64, tpdus: u32) -> Result<(), Reject> {
        let (first, len, _) = Self::part(place, data)?;
        let is_begun = self.apdus.contains_key(&first);
        let is_full = !is_begun && self.memory + u64::from(len) > octets;
        // The next message is always taken: all others wait for it.
        let is_next = self.is_ordered && first <= self.next;
        if !is_next && (is_full || self.held.len() as u64 >= u64::from(tpdus)) {
            return Err(Reject::Limit);
        }
        let fits = |apdu: &Apdu| apdu.len == len && apdu.have + u32::from(data.len) <= len;
        if self.apdus.get(&first).is_none_or(fits) { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// Takes `data`, which is new.
    pub(super) fn take(&mut self, tsi: Tsi, place: Place, data: &Data, events: &mut VecDeque<ReceiverEvent>) {
        let Ok((first, len, offset)) = Self::part(place, data) else { return };
        let memory = &mut self.memory;
        let apdu = self.apdus.entry(first).or_insert_with(|| {
            *memory += u64::from(len);
            Apdu { len, have: 0, end: place }
        });
        apdu.have += u32::from(data.len);
        apdu.end = apdu.end.max(place.next());
        let is_whole = apdu.have == len;
        self.held.insert(place, first);
        let id = ApduId { tsi, at: first.0 };
        events.push_back(ReceiverEvent::Own(MessageEvent::Part { apdu: id, len, offset }));
        if self.is_ordered {
            self.tell(tsi, events);
        } else if is_whole {
            self.deliver(tsi, first, events);
        }
    }

    /// Notes that `range` can no longer be obtained.
    pub(super) fn lose(&mut self, tsi: Tsi, range: &Range, events: &mut VecDeque<ReceiverEvent>) {
        self.lost.insert(range.start, range.end);
        self.tell(tsi, events);
    }

    fn deliver(&mut self, tsi: Tsi, first: Place, events: &mut VecDeque<ReceiverEvent>) {
        if let Some(apdu) = self.apdus.remove(&first) {
            self.memory -= u64::from(apdu.len);
            self.let_go(first, apdu.end);
            events.push_back(ReceiverEvent::Own(MessageEvent::Apdu(ApduId { tsi, at: first.0 })));
        }
    }

    /// Forgets the TPDUs of a message.
    fn let_go(&mut self, first: Place, end: Place) {
        for at in first.0..end.0 {
            self.held.remove(&Place(at));
        }
    }

    /// Reports everything whose turn has come.
    fn tell(&mut self, tsi: Tsi, events: &mut VecDeque<ReceiverEvent>) {
        if !self.is_ordered {
            while let Some((first, end)) = self.lost.pop_first() {
                self.tell_lost(tsi, first, end, events);
            }
            return;
        }
        loop {
            if let Some(end) = self.lost.remove(&self.next) {
                self.tell_lost(tsi, self.next, end, events);
                self.next = end;
                continue;
            }
            let Some(&first) = self.held.get(&self.next) else { return };
            match self.apdus.get(&first) {
                Some(apdu) if first == self.next && apdu.have == apdu.len => {
                    self.next = apdu.end;
                    self.deliver(tsi, first, events);
                }
                // Its first TPDU was lost or dropped, so it can never be complete.
                Some(_) if first < self.next => self.drop_one(tsi, first, events),
                // A later part of it is lost.
                Some(apdu) if self.lost.range(first..).next().is_some_and(|(&at, _)| at <= apdu.end) => {
                    self.drop_one(tsi, first, events);
                }
                // Another message begins at the place where this one should continue.
                Some(apdu) if self.is_cut_off(first, apdu.end) => self.drop_one(tsi, first, events),
                Some(_) => return,
                // A later TPDU of a dropped message.
                None => {
                    self.held.remove(&self.next);
                    self.next = self.next.next();
                }
            }
        }
    }

    /// Returns `true` if everything of the message that begins at `first` has come up to `end`, where another one
    /// begins.
    fn is_cut_off(&self, first: Place, end: Place) -> bool {
        self.held.contains_key(&end) && (first.0..end.0).all(|at| self.held.contains_key(&Place(at)))
    }

    fn drop_one(&mut self, tsi: Tsi, first: Place, events: &mut VecDeque<ReceiverEvent>) {
        if let Some(apdu) = self.apdus.remove(&first) {
            self.memory -= u64::from(apdu.len);
        }
        events.push_back(ReceiverEvent::Own(MessageEvent::Dropped(ApduId { tsi, at: first.0 })));
    }

    /// Reports a loss, and drops the message of which it was a part.
    fn tell_lost(&mut self, tsi: Tsi, first: Place, end: Place, events: &mut VecDeque<ReceiverEvent>) {
        if !self.is_ordered {
            let before = self.apdus.range(..=first).next_back().map(|(&at, &apdu)| (at, apdu));
            if let Some((at, apdu)) = before.filter(|(_, apdu)| apdu.have < apdu.len && apdu.end >= first) {
                self.let_go(at, apdu.end);
                self.drop_one(tsi, at, events);
            }
        }
        let count = (end.0 - first.0) as u32;
        events.push_back(ReceiverEvent::Own(MessageEvent::Lost {
            tsi,
            sqn: first.sqn(),
            at: first.0,
            count,
        }));
    }

    /// Drops incomplete messages that end before `trail`: everything there has come or was reported as lost.
    pub(super) fn prune(&mut self, tsi: Tsi, trail: Place, events: &mut VecDeque<ReceiverEvent>) {
        while let Some((&first, &apdu)) = self.apdus.first_key_value() {
            if self.is_ordered || apdu.end > trail || apdu.have == apdu.len {
                return;
            }
            self.let_go(first, apdu.end);
            self.drop_one(tsi, first, events);
        }
    }
}
