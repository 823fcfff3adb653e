//! TCP equation (RFC 4654 §2.1, RFC 5348 §3.1): the rate as a function of packet size, round trip and loss events, and
//! its inverse.

/// Least rate of loss events; below it the equation yields higher rates than any sender has.
const LEAST_LOSS: f64 = 1e-12;

/// Returns the rate in octets per second for packets of `size` octets and a round trip of `trip` seconds, where a
/// fraction `loss`, from 0 to 1, of the packets begins a loss event. Infinite without loss.
pub(super) fn rate(size: f64, trip: f64, loss: f64) -> f64 {
    size / (trip * cost(loss.min(1.0)))
}

/// Returns the fraction of loss events at which [`rate`] is `rate` octets per second; 1 where every loss gives more.
pub(super) fn loss(size: f64, trip: f64, rate: f64) -> f64 {
    let cost_of_rate = size / (trip * rate);
    // NaN is not a rate.
    if cost_of_rate.is_nan() || cost_of_rate >= cost(1.0) {
        return 1.0;
    }
    // The cost rises with the loss. Halving its logarithm narrows an interval of twelve decades to a digit in 2^53
    // before the sixtieth step.
    let (mut low, mut high) = (LEAST_LOSS, 1.0);
    for _ in 0..60 {
        let middle = libm::sqrt(low * high);
        if cost(middle) < cost_of_rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns the round trips that a packet takes at a loss of `p`: the part of halved windows, plus the part of time-outs
/// of four round trips (RFC 5348 §3.1, with b = 1).
fn cost(p: f64) -> f64 {
    libm::sqrt(p * 2.0 / 3.0) + 12.0 * libm::sqrt(p * 3.0 / 8.0) * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size, round trip, loss, and the rate that another program computes from the formula of RFC 5348 §3.1.
    const REFERENCE: [(f64, f64, f64, f64); 6] = [
        (1400.0, 0.5, 0.0001, 342_620.205_705_835),
        (1400.0, 0.5, 0.01, 31_453.025_621_638_033),
        (1000.0, 0.1, 0.02, 73_248.961_670_131_65),
        (512.0, 0.02, 0.1, 45_314.613_191_457_895),
        (1400.0, 0.25, 0.5, 233.722_518_611_704_02),
        (1460.0, 0.05, 1.0, 120.008_557_867_900_69),
    ];

    #[test]
    fn it_is_the_published_equation() {
        for (size, trip, loss, expected) in REFERENCE {
            let rate = rate(size, trip, loss);
            assert!((rate / expected - 1.0).abs() < 1e-12, "{size} {trip} {loss}: {rate}");
        }
        assert!(rate(1000.0, 0.1, 0.0).is_infinite());
        assert!(rate(1000.0, 0.1, 7.0) >= rate(1000.0, 0.1, 1.0), "more than all is all");
    }

    #[test]
    fn its_inverse_gives_the_loss_back() {
        for (size, trip, expected, rate) in REFERENCE {
            let loss = loss(size, trip, rate);
            assert!((loss / expected - 1.0).abs() < 1e-9, "{size} {trip} {rate}: {loss}");
        }
        // Rates outside the range of the equation.
        for rate in [0.0, 1.0, f64::NAN] {
            assert!(loss(1000.0, 0.1, rate) >= 1.0);
        }
        assert!(loss(1000.0, 0.1, f64::INFINITY) < 1e-11);
    }
}
