//! Parity of a source's transmission groups: its reception, and the requests for it (RFC 3208 §11.4).

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Reject};
use farcast_delivery::ObjectId;

use super::files::State;
use super::groups::Request;
use super::remote::{Goods, Reception};
use super::{FileIndex, Receiver};
use crate::config::parity_of;
use crate::message::{Data, Nak, NakKind};
use crate::sqn::{GroupWant, Place};

/// Number of requests by count without a sign that they are understood; then segments are asked for themselves. A
/// network element on the path may not understand counts.
const UNHEARD: u32 = 4;

impl Receiver {
    /// Handles a parity packet.
    pub(super) fn hear_parity(&mut self, now: Time, at: usize, data: &Data) -> Result<(), Reject> {
        let room = self.parity_room();
        let remote = &mut self.remotes[at];
        let (Some(grouped), Some(parity)) = (remote.grouped, data.parity) else {
            return Err(Reject::Unexpected);
        };
        if parity.var_len || data.descriptor.is_some() || data.count.get() > 1 {
            return Err(Reject::Inconsistent);
        }
        let Some(Reception { window, goods: Goods::Files(files) }) = &mut remote.reception else {
            return Err(Reject::Unexpected);
        };
        let place = window.lead().near(data.sqn);
        let base = place.group(grouped.size);
        let symbol = u64::from(parity.group) * u64::from(grouped.size) + (place.0 - base.0);
        let symbol = u32::try_from(symbol).ok().filter(|&symbol| symbol < parity_of(grouped.size));
        let symbol = symbol.ok_or(Reject::OutOfRange)?;
        let object = files.at(base).ok_or(Reject::Unexpected)?;
        let block = object.segment(base).map_or(0, |segment| object.geometry.block_of(segment));
        let len = object.geometry.block_len(block);
        let says = data.options.group_size.unwrap_or(grouped.size);
        if data.len != object.geometry.segment_size() || says != len || object.groups.is_none() {
            return Err(Reject::Inconsistent);
        }
        if object.state != State::Receiving {
            return Err(Reject::Unexpected);
        }
        let stored = object.store_parity(block, symbol, room, &mut self.events);
        if stored.is_ok() {
            remote.fed = Some(now);
        }
        remote.unheard = 0;
        // All data of its group were sent before it, and the group may lack more packets than this one makes up for.
        self.extend(at, base.plus(len));
        self.fill(now, at);
        stored
    }

    /// Returns the octets of parity that may be stored besides the present ones.
    fn parity_room(&self) -> u64 {
        let groups = self.objects().filter_map(|object| object.groups.as_ref());
        self.config.parity_memory.saturating_sub(groups.map(|groups| groups.memory).sum())
    }

    /// Checks the group of segment `segment`, which has come.
    pub(super) fn check_group(&mut self, FileIndex { at, place }: FileIndex, segment: u32) {
        let Self { remotes, events, .. } = self;
        let object = remotes[at].files().and_then(|files| files.objects.get_mut(&place));
        if let Some(object) = object.filter(|object| object.groups.is_some()) {
            object.check_decodable(object.geometry.block_of(segment), events);
        }
    }

    /// Notes that a group of `object` was rebuilt, or could not be.
    pub fn decoded(&mut self, now: Time, object: ObjectId, block: u32, is_rebuilt: bool) {
        let Some(FileIndex { at, place }) = self.find(object) else { return };
        let Some(Reception { window, goods: Goods::Files(files) }) = &mut self.remotes[at].reception else {
            return;
        };
        let Some(object) = files.objects.get_mut(&place) else { return };
        if let Some(run) = object.decoded(block, is_rebuilt) {
            window.settle_all(&object.range_of(run));
            self.check_complete(FileIndex { at, place });
        }
        self.fill(now, at);
        self.look_whether_finished(at);
    }

    /// Handles a request for parity or its confirmation. Each number encodes a group and a count of packets (RFC 3208
    /// §11.4).
    pub(super) fn hear_counts(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        nak: &Nak,
    ) -> Result<(), Reject> {
        let is_confirmed = nak.kind == NakKind::Confirmation;
        let grouped = self.remotes[at].grouped.ok_or(Reject::Unexpected)?;
        if is_confirmed {
            self.look_at_confirmation(at, from, nak);
            self.remotes[at].unheard = 0;
        }
        let intervals = self.intervals();
        let Some(Reception { window, goods: Goods::Files(files) }) = &mut self.remotes[at].reception else {
            return Err(Reject::Unexpected);
        };
        let lead = window.lead();
        let mut result = Err(Reject::OutOfRange);
        for sqn in nak.sqns() {
            let GroupWant { base, count } = lead.near(sqn).wanted(grouped.size);
            let Some(object) = files.at(base) else { continue };
            let Some(segment) = object.segment(base) else { continue };
            let block = object.geometry.block_of(segment);
            let (lacks, short) = (object.lacks(block), grouped.size - object.geometry.block_len(block));
            let Some(groups) = &mut object.groups else { continue };
            result = Ok(());
            // A request for fewer packets than this receiver lacks does not replace its own.
            if count >= lacks + short {
                groups.window.heard(now, Place(block.into()), is_confirmed, &intervals);
            }
        }
        result
    }

    /// Handles a request for segments or its confirmation. A group need not ask if as many of its missing segments as
    /// it lacks are among them.
    pub(super) fn hear_of_groups(&mut self, now: Time, at: usize, places: &[Place], is_confirmed: bool) {
        let intervals = self.intervals();
        let Some(grouped) = self.remotes[at].grouped else { return };
        let Some(files) = self.remotes[at].files() else { return };
        for of_one in places.chunk_by(|one, next| one.group(grouped.size) == next.group(grouped.size)) {
            let Some(object) = of_one.first().and_then(|&place| files.at(place)) else { continue };
            let Some(segment) = of_one.first().and_then(|&place| object.segment(place)) else { continue };
            let block = object.geometry.block_of(segment);
            let is_missing = |place: &&Place| {
                let segment = object.segment(**place);
                segment.is_some_and(|segment| {
                    object.geometry.block_of(segment) == block && !object.have.contains(segment)
                })
            };
            let count = of_one.iter().filter(is_missing).count() as u32;
            let lacks = object.lacks(block);
            if let Some(groups) = object.groups.as_mut().filter(|_| lacks > 0 && count >= lacks) {
                groups.window.heard(now, Place(block.into()), is_confirmed, &intervals);
            }
        }
    }

    /// Does what is due for groups.
    pub(super) fn expire_groups(&mut self, now: Time, at: usize) {
        let (intervals, room) = (self.intervals(), self.parity_room());
        let Self { remotes, random, config, .. } = self;
        let remote = &mut remotes[at];
        let by_count = remote.grouped.is_some_and(|grouped| grouped.on_demand) && remote.unheard < UNHEARD;
        let room = if by_count { room } else { 0 };
        let interval = remote.backoff;
        let mut again = || Self::backoff(random, now, config.reorder, interval);
        let Some(files) = remote.files() else { return };
        let (mut requests, mut lost) = (Vec::new(), Vec::new());
        for (&place, object) in &mut files.objects {
            let Some(groups) = &mut object.groups else { continue };
            let due = groups.window.expire(now, &intervals, &mut again);
            lost.extend(
                due.lost.first().map(|group| object.first.plus(object.geometry.first_of(group.0 as u32))),
            );
            for group in due.ask {
                match object.request(group.0 as u32, room) {
                    Some(request) => requests.push((place, group, request)),
                    None => object.postpone(group, now + intervals.confirm),
                }
            }
        }
        self.ask_for_groups(now, at, &requests);
        for first in lost {
            self.lose(at, &(first..first.next()));
        }
    }

    fn ask_for_groups(&mut self, now: Time, at: usize, requests: &[(Place, Place, Request)]) {
        let of = |by_count: bool| {
            let these = requests.iter().filter(move |(.., request)| request.by_count == by_count);
            these.flat_map(|(.., request)| request.places.iter().copied()).collect::<Vec<Place>>()
        };
        for by_count in [true, false] {
            let places = of(by_count);
            let mut left = self.say_naks(now, at, &places, by_count);
            let until = now + self.config.confirm;
            let Some(files) = self.remotes[at].files() else { return };
            // Requests that could not be sent are postponed.
            for (place, group, request) in
                requests.iter().filter(|(.., request)| request.by_count == by_count)
            {
                if left < request.places.len() {
                    files
                        .objects
                        .get_mut(place)
                        .into_iter()
                        .for_each(|object| object.postpone(*group, until));
                }
                left = left.saturating_sub(request.places.len());
            }
        }
    }
}
