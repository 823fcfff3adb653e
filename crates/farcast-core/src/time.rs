//! Virtual time: 64-bit nanoseconds since an epoch that the driver chooses.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant: nanoseconds since the driver's epoch. Range 0 to about 584 years.
///
/// An engine never asks for the epoch; it only compares times and adds [`Span`]s. All arithmetic saturates:
/// [`Time::NEVER`] plus anything stays [`Time::NEVER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every deadline.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `nanoseconds` after the epoch.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the epoch, for display.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// Longer than every other span.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of `nanoseconds`.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Creates a span of `microseconds`.
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds.saturating_mul(1_000))
    }

    /// Creates a span of `milliseconds`.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Creates a span of `seconds`.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Creates a span of `seconds`, rounded to the nanosecond; negative and not-a-number give zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to zero.
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// Returns the span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns `true` if the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns this span less `other`, or zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    /// Divides the span, rounding down.
    ///
    /// # Panics
    /// If `divisor` is zero.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER { f.write_str("never") } else { write!(f, "{:.9} s", self.as_secs_f64()) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9} s", self.as_secs_f64())
    }
}

impl fmt::Display for Span {
    /// Writes the span in the unit a person would choose: `12.3 s`, `250 ms`, `71 us`; from a minute on as `1:30 min`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 60_000_000_000 => {
                write!(f, "{}:{:02} min", n / 60_000_000_000, n / 1_000_000_000 % 60)
            }
            n if n >= 1_000_000_000 => write!(f, "{:.1} s", self.as_secs_f64()),
            n if n >= 1_000_000 => write!(f, "{} ms", n / 1_000_000),
            n if n >= 1_000 => write!(f, "{} us", n / 1_000),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn never_absorbs_every_span() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO - Span::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::NEVER), Span::ZERO);
    }

    #[test]
    fn seconds_round_to_the_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.000_000_001_4).as_nanos(), 1);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
    }

    #[test]
    fn spans_read_as_a_person_writes_them() {
        for (span, text) in [
            (Span::from_secs(90), "1:30 min"),
            (Span::from_millis(12_340), "12.3 s"),
            (Span::from_micros(250_900), "250 ms"),
            (Span::from_nanos(71_999), "71 us"),
        ] {
            assert_eq!(format!("{span}"), text);
        }
    }
}
