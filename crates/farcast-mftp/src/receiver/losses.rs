//! Losses of a receiver: of what was sent to it, what did not reach it.

use alloc::collections::BTreeMap;

use farcast_core::Run;

use super::answers::Question;
use crate::message::{Data, DataKind, Nak};

/// What is known of a block that was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The pass of the last NAK, and what was counted as lost by it.
    pass: u32,
    lost: u32,
    /// The last pass of which something of the block came.
    heard: u32,
}

/// DTUs that came and were not stored.
#[derive(Clone, Copy, Debug, Default)]
struct Unstored {
    pass: u32,
    dtus: u32,
}

/// Counts DTUs that were sent and did not come, once for each time they were sent.
///
/// What a restart asks for first, what went by before the receiver joined and what came and was not stored was not
/// lost. To ask again while nothing was sent is no loss either.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// The first DTU of the first pass that came: a block and a place in it. `None` before.
    since: Option<(u32, u32)>,
    blocks: BTreeMap<u32, Block>,
    unstored: BTreeMap<u32, Unstored>,
}

impl Losses {
    /// Notes that `data` came.
    pub(super) fn heard(&mut self, data: &Data) {
        if self.since.is_none() {
            let first_pass = data.pass == 1 && data.kind == DataKind::Source;
            self.since = Some(if first_pass { (data.block, data.dtus.first()) } else { (u32::MAX, 0) });
        }
        if let Some(block) = self.blocks.get_mut(&data.block) {
            block.heard = block.heard.max(data.pass);
        }
    }

    /// Notes that `dtus` of `block` came in `pass` and were not stored.
    pub(super) fn unstored(&mut self, block: u32, pass: u32, dtus: u32) {
        let unstored = self.unstored.entry(block).or_default();
        if unstored.pass != pass {
            *unstored = Unstored { pass, dtus: 0 };
        }
        unstored.dtus = unstored.dtus.saturating_add(dtus);
    }

    /// How many of the DTUs that `nak` names came in its pass and were not stored.
    pub(super) fn unstored_of(&self, nak: &Nak) -> u32 {
        let of_pass = self.unstored.get(&nak.block).filter(|unstored| unstored.pass == nak.pass);
        of_pass.map_or(0, |unstored| unstored.dtus.min(nak.missing.count()))
    }

    /// Notes `nak`, an answer to `question`; how many more DTUs were lost. In a restart only what was asked for is sent.
    pub(super) fn asked(&mut self, question: &Question, nak: &Nak, restart: bool) -> u32 {
        let before = self.blocks.get(&nak.block).copied();
        let lost = self.lost(question, nak, restart, before).saturating_sub(nak.unstored);
        let block = self.blocks.entry(nak.block).or_default();
        let counted = if before.is_some_and(|before| before.pass == nak.pass) { block.lost } else { 0 };
        (block.pass, block.lost) = (nak.pass, lost.max(counted));
        lost.saturating_sub(counted)
    }

    fn lost(&self, question: &Question, nak: &Nak, restart: bool, before: Option<Block>) -> u32 {
        if nak.pass == 0 {
            return 0;
        }
        if nak.pass == 1 && !restart {
            let (block, dtu) = self.since.unwrap_or((u32::MAX, 0));
            return match nak.block {
                of if of < block => 0,
                of if of > block => nak.missing.count(),
                _ => nak
                    .missing
                    .len()
                    .checked_sub(dtu)
                    .and_then(|rest| Run::new(dtu, rest))
                    .map_or(0, |run| nak.missing.count_in(run)),
            };
        }
        let Some(before) = before else { return 0 };
        let sent = before.heard == nak.pass || question.blocks.count() == 1;
        let asked = before.pass < nak.pass;
        match before {
            Block { pass, lost, .. } if pass == nak.pass => lost,
            _ if sent && asked => nak.missing.count().saturating_sub(nak.parity_held),
            _ => 0,
        }
    }
}
