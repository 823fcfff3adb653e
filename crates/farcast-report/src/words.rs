//! Numbers in a form for people.

use farcast_delivery::Noun;

/// Returns a count with separated thousands: `1,902`.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a count and a noun with a regular plural: `1 packet`, `1,902 packets`.
pub(super) fn counted(value: u64, what: &str) -> String {
    format!("{} {what}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Returns a count and a noun in the protocol's terms: `1 pass`, `1,902 NAKs`.
pub(super) fn counted_as(value: u64, what: Noun) -> String {
    format!("{} {}", count(value), what.after(value))
}

/// Returns a length of time, to three places or the whole second: `15.9 ms`, `7.93 s`, `1543 s`.
pub(super) fn span(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    match seconds {
        s if s >= 99.95 => format!("{s:.0} s"),
        s if s >= 9.995 => format!("{s:.1} s"),
        s if s >= 0.9995 => format!("{s:.2} s"),
        s if s >= 0.0995 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// Returns a time, to the millisecond: `31.204 s`.
pub(super) fn time(seconds: f64) -> String {
    format!("{:.3} s", if seconds.is_finite() { seconds.max(0.0) } else { 0.0 })
}

/// Returns a share of a whole in per cent: `54 %`.
pub(super) fn share(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 { part / whole } else { 0.0 };
    format!("{:.0} %", 100.0 * share)
}
