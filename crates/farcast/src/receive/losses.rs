//! What was missed of what was sent.

use farcast_delivery::Received;

/// The segments that were missed, as far as they were sent: to ask again while nothing comes is no loss.
#[derive(Default)]
pub(super) struct Losses {
    /// Segments and parity symbols that had come, and segments that had been asked for, at the last look.
    heard: u64,
    naked: u64,
    missed: u64,
    /// Whether something has come that requests may be about.
    fresh: bool,
}

impl Losses {
    /// Looks; what was missed so far.
    pub(super) fn count(&mut self, received: &Received) -> u64 {
        let heard = received.segments + received.parity + received.duplicates;
        let (comes, asked) = (heard != self.heard, received.asked.saturating_sub(self.naked));
        (self.heard, self.naked) = (heard, received.asked);
        self.fresh |= comes;
        if self.fresh && asked > 0 {
            self.missed += asked;
            self.fresh = comes;
        }
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_again_while_nothing_comes_is_no_loss() {
        let mut losses = Losses::default();
        let mut look = |dtus, naked_dtus| {
            losses.count(&Received { segments: dtus, asked: naked_dtus, ..Default::default() })
        };
        assert_eq!(look(90, 0), 0);
        // The request for what was sent may come a look later.
        assert_eq!(look(90, 10), 10);
        assert_eq!([look(90, 20), look(90, 30), look(90, 400)], [10; 3]);
        assert_eq!(look(95, 405), 15);
        assert_eq!(look(95, 405), 15);
        assert_eq!(look(95, 410), 20);
    }
}
