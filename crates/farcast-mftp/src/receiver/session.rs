//! What a receiver knows of the transmission at hand.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::{Bitmap, Run, Span, Time};

use crate::event::Offer;
use crate::geometry::Geometry;
use crate::message::{Data, DataKind, GroupModel, StatusType};

/// Where the receiver stands with a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The owner has been asked.
    Offered,
    /// Taking part.
    Receiving,
    /// Every segment is there; the owner verifies.
    Verifying,
    /// Verified; waiting for the sender's confirmation.
    Completing {
        /// When it was verified.
        since: Time,
    },
}

/// Answers that are held back, to spread them.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) pass: u32,
    pub(super) blocks: Run,
    pub(super) dtus: Run,
    pub(super) status: StatusType,
    /// Blocks for which another receiver has said the same.
    pub(super) suppressed: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) source: SocketAddr,
    /// The server as it names itself, for answers.
    pub(super) server: SocketAddr,
    pub(super) response: SocketAddr,
    pub(super) transmission: u32,
    pub(super) model: GroupModel,
    pub(super) offer: Offer,
    pub(super) state: State,
    /// Whether the sender has confirmed the registration, or none is needed.
    pub(super) accepted: bool,
    pub(super) registrations: u32,
    pub(super) have: Bitmap,
    /// Parity symbols held, of blocks that are not complete.
    pub(super) parity: BTreeMap<u32, Bitmap>,
    /// How many they are in all.
    pub(super) parity_held: u64,
    /// Blocks that the owner is rebuilding.
    pub(super) decoding: BTreeSet<u32>,
    pub(super) pass: u32,
    pub(super) began: Time,
    /// When its sender was last heard.
    pub(super) last_heard: Time,
    pub(super) backoff: Span,
    pub(super) transfer: Span,
    pub(super) pending: Option<Pending>,
    pub(super) naked_dtus: u64,
    pub(super) dones: u32,
    pub(super) done_sent: Time,
    pub(super) register_timer: bool,
}

impl Session {
    pub(super) fn geometry(&self) -> &Geometry {
        &self.offer.geometry
    }

    /// Forgets the parity symbols of `block`: it is complete, or they did not help.
    pub(super) fn forget_parity(&mut self, block: u32) {
        let held = self.parity.remove(&block).map_or(0, |symbols| symbols.count());
        self.parity_held -= u64::from(held);
    }

    /// DTUs of `block` that are missing.
    pub(super) fn missing_in(&self, block: u32) -> u32 {
        self.geometry().block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// How many segments of `data` may be taken at once: up to the one that changes what the receiver does.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let whole = NonZeroU32::new(data.dtus.count()).unwrap_or(NonZeroU32::MIN);
        let delicate = data.kind == DataKind::Parity
            || self.parity.contains_key(&data.block)
            || data.pass != self.pass
            || (!self.accepted && !self.register_timer);
        if delicate {
            return NonZeroU32::MIN;
        }
        let Some(segments) = self.geometry().segments_of(data.block, data.dtus) else { return whole };
        if segments.count() - self.have.count_in(segments) < self.have.len() - self.have.count() {
            return whole;
        }
        // The last gap is in this run: everything is there once it is filled.
        let last = (segments.segments()).rev().find(|&segment| !self.have.contains(segment));
        last.and_then(|last| NonZeroU32::new(last - segments.first() + 1)).unwrap_or(whole)
    }
}
