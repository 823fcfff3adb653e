//! Recent transmissions, which a receiver may not have heard when it asked (RFC 5740 §5.4.1).
//!
//! A request lists what was lacking when it was sent. Transmissions since then answer a part of it, perhaps all, and
//! are not to be repeated for it. RFC 5740 has the sender ignore requests for just-sent symbols for a GRTT. But a
//! request shows its exact age: it returns the time of a probe, moved on to the time of the request, in the sender's
//! own clock. Everything that had left by then had arrived at the receiver, or was lost.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use farcast_core::{Bitmap, Run, Span, Time};

use crate::requests::BlockId;

/// Maximum number of runs to remember. Older ones count as heard.
const REMEMBERED: usize = 1 << 15;
/// Number of runs below which those that have left again are not looked for.
const FEW: usize = 64;

/// Run of items that may be requested again: INFO, parity, or segments that had been sent before.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Departure of the first symbol, and time between two symbols.
    at: Time,
    spacing: Span,
    object: u32,
    /// Block and symbols; `None` for INFO.
    symbols: Option<(u32, Run)>,
    /// Number of symbols at the end of the run that are parity which had never left before.
    fresh: u32,
}

impl Departure {
    fn last(&self) -> Time {
        let count = self.symbols.map_or(1, |(_, symbols)| symbols.count());
        self.at + self.spacing * u64::from(count - 1)
    }
}

/// Recent departures, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    list: VecDeque<Departure>,
    /// Number of departures that were left when those that have left again were dropped last.
    kept: usize,
}

impl Departures {
    /// Forgets departures up to `horizon`, which every receiver that still asks has heard or lost.
    pub(super) fn forget(&mut self, horizon: Time) {
        while self.list.front().is_some_and(|departure| departure.last() <= horizon) {
            self.list.pop_front();
        }
    }

    fn push(&mut self, departure: Departure) {
        if self.list.len() >= self.kept * 2 + FEW {
            self.drop_repeated();
        }
        if self.list.len() == REMEMBERED {
            self.list.pop_front();
        }
        self.list.push_back(departure);
    }

    /// Drops the departures all of whose items have left again. Whoever has not heard them has not heard the later ones
    /// either. So the length has a bound that follows from the objects, however often anybody requests the same.
    fn drop_repeated(&mut self) {
        let mut ends = BTreeMap::<(u32, u32), u32>::new();
        for departure in &self.list {
            if let Some((block, symbols)) = departure.symbols {
                let end = ends.entry((departure.object, block)).or_default();
                *end = symbols.end().max(*end);
            }
        }
        let mut later: BTreeMap<_, _> = ends.into_iter().map(|(of, end)| (of, Bitmap::new(end))).collect();
        let mut infos = BTreeSet::new();
        let mut kept: VecDeque<Departure> = VecDeque::new();
        for departure in self.list.drain(..).rev() {
            let is_new = match departure.symbols {
                None => infos.insert(departure.object),
                Some((block, symbols)) => {
                    later.get_mut(&(departure.object, block)).is_some_and(|left| left.insert_run(symbols) > 0)
                }
            };
            if is_new || departure.fresh > 0 {
                kept.push_front(departure);
            }
        }
        self.kept = kept.len();
        self.list = kept;
    }

    /// Notes that INFO of `object` leaves.
    pub(super) fn info(&mut self, at: Time, object: u32) {
        self.push(Departure { at, spacing: Span::ZERO, object, symbols: None, fresh: 0 });
    }

    /// Notes that symbols of `block` leave from `at` on. The last `fresh` of them are parity that had never left
    /// before.
    pub(super) fn symbols(&mut self, at: Time, spacing: Span, of: BlockId, symbols: Run, fresh: u32) {
        let BlockId { object, block } = of;
        self.push(Departure { at, spacing, object, symbols: Some((block, symbols)), fresh });
    }

    /// Returns the departures after `heard`.
    pub(super) fn since(&self, heard: Time) -> Unheard {
        let mut unheard = Unheard::default();
        for departure in self.list.iter().rev().take_while(|departure| departure.last() > heard) {
            let Some((block, symbols)) = departure.symbols else {
                unheard.infos.insert(departure.object);
                continue;
            };
            let passed = match departure.spacing.as_nanos() {
                _ if departure.at > heard => 0,
                0 => symbols.count(),
                spacing => (heard.since(departure.at).as_nanos() / spacing) as u32 + 1,
            };
            if let Some(symbols) = symbols.clip(symbols.first() + passed, symbols.end()) {
                let of_block = unheard.blocks.entry((departure.object, block)).or_default();
                let fresh = departure.fresh.min(symbols.count());
                of_block.fresh += fresh;
                of_block.again.extend(symbols.clip(symbols.first(), symbols.end() - fresh));
            }
        }
        unheard
    }
}

/// Departures that a requesting receiver has not heard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Unheard {
    /// Objects whose INFO has left.
    pub(super) infos: BTreeSet<u32>,
    /// Symbols, by object and block.
    pub(super) blocks: BTreeMap<(u32, u32), OfBlock>,
}

/// Symbols of a block that a requesting receiver has not heard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfBlock {
    /// Number of parity symbols that had never left before. They are of use to every receiver that lacks anything of
    /// the block.
    pub(super) fresh: u32,
    /// Repeated symbols.
    pub(super) again: Vec<Run>,
}

impl OfBlock {
    /// Returns the rest of `symbols`, without the repeated ones.
    pub(super) fn rest(&self, symbols: Run) -> Vec<Run> {
        let mut rest = alloc::vec![symbols];
        for &again in &self.again {
            let parts = |run: Run| [run.clip(0, again.first()), run.clip(again.end(), u32::MAX)];
            rest = rest.into_iter().flat_map(parts).flatten().collect();
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn run(first: u32, count: u32) -> Run {
        Run::new(first, count).expect("a run")
    }

    #[test]
    fn what_left_after_somebody_had_heard_is_unheard_symbol_by_symbol() {
        let mut departures = Departures::default();
        departures.info(ms(5), 3);
        // Symbols 10 to 13 of a block leave at 10, 12, 14 and 16 ms: the first of them for the second time.
        departures.symbols(ms(10), Span::from_millis(2), BlockId { object: 3, block: 7 }, run(10, 4), 3);
        departures.symbols(ms(20), Span::ZERO, BlockId { object: 3, block: 7 }, run(2, 3), 0);
        let of_block = |heard| departures.since(heard).blocks.remove(&(3, 7)).unwrap_or_default();
        let expected = |fresh, again: &[Run]| OfBlock { fresh, again: again.to_vec() };
        assert_eq!(departures.since(ms(4)).infos, BTreeSet::from([3]));
        assert_eq!(departures.since(ms(5)).infos, BTreeSet::new());
        assert_eq!(of_block(ms(9)), expected(3, &[run(2, 3), run(10, 1)]));
        assert_eq!(of_block(ms(10)), expected(3, &[run(2, 3)]), "who heard it as it left had it");
        assert_eq!(of_block(ms(13)), expected(2, &[run(2, 3)]));
        assert_eq!(of_block(ms(16)), expected(0, &[run(2, 3)]));
        assert_eq!(departures.since(ms(20)), Unheard::default());
        departures.forget(ms(15));
        assert_eq!(departures.since(ms(0)).blocks[&(3, 7)].fresh, 3, "a run is forgotten whole");
        departures.forget(ms(16));
        assert_eq!(departures.since(ms(0)).blocks[&(3, 7)], expected(0, &[run(2, 3)]));
    }

    #[test]
    fn what_was_sent_again_is_taken_out_of_what_is_asked_for() {
        let of_block = OfBlock { fresh: 0, again: alloc::vec![run(2, 3), run(8, 9)] };
        assert_eq!(of_block.rest(run(0, 10)), [run(0, 2), run(5, 3)]);
        assert_eq!(of_block.rest(run(3, 2)), []);
    }

    #[test]
    fn what_leaves_again_and_again_takes_no_more_memory() {
        let (mut departures, mut all) = (Departures::default(), VecDeque::new());
        let spacing = Span::from_nanos(100_000);
        for n in 0..10_000_u64 {
            let (block, first) = ((n % 7) as u32, (n * n % 11) as u32);
            let symbols = Some((block, run(first, 1 + (n % 4) as u32)));
            // The first ten departures of parity are new.
            let fresh = u32::from(n < 10);
            all.push_back(Departure { at: ms(n), spacing, object: 1, symbols, fresh });
            departures.symbols(
                ms(n),
                spacing,
                BlockId { object: 1, block },
                run(first, 1 + (n % 4) as u32),
                fresh,
            );
        }
        let most = 2 * (7 * 14 + 10) + FEW;
        assert!(departures.list.len() <= most, "{} departures", departures.list.len());
        // What a receiver has not heard is the same as from all of them.
        let complete = Departures { list: all, kept: usize::MAX };
        for heard in [0, 5, 9, 500, 9_900, 9_990, 9_998].map(ms) {
            let (unheard, whole) = (departures.since(heard), complete.since(heard));
            assert_eq!(unheard.blocks.len(), whole.blocks.len());
            for (of, block) in &whole.blocks {
                let same = &unheard.blocks[of];
                assert_eq!(
                    (same.fresh, same.rest(run(0, 20))),
                    (block.fresh, block.rest(run(0, 20))),
                    "{heard:?}"
                );
            }
        }
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let mut departures = Departures::default();
        for n in 0..100_000 {
            departures.info(ms(n), n as u32);
        }
        assert_eq!(departures.since(Time::ZERO).infos.len(), REMEMBERED);
    }
}
