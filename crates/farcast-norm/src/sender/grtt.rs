//! Greatest round trip of the group, GRTT (RFC 5740 §5.5.2.1; RFC 5401 §5.1).

use alloc::vec::Vec;

use farcast_core::Span;

/// Longest interval between probes; intervals double up to it.
const LONGEST_INTERVAL: Span = Span::from_secs(30);

/// Estimator of the GRTT.
#[derive(Clone, Debug)]
pub(crate) struct Grtt {
    estimate: Span,
    most: Span,
    /// Greatest sample since the last probe.
    peak: Span,
    /// Interval until the next probe.
    interval: Span,
    /// Samples of the named receivers; `None` if there may be others, because then the longest round trip is not known.
    named: Option<Named>,
    /// `true` if the estimate was measured, and `false` if it was assumed.
    measured: bool,
}

/// Last sample of each named receiver.
#[derive(Clone, Debug)]
struct Named {
    /// Samples, [`Span::ZERO`] of a receiver that has not answered yet.
    samples: Vec<Span>,
    /// Number of receivers that have not answered yet.
    silent: usize,
    /// Longest sample.
    longest: Span,
}

impl Named {
    fn new(receivers: usize) -> Self {
        Self { samples: alloc::vec![Span::ZERO; receivers], silent: receivers, longest: Span::ZERO }
    }

    /// Notes a sample of the receiver at place `of`. Returns the longest sample if all receivers have answered.
    fn sample(&mut self, of: usize, trip: Span) -> Option<Span> {
        let sample = self.samples.get_mut(of)?;
        let before = core::mem::replace(sample, trip);
        self.silent -= usize::from(before.is_zero());
        self.longest = self.longest.max(trip);
        self.lose(before);
        (self.silent == 0).then_some(self.longest)
    }

    fn remove(&mut self, of: usize) {
        if of < self.samples.len() {
            let before = self.samples.remove(of);
            self.silent -= usize::from(before.is_zero());
            self.lose(before);
        }
    }

    /// Finds the longest sample anew, if `before` was it and is one no more.
    fn lose(&mut self, before: Span) {
        if before == self.longest {
            self.longest = self.samples.iter().copied().max().unwrap_or(Span::ZERO);
        }
    }
}

impl Grtt {
    /// Makes an estimator. `named` is the number of receivers that are known by name, 0 where there may be others.
    pub(crate) fn new(estimate: Span, most: Span, named: usize) -> Self {
        let named = (named > 0).then(|| Named::new(named));
        Self { estimate, most, peak: Span::ZERO, interval: Span::ZERO, named, measured: false }
    }

    pub(crate) fn estimate(&self) -> Span {
        self.estimate
    }

    /// Leaves out the named receiver at place `of`; those behind it move up.
    pub(crate) fn forget(&mut self, of: usize) {
        if let Some(named) = &mut self.named {
            named.remove(of);
        }
    }

    /// Returns to an earlier `estimate`, because later measurements say nothing about paths.
    pub(crate) fn restore(&mut self, estimate: Span) {
        (self.estimate, self.peak) = (self.estimate.min(estimate), self.peak.min(estimate));
    }

    /// Notes a measured round trip of a named receiver or of another. A longer one counts at once. If all receivers are
    /// known, the longest of their last samples counts.
    pub(crate) fn sample(&mut self, trip: Span, of: Option<usize>) {
        let trip = trip.clamp(Span::from_nanos(1), self.most);
        self.peak = self.peak.max(trip);
        self.estimate = self.estimate.max(trip);
        match (&mut self.named, of) {
            (Some(named), Some(of)) => {
                if let Some(longest) = named.sample(of, trip) {
                    self.estimate = longest;
                    self.measured = true;
                }
            }
            (_, None) => self.named = None,
            (None, Some(_)) => {}
        }
    }

    /// Notes that a probe leaves, and lets the estimate shrink gradually. Returns the time until the next probe.
    ///
    /// DEVIATION: a measured value replaces an assumed one at once. If the estimate shrank by a tenth for each probe,
    /// which become rarer, half a second on a local network would last longer than most transfers.
    pub(crate) fn probed(&mut self) -> Span {
        if !self.peak.is_zero() {
            let least = if self.measured { self.estimate * 9 / 10 } else { Span::ZERO };
            self.estimate = least.max(self.peak);
            self.measured = true;
        }
        self.peak = Span::ZERO;
        self.interval = (self.interval * 2).clamp(self.estimate, LONGEST_INTERVAL);
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_gives_way_to_what_is_measured() {
        let ms = Span::from_millis;
        let mut grtt = Grtt::new(ms(500), ms(2000), 0);
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(500), "nobody has answered");
        grtt.sample(ms(20), None);
        assert_eq!(grtt.estimate(), ms(500), "others may be further away");
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(20));
        grtt.sample(ms(700), None);
        assert_eq!(grtt.estimate(), ms(700));
    }

    #[test]
    fn it_rises_at_once_and_falls_slowly() {
        let ms = Span::from_millis;
        let mut grtt = Grtt::new(ms(500), ms(2000), 0);
        assert_eq!(grtt.probed(), ms(500));
        assert_eq!(grtt.probed(), ms(1000), "intervals double");
        grtt.sample(ms(700), None);
        assert_eq!(grtt.estimate(), ms(700));
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(700), "the peak since the last probe");
        grtt.sample(ms(100), None);
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(630));
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(630), "nobody has answered");
        grtt.sample(ms(600), None);
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(600), "not below what was measured");
        grtt.sample(Span::MAX, None);
        assert_eq!(grtt.estimate(), ms(2000), "nor above what is believed");
        assert_eq!((0..20).map(|_| grtt.probed()).last(), Some(LONGEST_INTERVAL));
    }

    #[test]
    fn an_earlier_estimate_is_restored() {
        let ms = Span::from_millis;
        let mut grtt = Grtt::new(ms(500), ms(2000), 0);
        grtt.sample(ms(600), None);
        grtt.sample(ms(1900), None);
        grtt.restore(ms(600));
        assert_eq!(grtt.estimate(), ms(600));
        grtt.probed();
        assert_eq!(grtt.estimate(), ms(600), "the peak is forgotten, too");
        grtt.restore(ms(900));
        assert_eq!(grtt.estimate(), ms(600), "it is not raised");
    }

    #[test]
    fn of_named_receivers_the_longest_counts_as_soon_as_all_have_answered() {
        let ms = Span::from_millis;
        let mut grtt = Grtt::new(ms(500), ms(2000), 2);
        grtt.sample(ms(3), Some(0));
        assert_eq!(grtt.estimate(), ms(500), "of the other nothing is known");
        grtt.sample(ms(5), Some(1));
        assert_eq!(grtt.estimate(), ms(5));
        grtt.sample(ms(40), Some(0));
        assert_eq!(grtt.estimate(), ms(40));
        grtt.sample(ms(4), Some(0));
        assert_eq!(grtt.estimate(), ms(5));
        // A receiver that is not named answers.
        grtt.sample(ms(300), None);
        grtt.sample(ms(4), Some(1));
        assert_eq!(grtt.estimate(), ms(300), "it falls slowly again");
    }
}
