//! What receivers have asked for, while the sender waits for more of it (RFC 5740 §5.4.1).

use alloc::collections::BTreeMap;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run};
use farcast_delivery::Geometry;

use super::schedule::Schedule;
use crate::message::{Fec, Form, Level, Point, Request};

/// The needs of receivers, as one.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    geometry: Geometry,
    parity: u32,
    /// Of which object, and how its symbols are numbered.
    object: (u16, Fec),
    /// Segments.
    source: Bitmap,
    /// Parity symbols, counted through the object.
    symbols: Bitmap,
    /// Blocks that somebody asks for as they stand.
    whole: Bitmap,
    /// By block, how many symbols the worst single request has asked for.
    erasures: BTreeMap<u32, u32>,
    info: bool,
}

/// A part of a request that was checked.
enum Part {
    Info,
    /// Blocks, as they stand.
    Blocks(Run),
    /// Symbols of a block.
    Symbols(u32, Run),
    /// So many of a block, whichever.
    Erasures(u32, u32),
}

impl Asked {
    pub(super) fn new(geometry: Geometry, parity: u16, object: u16, fec: Fec) -> Self {
        let symbols = Bitmap::new(geometry.blocks() * u32::from(parity));
        let (source, whole) = (Bitmap::new(geometry.segments()), Bitmap::new(geometry.blocks()));
        let (parity, object, erasures) = (parity.into(), (object, fec), BTreeMap::new());
        Self { geometry, parity, object, source, symbols, whole, erasures, info: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.erasures.is_empty() && !self.info
    }

    /// Notes what one receiver asks for; of blocks from `from` on. How many segments and symbols that is.
    ///
    /// # Errors
    /// If any of it is not there to be asked for; then nothing is noted.
    pub(super) fn note(&mut self, requests: &[Request], from: u32) -> Result<u32, Reject> {
        self.each(requests, |_, _| 0)?;
        // What one receiver asks for of a block, in all: any so many symbols will do.
        let mut of_block = BTreeMap::new();
        let asked = self.each(requests, |asked, part| match part {
            Part::Info => {
                asked.info |= from == 0;
                1
            }
            Part::Blocks(blocks) => match blocks.clip(from, u32::MAX) {
                Some(blocks) => asked.note_blocks(blocks),
                None => 0,
            },
            Part::Symbols(block, symbols) if block >= from => {
                asked.note_symbols(block, symbols);
                *of_block.entry(block).or_insert(0u32) += symbols.count();
                symbols.count()
            }
            Part::Erasures(block, count) if block >= from => {
                // Where parity does not do, any so many will not either: nobody said which.
                asked.note_blocks(Run::one(block));
                asked.whole.remove(block);
                *of_block.entry(block).or_insert(0) += count;
                count
            }
            Part::Symbols(..) | Part::Erasures(..) => 0,
        })?;
        for (block, count) in of_block {
            let worst = self.erasures.entry(block).or_insert(0);
            *worst = (*worst).max(count);
        }
        Ok(asked)
    }

    /// Notes that `blocks` are asked for; how many segments they have.
    fn note_blocks(&mut self, blocks: Run) -> u32 {
        self.whole.insert_run(blocks);
        let (first, end) = (self.geometry.first_of(blocks.first()), self.geometry.first_of(blocks.end()));
        match Run::new(first, end - first) {
            Some(run) => {
                self.source.insert_run(run);
                run.count()
            }
            None => 0,
        }
    }

    fn note_symbols(&mut self, block: u32, symbols: Run) {
        let len = self.geometry.block_len(block);
        if let Some(dtus) = symbols.clip(0, len)
            && let Some(run) = self.geometry.segments_of(block, dtus)
        {
            self.source.insert_run(run);
        }
        if let Some(parity) = symbols.clip(len, u32::MAX)
            && let Some(run) = Run::new(block * self.parity + parity.first() - len, parity.count())
        {
            self.symbols.insert_run(run);
        }
    }

    /// Hands each part of `requests` to `take`; the sum of what that gives.
    fn each(
        &mut self,
        requests: &[Request],
        mut take: impl FnMut(&mut Self, Part) -> u32,
    ) -> Result<u32, Reject> {
        let mut sum = 0u32;
        for request in requests {
            if request.level.has(Level::INFO) {
                sum = sum.saturating_add(take(self, Part::Info));
            }
            // Points in pairs, of which items have the same twice.
            let step = if request.form == Form::Ranges { 2 } else { 1 };
            for points in request.points.chunks_exact(step) {
                let (first, last) = (&points[0], &points[step - 1]);
                if let Some(part) = self.part(request, first, last)? {
                    sum = sum.saturating_add(take(self, part));
                }
            }
        }
        Ok(sum)
    }

    /// What a pair of points asks for; `None` where that is nothing but INFO.
    fn part(&self, request: &Request, first: &Point, last: &Point) -> Result<Option<Part>, Reject> {
        if [first, last].iter().any(|point| (point.object, point.fec) != self.object) {
            return Err(Reject::OutOfRange);
        }
        let geometry = &self.geometry;
        let (block, end) = (first.symbol.block, last.symbol.block);
        if request.level.has(Level::OBJECT) {
            return Ok(Run::new(0, geometry.blocks()).map(Part::Blocks));
        }
        if request.level.has(Level::BLOCK) {
            let blocks = end.checked_sub(block).filter(|_| end < geometry.blocks());
            let blocks = blocks.and_then(|more| Run::new(block, more + 1)).ok_or(Reject::OutOfRange)?;
            return Ok(Some(Part::Blocks(blocks)));
        }
        if !request.level.has(Level::SEGMENT) {
            return Ok(None);
        }
        let most = geometry.block_len(block) + self.parity;
        if block != end || block >= geometry.blocks() {
            return Err(Reject::OutOfRange);
        }
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        if request.form == Form::Erasures {
            return if low <= most { Ok(Some(Part::Erasures(block, low))) } else { Err(Reject::OutOfRange) };
        }
        let symbols = high.checked_sub(low).and_then(|more| Run::new(low, more + 1));
        let symbols = symbols.filter(|symbols| symbols.end() <= most).ok_or(Reject::OutOfRange)?;
        Ok(Some(Part::Symbols(block, symbols)))
    }

    /// Whether the object's INFO was asked for; it no longer is.
    pub(super) fn take_info(&mut self) -> bool {
        core::mem::take(&mut self.info)
    }

    /// Puts all that was asked for on `schedule`, and forgets it. Whether any of it is new there.
    pub(super) fn commit(&mut self, schedule: &mut Schedule) -> bool {
        let (mut block, mut new) = (0, false);
        while let Some(next) = self.next_block(block) {
            if schedule.has_begun(next) {
                let erasures = self.erasures.get(&next).copied().filter(|_| !self.whole.contains(next));
                new |= schedule.repair(next, erasures, &self.source, &self.symbols);
            }
            block = next + 1;
        }
        self.source.clear();
        self.symbols.clear();
        self.whole.clear();
        self.erasures.clear();
        new
    }

    /// The first block from `block` on of which anything was asked for.
    fn next_block(&self, block: u32) -> Option<u32> {
        let erasures = self.erasures.range(block..).next().map(|(&block, _)| block);
        erasures.into_iter().chain(self.whole.next_set(block)).min()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::message::Symbol;

    const FEC: Fec = Fec::ReedSolomon8;

    fn request(form: Form, level: Level, symbols: &[(u32, u16)]) -> Request {
        let point = |&(block, symbol)| Point {
            fec: FEC,
            object: 7,
            symbol: Symbol { block, block_len: None, symbol },
        };
        Request { form, level, points: symbols.iter().map(point).collect() }
    }

    /// What is asked for of ten segments in blocks of 4, 3 and 3 with two parity symbols, all of which have been sent,
    /// is sent as (block, first symbol, how many).
    fn answer(nacks: &[Vec<Request>]) -> Vec<(u32, u32, u32)> {
        let geometry = Geometry::partitioned(1000, 100, 4).expect("valid");
        let (mut schedule, mut asked) = (Schedule::new(geometry, 2, 0), Asked::new(geometry, 2, 7, FEC));
        while let Some(next) = schedule.next() {
            schedule.sent(&next, next.symbols.count());
        }
        for nack in nacks {
            asked.note(nack, 0).expect("all of it is there");
        }
        asked.commit(&mut schedule);
        assert!(asked.is_empty());
        let mut sent = Vec::new();
        while let Some(next) = schedule.next() {
            schedule.sent(&next, next.symbols.count());
            sent.push((next.block, next.symbols.first(), next.symbols.count()));
        }
        sent
    }

    #[test]
    fn the_worst_need_of_a_block_decides() {
        let one = request(Form::Items, Level::SEGMENT, &[(1, 0)]);
        let two = request(Form::Ranges, Level::SEGMENT, &[(1, 1), (1, 2)]);
        assert_eq!(answer(&[[one.clone()].to_vec()]), [(1, 3, 1)]);
        assert_eq!(answer(&[[one.clone()].to_vec(), [two.clone()].to_vec()]), [(1, 3, 2)]);
        // One receiver that lacks all three needs more than there is.
        assert_eq!(answer(&[[one, two].to_vec()]), [(1, 0, 3)]);
        assert_eq!(answer(&[[request(Form::Erasures, Level::SEGMENT, &[(2, 2)])].to_vec()]), [(2, 3, 2)]);
        assert_eq!(answer(&[[request(Form::Erasures, Level::SEGMENT, &[(2, 3)])].to_vec()]), [(2, 0, 3)]);
    }

    #[test]
    fn who_lacks_a_whole_block_gets_it_whatever_others_ask() {
        let whole = request(Form::Items, Level::BLOCK, &[(0, 0)]);
        let one = request(Form::Items, Level::SEGMENT, &[(0, 1)]);
        assert_eq!(answer(&[[whole].to_vec(), [one].to_vec()]), [(0, 0, 4)]);
        let blocks = request(Form::Ranges, Level::BLOCK, &[(1, 0), (2, 0)]);
        assert_eq!(answer(&[[blocks].to_vec()]), [(1, 0, 3), (2, 0, 3)]);
        let object = request(Form::Items, Level::OBJECT, &[(0, 0)]);
        assert_eq!(answer(&[[object].to_vec()]), [(0, 0, 4), (1, 0, 3), (2, 0, 3)]);
    }

    #[test]
    fn what_is_not_there_is_refused_whole() {
        let geometry = Geometry::partitioned(1000, 100, 4).expect("valid");
        let mut asked = Asked::new(geometry, 2, 7, FEC);
        let good = request(Form::Items, Level::SEGMENT, &[(0, 5)]);
        let bad = [
            request(Form::Items, Level::SEGMENT, &[(0, 6)]),
            request(Form::Items, Level::SEGMENT, &[(3, 0)]),
            request(Form::Ranges, Level::SEGMENT, &[(0, 2), (0, 1)]),
            request(Form::Ranges, Level::SEGMENT, &[(0, 2), (1, 2)]),
            request(Form::Ranges, Level::BLOCK, &[(1, 0), (3, 0)]),
            request(Form::Ranges, Level::BLOCK, &[(1, 0), (0, 0)]),
            request(Form::Erasures, Level::SEGMENT, &[(0, 7)]),
        ];
        for bad in bad {
            assert_eq!(asked.note(&[good.clone(), bad.clone()], 0), Err(Reject::OutOfRange), "{bad:?}");
            assert!(asked.is_empty());
        }
        let mut other = good.clone();
        other.points[0].object = 8;
        assert_eq!(asked.note(&[other], 0), Err(Reject::OutOfRange));
        assert_eq!(asked.note(&[good], 1), Ok(0), "of blocks that are not looked at, nothing");
        assert!(asked.is_empty());
    }
}
