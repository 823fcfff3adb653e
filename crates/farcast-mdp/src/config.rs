//! Settings of the two engines, checked when an engine is created.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::nack::quantise::GroupSize;
use farcast_delivery::nack::{NodeId, invalid_node};
use farcast_delivery::{Geometry, MAX_SEGMENTS, Vouched};

use crate::error::ConfigError;
use crate::message::geometry;
use crate::wire::info_len;

/// Default number of repetitions of important messages, and of silences that are tolerated (`FLUSH_ROBUSTNESS_COUNT`;
/// draft §4.1).
pub const ROBUST: u32 = 20;

/// The most objects of one sender.
pub(crate) const MOST_OBJECTS: usize = 1 << 20;

/// Octets that count against a sender's rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Segments and symbols alone, without any header. Commands are free.
    Payload,
    /// MDP messages, without the headers of UDP and IP.
    Message,
    /// Datagrams, with this many octets of UDP and IP headers each.
    Packet(u16),
}

/// An object to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Octets of the object, at most 2^32 - 1. An empty object has only INFO.
    pub size: u64,
    /// Content of INFO: the name of a file. Empty: none.
    pub info: Vec<u8>,
    /// Digest, mode and time for which the sender vouches, told in INFO. Both together fit a segment.
    pub vouched: Option<Vouched>,
}

impl Object {
    /// Returns `true` if the object has INFO.
    pub(crate) fn has_info(&self) -> bool {
        !self.info.is_empty() || self.vouched.is_some() || self.size == 0
    }
}

/// Settings of a sender.
#[derive(Clone, PartialEq, Debug)]
pub struct SenderConfig {
    /// Node id of the sender.
    pub node: NodeId,
    /// Address from which the sender sends; unicast answers go there.
    pub source: SocketAddr,
    /// Group, or single host, to which the sender sends.
    pub group: SocketAddr,
    /// The objects, in the order in which they are sent; on the wire they are numbered from 0.
    pub objects: Vec<Object>,
    /// Time from the last segment of an object to the beginning of the next.
    pub gap: Span,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Segments of a block, at most.
    pub block_len: u8,
    /// Parity symbols of a block.
    pub parity: u8,
    /// Parity symbols that follow each block unasked, of those in `parity`.
    pub auto_parity: u8,
    /// Rate of sending.
    pub rate: BitRate,
    /// Octets that count against the rate.
    pub counted: Counted,
    /// Sending time that a late driver may make up for at once.
    pub credit: Span,
    /// Initial estimate of the group's greatest round trip.
    pub grtt: Span,
    /// Each probe of round trips asks all receivers to answer.
    pub wildcard: bool,
    /// Receivers answer to the sender alone, and not to the group.
    pub unicast: bool,
    /// Repetitions of important messages.
    pub robust: u32,
    /// Receivers that must have every object before the sender reports delivery. If empty, the sender cannot know of
    /// it.
    pub ackers: Vec<NodeId>,
}

impl SenderConfig {
    /// Returns the default settings for objects at `rate` to `group`: segments of 1,024 octets in blocks of 20 with 20
    /// parity symbols, which is the draft's example, and an initial round trip of half a second (both are our choice).
    pub fn new(
        node: NodeId,
        objects: Vec<Object>,
        source: SocketAddr,
        group: SocketAddr,
        rate: BitRate,
    ) -> Self {
        let overhead = if group.is_ipv4() { 28 } else { 48 };
        Self {
            node,
            source,
            group,
            objects,
            gap: Span::ZERO,
            segment_size: 1024,
            block_len: 20,
            parity: 20,
            auto_parity: 0,
            rate,
            counted: Counted::Packet(overhead),
            credit: Span::from_millis(2),
            grtt: Span::from_millis(500),
            wildcard: false,
            unicast: false,
            robust: ROBUST,
            ackers: Vec::new(),
        }
    }

    /// Checks the settings, and returns the division of each object into segments.
    pub(crate) fn check(&self) -> Result<Vec<Geometry>, ConfigError> {
        let (block, parity) = (self.block_len, self.parity);
        if !(1..=MOST_OBJECTS).contains(&self.objects.len()) {
            return Err(ConfigError::Objects(self.objects.len()));
        }
        if u32::from(block) + u32::from(parity) > 255 || block == 0 {
            return Err(ConfigError::Code { block, parity });
        }
        if self.auto_parity > parity {
            return Err(ConfigError::AutoParity { auto: self.auto_parity, parity });
        }
        let room = usize::from(self.segment_size);
        if self.ackers.len() * 4 > room {
            return Err(ConfigError::Ackers(self.ackers.len()));
        }
        let ranges = [
            ("the robustness factor", self.robust > 0),
            ("the round trip", (GRTT_RANGE.0..=GRTT_RANGE.1).contains(&self.grtt)),
            // A segment must hold one repair request.
            ("the segment size", self.segment_size >= 64),
        ];
        if let Some((what, _)) = ranges.into_iter().find(|(_, right)| !right) {
            return Err(ConfigError::Range(what));
        }
        if let Some(node) = invalid_node(&self.ackers, self.node) {
            return Err(ConfigError::Node(node));
        }
        let cut = |object: &Object| {
            if object.size > u64::from(u32::MAX) {
                return Err(ConfigError::Size(object.size));
            }
            let info = info_len(&object.info, object.vouched.as_ref());
            if info > room {
                return Err(ConfigError::Info(info));
            }
            let geometry = geometry(object.size, self.segment_size, block)?;
            if u64::from(geometry.blocks()) * u64::from(parity) > u64::from(MAX_SEGMENTS) {
                let octets = u32::from(block) * u32::from(self.segment_size);
                return Err(ConfigError::Symbols { size: object.size, octets, parity });
            }
            Ok(geometry)
        };
        self.objects.iter().map(cut).collect()
    }
}

/// The shortest and the longest round trip on the wire.
pub(crate) const GRTT_RANGE: (Span, Span) = (Span::from_millis(1), Span::from_secs(15));

/// Messages with which a receiver begins to follow a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// INFO or a first block that is sent for the first time (draft §4.2).
    #[default]
    Beginning,
    /// Any message about an object; the receiver requests what was sent before. So a receiver that was stopped goes on
    /// within an object. A receiver that is asked to acknowledge an unknown object requests it.
    Anywhere,
}

/// Settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Node id of the receiver.
    pub node: NodeId,
    /// Group to which the receiver listens.
    pub group: SocketAddr,
    /// The receiver answers to the sender alone. Otherwise it answers to the group, where other receivers hear its
    /// requests and need not repeat them.
    pub unicast: bool,
    /// The receiver never sends anything.
    pub silent: bool,
    /// Messages with which the receiver begins.
    pub sync: Sync,
    /// Expected number of receivers, over which requests are spread accordingly. MDP does not transmit it.
    pub receivers: GroupSize,
    /// Number of silences that are tolerated.
    pub robust: u32,
    /// Octets of the largest object that is accepted.
    pub largest: u64,
    /// Octets that the owner may keep of parity, and of blocks that are being rebuilt.
    pub parity_memory: u64,
    /// Seed of the random waits.
    pub seed: u64,
}

impl ReceiverConfig {
    /// Returns the default settings: answers to the group, as one of a thousand receivers; 64 MiB of parity.
    pub fn new(node: NodeId, group: SocketAddr) -> Self {
        Self {
            node,
            group,
            unicast: false,
            silent: false,
            sync: Sync::Beginning,
            receivers: GroupSize::of(1000),
            robust: ROBUST,
            largest: u64::from(u32::MAX),
            parity_memory: 64 << 20,
            seed: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match (self.node.is_somebody(), self.robust) {
            (false, _) => Err(ConfigError::Node(self.node)),
            (true, 0) => Err(ConfigError::Range("the robustness factor")),
            (true, _) => Ok(()),
        }
    }
}
