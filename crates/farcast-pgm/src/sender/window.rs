//! The transmit window: what has which numbers, from the oldest that can be repaired to the last that is to be sent
//! (RFC 3208 §3.3).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use farcast_core::Run;
use farcast_delivery::{Content, Geometry, ObjectId};

use crate::message::{Data, DataKind, DataOptions, Descriptor, Fragment, Origin};
use crate::sqn::Place;
use crate::wire;

/// A file or a message, and its numbers.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) object: ObjectId,
    /// Its first TPDU, of a file the descriptor.
    pub(super) place: Place,
    pub(super) geometry: Geometry,
    pub(super) descriptor: Option<Box<Descriptor>>,
}

impl Entry {
    /// Its first segment.
    fn first(&self) -> Place {
        self.place.plus(self.descriptor.as_ref().map_or(0, |said| said.behind.into()))
    }

    pub(super) fn end(&self) -> Place {
        self.first().plus(self.geometry.segments())
    }

    /// What each of its TPDUs says of the message that it is a piece of.
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

/// So many segments may come again where what says of what they are was lost.
const FEW: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Window {
    entries: VecDeque<Entry>,
    /// The oldest that can be repaired.
    pub(super) trail: Place,
    /// The first that was not sent.
    pub(super) next: Place,
    /// One past the last that is to be sent.
    pub(super) end: Place,
}

impl Window {
    pub(super) const fn new(first: Place) -> Self {
        Self { entries: VecDeque::new(), trail: first, next: first, end: first }
    }

    /// Gives the next numbers to an object.
    pub(super) fn push(&mut self, object: ObjectId, geometry: Geometry, descriptor: Option<Descriptor>) {
        let entry = Entry { object, place: self.end, geometry, descriptor: descriptor.map(Into::into) };
        self.end = entry.end();
        self.entries.push_back(entry);
    }

    /// How many objects wait to be sent, or are.
    pub(super) fn waiting(&self) -> usize {
        self.entries.iter().rev().take_while(|entry| entry.end() > self.next).count()
    }

    /// How many numbers lie between two places.
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

    /// Octets of files before `place`.
    pub(super) fn octets_before(&self, place: Place) -> u64 {
        let of = |entry: &Entry| {
            let segments = Self::between(entry.first(), place).min(entry.geometry.segments());
            entry.geometry.size().min(u64::from(segments) * u64::from(entry.geometry.segment_size()))
        };
        self.entries.iter().map(of).sum()
    }

    /// Whether `place` says what a file is of more than a few segments: without it, none of those can be kept.
    pub(super) fn is_head_of_many(&self, place: Place) -> bool {
        let entry = self.at(place).filter(|entry| entry.descriptor.is_some() && entry.place == place);
        entry.is_some_and(|entry| entry.geometry.segments() > FEW)
    }

    /// The TPDUs from `place` on, as many as one message can hold of at most `most`.
    pub(super) fn data(&self, kind: DataKind, place: Place, most: u32) -> Option<Data> {
        let entry = self.at(place)?;
        let trail = self.trail.sqn();
        let options = DataOptions::default();
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
        let segments = Run::new(segment, most.min(geometry.segments() - segment))?;
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
            origin: Origin::segments(entry.object, segments),
        })
    }

    /// Nothing before `trail` is repaired any more; which objects that were.
    pub(super) fn advance(&mut self, trail: Place) -> impl Iterator<Item = ObjectId> + '_ {
        self.trail = self.trail.max(trail.min(self.next));
        let trail = self.trail;
        core::iter::from_fn(move || {
            let over = self.entries.front().is_some_and(|entry| entry.end() <= trail);
            if over { self.entries.pop_front().map(|entry| entry.object) } else { None }
        })
    }
}
