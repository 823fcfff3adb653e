//! Choices of a user, and the configurations that follow from them; the same for every front end.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
pub use farcast_delivery::PathLimits;
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::quantise::GroupSize;

mod declared;
mod forecast;

pub use declared::in_effect;

use crate::config::{Counted, Object, ReceiverConfig, SenderConfig};

/// Settings that a user chooses. The defaults are those of [`SenderConfig::new`] and [`ReceiverConfig::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Rate of sending.
    pub rate: BitRate,
    /// Octets that count against the rate.
    pub counts: Counts,
    /// Octets of a segment; `None`: 1,024, or fewer if the MTU requires it.
    pub segment_size: Option<u16>,
    /// Segments of a block, at most.
    pub block_len: u8,
    /// Parity symbols of a block.
    pub parity: u8,
    /// Parity symbols that follow each block unasked, of those in `parity`.
    pub auto_parity: u8,
    /// Initial estimate of the group's greatest round trip.
    pub round_trip: Span,
    /// Expected number of receivers.
    pub receivers: u32,
    /// Receivers answer to the sender alone, and not to the group.
    pub unicast: bool,
    /// Repetitions of important messages.
    pub robust: u32,
    /// Time from the last segment of an object to the beginning of the next.
    pub gap: Span,
    /// The most octets that may leave in one burst.
    pub burst: u64,
    /// Time after which the transfer is aborted.
    pub time_limit: Span,
}

/// Octets that count against a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Segments and symbols alone.
    Payload,
    /// MDP messages.
    Message,
    /// Datagrams with their headers.
    Packet,
}

/// Use of the toolkit in the report of 2003 on a space link. The report does not say what its 88,000 bit/s counted, how
/// long segments were and how many octets a megabyte has. Two readings fit its numbers for a line without errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Payload alone counts, the longest packets have 1,500 octets (parity of 1,447), 1 MB is 2^20 octets.
    SpaceLinkA,
    /// Messages count, segments have 1,024 octets, 1 MB is 1,024,000 octets.
    SpaceLinkB,
}

/// Objects to send, with their addresses and receivers.
#[derive(Clone, Debug)]
pub struct SendPlan {
    /// Node id of the sender.
    pub node: NodeId,
    /// Address from which the sender sends.
    pub source: SocketAddr,
    /// Address of the group or the single host.
    pub group: SocketAddr,
    /// The objects.
    pub objects: Vec<Object>,
    /// Receivers that must have every object.
    pub ackers: Vec<NodeId>,
}

/// Octets of the longest header before a segment or symbol: that of a runt.
const HEADER: u16 = 26;

impl Settings {
    /// Returns the defaults, at `rate`.
    pub const fn new(rate: BitRate) -> Self {
        Self {
            rate,
            counts: Counts::Packet,
            segment_size: None,
            block_len: 20,
            parity: 20,
            auto_parity: 0,
            round_trip: Span::from_millis(500),
            receivers: 1000,
            unicast: false,
            robust: crate::config::ROBUST,
            gap: Span::ZERO,
            burst: 16 << 10,
            time_limit: Span::from_secs(24 * 3600),
        }
    }

    /// Returns the settings of the report: 88,000 bit/s, answers to the sender, 300 s between files.
    ///
    /// # Panics
    /// Never.
    pub fn preset(preset: Preset) -> Self {
        let rate = BitRate::from_bps(88_000).unwrap_or_else(|| unreachable!("it is positive"));
        let (counts, segment_size) = match preset {
            Preset::SpaceLinkA => (Counts::Payload, 1447),
            Preset::SpaceLinkB => (Counts::Message, 1024),
        };
        let gap = Span::from_secs(300);
        Self { counts, segment_size: Some(segment_size), unicast: true, gap, ..Self::new(rate) }
    }

    /// Returns the configuration of a sender.
    pub fn sender(&self, sent: SendPlan, way: PathLimits) -> SenderConfig {
        let SendPlan { node, source, group, objects, ackers } = sent;
        let base = SenderConfig::new(node, objects, source, group, self.rate);
        let room = |mtu: u32| mtu.saturating_sub(u32::from(way.headers) + u32::from(HEADER));
        let most = way.mtu.map(room).and_then(|room| u16::try_from(room).ok()).unwrap_or(u16::MAX);
        SenderConfig {
            gap: self.gap,
            segment_size: self.segment_size.unwrap_or(base.segment_size.min(most)),
            block_len: self.block_len,
            parity: self.parity,
            auto_parity: self.auto_parity,
            counted: match self.counts {
                Counts::Payload => Counted::Payload,
                Counts::Message => Counted::Message,
                Counts::Packet => Counted::Packet(way.headers),
            },
            grtt: self.round_trip,
            unicast: self.is_unicast(group),
            robust: self.robust,
            ackers,
            ..base
        }
    }

    /// Returns `true` if receivers answer to the sender alone. A single host is not a group to which they could answer.
    fn is_unicast(&self, group: SocketAddr) -> bool {
        self.unicast || !group.ip().is_multicast()
    }

    /// Returns the configuration of a receiver.
    pub fn receiver(&self, node: NodeId, group: SocketAddr, seed: u64) -> ReceiverConfig {
        ReceiverConfig {
            unicast: self.is_unicast(group),
            receivers: GroupSize::of(self.receivers.into()),
            robust: self.robust,
            seed,
            ..ReceiverConfig::new(node, group)
        }
    }
}
