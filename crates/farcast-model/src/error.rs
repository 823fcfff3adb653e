//! Errors in the inputs of models.

use thiserror::Error;

/// Reason for which a model refuses its inputs.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A path that delivers nothing.
    #[error("the loss probability is {loss}; it must be below 1")]
    Loss {
        /// The probability.
        loss: f64,
    },
    /// A round trip that takes no time.
    #[error("the round trip takes 0 s; it must take longer")]
    RoundTrip,
    /// A retransmission timeout that would fire before any ACK can come.
    #[error("the timeout is {timeout_s} s; it must be at least the round trip, {rtt_s} s")]
    Timeout {
        /// The timeout in seconds.
        timeout_s: f64,
        /// The round trip in seconds.
        rtt_s: f64,
    },
    /// Too few or too many packets for each ACK.
    #[error("{packets} packets for each ACK were given; there must be 1 to 64")]
    PacketsPerAck {
        /// The packets.
        packets: u32,
    },
    /// A window that TCP cannot have.
    #[error("the window is {packets} packets; it must be 1 to 1073741824 packets")]
    Window {
        /// The window.
        packets: f64,
    },
    /// A steady state that nothing bounds.
    #[error("nothing bounds the throughput; there must be a loss probability above 0 or a window")]
    Unbounded,
    /// A transfer of nothing.
    #[error("the transfer has 0 segments; it must have at least 1")]
    NoSegments,
    /// An initial window of zero, or above the window.
    #[error(
        "the initial window is {segments} segments; it must be at least 1 and at most the window, {most}"
    )]
    InitialWindow {
        /// The initial window.
        segments: u32,
        /// The window in packets, infinite if there is none.
        most: f64,
    },
    /// Losses with which the mean time of a handshake has no bound.
    #[error("the loss probability of a packet of the handshake is {loss}; it must be below 0.5")]
    HandshakeLoss {
        /// The probability.
        loss: f64,
    },
    /// A bundle without links.
    #[error("the bundle has 0 links; it must have at least 1")]
    NoLinks,
    /// Call drops that come before the timeout after the previous drop is over.
    #[error(
        "a call of the bundle drops every {interval_s:.3} s; drops must be further apart than the timeout after each, \
         which lasts {timeout_s:.3} s on average"
    )]
    Drops {
        /// The mean time between drops of the bundle in seconds.
        interval_s: f64,
        /// The mean length of a sequence of timeouts in seconds.
        timeout_s: f64,
    },
}
