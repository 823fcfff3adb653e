//! Coarse numbers of header fields, in a few bits (RFC 5401 §5.1.1, §5.4; RFC 5740 §4.2.1, §4.2.3.4, §4.3.1).
//!
//! Both ends compute with the value on the wire, not with the value before it was rounded. Logarithms are libm's: the
//! same digits on every platform.

use farcast_core::Span;

/// Shortest and longest round trip that can be expressed, in seconds.
const RTT_RANGE: (f64, f64) = (1e-6, 1000.0);

/// Round-trip time, of 1 us to 1000 s in 256 steps: steps of 1 us at first, and of 8 % from 33 us on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rtt(pub u8);

impl Rtt {
    /// Returns the step for `span`. Within the range the step is at least as long as `span`.
    pub fn of(span: Span) -> Self {
        let (least, most) = RTT_RANGE;
        let seconds = span.as_secs_f64().clamp(least, most);
        // RFC 5401 rounds 1 us steps this way; a division may end just below a whole number.
        Self(if seconds < 33e-6 {
            (libm::floor(seconds / least + 1e-6) - 1.0) as u8
        } else {
            libm::ceil(255.0 - 13.0 * libm::log(most / seconds)) as u8
        })
    }

    /// Returns the round-trip time.
    pub fn span(self) -> Span {
        let (least, most) = RTT_RANGE;
        Span::from_secs_f64(if self.0 <= 31 {
            f64::from(self.0 + 1) * least
        } else {
            most / libm::exp(f64::from(255 - self.0) / 13.0)
        })
    }
}

/// Number of receivers of a group: 1 or 5 times a power of ten, from 10 to 500,000,000 (RFC 5740 §4.2.1). It takes four
/// bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GroupSize(u8);

impl GroupSize {
    /// Makes a group size from its four bits; higher bits are cut off.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0xF)
    }

    /// Returns the four bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the least group size that holds `receivers`; the greatest where none does.
    pub fn of(receivers: u64) -> Self {
        let all = (0..8).flat_map(|exponent| [Self(exponent), Self(exponent | 8)]);
        all.into_iter().find(|size| size.receivers() >= receivers).unwrap_or(Self(0xF))
    }

    /// Returns the number of receivers.
    pub const fn receivers(self) -> u64 {
        let mantissa = if self.0 & 8 == 0 { 1 } else { 5 };
        mantissa * 10u64.pow((self.0 & 7) as u32 + 1)
    }
}

/// Rate in bytes per second: twelve bits of mantissa and a decimal exponent in four (RFC 5740 §4.2.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate(pub u16);

impl Rate {
    /// Returns the field for a rate in bytes per second, to three digits. A rate below 1 becomes 0, and one beyond the
    /// range the maximum.
    pub fn of(bytes_per_second: f64) -> Self {
        if bytes_per_second.is_nan() || bytes_per_second < 1.0 {
            return Self(0);
        }
        let exponent = libm::floor(libm::log10(bytes_per_second));
        if exponent > 15.0 {
            return Self(u16::MAX);
        }
        // Just below the next power of ten the mantissa would round to 13 bits.
        let mantissa = libm::round(bytes_per_second / libm::pow(10.0, exponent) * 409.6).min(4095.0);
        Self((mantissa as u16) << 4 | exponent as u16)
    }

    /// Returns the rate in bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        f64::from(self.0 >> 4) / 409.6 * libm::pow(10.0, f64::from(self.0 & 0xF))
    }
}

/// Fraction of packets that are lost, of 0 to 1 in 32 bits.
///
/// DEVIATION: RFC 5740 §4.3.1 has 16 bits and 16 reserved ones, which are 0. NRL's library puts 16 more bits of the
/// loss there. A reader of 16 bits reads the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Loss(pub u32);

/// Precision of a [`Loss`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossStyle {
    /// 32 bits, as in NRL's library.
    #[default]
    Fine,
    /// 16 bits, rounded down (RFC 5740 §4.3.1).
    Coarse,
}

impl Loss {
    /// Returns the field for a fraction of 0 to 1; values outside are clamped.
    pub fn of(part: f64) -> Self {
        // A cast saturates, and turns NaN into 0.
        Self(libm::round(part * f64::from(u32::MAX)) as u32)
    }

    /// Returns the field for a fraction in `style`.
    pub fn of_style(part: f64, style: LossStyle) -> Self {
        match style {
            LossStyle::Fine => Self::of(part),
            // The cast saturates here, too.
            LossStyle::Coarse => Self(u32::from((part * f64::from(u16::MAX)) as u16) << 16),
        }
    }

    /// Returns the fraction.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_those_of_the_wire() {
        // Values from NRL's library, and the ends of RFC 5401's range.
        for (milliseconds, byte) in [(500, 0x9D), (250, 0x94), (100, 0x88), (50, 0x7F)] {
            assert_eq!(Rtt::of(Span::from_millis(milliseconds)), Rtt(byte), "{milliseconds} ms");
        }
        assert_eq!(Rtt::of(Span::ZERO), Rtt(0));
        assert_eq!(Rtt::of(Span::MAX), Rtt(255));
        assert_eq!(Rtt(255).span(), Span::from_secs(1000));
        assert!((Rtt(0x88).span().as_secs_f64() - 0.1058).abs() < 1e-4);
    }

    #[test]
    fn every_round_trip_comes_back_and_none_is_said_shorter() {
        for byte in 0..=255 {
            let span = Rtt(byte).span();
            // The nanosecond that a span is rounded to may lie in the next step.
            let again = Rtt::of(span);
            assert!(again == Rtt(byte) || again == Rtt(byte.saturating_add(1)), "{byte} became {again:?}");
            assert!(byte == 0 || Rtt(byte - 1).span() < span);
        }
        for micros in 33..100_000 {
            let span = Span::from_micros(micros * 17);
            assert!(Rtt::of(span).span() + Span::from_nanos(1) >= span, "{span}");
        }
    }

    #[test]
    fn group_sizes_are_those_of_the_wire() {
        for (receivers, bits) in
            [(10, 0), (50, 8), (100, 1), (1000, 2), (10_000, 3), (11, 8), (51, 1), (0, 0)]
        {
            assert_eq!(GroupSize::of(receivers).bits(), bits, "{receivers}");
        }
        assert_eq!(GroupSize::of(u64::MAX).receivers(), 500_000_000);
        for bits in 0..16 {
            let size = GroupSize::from_bits(bits);
            assert_eq!(GroupSize::of(size.receivers()), size);
        }
    }

    #[test]
    fn rates_are_those_of_the_wire() {
        assert_eq!(Rate::of(32_000.0), Rate(0x51F4));
        assert_eq!(Rate::of(62_500.0), Rate(0xA004));
        assert_eq!(Rate::of(9.9999), Rate(0xFFF0), "not past twelve bits");
        for weird in [f64::NAN, -1.0, 0.0, 0.5] {
            assert_eq!(Rate::of(weird), Rate(0));
        }
        assert_eq!(Rate::of(f64::INFINITY), Rate(0xFFFF));
        for mantissa in 410..4096 {
            for exponent in 0..16 {
                let rate = Rate(mantissa << 4 | exponent);
                assert_eq!(Rate::of(rate.bytes_per_second()), rate);
            }
        }
    }

    #[test]
    fn losses_come_back() {
        assert_eq!((Loss::of(0.0), Loss::of(1.0), Loss::of(2.0)), (Loss(0), Loss(u32::MAX), Loss(u32::MAX)));
        assert!((Loss(0x0563_B48C).part() - 0.021_052_6).abs() < 1e-6, "as observed: 2 of 95");
        assert_eq!(Loss::of(Loss(0x0563_B48C).part()), Loss(0x0563_B48C));
        let coarse = |part| Loss::of_style(part, LossStyle::Coarse);
        assert_eq!(
            [0.0, 0.5, 1.0, 2.0].map(coarse),
            [0, 0x7FFF, 0xFFFF, 0xFFFF].map(|high: u32| Loss(high << 16))
        );
    }
}
