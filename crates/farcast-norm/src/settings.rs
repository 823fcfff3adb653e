//! What a user chooses of a transfer, and what follows from it: the same for every face.
//!
//! [`Settings`] has what may be chosen, each with a default that is good where nothing is known. What depends on the
//! link, on how many receive, and on what they lose is computed from these in [`Settings::sender`], and nowhere else:
//! whoever sends, predicts or simulates a transfer arrives at the same [`SenderConfig`].

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Probability, Span};
use farcast_delivery::RatePace;

use crate::config::{Object, SenderConfig};
use crate::message::{Fec, NodeId};
use crate::quantise::GroupSize;
use crate::timing::ROBUST;

/// How much sending time a late wake-up may make up for at once: what the burst takes at the rate, within these bounds.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// Ethernet's.
const MTU: u32 = 1500;
/// Octets of a datagram of DATA besides the segment: common header, payload id, and how the object is cut.
const HEADERS: u32 = 32;
/// Where symbols have 16 bits, it takes a word more to say how the object is cut.
const WIDE_HEADERS: u32 = 36;
/// Symbols of a block that the code over GF(2^8) has room for.
const SYMBOLS: u32 = 255;
/// The loss for which blocks are cut where less is expected.
const LEAST_LOSS: f64 = 0.1;
/// The loss beyond which no parity is made ready.
const MOST_LOSS: f64 = 0.5;
/// Of how many blocks the parity is to suffice.
const SUFFICES: f64 = 0.999;
/// What part of blocks is to need no request where what is lost is known.
const UNASKED: f64 = 0.9;
/// The group that RFC 5740 §5.1.1 has receivers reckon with where nobody says how many there are.
const UNKNOWN_GROUP: u32 = 10_000;

/// Parity symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parity {
    /// As many as suit.
    Auto,
    /// So many.
    Symbols(u16),
}

/// What the way to receivers is like, as far as a sender knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Octets of IP and UDP headers: 28 or 48.
    pub headers: u16,
    /// Octets of IP packets that pass unfragmented; `None` for Ethernet's 1500.
    pub mtu: Option<u32>,
    /// Octets that the link sends as one ([`RatePace`]).
    pub granule: u16,
}

/// What is sent, and by whom to whom.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    /// Who sends.
    pub node: NodeId,
    /// The instance of the sender.
    pub instance: u16,
    /// The objects.
    pub objects: Vec<Object>,
    /// Where it comes from.
    pub source: SocketAddr,
    /// The group, or the one receiver.
    pub group: SocketAddr,
    /// Who is to acknowledge.
    pub ackers: Vec<NodeId>,
}

/// What may be chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How fast.
    pub rate: BitRate,
    /// Octets of a segment; `None` for what fits the way.
    pub segment_size: Option<u16>,
    /// Segments of a block; `None` for as many as the code has room for beside the parity.
    pub block_len: Option<u16>,
    /// Parity symbols that a block may have.
    pub parity: Parity,
    /// Of these, how many are sent with each block, unasked: as many as what is expected to be lost asks for, or so
    /// many.
    pub ahead: Parity,
    /// What part of the datagrams a receiver is expected to lose.
    pub loss: Probability,
    /// How many receive, where it is not known by their names.
    pub receivers: Option<u32>,
    /// The round trip to assume until one is measured.
    pub round_trip: Span,
    /// How many greatest round trips receivers spread their requests over; `None` for what suits their number.
    pub backoff: Option<u8>,
    /// Whether receivers answer the sender alone instead of the group.
    pub unicast: bool,
    /// How often what must arrive is said.
    pub robust: u32,
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
            burst: 64 << 10,
            time_limit: Span::from_secs(24 * 3600),
        }
    }

    /// The configuration of a sender of `sent` over `way`.
    pub fn sender(&self, sent: Sent, way: Way) -> SenderConfig {
        let mut config = SenderConfig::new(sent.node, 0, sent.source, sent.group, self.rate);
        let named = u32::try_from(sent.ackers.len()).unwrap_or(u32::MAX);
        let receivers = self.receivers.or((named > 0).then_some(named));
        // To one address there is one receiver.
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
        config.grtt = self.round_trip;
        config.grtt_most = config.grtt_most.max(self.round_trip);
        config.backoff = self.backoff.unwrap_or_else(|| backoff(receivers));
        config.receivers = GroupSize::of(receivers.unwrap_or(UNKNOWN_GROUP).max(1).into());
        config.unicast = self.unicast || !sent.group.ip().is_multicast();
        config.robust = self.robust;
        config.ackers = sent.ackers;
        config
    }

    /// How much of a block is parity, and how much of that is sent unasked.
    fn code(&self, config: &mut SenderConfig, receivers: u32, way: Way) {
        let loss = self.loss.get();
        // Of longer blocks the receiver that lost most lost less in proportion: with 5 % lost at 16 receivers, a
        // twelfth of 212 segments has to be repaired, and a fourteenth of 500. But NRL's library does not keep up with
        // codes over GF(2^16), so they are for who asks for them.
        let long = self.block_len.map(u32::from).filter(|&block| block >= SYMBOLS);
        let (fec, symbols, headers) = match long {
            Some(block) => (Fec::ReedSolomon(16), block + block / 5, WIDE_HEADERS),
            None => (Fec::ReedSolomon8, SYMBOLS, HEADERS),
        };
        config.fec = fec;
        config.segment_size = self.segment_size.unwrap_or_else(|| segment_size(way, headers));
        let enough = || sufficient(symbols, (loss * 1.5).clamp(LEAST_LOSS, MOST_LOSS), 1, SUFFICES);
        let parity = match (self.parity, self.block_len) {
            (Parity::Symbols(symbols), _) => symbols.into(),
            (Parity::Auto, None) => enough(),
            (Parity::Auto, Some(block)) => {
                let enough = enough().min(symbols - 1);
                let share = u64::from(enough) * u64::from(block) / u64::from(symbols - enough);
                u32::try_from(share).unwrap_or(symbols).max(1).min(symbols.saturating_sub(block.into()))
            }
        };
        let room = symbols.saturating_sub(parity).max(1);
        config.parity = parity.min(symbols).try_into().unwrap_or(u16::MAX);
        config.block_len = self.block_len.unwrap_or(room.try_into().unwrap_or(1));
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

/// Octets of a segment that fits `way` with all headers: an even number, as symbols of 16 bits want it.
fn segment_size(way: Way, headers: u32) -> u16 {
    let room = way.mtu.unwrap_or(MTU).min(MTU).saturating_sub(u32::from(way.headers) + headers);
    u16::try_from(room & !1).unwrap_or(u16::MAX).max(4)
}

/// Over how many greatest round trips so many receivers spread what they ask for: a few may all ask without harm, and
/// each round trip of waiting delays the last of them thrice, as the sender gathers for as long. RFC 5740 §5.3 has 4
/// for groups of any size.
fn backoff(receivers: Option<u32>) -> u8 {
    match receivers {
        Some(0..=32) => 0,
        Some(33..=64) => 1,
        Some(65..=1000) => 2,
        _ => 4,
    }
}

/// The fewest of `symbols` symbols that cover what one of `receivers` loses of them in all but 1 - `share` of the
/// cases.
fn sufficient(symbols: u32, loss: f64, receivers: u32, share: f64) -> u32 {
    (0..symbols).find(|&lost| power(at_most(symbols, loss, lost), receivers) >= share).unwrap_or(symbols)
}

/// Parity with each block of `block` segments such that nine blocks of ten need no request: what is asked for takes
/// round trips, and what is sent beyond that is seldom needed.
fn ahead(block: u32, most: u32, loss: f64, receivers: u32) -> u32 {
    if loss <= 0.0 {
        return 0;
    }
    let suffices = |&parity: &u32| power(at_most(block + parity, loss, parity), receivers.max(1)) >= UNASKED;
    (0..most).find(suffices).unwrap_or(most)
}

/// How likely of `symbols` at most `lost` are lost, each with probability `part`.
fn at_most(symbols: u32, part: f64, lost: u32) -> f64 {
    let mut probability = power(1.0 - part, symbols);
    let (mut sum, odds) = (probability, part / (1.0 - part));
    for n in 0..lost.min(symbols) {
        probability *= odds * f64::from(symbols - n) / f64::from(n + 1);
        sum += probability;
    }
    sum.min(1.0)
}

/// `base` to the power of `exponent`, the same on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    for bit in 0..u32::BITS - exponent.leading_zeros() {
        if exponent >> bit & 1 == 1 {
            result *= square;
        }
        square *= square;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums the law of the binomial distribution from its definition, by exact coefficients.
    fn reference(symbols: u32, part: f64, lost: u32) -> f64 {
        let choose = |n: u32, k: u32| (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product::<f64>();
        let term = |k: u32| {
            choose(symbols, k) * part.powi(k.cast_signed()) * (1.0 - part).powi((symbols - k).cast_signed())
        };
        (0..=lost).map(term).sum()
    }

    #[test]
    fn what_is_lost_of_a_block_is_binomial() {
        for (symbols, part, lost) in [(10, 0.1, 2), (64, 0.05, 3), (255, 0.2, 60), (255, 0.3, 0)] {
            let (ours, theirs) = (at_most(symbols, part, lost), reference(symbols, part, lost));
            assert!((ours - theirs).abs() < 1e-12, "{symbols} {part} {lost}: {ours} {theirs}");
        }
        assert!((power(0.9, 13) - 0.9_f64.powi(13)).abs() < 1e-15);
        assert!((power(0.5, 0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn parity_ahead_follows_what_is_lost_and_how_many_receive() {
        let symbols = |loss, receivers| ahead(200, 55, loss, receivers);
        assert_eq!(symbols(0.0, 1000), 0);
        // One receiver: of 215 symbols it loses at most 15 in 9 cases of 10, and of 214 at most 14 not so often.
        assert_eq!(symbols(0.05, 1), 15);
        let many = [1, 10, 100, 1000].map(|receivers| symbols(0.05, receivers));
        assert!(many.is_sorted() && many[3] < 30, "{many:?}");
        assert_eq!(symbols(0.5, 1000), 55, "no more than there is");
    }
}
