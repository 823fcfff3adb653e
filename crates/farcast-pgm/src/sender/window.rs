//! The transmit window: the objects and their numbers, from the oldest number that can be repaired to the last that is
//! to be sent (RFC 3208 §3.3).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::num::NonZeroU32;
use core::ops::Range;

use farcast_core::Run;
use farcast_delivery::{Content, Geometry, ObjectId};

use crate::message::{Data, DataKind, DataOptions, Descriptor, Fragment, Origin};
use crate::sqn::Place;
use crate::wire;

/// A file or a message, with its numbers.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) object: ObjectId,
    /// Place of its first TPDU, which is the descriptor of a file.
    pub(super) place: Place,
    pub(super) geometry: Geometry,
    pub(super) descriptor: Option<Box<Descriptor>>,
}

impl Entry {
    /// Returns the place of the first segment.
    fn first(&self) -> Place {
        self.place.plus(self.descriptor.as_ref().map_or(0, |said| said.behind.into()))
    }

    pub(super) fn end(&self) -> Place {
        if self.geometry.segments() == 0 {
            self.place.next()
        } else {
            self.first().plus(self.geometry.segments())
        }
    }

    fn is_withdrawn(&self) -> bool {
        self.descriptor.as_ref().is_some_and(|said| said.withdrawn)
    }

    fn tpdus(&self) -> u32 {
        self.geometry.segments() + u32::from(self.descriptor.is_some())
    }

    /// Returns the fragment option of a TPDU that is a piece of a message.
    fn fragment(&self, segment: u32) -> Option<Fragment> {
        let is_cut = self.descriptor.is_none() && self.geometry.segments() > 1;
        is_cut.then(|| Fragment {
            first: self.place.sqn(),
            offset: segment * u32::from(self.geometry.segment_size()),
            len: self.geometry.size() as u32,
            null: false,
        })
    }
}

/// Number of segments that may come again if their descriptor was lost.
const FEW: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Window {
    entries: VecDeque<Entry>,
    /// Place of the oldest number that can be repaired.
    pub(super) trail: Place,
    /// Place of the first number that was not sent.
    pub(super) next: Place,
    /// Place behind the last number that is to be sent.
    pub(super) end: Place,
    /// Place behind the last number that was sent.
    pub(super) lead: Place,
    /// Numbers of a transmission group; 1 without parity.
    group: u32,
}

impl Window {
    pub(super) const fn new(first: Place, group: u32) -> Self {
        Self { entries: VecDeque::new(), trail: first, next: first, end: first, lead: first, group }
    }

    /// Appends an object, and gives it the next numbers.
    pub(super) fn push(&mut self, object: ObjectId, geometry: Geometry, descriptor: Option<Descriptor>) {
        let place = self.end.align(self.group);
        let entry = Entry { object, place, geometry, descriptor: descriptor.map(Into::into) };
        self.end = entry.end();
        self.entries.push_back(entry);
    }

    /// Notes that `place` was sent, and moves `next` past unused numbers (RFC 3208 §11.2: a group that ends early
    /// leaves some).
    pub(super) fn sent(&mut self, place: Place) {
        (self.lead, self.next) = (place.next(), place.next());
        self.pass_unused();
    }

    /// Moves `next` past unused numbers, and past the segments of a withdrawn file. The lead is then behind these, so that
    /// receivers ask for them and are told.
    fn pass_unused(&mut self) {
        let behind = self.entries.partition_point(|entry| entry.place <= self.next);
        let entry = behind.checked_sub(1).and_then(|at| self.entries.get(at));
        match entry.filter(|entry| self.next < entry.end()) {
            Some(entry) if self.next > entry.place && entry.is_withdrawn() => {
                self.lead = entry.end();
                self.next = self.entries.get(behind).map_or(self.lead, |entry| entry.place);
            }
            Some(entry) if self.next > entry.place => self.next = self.next.max(entry.first()),
            Some(_) => {}
            None => self.next = self.entries.get(behind).map_or(self.next, |entry| entry.place),
        }
    }

    /// Withdraws a file, whose descriptor says so from then on. Returns its places, or `None` if nothing of it is left to
    /// withdraw.
    pub(super) fn withdraw(&mut self, object: ObjectId) -> Option<Range<Place>> {
        let entry = self.entries.iter_mut().find(|entry| entry.object == object)?;
        let said = entry.descriptor.as_mut().filter(|said| !said.withdrawn && said.size > 0)?;
        said.withdrawn = true;
        let places = entry.place..entry.end();
        self.pass_unused();
        Some(places)
    }

    /// Returns the place of the descriptor that answers requests for `place`, if its file is withdrawn.
    pub(super) fn answer_for(&self, place: Place) -> Option<Place> {
        self.at(place).filter(|entry| entry.is_withdrawn()).map(|entry| entry.place)
    }

    /// Returns the number of TPDUs of all objects.
    pub(super) fn tpdus(&self) -> u32 {
        self.entries.iter().map(Entry::tpdus).sum()
    }

    /// Returns `true` if `place` belongs to an object.
    pub(super) fn has(&self, place: Place) -> bool {
        self.at(place).is_some_and(|entry| place == entry.place || place >= entry.first())
    }

    /// Returns the transmission group that begins at `base`, if all of it was sent: its object, its block in the
    /// object, the number of its data packets, and the octets of each.
    pub(super) fn group_at(&self, base: Place) -> Option<(ObjectId, u32, u32, u16)> {
        let entry = self.at(base).filter(|entry| base >= entry.first() && !entry.is_withdrawn())?;
        let block = entry.geometry.block_of(Self::between(entry.first(), base));
        let len = entry.geometry.block_len(block);
        let is_sent = base.plus(len) <= self.next;
        is_sent.then_some((entry.object, block, len, entry.geometry.segment_size()))
    }

    /// Returns the beginning of the group whose last packet is `place`.
    pub(super) fn ended_by(&self, place: Place) -> Option<Place> {
        let base = place.group(self.group);
        let (.., len, _) = self.group_at(base)?;
        (base.plus(len) == place.next()).then_some(base)
    }

    /// Returns the number of data packets of the group that ends early with `place` (`OPT_CURR_TGSIZE`).
    pub(super) fn short(&self, place: Place) -> Option<u32> {
        let entry = self.at(place).filter(|_| self.group > 1)?;
        if place == entry.place {
            return Some(1);
        }
        let segment = Self::between(entry.first(), place);
        let len = segment % self.group + 1;
        (segment + 1 == entry.geometry.segments() && len < self.group).then_some(len)
    }

    /// Returns the number of segments from `place` on, at most `most`, that may leave in one message: none crosses a
    /// group.
    fn within_group(&self, place: Place, left: u32, most: u32) -> u32 {
        if self.group == 1 {
            return most.min(left);
        }
        let room = (self.group - Self::between(place.group(self.group), place)).min(left);
        // A packet that ends a group early says so, and leaves alone.
        let ends = self.short(place.plus(room - 1)).is_some();
        most.min(if ends { (room - 1).max(1) } else { room })
    }

    /// Returns the number of objects that are not sent completely.
    pub(super) fn waiting(&self) -> usize {
        self.entries.iter().rev().take_while(|entry| entry.end() > self.next).count()
    }

    /// Returns the number of places from `from` to `to`.
    pub(super) const fn between(from: Place, to: Place) -> u32 {
        to.0.saturating_sub(from.0) as u32
    }

    pub(super) fn get(&self, object: ObjectId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.object == object)
    }

    fn at(&self, place: Place) -> Option<&Entry> {
        let behind = self.entries.partition_point(|entry| entry.place <= place);
        self.entries.get(behind.checked_sub(1)?).filter(|entry| place < entry.end())
    }

    /// Returns the octets of files before `place`.
    pub(super) fn octets_before(&self, place: Place) -> u64 {
        let of = |entry: &Entry| {
            let segments = Self::between(entry.first(), place).min(entry.geometry.segments());
            entry.geometry.size().min(u64::from(segments) * u64::from(entry.geometry.segment_size()))
        };
        self.entries.iter().map(of).sum()
    }

    /// Returns `true` if `place` is the descriptor of a file of more than a few segments; a receiver without it can
    /// keep none of them.
    pub(super) fn is_head_of_many(&self, place: Place) -> bool {
        let entry = self.at(place).filter(|entry| entry.descriptor.is_some() && entry.place == place);
        entry.is_some_and(|entry| entry.geometry.segments() > FEW)
    }

    /// Returns the TPDUs from `place` on, as many as fit one message and at most `most`.
    pub(super) fn data(&self, kind: DataKind, place: Place, most: u32) -> Option<Data> {
        let entry = self.at(place)?;
        let trail = self.trail.sqn();
        let options = DataOptions { group_size: self.short(place), ..DataOptions::default() };
        if place > entry.place && place < entry.first() {
            return None;
        }
        if place < entry.first() {
            let descriptor = entry.descriptor.clone()?;
            let len = wire::descriptor_len(&descriptor);
            let (sqn, count, origin) = (place.sqn(), NonZeroU32::MIN, Origin(Content::None));
            let (parity, descriptor) = (None, Some(descriptor));
            return Some(Data {
                kind,
                sqn,
                count,
                trail,
                parity,
                options,
                descriptor,
                len,
                last_len: len,
                origin,
            });
        }
        let (segment, geometry) = (Self::between(entry.first(), place), &entry.geometry);
        let most = self.within_group(place, geometry.segments() - segment, most);
        let segments = Run::new(segment, most)?;
        let last_len = geometry.payload_len(segments.last());
        Some(Data {
            kind,
            sqn: place.sqn(),
            count: NonZeroU32::new(segments.count())?,
            trail,
            parity: None,
            options: DataOptions { fragment: entry.fragment(segment), ..options },
            descriptor: None,
            len: if segments.count() == 1 { last_len } else { geometry.segment_size() },
            last_len,
            origin: Origin::segments(entry.object, geometry, segments),
        })
    }

    /// Ends the repair of everything before `trail`, and returns the objects that are released by that.
    pub(super) fn advance(&mut self, trail: Place) -> impl Iterator<Item = ObjectId> + '_ {
        self.trail = self.trail.max(trail.min(self.next));
        let trail = self.trail;
        core::iter::from_fn(move || {
            let over = self.entries.front().is_some_and(|entry| entry.end() <= trail);
            if over { self.entries.pop_front().map(|entry| entry.object) } else { None }
        })
    }
}
