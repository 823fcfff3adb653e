//! Objects of a sender. The lowest object with anything to send is next.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};
use farcast_delivery::nack::RepairLimit;
use farcast_delivery::{Geometry, Vouched};

use super::ahead::Ahead;
use super::schedule::{Next, Schedule};
use crate::config::{Kind, Object, SenderConfig};
use crate::message::{Fec, Flags, Fti, Point};

use crate::requests::{BlockId, BlockSymbol, point};

/// State of an object that is sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) geometry: Geometry,
    pub(super) schedule: Schedule,
    pub(super) fti: Fti,
    /// Flags of all messages about the object.
    pub(super) flags: Flags,
    /// Content of the object's INFO.
    pub(super) info: Vec<u8>,
    /// Metadata that INFO vouches for.
    pub(super) vouched: Option<Vouched>,
    /// `true` if INFO is to be sent, and `true` if it was sent before.
    info_due: bool,
    info_said: bool,
    /// `true` if INFO leaves twice at first.
    info_twice: bool,
    /// Counter of repairs.
    repairs: RepairLimit,
}

impl Outgoing {
    fn new(object: Object, geometry: Geometry, config: &SenderConfig) -> Self {
        let mut flags = if object.kind == Kind::File { Flags::FILE } else { Flags::default() };
        // An object of no octets consists of nothing but INFO.
        let has_info = !object.info.is_empty() || object.size == 0;
        if has_info {
            flags = flags.with(Flags::INFO);
        }
        Self {
            geometry,
            schedule: Schedule::new(geometry, config.parity, config.auto_parity),
            fti: config.transmission(object.size),
            flags,
            info: object.info,
            vouched: object.vouched,
            info_due: has_info,
            info_said: false,
            info_twice: config.first_backoff.is_some(),
            repairs: RepairLimit::of(geometry.segments()),
        }
    }

    fn is_idle(&self) -> bool {
        !self.info_due && self.schedule.is_empty()
    }

    /// Returns the number of segments of `block`.
    pub(super) fn block_len(&self, block: u32) -> u32 {
        self.geometry.block_len(block)
    }
}

/// Next item to send. The first field is the object's index in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Item {
    /// INFO of the object; the flag is `true` if it was sent before.
    Info(u32, bool),
    /// Symbols of the object.
    Data(u32, Next),
}

/// Objects of a sender.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    list: Vec<Outgoing>,
    fec: Fec,
    /// Objects of which anything is to be sent.
    due: Bitmap,
    /// Number of objects, from the first, that have been sent completely once.
    passed: u32,
    /// Objects with so many repairs that further requests are ignored.
    spent: Bitmap,
    /// Withdrawn objects, whose source is gone; they are in `spent` too.
    withdrawn: Bitmap,
    ahead: Ahead,
}

impl Objects {
    /// Takes the objects of `config`, with these geometries.
    pub(super) fn new(config: &mut SenderConfig, geometries: Vec<Geometry>) -> Self {
        let objects = core::mem::take(&mut config.objects);
        let list: Vec<Outgoing> = objects
            .into_iter()
            .zip(geometries)
            .map(|(object, geometry)| Outgoing::new(object, geometry, config))
            .collect();
        let count = list.len() as u32;
        let (due, spent, withdrawn) = (Bitmap::full(count), Bitmap::new(count), Bitmap::new(count));
        let ahead = Ahead::new(config.auto_parity, config.parity);
        Self { list, fec: config.fec, due, passed: 0, spent, withdrawn, ahead }
    }

    pub(super) fn get(&self, object: u32) -> Option<&Outgoing> {
        self.list.get(object as usize)
    }

    /// Returns the number of objects.
    pub(super) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// Returns the number of objects, from the first, that have been sent completely once.
    pub(super) fn passed(&self) -> u32 {
        self.passed
    }

    /// Returns the objects with so many repairs that further requests are ignored.
    pub(super) fn spent(&self) -> &Bitmap {
        &self.spent
    }

    /// Returns the withdrawn objects, whose source is gone.
    pub(super) fn withdrawn(&self) -> &Bitmap {
        &self.withdrawn
    }

    /// Withdraws `object`: only its INFO is sent, once, so that receivers can name the object that they will not have.
    pub(super) fn withdraw(&mut self, object: u32) {
        let Some(outgoing) = self.list.get_mut(object as usize) else { return };
        outgoing.info_due &= !outgoing.info_said;
        outgoing.schedule.clear();
        if outgoing.is_idle() {
            self.due.remove(object);
        }
        self.withdrawn.insert(object);
        self.spent.insert(object);
        self.pass_withdrawn();
    }

    /// Counts withdrawn objects that come next as sent completely.
    fn pass_withdrawn(&mut self) {
        while self.withdrawn.contains(self.passed) && !self.due.contains(self.passed) {
            self.passed += 1;
        }
    }

    /// Returns the index of the object with this number on the wire.
    pub(super) fn index(&self, id: u16) -> Option<u32> {
        Some(u32::from(id)).filter(|&index| index < self.count())
    }

    /// Returns the number of segments and symbols that are to be sent.
    pub(super) fn len(&self) -> u32 {
        let due = self.due.iter().map(|object| self.list[object as usize].schedule.len());
        due.fold(0, u32::saturating_add)
    }

    /// Returns `true` if nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Returns the next item.
    pub(super) fn next(&mut self) -> Option<Item> {
        let object = self.due.next_set(0)?;
        let outgoing = &mut self.list[object as usize];
        if outgoing.info_due {
            return Some(Item::Info(object, outgoing.info_said));
        }
        outgoing.schedule.next().map(|next| Item::Data(object, next))
    }

    /// Returns `true` if the first `count` symbols of `next` end a block of `object` for the first time.
    pub(super) fn ends_block(&self, object: u32, next: &Next, count: u32) -> bool {
        self.list[object as usize].schedule.ends_block(next, count)
    }

    /// Sets the parity that leaves with `block`: at least `symbols`. `is_last` is `true` for one of the
    /// last blocks.
    pub(super) fn protect(&mut self, BlockId { object, block }: BlockId, symbols: u32, is_last: bool) {
        let outgoing = &mut self.list[object as usize];
        let ahead = self.ahead.of_block(outgoing.block_len(block), is_last);
        outgoing.schedule.protect(ahead.max(symbols));
    }

    /// Schedules parity of `block`, so that `symbols` leave in all. Returns `true` if any of it was not scheduled yet.
    pub(super) fn send_ahead(&mut self, BlockId { object, block }: BlockId, symbols: u32) -> bool {
        if self.withdrawn.contains(object) {
            return false;
        }
        self.list[object as usize].schedule.send_ahead(block, symbols) && self.note_due(object)
    }

    /// Notes that `item` has left, of symbols the first `count`. Returns the number of these that are parity which had
    /// never left before.
    pub(super) fn sent(&mut self, item: &Item, count: u32) -> u32 {
        let (Item::Info(object, _) | Item::Data(object, _)) = *item;
        let outgoing = &mut self.list[object as usize];
        let (again, fresh) = match item {
            Item::Info(_, again) => {
                (outgoing.info_due, outgoing.info_said) = (outgoing.info_twice && !again, true);
                (*again, 0)
            }
            Item::Data(_, next) => (next.repair, outgoing.schedule.sent(next, count)),
        };
        if again {
            outgoing.repairs.note(count);
            if outgoing.repairs.are_spent() {
                self.spent.insert(object);
            }
        }
        if outgoing.is_idle() {
            self.due.remove(object);
            // The lowest object is sent first, so all objects before this one are through.
            self.passed = self.passed.max(object + 1);
            self.pass_withdrawn();
        }
        fresh
    }

    /// Returns the number of objects of which anything has left.
    pub(super) fn begun(&self) -> u32 {
        let next = self.get(self.passed).is_some_and(|next| next.info_said || next.schedule.has_begun(0));
        self.passed + u32::from(next)
    }

    /// Schedules the repetition of `object`'s INFO, if it was sent before. Returns `true` if it was not scheduled yet.
    pub(super) fn say_again(&mut self, object: u32) -> bool {
        if self.withdrawn.contains(object) {
            return false;
        }
        let outgoing = &mut self.list[object as usize];
        let new = outgoing.info_said && !outgoing.info_due;
        outgoing.info_due |= new;
        if new {
            self.due.insert(object);
        }
        new
    }

    /// Schedules the repetition of everything of `object` that has left. Returns `true` if any of it was not scheduled
    /// yet.
    pub(super) fn send_again(&mut self, object: u32) -> bool {
        if self.withdrawn.contains(object) {
            return false;
        }
        let said = self.say_again(object);
        self.list[object as usize].schedule.again() && self.note_due(object) || said
    }

    /// Schedules repairs of a block. Returns `true` if any of them was not scheduled yet ([`Schedule::repair`]).
    pub(super) fn repair(
        &mut self,
        BlockId { object, block }: BlockId,
        symbols: Option<u32>,
        source: &Bitmap,
        parity: &Bitmap,
    ) -> bool {
        let outgoing = &mut self.list[object as usize];
        let segments = outgoing.block_len(block);
        let schedule = &mut outgoing.schedule;
        if self.withdrawn.contains(object)
            || !schedule.has_begun(block)
            || !schedule.repair(block, symbols, source, parity)
        {
            return false;
        }
        if let Some(symbols) = symbols {
            self.ahead.note(symbols, segments);
        }
        self.note_due(object)
    }

    fn note_due(&mut self, object: u32) -> bool {
        self.due.insert(object);
        true
    }

    /// Returns symbol `symbol` of `block` in the form of payload ids.
    pub(super) fn point(&self, object: u32, block: u32, symbol: u32) -> Point {
        let len = self.get(object).map_or(0, |outgoing| outgoing.block_len(block));
        point(self.fec, object as u16, BlockSymbol { block, len, symbol })
    }

    /// Returns the last segment of `object`; the place of the first one if there is none.
    pub(super) fn last(&self, object: u32) -> Point {
        let geometry = self.get(object).map(|outgoing| outgoing.geometry);
        let block = geometry.map_or(0, |geometry| geometry.blocks().saturating_sub(1));
        let symbol = geometry.map_or(0, |geometry| geometry.block_len(block).saturating_sub(1));
        self.point(object, block, symbol)
    }

    /// Returns those of `objects` that have been begun.
    pub(super) fn clip(&self, objects: Run) -> Option<Run> {
        objects.clip(0, self.begun())
    }
}
