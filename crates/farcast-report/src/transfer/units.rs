//! Units that suit the values of a figure.

/// A unit, with its size in plain units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) of: f64,
}

/// Returns a unit of time for values up to `longest_s`: seconds up to a quarter of an hour, minutes up to three
/// hours.
pub(super) fn time(longest_s: f64) -> Unit {
    match longest_s {
        ..=900.0 => Unit { name: "s", of: 1.0 },
        ..=10_800.0 => Unit { name: "min", of: 60.0 },
        _ => Unit { name: "h", of: 3600.0 },
    }
}

/// Returns octets with the SI prefix that suits the greatest value.
pub(super) fn octets(greatest: f64) -> Unit {
    prefixed(greatest, ["B", "kB", "MB", "GB", "TB"])
}

/// Returns bits per second with the SI prefix that suits the greatest value.
pub(super) fn rate(greatest: f64) -> Unit {
    prefixed(greatest, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

fn prefixed(greatest: f64, names: [&'static str; 5]) -> Unit {
    let mut of = 1.0;
    for (place, name) in names.into_iter().enumerate() {
        if greatest < 1000.0 * of || place == 4 {
            return Unit { name, of };
        }
        of *= 1000.0;
    }
    Unit { name: names[0], of: 1.0 }
}

/// Returns a number of octets for people, to three digits.
pub(super) fn size(octets_: u64) -> String {
    let unit = octets(octets_ as f64);
    format!("{} {}", crate::page::digits(octets_ as f64 / unit.of), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_value_decides() {
        assert_eq!(
            [0.0, 999.0, 1000.0, 2.5e6, 9e20].map(|most| octets(most).name),
            ["B", "B", "kB", "MB", "TB"]
        );
        assert_eq!([0.2, 900.0, 901.0, 90_000.0].map(|most| time(most).name), ["s", "s", "min", "h"]);
        assert_eq!((rate(20e6).name, rate(20e6).of), ("Mbit/s", 1e6));
        assert_eq!(size(67_108_864), "67.1 MB");
    }
}
