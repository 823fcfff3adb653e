//! Quantities in words, as sentences about transfers have them.

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span};

/// Shortest time that gives a meaningful rate.
const SHORTEST: Span = Span::from_millis(1);

/// Returns a part as a percentage with one decimal, or a dash if the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Returns the rate at which `bytes` were moved in `span`. It is a dash if nothing was moved, or in too short a time.
pub fn rate(bytes: u64, span: Span) -> String {
    if span < SHORTEST {
        return "-".into();
    }
    let bps = bytes as f64 * 8.0 / span.as_secs_f64().max(1e-9);
    BitRate::from_bps(bps as u64).map_or_else(|| "-".into(), |rate| rate.to_string())
}

/// Returns the bytes in `count` of the `segments` of a product of `size` bytes.
pub fn part_of(size: u64, count: u64, segments: u64) -> u64 {
    (u128::from(size) * u128::from(count) / u128::from(segments.max(1))) as u64
}

/// Returns a count with its noun, as in "1 round" and "2 rounds".
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Returns bytes as a person writes them.
pub fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Returns `lost` as a percentage of `sent`, or `None` if nothing was sent.
pub fn loss_percent(lost: u64, sent: u64) -> Option<f64> {
    (sent > 0).then(|| 100.0 * lost as f64 / sent as f64)
}
