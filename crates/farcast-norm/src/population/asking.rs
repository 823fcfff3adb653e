//! Requests of receivers: their times, and their suppression by requests of others.

use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::RangeInclusive;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Geometry;

use super::Population;
use super::blocks::{Blocks, Listens};
use super::hearing::{Control, grtt};
use crate::message::{Answer, Fec, Form, Level, Point, PointRange, Request};
use crate::receiver::HEADER;
use crate::receiver::nack::{MESSAGES, ROOM};
use crate::receiver::needs::{self, Needs};
use crate::requests::{BlockSymbol, List, point};
use crate::timing::holdoff;

/// Receivers that wait to send requests or acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Time at which each receiver may begin to wait anew: the end of its hold-off. [`Time::NEVER`] while it waits.
    free_at: Vec<Time>,
    /// Receivers in hold-off, by the first block that they asked for. They may begin anew as soon as the sender has
    /// returned to that block; some of them may already. `asked_from` has this block for each receiver.
    asked: BTreeMap<u32, Vec<u32>>,
    asked_from: Vec<u32>,
    /// Times at which the waiting receivers ask.
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// Waiting receivers that have heard a request for INFO, and those that have heard one for the whole object.
    heard_info: Bitmap,
    heard_all: Bitmap,
    acks: Acks,
    /// Waits that have just begun (a buffer that is reused).
    begun: Vec<Reverse<(Time, u32)>>,
}

impl Waiting {
    pub(super) fn new(receivers: u32) -> Self {
        Self {
            free_at: alloc::vec![Time::ZERO; receivers as usize],
            asked: BTreeMap::new(),
            asked_from: alloc::vec![0; receivers as usize],
            queue: BinaryHeap::new(),
            heard_info: Bitmap::new(receivers),
            heard_all: Bitmap::new(receivers),
            acks: Acks::default(),
            begun: Vec::new(),
        }
    }

    fn waits(&self, receiver: u32) -> bool {
        self.free_at[receiver as usize] == Time::NEVER
    }

    /// Returns `true` if `receiver` neither waits nor has just asked.
    fn is_free(&self, now: Time, receiver: u32) -> bool {
        self.free_at[receiver as usize] <= now
    }

    /// Begins the hold-off of `receiver`, which has asked for what it lacks from block `from` on, until `end`.
    fn hold_off(&mut self, receiver: u32, from: u32, end: Time) {
        self.free_at[receiver as usize] = end;
        self.asked_from[receiver as usize] = from;
        self.asked.entry(from).or_default().push(receiver);
    }

    /// Ends the hold-off of receivers that asked for something that begins in `blocks`, because the sender has
    /// returned to the first of them. It does not end for `deaf` receivers.
    fn note_return(&mut self, at: Time, blocks: RangeInclusive<u32>, deaf: &Bitmap) {
        let Self { free_at, asked, asked_from, .. } = self;
        for (&block, receivers) in asked.range_mut(blocks) {
            receivers.retain(|&receiver| {
                let free_at = &mut free_at[receiver as usize];
                let holds = *free_at > at && *free_at != Time::NEVER;
                let holds = holds && asked_from[receiver as usize] == block;
                if holds && !deaf.contains(receiver) {
                    *free_at = at;
                }
                holds && deaf.contains(receiver)
            });
        }
        asked.retain(|_, receivers| !receivers.is_empty());
    }

    /// Ends the wait of `receiver`, which has everything.
    pub(super) fn stop(&mut self, at: Time, receiver: u32) {
        if self.waits(receiver) {
            self.free_at[receiver as usize] = at;
        }
    }

    /// Drops receivers at the head of the queue that no longer wait.
    pub(super) fn forget(&mut self) {
        while self.queue.peek().is_some_and(|&Reverse((_, receiver))| !self.waits(receiver)) {
            self.queue.pop();
        }
    }

    /// Returns the time of the next message.
    pub(super) fn due(&self) -> Time {
        let acks = self.acks.due();
        self.queue.peek().map_or(acks, |&Reverse((at, _))| at.min(acks))
    }
}

/// Acknowledgements to send.
#[derive(Clone, Debug, Default)]
struct Acks {
    times: BTreeSet<(Time, u32)>,
    /// Point that each receiver acknowledges.
    points: BTreeMap<u32, Point>,
}

impl Acks {
    /// Returns the time of the next acknowledgement.
    fn due(&self) -> Time {
        self.times.first().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Changes the point that `receiver` is to acknowledge. Returns `true` if it is to acknowledge one.
    fn renew(&mut self, receiver: u32, point: Point) -> bool {
        self.points.get_mut(&receiver).map(|old| *old = point).is_some()
    }

    fn insert(&mut self, at: Time, receiver: u32, point: Point) {
        self.times.insert((at, receiver));
        self.points.insert(receiver, point);
    }

    /// Takes the next acknowledgement that is due at `now`.
    fn pop(&mut self, now: Time) -> Option<(Time, u32, Point)> {
        let &(at, receiver) = self.times.first().filter(|(at, _)| *at <= now)?;
        self.times.pop_first();
        self.points.remove(&receiver).map(|point| (at, receiver, point))
    }
}

/// Needs of one receiver.
struct One<'a> {
    blocks: &'a Blocks,
    number: (u16, Fec),
    receiver: u32,
}

impl Needs for One<'_> {
    fn number(&self) -> (u16, Fec) {
        self.number
    }

    fn parity(&self) -> u32 {
        self.blocks.parity()
    }

    fn geometry(&self) -> &Geometry {
        self.blocks.geometry()
    }

    fn lacks(&self, block: u32) -> u32 {
        self.blocks.lacks(block, self.receiver)
    }

    fn holds(&self, block: u32, symbol: u32) -> bool {
        self.blocks.holds(block, symbol, self.receiver)
    }

    fn next_need(&self, from: u32, end: u32) -> Option<u32> {
        self.blocks.next_need(self.receiver, from, end)
    }
}

/// Sending of requests.
impl Population {
    /// Begins waits of receivers that the last message makes look for what they lack: receivers that were behind and,
    /// with `all`, the others that heard it.
    pub(super) fn consider(&mut self, now: Time, all: bool) {
        if self.config.silent {
            return;
        }
        let stirred = core::mem::take(&mut self.hearing.stirred);
        for &receiver in &stirred {
            self.consider_one(now, receiver, *self.hearing.of(receiver));
        }
        self.hearing.stirred = stirred;
        if all {
            let kept_up = core::mem::take(&mut self.kept_up);
            for &receiver in &kept_up {
                self.consider_one(now, receiver, self.hearing.common);
            }
            self.kept_up = kept_up;
        }
        self.waiting.queue.extend(self.waiting.begun.drain(..));
    }

    /// Begins the wait of `receiver`, with the state `control`, for a request, unless it lacks nothing, waits already
    /// or has just asked.
    fn consider_one(&mut self, now: Time, receiver: u32, control: Control) {
        if !self.waiting.is_free(now, receiver) || !self.has_needs(receiver, &control) {
            return;
        }
        let Some(terms) = control.terms else { return };
        let wait = self.waits.backoff(self.node(receiver), now, terms, grtt(terms, &self.config));
        self.waiting.free_at[receiver as usize] = Time::NEVER;
        self.waiting.begun.push(Reverse((now + wait, receiver)));
        self.waiting.heard_info.remove(receiver);
        self.waiting.heard_all.remove(receiver);
        if let Some(object) = &mut self.object {
            object.blocks.begin_wait(receiver);
        }
    }

    /// Returns `true` if the sender has passed anything that `receiver`, with the state `control`, lacks.
    fn has_needs(&self, receiver: u32, control: &Control) -> bool {
        if self.over.contains(receiver) || control.position == 0 || self.is_complete(receiver) {
            return false;
        }
        let Some(object) = self.object.as_ref().filter(|_| control.begun) else {
            return control.passed() > 0;
        };
        object.is_nameless(receiver) || object.blocks.next_need(receiver, 0, control.passed()).is_some()
    }

    /// Returns the first block of which `receiver`, with the state `control`, lacks something. INFO counts as part of
    /// the first block.
    fn needs_from(&self, receiver: u32, control: &Control) -> u32 {
        let object = self.object.as_ref().filter(|_| control.begun);
        object.and_then(|object| object.blocks.next_need(receiver, 0, control.passed())).unwrap_or(0)
    }

    /// Ends hold-offs, because the sender has returned to `block`. Receivers that do not hear it go on.
    pub(super) fn note_return(&mut self, at: Time, block: u32) {
        self.waiting.note_return(at, block..=u32::MAX, &self.deaf);
    }

    /// Ends hold-offs of requests that begin with INFO or block 0, because the sender has sent INFO again.
    pub(super) fn note_info(&mut self, at: Time) {
        self.waiting.note_return(at, 0..=0, &self.deaf);
    }

    /// Returns `true` if others have asked for everything that `receiver` would ask for.
    fn is_covered(&self, receiver: u32, control: &Control) -> bool {
        let all = self.waiting.heard_all.contains(receiver);
        let Some(object) = self.object.as_ref().filter(|_| control.begun && !all) else { return all };
        if object.is_nameless(receiver) && !self.waiting.heard_info.contains(receiver) {
            return false;
        }
        let (mut from, end) = (0, control.passed());
        while let Some(block) = object.blocks.next_need(receiver, from, end) {
            if !object.blocks.is_covered(block, receiver) {
                return false;
            }
            from = block + 1;
        }
        true
    }

    /// Sends the messages that are due at `now`.
    pub(super) fn speak(&mut self, now: Time) {
        while let Some(&Reverse((at, receiver))) = self.waiting.queue.peek()
            && at <= now
        {
            self.waiting.queue.pop();
            if self.waiting.waits(receiver) {
                self.ask(at, receiver);
            }
        }
        while let Some((at, receiver, point)) = self.waiting.acks.pop(now) {
            self.say(at, receiver, Answer::Flushed { id: 0, point });
        }
    }

    /// Sends the requests of `receiver`, unless it no longer lacks anything or others have asked for everything.
    fn ask(&mut self, at: Time, receiver: u32) {
        let control = *self.hearing.of(receiver);
        self.waiting.free_at[receiver as usize] = at;
        let Some(terms) = control.terms.filter(|_| self.has_needs(receiver, &control)) else { return };
        let from = self.needs_from(receiver, &control);
        self.waiting.hold_off(receiver, from, at + holdoff(terms, grtt(terms, &self.config)));
        if self.is_covered(receiver, &control) {
            return;
        }
        let mut rest = Some(0);
        for _ in 0..MESSAGES {
            let Some(from) = rest else { return };
            let control = *self.hearing.of(receiver);
            let (requests, asked, block) = self.requests(receiver, &control, from);
            if requests.is_empty() {
                return;
            }
            self.counts.naks += 1;
            self.counts.naked_dtus += asked;
            self.say(at, receiver, Answer::Nack(requests));
            // A request that does not fit one message fits none.
            rest = block.filter(|&block| block > from);
        }
    }

    /// Returns the requests of `receiver`, with the state `control`, from block `from` on, as far as they fit a segment
    /// and the credit; the number of symbols that they ask for; and the first block that they do not cover fully.
    fn requests(&self, receiver: u32, control: &Control, from: u32) -> (Vec<Request>, u64, Option<u32>) {
        let room = usize::try_from(control.credit.saturating_sub(HEADER)).unwrap_or(usize::MAX);
        let Some(object) = self.object.as_ref().filter(|_| control.begun) else {
            let mut list = List::new(ROOM.min(room));
            let (number, fec) = self.unheard;
            list.add_run(Level::OBJECT, Run::one(0), |_| point(fec, number, BlockSymbol::default()));
            return (list.requests, 0, None);
        };
        let blocks = &object.blocks;
        let one = One { blocks, number: object.number, receiver };
        let mut list = List::new(usize::from(blocks.geometry().segment_size()).min(room));
        let unnamed = from == 0 && object.is_nameless(receiver);
        if unnamed && !list.add_run(Level::INFO, Run::one(0), |_| one.point(0, 0)) {
            return (list.requests, 0, None);
        }
        let (asked, rest) = needs::list(&one, from..control.passed(), &mut list);
        (list.requests, asked, rest)
    }

    /// Schedules the acknowledgement that `receiver` owes, within a GRTT, if it has everything.
    pub(super) fn pay(&mut self, now: Time, receiver: u32) {
        if !self.is_complete(receiver) || self.config.silent {
            return;
        }
        let (Some(point), Some(terms)) = (self.owed.remove(&receiver), self.hearing.of(receiver).terms)
        else {
            return;
        };
        if self.waiting.acks.renew(receiver, point) {
            return;
        }
        let spread = self.waits.acknowledgement(self.node(receiver), now, grtt(terms, &self.config));
        self.waiting.acks.insert(now + spread, receiver, point);
    }
}

/// Points of one object that a message asks for.
#[derive(Default)]
struct AskedPoints {
    /// Ranges and counts of symbols, by block.
    of_block: BTreeMap<u32, (Vec<(u32, u32)>, u32)>,
    /// Ranges of whole blocks.
    whole: Vec<(u32, u32)>,
    info: bool,
    all: bool,
}

impl AskedPoints {
    /// Collects what `requests` say of the `object` with this FEC id, of so many `blocks`.
    fn of(requests: &[Request], object: u16, fec: Fec, blocks: u32) -> Self {
        let mut asked = Self::default();
        for request in requests {
            for PointRange { first, last } in request.ranges() {
                let level = request.level;
                if (first.object, last.object) != (object, object) {
                    continue;
                }
                asked.info |= level.has(Level::INFO);
                asked.all |= level.has(Level::OBJECT);
                if level.has(Level::OBJECT) || first.fec != fec {
                    continue;
                }
                let (block, end) = (first.symbol.block, last.symbol.block);
                let range = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
                if level.has(Level::BLOCK) {
                    asked.whole.push((block, end.min(blocks - 1)));
                } else if level.has(Level::SEGMENT) && block == end && range.0 <= range.1 {
                    let of_block = asked.of_block.entry(block).or_default();
                    match request.form {
                        Form::Erasures => of_block.1 += range.0,
                        Form::Items | Form::Ranges => of_block.0.push(range),
                    }
                }
            }
        }
        asked
    }
}

/// Suppression of requests.
impl Population {
    /// Notes the requests of a message, which need not be repeated by receivers that hear it. The speaker and deaf
    /// receivers do not hear it.
    pub(super) fn overhear(&mut self, speaker: Option<u32>, requests: &[Request]) {
        let Self { object: Some(object), waiting, hearing, deaf, apart, receivers, .. } = self else {
            return;
        };
        if waiting.queue.is_empty() {
            return;
        }
        hearing.settle();
        let hears = |receiver: u32| speaker != Some(receiver) && !deaf.contains(receiver);
        let (number, geometry) = (object.number, *object.blocks.geometry());
        let asked = AskedPoints::of(requests, number.0, number.1, geometry.blocks());
        if asked.info || asked.all {
            for receiver in (0..*receivers).filter(|&receiver| hears(receiver)) {
                if waiting.waits(receiver) && asked.info {
                    waiting.heard_info.insert(receiver);
                }
                if waiting.waits(receiver) && asked.all {
                    waiting.heard_all.insert(receiver);
                }
            }
        }
        let listens = |waiting: &Waiting, receiver| {
            if !waiting.waits(receiver) {
                Listens::NotAnyMore
            } else if hears(receiver) {
                Listens::Yes
            } else {
                Listens::No
            }
        };
        for (first, last) in asked.whole {
            for block in first..=last {
                object.blocks.overhear_whole(block, |receiver| listens(waiting, receiver));
            }
        }
        for (block, (ranges, any)) in asked.of_block {
            // A receiver counts requests of others only for blocks that it would ask for itself.
            let counts = |control: &Control| control.begun && control.passed() > block;
            let common = counts(&hearing.common);
            let others = || hearing.behind.iter().filter(|(_, control)| counts(control) != common);
            if !common && others().next().is_none() {
                continue;
            }
            others().for_each(|&(receiver, _)| {
                apart.insert(receiver);
            });
            object.blocks.overhear_symbols(block, &ranges, any, |receiver| {
                match listens(waiting, receiver) {
                    Listens::Yes if apart.contains(receiver) == common => Listens::No,
                    listens => listens,
                }
            });
            others().for_each(|&(receiver, _)| {
                apart.remove(receiver);
            });
        }
    }
}
