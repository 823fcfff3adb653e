//! Refusals of this host itself to send, as its firewall makes them.

use farcast_core::{Span, Time};

use crate::error::NetError;
use crate::socket::Endpoint;

/// Time after which a refusal of this host to send ends a transmission, if nothing has left before.
const LONGEST_REFUSED: Span = Span::from_secs(3);

/// Refusals of this host to send.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Sentences that the owner was told.
    told: Vec<String>,
    /// Time since which nothing has left.
    since: Option<Time>,
    /// A datagram has left at some time.
    pub(crate) left: bool,
}

impl Refusals {
    /// Returns a refusal of `endpoint` that the owner was not told.
    pub(crate) fn news(&mut self, endpoint: &Endpoint) -> Option<NetError> {
        let why = endpoint.newly_refused()?;
        let sentence = why.to_string();
        if self.told.contains(&sentence) {
            return None;
        }
        self.told.push(sentence);
        Some(why)
    }

    /// Checks for refusals.
    ///
    /// # Errors
    /// The refusal, if this host has let nothing out for [`LONGEST_REFUSED`] and nothing has left before.
    pub(crate) fn check(&mut self, now: Time, endpoint: &Endpoint) -> Result<(), NetError> {
        let Some(why) = endpoint.refused() else {
            self.since = None;
            return Ok(());
        };
        let since = *self.since.get_or_insert(now);
        if !self.left && now.since(since) >= LONGEST_REFUSED { Err(why) } else { Ok(()) }
    }
}
