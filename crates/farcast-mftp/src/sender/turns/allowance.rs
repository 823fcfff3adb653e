//! Octets that may be asked for over the return channel, and the rate that it carries.

use alloc::collections::VecDeque;

use farcast_core::{Span, Time};

/// Share of the return's rate that the sender asks for. The rest is for bursts and repeated messages.
const ASKED: f64 = 0.7;
/// Time for which an unused allowance is kept.
const SAVED_S: f64 = 1.0;
/// Delay beyond the shortest from which answers are taken to wait in a queue. The return was busy for as long, so that
/// it carried what came in that time.
const QUEUED: Span = Span::from_millis(600);
/// Part of the measured rate that is taken to be carried for good.
const CARRIED: f64 = 0.95;
/// Factor by which a rate that was too high rises again at most.
const REGAINED: f64 = 1.1;
/// Maximum number of arrivals that are remembered.
const MOST_ARRIVALS: usize = 8192;
/// Lowest rate that is assumed, in octets per second.
const LEAST: f64 = 60.0;

/// Allowance of octets from receivers.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// Rate of the return in octets per second, and `true` if the user has given it.
    rate: f64,
    given: bool,
    /// Highest rate that is tried if none is given.
    most: f64,
    level: f64,
    at: Time,
    /// Time and octets of the last arrivals.
    arrivals: VecDeque<(Time, u32)>,
    /// Time before which a delay tells nothing new.
    judged_until: Time,
}

impl Allowance {
    pub(super) fn new(rate: f64, given: bool) -> Self {
        let level = rate * ASKED * SAVED_S;
        let (arrivals, judged_until) = (VecDeque::new(), Time::ZERO);
        Self { rate, given, most: rate, level, at: Time::ZERO, arrivals, judged_until }
    }

    /// Returns the rate of the return in octets per second.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the octets that may be asked for in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.rate * ASKED
    }

    /// Returns the octets that may be asked for now, which may be negative.
    pub(super) fn level(&mut self, now: Time) -> f64 {
        let passed = now.since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second()).min(self.per_second() * SAVED_S);
        self.at = self.at.max(now);
        self.level
    }

    /// Takes `octets` that are asked for; gives them back if negative.
    pub(super) fn take(&mut self, octets: f64) {
        self.level -= octets;
    }

    /// Returns `true` if nothing has come for a while, so that no queue on the way holds answers.
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.arrivals.back().is_none_or(|&(at, _)| now.since(at) > QUEUED)
    }

    /// Records that `octets` came.
    pub(super) fn arrived(&mut self, now: Time, octets: u32) {
        while self.arrivals.front().is_some_and(|&(at, _)| now.since(at) > QUEUED)
            || self.arrivals.len() >= MOST_ARRIVALS
        {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, octets));
    }

    /// Judges an answer that came `late` after the shortest possible time. Answers that wait in a queue show the rate of
    /// the return: that of their arrivals. Returns `true` if they do.
    pub(super) fn judge(&mut self, now: Time, late: Span) -> bool {
        if self.given || now < self.judged_until {
            return false;
        }
        let octets: u32 = self.arrivals.iter().map(|&(_, octets)| octets).sum();
        if late < QUEUED {
            if f64::from(octets) < self.per_second() * QUEUED.as_secs_f64() * 0.8 {
                return false;
            }
            self.rate = (self.rate * 1.02).min(self.most);
            self.judged_until = now + Span::from_secs(1);
            return false;
        }
        let arrives = f64::from(octets) / QUEUED.as_secs_f64();
        self.rate = (arrives * CARRIED).clamp(LEAST, self.rate);
        self.most = self.rate * REGAINED;
        // Nothing more is asked for until the queue is empty.
        self.level = self.level.min(0.0) - late.as_secs_f64() * self.rate;
        self.judged_until = now + late + Span::from_secs(2);
        true
    }
}
