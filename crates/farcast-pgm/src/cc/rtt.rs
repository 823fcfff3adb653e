//! Round trips and the timeout of acknowledgements, as in TCP (section 2.7, RFC 6298).

use farcast_core::Span;

/// Timeout before the first measurement.
const INITIAL: Span = Span::from_secs(3);
/// The longest timeout.
const MOST: Span = Span::from_secs(60);

/// Smoothed round trip and its deviation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Smoothed round trip and deviation; `None` before the first measurement.
    smoothed: Option<(Span, Span)>,
    least: Span,
}

impl RoundTrip {
    /// Creates an estimate without measurements; no timeout is shorter than `least`.
    pub const fn new(least: Span) -> Self {
        Self { smoothed: None, least }
    }

    /// Takes a measured round trip (RFC 6298 §2.2, §2.3).
    pub fn note(&mut self, rtt: Span) {
        let rtt = rtt.as_nanos();
        let (smoothed, deviation) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some((smoothed, deviation)) => {
                let (smoothed, deviation) = (smoothed.as_nanos(), deviation.as_nanos());
                ((smoothed / 8 * 7) + rtt / 8, (deviation / 4 * 3) + smoothed.abs_diff(rtt) / 4)
            }
        };
        self.smoothed = Some((Span::from_nanos(smoothed), Span::from_nanos(deviation)));
    }

    /// Discards the measurements, since those of another acker follow.
    pub fn restart(&mut self) {
        self.smoothed = None;
    }

    /// Returns the smoothed round trip.
    pub fn smoothed(&self) -> Option<Span> {
        self.smoothed.map(|(smoothed, _)| smoothed)
    }

    /// Returns the time after which an acknowledgement is overdue.
    pub fn timeout(&self) -> Span {
        self.smoothed
            .map_or(INITIAL, |(smoothed, deviation)| (smoothed + deviation * 4).clamp(self.least, MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_rfc_6298() {
        let ms = Span::from_millis;
        let mut rtt = RoundTrip::new(ms(200));
        assert_eq!(rtt.timeout(), Span::from_secs(3));
        rtt.note(ms(400));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(400)), ms(400 + 4 * 200)));
        rtt.note(ms(800));
        // SRTT = 7/8 400 + 1/8 800, RTTVAR = 3/4 200 + 1/4 400.
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(450)), ms(450 + 4 * 250)));
        (0..200).for_each(|_| rtt.note(ms(10)));
        assert_eq!(rtt.timeout(), ms(200));
    }
}
