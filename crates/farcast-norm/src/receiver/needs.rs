//! What a receiver asks for of an object, and what others ask for of it (RFC 5740 §5.3): functions of what it has,
//! for a receiver that has a map of it as for many that are kept together.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::Geometry;

use crate::message::{Fec, Level, Point};
use crate::requests::{List, point};

/// What a receiver has of an object, as far as that decides what it asks for.
pub(crate) trait Needs {
    /// The object's number, and how its symbols are numbered.
    fn number(&self) -> (u16, Fec);

    /// How the object is cut.
    fn geometry(&self) -> &Geometry;

    /// Parity symbols of a block.
    fn parity(&self) -> u32;

    /// How many symbols of `block` have yet to come.
    fn lacks(&self, block: u32) -> u32;

    /// Whether encoding symbol `symbol` of `block` has come.
    fn holds(&self, block: u32, symbol: u32) -> bool;

    /// The first block in `from .. end` that lacks symbols.
    fn next_need(&self, from: u32, end: u32) -> Option<u32>;

    /// A symbol of this object, as payload ids say it.
    fn point(&self, block: u32, symbol: u32) -> Point {
        let (object, fec) = self.number();
        point(fec, object, (block, self.geometry().block_len(block)), symbol)
    }
}

/// The runs of those of `symbols` of `block` that have not come.
fn gaps(needs: &impl Needs, block: u32, symbols: core::ops::Range<u32>) -> Vec<Run> {
    let mut gaps: Vec<Run> = Vec::new();
    for symbol in symbols.filter(|&symbol| !needs.holds(block, symbol)) {
        match gaps.last_mut().filter(|last| last.end() == symbol) {
            Some(last) => *last = Run::new(last.first(), last.count() + 1).unwrap_or(*last),
            None => gaps.push(Run::one(symbol)),
        }
    }
    gaps
}

/// What would make up for what `block` lacks: parity first, and if that is not enough, the last of the segments that are
/// missing.
///
/// Of parity, that behind the last that has come: nobody has it yet, so that it is of use to all who hear it asked for,
/// and it is one run however much of what came before was lost. Then what was lost, in order.
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
    // As many are passed over as parity makes up for.
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

/// Lists what lacks of the blocks in `from .. end`, in order, as far as there is room: how many symbols that is, and
/// the first block of which not all is listed, if there is one.
pub(crate) fn list(needs: &impl Needs, (from, end): (u32, u32), list: &mut List) -> (u64, Option<u32>) {
    let geometry = needs.geometry();
    let (mut asked, mut from, end) = (0, from, end.min(geometry.blocks()));
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

/// How many of the symbols from `low` to `high` of `block` exist and have not come.
pub(crate) fn useful(needs: &impl Needs, block: u32, (low, high): (u32, u32)) -> u32 {
    let end = needs.geometry().block_len(block) + needs.parity();
    (low..end.min(high + 1)).filter(|&symbol| !needs.holds(block, symbol)).count() as u32
}
