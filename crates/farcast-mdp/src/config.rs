//! Settings of the two engines, checked when an engine is made.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, Vouched};
use farcast_norm::NodeId;
use farcast_norm::quantise::GroupSize;

use crate::error::ConfigError;
use crate::message::geometry;
use crate::wire::info_len;

/// How often what must arrive is said, and how often silence is forgiven (`FLUSH_ROBUSTNESS_COUNT`; draft §4.1).
pub const ROBUST: u32 = 20;

/// The most objects of one sender.
pub(crate) const MOST_OBJECTS: usize = 1 << 20;

/// What a sender's rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Segments and symbols alone, without any header. Commands are free.
    Payload,
    /// MDP messages, without the headers of UDP and IP.
    Message,
    /// Datagrams with so many octets of UDP and IP headers.
    Packet(u16),
}

/// An object to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its octets, at most 2^32 - 1. Of one of none INFO is all that there is.
    pub size: u64,
    /// What is said of it: of a file its name. Empty: nothing.
    pub info: Vec<u8>,
    /// What is vouched for, which is said with that. Both together fit a segment.
    pub vouched: Option<Vouched>,
}

impl Object {
    /// Whether anything is said of it.
    pub(crate) fn has_info(&self) -> bool {
        !self.info.is_empty() || self.vouched.is_some() || self.size == 0
    }
}

/// What a sender sends, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct SenderConfig {
    /// Who it is.
    pub node: NodeId,
    /// Where what it says comes from; unicast answers go there.
    pub source: SocketAddr,
    /// The group, or the one host, that it sends to.
    pub group: SocketAddr,
    /// The objects, in the order in which they are sent; on the wire they are numbered from 0.
    pub objects: Vec<Object>,
    /// How long after the last segment of an object the next one begins.
    pub gap: Span,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Segments of a block, at most.
    pub block_len: u8,
    /// Parity symbols of a block.
    pub parity: u8,
    /// Of these, how many are sent with each block, unasked.
    pub auto_parity: u8,
    /// How fast.
    pub rate: BitRate,
    /// What the rate counts.
    pub counted: Counted,
    /// How much sending time a late driver may make up for at once.
    pub credit: Span,
    /// The group's greatest round trip, until it has been measured.
    pub grtt: Span,
    /// Whether each probe of round trips asks everybody to answer.
    pub wildcard: bool,
    /// Whether receivers answer it alone, and not the group.
    pub unicast: bool,
    /// How often what must arrive is said.
    pub robust: u32,
    /// Who must have every object before the sender says that they are delivered; nobody: it cannot know.
    pub ackers: Vec<NodeId>,
}

impl SenderConfig {
    /// Objects at `rate` to `group`, all else as usual: segments of 1,024 octets in blocks of 20 with 20 parity
    /// symbols, which is the draft's example, and a first round trip of half a second (both are our choice).
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

    /// How objects are cut, if everything can be as it is asked for.
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
            // One repair request has to fit.
            ("the segment size", self.segment_size >= 64),
        ];
        if let Some((what, _)) = ranges.into_iter().find(|(_, right)| !right) {
            return Err(ConfigError::Range(what));
        }
        self.check_nodes()?;
        let cut = |object: &Object| {
            if object.size > u64::from(u32::MAX) {
                return Err(ConfigError::Size(object.size));
            }
            let info = info_len(&object.info, object.vouched.as_ref());
            if info > room {
                return Err(ConfigError::Info(info));
            }
            Ok(geometry(object.size, self.segment_size, block)?)
        };
        self.objects.iter().map(cut).collect()
    }

    fn check_nodes(&self) -> Result<(), ConfigError> {
        let mut nodes = self.ackers.clone();
        nodes.push(self.node);
        nodes.sort_unstable();
        let nobody = nodes.iter().find(|node| !node.is_somebody()).copied();
        let twice = nodes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        nobody.or(twice).map_or(Ok(()), |node| Err(ConfigError::Node(node)))
    }
}

/// The shortest and the longest round trip that is said.
pub(crate) const GRTT_RANGE: (Span, Span) = (Span::from_millis(1), Span::from_secs(15));

/// With what a receiver begins to hear a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// With INFO or a first block that is sent for the first time (draft §4.2).
    #[default]
    Beginning,
    /// With anything of an object: what was sent before is asked for. So who was stopped goes on in the midst of an
    /// object, and who is asked to acknowledge an object that it has not heard of has it sent.
    Anywhere,
}

/// How a receiver receives.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Who it is.
    pub node: NodeId,
    /// The group that it listens to.
    pub group: SocketAddr,
    /// Whether it answers the sender alone, instead of the group, where others hear what they need not ask for.
    pub unicast: bool,
    /// Whether it never says anything.
    pub silent: bool,
    /// With what it begins.
    pub sync: Sync,
    /// How many receivers there may be: they spread their requests accordingly. MDP does not say it on the wire.
    pub receivers: GroupSize,
    /// How often silence is forgiven.
    pub robust: u32,
    /// Octets of the largest object that it takes.
    pub largest: u64,
    /// Octets of parity, and of blocks that are being rebuilt, that it has its owner keep.
    pub parity_memory: u64,
    /// The seed of its waits.
    pub seed: u64,
}

impl ReceiverConfig {
    /// As usual: answers to the group, as one of a thousand; 64 MiB of parity.
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
