//! Choices of a user for a transfer, and the configurations that follow from them; the same for every front end.
//!
//! RFC 3208 gives no values for a receiver's timers and lets each side choose its own. Here all follow from the round
//! trip that either side is told to expect, except the back-off. The source knows best how many receivers there are, so
//! it chooses the back-off and announces it in its SPMs (`OPT_NAK_BO_IVL`).

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
pub use farcast_delivery::PathLimits;
use farcast_delivery::RatePace;

mod declared;
mod forecast;

pub use declared::in_effect;

use crate::cc::CcConfig;
use crate::config::{Advance, Grouping, ReceiverConfig, SenderConfig, Sending};
use crate::message::{NodeId, Tsi};
use crate::stream;

/// Bounds of the sending time that a late wake-up may make up for at once; between them it is the time that a burst
/// takes.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// MTU of Ethernet, in octets.
const MTU: u32 = 1500;
/// Octets of the PGM header before a segment; [`CC_OPTIONS`] are those of the option of PGMCC.
const HEADER: u32 = 24;
const CC_OPTIONS: u32 = 20;
/// Octets of the options of parity: its part, and the number of data packets in a short group.
const PARITY_OPTIONS: u32 = 20;
/// Data packets of a group, where the user gives no number.
pub const GROUP: u32 = 16;
/// Back-off of up to 32 receivers, which may all ask at once without harm.
const SHORTEST: Span = Span::from_millis(50);
/// Assumed number of receivers of a group, where the user gives none.
const UNKNOWN_GROUP: u32 = 64;
/// Assumed round trip: that of a satellite link.
pub const ROUND_TRIP: Span = Span::from_millis(500);
/// Bounds of the part of a stream that is kept for repair: in octets where the user gives no number, and in TPDUs
/// ([`SQNS`]), since receivers wait for no data that is farther apart.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
const SQNS: (u64, u64) = (8, 1 << 16);
/// The shortest time for which a source stays without hearing anything.
const LINGER: Span = Span::from_secs(20);

/// Control of the sending rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateControl {
    /// The source sends at the rate that the user gives.
    Fixed,
    /// PGMCC: the acknowledgements of the receiver that fares worst control the rate.
    Pgmcc,
}

/// Content that is sent, with its session and addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendPlan {
    /// Session of the source.
    pub tsi: Tsi,
    /// The content.
    pub sending: Sending,
    /// Address from which the source sends.
    pub source: SocketAddr,
    /// Address of the group, or of the single receiver.
    pub group: SocketAddr,
    /// Receivers that are to acknowledge.
    pub named: Vec<NodeId>,
}

/// Settings that a user chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Maximum rate.
    pub rate: BitRate,
    /// Control of the rate.
    pub control: RateControl,
    /// Octets of a segment; `None` for the largest that fits the path.
    pub segment_size: Option<u16>,
    /// Number of receivers, where it does not follow from their names.
    pub receivers: Option<u32>,
    /// Expected round trip.
    pub round_trip: Span,
    /// Interval over which receivers spread their requests; `None` for one that suits their number.
    pub backoff: Option<Span>,
    /// Time for which the source stays after the last data while it hears nothing. `None` for a time that suits the
    /// round trip, at least 20 s.
    pub linger: Option<Span>,
    /// Parity; OpenPGM aborts when it receives any.
    pub parity: Option<Grouping>,
    /// The most octets that may leave in one burst.
    pub burst: u64,
    /// Time after which the transfer is aborted.
    pub time_limit: Span,
}

impl Settings {
    /// Returns the defaults, at `rate`.
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

    /// Returns the configuration of a source of `sent` over `way`.
    pub fn sender(&self, sent: SendPlan, way: PathLimits) -> SenderConfig {
        let SendPlan { tsi, sending, source, group, named } = sent;
        let count = u32::try_from(named.len()).unwrap_or(u32::MAX);
        let receivers = self.receivers.or((count > 0).then_some(count));
        // A unicast address has one receiver.
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
            // A receiver that has not heard of a repair yet repeats its request no sooner than this.
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

    /// Returns the configuration of a source of a stream that keeps `kept` octets for repair. `None` keeps the octets
    /// that leave while receivers ask three times, 1 MiB to 64 MiB.
    pub fn stream(&self, sent: SendPlan, way: PathLimits, kept: Option<u64>) -> SenderConfig {
        let base = self.sender(sent, way);
        // A receiver that has lost a repair repeats its request within this time.
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

    fn segment(&self, way: PathLimits) -> u16 {
        let cc = if self.control == RateControl::Pgmcc { CC_OPTIONS } else { 0 };
        let parity = self.parity.map_or(0, |_| PARITY_OPTIONS);
        let headers = u32::from(way.headers) + HEADER + cc + parity;
        let room = way.mtu.unwrap_or(MTU).min(MTU).saturating_sub(headers);
        u16::try_from(room).unwrap_or(u16::MAX).max(64)
    }
}

/// Returns the longest wait for a confirmed repair, since other repairs may leave before it.
fn repair(round_trip: Span) -> Span {
    round_trip * 4
}

/// Returns the interval over which so many receivers spread their requests. The others hear a receiver's request as the
/// source's confirmation, a round trip later.
fn backoff(receivers: u32, round_trip: Span) -> Span {
    match receivers {
        0..=32 => SHORTEST.min(round_trip),
        33..=64 => round_trip,
        65..=1000 => round_trip * 2,
        _ => round_trip * 4,
    }
}

/// Returns parity for groups of `size` data packets; `None` if no parity is wanted.
pub fn grouping(size: Option<u32>, ahead: u32, on_demand: bool) -> Option<Grouping> {
    let wanted = ahead > 0 || on_demand;
    wanted.then(|| Grouping { size: size.unwrap_or(GROUP), ahead, on_demand })
}

/// Returns the configuration of a receiver of files over paths with this round trip.
pub fn receiver(node: NodeId, group: SocketAddr, round_trip: Span) -> ReceiverConfig {
    let base = ReceiverConfig::new(node, group);
    ReceiverConfig {
        // Longer than the source ignores repeated requests (its holdoff, one round trip).
        confirm: round_trip * 8 / 5,
        confirm_adapts: true,
        repair: repair(round_trip),
        // A source that is heard has not gone, so the receiver gives up nothing that may still come.
        confirm_retries: u32::MAX,
        repair_retries: u32::MAX,
        ..base
    }
}
