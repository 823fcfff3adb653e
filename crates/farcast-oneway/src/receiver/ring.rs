//! Losses of a sender that numbers no datagrams, computed from the order in which it sends.

use farcast_core::Run;
use farcast_delivery::{Geometry, Passage};

use crate::message::{Kind, Symbols};
use crate::sender::stripe;

/// Distance in symbols from the sender's position up to which a gap is a loss, or a symbol is late. A symbol farther
/// away was sent out of turn.
const NEAR: u64 = 256;

/// Position of a sender in the rings of all blocks. Symbols repeated out of turn do not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    passage: Passage,
    /// Place after the last symbol that came out of turn. The first symbol after a long outage looks the same.
    astray: Option<u64>,
}

impl Ring {
    /// Records that `symbols` came, of an object sent in `order`.
    pub(super) fn came(&mut self, order: &Order<'_>, symbols: &Symbols) {
        let width = order.stripe();
        let mut rest = Some(symbols.run);
        while let Some(run) = rest {
            // A joined run may span several stripes.
            let room = width - run.first() % width;
            let count = room.min(run.count());
            self.came_at(order.all(), order.place(symbols.kind, symbols.block, run.first()), count);
            rest = Run::new(run.first() + count, run.count() - count);
        }
    }

    fn came_at(&mut self, all: u64, place: u64, count: u32) {
        let Some(next) = self.passage.next() else { return self.passage.came(place, count) };
        let ahead = (place + all - next % all) % all;
        let follows = self.astray == Some(place);
        self.astray = None;
        if ahead <= NEAR || follows {
            self.passage.came(next.saturating_add(ahead), count);
        } else if all - ahead <= NEAR {
            self.passage.came(next.saturating_sub(all - ahead), count);
        } else {
            self.astray = Some(place + u64::from(count));
        }
    }

    pub(super) fn passage(&self) -> Passage {
        self.passage
    }
}

/// Order of all symbols: by stripes of the rings, and within a stripe by blocks.
pub(super) struct Order<'a> {
    pub(super) geometry: &'a Geometry,
    /// Parity symbols of each block.
    pub(super) parity: u32,
}

impl Order<'_> {
    fn stripe(&self) -> u32 {
        stripe(self.geometry.block_size())
    }

    /// Returns the number of symbols in all rings; at least 1.
    fn all(&self) -> u64 {
        u64::from(self.geometry.segments()) + u64::from(self.geometry.blocks()) * u64::from(self.parity)
    }

    /// Returns the place of symbol `at` of `block`.
    fn place(&self, kind: Kind, block: u32, at: u32) -> u64 {
        let width = self.stripe();
        let (before, most) = match kind {
            Kind::Source => (0, self.geometry.block_size()),
            Kind::Parity => (u64::from(self.geometry.segments()), self.parity),
        };
        let begin = at / width * width;
        let end = begin.saturating_add(width).min(most);
        let stripes = self.of_blocks(kind, self.geometry.blocks(), begin);
        let of_stripe = self.of_blocks(kind, block, end) - self.of_blocks(kind, block, begin);
        before + stripes + of_stripe + u64::from(at - begin)
    }

    /// Returns the number of symbols before `to` in each of the first `blocks` blocks, in all.
    fn of_blocks(&self, kind: Kind, blocks: u32, to: u32) -> u64 {
        let whole = u64::from(blocks) * u64::from(to);
        if kind == Kind::Parity {
            return whole;
        }
        if to >= self.geometry.block_size() {
            return self.geometry.first_of(blocks).min(self.geometry.segments()).into();
        }
        // Blocks differ by at most one segment, except for the last.
        let last = self.geometry.blocks() - 1;
        let short = if blocks > last { to.saturating_sub(self.geometry.block_len(last)) } else { 0 };
        whole - u64::from(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all symbols in the order in which a sender of whole rounds sends them.
    fn ring(geometry: &Geometry, parity: u32) -> alloc::vec::Vec<Symbols> {
        let mut all = alloc::vec::Vec::new();
        let width = stripe(geometry.block_size());
        for (kind, most) in [(Kind::Source, geometry.block_size()), (Kind::Parity, parity)] {
            for begin in (0..most).step_by(width as usize) {
                for block in 0..geometry.blocks() {
                    let len = if kind == Kind::Source { geometry.block_len(block) } else { parity };
                    for at in begin..(begin + width).min(len) {
                        let run = Run::one(at);
                        all.push(Symbols { session: 1, round: 1, kind, block, run, len: 9, last: 9 });
                    }
                }
            }
        }
        all
    }

    fn geometries() -> [Geometry; 4] {
        let new = |segments: u64, block| Geometry::new(segments * 10, 10, block).expect("valid");
        let partitioned = Geometry::partitioned(10_010, 10, 300).expect("valid");
        [new(1000, 300), new(5, 100), new(3000, 1024), partitioned]
    }

    #[test]
    fn places_are_those_of_the_order_in_which_all_is_sent() {
        for geometry in geometries() {
            for parity in [0, 7, 256] {
                let order = Order { geometry: &geometry, parity };
                let all = ring(&geometry, parity);
                assert_eq!(order.all(), all.len() as u64);
                for (at, one) in all.iter().enumerate() {
                    let place = order.place(one.kind, one.block, one.run.first());
                    assert_eq!(place, at as u64, "{geometry:?} {parity} {one:?}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_come_is_lost_over_rounds_and_outages() {
        let geometry = geometries()[0];
        let order = Order { geometry: &geometry, parity: 100 };
        let all = ring(&geometry, 100);
        let mut lost = Ring::default();
        for round in 0..3 {
            for (at, one) in all.iter().enumerate() {
                // In the third round there is an outage of two thirds.
                let outage = round == 2 && at > 300 && at < 1200;
                if at % 10 != 9 && !outage {
                    lost.came(&order, one);
                }
            }
        }
        let passage = lost.passage();
        let came = all.len() as u64 * 27 / 10 - 810;
        assert!(passage.sent().abs_diff(all.len() as u64 * 3) < 5, "{passage:?}");
        assert!((passage.sent() - passage.lost()).abs_diff(came) < 5, "{passage:?} {came}");
    }

    #[test]
    fn what_is_repeated_out_of_turn_is_not_counted() {
        let geometry = geometries()[0];
        let order = Order { geometry: &geometry, parity: 100 };
        let all = ring(&geometry, 100);
        let mut lost = Ring::default();
        for (at, one) in all.iter().enumerate() {
            lost.came(&order, one);
            // Symbols far from the end of the ring, which is close to its beginning.
            if at % 50 == 49 && (900..1100).contains(&at) {
                lost.came(&order, &all[at / 50 - 18]);
            }
        }
        assert_eq!((lost.passage().lost(), lost.passage().sent()), (0, all.len() as u64));
    }
}
