//! What receivers of a stream have asked for, while its sender waits for more of it (RFC 5740 §5.4.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::Run;
use farcast_core::engine::Reject;

use super::outgoing::Outgoing;
use crate::message::{Fec, Form, Level, Point, Request};

/// The most runs of symbols of a block that are gathered; beyond, all of it is sent.
const MOST_RUNS: usize = 512;

/// What is asked for of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    /// How many symbols the worst message has asked for.
    pub(super) count: u32,
    /// Somebody has nothing of it.
    pub(super) whole: bool,
    runs: Vec<Run>,
}

impl Need {
    /// Exactly what was asked for, of a block of `len` source symbols.
    pub(super) fn asked(&self, len: u32) -> impl Iterator<Item = Run> + '_ {
        let whole = if self.whole { Run::new(0, len) } else { None };
        whole.into_iter().chain(self.runs.iter().copied())
    }
}

/// By block.
#[derive(Debug, Default)]
pub(super) struct Asked {
    needs: BTreeMap<u32, Need>,
}

/// What a message asks for.
#[derive(Debug, Default)]
pub(super) struct Parts {
    needs: BTreeMap<u32, Need>,
    /// Something that the sender does not keep any more, or does not have.
    pub(super) gone: bool,
}

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Notes what one receiver asks for, of blocks from `from` on; whether that is anything.
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

    /// Puts all of it into what is to be sent: whether any of it is new, and whether any was asked for too often.
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

/// Takes requests apart, which are about stream `object`.
///
/// # Errors
/// If any of it is of the stream and has not been sent.
pub(super) fn parts(
    requests: &[Request],
    (object, fec): (u16, Fec),
    (outgoing, parity): (&Outgoing, u32),
) -> Result<Parts, Reject> {
    let mut parts = Parts::default();
    for request in requests {
        let step = if request.form == Form::Ranges { 2 } else { 1 };
        for pair in request.points.chunks_exact(step) {
            let (first, last) = (&pair[0], &pair[step - 1]);
            if first.fec != fec || last.fec != fec {
                return Err(Reject::OutOfRange);
            }
            if (first.object, last.object) == (object, object) {
                pair_of(request, (first, last), (outgoing, parity), &mut parts)?;
            } else {
                parts.gone = true;
            }
        }
    }
    Ok(parts)
}

fn pair_of(
    request: &Request,
    (first, last): (&Point, &Point),
    (outgoing, parity): (&Outgoing, u32),
    parts: &mut Parts,
) -> Result<(), Reject> {
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
        // Where parity does not do, any so many will not either: nobody said which.
        need.count = need.count.saturating_add(low);
        need.runs.extend(Run::new(0, len));
        return Ok(());
    }
    let run = Run::new(low, high - low + 1).ok_or(Reject::OutOfRange)?;
    need.count = need.count.saturating_add(run.count());
    need.runs.push(run);
    Ok(())
}
