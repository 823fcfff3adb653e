//! Many receivers for simulations, each represented by the number of symbols that it lacks of each block.
//!
//! Any symbols of a block are as good as any others. So the state of a receiver for a block is the number of sent
//! symbols that it has missed. A symbol may be sent again, because the ring has been gone round or the head is
//! repeated. Only then it matters which receivers missed that symbol. A population for that case remembers them
//! ([`Population::new`]).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use farcast_core::engine::{Arrival, Message as _};
use farcast_core::{Among, Bitmap, Run, Time};
use farcast_delivery::{Channel, FeedbackCounts, Geometry, TimedFeedback};

use crate::message::{Description, Kind, Message, Symbols};

/// Like receivers that listen from the beginning, whose owners accept everything and verify it at once.
#[derive(Debug)]
pub struct Population {
    receivers: u32,
    remembers: bool,
    object: Option<ObjectState>,
    completed: Vec<Time>,
    needed: Vec<u32>,
    counts: FeedbackCounts,
    /// Receivers that lose the current datagram.
    lost: Vec<u32>,
}

/// Object that is sent, and the state of all receivers.
#[derive(Debug)]
struct ObjectState {
    session: u32,
    id: [u8; 32],
    geometry: Geometry,
    parity: u32,
    blocks: Vec<BlockState>,
    /// Receivers that have heard no description, in ascending order.
    strangers: Vec<u32>,
    /// Number of blocks that each receiver lacks.
    lacking: Vec<u32>,
    /// Number of symbols of a block that had been sent when each receiver could rebuild it: the maximum over the blocks
    /// that the receiver can rebuild; see [`symbols_needed`](farcast_delivery::Population::symbols_needed).
    rebuilt: Vec<u32>,
}

#[derive(Debug)]
struct BlockState {
    /// Symbols that were sent, source symbols first.
    sent: Bitmap,
    /// Number of these symbols that each receiver has missed.
    missed: Vec<u32>,
    /// Receivers that cannot rebuild the block, in ascending order.
    waiting: Vec<u32>,
    /// Receivers that missed each symbol, in ascending order, if that is remembered.
    missers: BTreeMap<u32, Vec<u32>>,
}

impl Population {
    /// Creates a population of `receivers`. If `remembers` is set, it remembers the receivers that missed each symbol.
    /// Otherwise a repeated symbol counts as useless to every receiver, so the result is wrong if any symbol is
    /// repeated.
    pub fn new(receivers: u32, remembers: bool) -> Self {
        Self {
            receivers,
            remembers,
            object: None,
            completed: vec![Time::NEVER; receivers as usize],
            needed: vec![0; receivers as usize],
            counts: FeedbackCounts::default(),
            lost: Vec::new(),
        }
    }

    fn described(&mut self, now: Time, described: &Description, octets: u64, channel: &mut Channel<'_>) {
        let object = match &mut self.object {
            Some(object) => object,
            None => match ObjectState::new(described, self.receivers) {
                Some(object) => self.object.insert(object),
                None => return,
            },
        };
        self.lost.clear();
        // If only content can be lost, every receiver hears the description.
        let among = if channel.data_only { Among::These(&[]) } else { Among::All };
        channel.losses.draw(now, octets, among, &mut self.lost);
        if described.over || (object.session, object.id) != (described.session, described.id) {
            return;
        }
        let lost = &self.lost;
        let (deaf, heard): (Vec<u32>, Vec<u32>) =
            object.strangers.iter().partition(|n| lost.binary_search(n).is_ok());
        object.strangers = deaf;
        for block in &mut object.blocks {
            let sent = block.sent.count();
            // The receivers missed all symbols that were sent before.
            for &n in &heard {
                block.missed[n as usize] = sent;
            }
            if self.remembers && sent > 0 {
                for symbol in block.sent.iter() {
                    let missers = block.missers.entry(symbol).or_default();
                    missers.extend(&heard);
                    missers.sort_unstable();
                    missers.dedup();
                }
            }
        }
    }

    fn symbol(&mut self, now: Time, block: u32, symbol: u32) {
        let Some(object) = &mut self.object else { return };
        let strangers = &object.strangers;
        let of = &mut object.blocks[block as usize];
        let len = object.geometry.block_len(block);
        let lost = self.lost.as_slice();
        if of.sent.insert(symbol) {
            for &n in lost {
                of.missed[n as usize] += 1;
            }
            if self.remembers && !lost.is_empty() {
                of.missers.insert(symbol, lost.to_vec());
            }
        } else if let Some(missers) = of.missers.get_mut(&symbol) {
            missers.retain(|n| {
                let missed = lost.binary_search(n).is_ok() || strangers.binary_search(n).is_ok();
                of.missed[*n as usize] -= u32::from(!missed);
                missed
            });
        }
        let sent = of.sent.count();
        if sent < len {
            return;
        }
        let (lacking, completed) = (&mut object.lacking, &mut self.completed);
        let (rebuilt, needed) = (&mut object.rebuilt, &mut self.needed);
        let missed = &of.missed;
        of.waiting.retain(|&n| {
            let waits = missed[n as usize] + len > sent || strangers.binary_search(&n).is_ok();
            if !waits {
                let n = n as usize;
                lacking[n] -= 1;
                rebuilt[n] = rebuilt[n].max(symbol + 1);
                if lacking[n] == 0 {
                    (completed[n], needed[n]) = (now, rebuilt[n]);
                }
            }
            waits
        });
    }

    fn symbols(
        &mut self,
        mut now: Time,
        from: &Arrival,
        symbols: &Symbols,
        message: &Message,
        channel: &mut Channel<'_>,
    ) {
        let overhead = u64::from(channel.overhead);
        let (block, count) = (symbols.block, symbols.run.count());
        let known = self.object.as_ref().filter(|object| object.has(symbols));
        let base = known.filter(|_| symbols.kind == Kind::Parity).map_or(0, |o| o.geometry.block_size());
        let is_known = known.is_some();
        let mut at = 0;
        while at < count {
            let octets = message.wire_len(at) as u64 + overhead;
            let free = if is_known {
                self.uneventful(block, base + symbols.run.first() + at, count - 1 - at)
            } else {
                0
            };
            let spared = if free > 0 { channel.losses.spared(octets, free).min(free) } else { 0 };
            if spared > 0 {
                let run = Run::new(base + symbols.run.first() + at, spared);
                if let (Some(object), Some(run)) = (&mut self.object, run) {
                    object.blocks[block as usize].sent.insert_run(run);
                }
                now += from.spacing * u64::from(spared);
                at += spared;
                continue;
            }
            self.lost.clear();
            channel.losses.draw(now, octets, Among::All, &mut self.lost);
            if is_known {
                self.symbol(now, block, base + symbols.run.first() + at);
            }
            now += from.spacing;
            at += 1;
        }
    }

    /// Returns the number of symbols, from `symbol` on and at most `most`, that need no check. Each of them is sent for
    /// the first time, and completes the block at no receiver.
    fn uneventful(&self, block: u32, symbol: u32, most: u32) -> u32 {
        let Some(object) = &self.object else { return 0 };
        let of = &object.blocks[block as usize];
        let before = (object.geometry.block_len(block) - 1).saturating_sub(of.sent.count());
        let run = Run::new(symbol, most.min(before));
        run.filter(|&run| of.sent.count_in(run) == 0).map_or(0, Run::count)
    }
}

impl ObjectState {
    fn new(described: &Description, receivers: u32) -> Option<Self> {
        let geometry =
            Geometry::partitioned(described.size, described.segment.into(), described.block.into()).ok()?;
        let parity = u32::from(described.parity);
        let block = || BlockState {
            sent: Bitmap::new(geometry.block_size() + parity),
            missed: vec![0; receivers as usize],
            waiting: (0..receivers).collect(),
            missers: BTreeMap::new(),
        };
        Some(Self {
            session: described.session,
            id: described.id,
            geometry,
            parity,
            blocks: (0..geometry.blocks()).map(|_| block()).collect(),
            strangers: (0..receivers).collect(),
            lacking: vec![geometry.blocks(); receivers as usize],
            rebuilt: vec![0; receivers as usize],
        })
    }

    fn has(&self, symbols: &Symbols) -> bool {
        let most = match symbols.kind {
            Kind::Source => self.geometry.block_len(symbols.block),
            Kind::Parity => self.parity,
        };
        let known = symbols.block < self.geometry.blocks() && symbols.run.end() <= most;
        known && symbols.session == self.session
    }
}

impl farcast_delivery::Population for Population {
    type Message = Message;
    type Merged = Infallible;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message, channel: &mut Channel<'_>) -> u32 {
        match message {
            Message::Description(described) => {
                let octets = message.wire_len(0) as u64 + u64::from(channel.overhead);
                self.described(now, described, octets, channel);
            }
            Message::Symbols(symbols) => self.symbols(now, from, symbols, message, channel),
            // In a simulation no file changes.
            Message::Withdrawn(_) => {}
        }
        message.segments().get()
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    fn poll_feedback(&mut self) -> Option<TimedFeedback<Message, Infallible>> {
        None
    }

    fn completed(&self) -> &[Time] {
        &self.completed
    }

    fn lacks(&self, receiver: u32) -> Option<u32> {
        let object = self.object.as_ref()?;
        let lacks = |(number, block): (u32, &BlockState)| {
            let missed = block.missed.get(receiver as usize).copied().unwrap_or(0);
            let held = block.sent.count().saturating_sub(missed);
            let waits = block.waiting.binary_search(&receiver).is_ok();
            if waits { object.geometry.block_len(number).saturating_sub(held) } else { 0 }
        };
        let heard = object.strangers.binary_search(&receiver).is_err();
        heard.then(|| (0..).zip(&object.blocks).map(lacks).sum())
    }

    fn symbols_needed(&self) -> &[u32] {
        // As long as no symbol is sent twice, the symbols of a block up to the current one have been sent.
        &self.needed
    }

    fn counts(&self) -> &FeedbackCounts {
        &self.counts
    }
}
