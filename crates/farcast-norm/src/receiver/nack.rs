//! What a receiver asks for, and when (RFC 5740 §5.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::Run;

use super::session::{Position, Session, State};
use crate::message::{Fec, Form, Level, Point, Request};

/// How many blocks, and runs of blocks, that others have asked for are remembered. Of what is beyond, we ask ourselves.
const REMEMBERED: usize = 4096;

/// What is known while a receiver waits to ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// By block, how many symbols that we lack somebody else has asked for in one request, at most.
    of_block: BTreeMap<u32, u32>,
    /// Runs of blocks that somebody else has asked for whole: the first and the last.
    whole: Vec<(u32, u32)>,
    info: bool,
}

impl Heard {
    /// Whether others have asked for at least `lacks` symbols of `block`.
    fn covers(&self, block: u32, lacks: u32) -> bool {
        self.of_block.get(&block).is_some_and(|&count| count >= lacks)
            || self.whole.iter().any(|&(first, last)| (first..=last).contains(&block))
    }
}

impl Session {
    /// The first thing that the sender has passed without its having come: where it stands. INFO stands before all
    /// else.
    pub(super) fn first_need(&self) -> Option<Position> {
        match self.state {
            State::Unnamed => Some((0, 0)),
            State::Receiving => {
                let block = self.next_need(0, self.asked_up_to())?;
                Some((block, self.wanted(block).first()?.first()))
            }
            _ => None,
        }
    }

    /// Of which blocks what lacks may be asked for: those that the sender has passed, and is not before again.
    fn asked_up_to(&self) -> u32 {
        self.reached.min(self.position.0)
    }

    /// What would make up for what `block` lacks: parity first, that which has not come, in order; and if that is not
    /// enough, the last of the segments that are missing.
    fn wanted(&self, block: u32) -> Vec<Run> {
        let (len, mut lacks) = (self.geometry.block_len(block), self.lacks(block));
        let mut parity = Vec::new();
        let none = farcast_core::Bitmap::new(self.parity);
        let held = self.held.get(&block).unwrap_or(&none);
        for gap in held.iter_gaps() {
            let Some(run) = Run::new(len + gap.first(), gap.count().min(lacks)) else { break };
            lacks -= run.count();
            parity.push(run);
        }
        let Some(segments) = self.geometry.block_run(block) else { return parity };
        // As many are passed over as parity makes up for.
        let mut spared = self.missing_in(block) - lacks;
        let mut wanted = Vec::new();
        for gap in self.have.gaps_in(segments) {
            let skip = spared.min(gap.count());
            spared -= skip;
            wanted.extend(Run::new(gap.first() + skip - segments.first(), gap.count() - skip));
        }
        wanted.extend(parity);
        wanted
    }

    /// Notes what somebody else asks for.
    pub(super) fn overhear(&self, heard: &mut Heard, requests: &[Request]) {
        let mut of_block = BTreeMap::new();
        for request in requests {
            heard.info |= request.level.has(Level::INFO);
            let step = if request.form == Form::Ranges { 2 } else { 1 };
            for pair in request.points.chunks_exact(step) {
                self.overhear_pair(&mut of_block, heard, request, (&pair[0], &pair[step - 1]));
            }
        }
        let room = REMEMBERED.saturating_sub(heard.of_block.len());
        for (block, count) in of_block.into_iter().take(room) {
            let most = heard.of_block.entry(block).or_insert(0u32);
            *most = (*most).max(count);
        }
    }

    fn overhear_pair(
        &self,
        of_block: &mut BTreeMap<u32, u32>,
        heard: &mut Heard,
        request: &Request,
        (first, last): (&Point, &Point),
    ) {
        if (first.object, first.fec) != (self.key.object, self.fec) {
            return;
        }
        let (block, end) = (first.symbol.block, last.symbol.block);
        let whole = match (request.level.has(Level::OBJECT), request.level.has(Level::BLOCK)) {
            (true, _) => Some((0, self.geometry.blocks() - 1)),
            (false, true) => Some((block, end)),
            (false, false) => None,
        };
        if let Some(whole) = whole {
            if heard.whole.len() < REMEMBERED {
                heard.whole.push(whole);
            }
            return;
        }
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        if block != end || block >= self.asked_up_to() || self.lacks(block) == 0 || high < low {
            return;
        }
        let useful = if request.form == Form::Erasures {
            low
        } else {
            let most = self.geometry.block_len(block) + self.parity;
            (low..=high.min(most)).filter(|&symbol| self.is_useful(block, symbol)).count() as u32
        };
        let count = of_block.entry(block).or_insert(0);
        *count = count.saturating_add(useful);
    }

    /// Whether `symbol` of `block` exists and has not come.
    fn is_useful(&self, block: u32, symbol: u32) -> bool {
        let len = self.geometry.block_len(block);
        match symbol.checked_sub(len) {
            None => !self.have.contains(self.geometry.first_of(block) + symbol),
            Some(parity) => {
                parity < self.parity && self.held.get(&block).is_none_or(|held| !held.contains(parity))
            }
        }
    }

    /// Whether others have asked for all that we would.
    pub(super) fn is_covered(&self, heard: &Heard) -> bool {
        if self.state == State::Unnamed {
            return heard.info;
        }
        let (mut from, end) = (0, self.asked_up_to());
        while let Some(block) = self.next_need(from, end) {
            if !heard.covers(block, self.lacks(block)) {
                return false;
            }
            from = block + 1;
        }
        true
    }

    /// What lacks, in order, as far as it fits a segment; and how many symbols that is.
    pub(super) fn requests(&self) -> (Vec<Request>, u64) {
        let mut list = List::new(self.fec, usize::from(self.geometry.segment_size()));
        if self.state == State::Unnamed {
            list.add(Form::Items, Level::INFO, &[self.point(0, 0)]);
            return (list.requests, 0);
        }
        let (mut asked, mut from, end) = (0, 0, self.asked_up_to());
        while let Some(block) = self.next_need(from, end) {
            from = block + 1;
            let all = self.geometry.block_len(block);
            if self.missing_in(block) == all && !self.held.contains_key(&block) {
                // Blocks of which nothing has come follow one another after an outage.
                while from < end && self.lacks(from) == self.geometry.block_len(from) {
                    from += 1;
                }
                let points = [self.point(block, 0), self.point(from - 1, 0)];
                let (form, points) =
                    if from - 1 == block { (Form::Items, &points[..1]) } else { (Form::Ranges, &points[..]) };
                if !list.add(form, Level::BLOCK, points) {
                    break;
                }
                asked += u64::from(self.geometry.first_of(from) - self.geometry.first_of(block));
                continue;
            }
            for run in self.wanted(block) {
                let points: Vec<Point> = if run.count() > 2 {
                    [run.first(), run.last()].map(|symbol| self.point(block, symbol)).to_vec()
                } else {
                    run.segments().map(|symbol| self.point(block, symbol)).collect()
                };
                let form = if run.count() > 2 { Form::Ranges } else { Form::Items };
                if !list.add(form, Level::SEGMENT, &points) {
                    return (list.requests, asked);
                }
                asked += u64::from(run.count());
            }
        }
        (list.requests, asked)
    }
}

/// Requests that fit a segment.
struct List {
    requests: Vec<Request>,
    point_len: usize,
    room: usize,
}

impl List {
    fn new(fec: Fec, room: usize) -> Self {
        Self { requests: Vec::new(), point_len: 4 + fec.payload_id_len(), room }
    }

    /// Adds points, to the last request if that is of the same kind; whether there was room.
    fn add(&mut self, form: Form, level: Level, points: &[Point]) -> bool {
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
