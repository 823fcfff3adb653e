//! Settings of the two engines, checked when an engine is created. RFC 3208 gives a value for `SPMR_BO_IVL` only. The
//! defaults lie between those of OpenPGM's examples and of ZeroMQ, for round trips of up to half a second.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, RatePace, Vouched};

use crate::cc::CcConfig;
use crate::error::ConfigError;
use crate::message::{MOST_LISTED, MOST_NAME, NAME_OVERHEAD, NodeId, Sqn, Tsi};

/// A file that is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Octets of the file.
    pub size: u64,
    /// Name of the file.
    pub name: Vec<u8>,
    /// Digest, mode and time for which the sender vouches, told to receivers.
    pub vouched: Option<Vouched>,
}

/// Content that a source sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sending {
    /// These files, each preceded by a TSDU that describes it.
    Files(Vec<Object>),
    /// Messages that the owner of the engine hands over one after the other.
    Messages,
}

/// Files that are produced while they are sent, octet by octet at a steady rate, as by a source of constant bit rate.
/// Octets that the window or the pace holds back wait. Live files have no parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// Rate of the files' octets, without headers.
    pub rate: BitRate,
    /// Time from the opening to the first segment, which exists whole at that instant.
    pub start: Span,
}

/// Rule by which the transmit window advances (RFC 3208 §16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advance {
    /// The window does not advance: everything can be repaired until the end. For files.
    Never,
    /// The window advances with data and keeps the last `sqns` numbers (`TXW_SQNS`, `TXW_ADV_IVL`). Nothing new is sent
    /// while the oldest eighth of them was asked for within `hold`, but for no longer than [`SenderConfig::linger`].
    Data {
        /// Numbers that are kept.
        sqns: u32,
        /// Time for which a request keeps the numbers that it asks for.
        hold: Span,
    },
    /// The window advances with time: data that left longer ago than this can no longer be repaired (`TXW_SECS`).
    Time(Span),
}

/// The most data packets of a transmission group with parity. With so few, the parity packets that protect a whole
/// group fit into the code's 255 symbols.
pub const MOST_GROUP: u32 = 64;

/// Returns the number of parity packets that a group of `size` can have: the rest of the code's 255 symbols (GF(2^8)).
pub(crate) const fn parity_of(size: u32) -> u32 {
    255 - size
}

/// Returns `true` if `size` data packets can form a transmission group.
pub(crate) const fn is_group(size: u32) -> bool {
    size.is_power_of_two() && size >= 2 && size <= MOST_GROUP
}

/// Parity of transmission groups (RFC 3208 §11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grouping {
    /// Data packets of a group, a power of two of 2 to [`MOST_GROUP`] (`TGSIZE`).
    pub size: u32,
    /// Parity packets that follow each group unasked, at most `size`.
    pub ahead: u32,
    /// Receivers may ask for a number of parity packets.
    pub on_demand: bool,
}

/// Settings of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Session of the source.
    pub tsi: Tsi,
    /// Data-destination port of PGM; not a UDP port.
    pub port: u16,
    /// Address from which the source sends; requests for repair go there.
    pub source: SocketAddr,
    /// Group to which the source sends.
    pub group: SocketAddr,
    /// Content that the source sends.
    pub sending: Sending,
    /// Rate at which the files are produced while they are sent; `None`: the files exist whole.
    pub live: Option<Live>,
    /// The most octets of a TSDU: of a file's segment, or of a message that is not cut.
    pub tsdu: u16,
    /// Maximum rate, SPMs, NCFs and repairs included (`TXW_MAX_RTE`).
    pub pace: RatePace,
    /// Rule by which the transmit window advances.
    pub advance: Advance,
    /// First sequence number.
    pub first: Sqn,
    /// SPMs that leave before anything else, 1 to 16.
    pub opening: u32,
    /// Interval of ambient SPMs.
    pub ambient: Span,
    /// Time from the last data to the first heartbeat SPM (`IHB_MIN`).
    pub heartbeat: Span,
    /// The longest interval between heartbeats (`IHB_MAX`); the interval doubles with each heartbeat.
    pub heartbeat_most: Span,
    /// The descriptor of a file of many segments leaves twice: a receiver without it can keep none of the segments.
    pub heads_twice: bool,
    /// Interval over which receivers spread their requests, announced in SPMs (`NAK_BO_IVL`); `None`: each receiver
    /// chooses.
    pub backoff: Option<Span>,
    /// Time for which requests are gathered before repair.
    pub gather: Span,
    /// Time for which a repaired packet is not repaired again.
    pub holdoff: Span,
    /// Time for which the source stays after the last data while nothing is asked for and no receiver answers.
    pub linger: Span,
    /// Messages that wait to be sent, at most.
    pub backlog: usize,
    /// A late joiner may ask for all messages from the first, while these can be repaired (`OPT_JOIN`). For files every
    /// receiver may do so.
    pub joins: bool,
    /// SPMs, NCFs and repairs bear the IP router alert, as in RFC 3208.
    pub router_alert: bool,
    /// Congestion control by PGMCC: data leave as the acker's acknowledgements permit, and no faster than `pace`.
    pub cc: Option<CcConfig>,
    /// Parity, for files only and without congestion control. OpenPGM aborts when it receives any parity.
    pub parity: Option<Grouping>,
    /// Receivers that must have everything before the source reports delivery. With messages, the window does not
    /// advance past data that one of them lacks. If empty, the source cannot know of delivery.
    pub named: Vec<NodeId>,
}

impl SenderConfig {
    /// Returns the default settings at `rate`, with TSDUs of 1,400 octets.
    pub fn new(tsi: Tsi, sending: Sending, source: SocketAddr, group: SocketAddr, rate: BitRate) -> Self {
        let overhead = if group.is_ipv4() { 28 } else { 48 };
        let advance = match sending {
            Sending::Files(_) => Advance::Never,
            Sending::Messages => Advance::Data { sqns: 4096, hold: Span::from_millis(500) },
        };
        Self {
            tsi,
            port: 7500,
            source,
            group,
            sending,
            live: None,
            tsdu: 1400,
            pace: RatePace { rate, overhead, credit: Span::from_millis(2), granule: 1 },
            advance,
            first: Sqn(0),
            opening: 3,
            ambient: Span::from_secs(2),
            heartbeat: Span::from_millis(100),
            heartbeat_most: Span::from_secs(2),
            heads_twice: false,
            backoff: None,
            gather: Span::ZERO,
            holdoff: Span::from_millis(50),
            linger: Span::from_secs(20),
            backlog: 1024,
            joins: false,
            router_alert: false,
            cc: None,
            parity: None,
            named: Vec::new(),
        }
    }

    /// Checks the settings, and returns the division of each file into segments.
    pub(crate) fn check(&self) -> Result<Vec<Geometry>, ConfigError> {
        let ranges = [
            ("the TSDU", (64..=65_000).contains(&self.tsdu)),
            ("the interval of ambient SPMs", !self.ambient.is_zero()),
            (
                "the interval of heartbeats",
                !self.heartbeat.is_zero() && self.heartbeat <= self.heartbeat_most,
            ),
            ("the time to stay", !self.linger.is_zero()),
            ("the number of SPMs that come first", (1..=16).contains(&self.opening)),
            ("the transmit window", self.is_window()),
            ("what comes into being while it is sent", self.live.is_none() || self.is_of_files_for_good()),
            ("a setting of congestion control", self.cc.is_none_or(|cc| is_sound(&cc))),
            ("parity", self.parity.is_none_or(|parity| is_parity(&parity))),
            (
                "the first number, which begins a transmission group,",
                self.parity.is_none_or(|parity| self.first.0.is_multiple_of(parity.size)),
            ),
        ];
        if let Some((what, _)) = ranges.into_iter().find(|(_, right)| !right) {
            return Err(ConfigError::Range(what));
        }
        if self.parity.is_some() {
            let is_files = matches!(self.sending, Sending::Files(_)) && self.advance == Advance::Never;
            if !is_files || self.cc.is_some() {
                return Err(ConfigError::Parity(if is_files { "PGMCC" } else { "messages" }));
            }
        }
        let mut named = self.named.clone();
        named.sort_unstable();
        if let Some(twice) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ConfigError::Node(twice[0].0));
        }
        let Sending::Files(objects) = &self.sending else { return Ok(Vec::new()) };
        if objects.is_empty() {
            return Err(ConfigError::Range("the number of files"));
        }
        let cut = objects.iter().map(|object| {
            if object.name.len() > MOST_NAME || object.name.len() + NAME_OVERHEAD > usize::from(self.tsdu) {
                return Err(ConfigError::Name(object.name.len()));
            }
            Ok(geometry(object.size, self.tsdu, self.parity.map(|parity| parity.size))?)
        });
        let cut = cut.collect::<Result<Vec<_>, _>>()?;
        // With the numbers that groups leave unused.
        let unused = self.parity.map_or(0, |parity| 2 * u64::from(parity.size));
        let tpdus: u64 = cut.iter().map(|geometry| u64::from(geometry.segments()) + 1 + unused).sum();
        if tpdus > (1 << 31) - 1 { Err(ConfigError::Window(tpdus)) } else { Ok(cut) }
    }

    fn is_of_files_for_good(&self) -> bool {
        matches!(self.sending, Sending::Files(_)) && self.advance == Advance::Never && self.parity.is_none()
    }

    fn is_window(&self) -> bool {
        match self.advance {
            Advance::Never => true,
            Advance::Data { sqns, .. } => (8..1 << 31).contains(&sqns),
            Advance::Time(span) => !span.is_zero(),
        }
    }
}

fn is_sound(cc: &CcConfig) -> bool {
    (1..=1 << 15).contains(&cc.most) && (1..=100).contains(&cc.hysteresis_percent) && !cc.timeout.is_zero()
}

fn is_parity(parity: &Grouping) -> bool {
    is_group(parity.size) && parity.ahead <= parity.size && (parity.ahead > 0 || parity.on_demand)
}

/// Returns the division of a file of `size` octets into transmission groups of `group` packets, or into one block.
pub(crate) fn geometry(
    size: u64,
    tsdu: u16,
    group: Option<u32>,
) -> Result<Geometry, farcast_delivery::GeometryError> {
    let block = group.unwrap_or(farcast_delivery::MAX_SEGMENTS);
    match group {
        _ if size == 0 => Geometry::empty(tsdu.into(), block),
        Some(_) => Geometry::grouped(size, tsdu.into(), block),
        None => Geometry::new(size, tsdu.into(), block),
    }
}

/// Content that a receiver accepts, and the order in which it delivers messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivering {
    /// Files that farcast sends; all other data is ignored.
    Files,
    /// Messages (APDUs), in the order in which they were sent.
    Ordered,
    /// Messages as soon as they are whole.
    Unordered,
    /// Messages in order, from the number at which their source says that they begin; before it is known, none is
    /// taken.
    Stream,
}

/// Settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Number of this receiver among those that a source asks for acknowledgement.
    pub node: NodeId,
    /// Group to which the receiver listens.
    pub group: SocketAddr,
    /// Address of the receiver, by which a source names the acker under PGMCC; `None`: it takes no part in PGMCC.
    pub address: Option<IpAddr>,
    /// Address of the receiver and the prefix length of its subnet. Requests then go to a repairer that announces
    /// itself, unless the repairer is in this subnet (RFC 3208 §9.5). `None`: the receiver follows no redirection.
    pub subnet: Option<(IpAddr, u8)>,
    /// Data-destination port that is accepted; `None`: any.
    pub port: Option<u16>,
    /// UDP port of sources to which requests go; `None`: the source port of their SPMs.
    pub unicast_port: Option<u16>,
    /// Content that is accepted, and its order.
    pub delivering: Delivering,
    /// The receiver also multicasts its NAKs to its neighbours, with a TTL of 1.
    pub multicast_naks: bool,
    /// The receiver never sends anything.
    pub silent: bool,
    /// Time before the back-off in which a missing packet may still arrive out of order.
    pub reorder: Span,
    /// Interval over which requests are spread (`NAK_BO_IVL`), unless the source gives one.
    pub backoff: Span,
    /// Time for which a request waits for its confirmation (`NAK_RPT_IVL`).
    pub confirm: Span,
    /// The wait for a confirmation becomes longer where confirmations take longer. Otherwise `confirm` is fixed, as in RFC
    /// 3208.
    pub confirm_adapts: bool,
    /// Time for which a confirmed request waits for repair (`NAK_RDATA_IVL`).
    pub repair: Span,
    /// The most numbers that a request lists besides its first (`OPT_NAK_LIST`), at most 62; 0: one request for each
    /// number.
    pub listed: usize,
    /// Repetitions of a request that nobody confirms (`NAK_NCF_RETRIES`).
    pub confirm_retries: u32,
    /// Repetitions of a confirmed request whose repair does not come (`NAK_DATA_RETRIES`).
    pub repair_retries: u32,
    /// Interval over which requests for an SPM are spread (`SPMR_BO_IVL`).
    pub spmr_backoff: Span,
    /// Time between two requests for an SPM (`SPMR_SPM_IVL`).
    pub spmr: Span,
    /// Silence after which a source counts as gone.
    pub expiry: Span,
    /// The most sequence numbers by which pending messages may differ; data that is farther back counts as lost.
    pub window: u32,
    /// Size in octets of the largest file that is accepted.
    pub largest: u64,
    /// Size in octets of the largest message that is accepted.
    pub largest_message: u32,
    /// Octets of all messages that have begun and were not delivered, by their announced lengths; further messages are
    /// refused.
    pub message_memory: u64,
    /// Octets of parity kept for incomplete groups; beyond that, the receiver asks for segments instead of parity.
    pub parity_memory: u64,
    /// Seed of the random back-offs.
    pub seed: u64,
}

impl ReceiverConfig {
    /// Returns the default settings: files, and requests to the source port of SPMs.
    pub const fn new(node: NodeId, group: SocketAddr) -> Self {
        Self {
            node,
            group,
            address: None,
            subnet: None,
            port: None,
            unicast_port: None,
            delivering: Delivering::Files,
            multicast_naks: false,
            silent: false,
            reorder: Span::ZERO,
            backoff: Span::from_millis(50),
            confirm: Span::from_millis(800),
            confirm_adapts: false,
            repair: Span::from_secs(2),
            listed: MOST_LISTED,
            confirm_retries: 50,
            repair_retries: 50,
            spmr_backoff: Span::from_millis(250),
            spmr: Span::from_secs(2),
            expiry: Span::from_secs(60),
            window: 65_536,
            largest: 1 << 48,
            largest_message: 1 << 20,
            message_memory: 64 << 20,
            parity_memory: 64 << 20,
            seed: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("the back-off of requests", !self.backoff.is_zero()),
            ("the time until a request is confirmed", !self.confirm.is_zero()),
            ("the time until repair", !self.repair.is_zero()),
            ("the numbers that a request lists", self.listed <= MOST_LISTED),
            ("the time between requests for an SPM", !self.spmr.is_zero()),
            ("the time after which a source is gone", !self.expiry.is_zero()),
            ("the receive window", (1..1 << 30).contains(&self.window)),
        ];
        ranges.into_iter().find(|(_, right)| !right).map_or(Ok(()), |(what, _)| Err(ConfigError::Range(what)))
    }
}
