//! Settings of the two engines, checked when an engine is made. RFC 3208 gives no values but `SPMR_BO_IVL`; the
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
    /// Octets of it.
    pub size: u64,
    /// What it is called.
    pub name: Vec<u8>,
    /// What receivers are told besides.
    pub vouched: Option<Vouched>,
}

/// What a source sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sending {
    /// These files, each behind a TSDU that says what it is.
    Files(Vec<Object>),
    /// Whatever its owner gives it, a message after the other.
    Messages,
}

/// Files that come into being while they are sent, octet by octet at a steady rate: what a source of constant bit rate
/// sends. What the window or the pace does not let leave yet waits. There is no parity of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// The rate of their octets; headers do not count.
    pub rate: BitRate,
    /// From the opening to the first segment, which is there whole.
    pub start: Span,
}

/// How the transmit window advances (RFC 3208 §16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advance {
    /// It does not: everything can be repaired until the end. For files.
    Never,
    /// With data: the last so many numbers are kept, and nothing new is sent while the oldest eighth of them was asked
    /// for within this time (`TXW_SQNS`, `TXW_ADV_IVL`), but for no longer than the source would stay in the end.
    Data {
        /// How many.
        sqns: u32,
        /// How long a request keeps what it asks for.
        hold: Span,
    },
    /// With time: what was sent longer ago is gone (`TXW_SECS`).
    Time(Span),
}

/// The most data packets of a transmission group that parity is made of here: parity for all of them then has numbers
/// among the code's 255.
pub const MOST_GROUP: u32 = 64;

/// Parity packets that a group of `size` can have: the others of the code's 255 (GF(2^8)).
pub(crate) const fn parity_of(size: u32) -> u32 {
    255 - size
}

/// Whether `size` data packets can be a transmission group.
pub(crate) const fn is_group(size: u32) -> bool {
    size.is_power_of_two() && size >= 2 && size <= MOST_GROUP
}

/// Parity of transmission groups (RFC 3208 §11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grouping {
    /// Data packets of a group, a power of two of 2 to [`MOST_GROUP`] (`TGSIZE`).
    pub size: u32,
    /// Parity packets that leave behind each group, unasked: as many as a group has data at most.
    pub ahead: u32,
    /// Whether receivers may ask for parity by counts.
    pub on_demand: bool,
}

/// How a source sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Which session it is.
    pub tsi: Tsi,
    /// The data-destination port, which is no port of UDP.
    pub port: u16,
    /// Where what it says comes from; requests for repair go to this address.
    pub source: SocketAddr,
    /// The group that it sends to.
    pub group: SocketAddr,
    /// What it sends.
    pub sending: Sending,
    /// Whether its files come into being while they are sent; `None`: they are there.
    pub live: Option<Live>,
    /// The most octets of a TSDU: of a file's segment, or of a message that is not cut.
    pub tsdu: u16,
    /// How fast, SPMs, NCFs and repairs included (`TXW_MAX_RTE`).
    pub pace: RatePace,
    /// How its window advances.
    pub advance: Advance,
    /// The first number.
    pub first: Sqn,
    /// SPMs before anything else.
    pub opening: u32,
    /// From one ambient SPM to the next.
    pub ambient: Span,
    /// From the last data to the first heartbeat SPM (`IHB_MIN`).
    pub heartbeat: Span,
    /// The longest time between heartbeats, each of which comes after twice the time before (`IHB_MAX`).
    pub heartbeat_most: Span,
    /// Whether what says of a file of many segments what it is leaves twice: without it, none of these can be kept.
    pub heads_twice: bool,
    /// Over how long receivers are to spread their requests, which its SPMs say (`NAK_BO_IVL`); `None`: that is theirs.
    pub backoff: Option<Span>,
    /// How long requests are gathered before repair.
    pub gather: Span,
    /// For how long what was repaired is not repaired again.
    pub holdoff: Span,
    /// After everything was sent: how long it stays while nothing is asked for and nobody answers.
    pub linger: Span,
    /// Messages that wait to be sent, at most.
    pub backlog: usize,
    /// Whether who comes late may ask for all messages from the first, while that can be repaired (`OPT_JOIN`); of files
    /// everybody may.
    pub joins: bool,
    /// Whether SPMs, NCFs and repairs bear IP's router alert, as RFC 3208 has it.
    pub router_alert: bool,
    /// Congestion control by PGMCC: then data leave as the acker's acknowledgements let them, and no faster than
    /// `pace`.
    pub cc: Option<CcConfig>,
    /// Parity, of files only, and without congestion control: OpenPGM aborts when it hears of any.
    pub parity: Option<Grouping>,
    /// Who must have everything before the source says that it is delivered, and of messages before its window lets go
    /// of it; nobody: it cannot know.
    pub named: Vec<NodeId>,
}

impl SenderConfig {
    /// As usual, at `rate`: TSDUs of 1,400 octets.
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

    /// How its files are cut, if everything can be as it is asked for.
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

/// How a file of `size` octets is cut: into transmission groups of so many, or one block.
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

/// What a receiver makes of what comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivering {
    /// Files of farcast's; all else is passed over.
    Files,
    /// Messages (APDUs), in the order in which they were sent.
    Ordered,
    /// Messages as soon as they are whole.
    Unordered,
    /// Messages in order, from where their source says that they begin: until then, nothing is taken of them.
    Stream,
}

/// How a receiver receives.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Who it is, among those whom a source asks for acknowledgement.
    pub node: NodeId,
    /// The group that it listens to.
    pub group: SocketAddr,
    /// Its own address, by which a source names who acknowledges under PGMCC; `None`: it takes no part in that.
    pub address: Option<IpAddr>,
    /// Its own address and how many bits of it are the subnet's: then requests go to a repairer that says it is there,
    /// unless that is of this subnet (RFC 3208 §9.5); `None`: it follows no redirection.
    pub subnet: Option<(IpAddr, u8)>,
    /// The data-destination port; `None`: any.
    pub port: Option<u16>,
    /// The UDP port of sources to which requests go; `None`: the one that SPMs come from.
    pub unicast_port: Option<u16>,
    /// What it makes of what comes.
    pub delivering: Delivering,
    /// Whether it says what it lacks to its neighbours, too, with a TTL of 1.
    pub multicast_naks: bool,
    /// Whether it never says anything.
    pub silent: bool,
    /// How long it waits for what may only have been overtaken, before the back-off.
    pub reorder: Span,
    /// Over how long its requests are spread (`NAK_BO_IVL`), unless the source says otherwise.
    pub backoff: Span,
    /// How long it waits for a request to be confirmed (`NAK_RPT_IVL`).
    pub confirm: Span,
    /// How long it then waits for repair (`NAK_RDATA_IVL`).
    pub repair: Span,
    /// The most numbers that a request lists besides its first (`OPT_NAK_LIST`), 62 at most; 0: each has its own.
    pub listed: usize,
    /// How often it asks again for what nobody confirms (`NAK_NCF_RETRIES`).
    pub confirm_retries: u32,
    /// How often it asks again for what does not come (`NAK_DATA_RETRIES`).
    pub repair_retries: u32,
    /// Over how long requests for an SPM are spread (`SPMR_BO_IVL`).
    pub spmr_backoff: Span,
    /// From one of them to the next (`SPMR_SPM_IVL`).
    pub spmr: Span,
    /// After how long a source is gone that says nothing.
    pub expiry: Span,
    /// The most numbers that messages may be apart that wait for each other; older ones are then lost.
    pub window: u32,
    /// Octets of the largest file that it takes.
    pub largest: u64,
    /// Octets of the largest message.
    pub largest_message: u32,
    /// Octets of messages that have begun and were not delivered, as they say themselves: more are not taken.
    pub message_memory: u64,
    /// Octets of parity that are kept for groups that still lack some; beyond, segments are asked for themselves.
    pub parity_memory: u64,
    /// The seed of its waits.
    pub seed: u64,
}

impl ReceiverConfig {
    /// As usual: files, and requests to the port that SPMs come from.
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
