//! Times of descriptions.

use farcast_core::{BitRate, Span};

/// Interval at which a description and the whole head are sent, unless that takes too much of the rate.
pub(crate) const DESCRIBE_EVERY: Span = Span::from_millis(250);
/// Number of descriptions in a short round. A receiver that misses one description misses a twentieth of the round,
/// which it can do without.
const PER_ROUND: u64 = 20;
/// Divisor of the rate for descriptions, and for the head: each takes at most this part of the octets.
pub(crate) const SHARE: u64 = 500;
/// Number of descriptions before the first symbol. A receiver that hears none of them misses the symbols that follow.
pub(crate) const LEADS: u64 = 10;
/// Divisor of the round for all these descriptions together. A burst of losses that hits them all also takes as much of
/// the symbols that follow, so more descriptions would not help.
const LEAD_PART: u64 = 10;
/// Number of descriptions in a row that may be lost before their sender counts as silent.
const PATIENCE: u64 = 4;
/// Maximum octets of IP and UDP headers.
const HEADERS: u64 = 48;

/// Returns the interval between descriptions that take `description` each, if a round takes `round`.
pub(crate) fn between_descriptions(description: Span, round: Span) -> Span {
    DESCRIBE_EVERY.min(round / PER_ROUND).max(description * SHARE)
}

/// Returns the time for which an object is described before its first symbol, at most `most`.
pub(crate) fn lead(description: Span, round: Span, most: Span) -> Span {
    most.min((round / LEAD_PART).max(description * LEADS))
}

/// Returns the silence after which a sender has ended, or nothing gets through. Its descriptions have at most `octets`
/// octets.
pub(crate) fn silence(rate_kbps: u32, octets: usize) -> Span {
    let rate = BitRate::from_bps(u64::from(rate_kbps.max(1)) * 1000);
    let each = rate.map_or(Span::ZERO, |rate| rate.time_of_bytes(octets as u64 + HEADERS));
    DESCRIBE_EVERY.max(each * SHARE) * PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_far_apart_only_where_they_take_long() {
        let (ms, us) = (Span::from_millis, Span::from_micros);
        let round = Span::from_secs(100);
        assert_eq!(between_descriptions(us(10), round), ms(250));
        assert_eq!(between_descriptions(ms(10), round), Span::from_secs(5));
        // In a short round descriptions come more often, as long as they take little of it.
        assert_eq!(between_descriptions(us(10), ms(400)), ms(20));
        assert_eq!(between_descriptions(us(10), ms(2)), ms(5));
    }

    #[test]
    fn what_comes_before_a_short_round_is_short() {
        let (ms, us) = (Span::from_millis, Span::from_micros);
        let most = ms(500);
        assert_eq!(lead(us(10), Span::from_secs(100), most), most);
        assert_eq!(lead(us(10), ms(440), most), ms(44));
        assert_eq!(lead(us(50), ms(2), most), us(500));
        assert_eq!(lead(ms(100), ms(2), most), most);
    }

    #[test]
    fn a_slow_sender_is_longer_silent() {
        assert_eq!(silence(1_000_000, 80), Span::from_secs(1));
        // 128 octets at 8 kbit/s take 128 ms, and 500 times as long lies between two descriptions.
        assert_eq!(silence(8, 80), Span::from_secs(4 * 64));
        // A rate of 0 counts as slow.
        assert_eq!(silence(0, 80), silence(1, 80));
    }
}
