//! Pages of real transfers: what a sender and what a receiver saw.
//!
//! Whoever watches a transfer notes what passes ([`Sending`], [`Receiving`]), and has the page whenever it is wanted. What
//! is kept is bounded, however long it takes and however many receive: time is in bins, which become twice as wide where
//! there would be too many, and of many receivers only quantiles are kept over time.
//!
//! ```
//! use farcast_report::transfer::{Close, Sending, Totals, Words};
//!
//! let mut sending = Sending::new(Words::default());
//! sending.passed(0.0, Totals::default());
//! sending.passed(0.1, Totals { data: 12_500, ..Totals::default() });
//! let page = sending.page(&Close { title: "image.iso to 239.255.1.1:5402".into(), ..Close::default() });
//! assert!(page.html().contains("Sending rate"));
//! ```

mod course;
mod receiving;
mod sending;
mod units;

#[cfg(test)]
mod tests;

pub use receiving::{Came, Product, Receiving};
pub use sending::{Receiver, Sending, Totals};

/// What the protocol calls things.
pub use farcast_delivery::Words;

/// What is known at the end, besides what was noted on the way.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Close {
    /// What the page is of.
    pub title: String,
    /// How it went, in some sentences.
    pub lead: Vec<String>,
    /// In which settings.
    pub settings: Vec<(String, String)>,
    /// How those stand who are known to a sender.
    pub receivers: Vec<Receiver>,
    /// Octets of what is sent.
    pub size: u64,
    /// Segments and symbols that a sender sent in each round.
    pub sent_per_round: Vec<u64>,
    /// The summary for programs, as JSON.
    pub summary: String,
    /// Who made it: the program and its version.
    pub made_by: String,
}
