//! What has left so lately that whoever asks may not have heard it (RFC 5740 §5.4.1).
//!
//! A request says what lacked when it was said. What was sent since answers part of it, perhaps all, and is not to be
//! sent once more for it. RFC 5740 has the sender pass over requests for what it has just sent for a greatest round
//! trip. But a request says exactly how old it is: the time of a probe that it gives back is the sender's own, moved
//! on to when the request was said, so whatever had left by then had come to where the request is from, or was lost.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use farcast_core::{Run, Span, Time};

/// How many runs are remembered; of what is older it counts that it was heard.
const REMEMBERED: usize = 1 << 15;

/// A run of what may be asked for again: INFO, parity, or segments that had been sent before.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// When the first left, and how far apart they are.
    at: Time,
    spacing: Span,
    object: u32,
    /// The block and its symbols; `None` of INFO.
    symbols: Option<(u32, Run)>,
    /// How many of the symbols, from the last, are parity that had never left before.
    fresh: u32,
}

impl Departure {
    fn last(&self) -> Time {
        let count = self.symbols.map_or(1, |(_, symbols)| symbols.count());
        self.at + self.spacing * u64::from(count - 1)
    }
}

/// What has left lately, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures(VecDeque<Departure>);

impl Departures {
    /// Nobody asks any more who has not heard what left by `horizon`.
    pub(super) fn forget(&mut self, horizon: Time) {
        while self.0.front().is_some_and(|departure| departure.last() <= horizon) {
            self.0.pop_front();
        }
    }

    fn push(&mut self, departure: Departure) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(departure);
    }

    /// What is said of `object` leaves.
    pub(super) fn info(&mut self, at: Time, object: u32) {
        self.push(Departure { at, spacing: Span::ZERO, object, symbols: None, fresh: 0 });
    }

    /// Symbols of `block`, of which the last `fresh` are parity that had never left, leave from `at` on.
    pub(super) fn symbols(
        &mut self,
        (at, spacing): (Time, Span),
        (object, block): (u32, u32),
        (symbols, fresh): (Run, u32),
    ) {
        self.push(Departure { at, spacing, object, symbols: Some((block, symbols)), fresh });
    }

    /// What left after `heard`.
    pub(super) fn since(&self, heard: Time) -> Unheard {
        let mut unheard = Unheard::default();
        for departure in self.0.iter().rev().take_while(|departure| departure.last() > heard) {
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

/// What somebody who asks has not heard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Unheard {
    /// Objects of which INFO was said.
    pub(super) infos: BTreeSet<u32>,
    /// By object and block.
    pub(super) blocks: BTreeMap<(u32, u32), OfBlock>,
}

/// What of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfBlock {
    /// Parity symbols that had never left before: of use to whoever lacks anything of the block.
    pub(super) fresh: u32,
    /// Symbols that were sent again.
    pub(super) again: Vec<Run>,
}

impl OfBlock {
    /// The rest of `symbols`, without those that were sent again.
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
        // Symbols 10 to 13 of a block leave at 10, 12, 14 and 16 ms: the first for the second time.
        departures.symbols((ms(10), Span::from_millis(2)), (3, 7), (run(10, 4), 3));
        departures.symbols((ms(20), Span::ZERO), (3, 7), (run(2, 3), 0));
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
    fn no_more_than_so_many_are_remembered() {
        let mut departures = Departures::default();
        for n in 0..100_000 {
            departures.info(ms(n), n as u32);
        }
        assert_eq!(departures.since(Time::ZERO).infos.len(), REMEMBERED);
    }
}
