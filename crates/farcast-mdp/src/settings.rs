//! What a user chooses, and what follows from it: the same for every face.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_norm::NodeId;
use farcast_norm::quantise::GroupSize;

use crate::config::{Counted, Object, ReceiverConfig, SenderConfig};

/// What a user chooses. Defaults are those of [`SenderConfig::new`] and [`ReceiverConfig::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How fast.
    pub rate: BitRate,
    /// What the rate counts.
    pub counts: Counts,
    /// Octets of a segment; absent: 1,024, or what the MTU lets pass.
    pub segment_size: Option<u16>,
    /// Segments of a block, at most.
    pub block_len: u8,
    /// Parity symbols of a block.
    pub parity: u8,
    /// Of these, how many are sent with each block, unasked.
    pub auto_parity: u8,
    /// The group's greatest round trip, until it has been measured.
    pub round_trip: Span,
    /// How many receivers there may be.
    pub receivers: u32,
    /// Whether they answer the sender alone, and not the group.
    pub unicast: bool,
    /// How often what must arrive is said.
    pub robust: u32,
    /// How long after the last segment of an object the next one begins.
    pub gap: Span,
    /// Octets that may leave together, at most.
    pub burst: u64,
    /// The transfer is aborted after this long.
    pub time_limit: Span,
}

/// What a rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Segments and symbols alone.
    Payload,
    /// MDP messages.
    Message,
    /// Datagrams with their headers.
    Packet,
}

/// How the toolkit was used in the report of 2003 on a space link, which leaves open what its 88,000 bit/s counted,
/// how long segments were and how many octets a megabyte has. Two readings fit what it prints of a line without
/// errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Payload alone counts, the longest packets have 1,500 octets (parity of 1,447), 1 MB is 2^20 octets.
    SpaceLinkA,
    /// Messages count, segments have 1,024 octets, 1 MB is 1,024,000 octets.
    SpaceLinkB,
}

/// Where objects go, and who is to have them.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Who sends.
    pub node: NodeId,
    /// From where.
    pub source: SocketAddr,
    /// To whom.
    pub group: SocketAddr,
    /// What.
    pub objects: Vec<Object>,
    /// Who must have it all.
    pub ackers: Vec<NodeId>,
}

/// What carries datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Octets of UDP and IP headers.
    pub headers: u16,
    /// The longest packet.
    pub mtu: Option<u32>,
}

/// Octets of the longest header before a segment or symbol: that of a runt.
const HEADER: u16 = 26;

impl Settings {
    /// All as usual, at `rate`.
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

    /// As in the report: 88,000 bit/s, answers to the sender, 300 s between files.
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

    /// The sender's configuration.
    pub fn sender(&self, sent: Sent, way: Way) -> SenderConfig {
        let Sent { node, source, group, objects, ackers } = sent;
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

    /// A host is no group that could be answered.
    fn is_unicast(&self, group: SocketAddr) -> bool {
        self.unicast || !group.ip().is_multicast()
    }

    /// A receiver's configuration.
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
