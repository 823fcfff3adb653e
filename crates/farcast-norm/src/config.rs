//! Settings of the two engines, checked when an engine is made.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, MAX_SEGMENTS, RatePace};

use crate::error::ConfigError;
use crate::message::{Fec, Fti, FtiStyle, NodeId};
use crate::quantise::{GroupSize, LossStyle};
use crate::timing::ROBUST;

/// The longest round trip that a sender believes.
const GRTT_MOST: Span = Span::from_secs(10);

/// What decides the rate of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pacing {
    /// Nothing: it stays what it is.
    #[default]
    Fixed,
    /// What receivers report of losses and round trips ([`cc`](crate::cc)).
    NormCc {
        /// Nobody makes it slower.
        least: BitRate,
    },
}

/// What a sender sends, and how.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Who it is.
    pub node: NodeId,
    /// Another number for each time that it is started.
    pub instance: u16,
    /// Where what it says comes from; unicast answers go there.
    pub source: SocketAddr,
    /// The group that it sends to.
    pub group: SocketAddr,
    /// The object's number.
    pub object: u16,
    /// Octets of the object.
    pub size: u64,
    /// What is said of it, at most a segment: of a file its name. Empty: nothing.
    pub info: Vec<u8>,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Segments of a block, at most.
    pub block_len: u16,
    /// Parity symbols of a block.
    pub parity: u16,
    /// Of these, how many are sent with each block, unasked.
    pub auto_parity: u16,
    /// How symbols are numbered and parity is computed.
    pub fec: Fec,
    /// How the number of parity symbols is said.
    pub fti: FtiStyle,
    /// How fast; under congestion control the most.
    pub pace: RatePace,
    /// What decides the rate.
    pub pacing: Pacing,
    /// The group's greatest round trip, until it has been measured.
    pub grtt: Span,
    /// The greatest that is believed.
    pub grtt_most: Span,
    /// How many greatest round trips receivers spread their requests over: 4 for any group, 6 where only the sender
    /// sends to it, 0 for a single receiver (RFC 5740 §5.3).
    pub backoff: u8,
    /// How many receivers there may be.
    pub receivers: GroupSize,
    /// Whether they answer it alone, and not the group; for who drives it.
    pub unicast: bool,
    /// How often what must arrive is said.
    pub robust: u32,
    /// Who must have the object before the sender says that it is delivered; nobody: it cannot know.
    pub ackers: Vec<NodeId>,
}

impl SenderConfig {
    /// An object of `size` octets at `rate` to `group`, all else as usual: segments of 1,400 octets, blocks of 64 with
    /// 16 parity symbols, RFC 5740's round trip of half a second and group of 10,000.
    pub fn new(node: NodeId, size: u64, source: SocketAddr, group: SocketAddr, rate: BitRate) -> Self {
        let overhead = if group.is_ipv4() { 28 } else { 48 };
        Self {
            node,
            instance: 1,
            source,
            group,
            object: 0,
            size,
            info: Vec::new(),
            segment_size: 1400,
            block_len: 64,
            parity: 16,
            auto_parity: 0,
            fec: Fec::ReedSolomon8,
            fti: FtiStyle::default(),
            pace: RatePace { rate, overhead, credit: Span::from_millis(2), granule: 1 },
            pacing: Pacing::Fixed,
            grtt: Span::from_millis(500),
            grtt_most: GRTT_MOST,
            backoff: 4,
            receivers: GroupSize::of(10_000),
            unicast: false,
            robust: ROBUST,
            ackers: Vec::new(),
        }
    }

    /// How the object is cut, if everything can be as it is asked for.
    pub(crate) fn check(&self) -> Result<Geometry, ConfigError> {
        let (block, parity) = (self.block_len, self.parity);
        let geometry = Geometry::partitioned(self.size, self.segment_size.into(), block.into())?;
        if self.size >> 48 != 0 {
            return Err(ConfigError::Size(self.size));
        }
        let most = (1u32 << self.fec.symbol_bits()) - 1;
        if u32::from(block) + u32::from(parity) > most {
            return Err(ConfigError::Code { block, parity, fec: self.fec.id(), most });
        }
        let blocks = geometry.blocks();
        let numbered = u64::from(blocks - 1) >> self.fec.block_bits() == 0;
        if !numbered || u64::from(blocks) * u64::from(parity) > u64::from(MAX_SEGMENTS) {
            return Err(ConfigError::Blocks(blocks));
        }
        if self.auto_parity > parity {
            return Err(ConfigError::AutoParity { auto: self.auto_parity, parity });
        }
        let room = usize::from(self.segment_size);
        if self.info.len() > room {
            return Err(ConfigError::Info(self.info.len()));
        }
        if self.ackers.len() * 4 > room {
            return Err(ConfigError::Ackers(self.ackers.len()));
        }
        self.check_nodes()?;
        let ranges = [
            ("the back-off factor", self.backoff <= 15),
            ("the robustness factor", self.robust > 0),
            ("the round trip", !self.grtt.is_zero() && self.grtt <= self.grtt_most),
        ];
        match ranges.into_iter().find(|(_, right)| !right) {
            Some((what, _)) => Err(ConfigError::Range(what)),
            None => Ok(geometry),
        }
    }

    fn check_nodes(&self) -> Result<(), ConfigError> {
        let mut nodes = self.ackers.clone();
        nodes.push(self.node);
        nodes.sort_unstable();
        let nobody = nodes.iter().find(|node| !node.is_somebody()).copied();
        let twice = nodes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        nobody.or(twice).map_or(Ok(()), |node| Err(ConfigError::Node(node)))
    }

    /// What receivers are told of how the object is cut.
    pub(crate) fn transmission(&self) -> Fti {
        let last = match self.fti {
            FtiStyle::MaxN if self.fec != Fec::SmallBlock => self.block_len + self.parity,
            _ => self.parity,
        };
        let (size, segment_size, max_block_len) = (self.size, self.segment_size, self.block_len);
        Fti { size, segment_size, max_block_len, last, instance: 0, group: 1 }
    }
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
    /// How the number of parity symbols is said.
    pub fti: FtiStyle,
    /// How it says what it loses.
    pub loss: LossStyle,
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
    /// As usual: answers to the group, objects below 2^48 octets, 64 MiB of parity.
    pub const fn new(node: NodeId, group: SocketAddr) -> Self {
        Self {
            node,
            group,
            unicast: false,
            silent: false,
            fti: FtiStyle::Parity,
            loss: LossStyle::Fine,
            robust: ROBUST,
            largest: (1 << 48) - 1,
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
