//! Needs of a receiver for an object, as functions of what it has (RFC 5740 §5.3). Single receivers and populations
//! share them.

use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use farcast_core::Run;
use farcast_delivery::Geometry;

use crate::message::{Fec, Level, Point};
use crate::requests::{BlockSymbol, List, point};

/// State of an object at a receiver, as far as it decides the receiver's requests.
pub(crate) trait Needs {
    /// Returns the object's number on the wire, and its code.
    fn number(&self) -> (u16, Fec);

    /// Returns the object's geometry.
    fn geometry(&self) -> &Geometry;

    /// Returns the number of parity symbols of a block.
    fn parity(&self) -> u32;

    /// Returns the number of symbols of `block` that have yet to come.
    fn lacks(&self, block: u32) -> u32;

    /// Returns `true` if encoding symbol `symbol` of `block` has come.
    fn holds(&self, block: u32, symbol: u32) -> bool;

    /// Returns the first block in `from .. end` that lacks symbols.
    fn next_need(&self, from: u32, end: u32) -> Option<u32>;

    /// Returns a symbol of this object in the form of payload ids.
    fn point(&self, block: u32, symbol: u32) -> Point {
        let (object, fec) = self.number();
        point(fec, object, BlockSymbol { block, len: self.geometry().block_len(block), symbol })
    }
}

/// Returns the runs of missing symbols among `symbols` of `block`.
fn gaps(needs: &impl Needs, block: u32, symbols: Range<u32>) -> Vec<Run> {
    let mut gaps: Vec<Run> = Vec::new();
    for symbol in symbols.filter(|&symbol| !needs.holds(block, symbol)) {
        match gaps.last_mut().filter(|last| last.end() == symbol) {
            Some(last) => *last = Run::new(last.first(), last.count() + 1).unwrap_or(*last),
            None => gaps.push(Run::one(symbol)),
        }
    }
    gaps
}

/// Returns symbols that make up for what `block` lacks: parity first, and if that is not enough, the last of the
/// missing segments.
///
/// Parity behind the last parity that has come is preferred. No receiver has it yet, so it is of use to all, and it is
/// one run however many earlier symbols were lost. Lost parity follows, in order.
fn wanted(needs: &impl Needs, block: u32) -> Vec<Run> {
    let (len, mut lacks) = (needs.geometry().block_len(block), needs.lacks(block));
    let end = len + needs.parity();
    let behind = (len..end).rev().find(|&symbol| needs.holds(block, symbol)).map_or(len, |last| last + 1);
    let of_parity = gaps(needs, block, behind..end).into_iter().chain(gaps(needs, block, len..behind));
    let mut of_parity: Vec<Run> = of_parity
        .map_while(|gap| {
            let part = Run::new(gap.first(), gap.count().min(lacks));
            lacks -= part.map_or(0, Run::count);
            part
        })
        .collect();
    of_parity.sort_unstable_by_key(|gap| gap.first());
    let of_source = gaps(needs, block, 0..len);
    // As many missing segments are skipped as parity makes up for.
    let mut spared = of_source.iter().map(|gap| gap.count()).sum::<u32>() - lacks;
    let mut wanted = Vec::new();
    for gap in of_source {
        let skip = spared.min(gap.count());
        spared -= skip;
        wanted.extend(Run::new(gap.first() + skip, gap.count() - skip));
    }
    wanted.extend(of_parity);
    wanted
}

/// Lists the lacking symbols of `blocks`, in order, as far as there is room. Returns the number of
/// symbols, and the first block that is not fully listed, if there is one.
pub(crate) fn list(needs: &impl Needs, blocks: Range<u32>, list: &mut List) -> (u64, Option<u32>) {
    let geometry = needs.geometry();
    let (mut asked, mut from, end) = (0, blocks.start, blocks.end.min(geometry.blocks()));
    while let Some(block) = needs.next_need(from, end) {
        from = block + 1;
        if needs.lacks(block) == geometry.block_len(block) {
            // Blocks of which nothing has come follow one another after an outage.
            while from < end && needs.lacks(from) == geometry.block_len(from) {
                from += 1;
            }
            let blocks = Run::new(block, from - block);
            if !blocks.is_none_or(|run| list.add_run(Level::BLOCK, run, |block| needs.point(block, 0))) {
                return (asked, Some(block));
            }
            asked += u64::from(geometry.first_of(from) - geometry.first_of(block));
            continue;
        }
        for run in wanted(needs, block) {
            if !list.add_run(Level::SEGMENT, run, |symbol| needs.point(block, symbol)) {
                return (asked, Some(block));
            }
            asked += u64::from(run.count());
        }
    }
    (asked, None)
}

/// Returns the number of `symbols` of `block` that exist and have not come.
pub(crate) fn useful(needs: &impl Needs, block: u32, symbols: RangeInclusive<u32>) -> u32 {
    let end = needs.geometry().block_len(block) + needs.parity();
    (*symbols.start()..end.min(symbols.end() + 1)).filter(|&symbol| !needs.holds(block, symbol)).count()
        as u32
}
