//! Events and counters of an entity.

use core::ops::Range;

use crate::error::RejectCounts;

/// Event that an entity reports to its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<P> {
    /// An SDU from the peer is complete.
    Delivered(P),
    /// SDUs were given up. Their numbers count the SDUs that [`submit`](crate::Entity::submit) took, from 0. The peer
    /// may still have delivered some of them, if only its report was missing.
    Discarded {
        /// Numbers of the SDUs.
        sdus: Range<u64>,
    },
    /// The peer has confirmed that it no longer waits for the discarded SDUs (TS 25.322 section 11.6).
    WindowMoved,
    /// Both sides have started anew (section 11.4). SDUs that had been sent, in whole or in part, and were not
    /// acknowledged have been [`Discarded`](Self::Discarded).
    Reset,
    /// The peer does not answer to resets: the entity has given up for good. All SDUs that were not acknowledged have
    /// been [`Discarded`](Self::Discarded).
    Unrecoverable,
}

/// Counters of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// SDUs that were taken.
    pub sdus_submitted: u64,
    /// SDUs that were refused: empty, too long, or too many.
    pub sdus_refused: u64,
    /// SDUs that were given up.
    pub sdus_discarded: u64,
    /// SDUs of the peer that were delivered.
    pub sdus_delivered: u64,
    /// SDUs of the peer that grew beyond [`max_sdu_octets`](crate::Config::max_sdu_octets) and were dropped.
    pub sdus_too_long: u64,
    /// SDUs of the peer whose pieces did not belong together and that were dropped.
    pub sdus_broken: u64,
    /// Data PDUs sent for the first time.
    pub data_pdus: u64,
    /// Data PDUs sent again.
    pub retransmissions: u64,
    /// Retransmissions that were sent only to carry a poll.
    pub retransmissions_for_polls: u64,
    /// Data PDUs with the polling bit.
    pub polls: u64,
    /// STATUS PDUs.
    pub status_pdus: u64,
    /// Status reports in the padding of data PDUs.
    pub piggybacked: u64,
    /// STATUS PDUs and piggybacked status reports that carried a report (an ACK).
    pub reports: u64,
    /// MRW procedures begun.
    pub window_moves: u64,
    /// MRW fields sent, repetitions included.
    pub mrw_sent: u64,
    /// Reset procedures begun.
    pub resets: u64,
    /// RESET PDUs sent, repetitions included.
    pub reset_pdus: u64,
    /// Resets that the peer began.
    pub resets_of_peer: u64,
    /// Data PDUs that were taken.
    pub data_pdus_received: u64,
    /// Status reports that were taken, piggybacked ones included.
    pub status_received: u64,
    /// PDUs, or parts of them, that were rejected, by reason.
    pub rejected: RejectCounts,
}
