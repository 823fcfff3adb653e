//! Parity sent ahead for many receivers, whose number and losses are known from registrations.

use farcast_delivery::binomial::{enough_symbols, lacking};

use crate::turn::{HeardData, LOST_BY_CHANCE};

/// Expected number of receivers that a block's parity does not suffice for.
const LEFT: f64 = 1.0;
/// Number of DTUs from which a receiver's own losses tell something.
const OWN: u32 = 100;
/// Losses beyond which a receiver is left to repairs: a multiple of the mean of all, and a part beyond it.
const FAR: (f64, f64) = (4.0, 0.02);
/// Losses that are assumed before any report, and the number of DTUs that this assumption counts for.
const ASSUMED: (f64, f64) = (0.01, 100.0);

/// Number of DTUs and of receivers of a sample that tells the losses.
const TELLING: (f64, f64) = (1000.0, 10.0);

/// Losses of the receivers that have registered, without those that lose far more than the others.
#[derive(Clone, Debug, Default)]
pub(super) struct LossSample {
    sent: f64,
    lost: f64,
    /// Number of receivers in the sample, and the sum of the parts that they missed before they came.
    receivers: f64,
    missed: f64,
    /// Number of receivers in the sample that came late, and of those that lose far more than the others.
    late: f64,
    far: f64,
    /// Largest number of segments that one of them missed before it came.
    most_missed: u32,
    /// Number of segments at the beginning that are sent again, so that it no longer matters who missed them.
    sent_again: u32,
}

impl LossSample {
    /// Records the losses that a receiver reports of a product of `segments`.
    pub(super) fn note(&mut self, heard: &HeardData, segments: u32) {
        self.receivers += 1.0;
        let missed = heard.missed.min(segments).saturating_sub(self.sent_again);
        // The first few may be lost by chance.
        let missed = if missed < LOST_BY_CHANCE { 0 } else { missed };
        self.late += f64::from(u8::from(missed > 0));
        self.missed += f64::from(missed) / f64::from(segments.max(1));
        self.most_missed = self.most_missed.max(missed);
        // No receiver has heard more than the product.
        let sent = f64::from(heard.sent.min(segments));
        let lost = f64::from(heard.lost).min(sent);
        let far = heard.sent >= OWN && lost > sent * (self.part() * FAR.0 + FAR.1);
        if far {
            self.far += 1.0;
        } else {
            (self.sent, self.lost) = (self.sent + sent, self.lost + lost);
        }
    }

    /// Returns the part of DTUs that receivers lose, from 0 to 1.
    pub(super) fn part(&self) -> f64 {
        (self.lost + ASSUMED.0 * ASSUMED.1) / (self.sent + ASSUMED.1)
    }

    /// Returns `true` if the sample is large enough to tell the receivers' losses.
    pub(super) fn is_telling(&self) -> bool {
        self.sent >= TELLING.0 && self.receivers >= TELLING.1
    }

    /// Returns the part of the receivers that came late.
    pub(super) fn late(&self) -> f64 {
        self.late / self.receivers.max(1.0)
    }

    /// Returns the part of the receivers that lose far more than the others.
    pub(super) fn far(&self) -> f64 {
        self.far / self.receivers.max(1.0)
    }

    /// Returns the part that is hardly exceeded, given the size of the sample.
    fn most(&self) -> f64 {
        let part = self.part();
        (part + 2.0 * libm::sqrt(part / (self.sent + ASSUMED.1))).min(0.9)
    }

    /// Returns the mean part of the product that receivers missed before they came and that is not sent again.
    pub(super) fn missed(&self) -> f64 {
        self.missed / self.receivers.max(1.0)
    }

    /// Returns the largest number of segments that a receiver missed before it came. They are sent again from now on.
    pub(super) fn take_missed(&mut self) -> u32 {
        self.missed = 0.0;
        self.sent_again = core::mem::take(&mut self.most_missed);
        self.sent_again
    }

    /// Returns the number of `receivers` that lack some of a block of `len` DTUs behind which `sent` symbols were sent.
    pub(super) fn lacking(&self, receivers: f64, len: u32, sent: u32) -> f64 {
        lacking(receivers, len, self.part(), sent)
    }

    /// Returns the number of parity symbols behind a block of `len` DTUs with which about [`LEFT`] of `receivers` still
    /// lack some of it, at most `most`.
    pub(super) fn symbols(&self, receivers: f64, len: u32, most: u32) -> u32 {
        enough_symbols(receivers, len, self.most(), LEFT, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(reports: impl IntoIterator<Item = HeardData>) -> LossSample {
        let mut sample = LossSample::default();
        for heard in reports {
            sample.note(&heard, 10_000);
        }
        sample
    }

    #[test]
    fn what_is_lost_by_chance_at_the_beginning_makes_nobody_late() {
        let usual = |missed| HeardData { missed, sent: 1000, lost: 10 };
        let mut chance = sample((0..100).map(|n| usual(n % LOST_BY_CHANCE)));
        assert_eq!((chance.late(), chance.missed(), chance.take_missed()), (0.0, 0.0, 0));
        let mut some = sample((0..100).map(|n| usual(if n < 10 { 400 } else { 0 })));
        assert!((some.late() - 0.1).abs() < 1e-9);
        assert_eq!((some.take_missed(), some.missed()), (400, 0.0));
        // What is sent again is no longer missed.
        some.note(&usual(400), 10_000);
        assert_eq!(some.take_missed(), 0);
    }

    #[test]
    fn receivers_that_lose_far_more_are_counted_apart() {
        let heard = |n| HeardData { missed: 0, sent: 1000, lost: if n % 10 == 9 { 200 } else { 10 } };
        let sample = sample((0..100).map(heard));
        assert!((sample.far() - 0.1).abs() < 1e-9 && (0.005..0.015).contains(&sample.part()));
        assert!(sample.is_telling());
        let one = LossSample { sent: 1e6, receivers: 1.0, ..LossSample::default() };
        assert!(!one.is_telling(), "one receiver says nothing of others");
    }
}
