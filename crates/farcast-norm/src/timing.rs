//! Waiting times (RFC 5401 §3.2.2, §3.2.3.2; RFC 5740 §5).

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};
use farcast_delivery::nack::random_backoff;

use crate::message::{NodeId, Terms};

/// Robustness factor (`NORM_ROBUST_FACTOR`): number of repetitions of messages that must arrive, and of silent periods
/// that are forgiven.
pub const ROBUST: u32 = 20;

/// Time for which nothing must arrive from a sender's old address before it is accepted from a new one.
pub(crate) const MOVES: Span = Span::from_millis(500);

/// Random waits of receivers. Each wait is a function of the receiver and the instant at which it begins. Therefore a
/// population draws the same waits as single receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waits {
    pub(crate) seed: u64,
}

impl Waits {
    fn random(self, node: NodeId, now: Time) -> RandomStream {
        RandomStream::derive(self.seed, &[u64::from(node.0), now.as_nanos()])
    }

    /// Returns the wait until `node`, which finds at `now` that it lacks something, asks for it, under these terms and
    /// with a GRTT of `grtt`.
    pub(crate) fn backoff(self, node: NodeId, now: Time, terms: Terms, grtt: Span) -> Span {
        random_backoff(grtt * u64::from(terms.backoff), terms.group, &mut self.random(node, now))
    }

    /// Returns the wait until `node`, which was asked at `now`, acknowledges: up to one GRTT (RFC 5740 §5.5.3).
    pub(crate) fn acknowledgement(self, node: NodeId, now: Time, grtt: Span) -> Span {
        Span::from_secs_f64(grtt.as_secs_f64() * self.random(node, now).unit())
    }
}

/// Returns the time that requested repairs have to arrive (RFC 5740 §5.3).
pub(crate) fn holdoff(terms: Terms, grtt: Span) -> Span {
    grtt * (u64::from(terms.backoff) + 2)
}

/// Returns the time after which silence of a sender means that something is wrong (RFC 5740 §5.3).
pub(crate) fn silence(grtt: Span, robust: u32) -> Span {
    (grtt * 2 * u64::from(robust)).max(Span::from_secs(1))
}
