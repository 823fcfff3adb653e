//! Settings of a transfer that a user chooses, and the configuration that follows from them.
//!
//! [`Settings`] has everything that may be chosen, each with a default that is good where nothing is known. Values that
//! depend on the link, on the number of receivers and on their losses are computed in [`Settings::sender`], and nowhere
//! else. Therefore sending, prediction and simulation of a transfer use the same [`SenderConfig`].

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Probability, Span};
use farcast_delivery::RatePace;
use farcast_delivery::binomial::{at_most, power};
pub use farcast_delivery::{Parity, PathLimits};

mod declared;
mod forecast;

pub use declared::in_effect;

use crate::config::{Object, Pacing, SenderConfig};
use crate::message::{Fec, NodeId};
use crate::quantise::GroupSize;
use crate::timing::ROBUST;

/// Bounds on the sending time that a late wake-up may make up for at once. Between them it is the time of a burst at
/// the rate.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// Maximum octets of an IP packet on Ethernet.
const MTU: u32 = 1500;
/// Octets of a datagram of DATA besides the segment: common header, payload id, and transmission information.
const HEADERS: u32 = 32;
/// The same where symbols have 16 bits, whose transmission information is a word longer.
const WIDE_HEADERS: u32 = 36;
/// Maximum number of symbols of a block in the code over GF(2^8).
const SYMBOLS: u32 = 255;
/// Least loss to design blocks for, where less is expected.
const LEAST_LOSS: f64 = 0.1;
/// Greatest loss to prepare parity for.
const MOST_LOSS: f64 = 0.5;
/// Fraction of blocks for which the parity is to suffice.
const SUFFICES: f64 = 0.999;
/// Fraction of blocks that are to need no request, where the loss is known.
const UNASKED: f64 = 0.9;
/// Group size of RFC 5740 §5.1.1, for receivers where the number is not known.
const UNKNOWN_GROUP: u32 = 10_000;

/// Maximum number of receivers whose first requests any return carries.
const MANY: u32 = 1000;
/// Multiple of the announced group size that a crowd has at most, where its size was not told.
pub(crate) const UNTOLD: f64 = 10.0;
/// Octets of a request, with all headers.
pub(crate) const REQUEST: u64 = 96;
/// Number of first requests that a sender waits for.
pub(crate) const FIRST: u64 = 6;
/// Part of the return that the first requests may take in this time.
const FIRST_SHARE: f64 = 0.4;
const FIRST_TIME: Span = Span::from_secs(10);
/// Maximum number of GRTTs over which receivers spread their requests.
const MOST_BACKOFF: u8 = 15;
/// Number of first requests and their repairs that a transfer has time for, if it is long.
const LONG: u64 = 3;

/// Divisor of the rate that gives the default lower bound under congestion control.
const LEAST_PART: u64 = 1000;

/// Rate control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateControl {
    /// Fixed rate.
    Fixed,
    /// NORM-CC: the rate follows receivers' reports.
    NormCc,
}

/// Objects to send, with their sender and receivers.
#[derive(Clone, PartialEq, Debug)]
pub struct SendPlan {
    /// Node id of the sender.
    pub node: NodeId,
    /// Instance of the sender.
    pub instance: u16,
    /// Objects.
    pub objects: Vec<Object>,
    /// Source address.
    pub source: SocketAddr,
    /// Group, or the address of the one receiver.
    pub group: SocketAddr,
    /// Receivers that are to acknowledge.
    pub ackers: Vec<NodeId>,
}

/// Settings that a user may choose.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Rate, or its upper bound under congestion control.
    pub rate: BitRate,
    /// Rate control.
    pub control: RateControl,
    /// Lower bound of the rate under congestion control; `None` for a thousandth of `rate`.
    pub least_rate: Option<BitRate>,
    /// Octets of a segment; `None` for what fits a packet.
    pub segment_size: Option<u16>,
    /// Segments of a block; `None` for as many as the code has room for beside the parity.
    pub block_len: Option<u16>,
    /// Parity symbols that a block may have.
    pub parity: Parity<u16>,
    /// Parity symbols, among those of `parity`, that are sent with each block unasked. The automatic number follows
    /// from the expected loss.
    pub ahead: Parity<u16>,
    /// Fraction of the datagrams that a receiver is expected to lose.
    pub loss: Probability,
    /// Number of receivers, where it is not known from their names.
    pub receivers: Option<u32>,
    /// Round trip to assume until one is measured.
    pub round_trip: Span,
    /// Number of GRTTs over which receivers spread their requests; `None` for what suits their number.
    pub backoff: Option<u8>,
    /// `true` if receivers answer the sender alone instead of the group.
    pub unicast: bool,
    /// Robustness factor: number of repetitions of messages that must arrive.
    pub robust: u32,
    /// Rate of the return channel that all receivers share; `None` for a thirtieth of `rate`.
    pub return_rate: Option<BitRate>,
    /// Maximum octets that may leave together.
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
            least_rate: None,
            segment_size: None,
            block_len: None,
            parity: Parity::Auto,
            ahead: Parity::Auto,
            loss: Probability::ZERO,
            receivers: None,
            round_trip: Span::from_millis(500),
            backoff: None,
            unicast: false,
            robust: ROBUST,
            return_rate: None,
            burst: 64 << 10,
            time_limit: Span::from_secs(24 * 3600),
        }
    }

    /// Returns the configuration of a sender of `sent` over `way`.
    pub fn sender(&self, sent: SendPlan, way: PathLimits) -> SenderConfig {
        let mut config = SenderConfig::new(sent.node, 0, sent.source, sent.group, self.rate);
        let named = u32::try_from(sent.ackers.len()).unwrap_or(u32::MAX);
        let receivers = self.receivers.or((named > 0).then_some(named));
        // A unicast address has one receiver.
        let receivers = if sent.group.ip().is_multicast() { receivers } else { Some(1) };
        (config.instance, config.objects) = (sent.instance, sent.objects);
        self.code(&mut config, receivers.unwrap_or(1), way);
        let (least, most) = CREDIT;
        config.pace = RatePace {
            rate: self.rate,
            overhead: way.headers,
            credit: self.rate.time_of_bytes(self.burst).clamp(least, most),
            granule: way.granule,
        };
        config.pacing = match self.control {
            RateControl::Fixed => Pacing::Fixed,
            RateControl::NormCc => Pacing::NormCc { least: self.least_rate.unwrap_or_else(|| self.part()) },
        };
        config.grtt = self.round_trip;
        config.grtt_most = config.grtt_most.max(self.round_trip);
        config.backoff = self.backoff.unwrap_or_else(|| backoff(receivers));
        config.first_backoff = self.first_backoff(&config, receivers);
        config.receivers = GroupSize::of(receivers.unwrap_or(UNKNOWN_GROUP).max(1).into());
        config.unicast = self.unicast || !sent.group.ip().is_multicast();
        config.robust = self.robust;
        config.return_rate = self.return_rate;
        config.ackers = sent.ackers;
        config
    }

    /// Returns the number of GRTTs over which receivers spread their first requests, if these could otherwise fill the
    /// return, whose rate is known. A short transfer would wait for it at its end.
    fn first_backoff(&self, config: &SenderConfig, receivers: Option<u32>) -> Option<u8> {
        let (rate, None) = (self.return_rate?, self.backoff) else { return None };
        if receivers.is_some_and(|receivers| receivers <= MANY) {
            return None;
        }
        let backoff = first_backoff(rate, self.round_trip, receivers);
        let octets = config.objects.iter().map(|object| object.size).fold(0, u64::saturating_add);
        let long = self.round_trip * (u64::from(backoff) + 1) * (2 * LONG);
        (backoff > config.backoff && self.rate.time_of_bytes(octets) >= long).then_some(backoff)
    }

    /// Returns the default lower bound of the rate.
    fn part(&self) -> BitRate {
        BitRate::from_bps(self.rate.as_bps().div_ceil(LEAST_PART)).unwrap_or(self.rate)
    }

    /// Sets block length, parity, and parity that is sent unasked.
    ///
    /// Blocks that do not fit the code over GF(2^8) use the code over GF(2^16). The longer a block, the closer the loss
    /// of the unluckiest of many receivers is to the mean. At 5 %, one of 1,000 receivers loses a ninth of a block of
    /// 200 segments, and a twelfth of one of 700. But a block is rebuilt only when all of it is there, and its
    /// rebuilding takes time that grows with its square. NRL's library is too slow for such blocks, so only users that
    /// ask for them get them.
    fn code(&self, config: &mut SenderConfig, receivers: u32, way: PathLimits) {
        let loss = self.loss.get();
        let reckoned = (loss * 1.5).clamp(LEAST_LOSS, MOST_LOSS);
        let enough = || sufficient(SYMBOLS, reckoned, 1, SUFFICES);
        let parity = match (self.parity, self.block_len) {
            (Parity::Symbols(symbols), _) => symbols.into(),
            (Parity::Auto, None) => enough(),
            (Parity::Auto, Some(block)) if u32::from(block) >= SYMBOLS => {
                // Parity makes up for losses of the block and of the parity itself.
                let mean = f64::from(block) * reckoned / (1.0 - reckoned);
                (mean + 4.0 * libm::sqrt(mean)) as u32
            }
            (Parity::Auto, Some(block)) => {
                let share = u64::from(enough()) * u64::from(block) / u64::from(SYMBOLS - enough());
                u32::try_from(share).unwrap_or(SYMBOLS).max(1).min(SYMBOLS.saturating_sub(block.into()))
            }
        };
        let room = SYMBOLS.saturating_sub(parity).max(1);
        config.parity = u16::try_from(parity).unwrap_or(u16::MAX);
        config.block_len = self.block_len.unwrap_or(room.try_into().unwrap_or(1));
        let is_wide = u32::from(config.block_len) + u32::from(config.parity) > SYMBOLS;
        let (fec, headers) =
            if is_wide { (Fec::ReedSolomon(16), WIDE_HEADERS) } else { (Fec::ReedSolomon8, HEADERS) };
        config.fec = fec;
        config.segment_size = self.segment_size.unwrap_or_else(|| segment_size(way, headers));
        config.auto_parity = match self.ahead {
            Parity::Symbols(symbols) => symbols,
            Parity::Auto => {
                let most = config.parity.into();
                let needed = ahead(config.block_len.into(), most, loss, receivers);
                needed.try_into().unwrap_or(config.parity)
            }
        };
    }
}

/// Returns the octets of a segment that fits `way` with all headers: an even number, as symbols of 16 bits need it.
fn segment_size(way: PathLimits, headers: u32) -> u16 {
    let room = way.mtu.unwrap_or(MTU).min(MTU).saturating_sub(u32::from(way.headers) + headers);
    u16::try_from(room & !1).unwrap_or(u16::MAX).max(4)
}

/// Returns the number of GRTTs over which receivers spread their requests. A few receivers may all ask without harm.
/// Each round trip of waiting delays the last of them three times as long, because the sender also gathers requests
/// that long. RFC 5740 §5.3 has 4 for groups of any size.
fn backoff(receivers: Option<u32>) -> u8 {
    match receivers {
        Some(0..=32) => 0,
        Some(33..=64) => 1,
        Some(65..=1000) => 2,
        _ => 4,
    }
}

/// Returns the number of GRTTs over which `receivers` spread their requests, so that a return of `rate` carries those
/// that leave before the sender has answered the first ones.
fn first_backoff(rate: BitRate, round_trip: Span, receivers: Option<u32>) -> u8 {
    let each = rate.time_of_bytes(REQUEST);
    let carried = FIRST_TIME.as_secs_f64() / each.as_secs_f64() * FIRST_SHARE;
    let lambda = libm::log(f64::from(receivers.unwrap_or(UNKNOWN_GROUP))) + 1.0;
    // The distribution of waits (RFC 5401 §3.2.2), where the group may be larger than it is said to be.
    let more = if receivers.is_some() { 1.0 } else { UNTOLD };
    let growth = libm::log(carried / more) + 1.0;
    let answer = (round_trip + each * FIRST).as_secs_f64();
    let factor = lambda * answer / (growth.max(0.1) * round_trip.as_secs_f64());
    (libm::ceil(factor) as u8).min(MOST_BACKOFF)
}

/// Returns the fewest of `symbols` symbols that cover the losses of each of `receivers` with probability `share`.
fn sufficient(symbols: u32, loss: f64, receivers: u32, share: f64) -> u32 {
    (0..symbols).find(|&lost| power(at_most(symbols, loss, lost), receivers) >= share).unwrap_or(symbols)
}

/// Returns the parity symbols to send with each block of `block` segments, such that nine blocks of ten need no
/// request. Requests take round trips, and more parity is seldom needed.
fn ahead(block: u32, most: u32, loss: f64, receivers: u32) -> u32 {
    if loss <= 0.0 {
        return 0;
    }
    let suffices = |&parity: &u32| power(at_most(block + parity, loss, parity), receivers.max(1)) >= UNASKED;
    (0..most).find(suffices).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_blocks_have_the_wide_code() {
        let settings = |block, loss| {
            let mut settings = Settings::new(BitRate::from_bps(1_000_000).expect("positive"));
            (settings.block_len, settings.loss) = (block, Probability::new(loss).expect("a probability"));
            let mut config = SenderConfig::new(
                NodeId(1),
                1_000_000,
                "10.0.0.1:6003".parse().expect("address"),
                "239.0.0.1:6003".parse().expect("address"),
                settings.rate,
            );
            settings.code(&mut config, 1000, PathLimits { headers: 28, mtu: None, granule: 1 });
            (config.fec, config.block_len, config.parity, config.auto_parity)
        };
        assert_eq!(settings(None, 0.05).0, Fec::ReedSolomon8);
        assert_eq!(settings(Some(200), 0.05).0, Fec::ReedSolomon8);
        let (fec, block, parity, ahead) = settings(Some(715), 0.05);
        assert_eq!((fec, block), (Fec::ReedSolomon(16), 715));
        // Losses of 1,000 receivers of 760 symbols: 38 in the mean, plus a little more than three deviations.
        assert!((50..65).contains(&ahead) && parity > ahead, "{ahead} of {parity}");
    }

    #[test]
    fn parity_ahead_follows_what_is_lost_and_how_many_receive() {
        let symbols = |loss, receivers| ahead(200, 55, loss, receivers);
        assert_eq!(symbols(0.0, 1000), 0);
        // One receiver loses at most 15 of 215 symbols in 9 cases of 10, and at most 14 of 214 less often.
        assert_eq!(symbols(0.05, 1), 15);
        let many = [1, 10, 100, 1000].map(|receivers| symbols(0.05, receivers));
        assert!(many.is_sorted() && many[3] < 30, "{many:?}");
        assert_eq!(symbols(0.5, 1000), 55, "no more than there is");
    }

    #[test]
    fn over_a_thin_return_first_requests_take_their_time() {
        let rate = |bps| BitRate::from_bps(bps).expect("positive");
        let mut settings = Settings::new(rate(1_900_000));
        let first = |settings: &Settings, size| {
            let object = Object { kind: crate::config::Kind::File, size, info: Vec::new(), vouched: None };
            let sent = SendPlan {
                node: NodeId(1),
                instance: 1,
                objects: alloc::vec![object],
                source: SocketAddr::from(([192, 0, 2, 1], 1)),
                group: SocketAddr::from(([239, 1, 2, 3], 6003)),
                ackers: Vec::new(),
            };
            let config = settings.sender(sent, PathLimits { headers: 28, mtu: None, granule: 1 });
            (config.backoff, config.first_backoff)
        };
        assert_eq!(first(&settings, 10_000_000), (4, None), "the return's rate is not known");
        settings.return_rate = Some(rate(64_000));
        assert_eq!(first(&settings, 10_000_000), (4, None), "it carries them as they come");
        settings.return_rate = Some(rate(9_600));
        assert_eq!(first(&settings, 10_000_000), (4, Some(8)));
        assert_eq!(first(&settings, 1_000_000), (4, None), "the transfer ends before");
        settings.receivers = Some(10_000);
        assert_eq!(first(&settings, 10_000_000), (4, Some(5)), "they are no more than was said");
        settings.receivers = Some(1000);
        assert_eq!(first(&settings, 10_000_000), (2, None));
        (settings.receivers, settings.backoff) = (None, Some(4));
        assert_eq!(first(&settings, 10_000_000), (4, None), "the user has chosen");
        settings.backoff = None;
        settings.return_rate = Some(rate(300));
        assert_eq!(first(&settings, 100_000_000), (4, Some(15)), "no more than there is room for");
    }

    #[test]
    fn under_congestion_control_the_rate_is_the_most() {
        let rate = |bps| BitRate::from_bps(bps).expect("positive");
        let pacing = |settings: &Settings| {
            let sent = SendPlan {
                node: NodeId(1),
                instance: 1,
                objects: Vec::new(),
                source: SocketAddr::from(([192, 0, 2, 1], 1)),
                group: SocketAddr::from(([239, 1, 2, 3], 6003)),
                ackers: Vec::new(),
            };
            let config = settings.sender(sent, PathLimits { headers: 28, mtu: None, granule: 1 });
            assert_eq!(config.pace.rate, settings.rate);
            config.pacing
        };
        let mut settings = Settings::new(rate(20_000_000));
        assert_eq!(pacing(&settings), Pacing::Fixed);
        settings.control = RateControl::NormCc;
        assert_eq!(pacing(&settings), Pacing::NormCc { least: rate(20_000) });
        settings.least_rate = Some(rate(64_000));
        assert_eq!(pacing(&settings), Pacing::NormCc { least: rate(64_000) });
    }
}
