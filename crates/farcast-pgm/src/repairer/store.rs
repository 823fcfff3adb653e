//! Store of a repairer: headers here, contents at the owner, by key.

use alloc::collections::{BTreeMap, VecDeque};
use core::num::NonZeroU32;

use farcast_core::{Span, Time};
use farcast_delivery::{Content, Pacer};

use super::StoreConfig;
use crate::event::ElementEvent;
use crate::message::{Data, DataKind, DataOptions, Origin, Tsi};
use crate::ports::Ports;
use crate::sqn::Place;

/// Destination of a repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Served {
    /// The nodes below these ports.
    Ports(Ports),
    /// The parent that asked.
    Parent,
}

#[derive(Clone, Debug)]
struct Kept {
    data: Data,
    key: u64,
    /// Ports on which the data were repaired, and the time of the latest repair.
    served: (Ports, Time),
}

/// A repair that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) tsi: Tsi,
    pub(crate) place: Place,
    pub(crate) to: Served,
}

/// Number of a TPDU in its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TpduId {
    pub(crate) tsi: Tsi,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    config: StoreConfig,
    kept: BTreeMap<Tsi, BTreeMap<Place, Kept>>,
    octets: u64,
    tpdus: usize,
    next_key: u64,
    pub(crate) queue: VecDeque<Waiting>,
    pub(crate) pacer: Pacer,
}

impl Store {
    pub(crate) fn new(config: StoreConfig) -> Self {
        Self {
            pacer: Pacer::new(config.pace),
            config,
            kept: BTreeMap::new(),
            octets: 0,
            tpdus: 0,
            next_key: 0,
            queue: VecDeque::new(),
        }
    }

    pub(crate) fn tpdus(&self) -> usize {
        self.tpdus
    }

    pub(crate) fn octets(&self) -> u64 {
        self.octets
    }

    pub(crate) fn has(&self, tsi: Tsi, place: Place) -> bool {
        self.kept.get(&tsi).is_some_and(|kept| kept.contains_key(&place))
    }

    /// Stores datagram `index` of `data`, and removes older data for it. Returns `true` if it is stored.
    pub(crate) fn keep(
        &mut self,
        TpduId { tsi, place }: TpduId,
        data: &Data,
        index: u32,
        events: &mut VecDeque<ElementEvent>,
    ) -> bool {
        let len = data.tsdu_len(index) as u64;
        // Parity packets are not stored: a repair by parity would have to be computed.
        if data.parity.is_some() || self.has(tsi, place) || len > self.config.octets {
            return false;
        }
        while self.tpdus >= self.config.tpdus || self.octets + len > self.config.octets {
            let oldest = self.kept.iter().max_by_key(|(_, kept)| kept.len()).map(|(&tsi, _)| tsi);
            let Some(tsi) = oldest else { return false };
            self.forget_first(tsi, events);
        }
        let key = self.next_key;
        self.next_key += 1;
        let mut data = single(data, index);
        if data.descriptor.is_none() {
            data.origin = Origin(Content::Kept { key });
            match events.back_mut() {
                Some(ElementEvent::Keep { keys, offset })
                    if keys.end == key
                        && u64::from(index) == u64::from(*offset) + (keys.end - keys.start) =>
                {
                    keys.end = key + 1;
                }
                _ => events.push_back(ElementEvent::Keep { keys: key..key + 1, offset: index }),
            }
        }
        self.tpdus += 1;
        self.octets += len;
        let served = (Ports::NONE, Time::ZERO);
        self.kept.entry(tsi).or_default().insert(place, Kept { data, key, served });
        true
    }

    fn forget_first(&mut self, tsi: Tsi, events: &mut VecDeque<ElementEvent>) {
        let Some(kept) = self.kept.get_mut(&tsi) else { return };
        if let Some((_, Kept { data, key, .. })) = kept.pop_first() {
            self.tpdus -= 1;
            self.octets -= data.tsdu_len(0) as u64;
            forget(key, events);
        }
        if self.kept.get(&tsi).is_some_and(BTreeMap::is_empty) {
            self.kept.remove(&tsi);
        }
    }

    /// Forgets everything of a session.
    pub(crate) fn forget_all(&mut self, tsi: Tsi, events: &mut VecDeque<ElementEvent>) {
        while self.kept.contains_key(&tsi) {
            self.forget_first(tsi, events);
        }
        self.queue.retain(|waiting| waiting.tsi != tsi);
    }

    /// Returns `true` if `place` is to be repaired on `port` now, and notes that it is. It is not if it was repaired
    /// there a moment ago, or the queue is full.
    pub(crate) fn serve(
        &mut self,
        now: Time,
        TpduId { tsi, place }: TpduId,
        port: Ports,
        holdoff: Span,
    ) -> bool {
        if self.queue.len() >= self.config.queue {
            return false;
        }
        let Some(kept) = self.kept.get_mut(&tsi).and_then(|kept| kept.get_mut(&place)) else { return false };
        let (ports, at) = kept.served;
        let lately = if now.since(at) < holdoff { ports } else { Ports::NONE };
        if lately.has(port) {
            return false;
        }
        kept.served = (lately.with(port), now);
        true
    }

    /// Returns the data stored at `place`.
    pub(crate) fn get(&self, tsi: Tsi, place: Place) -> Option<&Data> {
        self.kept.get(&tsi)?.get(&place).map(|kept| &kept.data)
    }
}

/// Tells the owner to forget the content under `key`.
fn forget(key: u64, events: &mut VecDeque<ElementEvent>) {
    match events.back_mut() {
        Some(ElementEvent::Forget { keys }) if keys.end == key => keys.end = key + 1,
        _ => events.push_back(ElementEvent::Forget { keys: key..key + 1 }),
    }
}

/// Returns datagram `index` of `data` as a repair by itself, without its option of PGMCC. The stamp in that option is
/// from the first transmission, so an answer would count the time in the store as delay of the path.
pub(crate) fn single(data: &Data, index: u32) -> Data {
    let len = u16::try_from(data.tsdu_len(index)).unwrap_or(u16::MAX);
    Data {
        kind: DataKind::Repair,
        sqn: data.sqn.plus(index),
        count: NonZeroU32::MIN,
        trail: data.trail,
        parity: data.parity,
        options: DataOptions { fragment: data.fragment(index), cc: None, ..data.options },
        descriptor: data.descriptor.clone(),
        len,
        last_len: len,
        origin: Origin::UNKNOWN,
    }
}
