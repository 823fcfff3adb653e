//! What a receiver asks for of an object, and what others ask for of it (RFC 5740 §5.3): functions of what it has, for a
//! receiver that has a map of it as for many that are kept together.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::Geometry;

use crate::message::{Fec, Form, Level, Point, Request, Symbol};

/// What a receiver has of an object, as far as that decides what it asks for.
pub(crate) trait Needs {
    /// The object's number, and how its symbols are numbered.
    fn object(&self) -> (u16, Fec);

    /// How the object is cut.
    fn geometry(&self) -> &Geometry;

    /// How many symbols of `block` have yet to come.
    fn lacks(&self, block: u32) -> u32;

    /// Whether encoding symbol `symbol` of `block` has come.
    fn holds(&self, block: u32, symbol: u32) -> bool;

    /// The first block in `from .. end` that lacks symbols.
    fn next_need(&self, from: u32, end: u32) -> Option<u32>;

    /// A symbol of this object, as payload ids say it.
    fn point(&self, block: u32, symbol: u32) -> Point {
        let (object, fec) = self.object();
        let block_len = (fec == Fec::SmallBlock).then(|| self.geometry().block_len(block) as u16);
        Point { fec, object, symbol: Symbol { block, block_len, symbol: symbol as u16 } }
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

/// What would make up for what `block` lacks, of which there are `parity` symbols: parity first, that which has not come,
/// in order; and if that is not enough, the last of the segments that are missing.
fn wanted(needs: &impl Needs, block: u32, parity: u32) -> Vec<Run> {
    let (len, mut lacks) = (needs.geometry().block_len(block), needs.lacks(block));
    let mut of_parity = gaps(needs, block, len..len + parity);
    of_parity.retain_mut(|gap| {
        let part = Run::new(gap.first(), gap.count().min(lacks));
        lacks -= part.map_or(0, Run::count);
        *gap = part.unwrap_or(*gap);
        part.is_some()
    });
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

/// Adds what lacks of the blocks before `end`, of which each has `parity` parity symbols, in order, as far as there is
/// room; how many symbols that is.
pub(crate) fn ask(needs: &impl Needs, parity: u32, end: u32, list: &mut List) -> u64 {
    let geometry = needs.geometry();
    let (mut asked, mut from) = (0, 0);
    while let Some(block) = needs.next_need(from, end) {
        from = block + 1;
        if needs.lacks(block) == geometry.block_len(block) {
            // Blocks of which nothing has come follow one another after an outage.
            while from < end && needs.lacks(from) == geometry.block_len(from) {
                from += 1;
            }
            let points = [needs.point(block, 0), needs.point(from - 1, 0)];
            let (form, points) =
                if from - 1 == block { (Form::Items, &points[..1]) } else { (Form::Ranges, &points[..]) };
            if !list.add(form, Level::BLOCK, points) {
                break;
            }
            asked += u64::from(geometry.first_of(from) - geometry.first_of(block));
            continue;
        }
        for run in wanted(needs, block, parity) {
            let points: Vec<Point> = if run.count() > 2 {
                [run.first(), run.last()].map(|symbol| needs.point(block, symbol)).to_vec()
            } else {
                run.segments().map(|symbol| needs.point(block, symbol)).collect()
            };
            let form = if run.count() > 2 { Form::Ranges } else { Form::Items };
            if !list.add(form, Level::SEGMENT, &points) {
                return asked;
            }
            asked += u64::from(run.count());
        }
    }
    asked
}

/// Requests that fit a segment.
pub(crate) struct List {
    pub(crate) requests: Vec<Request>,
    point_len: usize,
    room: usize,
}

impl List {
    pub(crate) fn new(fec: Fec, room: usize) -> Self {
        Self { requests: Vec::new(), point_len: 4 + fec.payload_id_len(), room }
    }

    /// Adds points, to the last request if that is of the same kind; whether there was room.
    pub(crate) fn add(&mut self, form: Form, level: Level, points: &[Point]) -> bool {
        let same = self.requests.last().is_some_and(|last| (last.form, last.level) == (form, level));
        let len = if same { 0 } else { 4 } + points.len() * self.point_len;
        // A segment may be too small for anything; a request that goes nowhere is worse than one that is too long.
        if len > self.room && !self.requests.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(len);
        match self.requests.last_mut().filter(|_| same) {
            Some(last) => last.points.extend_from_slice(points),
            None => self.requests.push(Request { form, level, points: points.to_vec() }),
        }
        true
    }
}

/// A part of what others ask for of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// INFO, of whatever object.
    Info,
    /// From the first to the last of these blocks, as they stand.
    Whole(u32, u32),
    /// From the first to the last of these encoding symbols of a block, as far as it has so many.
    Symbols(u32, (u32, u32)),
    /// So many symbols of a block, whichever.
    Count(u32, u32),
}

/// Hands to `take` each part of `requests` that is of this object.
pub(crate) fn each_part(
    requests: &[Request],
    object: (u16, Fec),
    geometry: &Geometry,
    mut take: impl FnMut(Part),
) {
    for request in requests {
        if request.level.has(Level::INFO) {
            take(Part::Info);
        }
        let step = if request.form == Form::Ranges { 2 } else { 1 };
        for pair in request.points.chunks_exact(step) {
            let (first, last) = (&pair[0], &pair[step - 1]);
            if (first.object, first.fec) != object {
                continue;
            }
            let (block, end) = (first.symbol.block, last.symbol.block);
            let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
            if request.level.has(Level::OBJECT) {
                take(Part::Whole(0, geometry.blocks() - 1));
            } else if request.level.has(Level::BLOCK) {
                take(Part::Whole(block, end));
            } else if request.form == Form::Erasures {
                take(Part::Count(block, low));
            } else if request.level.has(Level::SEGMENT) && block == end && low <= high {
                take(Part::Symbols(block, (low, high)));
            }
        }
    }
}
