//! Requests of others, which need not be repeated (RFC 5740 §5.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::needs;
use super::remote::Remote;
use crate::message::{Form, Level, PointRange, Request};
use crate::requests::BlockId;

/// Maximum number of blocks, and of runs of blocks and objects, to remember from others' requests. Beyond it this
/// receiver asks as if nobody else had.
const REMEMBERED: usize = 4096;

/// Requests of others that were heard while a receiver waits to ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// Greatest number of symbols that another receiver has asked for in one request and this receiver lacks, by object
    /// and block.
    of_block: BTreeMap<(u32, u32), u32>,
    /// Runs of blocks that somebody else has asked for whole: the object, the first and the last block.
    blocks: Vec<(u32, u32, u32)>,
    /// Runs of objects that somebody else has asked for whole, and runs of objects whose INFO somebody else has asked
    /// for.
    objects: Vec<(u32, u32)>,
    infos: Vec<(u32, u32)>,
}

impl Heard {
    /// Returns `true` if others have asked for at least `lacks` symbols of `block`.
    pub(super) fn covers_block(&self, BlockId { object, block }: BlockId, lacks: u32) -> bool {
        self.of_block.get(&(object, block)).is_some_and(|&count| count >= lacks)
            || self.blocks.iter().any(|&(of, first, last)| of == object && (first..=last).contains(&block))
            || self.covers_object(object)
    }

    /// Returns `true` if others have asked for all of `object`.
    pub(super) fn covers_object(&self, object: u32) -> bool {
        self.objects.iter().any(|&(first, last)| (first..=last).contains(&object))
    }

    /// Returns `true` if others have asked for the INFO of `object`.
    pub(super) fn covers_info(&self, object: u32) -> bool {
        let covers = |&(first, last): &(u32, u32)| (first..=last).contains(&object);
        self.infos.iter().any(covers) || self.covers_object(object)
    }
}

fn remember<T>(list: &mut Vec<T>, one: T) {
    if list.len() < REMEMBERED {
        list.push(one);
    }
}

impl Remote {
    /// Notes requests of another receiver.
    pub(super) fn overhear(&mut self, requests: &[Request]) {
        let mut heard = core::mem::take(&mut self.heard);
        let mut of_block = BTreeMap::new();
        for request in requests {
            for range in request.ranges() {
                self.overhear_range(&mut of_block, &mut heard, request, range);
            }
        }
        let room = REMEMBERED.saturating_sub(heard.of_block.len());
        for (block, count) in of_block.into_iter().take(room) {
            let most = heard.of_block.entry(block).or_insert(0u32);
            *most = (*most).max(count);
        }
        self.heard = heard;
    }

    fn overhear_range(
        &self,
        of_block: &mut BTreeMap<(u32, u32), u32>,
        heard: &mut Heard,
        request: &Request,
        PointRange { first, last }: PointRange<'_>,
    ) {
        let Some(numbers) = &self.numbers else { return };
        let (Some(number), Some(last_number)) = (numbers.of(first.object), numbers.of(last.object)) else {
            return;
        };
        let level = request.level;
        if level.has(Level::INFO) {
            remember(&mut heard.infos, (number, last_number));
        }
        if level.has(Level::OBJECT) {
            return remember(&mut heard.objects, (number, last_number));
        }
        let (block, end) = (first.symbol.block, last.symbol.block);
        if number != last_number || first.fec != self.fec {
            return;
        }
        if level.has(Level::BLOCK) {
            return remember(&mut heard.blocks, (number, block, end));
        }
        let Some(object) = self.objects.get(&number).filter(|_| level.has(Level::SEGMENT)) else { return };
        let (low, high) = (u32::from(first.symbol.symbol), u32::from(last.symbol.symbol));
        if block != end || block >= self.passed_of(number) || object.content.lacks(block) == 0 || high < low {
            return;
        }
        let useful =
            if request.form == Form::Erasures { low } else { needs::useful(object, block, low..=high) };
        let count = of_block.entry((number, block)).or_insert(0);
        *count = count.saturating_add(useful);
    }
}
