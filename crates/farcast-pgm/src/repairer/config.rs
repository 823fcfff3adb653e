//! Settings of a repairer.

use farcast_core::Span;
use farcast_delivery::RatePace;

use crate::error::ConfigError;

/// What a repairer asks for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// Nothing: it keeps what passes.
    Nothing,
    /// What it lacks of all that is sent from when it first hears of a session.
    FromNow,
    /// What it lacks of all that SPMs offer (`OPT_JOIN`), as far as it can keep it.
    FromJoin,
}

/// How an element repairs by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreConfig {
    /// Octets of content that it keeps at most, of all sessions.
    pub octets: u64,
    /// TPDUs that it keeps at most, of all sessions; a header of each is in memory.
    pub tpdus: usize,
    /// How fast it repairs; `None`: at once.
    pub pace: Option<RatePace>,
    /// For how long what was repaired on a port is not repaired there again: as a source's.
    pub holdoff: Span,
    /// TPDUs that wait to be repaired, at most.
    pub queue: usize,
    /// Whether it stands beside the tree: it has one port, repairs what its parent asks it for, and nothing else.
    pub beside: bool,
    /// On the tree: how long after it has told of itself (POLR with `OPT_REDIRECT`) it may do so again; `None`: it does
    /// not, as who is below has its address from SPMs.
    pub tells: Option<Span>,
    /// What it asks for itself, before anybody below does.
    pub asks: Asks,
    /// Whether what a NAK says of congestion (`OPT_PGMCC_FEEDBACK`) goes on to the source in the NNAK, if the NAK is
    /// served. RFC 3208 says nothing of that: with it a source's congestion control knows of losses that a repairer
    /// makes good, without it does not.
    pub feedback: bool,
    /// Over how long its own requests are spread (`NAK_BO_IVL`).
    pub backoff: Span,
    /// How long it waits for one to be confirmed (`NAK_RPT_IVL`).
    pub confirm: Span,
    /// How long it then waits for repair (`NAK_RDATA_IVL`).
    pub repair: Span,
    /// How often it asks again.
    pub retries: u32,
    /// The seed of its waits.
    pub seed: u64,
}

impl StoreConfig {
    /// As usual: 64 MiB on the tree, as fast as it can; waits are a receiver's.
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
