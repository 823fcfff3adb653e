//! Figures of a transfer that only its protocol can name.

use alloc::vec::Vec;

/// Counts of requests for repair. The driver of a whole transfer counts them, because neither end sees all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestCounts {
    /// Requests that receivers sent.
    pub sent: u64,
    /// Requests for return capacity that collided; on a way back without contention always 0.
    pub collided: u64,
    /// Requests that reached the sender after a later round than theirs had begun.
    pub late: u64,
    /// Requests that the sender accepted before that.
    pub used: u64,
}

/// Value of a figure.
#[derive(Clone, PartialEq, Debug)]
pub enum FigureValue {
    /// A count.
    Count(u64),
    /// A number; absent if nothing happened to compute it from, as with the mean of nothing.
    Number(Option<f64>),
    /// A count for each item of a list, such as for each round.
    Counts(Vec<u64>),
}

/// Number, or list of counts, that a protocol reports at the end of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Name with the unit: `passes`, `grtt_s`. Figures with the same word before a dot are shown together under that
    /// word: `naks.sent`, `naks.late`. The name must differ from those that the transfer report itself uses for all
    /// protocols.
    pub name: &'static str,
    /// Label in tables; for a list, the label of its sum. A figure without a label is reported for single transfers
    /// only, and is not aggregated over several.
    pub label: Option<&'static str>,
    /// The number or numbers.
    pub value: FigureValue,
}

impl Figure {
    /// Creates a figure with a count.
    pub const fn count(name: &'static str, count: u64) -> Self {
        Self { name, label: None, value: FigureValue::Count(count) }
    }

    /// Creates a figure with an optional number.
    pub const fn number(name: &'static str, number: Option<f64>) -> Self {
        Self { name, label: None, value: FigureValue::Number(number) }
    }

    /// Creates a figure with a list of counts.
    pub const fn counts(name: &'static str, counts: Vec<u64>) -> Self {
        Self { name, label: None, value: FigureValue::Counts(counts) }
    }

    /// Adds the label for tables.
    #[must_use]
    pub const fn labelled(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// Returns the figure as one number; `None` for a list, or for a number that is absent.
    pub fn scalar(&self) -> Option<f64> {
        match self.value {
            FigureValue::Count(count) => Some(count as f64),
            FigureValue::Number(number) => number,
            FigureValue::Counts(_) => None,
        }
    }
}
