//! The receive window of one source: the missing numbers, and the state machine by which they are requested (RFC 3208
//! §6.1, §6.3).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use farcast_core::{Span, Time};

use crate::sqn::Place;

/// The most numbers that are requested at once; the others wait for their turn.
const MOST_ASKED: usize = 4096;
/// The most gaps that may wait.
pub(super) const MOST_GAPS: usize = 1 << 16;

/// Wait for a confirmation, as a multiple of the time that confirmations have taken.
const MARGIN: (u64, u64) = (8, 5);
/// The longest such wait, as a multiple of the one that was set.
const FARTHEST: u64 = 8;
/// Divisor of the weight of a new measurement.
const SMOOTHING: u64 = 8;

/// Places from the first up to, but not with, the second.
pub(super) type Range = core::ops::Range<Place>;

/// State of a missing number (RFC 3208 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A request leaves when the back-off ends, unless another receiver's request is heard before.
    Backoff,
    /// A request was sent or heard, and its confirmation has yet to come.
    WaitNcf,
    /// A request was confirmed, and the data have yet to come.
    WaitData,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    state: State,
    due: Time,
    /// Time at which its first request left.
    asked: Option<Time>,
    ncf_retries: u32,
    data_retries: u32,
}

impl Missing {
    /// Returns the time at which the only request for the number left. After a repeated request a confirmation does not
    /// measure the round trip, as in TCP (Karn's algorithm).
    fn asked_once(&self) -> Option<Time> {
        self.asked.filter(|_| (self.ncf_retries, self.data_retries) == (0, 0))
    }
}

/// Intervals and repetitions of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub(crate) confirm: Span,
    /// `true` if `confirm` grows with the time that confirmations take.
    pub(crate) adapts: bool,
    pub(crate) repair: Span,
    pub(crate) confirm_retries: u32,
    pub(crate) repair_retries: u32,
}

impl Intervals {
    /// Returns the wait for a confirmation, if confirmations have taken `measured`. A request that is repeated before
    /// its confirmation can come makes the source repair once more. So the wait grows if the source is farther away
    /// than was assumed.
    fn confirm_after(&self, measured: Option<Span>) -> Span {
        let measured = measured.filter(|_| self.adapts);
        let farther = measured.map_or(Span::ZERO, |measured| measured * MARGIN.0 / MARGIN.1);
        self.confirm.max(farther.min(self.confirm * FARTHEST))
    }
}

/// Numbers whose timers have expired.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Places that are to be requested now, oldest first.
    pub(super) ask: Vec<Place>,
    /// Places that are given up.
    pub(super) lost: Vec<Place>,
}

#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Place before which nothing is wanted.
    begin: Place,
    /// Place before which everything has come or is lost for good.
    trail: Place,
    /// Place behind the newest number that is known.
    lead: Place,
    missing: BTreeMap<Place, Missing>,
    deadlines: BTreeSet<(Time, Place)>,
    /// Other missing ranges, which are not requested yet: from the first place to the place behind the last.
    gaps: BTreeMap<Place, Place>,
    /// Time from a request that was sent once to its confirmation, smoothed.
    confirmation: Option<Span>,
    /// Assumed time of the same, after a request was repeated before any confirmation could be measured.
    assumed: Option<Span>,
}

impl Window {
    /// Creates a window that begins with `place`.
    pub(super) fn new(place: Place) -> Self {
        let (missing, deadlines, gaps) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self {
            begin: place,
            trail: place,
            lead: place,
            missing,
            deadlines,
            gaps,
            confirmation: None,
            assumed: None,
        }
    }

    pub(super) fn begin(&self) -> Place {
        self.begin
    }

    /// Extends the window back to `place`: everything from there to its old beginning is wanted.
    pub(super) fn rejoin(&mut self, place: Place) {
        if place < self.begin {
            self.gaps.insert(place, self.begin);
            self.trail = self.trail.min(place);
            self.begin = place;
        }
    }

    pub(super) fn trail(&self) -> Place {
        self.trail
    }

    pub(super) fn lead(&self) -> Place {
        self.lead
    }

    /// Returns `true` if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.gaps.is_empty()
    }

    /// Returns `true` if no further gap can be held.
    pub(super) fn is_full(&self) -> bool {
        self.gaps.len() >= MOST_GAPS
    }

    /// Returns the first missing place, if any.
    pub(super) fn first_missing(&self) -> Option<Place> {
        let gap = self.gaps.first_key_value().map(|(&place, _)| place);
        let asked = self.missing.first_key_value().map(|(&place, _)| place);
        gap.into_iter().chain(asked).min()
    }

    pub(super) fn is_missing(&self, place: Place) -> bool {
        self.missing.contains_key(&place) || self.gap_of(place).is_some()
    }

    fn gap_of(&self, place: Place) -> Option<(Place, Place)> {
        let (&first, &end) = self.gaps.range(..=place).next_back()?;
        (place < end).then_some((first, end))
    }

    /// Notes that everything before `lead` has been sent.
    pub(super) fn extend(&mut self, lead: Place) {
        if lead > self.lead {
            self.gaps.insert(self.lead, lead);
            self.lead = lead;
        }
    }

    /// Notes that `place` has come. Returns `true` if it was missing.
    pub(super) fn settle(&mut self, place: Place) -> bool {
        if let Some(missing) = self.missing.remove(&place) {
            self.deadlines.remove(&(missing.due, place));
            return true;
        }
        let Some((first, end)) = self.gap_of(place) else { return false };
        self.gaps.remove(&first);
        if first < place {
            self.gaps.insert(first, place);
        }
        if place.next() < end {
            self.gaps.insert(place.next(), end);
        }
        true
    }

    /// Notes that a range has come.
    pub(super) fn settle_all(&mut self, range: &Range) {
        if range.is_empty() {
            return;
        }
        let asked: Vec<Place> = self.missing.range(range.clone()).map(|(&place, _)| place).collect();
        for place in asked {
            self.settle(place);
        }
        let gaps: Vec<(Place, Place)> = self.gaps.range(..range.end).map(|(&a, &b)| (a, b)).collect();
        for (first, end) in gaps.into_iter().filter(|&(_, end)| end > range.start) {
            self.gaps.remove(&first);
            if first < range.start {
                self.gaps.insert(first, range.start);
            }
            if end > range.end {
                self.gaps.insert(range.end, end);
            }
        }
    }

    /// Notes that the number at the lead has come: only the lead moves.
    pub(super) fn follow(&mut self) {
        self.lead = self.lead.next();
    }

    /// Notes that `range` is missing again.
    pub(super) fn unsettle(&mut self, range: &Range) {
        self.settle_all(range);
        if range.start < range.end {
            self.gaps.insert(range.start, range.end);
        }
    }

    /// Notes that nothing before `trail` can be obtained any more. Returns the ranges that are lost, in order.
    pub(super) fn advance(&mut self, trail: Place) -> Vec<Range> {
        let mut lost = Vec::new();
        if trail <= self.trail {
            return lost;
        }
        self.extend(trail);
        while let Some(first) = self.first_missing().filter(|&first| first < trail) {
            let mut end = self.gap_of(first).map_or(first.next(), |(_, end)| end.min(trail));
            self.settle_all(&(first..end));
            // Adjacent places that are being requested belong to the same range.
            while end < trail && self.missing.contains_key(&end) {
                self.settle(end);
                end = end.next();
            }
            lost.push(first..end);
        }
        self.trail = trail;
        lost
    }

    /// Starts the back-offs of gaps before `limit`; the back-offs end at `due`.
    ///
    /// Gaps in `others`, which are in order, are not requested here.
    pub(super) fn fill(&mut self, limit: Place, others: &[Range], due: impl FnOnce() -> Time) {
        let (mut due, mut at) = (Err(due), Place(0));
        while self.missing.len() < MOST_ASKED {
            let next = || self.gaps.range(at..).next().map(|(&first, &end)| (first, end));
            let Some((first, end)) = self.gap_of(at).or_else(next) else { break };
            let begin = first.max(at);
            if begin >= limit {
                break;
            }
            if let Some(other) = others.iter().find(|other| other.contains(&begin)) {
                at = other.end;
                continue;
            }
            let other = others.iter().map(|other| other.start).find(|&start| start > begin);
            let room = (MOST_ASKED - self.missing.len()) as u32;
            let until = end.min(limit).min(begin.plus(room)).min(other.unwrap_or(end));
            let ends = match due {
                Ok(ends) => ends,
                Err(draw) => draw(),
            };
            due = Ok(ends);
            self.gaps.remove(&first);
            if first < begin {
                self.gaps.insert(first, begin);
            }
            if until < end {
                self.gaps.insert(until, end);
            }
            for number in begin.0..until.0 {
                let (state, due) = (State::Backoff, ends);
                self.put(Place(number), Missing { state, due, asked: None, ncf_retries: 0, data_retries: 0 });
            }
            at = until;
        }
    }

    fn put(&mut self, place: Place, missing: Missing) {
        if let Some(before) = self.missing.insert(place, missing) {
            self.deadlines.remove(&(before.due, place));
        }
        self.deadlines.insert((missing.due, place));
    }

    /// Notes that a request for `place` was confirmed, or that another receiver made one. By RFC 3208 §6.3 another
    /// receiver's request has to be confirmed too, and a number that waits for data keeps waiting.
    pub(super) fn heard(&mut self, now: Time, place: Place, is_confirmed: bool, intervals: &Intervals) {
        let Some(&missing) = self.missing.get(&place) else { return };
        let (state, wait) = if is_confirmed || missing.state == State::WaitData {
            (State::WaitData, intervals.repair)
        } else {
            (State::WaitNcf, self.confirm(&missing, intervals))
        };
        if is_confirmed
            && missing.state == State::WaitNcf
            && let Some(asked) = missing.asked_once()
        {
            let took = now.since(asked);
            let smoothed = |before: Span| (before * (SMOOTHING - 1) + took) / SMOOTHING;
            self.confirmation = Some(self.confirmation.map_or(took, smoothed));
        }
        self.put(place, Missing { state, due: now + wait, ..missing });
    }

    /// Returns the wait for a confirmation. The assumed time applies only to numbers whose request was not repeated
    /// yet, so that it does not slow down repetitions.
    fn confirm(&self, missing: &Missing, intervals: &Intervals) -> Span {
        let assumed = self.assumed.filter(|_| missing.ncf_retries == 0);
        intervals.confirm_after(self.confirmation.or(assumed))
    }

    /// Returns the time at which something is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Handles everything that is due; new back-offs end at `backoff`.
    pub(super) fn expire(
        &mut self,
        now: Time,
        intervals: &Intervals,
        mut backoff: impl FnMut() -> Time,
    ) -> Due {
        let mut due = Due::default();
        let mut again = None;
        while let Some(&(at, place)) = self.deadlines.first().filter(|&&(at, _)| at <= now) {
            self.deadlines.remove(&(at, place));
            let Some(&missing) = self.missing.get(&place) else { continue };
            let mut next = missing;
            let confirm = self.confirm(&missing, intervals);
            match missing.state {
                State::Backoff => {
                    due.ask.push(place);
                    (next.state, next.due) = (State::WaitNcf, now + confirm);
                    next.asked = next.asked.or(Some(now));
                    self.put(place, next);
                    continue;
                }
                // Confirmations take longer than was known when this number was requested.
                State::WaitNcf if missing.asked_once().is_some_and(|asked| asked + confirm > now) => {
                    next.due = missing.asked.map_or(now, |asked| asked + confirm);
                    self.put(place, next);
                    continue;
                }
                State::WaitNcf => {
                    next.ncf_retries += 1;
                    self.assumed = Some(intervals.confirm * 2 * MARGIN.1 / MARGIN.0);
                }
                State::WaitData => next.data_retries += 1,
            }
            let over =
                next.ncf_retries > intervals.confirm_retries || next.data_retries > intervals.repair_retries;
            if over {
                self.missing.remove(&place);
                due.lost.push(place);
            } else {
                next.state = State::Backoff;
                next.due = *again.get_or_insert_with(&mut backoff);
                self.put(place, next);
            }
        }
        due.ask.sort_unstable();
        due.lost.sort_unstable();
        due
    }

    /// Postpones a request that could not be sent until `due`.
    pub(super) fn postpone(&mut self, place: Place, due: Time) {
        if let Some(&missing) = self.missing.get(&place) {
            self.put(place, Missing { state: State::Backoff, due, ..missing });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVALS: Intervals = Intervals {
        confirm: Span::from_millis(800),
        adapts: true,
        repair: Span::from_secs(2),
        confirm_retries: 10,
        repair_retries: 10,
    };

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// Returns a window that lacks places 0 to 9 and has asked for them at 100 ms.
    fn asking() -> Window {
        let mut window = Window::new(Place(0));
        window.extend(Place(10));
        window.fill(Place(5), &[], || ms(100));
        assert_eq!(window.expire(ms(100), &INTERVALS, || ms(100)).ask.len(), 5);
        window
    }

    #[test]
    fn a_request_is_not_repeated_before_its_confirmation_can_come() {
        let mut window = asking();
        // Nothing is known yet: the first is repeated after 0.8 s, and the others then wait for twice as long.
        assert_eq!(window.expire(ms(900), &INTERVALS, || ms(950)).ask, []);
        assert_eq!(window.expire(ms(950), &INTERVALS, || ms(950)).ask, [Place(0)]);
        window.heard(ms(1100), Place(0), true, &INTERVALS);
        assert_eq!(window.confirmation, None, "which of both requests was confirmed is unknown");
        // Others are asked for once, and their confirmation tells.
        window.fill(Place(10), &[], || ms(1650));
        assert_eq!(window.expire(ms(1650), &INTERVALS, || ms(1650)).ask, [5, 6, 7, 8, 9].map(Place));
        window.heard(ms(2650), Place(5), true, &INTERVALS);
        assert_eq!(window.confirmation, Some(Span::from_secs(1)));
        // The rest waits for 1.6 s from its request on.
        let mut asked = |at| {
            let mut ask = window.expire(ms(at), &INTERVALS, || ms(at)).ask;
            ask.retain(|&place| place > Place(5));
            ask
        };
        assert_eq!(asked(3200), []);
        assert_eq!(asked(3300), [6, 7, 8, 9].map(Place));
    }

    #[test]
    fn near_sources_and_far_ones_change_little() {
        assert_eq!(INTERVALS.confirm_after(None), INTERVALS.confirm);
        assert_eq!(INTERVALS.confirm_after(Some(Span::from_millis(10))), INTERVALS.confirm);
        assert_eq!(INTERVALS.confirm_after(Some(Span::from_secs(3600))), INTERVALS.confirm * 8);
    }
}
