//! Octets that may be asked for over the return channel, and the rate that it carries.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::{Span, Time};

/// Share of the return's rate that the sender asks for. The rest is for bursts and repeated messages.
const ASKED: f64 = 0.7;
/// Time for which an unused allowance is kept.
const SAVED_S: f64 = 0.5;
/// Time in which as much may be asked for as is given back at most.
const GIVEN_BACK_S: f64 = 2.0;
/// Divisor of the supposed rate: the rate that is asked for first.
const BEGIN: f64 = 4.0;
/// Delay beyond the shortest from which answers are taken to wait in a queue. The return was busy for as long, so that
/// it carried what came in that time.
const QUEUED: Span = Span::from_millis(600);
/// Median delay up to which the rate is raised, and the part of what may be asked for that has to arrive meanwhile.
const PROMPT: Span = Span::from_millis(250);
const ARRIVES: f64 = 0.85;
/// Longest time for which a queue is taken to last.
const LONGEST_QUEUE: Span = Span::from_secs(30);
/// Longest time over which the rate of arrivals is measured.
const MEASURED: Span = Span::from_secs(3);
/// Time over which arrivals prove a rate.
const PROVEN: Span = Span::from_secs(2);
/// Factor by which a proved rate falls with each queue.
const FADED: f64 = 0.98;
/// Number of answers whose delays are compared, at least and at most.
const COMPARED: (usize, usize) = (3, 20);
/// Divisor of their number: the part that may be prompt although all others wait in a queue.
const ALL_WAIT: usize = 4;
/// Part of them that is prompt as long as the rate may rise. On a slotted channel with contention 37 % need one attempt if
/// it carries the most.
const MOST_PROMPT: (usize, usize) = (2, 5);
/// Part of the measured rate that is taken to be carried for good.
const CARRIED: f64 = 0.95;
/// Multiple of the highest rate that has arrived, which the return does not carry if answers are lost.
const PROVED: f64 = 1.3;
/// Factor by which a rate that was too high rises again at most.
const REGAINED: f64 = 1.1;
/// Factor by which a rate that a first queue has shown rises again at most.
const TRIED_AGAIN: f64 = 2.0;
/// Factor by which the highest rate that is tried again falls at most with each queue.
const LOWERED: f64 = 0.9;
/// Multiple of the highest rate that has arrived up to which the rate rises in any case, although queues have limited it.
const BEYOND: f64 = 1.15;
/// Maximum number of arrivals that are remembered.
const MOST_ARRIVALS: usize = 8192;
/// Lowest rate that is assumed, in octets per second.
const LEAST: f64 = 60.0;

/// Allowance of octets from receivers.
///
/// A rate that the user has not given is searched for: it doubles as long as the answers come without delay. Once they
/// wait in a queue, the rate of their arrivals is taken. A queue delays all answers, collisions on a channel with
/// contention only some. So the promptest quarter of the last answers decides.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// Rate of the return in octets per second, and `true` if the user has given it.
    rate: f64,
    given: bool,
    /// Rate that the return is supposed to have as long as no queue has shown it.
    supposed: Option<f64>,
    /// Highest rate that is tried if none is given.
    most: f64,
    level: f64,
    at: Time,
    /// Highest rate at which messages have arrived over [`PROVEN`]: the return carries at least this.
    carried: f64,
    /// Time and octets of the last arrivals.
    arrivals: VecDeque<(Time, u32)>,
    /// Delays of the last answers beyond the shortest.
    delays: VecDeque<Span>,
    /// Time before which a delay tells nothing new.
    judged_until: Time,
    /// Last time at which the rate was lowered.
    lowered_at: Time,
    /// Time at which the last queue is taken to be empty at the latest.
    drained_by: Time,
}

impl Allowance {
    /// Creates the allowance of a return with the `given` rate, or else of one with probably the rate `supposed` and at
    /// most `most`.
    pub(super) fn new(given: Option<f64>, supposed: f64, most: f64) -> Self {
        let supposed = supposed.max(LEAST);
        let rate = given.unwrap_or((supposed / BEGIN).max(LEAST));
        Self {
            rate,
            given: given.is_some(),
            supposed: given.is_none().then_some(supposed),
            most: most.max(LEAST),
            level: rate * ASKED * SAVED_S,
            at: Time::ZERO,
            carried: 0.0,
            arrivals: VecDeque::new(),
            delays: VecDeque::new(),
            judged_until: Time::ZERO,
            lowered_at: Time::ZERO,
            drained_by: Time::ZERO,
        }
    }

    /// Returns the rate of the return in octets per second, as far as it has been tried.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the rate that the return probably has.
    pub(super) fn probable_rate(&self) -> f64 {
        self.supposed.unwrap_or(0.0).max(self.rate)
    }

    /// Returns the octets that may be asked for in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.rate * ASKED
    }

    /// Returns the octets that may be asked for now, which may be negative.
    pub(super) fn level(&mut self, now: Time) -> f64 {
        let passed = now.since(self.at).as_secs_f64();
        let full = (self.per_second() * SAVED_S).max(self.level);
        self.level = (self.level + passed * self.per_second()).min(full);
        self.at = self.at.max(now);
        self.level
    }

    /// Takes `octets` that are asked for.
    pub(super) fn take(&mut self, octets: f64) {
        self.level -= octets;
    }

    /// Gives back `octets` that were asked for and did not come. They do not expire, but they are few, because the answers
    /// may still come.
    pub(super) fn give_back(&mut self, now: Time, octets: f64) {
        let most = (self.per_second() * GIVEN_BACK_S).max(self.level(now));
        self.level = (self.level + octets).min(most);
    }

    /// Drops what was asked for too much, because the return is idle and no answers are outstanding.
    pub(super) fn forgive(&mut self) {
        self.level = self.level.max(0.0);
    }

    /// Returns `true` if nothing has come for longer than `trip`, so that no queue on the way holds answers.
    pub(super) fn is_idle(&self, now: Time, trip: Span) -> bool {
        self.arrivals.back().is_none_or(|&(at, _)| now.since(at) > trip.max(QUEUED))
    }

    /// Returns `true` if the last queue has had the time to empty.
    pub(super) fn has_drained(&self, now: Time) -> bool {
        now >= self.drained_by || self.is_idle(now, Span::ZERO)
    }

    /// Records that `octets` came.
    pub(super) fn arrived(&mut self, now: Time, octets: u32) {
        while self.arrivals.front().is_some_and(|&(at, _)| now.since(at) > MEASURED)
            || self.arrivals.len() >= MOST_ARRIVALS
        {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, octets));
    }

    /// Returns the octets a second that arrived in the last `window`.
    fn arrival_rate(&self, now: Time, window: Span) -> f64 {
        let recent = self.arrivals.iter().rev().take_while(|&&(at, _)| now.since(at) <= window);
        recent.map(|&(_, octets)| f64::from(octets)).sum::<f64>() / window.as_secs_f64()
    }

    /// Returns `true` if the rate was lowered after a call that was made `since` ago: its answer tells nothing of the
    /// present rate.
    pub(super) fn is_outdated(&self, now: Time, since: Span) -> bool {
        self.lowered_at > Time::ZERO && now.since(self.lowered_at) < since
    }

    /// Judges an answer that came `late` after the shortest possible time, where answers take about `trip`. Returns
    /// `true` if answers wait in a queue.
    pub(super) fn judge(&mut self, now: Time, late: Span, trip: Span) -> bool {
        if self.given || now < self.judged_until {
            return false;
        }
        if self.delays.len() == COMPARED.1 {
            self.delays.pop_front();
        }
        self.delays.push_back(late);
        // The first message in this time may have been sent before it.
        let first =
            self.arrivals.iter().find(|&&(at, _)| now.since(at) <= PROVEN).map_or(0, |&(_, octets)| octets);
        let proven = self.arrival_rate(now, PROVEN) - f64::from(first) / PROVEN.as_secs_f64();
        self.carried = self.carried.max(proven);
        if self.delays.len() < COMPARED.0 {
            return false;
        }
        let mut delays: Vec<Span> = self.delays.iter().copied().collect();
        delays.sort_unstable();
        let (queue, usual) =
            (delays[delays.len() / ALL_WAIT], delays[delays.len() * MOST_PROMPT.0 / MOST_PROMPT.1]);
        // Where answers take long by themselves, they also vary more.
        if queue < QUEUED.max(trip / 2) {
            if usual < PROMPT.max(trip / 4) {
                self.raise(now, trip);
            }
            return false;
        }
        let arrives = self.arrival_rate(now, queue.min(MEASURED));
        self.lower(now, arrives, queue);
        true
    }

    /// Lowers the rate, because only the `part` of the answers came.
    pub(super) fn lose(&mut self, now: Time, part: f64) {
        let carries = (self.per_second() * part).min(self.carried * PROVED);
        self.lower(now, carries, Span::ZERO);
    }

    /// Takes `carries` octets a second for the rate of the return, because answers to calls for more wait in a queue of
    /// `queue` or are lost. Nothing more is asked for until the queue is empty.
    fn lower(&mut self, now: Time, carries: f64, queue: Span) {
        // What has arrived in two seconds is proved, even if more was asked for than the rate admits.
        let most = self.rate.max((self.carried * CARRIED).min(self.most)).max(LEAST);
        self.rate = (carries.max(self.carried) * CARRIED).clamp(LEAST, most);
        // The first queue may have come from a burst, so that the rate shows only slowly.
        let again = if self.supposed.is_none() { self.most * LOWERED } else { self.rate * TRIED_AGAIN };
        self.most = (self.rate * REGAINED).max(again.min(self.most));
        self.supposed = None;
        // A burst, perhaps of forged messages, must not stand for the return for good.
        self.carried *= FADED;
        self.level = self.level.min(0.0) - queue.as_secs_f64() * self.rate;
        (self.drained_by, self.lowered_at) = (now + LONGEST_QUEUE, now);
        self.wait_until(now + queue + Span::from_secs(2));
    }

    /// Returns `true` if the user has given the rate.
    pub(super) fn is_given(&self) -> bool {
        self.given
    }

    /// Raises the rate, if the return has carried most of what may be asked for at the present one.
    fn raise(&mut self, now: Time, trip: Span) {
        let window = Span::from_secs(1);
        if self.arrival_rate(now, window) < self.per_second() * ARRIVES {
            return;
        }
        let (factor, pause) = if self.supposed.is_some() { (2.0, trip + QUEUED) } else { (1.02, window) };
        self.most = self.most.max((self.rate * factor).min(self.carried * BEYOND));
        self.rate = (self.rate * factor).min(self.most).max(self.rate);
        self.wait_until(now + pause);
    }

    fn wait_until(&mut self, time: Time) {
        self.judged_until = time;
        self.delays.clear();
    }
}

/// Tokens that may be sent to receivers that answer calls: calls for more answers would be vain.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    /// Number that may be sent in a second; unlimited where receivers need none.
    per_second: f64,
    level: f64,
    at: Time,
}

impl Tokens {
    pub(super) fn new(per_second: f64) -> Self {
        Self { per_second, level: per_second, at: Time::ZERO }
    }

    /// Returns the number of answers that may be called for now, if each takes a token. It saves up those of a second.
    pub(super) fn level(&mut self, now: Time) -> f64 {
        if self.per_second.is_finite() {
            let passed = now.since(self.at).as_secs_f64();
            self.level = (self.level + passed * self.per_second).min(self.per_second);
            self.at = self.at.max(now);
        }
        self.level
    }

    /// Gives back the tokens of so many `answers` that did not come.
    pub(super) fn give_back(&mut self, now: Time, answers: f64) {
        let most = self.per_second.max(self.level(now));
        self.level = (self.level + answers).min(most);
    }

    /// Takes the tokens of so many `answers`.
    pub(super) fn take(&mut self, answers: f64) {
        if self.per_second.is_finite() {
            self.level -= answers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Span = Span::from_millis(540);

    /// Has messages of `octets` octets arrive from `begin` on, one each 10 ms for `span`, each `late` behind the shortest.
    fn answers(allowance: &mut Allowance, begin: Time, span: Span, octets: u32, late: Span) -> Time {
        let mut now = begin;
        while now < begin + span {
            allowance.arrived(now, octets);
            allowance.judge(now, late, TRIP);
            now += Span::from_millis(10);
        }
        now
    }

    #[test]
    fn a_forged_flood_does_not_raise_the_rate_for_good() {
        let most = 50_000.0;
        let mut allowance = Allowance::new(None, 8_000.0, most);
        // A megabyte a second comes, and then the answers of a return of 8 kB a second, which wait in a queue.
        let late = Span::from_millis(800);
        let mut now = answers(&mut allowance, Time::ZERO, Span::from_secs(3), 10_000, late);
        assert!(allowance.rate() <= most, "{}", allowance.rate());
        let flooded = allowance.rate();
        for _ in 0..200 {
            now = answers(&mut allowance, now + Span::from_secs(3), Span::from_secs(3), 80, late);
        }
        assert!(allowance.rate() < flooded / 2.0, "{} of {flooded}", allowance.rate());
    }

    #[test]
    fn a_rate_that_a_burst_hid_is_tried_again() {
        let mut allowance = Allowance::new(None, 8_000.0, 50_000.0);
        let (prompt, queued) = (Span::ZERO, Span::from_millis(800));
        let now = answers(&mut allowance, Time::ZERO, Span::from_secs(3), 40, prompt);
        let now = answers(&mut allowance, now, Span::from_secs(1), 40, queued);
        let lowered = allowance.rate();
        assert!((3_000.0..4_500.0).contains(&lowered), "{lowered}");
        answers(&mut allowance, now + Span::from_secs(5), Span::from_secs(120), 80, prompt);
        let raised = allowance.rate();
        let arrived = 8_000.0;
        assert!(raised > lowered * 1.9 && raised <= arrived * BEYOND, "{raised}, {lowered} before");
    }

    #[test]
    fn answers_that_collide_do_not_look_like_a_queue() {
        let mut allowance = Allowance::new(None, 1_200.0, 50_000.0);
        let (mut now, collided) = (Time::ZERO, Span::from_secs(2));
        for n in 0..400 {
            now += Span::from_millis(100);
            allowance.arrived(now, 91);
            // Two of five need one attempt.
            let late = if n % 5 < 2 { Span::ZERO } else { collided };
            assert!(!allowance.judge(now, late, TRIP), "after {n} answers");
        }
        assert!(allowance.rate() >= 600.0, "{}", allowance.rate());
    }

    #[test]
    fn false_queues_do_not_limit_the_rate_for_good() {
        let mut allowance = Allowance::new(None, 1_200.0, 50_000.0);
        let (prompt, queued) = (Span::ZERO, Span::from_secs(1));
        let mut now = Time::ZERO;
        for _ in 0..5 {
            now = answers(&mut allowance, now + Span::from_secs(5), Span::from_secs(1), 4, queued);
        }
        let lowered = allowance.rate();
        answers(&mut allowance, now + Span::from_secs(5), Span::from_secs(120), 14, prompt);
        assert!(allowance.rate() > lowered * 1.9, "{}, {lowered} before", allowance.rate());
        assert!(allowance.rate() <= 1_400.0 * BEYOND, "{}", allowance.rate());
    }

    #[test]
    fn answers_to_calls_before_the_rate_was_lowered_tell_nothing() {
        let mut allowance = Allowance::new(None, 8_000.0, 50_000.0);
        let trip = Span::from_secs(1);
        assert!(!allowance.is_outdated(Time::ZERO + trip, trip * 2), "it was not lowered yet");
        let now = answers(&mut allowance, Time::ZERO, Span::from_secs(3), 40, trip);
        let lowered = now.since(allowance.lowered_at);
        assert!(allowance.is_outdated(now, lowered + trip));
        assert!(!allowance.is_outdated(now + trip, lowered + trip / 2));
    }

    #[test]
    fn what_does_not_come_is_asked_for_again_but_not_all_at_once() {
        let mut allowance = Allowance::new(Some(8_000.0), 1_000.0, 50_000.0);
        let (now, second) = (Time::ZERO + Span::from_secs(10), allowance.per_second());
        assert!(allowance.level(now) <= second * SAVED_S);
        allowance.take(second * 0.5);
        allowance.give_back(now, second * 0.4);
        let later = now + Span::from_millis(500);
        assert!(
            (allowance.level(later) - second * 0.5).abs() < 1.0,
            "time adds what is missing to the full amount"
        );
        allowance.give_back(later, second * 0.4);
        assert!((allowance.level(later) - second * 0.9).abs() < 1.0, "{}", allowance.level(later));
        allowance.give_back(later, second * 9.0);
        assert!(allowance.level(later) <= second * GIVEN_BACK_S + 1.0);
    }
}
