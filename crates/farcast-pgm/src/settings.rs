//! What a user chooses of a transfer, and what follows from it: the same for every face.
//!
//! RFC 3208 gives no values for a receiver's timers and has each side choose its own. Here all follow from the round trip
//! that either side is told to expect, but the back-off, which the source knows best how to choose, as it may know how
//! many receive: it says it in its SPMs (`OPT_NAK_BO_IVL`).

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::RatePace;

use crate::cc::CcConfig;
use crate::config::{Advance, Grouping, ReceiverConfig, SenderConfig, Sending};
use crate::message::{NodeId, Tsi};
use crate::stream;

/// How much sending time a late wake-up may make up for at once: what the burst takes at the rate, within these bounds.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// Ethernet's.
const MTU: u32 = 1500;
/// Octets of the header before a segment; the option of PGMCC besides.
const HEADER: u32 = 24;
const CC_OPTIONS: u32 = 20;
/// Of parity: which part of it, and how many data packets a short group has.
const PARITY_OPTIONS: u32 = 20;
/// Data packets of a group where nobody says how many.
pub const GROUP: u32 = 16;
/// The back-off of a few receivers, who may all ask without harm.
const SHORTEST: Span = Span::from_millis(50);
/// The group that is reckoned with where nobody says how many there are.
const UNKNOWN_GROUP: u32 = 64;
/// The round trip that is reckoned with: a satellite's.
pub const ROUND_TRIP: Span = Span::from_millis(500);
/// What is kept of a stream, in octets, where it is not said; and in TPDUs at most: receivers wait for what is no farther
/// apart.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
const SQNS: (u64, u64) = (8, 1 << 16);
/// How long a source stays at least while it hears nothing.
const LINGER: Span = Span::from_secs(20);

/// What decides the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateControl {
    /// It is as fast as it may be.
    Fixed,
    /// What the receiver that fares worst acknowledges: PGMCC.
    Pgmcc,
}

/// What the way to receivers is like, as far as a source knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Octets of IP and UDP headers.
    pub headers: u16,
    /// Octets of IP packets that pass unfragmented; `None` for Ethernet's 1500.
    pub mtu: Option<u32>,
    /// Octets that the link sends as one ([`RatePace`]).
    pub granule: u16,
}

/// What is sent, and by whom to whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Which session it is.
    pub tsi: Tsi,
    /// What.
    pub sending: Sending,
    /// Where it comes from.
    pub source: SocketAddr,
    /// The group, or the one receiver.
    pub group: SocketAddr,
    /// Who is to acknowledge.
    pub named: Vec<NodeId>,
}

/// What may be chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How fast, at most.
    pub rate: BitRate,
    /// What decides how fast.
    pub control: RateControl,
    /// Octets of a segment; `None` for what fits the way.
    pub segment_size: Option<u16>,
    /// How many receive, where it is not known by their names.
    pub receivers: Option<u32>,
    /// The round trip to expect.
    pub round_trip: Span,
    /// Over how long receivers spread their requests; `None` for what suits their number.
    pub backoff: Option<Span>,
    /// After everything was sent: how long the source stays while it hears nothing; `None` for what suits the round
    /// trip, 20 s at least.
    pub linger: Option<Span>,
    /// Parity; OpenPGM aborts when it hears of any.
    pub parity: Option<Grouping>,
    /// Octets that may leave together, at most.
    pub burst: u64,
    /// The transfer is aborted after this long.
    pub time_limit: Span,
}

impl Settings {
    /// The defaults, at `rate`.
    pub const fn new(rate: BitRate) -> Self {
        Self {
            rate,
            control: RateControl::Fixed,
            segment_size: None,
            receivers: None,
            round_trip: ROUND_TRIP,
            backoff: None,
            linger: None,
            parity: None,
            burst: 64 << 10,
            time_limit: Span::from_secs(24 * 3600),
        }
    }

    /// The configuration of a source of `sent` over `way`.
    pub fn sender(&self, sent: Sent, way: Way) -> SenderConfig {
        let Sent { tsi, sending, source, group, named } = sent;
        let count = u32::try_from(named.len()).unwrap_or(u32::MAX);
        let receivers = self.receivers.or((count > 0).then_some(count));
        // To one address there is one receiver.
        let receivers = if group.ip().is_multicast() { receivers.unwrap_or(UNKNOWN_GROUP) } else { 1 };
        let backoff = self.backoff.unwrap_or_else(|| backoff(receivers, self.round_trip));
        let base = SenderConfig::new(tsi, sending, source, group, self.rate);
        let (least, most) = CREDIT;
        SenderConfig {
            tsdu: self.segment_size.unwrap_or_else(|| self.segment(way)),
            pace: RatePace {
                rate: self.rate,
                overhead: way.headers,
                credit: self.rate.time_of_bytes(self.burst).clamp(least, most),
                granule: way.granule,
            },
            // Who has not heard of a repair yet asks again no sooner.
            holdoff: self.round_trip,
            heads_twice: true,
            backoff: Some(backoff),
            linger: self.linger.unwrap_or_else(|| LINGER.max((backoff + repair(self.round_trip)) * 4)),
            cc: (self.control == RateControl::Pgmcc).then(CcConfig::default),
            parity: self.parity,
            named,
            ..base
        }
    }

    /// The configuration of a source of a stream, of which `kept` octets are kept for repair; `None`: what leaves while
    /// receivers ask three times, 1 MiB to 64 MiB.
    pub fn stream(&self, sent: Sent, way: Way, kept: Option<u64>) -> SenderConfig {
        let base = self.sender(sent, way);
        // Who has lost a repair asks again after so long.
        let hold = base.backoff.unwrap_or_default() + repair(self.round_trip) + self.round_trip;
        let leaves = u128::from((hold * 3).as_nanos()) * u128::from(self.rate.as_bps()) / 8_000_000_000;
        let leaves = u64::try_from(leaves).unwrap_or(u64::MAX).clamp(KEPT.0, KEPT.1);
        let sqns = (kept.unwrap_or(leaves) / u64::from(base.tsdu)).clamp(SQNS.0, SQNS.1) as u32;
        SenderConfig {
            advance: Advance::Data { sqns, hold },
            backlog: stream::BACKLOG as usize,
            joins: true,
            ..base
        }
    }

    fn segment(&self, way: Way) -> u16 {
        let cc = if self.control == RateControl::Pgmcc { CC_OPTIONS } else { 0 };
        let parity = self.parity.map_or(0, |_| PARITY_OPTIONS);
        let headers = u32::from(way.headers) + HEADER + cc + parity;
        let room = way.mtu.unwrap_or(MTU).min(MTU).saturating_sub(headers);
        u16::try_from(room).unwrap_or(u16::MAX).max(64)
    }
}

/// Until repair comes that was confirmed: what is repaired before it leaves first.
fn repair(round_trip: Span) -> Span {
    round_trip * 4
}

/// Over how long so many receivers spread what they ask for: what one asks for others hear as the source's confirmation,
/// a round trip later.
fn backoff(receivers: u32, round_trip: Span) -> Span {
    match receivers {
        0..=32 => SHORTEST.min(round_trip),
        33..=64 => round_trip,
        65..=1000 => round_trip * 2,
        _ => round_trip * 4,
    }
}

/// Parity of groups of `size`, where any is wanted.
pub fn grouping(size: Option<u32>, ahead: u32, on_demand: bool) -> Option<Grouping> {
    let wanted = ahead > 0 || on_demand;
    wanted.then(|| Grouping { size: size.unwrap_or(GROUP), ahead, on_demand })
}

/// The configuration of a receiver of files over ways with this round trip.
pub fn receiver(node: NodeId, group: SocketAddr, round_trip: Span) -> ReceiverConfig {
    let base = ReceiverConfig::new(node, group);
    ReceiverConfig {
        // Longer than the source passes over requests for the same.
        confirm: round_trip * 8 / 5,
        repair: repair(round_trip),
        // A source that speaks has not gone: nothing is given up that may come.
        confirm_retries: u32::MAX,
        repair_retries: u32::MAX,
        ..base
    }
}
