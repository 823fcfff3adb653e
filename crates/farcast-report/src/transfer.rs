//! Pages of real transfers, as their sender or a receiver saw them.
//!
//! A program that observes a transfer records it in [`Sending`] or [`Receiving`], and can ask for the page at any
//! time. Memory is bounded, however long the transfer takes and however many receivers there are. Time is in bins,
//! which double in width when there would be too many. Of many receivers only quantiles are kept over time.
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

/// Terms of the protocol.
pub use farcast_delivery::Words;

/// Facts that are known at the end, in addition to the record of the transfer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Close {
    /// Title of the page.
    pub title: String,
    /// Outcome, a sentence each.
    pub lead: Vec<String>,
    /// Settings of the transfer: name and value.
    pub settings: Vec<(String, String)>,
    /// States of the receivers that the sender knows.
    pub receivers: Vec<Receiver>,
    /// Size of the content, in octets.
    pub size: u64,
    /// Segments and symbols that a sender sent in each round.
    pub sent_per_round: Vec<u64>,
    /// The summary for programs, as JSON.
    pub summary: String,
    /// Program that made the page, with its version.
    pub made_by: String,
}
