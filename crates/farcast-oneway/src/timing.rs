//! How often it is said what is sent.

use farcast_core::{BitRate, Span};

/// How often a description is sent, and all of the head, unless that is too much of the rate.
pub(crate) const DESCRIBE_EVERY: Span = Span::from_millis(250);
/// So often in a short round: whoever misses a description misses a twentieth of it, and can do without.
const PER_ROUND: u64 = 20;
/// Descriptions, and the head, take at most one of so many octets each.
pub(crate) const SHARE: u64 = 500;
/// So many descriptions before the first symbol: whoever hears none of them misses what follows.
pub(crate) const LEADS: u64 = 10;
/// Together they take at most one of so many parts of a round. A burst of losses that hits them all takes as much of what
/// follows, so more would help nobody.
const LEAD_PART: u64 = 10;
/// Descriptions that may be lost in a row before their sender is held to be silent.
const PATIENCE: u64 = 4;
/// The most octets of IP and UDP headers.
const HEADERS: u64 = 48;

/// How far apart descriptions are that take `description` each, where a round takes `round`.
pub(crate) fn between_descriptions(description: Span, round: Span) -> Span {
    DESCRIBE_EVERY.min(round / PER_ROUND).max(description * SHARE)
}

/// How long an object is described before its first symbol, at most `most`.
pub(crate) fn lead(description: Span, round: Span, most: Span) -> Span {
    most.min((round / LEAD_PART).max(description * LEADS))
}

/// How long a sender of descriptions of so many octets at most is silent only if it has ended, or nothing passes.
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
        // In a short round they come more often, as far as that is little of it.
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
        // 128 octets at 8 kbit/s are 128 ms, of which 500 lie between two.
        assert_eq!(silence(8, 80), Span::from_secs(4 * 64));
        // Whoever says no rate is slow.
        assert_eq!(silence(0, 80), silence(1, 80));
    }
}
