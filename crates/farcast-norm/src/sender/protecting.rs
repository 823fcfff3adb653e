//! Parity that leaves with a block unasked.

use farcast_core::{Span, Time};

use super::Sender;
use super::crowd::{BlockEnd, Need};
use super::departures::Unheard;
use super::parts::{Part, Parts};
use super::schedule::Next;
use crate::message::NodeId;
use crate::requests::BlockId;
use crate::settings::REQUEST;

/// Part of the return that requests for blocks with parity may take.
const SHARE: f64 = 0.01;
/// Number of receivers that may ask for one of the last blocks.
const LAST: f64 = 0.05;
/// Fewest segments of a block whose losses tell something of others.
const TELLING: u32 = 16;

impl Sender {
    /// Returns the longest wait of a receiver before it asks.
    pub(super) fn spread(&self) -> Span {
        self.advertised().span() * u64::from(self.config.backoff)
    }

    /// Has receivers wait as usual from now on, because their losses are known, or because the end is near.
    pub(super) fn usual_backoff(&mut self) {
        self.config.backoff = self.usual_backoff;
    }

    /// Returns the number of datagrams that leave before a receiver's request is answered.
    fn closing(&self, spacing: Span) -> u64 {
        // The wait consists of back-off, gathering, hold-off and the path: RFC 5740 §5.3 and §5.4.1.
        let wait = self.advertised().span() * (2 * u64::from(self.config.backoff) + 2);
        wait.as_nanos() / spacing.as_nanos().max(1)
    }

    /// Returns the number of receivers that may ask for a block of `segments`, although parity leaves with it. The
    /// thinner the return, the dearer is a request.
    fn may_ask(&self, segments: u32) -> f64 {
        let time = self.core.pacer.span(usize::from(self.config.segment_size)) * u64::from(segments);
        time.as_secs_f64() / self.return_rate().time_of_bytes(REQUEST).as_secs_f64() * SHARE
    }

    /// Returns the number of parity symbols that receivers of a crowd need with `block`.
    fn symbols_for_crowd(&self, block: BlockId, is_last: bool) -> u32 {
        let segments = self.objects.get(block.object).map_or(0, |outgoing| outgoing.block_len(block.block));
        let left = self.may_ask(segments).min(if is_last { LAST } else { f64::MAX });
        self.crowd.symbols(segments, self.config.parity.into(), left)
    }

    /// Chooses the parity that leaves with a block, if the first `count` symbols of `next` end the block.
    pub(super) fn protect(&mut self, now: Time, spacing: Span, object: u32, next: &Next, count: u32) {
        if !self.objects.ends_block(object, next, count) {
            return;
        }
        let of = BlockId { object, block: next.block };
        let (at, group) = (now + spacing * u64::from(count - 1), self.config.receivers);
        self.crowd.note_end(BlockEnd { of, at, spread: self.spread(), group });
        let is_last = u64::from(self.objects.len()) < self.closing(spacing);
        if is_last {
            self.usual_backoff();
        }
        let symbols = self.symbols_for_crowd(of, is_last);
        self.objects.protect(of, symbols, is_last);
    }

    /// Notes a request, by which the number of receivers and their losses become known. If they prove to be many, the
    /// parity that they need leaves at once, before most of them ask.
    pub(super) fn foresee(&mut self, now: Time, from: NodeId, parts: &Parts, heard: Time) {
        let Some(need) = self.need(from, parts) else { return };
        let grtt = self.advertised().span();
        let remedy = self.crowd.note_request(now, grtt, heard, &need);
        if let Some(size) =
            self.crowd.size().filter(|size| size.receivers() > self.config.receivers.receivers())
        {
            self.config.receivers = size;
        }
        let Some(remedy) = remedy else { return };
        self.grtt.restore(remedy.grtt);
        self.usual_backoff();
        let mut new = self.asked.commit(&mut self.objects);
        for block in remedy.blocks {
            let symbols = self.symbols_for_crowd(block, false);
            new |= self.objects.send_ahead(block, symbols);
        }
        if new {
            self.resume(now);
        }
    }

    /// Notes a request for `parts` that were not foreseen.
    pub(super) fn note_late(&mut self, now: Time, parts: &Parts, unheard: &Unheard) {
        let mut last = None;
        for part in &parts.asked {
            let (Part::Symbols((object, block), _) | Part::Erasures((object, block), _)) = *part else {
                continue;
            };
            let of = BlockId { object, block };
            let left = self.objects.get(object).map_or(0, |outgoing| outgoing.schedule.left(block));
            let unheard = unheard.blocks.get(&(object, block)).map_or(0, |of_block| of_block.fresh);
            if left > unheard && last != Some(of) {
                self.crowd.note_late(now, of);
            }
            last = Some(of);
        }
    }

    /// Returns the need of the receiver that asks for `parts`, if it tells something of the losses of others.
    fn need(&self, node: NodeId, parts: &Parts) -> Option<Need> {
        let (mut need, mut last) = (None::<Need>, None);
        for part in &parts.asked {
            let (object, block, symbols) = match *part {
                Part::Symbols((object, block), run) => (object, block, run.count()),
                Part::Erasures((object, block), count) => (object, block, count),
                Part::Info(_) => continue,
                Part::Objects(_) | Part::Blocks(..) => return None,
            };
            let of = BlockId { object, block };
            let segments = self.objects.get(object)?.block_len(block);
            if segments < TELLING {
                return None;
            }
            let need = need.get_or_insert(Need { node, first: of, blocks: 0, segments: 0, symbols: 0 });
            if last != Some(of) {
                need.blocks += 1;
                need.segments += segments;
            }
            need.symbols += symbols;
            last = Some(of);
        }
        // A request for nothing tells nothing.
        need.filter(|need| need.symbols > 0)
    }
}
