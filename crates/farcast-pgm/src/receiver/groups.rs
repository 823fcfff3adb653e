//! Transmission groups of a file: the number of packets that each lacks, and the requests for them (RFC 3208 §11.4).
//!
//! A group is checked once all of it was sent. It then has one state machine, like that of a missing number, and asks
//! for as many packets as it lacks. It asks for parity by count; where parity is not to be had, for that many segments.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Geometry;

use super::files::Object;
use super::window::Window;
use crate::config::parity_of;
use crate::event::ReceiverEvent;
use crate::sqn::Place;

/// Approximate octets of memory for a group's parity, besides the packets.
const BOOKKEEPING: u64 = 128;

/// A request of a group.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The request is for parity by count. Its single place then encodes the number of packets: the offset of the place
    /// in the group, plus 1. Otherwise the places are the segments that are asked for.
    pub(super) by_count: bool,
    pub(super) places: Vec<Place>,
}

/// The groups of a file. Places of the window are the numbers of groups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Data packets of a full group.
    pub(super) size: u32,
    pub(super) window: Window,
    /// Parity packets that are stored, by group.
    held: BTreeMap<u32, Bitmap>,
    /// Groups that are being rebuilt.
    decoding: BTreeSet<u32>,
    /// Octets of memory for the stored parity.
    pub(super) memory: u64,
}

impl Groups {
    pub(super) fn new(size: u32) -> Self {
        let (held, decoding) = (BTreeMap::new(), BTreeSet::new());
        Self { size, window: Window::new(Place(0)), held, decoding, memory: 0 }
    }

    /// Returns the number of stored parity packets of a group.
    fn parity(&self, block: u32) -> u32 {
        self.held.get(&block).map_or(0, Bitmap::count)
    }

    fn cost(geometry: &Geometry, symbols: u32) -> u64 {
        BOOKKEEPING + u64::from(symbols) * u64::from(geometry.segment_size())
    }

    fn forget(&mut self, geometry: &Geometry, block: u32) {
        if let Some(held) = self.held.remove(&block) {
            self.memory -= Self::cost(geometry, held.count());
        }
    }
}

impl Object {
    fn missing_in(&self, block: u32) -> u32 {
        self.geometry.block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// Returns the number of packets that a group still lacks.
    pub(super) fn lacks(&self, block: u32) -> u32 {
        match &self.groups {
            Some(groups) if groups.decoding.contains(&block) => 0,
            Some(groups) => self.missing_in(block).saturating_sub(groups.parity(block)),
            None => self.missing_in(block),
        }
    }

    /// Returns the request of a group, where parity may take `room` octets; `None` if the group lacks nothing or is
    /// being rebuilt.
    pub(super) fn request(&self, block: u32, room: u64) -> Option<Request> {
        let groups = self.groups.as_ref()?;
        let (lacks, run) = (self.lacks(block), self.geometry.block_run(block)?);
        if lacks == 0 {
            return None;
        }
        if Groups::cost(&self.geometry, lacks) <= room {
            // Packets that a short group does not have count as missing (RFC 3208 §11.4).
            let count = lacks + groups.size - run.count();
            let places = alloc::vec![self.first.plus(run.first() + count - 1)];
            return Some(Request { by_count: true, places });
        }
        let gaps = self.have.gaps_in(run).flat_map(Run::segments).take(lacks as usize);
        let places = gaps.map(|segment| self.first.plus(segment)).collect();
        Some(Request { by_count: false, places })
    }

    /// Puts the next request of a group off to `until`.
    pub(super) fn postpone(&mut self, group: Place, until: Time) {
        if let Some(groups) = &mut self.groups {
            groups.window.postpone(group, until);
        }
    }

    /// Starts the requests of groups that lack something. Everything before `lead` was sent, so nothing more of these
    /// groups comes by itself.
    pub(super) fn look_at_groups(&mut self, lead: Place) {
        let sent = lead.0.saturating_sub(self.first.0).min(self.geometry.segments().into()) as u32;
        let (geometry, have) = (&self.geometry, &self.have);
        let Some(Groups { window, .. }) = &mut self.groups else { return };
        let ended = if sent == geometry.segments() { geometry.blocks() } else { geometry.block_of(sent) };
        while window.lead() < Place(ended.into()) {
            let block = window.lead().0 as u32;
            let is_whole = geometry.block_run(block).is_none_or(|run| have.count_in(run) == run.count());
            if is_whole {
                window.follow();
            } else {
                window.extend(window.lead().next());
            }
        }
    }

    /// Stores parity packet `symbol` of a group, if that takes at most `room` octets.
    pub(super) fn store_parity(
        &mut self,
        block: u32,
        symbol: u32,
        room: u64,
        events: &mut VecDeque<ReceiverEvent>,
    ) -> Result<(), Reject> {
        let lacks = self.lacks(block);
        let id = self.id;
        let Some(groups) = &mut self.groups else { return Err(Reject::Unexpected) };
        let is_there = groups.held.get(&block).is_some_and(|held| held.contains(symbol));
        if lacks == 0 || is_there {
            self.received.duplicates += 1;
            return Err(Reject::Duplicate);
        }
        let before = groups.held.get(&block).map_or(0, |held| Groups::cost(&self.geometry, held.count()));
        let after = Groups::cost(&self.geometry, groups.parity(block) + 1);
        if after - before > room {
            return Err(Reject::Limit);
        }
        let size = groups.size;
        groups.held.entry(block).or_insert_with(|| Bitmap::new(parity_of(size))).insert(symbol);
        groups.memory += after - before;
        self.received.parity += 1;
        events.push_back(ReceiverEvent::StoreParity {
            object: id,
            block,
            symbols: Run::one(symbol),
            offset: 0,
        });
        self.check_decodable(block, events);
        Ok(())
    }

    /// Asks the owner to rebuild a group once enough packets are there.
    pub(super) fn check_decodable(&mut self, block: u32, events: &mut VecDeque<ReceiverEvent>) {
        let (missing, lacks) = (self.missing_in(block), self.lacks(block));
        let Some(groups) = &mut self.groups else { return };
        if missing == 0 {
            groups.forget(&self.geometry, block);
            groups.window.settle(Place(block.into()));
        } else if lacks == 0 && groups.decoding.insert(block) {
            events.push_back(ReceiverEvent::Decode { object: self.id, block });
        }
    }

    /// Checks all groups, after segments came by other means.
    pub(super) fn check_groups(&mut self, events: &mut VecDeque<ReceiverEvent>) {
        let Some(groups) = &self.groups else { return };
        let lead = groups.window.lead().0 as u32;
        let begun: Vec<u32> = groups.held.range(lead..).map(|(&block, _)| block).collect();
        for block in (0..lead).chain(begun) {
            self.check_decodable(block, events);
        }
    }

    /// Notes the end of rebuilding, which uses up the parity of the group either way. Returns the segments of the group
    /// if it was rebuilt.
    pub(super) fn decoded(&mut self, block: u32, is_rebuilt: bool) -> Option<Run> {
        let groups = self.groups.as_mut().filter(|groups| groups.decoding.contains(&block))?;
        groups.decoding.remove(&block);
        groups.forget(&self.geometry, block);
        let run = self.geometry.block_run(block).filter(|_| is_rebuilt)?;
        groups.window.settle(Place(block.into()));
        self.have.insert_run(run);
        Some(run)
    }

    /// Notes that these segments have to come again, and discards the parity of their groups.
    pub(super) fn unsettle(&mut self, segments: Run) {
        let blocks = self.geometry.block_of(segments.first())..=self.geometry.block_of(segments.last());
        let Some(groups) = &mut self.groups else { return };
        for block in blocks.clone() {
            groups.forget(&self.geometry, block);
            groups.decoding.remove(&block);
        }
        let end = Place(u64::from(*blocks.end()) + 1).min(groups.window.lead());
        groups.window.unsettle(&(Place((*blocks.start()).into())..end));
    }
}
