//! Settings of the two engines, checked when an engine is made.

use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, GeometryError, MAX_SEGMENTS, RatePace, Vouched};

use crate::error::ConfigError;
use crate::message::{Fec, Fti, FtiStyle, NodeId};
use crate::quantise::GroupSize;
use crate::timing::ROBUST;

/// The longest round trip that is believed.
const GRTT_MOST: Span = Span::from_secs(10);

/// What is sent as one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Octets of it, below 2^48.
    pub size: u64,
    /// What is said of it, at most a segment: of a file its name. Empty: nothing, and no INFO leaves but that of an
    /// object of no octets, which is nothing else.
    pub info: Vec<u8>,
    /// What receivers that are farcast are told besides, in INFO.
    pub vouched: Option<Vouched>,
}

/// What an object is (RFC 5740 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// Octets that no file is made of.
    Data,
}

/// The most objects of a list: half of what their numbers can tell apart.
pub const MOST_OBJECTS: usize = 1 << 15;

/// What a sender sends, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Who it is.
    pub node: NodeId,
    /// Another number for each time that it is started.
    pub instance: u16,
    /// Where what it says comes from; unicast answers go there.
    pub source: SocketAddr,
    /// The group that it sends to.
    pub group: SocketAddr,
    /// What is sent, one after the other: 1 to [`MOST_OBJECTS`]. On the wire they have the numbers of this list.
    pub objects: Vec<Object>,
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
    /// How fast.
    pub pace: RatePace,
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
    /// Who must have all objects before the sender says that they are delivered; nobody: it cannot know.
    pub ackers: Vec<NodeId>,
    /// Whether they are asked after each object, too, and not only in the end.
    pub watermarks: bool,
}

impl SenderConfig {
    /// A file of `size` octets, of which nothing is said, at `rate` to `group`, all else as usual: segments of 1,400 octets, blocks of 64 with
    /// 16 parity symbols, RFC 5740's round trip of half a second and group of 10,000.
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
            grtt: Span::from_millis(500),
            grtt_most: GRTT_MOST,
            backoff: 4,
            receivers: GroupSize::of(10_000),
            unicast: false,
            robust: ROBUST,
            ackers: Vec::new(),
            watermarks: false,
        }
    }

    /// How the objects are cut, if everything can be as it is asked for.
    pub(crate) fn check(&self) -> Result<Vec<Geometry>, ConfigError> {
        let (block, parity) = (self.block_len, self.parity);
        let most = (1u32 << self.fec.symbol_bits()) - 1;
        if u32::from(block) + u32::from(parity) > most {
            return Err(ConfigError::Code { block, parity, fec: self.fec.id(), most });
        }
        if self.auto_parity > parity {
            return Err(ConfigError::AutoParity { auto: self.auto_parity, parity });
        }
        if self.ackers.len() * 4 > usize::from(self.segment_size) {
            return Err(ConfigError::Ackers(self.ackers.len()));
        }
        self.check_nodes()?;
        let ranges = [
            ("the back-off factor", self.backoff <= 15),
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

    /// How `object` is cut, if it can be.
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

    fn check_nodes(&self) -> Result<(), ConfigError> {
        let mut nodes = self.ackers.clone();
        nodes.push(self.node);
        nodes.sort_unstable();
        let nobody = nodes.iter().find(|node| !node.is_somebody()).copied();
        let twice = nodes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        nobody.or(twice).map_or(Ok(()), |node| Err(ConfigError::Node(node)))
    }

    /// What receivers are told of how an object of `size` octets is cut.
    pub(crate) fn transmission(&self, size: u64) -> Fti {
        let last = match self.fti {
            FtiStyle::MaxN if self.fec != Fec::SmallBlock => self.block_len + self.parity,
            _ => self.parity,
        };
        let (segment_size, max_block_len) = (self.segment_size, self.block_len);
        Fti { size, segment_size, max_block_len, last, instance: 0, group: 1 }
    }
}

/// How an object of `size` octets is cut (RFC 5052 §9.1); one of none is not.
pub(crate) fn geometry(size: u64, segment_size: u16, block_len: u16) -> Result<Geometry, GeometryError> {
    let (segment_size, block_len) = (segment_size.into(), block_len.into());
    if size == 0 {
        Geometry::empty(segment_size, block_len)
    } else {
        Geometry::partitioned(size, segment_size, block_len)
    }
}

/// What of a sender's objects is received that began before it was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// All of them, as far as the sender can repair them: who is to acknowledge must have everything.
    #[default]
    All,
    /// The one that is heard first, from its beginning, and those behind it, as NRL's library does.
    Current,
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
    /// What it receives of a sender that it has not heard from the beginning.
    pub sync: Sync,
    /// How the number of parity symbols is said.
    pub fti: FtiStyle,
    /// The greatest round trip of a group that it believes a sender.
    pub grtt_most: Span,
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
            sync: Sync::All,
            fti: FtiStyle::Parity,
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
