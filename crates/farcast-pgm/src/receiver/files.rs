//! Files of a source: their first and last numbers, and the state of their reception.
//!
//! A file is a TSDU with its [`Descriptor`], followed by its segments; the next file's descriptor follows. So the file
//! of a number is known only up to the first missing descriptor. The receiver neither takes nor asks for data beyond
//! that descriptor before it has come.

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

/// The most files of one source that are received at once.
pub(super) const MOST_OBJECTS: usize = 16;

/// State of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The owner checks what it already has of the file.
    Opening,
    Receiving,
    /// The owner verifies the file.
    Verifying,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    /// Place of the descriptor.
    pub(super) place: Place,
    /// Place of the first segment.
    pub(super) first: Place,
    pub(super) geometry: Geometry,
    pub(super) state: State,
    pub(super) have: Bitmap,
    pub(super) received: Received,
    /// Losses on the path at the time the file began.
    pub(super) passage: Passage,
    /// Transmission groups, if the source makes parity of the file.
    pub(super) groups: Option<Groups>,
}

impl Object {
    pub(super) fn new(
        id: ObjectId,
        place: Place,
        said: &Descriptor,
        config: &ReceiverConfig,
        group: Option<u32>,
    ) -> Result<Self, Reject> {
        if said.size > config.largest {
            return Err(Reject::Limit);
        }
        let first = place.plus(said.behind.into());
        // A file has groups only if it begins where a group does.
        let group = group.filter(|&size| first.group(size) == first && place.group(size) == place);
        let geometry = geometry(said.size, said.segment_size, group).map_err(|_| Reject::OutOfRange)?;
        let have = Bitmap::new(geometry.segments());
        let (state, received, groups) = (State::Opening, Received::default(), group.map(Groups::new));
        Ok(Self { id, place, first, geometry, state, have, received, passage: Passage::default(), groups })
    }

    /// Returns the counts of what has come of the file; `now` is what has come of its source.
    pub(super) fn came(&self, now: Passage) -> Received {
        self.received.passed(self.passage, now)
    }

    /// Returns the place behind the last segment.
    pub(super) fn end(&self) -> Place {
        self.first.plus(self.geometry.segments())
    }

    /// Returns the place of the next file's descriptor: at the beginning of a group, if there are groups.
    pub(super) fn next(&self) -> Place {
        self.groups.as_ref().map_or(self.end(), |groups| self.end().align(groups.size))
    }

    /// Returns the places of the segments.
    pub(super) fn places(&self) -> Range {
        self.first..self.end()
    }

    /// Returns the number of the segment at `place`.
    pub(super) fn segment(&self, place: Place) -> Option<u32> {
        self.places().contains(&place).then(|| (place.0 - self.first.0) as u32)
    }

    /// Returns `true` if datagram `index` of `data` can be segment `segment`.
    pub(super) fn fits(&self, segment: u32, data: &Data, index: u32) -> bool {
        data.tsdu_len(index) == usize::from(self.geometry.payload_len(segment))
            && data.options.fragment.is_none()
            && data.parity.is_none()
    }

    /// Returns the places within `range` of segments that are stored.
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

    /// Returns the offer of this file for the owner.
    pub(super) fn offer(&self, tsi: Tsi, sender: SocketAddr, group: SocketAddr, said: &Descriptor) -> Offer {
        let gsi = tsi.gsi.0.iter().fold(0, |sum, &octet| sum << 8 | u64::from(octet));
        // A file with a digest is the same file in another session.
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
    /// Place of the next descriptor; `None` while none is known: then the next one that comes is taken.
    pub(super) next: Option<Place>,
    /// Files that are being received, by the places of their descriptors.
    pub(super) objects: BTreeMap<Place, Object>,
    /// Everything from the source's beginning on has come or is being received.
    pub(super) is_sound: bool,
    /// Unused numbers before `next`.
    pub(super) unused: Range,
}

impl Files {
    pub(super) const fn new(next: Option<Place>, is_sound: bool) -> Self {
        Self { next, objects: BTreeMap::new(), is_sound, unused: Place(0)..Place(0) }
    }

    /// Returns the place before which missing numbers are asked for: up to there it is known to which file each belongs
    /// and whether it is stored.
    pub(super) fn limit(&self) -> Place {
        let room = self.objects.len() < MOST_OBJECTS;
        let known = self.next.map_or(Place(0), |next| if room { next.next() } else { next });
        // The owner may already have most of this file.
        let opening = self.objects.values().find(|object| object.state == State::Opening);
        opening.map_or(known, |object| known.min(object.first))
    }

    /// Returns the number of unused places in `range`, as far as the current and the newest files tell.
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

    /// Returns the places of segments that are asked for by group.
    pub(super) fn grouped(&self) -> Vec<Range> {
        self.objects.values().filter(|object| object.groups.is_some()).map(Object::places).collect()
    }

    /// Returns the time at which the next group is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.objects.values().filter_map(|object| object.groups.as_ref()?.window.next()).min()
    }

    /// Returns the file of which `place` is a segment.
    pub(super) fn at(&mut self, place: Place) -> Option<&mut Object> {
        let (_, object) = self.objects.range_mut(..=place).next_back()?;
        Some(object).filter(|object| object.segment(place).is_some())
    }

    /// Returns `true` if everything up to `upto` has come and is verified.
    pub(super) fn has_up_to(&self, upto: Place) -> bool {
        let known = self.next.is_some_and(|next| next > upto);
        known && self.is_sound && self.objects.first_key_value().is_none_or(|(&place, _)| place > upto)
    }
}
