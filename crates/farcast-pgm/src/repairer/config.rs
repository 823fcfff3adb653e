//! Settings of a repairer.

use farcast_core::Span;
use farcast_delivery::RatePace;

use crate::error::ConfigError;

/// Data that a repairer requests for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// None: the repairer stores only what passes.
    Nothing,
    /// Missing data from the time at which it first hears of a session.
    FromNow,
    /// Missing data from the beginning that SPMs offer (`OPT_JOIN`), as far as the store can hold it.
    FromJoin,
}

/// Settings of an element's store, from which it repairs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreConfig {
    /// The most octets of content that are stored, of all sessions.
    pub octets: u64,
    /// The most TPDUs that are stored, of all sessions; the header of each stays in memory.
    pub tpdus: usize,
    /// Pace of repairs; `None`: at once.
    pub pace: Option<RatePace>,
    /// Time for which a number repaired on a port is not repaired there again, as for a source.
    pub holdoff: Span,
    /// The most TPDUs that wait to be repaired.
    pub queue: usize,
    /// The repairer stands beside the tree: it has one port, and does nothing but repair what its parent asks for.
    pub beside: bool,
    /// Interval at which a repairer on the tree may announce itself (POLR with `OPT_REDIRECT`). `None`: it does not,
    /// since those below have its address from SPMs.
    pub tells: Option<Span>,
    /// Data that the repairer requests for itself, before anybody below does.
    pub asks: Asks,
    /// The repairer passes a NAK's report of congestion (`OPT_PGMCC_FEEDBACK`) on to the source in the NNAK, if it
    /// serves the NAK. RFC 3208 does not mention this. With it, a source's congestion control knows of losses that a
    /// repairer makes good; without it, it does not.
    pub feedback: bool,
    /// Interval over which the repairer's own requests are spread (`NAK_BO_IVL`).
    pub backoff: Span,
    /// Time for which an own request waits for its confirmation (`NAK_RPT_IVL`).
    pub confirm: Span,
    /// Time for which a confirmed request waits for repair (`NAK_RDATA_IVL`).
    pub repair: Span,
    /// Repetitions of a request, both for want of confirmation and for want of repair.
    pub retries: u32,
    /// Seed of the random back-offs.
    pub seed: u64,
}

impl StoreConfig {
    /// Returns the default settings: a store of 64 MiB on the tree, repairs at once, and a receiver's waits.
    pub const fn new() -> Self {
        Self {
            octets: 64 << 20,
            tpdus: 1 << 16,
            pace: None,
            holdoff: Span::from_millis(50),
            queue: 1 << 14,
            beside: false,
            tells: None,
            asks: Asks::FromNow,
            feedback: false,
            backoff: Span::from_millis(50),
            confirm: Span::from_millis(800),
            repair: Span::from_secs(2),
            retries: 10,
            seed: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("the number of TPDUs that are kept", (1..=1 << 28).contains(&self.tpdus)),
            ("the number of repairs that wait", self.queue > 0),
            ("the back-off of requests", !self.backoff.is_zero()),
            ("the time until a request is confirmed", !self.confirm.is_zero()),
            ("the time until repair", !self.repair.is_zero()),
        ];
        ranges.into_iter().find(|(_, right)| !right).map_or(Ok(()), |(what, _)| Err(ConfigError::Range(what)))
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::new()
    }
}
