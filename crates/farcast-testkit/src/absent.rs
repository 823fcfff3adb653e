//! Absent sources beside a transfer: sources that announce once, perhaps send a little, and never go on.

use core::fmt::Debug;

use farcast_core::{Arrival, Engine, Message, Span, Time};

use crate::{Handle, Network};

/// Most time that any number of absent sources may add to a transfer.
const MORE: Span = Span::from_secs(2);
/// Number of sources that speak at the same time, if they only announce.
const AT_ONCE: u32 = 500;
/// Time between two further ones.
const APART: Span = Span::from_millis(20);

/// Absent sources of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent {
    /// Number of sources.
    pub count: u32,
    /// Each of them also sends some content, as a source that was killed.
    pub sends: bool,
    /// Time from their first words to the beginning of the transfer.
    pub later: Span,
}

impl Absent {
    /// Instant at which the transfer begins.
    pub fn begins(self) -> Time {
        Time::ZERO + self.later
    }

    /// Has the host `ear` hear all of them. `words` returns the messages of source `n`, and whether it sends too.
    ///
    /// Sources that send speak at once. Of those that only announce, 500 speak at once and then one every 20 ms.
    pub fn speak<M, E>(
        self,
        net: &mut Network<M>,
        ear: Handle<E>,
        words: impl Fn(u32, bool) -> Vec<(Arrival, M)> + Copy + 'static,
    ) where
        M: Message + Debug + PartialEq + 'static,
        E: Engine<Message = M> + 'static,
    {
        for n in 0..self.count {
            let wait = if self.sends { 0 } else { n.saturating_sub(AT_ONCE) };
            let sends = self.sends;
            net.at(Time::ZERO + APART * u64::from(wait), ear, move |engine: &mut E, now| {
                for (from, message) in words(n, sends) {
                    // The engine may turn it down.
                    let _ = engine.handle(now, &from, &message);
                }
            });
        }
    }
}

/// Asserts that absent sources add at most two seconds to a transfer. `takes` runs the transfer beside them and returns
/// its duration.
///
/// # Panics
/// A transfer takes longer.
pub fn assert_cost_little(takes: impl Fn(Absent) -> Span) {
    let alone = takes(Absent { count: 0, sends: false, later: Span::ZERO });
    for (sends, later) in [(false, 0), (false, 100), (false, 1000), (true, 500), (true, 1000)] {
        for count in [1, 32, 1000] {
            let absent = Absent { count, sends, later: Span::from_millis(later) };
            let beside = takes(absent);
            assert!(beside <= alone + MORE, "{absent:?}: {beside:?}, alone {alone:?}");
        }
    }
}
