//! Window of a stream's receiver: the blocks that it keeps, and its progress in reading them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_delivery::Taken;
use farcast_fec::BlockCode;

use crate::FtiStyle;
use crate::message::{Data, Fec, Fti, Point};
use crate::stream::asking::{Needs, Place};
use crate::stream::block::{Block, Shape};
use crate::stream::segment::{HEADER, Segment};

/// Maximum number of blocks of a window, because requests search the window block by block.
const MOST_BLOCKS: u64 = 1 << 14;

/// State of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// Octets are read one after the other.
    InOrder,
    /// Octets are lacking, and the gap is yet to be reported.
    Lost,
    /// The gap was reported, and reading continues with the next message. `passed` is the number of octets since then
    /// that belong to no complete message.
    Waiting { passed: u64 },
    /// Everything has been read.
    Ended,
}

/// Blocks at hand, and the state of reading.
#[derive(Debug)]
pub(super) struct Window {
    object: u16,
    fec: Fec,
    fti: Fti,
    shape: Shape,
    code: Option<BlockCode>,
    /// Number of the first block that is not completely read.
    low: u32,
    blocks: VecDeque<Option<Block>>,
    /// Blocks that are no longer in use.
    spare: Vec<Block>,
    most: u32,
    /// Next symbol of the first block to be read.
    symbol: u32,
    /// Progress of reading up to which the owner has stored everything.
    settled: Place,
    /// Place in the stream of the next octet.
    offset: u64,
    reading: Reading,
    /// `true` if octets that were sent cannot be had any more.
    lacks: bool,
    /// End of the stream, if it has come.
    end: Option<Place>,
    /// `true` if nothing more comes.
    given_up: bool,
}

impl Window {
    /// Makes the window of a stream of which `data` is heard first, in `memory` octets. Earlier parts of the stream are
    /// wanted as far as the sender may still have them, unless `from_now`.
    pub(super) fn new(data: &Data, style: FtiStyle, memory: u64, from_now: bool) -> Result<Self, Reject> {
        let fti = data.fti.ok_or(Reject::Unexpected)?;
        let parity = fti.parity_symbols(data.fec, style);
        let shape = Shape {
            len: fti.max_block_len.into(),
            parity: parity.into(),
            symbol: usize::from(fti.segment_size) + HEADER,
        };
        let symbols = u64::from(fti.max_block_len) + u64::from(parity);
        if shape.len == 0 || fti.segment_size == 0 || symbols > 1 << data.fec.symbol_bits() || fti.group > 1 {
            return Err(Reject::OutOfRange);
        }
        let most = (memory / shape.octets()).min(MOST_BLOCKS) as u32;
        if most < 2 {
            return Err(Reject::Limit);
        }
        let code = crate::stream::code(data.fec, fti.max_block_len, parity, shape.symbol);
        // A sender keeps about this many blocks, and tells by a squelch where they begin.
        let block = u64::from(shape.len) * u64::from(fti.segment_size);
        let kept = fti.size.div_ceil(block).min(u64::from(most) - 1) as u32;
        let low = if from_now { data.block } else { data.block.saturating_sub(kept) };
        Ok(Self {
            object: data.object,
            fec: data.fec,
            fti,
            shape,
            code,
            low,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            most,
            symbol: 0,
            settled: (low, 0),
            offset: 0,
            reading: if low == 0 { Reading::InOrder } else { Reading::Lost },
            lacks: low > 0,
            end: None,
            given_up: false,
        })
    }

    pub(super) fn object(&self) -> u16 {
        self.object
    }

    pub(super) fn fec(&self) -> Fec {
        self.fec
    }

    pub(super) fn segment_size(&self) -> usize {
        self.fti.segment_size.into()
    }

    /// Returns the octets that the window's blocks take.
    pub(super) fn kept(&self) -> u64 {
        (self.blocks.iter().flatten().count() + self.spare.len()) as u64 * self.shape.octets()
    }

    /// Returns the needs of the receiver, if the sender has come to `place`.
    pub(super) fn needs(&self, place: Place) -> Needs<'_> {
        Needs {
            shape: self.shape,
            fec: self.fec,
            object: self.object,
            low: self.low,
            blocks: &self.blocks,
            place: self.end.map_or(place, |end| place.min(end)),
        }
    }

    /// Makes room for `block`; blocks that lie too far before it are lost. Returns `true` if the block is not read yet.
    pub(super) fn reach(&mut self, block: u32) -> bool {
        if block < self.low {
            return false;
        }
        if block - self.low >= self.most {
            self.let_go(block - self.most + 1);
        }
        let at = (block - self.low) as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, None);
        }
        true
    }

    /// Drops blocks before `low`, which cannot be had.
    pub(super) fn let_go(&mut self, low: u32) {
        if low <= self.low {
            return;
        }
        let gone = ((low - self.low) as usize).min(self.blocks.len());
        let spare = self.blocks.drain(..gone).flatten();
        self.spare.extend(spare);
        (self.low, self.symbol) = (low, 0);
        self.lose();
    }

    fn lose(&mut self) {
        self.lacks = true;
        if self.reading != Reading::Ended {
            self.reading = Reading::Lost;
        }
    }

    /// Notes that nothing more comes, so that lacking octets cannot be had.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Returns `true` if the end of the stream and everything before it have come.
    pub(super) fn will_end(&self) -> bool {
        let Some(end) = self.end else { return self.reading == Reading::Ended };
        self.needs(end).lacking().next().is_none()
    }

    /// Stores a symbol that has come.
    pub(super) fn store(&mut self, data: &Data, payload: &[u8]) -> Result<(), Reject> {
        if data.fec != self.fec || data.fti.is_some_and(|fti| fti != self.fti) {
            return Err(Reject::Inconsistent);
        }
        let (shape, symbol) = (self.shape, data.symbols.first());
        if symbol >= shape.len + shape.parity || payload.len() > shape.symbol {
            return Err(Reject::OutOfRange);
        }
        let source = symbol < shape.len;
        if source {
            self.check(data.block, symbol, payload)?;
        } else if payload.len() != shape.symbol {
            return Err(Reject::Inconsistent);
        }
        if !self.reach(data.block) {
            return Err(Reject::Duplicate);
        }
        let place = &mut self.blocks[(data.block - self.low) as usize];
        let block = place.get_or_insert_with(|| match self.spare.pop() {
            Some(mut block) => {
                block.clear();
                block
            }
            None => Block::new(shape),
        });
        let new = if source {
            block.store(shape, symbol, payload)
        } else {
            self.code.is_some() && block.keep(shape, symbol - shape.len, payload)
        };
        if let Some(code) = &self.code {
            block.rebuild(shape, code)?;
        }
        if new { Ok(()) } else { Err(Reject::Duplicate) }
    }

    /// Checks a source symbol, and notes the end of the stream.
    fn check(&mut self, block: u32, symbol: u32, payload: &[u8]) -> Result<(), Reject> {
        let segment = Segment::read(payload)?;
        if self.end.is_some_and(|end| (block, symbol) >= end && segment.len > 0) {
            return Err(Reject::Inconsistent);
        }
        if segment.len == 0 && self.end.is_none() && block >= self.low {
            self.end = Some((block, symbol + 1));
        }
        Ok(())
    }

    /// Appends the next octets to `out`, if they are there. Returns a gap or the end where one is next.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) -> Option<Taken> {
        loop {
            if self.reading == Reading::Lost {
                // The gap is reported, and reading continues with the next message.
                self.reading = Reading::Waiting { passed: 0 };
                return Some(Taken::Gap(self.offset, None));
            } else if self.reading == Reading::Ended {
                return None;
            }
            let Some(segment) = self.next() else {
                // Only octets behind the ones that cannot come are left.
                if self.given_up && self.skip() {
                    continue;
                }
                return None;
            };
            if let Some(taken) = self.take(segment, out) {
                return Some(taken);
            }
        }
    }

    /// Returns the header of the next symbol, if the symbol is there.
    fn next(&mut self) -> Option<Segment> {
        let block = self.blocks.front()?.as_ref()?;
        let symbol = block.symbol(self.shape, self.symbol)?;
        match Segment::read(symbol) {
            Ok(segment) => Some(segment),
            // The symbol was rebuilt from wrong parity.
            Err(_) => Some(Segment { len: 0, message: u16::MAX, offset: 0 }),
        }
    }

    /// Skips lacking symbols up to the next one that is there. Returns `true` if there is one.
    fn skip(&mut self) -> bool {
        let held = |(at, block): (usize, &Option<Block>)| {
            let block = block.as_ref()?;
            let from = if at == 0 { self.symbol } else { 0 };
            (from..self.shape.len).find(|&symbol| block.holds(self.shape, symbol)).map(|symbol| (at, symbol))
        };
        let Some((at, symbol)) = self.blocks.iter().enumerate().find_map(held) else { return false };
        self.let_go(self.low + at as u32);
        self.symbol = symbol;
        self.lose();
        true
    }

    /// Reads the next symbol.
    fn take(&mut self, segment: Segment, out: &mut Vec<u8>) -> Option<Taken> {
        if segment.message > segment.len {
            self.pass();
            self.lose();
            return None;
        }
        let ahead = segment.offset.wrapping_sub(self.offset as u32);
        // Octets ahead of the offset never left, because their sender had no room for them. Octets that were read do
        // not come again.
        let at = self.offset + u64::from(ahead);
        match self.reading {
            Reading::InOrder if ahead != 0 => {
                self.lacks = true;
                let from = self.offset;
                (self.reading, self.offset) = (Reading::Waiting { passed: 0 }, at);
                Some(Taken::Gap(from, Some(at)))
            }
            _ if segment.len == 0 => {
                self.pass();
                self.reading = Reading::Ended;
                self.offset = at;
                Some(Taken::End(at))
            }
            Reading::Waiting { passed } => {
                // If messages are not marked, reading continues after the length of a window.
                let unmarked = passed >= self.fti.size;
                let Some(skip) = segment.message.checked_sub(1).or(unmarked.then_some(0)) else {
                    self.offset = at + u64::from(segment.len);
                    self.reading = Reading::Waiting { passed: passed + u64::from(segment.len) };
                    self.pass();
                    return None;
                };
                self.reading = Reading::InOrder;
                self.give(segment, at, skip, out)
            }
            _ => self.give(segment, at, 0, out),
        }
    }

    /// Appends the octets of a segment, except the first `skip`.
    fn give(&mut self, segment: Segment, at: u64, skip: u16, out: &mut Vec<u8>) -> Option<Taken> {
        let symbol = self.blocks.front()?.as_ref()?.symbol(self.shape, self.symbol)?;
        out.extend_from_slice(&segment.content(symbol)[usize::from(skip)..]);
        self.offset = at + u64::from(segment.len);
        self.pass();
        Some(Taken::Octets(at + u64::from(skip)))
    }

    /// Moves on to the next symbol.
    fn pass(&mut self) {
        self.symbol += 1;
        if self.symbol == self.shape.len {
            self.spare.extend(self.blocks.pop_front().flatten());
            (self.low, self.symbol) = (self.low + 1, 0);
        }
    }

    /// Notes that the owner has stored everything that was read.
    pub(super) fn settle(&mut self) {
        self.settled = (self.low, self.symbol);
    }

    /// Returns `true` if everything up to `point` is stored, and nothing before it is lacking.
    pub(super) fn has(&self, point: Point) -> bool {
        let place = (point.symbol.block, u32::from(point.symbol.symbol));
        point.object == self.object && !self.lacks && self.settled > place
    }
}
