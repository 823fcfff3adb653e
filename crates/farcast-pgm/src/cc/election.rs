//! Election of the acker: the receiver whose throughput would be lowest (sections 2.3, 2.4).

/// Returns the square of the inverse of a receiver's throughput by the equation of TCP, `RTT sqrt(p) (1 + 9p (1 +
/// 32p^2))`, with the round trip in seconds. It serves for comparison only: throughput in packets a second is
/// `sqrt(3/2)` divided by the root of the result.
pub fn slowness(rtt_s: f64, loss: u16) -> f64 {
    let p = f64::from(loss) / 65_536.0;
    let retries = 1.0 + 9.0 * p * (1.0 + 32.0 * p * p);
    rtt_s * rtt_s * p * retries * retries
}

/// Returns `true` if a receiver of slowness `other` replaces the acker of slowness `acker`: its throughput is below `C`
/// times that of the acker.
pub(super) fn takes_over(other: f64, acker: f64, hysteresis: f64) -> bool {
    other * hysteresis * hysteresis > acker
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Throughput of 1,000-octet packets at a round trip of 0.53 s, in kbit/s.
    #[test]
    fn it_is_the_equation() {
        let pairs = [(1e-3, 579.0), (1e-2, 170.0), (5e-2, 56.0), (0.1, 27.0), (0.2, 8.1)];
        for (p, kbps) in pairs {
            let m = slowness(0.53, (p * 65_536.0_f64).round() as u16).sqrt();
            let found = 8.0 * 1.5f64.sqrt() / m;
            assert!((found / kbps - 1.0).abs() < 0.02, "{p}: {found} kbit/s, {kbps} expected");
        }
    }

    #[test]
    fn only_who_is_clearly_slower_takes_over() {
        let one = slowness(0.5, 655);
        assert!(!takes_over(one, one, 0.75));
        // Throughput goes with the root of slowness.
        assert!(!takes_over(one / (0.76 * 0.76), one, 0.75));
        assert!(takes_over(one / (0.74 * 0.74), one, 0.75));
        assert!(!takes_over(0.0, 0.0, 0.75), "without losses nobody does");
    }
}
