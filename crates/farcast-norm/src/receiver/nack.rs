//! What a receiver asks for, and what it has heard others ask for (RFC 5740 §5.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::needs::{self, List, Needs, Part};
use super::session::{Session, State};
use crate::message::{Fec, Form, Level, Request};

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
    /// Whether the sender has passed anything without its having come.
    pub(super) fn has_needs(&self) -> bool {
        match self.state {
            State::Unnamed => true,
            State::Receiving => self.next_need(0, self.asked_up_to()).is_some(),
            _ => false,
        }
    }

    /// Of which blocks what lacks may be asked for: those that the sender has passed, and is not before again.
    fn asked_up_to(&self) -> u32 {
        self.reached.min(self.position.0)
    }

    /// Notes what somebody else asks for.
    pub(super) fn overhear(&self, heard: &mut Heard, requests: &[Request]) {
        let mut of_block = BTreeMap::new();
        needs::each_part(requests, self.object(), &self.geometry, |part| {
            let (block, useful) = match part {
                Part::Info => {
                    heard.info = true;
                    return;
                }
                Part::Whole(first, last) => {
                    if heard.whole.len() < REMEMBERED {
                        heard.whole.push((first, last));
                    }
                    return;
                }
                Part::Symbols(block, (low, high)) if self.is_asked_for(block) => {
                    let end = self.geometry.block_len(block) + self.parity;
                    let missing = (low..end.min(high + 1)).filter(|&symbol| !self.holds(block, symbol));
                    (block, missing.count() as u32)
                }
                Part::Count(block, count) if self.is_asked_for(block) => (block, count),
                Part::Symbols(..) | Part::Count(..) => return,
            };
            let count = of_block.entry(block).or_insert(0u32);
            *count = count.saturating_add(useful);
        });
        let room = REMEMBERED.saturating_sub(heard.of_block.len());
        for (block, count) in of_block.into_iter().take(room) {
            let most = heard.of_block.entry(block).or_insert(0u32);
            *most = (*most).max(count);
        }
    }

    /// Whether we would ask for something of `block`.
    fn is_asked_for(&self, block: u32) -> bool {
        block < self.asked_up_to() && self.lacks(block) > 0
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
        let asked = needs::ask(self, self.parity, self.asked_up_to(), &mut list);
        (list.requests, asked)
    }
}

impl Needs for Session {
    fn object(&self) -> (u16, Fec) {
        (self.key.object, self.fec)
    }

    fn geometry(&self) -> &farcast_delivery::Geometry {
        &self.geometry
    }

    fn lacks(&self, block: u32) -> u32 {
        Self::lacks(self, block)
    }

    fn holds(&self, block: u32, symbol: u32) -> bool {
        match symbol.checked_sub(self.geometry.block_len(block)) {
            None => self.have.contains(self.geometry.first_of(block) + symbol),
            Some(parity) => self.held.get(&block).is_some_and(|held| held.contains(parity)),
        }
    }

    fn next_need(&self, from: u32, end: u32) -> Option<u32> {
        let end = end.min(self.geometry.blocks());
        let mut block = from.max(self.geometry.block_of(self.low));
        while block < end {
            block = self.geometry.block_of(self.have.next_clear(self.geometry.first_of(block))?);
            if block < end && self.lacks(block) > 0 {
                return Some(block);
            }
            block += 1;
        }
        None
    }
}
