//! Quantities with units: bit rates, probabilities, and the text forms of these, of times and of sizes.
//!
//! In scenario files and on the command line a quantity is a number and a unit (`"300 kbit/s"`, `"900 ms"`, `"1 MiB"`,
//! `"2 %"`). kbit is 1000 bit, kB is 1000 bytes, KiB is 1024 bytes. A bare number is an error. Bit rates are also
//! accepted in other common forms (`"20M"`, `"20mbit"`, `"20Mbps"`).

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use crate::Span;

/// A bit rate in bit/s, at least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BitRate(NonZeroU64);

/// A probability, from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Probability(f64);

/// A number of bytes, for the text form of sizes (`"64 KiB"`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

/// Reason for which a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("it must begin with a number, as in \"{example}\"")]
    NoNumber {
        /// A quantity of the expected kind.
        example: &'static str,
    },
    /// The number has no unit, or one that this quantity does not have.
    #[error("a number needs one of the units {units}, as in \"{example}\"")]
    Unit {
        /// The units that are known.
        units: &'static str,
        /// A quantity of the expected kind.
        example: &'static str,
    },
    /// The number lies outside the quantity's range.
    #[error("it must lie within {range}")]
    Range {
        /// The range, with its unit.
        range: &'static str,
    },
}

impl BitRate {
    /// Creates the rate of `bits_per_second`; `None` for zero.
    pub const fn from_bps(bits_per_second: u64) -> Option<Self> {
        match NonZeroU64::new(bits_per_second) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }

    /// Returns the time that `bits` take at this rate, rounded up to the nanosecond.
    pub fn time_of_bits(self, bits: u64) -> Span {
        // A datagram's bits stay within 64; a division of 128 bits takes ten times as long.
        if let Some(product) = bits.checked_mul(1_000_000_000) {
            return Span::from_nanos(product.div_ceil(self.0.get()));
        }
        let nanoseconds = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(self.0.get()));
        Span::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Returns the time that `bytes` take at this rate, rounded up to the nanosecond.
    pub fn time_of_bytes(self, bytes: u64) -> Span {
        self.time_of_bits(bytes.saturating_mul(8))
    }
}

impl Probability {
    /// Probability 0.
    pub const ZERO: Self = Self(0.0);

    /// Creates the probability `value`; `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the probability as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl BitRate {
    /// Returns the rate as text without loss, such as `20 Mbit/s`.
    pub fn exact(self) -> String {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
        in_largest_unit(self.as_bps(), &UNITS, "bit/s")
    }
}

impl Span {
    /// Returns the time as text without loss, such as `24 h`.
    pub fn exact(self) -> String {
        const SECOND: u64 = 1_000_000_000;
        const UNITS: [(u64, &str); 5] =
            [(3_600 * SECOND, "h"), (60 * SECOND, "min"), (SECOND, "s"), (1_000_000, "ms"), (1_000, "us")];
        in_largest_unit(self.as_nanos(), &UNITS, if self.is_zero() { "s" } else { "ns" })
    }
}

impl Bytes {
    /// Returns the size as text without loss, such as `64 KiB`.
    pub fn exact(self) -> String {
        const UNITS: [(u64, &str); 8] = [
            (1 << 40, "TiB"),
            (1_000_000_000_000, "TB"),
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "kB"),
        ];
        in_largest_unit(self.0, &UNITS, "B")
    }
}

/// Returns `value` in the largest unit of which it is a multiple, else in `smallest`.
fn in_largest_unit(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    let fits = |(scale, _): &&(u64, &str)| value != 0 && value.is_multiple_of(*scale);
    let &(scale, unit) = units.iter().find(fits).unwrap_or(&(1, smallest));
    format!("{} {unit}", value / scale)
}

/// Splits `text` into its number and the unit behind it.
fn number_and_unit<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), UnitError> {
    let text = text.trim();
    // An exponent's letter belongs to the number only where digits follow ("1e6 bit/s", but "1 E").
    let end = text
        .char_indices()
        .find(|&(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[at + 1..].trim_start_matches(['+', '-']).starts_with(|d: char| d.is_ascii_digit());
            let sign = matches!(c, '+' | '-') && (at == 0 || text[..at].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || exponent || sign)
        })
        .map_or(text.len(), |(at, _)| at);
    let number = text[..end].parse().map_err(|_| UnitError::NoNumber { example })?;
    Ok((number, text[end..].trim_start()))
}

fn scaled(
    text: &str,
    table: &[(&str, f64)],
    units: &'static str,
    example: &'static str,
) -> Result<f64, UnitError> {
    let (number, unit) = number_and_unit(text, example)?;
    let scale = table.iter().find(|(name, _)| *name == unit).ok_or(UnitError::Unit { units, example })?.1;
    Ok(number * scale)
}

/// Returns a unit of bit rates in bit/s, in any common form: "Mbit/s", "mbit", "Mbps", "M". An upper-case B means bytes
/// everywhere, so it is not accepted here.
fn bits_per_second(unit: &str) -> Option<f64> {
    if unit.contains('B') {
        return None;
    }
    let (prefix, rest) = unit.split_at_checked(1)?;
    let scale = [("k", 1e3), ("m", 1e6), ("g", 1e9)].into_iter();
    let scale = scale.filter(|(name, _)| prefix.eq_ignore_ascii_case(name)).map(|(_, scale)| scale).next();
    let (scale, rest) = scale.map_or((1.0, unit), |scale| (scale, rest));
    let alone = rest.is_empty() && scale > 1.0;
    let known = ["bit/s", "bit", "bps", "b/s"].iter().any(|name| rest.eq_ignore_ascii_case(name));
    (alone || known).then_some(scale)
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let example = "20 Mbit/s";
        let (number, unit) = number_and_unit(text, example)?;
        let unknown = UnitError::Unit { units: "bit/s, kbit/s, Mbit/s, Gbit/s", example };
        let bps = number * bits_per_second(unit).ok_or(unknown)?;
        let range = UnitError::Range { range: "1 bit/s to 1000 Gbit/s" };
        if !(1.0..=1e12).contains(&bps) {
            return Err(range);
        }
        Self::from_bps((bps + 0.5) as u64).ok_or(range)
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const TABLE: [(&str, f64); 7] = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("min", 60.0),
            ("h", 3600.0),
            ("d", 86_400.0),
        ];
        let seconds = scaled(text, &TABLE, "ns, us, ms, s, min, h, d", "250 ms")?;
        if !(0.0..=1e9).contains(&seconds) {
            return Err(UnitError::Range { range: "0 s to 1e9 s" });
        }
        Ok(Self::from_secs_f64(seconds))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const TABLE: [(&str, f64); 9] = [
            ("B", 1.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("TiB", 1_099_511_627_776.0),
        ];
        let bytes = scaled(text, &TABLE, "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB", "1 MiB")?;
        if !(0.0..=9e15).contains(&bytes) {
            return Err(UnitError::Range { range: "0 B to 9000 TB" });
        }
        Ok(Self((bytes + 0.5) as u64))
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    /// Reads a percentage (`"2 %"`) or a plain number from 0 to 1 (`"0.02"`): a probability has no unit.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let value = scaled(text, &[("%", 0.01), ("", 1.0)], "%", "2 %")?;
        Self::new(value).ok_or(UnitError::Range { range: "0 to 1, or 0 % to 100 %" })
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0.get() as f64;
        let (value, unit) = match bps {
            _ if bps >= 1e9 => (bps / 1e9, "Gbit/s"),
            _ if bps >= 1e6 => (bps / 1e6, "Mbit/s"),
            _ if bps >= 1e3 => (bps / 1e3, "kbit/s"),
            _ => (bps, "bit/s"),
        };
        significant(f, value)?;
        write!(f, " {unit}")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let (value, unit) = match bytes {
            _ if bytes >= 1e12 => (bytes / 1e12, "TB"),
            _ if bytes >= 1e9 => (bytes / 1e9, "GB"),
            _ if bytes >= 1e6 => (bytes / 1e6, "MB"),
            _ if bytes >= 1e3 => (bytes / 1e3, "kB"),
            _ => return write!(f, "{} B", self.0),
        };
        significant(f, value)?;
        write!(f, " {unit}")
    }
}

/// Writes three significant digits without a trailing fraction of zeros.
fn significant(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    const UNITS: [f64; 3] = [1.0, 10.0, 100.0];
    let most = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    let at = |places: usize, x: f64| libm::round(x * UNITS[places]) / UNITS[places];
    let rounded = at(most, value);
    let places = (0..most).find(|&places| libm::fabs(at(places, rounded) - rounded) < 1e-9).unwrap_or(most);
    write!(f, "{rounded:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn rates_are_taken_as_people_write_them() {
        for text in [
            "20 Mbit/s",
            "20M",
            "20m",
            "20mbit",
            "20 Mbit",
            "20Mbps",
            "20 mbps",
            "20 Mb/s",
            "20000k",
            "0.02G",
        ] {
            assert_eq!(text.parse(), Ok(BitRate::from_bps(20_000_000).unwrap()), "{text}");
        }
        assert_eq!("9600 bps".parse(), Ok(BitRate::from_bps(9600).unwrap()));
        for text in ["20", "20 MB/s", "20 MBps", "20 MiB/s", "20 Mbits", "20 T", "20 /s", "20 bitt", "20 µ"]
        {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn reads_what_people_write() {
        assert_eq!("20 Mbit/s".parse::<BitRate>().expect("rate").as_bps(), 20_000_000);
        assert_eq!("2.4kbit/s".parse::<BitRate>().expect("rate").as_bps(), 2_400);
        assert_eq!("1e6 bit/s".parse::<BitRate>().expect("rate").as_bps(), 1_000_000);
        assert_eq!("900 ms".parse::<Span>().expect("span"), Span::from_millis(900));
        assert_eq!("1 MiB".parse::<Bytes>().expect("bytes"), Bytes(1 << 20));
        assert_eq!("5%".parse(), Ok(Probability(0.05)));
        assert_eq!("0.05".parse(), Ok(Probability(0.05)));
    }

    #[test]
    fn a_bare_number_is_an_error_that_names_the_units() {
        let error = "20".parse::<BitRate>().expect_err("no unit");
        assert_eq!(
            error.to_string(),
            "a number needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s, as in \"20 Mbit/s\""
        );
        assert!(matches!("fast".parse::<BitRate>(), Err(UnitError::NoNumber { .. })));
        assert!(matches!("0 bit/s".parse::<BitRate>(), Err(UnitError::Range { .. })));
        assert!(matches!("101 %".parse::<Probability>(), Err(UnitError::Range { .. })));
        assert!(matches!("-1 s".parse::<Span>(), Err(UnitError::Range { .. })));
        assert!("1 é".parse::<Span>().is_err());
        assert!("1eé".parse::<Span>().is_err());
    }

    #[test]
    fn shows_three_digits() {
        let rate = |bps| BitRate::from_bps(bps).expect("positive").to_string();
        assert_eq!(rate(20_000_000), "20 Mbit/s");
        assert_eq!(rate(1_234_567), "1.23 Mbit/s");
        assert_eq!(rate(12_500), "12.5 kbit/s");
        assert_eq!(rate(1_500_000_000), "1.5 Gbit/s");
        assert_eq!(Bytes(52_428_800).to_string(), "52.4 MB");
        assert_eq!(Bytes(999).to_string(), "999 B");
    }

    #[test]
    fn time_on_the_wire_rounds_up() {
        let rate = BitRate::from_bps(300_000).expect("positive");
        assert_eq!(rate.time_of_bytes(375), Span::from_millis(10));
        assert_eq!(BitRate::from_bps(3).expect("positive").time_of_bits(1).as_nanos(), 333_333_334);
    }
}
