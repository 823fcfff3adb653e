//! Settings of the sender's and the receiver's engine, checked when an engine is made.

use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::nack::{MOST_OBJECTS, invalid_node};
use farcast_delivery::{Geometry, GeometryError, MAX_SEGMENTS, RatePace, Vouched};

use crate::error::ConfigError;
use crate::message::{Fec, Fti, FtiStyle, NodeId};
use crate::quantise::{GroupSize, LossStyle};
use crate::timing::ROBUST;

/// Longest round trip that is believed.
const GRTT_MOST: Span = Span::from_secs(10);

/// Rate control of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pacing {
    /// Fixed rate.
    #[default]
    Fixed,
    /// Rate that follows the receivers' reports of losses and round trips ([`cc`](crate::cc)).
    NormCc {
        /// Lower bound of the rate.
        least: BitRate,
    },
}

/// Object to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// Octets of the object, below 2^48.
    pub size: u64,
    /// Content of the object's INFO, at most a segment: a file's name. If it is empty, no INFO leaves, except for an
    /// object of no octets, which consists of nothing but INFO.
    pub info: Vec<u8>,
    /// Metadata that INFO adds for receivers that are farcast.
    pub vouched: Option<Vouched>,
}

/// Kind of an object (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// Octets that do not come from a file.
    Data,
}

/// Configuration of a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Node id of the sender.
    pub node: NodeId,
    /// Instance number, a new one for each start of the sender.
    pub instance: u16,
    /// Source address of all messages; unicast answers go there.
    pub source: SocketAddr,
    /// Group that the sender sends to.
    pub group: SocketAddr,
    /// Objects to send, one after the other: 1 to [`MOST_OBJECTS`]. An object's number on the wire is its index in this
    /// list.
    pub objects: Vec<Object>,
    /// Octets of a segment.
    pub segment_size: u16,
    /// Maximum number of segments of a block.
    pub block_len: u16,
    /// Parity symbols of a block.
    pub parity: u16,
    /// Parity symbols, among those of `parity`, that are sent with each block unasked.
    pub auto_parity: u16,
    /// Numbering of symbols, and erasure code.
    pub fec: Fec,
    /// Meaning of the field that carries the number of parity symbols.
    pub fti: FtiStyle,
    /// Rate; under congestion control its upper bound.
    pub pace: RatePace,
    /// Rate control.
    pub pacing: Pacing,
    /// Greatest round trip of the group (GRTT), until it has been measured.
    pub grtt: Span,
    /// Greatest GRTT that is believed.
    pub grtt_most: Span,
    /// Number of GRTTs over which receivers spread their requests: 4 for any group, 6 where only the sender sends to
    /// it, 0 for a single receiver (RFC 5740 §5.3).
    pub backoff: u8,
    /// The same until the receivers' losses are known, where the first requests could be more than the return carries.
    /// INFO then leaves twice, because a receiver without INFO asks, too.
    pub first_backoff: Option<u8>,
    /// Maximum number of receivers.
    pub receivers: GroupSize,
    /// `true` if receivers answer the sender alone, and not the group. Only the sender's owner reads this.
    pub unicast: bool,
    /// Robustness factor: number of repetitions of messages that must arrive.
    pub robust: u32,
    /// Receivers that must have all objects before the sender reports them as delivered. If there are none, it cannot
    /// know.
    pub ackers: Vec<NodeId>,
    /// `true` if these receivers are asked after each object, and not only at the end.
    pub watermarks: bool,
    /// Rate of the return channel that all receivers share. If these are so many that their answers would take more of
    /// it than there is, they are asked in parts. `None` for a thirtieth of the rate.
    pub return_rate: Option<BitRate>,
}

impl SenderConfig {
    /// Returns the configuration of a sender of one file of `size` octets without INFO, at `rate` to `group`. Defaults
    /// are segments of 1,400 octets, blocks of 64 with 16 parity symbols, and RFC 5740's round trip of half a second
    /// and group of 10,000.
    pub fn new(node: NodeId, size: u64, source: SocketAddr, group: SocketAddr, rate: BitRate) -> Self {
        let overhead = if group.is_ipv4() { 28 } else { 48 };
        Self {
            node,
            instance: 1,
            source,
            group,
            objects: vec![Object { kind: Kind::File, size, info: Vec::new(), vouched: None }],
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
            first_backoff: None,
            receivers: GroupSize::of(10_000),
            unicast: false,
            robust: ROBUST,
            ackers: Vec::new(),
            watermarks: false,
            return_rate: None,
        }
    }

    /// Checks the configuration, and returns the geometry of each object.
    pub(crate) fn check(&self) -> Result<Vec<Geometry>, ConfigError> {
        let (block, parity) = (self.block_len, self.parity);
        let most = (1u32 << self.fec.symbol_bits()) - 1;
        if u32::from(block) + u32::from(parity) > most {
            return Err(ConfigError::Code { block, parity, fec: self.fec.id(), most });
        }
        if self.auto_parity > parity {
            return Err(ConfigError::AutoParity { auto: self.auto_parity, parity });
        }
        if let Some(node) = invalid_node(&self.ackers, self.node) {
            return Err(ConfigError::Node(node));
        }
        let ranges = [
            ("the back-off factor", self.backoff.max(self.first_backoff.unwrap_or(0)) <= 15),
            ("the robustness factor", self.robust > 0),
            ("the round trip", !self.grtt.is_zero() && self.grtt <= self.grtt_most),
        ];
        if let Some((what, _)) = ranges.into_iter().find(|(_, right)| !right) {
            return Err(ConfigError::Range(what));
        }
        if !(1..=MOST_OBJECTS).contains(&self.objects.len()) {
            return Err(ConfigError::Objects(self.objects.len()));
        }
        self.objects.iter().map(|object| self.cut(object)).collect()
    }

    /// Returns the geometry of `object`, if it can be cut.
    fn cut(&self, object: &Object) -> Result<Geometry, ConfigError> {
        if object.size >> 48 != 0 {
            return Err(ConfigError::Size(object.size));
        }
        if object.info.len() > usize::from(self.segment_size) {
            return Err(ConfigError::Info(object.info.len()));
        }
        let geometry = geometry(object.size, self.segment_size, self.block_len)?;
        let blocks = geometry.blocks();
        let numbered = u64::from(blocks.saturating_sub(1)) >> self.fec.block_bits() == 0;
        if !numbered || u64::from(blocks) * u64::from(self.parity) > u64::from(MAX_SEGMENTS) {
            return Err(ConfigError::Blocks(blocks));
        }
        Ok(geometry)
    }

    /// Returns the transmission information for receivers of an object of `size` octets.
    pub(crate) fn transmission(&self, size: u64) -> Fti {
        let last = match self.fti {
            FtiStyle::MaxN if self.fec != Fec::SmallBlock => self.block_len + self.parity,
            _ => self.parity,
        };
        let (segment_size, max_block_len) = (self.segment_size, self.block_len);
        Fti { size, segment_size, max_block_len, last, instance: 0, group: 1 }
    }
}

/// Returns the geometry of an object of `size` octets (RFC 5052 §9.1). An object of no octets has an empty geometry.
pub(crate) fn geometry(size: u64, segment_size: u16, block_len: u16) -> Result<Geometry, GeometryError> {
    let (segment_size, block_len) = (segment_size.into(), block_len.into());
    if size == 0 {
        Geometry::empty(segment_size, block_len)
    } else {
        Geometry::partitioned(size, segment_size, block_len)
    }
}

/// Reception of a sender's objects that began before the receiver heard the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// All objects, as far as the sender can repair them. A receiver that is to acknowledge must have everything.
    #[default]
    All,
    /// Objects from the one that is heard first on, this one from its beginning, as in NRL's library.
    Current,
}

/// Configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Node id of the receiver.
    pub node: NodeId,
    /// Group that the receiver listens to.
    pub group: SocketAddr,
    /// `true` if the receiver answers the sender alone, instead of the group. In the group, other receivers hear its
    /// requests and need not repeat them.
    pub unicast: bool,
    /// `true` if the receiver never sends anything.
    pub silent: bool,
    /// Objects to receive of a sender that was not heard from its beginning.
    pub sync: Sync,
    /// Meaning of the field that carries the number of parity symbols.
    pub fti: FtiStyle,
    /// Precision of reported losses.
    pub loss: LossStyle,
    /// Greatest GRTT that is believed of a sender.
    pub grtt_most: Span,
    /// Robustness factor: number of silent periods that are forgiven.
    pub robust: u32,
    /// Octets of the largest object that is accepted.
    pub largest: u64,
    /// Octets of parity, and of blocks that are being rebuilt, that the owner is asked to keep.
    pub parity_memory: u64,
    /// Seed of random waits.
    pub seed: u64,
}

impl ReceiverConfig {
    /// Returns the default configuration: answers to the group, objects below 2^48 octets, 64 MiB of parity.
    pub const fn new(node: NodeId, group: SocketAddr) -> Self {
        Self {
            node,
            group,
            unicast: false,
            silent: false,
            sync: Sync::All,
            fti: FtiStyle::Parity,
            loss: LossStyle::Fine,
            grtt_most: GRTT_MOST,
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
