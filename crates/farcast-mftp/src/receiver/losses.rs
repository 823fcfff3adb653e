//! Losses of a receiver: DTUs that were sent to it and did not reach it.

use alloc::collections::BTreeMap;

use farcast_core::Run;

use super::answers::Question;
use crate::message::{Data, DataKind, Nak};

/// State of a block.
#[derive(Clone, Copy, Debug, Default)]
struct BlockLosses {
    /// Pass of the last NAK, 0 before the first, and the losses counted by it.
    pass: u32,
    lost: u32,
    /// Last pass of which DTUs of the block came.
    heard: u32,
    symbols: Symbols,
}

/// Parity symbols of a block. They are numbered in the order of sending, so gaps between received ones are losses.
#[derive(Clone, Copy, Debug, Default)]
struct Symbols {
    /// First symbol that counts, and the end of the received ones.
    first: u32,
    end: u32,
    /// Number of symbols received, and of those counted as lost.
    came: u32,
    lost: u32,
}

impl Symbols {
    /// Records that `new` of the symbols `run` came for the first time; those from `first` on were sent to this
    /// receiver.
    fn note(&mut self, run: Run, new: u32, first: u32) {
        if self.end == 0 {
            self.first = first.min(run.first());
        }
        self.end = self.end.max(run.end());
        self.came = self.came.saturating_add(new);
    }

    /// Returns the number lost since the last call.
    fn settle(&mut self) -> u32 {
        let lost = (self.end - self.first).saturating_sub(self.came);
        let more = lost.saturating_sub(self.lost);
        self.lost = self.lost.max(lost);
        more
    }
}

/// DTUs that came and were not stored.
#[derive(Clone, Copy, Debug, Default)]
struct Unstored {
    pass: u32,
    dtus: u32,
}

/// Counter of DTUs that were sent and did not come, once for each time that they were sent.
///
/// Some missing DTUs are not lost: those that a restart requests first, those that passed before the receiver joined,
/// and those that came and were not stored. A repeated request without a new transmission counts no loss either.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// Block and place of the first DTU of the first pass that came; `None` before.
    since: Option<(u32, u32)>,
    blocks: BTreeMap<u32, BlockLosses>,
    unstored: BTreeMap<u32, Unstored>,
}

impl Losses {
    /// Records that `data` came.
    pub(super) fn heard(&mut self, data: &Data) {
        if self.since.is_none() {
            let first_pass = data.pass == 1 && data.kind == DataKind::Source;
            self.since = Some(if first_pass { (data.block, data.dtus.first()) } else { (u32::MAX, 0) });
        }
        if data.kind == DataKind::Source
            && let Some(block) = self.blocks.get_mut(&data.block)
        {
            block.heard = block.heard.max(data.pass);
        }
    }

    /// Records that `new` of the parity symbols `run` of `block` came for the first time.
    pub(super) fn parity(&mut self, block: u32, run: Run, new: u32) {
        // Symbols that passed before the receiver joined can be ruled out only for blocks that began after that.
        let whole = self.since.is_some_and(|(since, _)| block > since);
        let first = if whole { 0 } else { run.first() };
        self.blocks.entry(block).or_default().symbols.note(run, new, first);
    }

    /// Returns the number of parity symbols of `block` lost since the last NAK, now that no more are needed.
    pub(super) fn settle(&mut self, block: u32) -> u32 {
        self.blocks.get_mut(&block).map_or(0, |block| block.symbols.settle())
    }

    /// Records that `dtus` of `block` came in `pass` and were not stored.
    pub(super) fn unstored(&mut self, block: u32, pass: u32, dtus: u32) {
        let unstored = self.unstored.entry(block).or_default();
        if unstored.pass != pass {
            *unstored = Unstored { pass, dtus: 0 };
        }
        unstored.dtus = unstored.dtus.saturating_add(dtus);
    }

    /// Returns the number of DTUs in `nak` that came in its pass and were not stored.
    pub(super) fn unstored_of(&self, nak: &Nak) -> u32 {
        let of_pass = self.unstored.get(&nak.block).filter(|unstored| unstored.pass == nak.pass);
        of_pass.map_or(0, |unstored| unstored.dtus.min(nak.missing.count()))
    }

    /// Records `nak`, an answer to `question`, and returns the number of further lost DTUs. In a restart only requested
    /// DTUs are sent.
    pub(super) fn asked(&mut self, question: &Question, nak: &Nak, restart: bool) -> u32 {
        let before = self.blocks.get(&nak.block).copied().unwrap_or_default();
        let lost = self.lost(question, nak, restart, before).saturating_sub(nak.unstored);
        let block = self.blocks.entry(nak.block).or_default();
        let counted = if before.pass == nak.pass { before.lost } else { 0 };
        (block.pass, block.lost) = (nak.pass, lost.max(counted));
        lost.saturating_sub(counted) + block.symbols.settle()
    }

    /// Returns the number of DTUs lost among those sent since the last NAK for their block.
    fn lost(&self, question: &Question, nak: &Nak, restart: bool, before: BlockLosses) -> u32 {
        if nak.pass == 0 {
            return 0;
        }
        if before.pass == 0 || nak.pass == 1 {
            return if restart { 0 } else { self.lost_of_first_pass(nak) };
        }
        if before.pass == nak.pass {
            return before.lost;
        }
        // A request for this block alone follows the DTUs sent of it. Losses of parity show in its numbers.
        let alone = question.blocks.count() == 1 && before.symbols.end == 0;
        if before.heard > before.pass || alone { nak.missing.count() } else { 0 }
    }

    /// Returns the number of DTUs in `nak` that were sent in the first pass after this receiver had joined.
    fn lost_of_first_pass(&self, nak: &Nak) -> u32 {
        let (block, dtu) = self.since.unwrap_or((u32::MAX, 0));
        match nak.block {
            of if of < block => 0,
            of if of > block => nak.missing.count(),
            _ => nak
                .missing
                .len()
                .checked_sub(dtu)
                .and_then(|rest| Run::new(dtu, rest))
                .map_or(0, |run| nak.missing.count_in(run)),
        }
    }
}
