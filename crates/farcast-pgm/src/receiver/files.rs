//! Files: where one begins and ends among the numbers, and what has come of it.
//!
//! A file is a TSDU that says what it is, its [`Descriptor`], and its segments behind it; the next file's descriptor
//! follows. So what a number is of is known up to the first descriptor that is not here yet, and what lies beyond is
//! not taken, or asked for, before that has come.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{Geometry, ObjectId, Offer, Passage, Received};

use super::groups::Groups;
use super::window::Range;
use crate::config::{ReceiverConfig, geometry, parity_of};
use crate::message::{Data, Descriptor, Tsi};
use crate::sqn::Place;

/// The most files that are under way at once, of one source.
pub(super) const MOST_OBJECTS: usize = 16;

/// Where a file stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its owner looks what is there of it.
    Opening,
    Receiving,
    /// Its owner verifies it.
    Verifying,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    /// Its descriptor.
    pub(super) place: Place,
    /// Its first segment.
    pub(super) first: Place,
    pub(super) geometry: Geometry,
    pub(super) state: State,
    pub(super) have: Bitmap,
    pub(super) received: Received,
    /// The losses on the way when it began.
    pub(super) passage: Passage,
    /// Where its source makes parity of groups of it.
    pub(super) groups: Option<Groups>,
}

impl Object {
    pub(super) fn new(
        id: ObjectId,
        place: Place,
        said: &Descriptor,
        (config, group): (&ReceiverConfig, Option<u32>),
    ) -> Result<Self, Reject> {
        if said.size > config.largest {
            return Err(Reject::Limit);
        }
        let first = place.plus(said.behind.into());
        // Groups begin where a file does, or it has none.
        let group = group.filter(|&size| first.group(size) == first && place.group(size) == place);
        let geometry = geometry(said.size, said.segment_size, group).map_err(|_| Reject::OutOfRange)?;
        let have = Bitmap::new(geometry.segments());
        let (state, received, groups) = (State::Opening, Received::default(), group.map(Groups::new));
        Ok(Self { id, place, first, geometry, state, have, received, passage: Passage::default(), groups })
    }

    /// What has come of it, where `now` is what has come of its source.
    pub(super) fn came(&self, now: Passage) -> Received {
        self.received.passed(self.passage, now)
    }

    /// One past its last segment.
    pub(super) fn end(&self) -> Place {
        self.first.plus(self.geometry.segments())
    }

    /// Where the next file's descriptor is: at the beginning of a group, if there are groups.
    pub(super) fn next(&self) -> Place {
        self.groups.as_ref().map_or(self.end(), |groups| self.end().align(groups.size))
    }

    /// Its segments' places.
    pub(super) fn places(&self) -> Range {
        self.first..self.end()
    }

    /// The segment at `place`.
    pub(super) fn segment(&self, place: Place) -> Option<u32> {
        self.places().contains(&place).then(|| (place.0 - self.first.0) as u32)
    }

    /// Whether datagram `index` of `data` can be segment `segment`.
    pub(super) fn fits(&self, segment: u32, data: &Data, index: u32) -> bool {
        data.tsdu_len(index) == usize::from(self.geometry.payload_len(segment))
            && data.options.fragment.is_none()
            && data.parity.is_none()
    }

    /// Places of segments that are here, within `range`.
    pub(super) fn held_in(&self, range: &Range) -> impl Iterator<Item = Range> + '_ {
        let clip = |place: Place| place.max(self.first).min(self.end());
        let (from, to) = (clip(range.start).0 - self.first.0, clip(range.end).0 - self.first.0);
        let (mut from, to) = (from as u32, to as u32);
        core::iter::from_fn(move || {
            let run = self.have.next_run(from).and_then(|run| run.clip(from, to))?;
            from = run.end();
            Some(self.range_of(run))
        })
    }

    pub(super) fn range_of(&self, run: Run) -> Range {
        self.first.plus(run.first())..self.first.plus(run.end())
    }

    /// What its owner is told of it.
    pub(super) fn offer(
        &self,
        tsi: Tsi,
        (sender, group): (SocketAddr, SocketAddr),
        said: &Descriptor,
    ) -> Offer {
        let gsi = tsi.gsi.0.iter().fold(0, |sum, &octet| sum << 8 | u64::from(octet));
        // What is vouched for is the same in another session.
        let port = if said.vouched.is_some() { 0 } else { tsi.port };
        let session = (gsi as u32) << 16 | u32::from(port);
        Offer {
            object: self.id,
            sender,
            session,
            group: group.ip(),
            name: said.name.clone(),
            provisional: false,
            id: None,
            serial: Some(gsi >> 16 << 32 | u64::from(said.number)),
            vouched: said.vouched.map(Box::new),
            geometry: self.geometry,
            parity_symbols: self.groups.as_ref().map_or(0, |groups| parity_of(groups.size)),
            overwrite: true,
            rate_bps: u32::MAX,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Files {
    /// Where the next descriptor is; `None` while none is known of, and the next that comes will do.
    pub(super) next: Option<Place>,
    /// Those under way, by their descriptors.
    pub(super) objects: BTreeMap<Place, Object>,
    /// Whether everything from the source's beginning on is here, or under way.
    pub(super) is_sound: bool,
    /// Numbers before `next` that are nobody's.
    pub(super) unused: Range,
}

impl Files {
    pub(super) const fn new(next: Option<Place>, is_sound: bool) -> Self {
        Self { next, objects: BTreeMap::new(), is_sound, unused: Place(0)..Place(0) }
    }

    /// Before which place it is known what is of what, and what of that is here: so far is asked for what lacks.
    pub(super) fn limit(&self) -> Place {
        let room = self.objects.len() < MOST_OBJECTS;
        let known = self.next.map_or(Place(0), |next| if room { next.next() } else { next });
        // Its owner may have most of it.
        let opening = self.objects.values().find(|object| object.state == State::Opening);
        opening.map_or(known, |object| known.min(object.first))
    }

    /// How many numbers in `range` are nobody's, as far as files under way and the newest tell.
    pub(super) fn nobodys(&self, range: &Range) -> u64 {
        let gaps = self
            .objects
            .values()
            .flat_map(|object| [object.place.next()..object.first, object.end()..object.next()]);
        let newest =
            Some(self.unused.clone()).filter(|unused| gaps.clone().all(|gap| gap.start != unused.start));
        let within = |gap: Range| gap.end.min(range.end).0.saturating_sub(gap.start.max(range.start).0);
        gaps.clone().chain(newest).map(within).sum()
    }

    /// Where segments are that groups ask for.
    pub(super) fn grouped(&self) -> Vec<Range> {
        self.objects.values().filter(|object| object.groups.is_some()).map(Object::places).collect()
    }

    /// When a group is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.objects.values().filter_map(|object| object.groups.as_ref()?.window.next()).min()
    }

    /// The file of which `place` is a segment.
    pub(super) fn at(&mut self, place: Place) -> Option<&mut Object> {
        let (_, object) = self.objects.range_mut(..=place).next_back()?;
        Some(object).filter(|object| object.segment(place).is_some())
    }

    /// Whether all up to `upto` is here and verified.
    pub(super) fn has_up_to(&self, upto: Place) -> bool {
        let known = self.next.is_some_and(|next| next > upto);
        known && self.is_sound && self.objects.first_key_value().is_none_or(|(&place, _)| place > upto)
    }
}
