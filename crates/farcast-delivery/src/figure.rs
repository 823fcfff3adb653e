//! What a transfer came to, in numbers that only its protocol can name.

use alloc::vec::Vec;

/// Requests for repair, as whoever drives a whole transfer counts them: neither end sees all of this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestCounts {
    /// Sent by receivers.
    pub sent: u64,
    /// Requests for return capacity that collided; on a way back without contention always 0.
    pub collided: u64,
    /// That reached the sender once a later round than the one that follows theirs had begun.
    pub late: u64,
    /// That the sender took in time for the round that follows theirs.
    pub used: u64,
}

/// What a figure says.
#[derive(Clone, PartialEq, Debug)]
pub enum FigureValue {
    /// A count.
    Count(u64),
    /// A number; absent if nothing happened of which it could tell, as a mean of nothing.
    Number(Option<f64>),
    /// A count for each of something, such as for each round.
    Counts(Vec<u64>),
}

/// A number, or a list of counts, that a protocol reports of a transfer in the end.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it is, with the unit: `passes`, `grtt_s`. What share the word before a dot stand together under that word:
    /// `naks.sent`, `naks.late`. It is no name that the report of a transfer has itself: what all protocols have.
    pub name: &'static str,
    /// What tables call it, and of a list the sum of it. Without a label a figure is told of each transfer only: it is
    /// not summed up over many.
    pub label: Option<&'static str>,
    /// The number, or numbers.
    pub value: FigureValue,
}

impl Figure {
    /// A count.
    pub const fn count(name: &'static str, count: u64) -> Self {
        Self { name, label: None, value: FigureValue::Count(count) }
    }

    /// A number, if there is one.
    pub const fn number(name: &'static str, number: Option<f64>) -> Self {
        Self { name, label: None, value: FigureValue::Number(number) }
    }

    /// A count for each of something.
    pub const fn counts(name: &'static str, counts: Vec<u64>) -> Self {
        Self { name, label: None, value: FigureValue::Counts(counts) }
    }

    /// The same with what tables call it.
    #[must_use]
    pub const fn labelled(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// The one number that it is, if it is one and could be told.
    pub fn scalar(&self) -> Option<f64> {
        match self.value {
            FigureValue::Count(count) => Some(count as f64),
            FigureValue::Number(number) => number,
            FigureValue::Counts(_) => None,
        }
    }
}
