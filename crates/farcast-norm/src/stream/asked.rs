//! Requests of a stream's receivers, gathered while the sender waits for more (RFC 5740 §5.4.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::Run;
use farcast_core::engine::Reject;

use super::outgoing::Outgoing;
use crate::message::{Fec, Form, Level, PointRange, Request};

/// Maximum number of runs of symbols of a block to gather; beyond it, the whole block is sent.
const MOST_RUNS: usize = 512;

/// Requests for a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    /// Number of symbols that the worst message has asked for.
    pub(super) count: u32,
    /// `true` if a receiver has nothing of the block.
    pub(super) whole: bool,
    runs: Vec<Run>,
}

impl Need {
    /// Returns exactly the requested symbols, of a block of `len` source symbols.
    pub(super) fn asked(&self, len: u32) -> impl Iterator<Item = Run> + '_ {
        let whole = if self.whole { Run::new(0, len) } else { None };
        whole.into_iter().chain(self.runs.iter().copied())
    }
}

/// Requests by block.
#[derive(Debug, Default)]
pub(super) struct Asked {
    needs: BTreeMap<u32, Need>,
}

/// Requests of one message.
#[derive(Debug, Default)]
pub(super) struct Parts {
    needs: BTreeMap<u32, Need>,
    /// `true` if the message asks for something that the sender no longer keeps, or never had.
    pub(super) gone: bool,
}

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Notes the requests of one receiver, for blocks from `from` on. Returns `true` if there are any.
    pub(super) fn note(&mut self, parts: Parts, from: u32) -> bool {
        let mut any = false;
        for (block, need) in parts.needs.into_iter().filter(|(block, _)| *block >= from) {
            any = true;
            let all = self.needs.entry(block).or_default();
            all.count = all.count.max(need.count);
            all.whole |= need.whole || all.runs.len() + need.runs.len() > MOST_RUNS;
            if !all.whole {
                all.runs.extend(need.runs);
            }
        }
        any
    }

    /// Schedules all requested symbols. The first flag is `true` if any of them was not scheduled yet, the second if
    /// any block was requested too often.
    pub(super) fn commit(&mut self, outgoing: &mut Outgoing) -> (bool, bool) {
        let (mut new, mut spent) = (false, false);
        for (block, need) in core::mem::take(&mut self.needs) {
            match outgoing.repair(block, &need) {
                Some(any) => new |= any,
                None => spent = true,
            }
        }
        (new, spent)
    }
}

/// Stream that requests are checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check<'a> {
    pub(super) object: u16,
    pub(super) fec: Fec,
    pub(super) outgoing: &'a Outgoing,
    /// Parity symbols of a block.
    pub(super) parity: u32,
}

impl Check<'_> {
    /// Takes apart requests about the stream.
    ///
    /// # Errors
    /// A request for a part of the stream that has not been sent.
    pub(super) fn parts(self, requests: &[Request]) -> Result<Parts, Reject> {
        let mut parts = Parts::default();
        for request in requests {
            for range in request.ranges() {
                let PointRange { first, last } = range;
                if first.fec != self.fec || last.fec != self.fec {
                    return Err(Reject::OutOfRange);
                }
                if (first.object, last.object) == (self.object, self.object) {
                    self.range(request, range, &mut parts)?;
                } else {
                    parts.gone = true;
                }
            }
        }
        Ok(parts)
    }

    fn range(self, request: &Request, range: PointRange<'_>, parts: &mut Parts) -> Result<(), Reject> {
        let Self { outgoing, parity, .. } = self;
        let PointRange { first, last } = range;
        let (len, level) = (outgoing.len(), request.level);
        let begun = outgoing.last_sent().map_or(0, |(block, _)| block + 1);
        let (mut block, mut end) = (first.symbol.block, last.symbol.block.saturating_add(1));
        if level.has(Level::OBJECT) {
            (block, end) = (outgoing.first(), begun);
        }
        if end > begun {
            return Err(Reject::OutOfRange);
        }
        parts.gone |= block < outgoing.first();
        let block = block.max(outgoing.first());
        if level.has(Level::OBJECT) || level.has(Level::BLOCK) {
            for block in block..end {
                let need = parts.needs.entry(block).or_default();
                (need.whole, need.count) = (true, len);
            }
            return Ok(());
        }
        if !level.has(Level::SEGMENT) || block >= end {
            return Ok(());
        }
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        if block + 1 != end || high >= len + parity || high < low {
            return Err(Reject::OutOfRange);
        }
        let need = parts.needs.entry(block).or_default();
        if request.form == Form::Erasures {
            // Where parity is not enough, segments cannot be chosen either, because the request does not name any.
            need.count = need.count.saturating_add(low);
            need.runs.extend(Run::new(0, len));
            return Ok(());
        }
        let run = Run::new(low, high - low + 1).ok_or(Reject::OutOfRange)?;
        need.count = need.count.saturating_add(run.count());
        need.runs.push(run);
        Ok(())
    }
}
