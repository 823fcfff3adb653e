//! The objects of a sender, and which of them is next: the lowest of which anything is to be sent.

use alloc::vec::Vec;

use farcast_core::{Bitmap, Run};
use farcast_delivery::{Geometry, Vouched};

use super::ahead::Ahead;
use super::schedule::{Next, Schedule};
use crate::config::{Kind, Object, SenderConfig};
use crate::message::{Fec, Flags, Fti, Point};
use crate::repairs::Repairs;
use crate::requests::point;

/// An object that is sent.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) geometry: Geometry,
    pub(super) schedule: Schedule,
    pub(super) fti: Fti,
    /// What every message about it says of it.
    pub(super) flags: Flags,
    /// What is said of it.
    pub(super) info: Vec<u8>,
    /// What is vouched for with that.
    pub(super) vouched: Option<Vouched>,
    /// Whether that is to be said, and whether it was said before.
    info_due: bool,
    info_said: bool,
    /// What of it was sent again.
    repairs: Repairs,
}

impl Outgoing {
    fn new(object: Object, geometry: Geometry, config: &SenderConfig) -> Self {
        let mut flags = if object.kind == Kind::File { Flags::FILE } else { Flags::default() };
        // Of an object of no octets INFO is all that there is.
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
            repairs: Repairs::of(geometry.segments()),
        }
    }

    fn is_idle(&self) -> bool {
        !self.info_due && self.schedule.is_empty()
    }

    /// Segments of `block`.
    pub(super) fn block_len(&self, block: u32) -> u32 {
        self.geometry.block_len(block)
    }
}

/// What leaves next of which object, counted in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Item {
    /// What is said of it; whether it was said before.
    Info(u32, bool),
    /// Symbols of it.
    Data(u32, Next),
}

/// All of a sender's objects.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    list: Vec<Outgoing>,
    fec: Fec,
    /// Of which anything is to be sent.
    due: Bitmap,
    /// How many from the first have been sent whole once.
    passed: u32,
    /// Of which so much was sent again that requests are not heard any more.
    spent: Bitmap,
    /// Objects whose source is gone; they are among the former.
    withdrawn: Bitmap,
    ahead: Ahead,
}

impl Objects {
    /// Those of `config`, cut like this.
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

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// How many from the first have been sent whole once.
    pub(super) fn passed(&self) -> u32 {
        self.passed
    }

    /// Of which so much was sent again that requests are not heard any more.
    pub(super) fn spent(&self) -> &Bitmap {
        &self.spent
    }

    /// Objects whose source is gone.
    pub(super) fn withdrawn(&self) -> &Bitmap {
        &self.withdrawn
    }

    /// Sends nothing of `object` any more but what it is, once, so that receivers can name what they will not have.
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

    /// Counts those that are withdrawn and come next among what was sent whole.
    fn pass_withdrawn(&mut self) {
        while self.withdrawn.contains(self.passed) && !self.due.contains(self.passed) {
            self.passed += 1;
        }
    }

    /// Which of them has this number on the wire.
    pub(super) fn index(&self, id: u16) -> Option<u32> {
        Some(u32::from(id)).filter(|&index| index < self.count())
    }

    /// How many segments and symbols are to be sent.
    pub(super) fn len(&self) -> u32 {
        let due = self.due.iter().map(|object| self.list[object as usize].schedule.len());
        due.fold(0, u32::saturating_add)
    }

    /// Whether nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// What is next.
    pub(super) fn next(&mut self) -> Option<Item> {
        let object = self.due.next_set(0)?;
        let outgoing = &mut self.list[object as usize];
        if outgoing.info_due {
            return Some(Item::Info(object, outgoing.info_said));
        }
        outgoing.schedule.next().map(|next| Item::Data(object, next))
    }

    /// Protects the block that the first `count` of `next` end, if they do: when less than `closing` segments and
    /// symbols are still to be sent, it is one of the last.
    pub(super) fn protect(&mut self, object: u32, next: &Next, (count, closing): (u32, u64)) {
        if self.list[object as usize].schedule.ends_block(next, count) {
            let is_last = u64::from(self.len()) < closing;
            let outgoing = &mut self.list[object as usize];
            let segments = outgoing.block_len(next.block);
            outgoing.schedule.protect(self.ahead.of_block(segments, is_last));
        }
    }

    /// What was next has left, of symbols the first `count`. How many of these are parity that had never left before.
    pub(super) fn sent(&mut self, item: &Item, count: u32) -> u32 {
        let (Item::Info(object, _) | Item::Data(object, _)) = *item;
        let outgoing = &mut self.list[object as usize];
        let (again, fresh) = match item {
            Item::Info(_, again) => {
                (outgoing.info_due, outgoing.info_said) = (false, true);
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
            // The lowest goes first, so those before are through.
            self.passed = self.passed.max(object + 1);
            self.pass_withdrawn();
        }
        fresh
    }

    /// Those of which anything has left.
    pub(super) fn begun(&self) -> u32 {
        let next = self.get(self.passed).is_some_and(|next| next.info_said || next.schedule.has_begun(0));
        self.passed + u32::from(next)
    }

    /// Says again what is said of `object`, if that is anything and was said; whether that is news.
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

    /// Sends all of `object` again that has left; whether that is news.
    pub(super) fn send_again(&mut self, object: u32) -> bool {
        if self.withdrawn.contains(object) {
            return false;
        }
        let said = self.say_again(object);
        self.list[object as usize].schedule.again() && self.note_due(object) || said
    }

    /// Sends what was asked for of a block; whether that is news ([`Schedule::repair`]).
    pub(super) fn repair(
        &mut self,
        (object, block): (u32, u32),
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

    /// Symbol `symbol` of `block`, as payload ids say it.
    pub(super) fn point(&self, object: u32, block: u32, symbol: u32) -> Point {
        let len = self.get(object).map_or(0, |outgoing| outgoing.block_len(block));
        point(self.fec, object as u16, (block, len), symbol)
    }

    /// The last segment of `object`; of one that has none, where its first would be.
    pub(super) fn last(&self, object: u32) -> Point {
        let geometry = self.get(object).map(|outgoing| outgoing.geometry);
        let block = geometry.map_or(0, |geometry| geometry.blocks().saturating_sub(1));
        let symbol = geometry.map_or(0, |geometry| geometry.block_len(block).saturating_sub(1));
        self.point(object, block, symbol)
    }

    /// Those of `objects` that have been begun.
    pub(super) fn clip(&self, objects: Run) -> Option<Run> {
        objects.clip(0, self.begun())
    }
}
