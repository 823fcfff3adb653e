//! Object that is being received.

use alloc::boxed::Box;
use alloc::format;
use core::net::IpAddr;
use core::num::NonZeroU32;

use farcast_core::engine::Reject;
use farcast_core::{Run, Span, Time};
use farcast_delivery::nack::{ContentState, ObjectContent};
use farcast_delivery::{ObjectId, Offer};

use super::remote::Key;
use crate::config::ReceiverConfig;
use crate::message::{Data, Fec, Flags, Fti, Info, Point};
use crate::requests::{BlockSymbol, point};

/// Object that is being received.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) content: ObjectContent,
    /// Number on the wire.
    pub(super) number: u16,
    pub(super) fec: Fec,
    pub(super) fti: Fti,
    /// Time at which the object began, and time of its last new content.
    begun: Time,
    pub(super) since: Time,
    /// `true` if a request would have been due while the owner had not answered yet.
    pub(super) missed: bool,
}

/// Description of an object in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) number: u16,
    pub(super) flags: Flags,
    pub(super) fec: Fec,
    pub(super) fti: Option<Fti>,
    /// INFO, if the message is INFO.
    pub(super) info: Option<&'a Info>,
    /// `true` if the message carries content.
    pub(super) sends: bool,
}

/// Time to wait for an owner's answer. After it, requests begin anyway. A slow owner, which perhaps lacks room, must
/// not make the sender end; unneeded requests are better than none.
const PATIENCE: Span = Span::from_secs(1);

impl Object {
    /// Makes the object that `said` is about, if it can be received.
    pub(super) fn new(
        id: ObjectId,
        said: Said<'_>,
        config: &ReceiverConfig,
        now: Time,
    ) -> Result<Self, Reject> {
        let Said { number, flags, fec, fti, info, .. } = said;
        if flags.has(Flags::STREAM) {
            return Err(Reject::Unexpected);
        }
        let fti = fti.ok_or(Reject::Unexpected)?;
        let geometry = fti.geometry().ok_or(Reject::OutOfRange)?;
        let parity = fti.parity_symbols(fec, config.fti);
        let symbols = u32::from(fti.max_block_len) + u32::from(parity);
        // Only one symbol in a datagram is supported.
        if symbols > 1 << fec.symbol_bits() || fti.group > 1 {
            return Err(Reject::OutOfRange);
        }
        if fti.size > config.largest {
            return Err(Reject::Limit);
        }
        let is_named = info.is_some() || !flags.has(Flags::INFO);
        Ok(Self {
            content: ObjectContent::new(id, geometry, parity.into(), is_named),
            number,
            fec,
            fti,
            begun: now,
            since: now,
            missed: false,
        })
    }

    /// Returns `true` if the owner may still report more of the object than is known.
    pub(super) fn is_opening(&self, now: Time) -> bool {
        self.content.state == ContentState::Opening && now.since(self.begun) < PATIENCE
    }

    /// Returns the offer for the owner. An object without INFO, or before its INFO, is named by its numbers.
    pub(super) fn offer(&self, key: &Key, group: IpAddr, info: Option<&Info>) -> Offer {
        let (Key { source, node, instance }, number) = (*key, self.number);
        let session = u32::from(instance) << 16 | u32::from(number);
        Offer {
            object: self.content.id,
            sender: source,
            session,
            group,
            name: info.map_or_else(
                || format!("norm-{node}-{instance}-{number}").into_bytes(),
                |info| info.content.clone(),
            ),
            provisional: info.is_none() && !self.content.is_named,
            id: None,
            serial: Some(u64::from(node.0) << 32 | u64::from(session)),
            geometry: self.content.geometry,
            parity_symbols: self.content.parity,
            vouched: info.and_then(|info| info.vouched).map(Box::new),
            overwrite: true,
            rate_bps: u32::MAX,
        }
    }

    /// Checks that `data` agrees with the object's geometry.
    pub(super) fn check(&self, data: &Data) -> Result<(), Reject> {
        let geometry = &self.content.geometry;
        let len = geometry.block_len(data.block);
        if len == 0 || data.symbols.end() > len + self.content.parity {
            return Err(Reject::OutOfRange);
        }
        let full = geometry.segment_size();
        let last = match geometry.segments_of(data.block, data.symbols) {
            Some(segments) => geometry.payload_len(segments.last()),
            None if data.symbols.first() >= len => full,
            // The run has source symbols and parity.
            None => return Err(Reject::Inconsistent),
        };
        let cut = data.fec == self.fec && data.fti.is_none_or(|fti| fti == self.fti);
        let named = data.block_len.is_none_or(|named| u32::from(named) == len);
        let fits = data.last_len == last && (data.symbols.count() == 1 || data.len == full);
        if cut && named && fits { Ok(()) } else { Err(Reject::Inconsistent) }
    }

    /// Returns the parity symbols of a run, counted from 0; `None` for source symbols.
    pub(super) fn parity_of(&self, data: &Data) -> Option<Run> {
        let first = data.symbols.first().checked_sub(self.content.geometry.block_len(data.block))?;
        Run::new(first, data.symbols.count())
    }

    /// Returns the number of symbols of `data`, which is of the block at hand, that may be handled at once. The symbol
    /// that completes a block is handled apart, because it has consequences.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let count = data.symbols.count();
        let plain = self.content.is_receiving() && self.check(data).is_ok();
        let most = if plain {
            self.content.until_whole(data.block, data.symbols, self.parity_of(data)).unwrap_or(count)
        } else {
            1
        };
        NonZeroU32::new(most.min(count)).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns a symbol of this object in the form of payload ids.
    pub(super) fn point(&self, block: u32, symbol: u32) -> Point {
        point(
            self.fec,
            self.number,
            BlockSymbol { block, len: self.content.geometry.block_len(block), symbol },
        )
    }
}
