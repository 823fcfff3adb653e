//! A table of the conditions of a link by time.

use alloc::sync::Arc;
use alloc::vec::Vec;

use farcast_core::{BitRate, Probability, Span, Time};

use super::TimelineError;
use super::error::quoted;

/// The most lines of a timeline behind its header.
const MOST_LINES: usize = 1_000_000;

/// Conditions of a link in a line of a [`Timeline`]. A column that the table lacks has its default.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// The rate in bit/s; 0 is an outage. Without the column sending takes no time.
    pub rate: Option<u64>,
    /// The one-way delay; zero without the column.
    pub delay: Span,
    /// The probability with which a frame is lost; 0 without the column.
    pub per: Probability,
}

/// Rate, delay and loss by time: each step holds until the next, the last for good or until the table repeats.
///
/// As text it is CSV with a header: `time_s` first, then one or more of `rate_bit_per_s`, `delay_s` and `per`, in any
/// order. The first time is 0, and times ascend.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// Ascending by start; the first starts at zero.
    steps: Vec<TimelineStep>,
    period: Option<Span>,
    columns: Columns,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct TimelineStep {
    start: Span,
    conditions: Conditions,
}

/// Columns of a table: the place of each that it has, behind the time, and their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Columns {
    rate: Option<usize>,
    delay: Option<usize>,
    per: Option<usize>,
    count: usize,
}

impl Timeline {
    /// Reads a table. With a `period` it repeats, else its last line holds for good.
    ///
    /// Times are 0 to 1e9 s, rates 0 or 1 to 1e12 bit/s (rounded to whole bit/s), delays 0 to 1e9 s, loss 0 to 1; at
    /// most a million lines.
    ///
    /// # Errors
    /// [`TimelineError`], with the line. A rate that is 0 throughout is an error, for nothing would ever leave.
    pub fn parse(text: &str, period: Option<Span>) -> Result<Self, TimelineError> {
        let mut lines = super::content(text).lines();
        let columns = Columns::parse(lines.next().unwrap_or(""))?;
        let mut steps: Vec<TimelineStep> = Vec::new();
        for (line, text) in (2..).zip(lines) {
            if steps.len() == MOST_LINES {
                return Err(TimelineError::TooLong { most: MOST_LINES });
            }
            let step = columns.step(line, text)?;
            match steps.last() {
                None if !step.start.is_zero() => return Err(TimelineError::Start { line }),
                Some(before) if step.start <= before.start => return Err(TimelineError::Order { line }),
                _ => steps.push(step),
            }
        }
        let last = steps.last().ok_or(TimelineError::Empty)?.start;
        if let Some(period) = period.filter(|&period| period <= last) {
            return Err(TimelineError::Period { period, last });
        }
        if steps.iter().all(|step| step.conditions.rate == Some(0)) {
            return Err(TimelineError::NeverOpen);
        }
        Ok(Self { steps, period, columns })
    }

    /// Returns `true` if the timeline has a column of rates.
    pub const fn has_rate(&self) -> bool {
        self.columns.rate.is_some()
    }

    /// Returns `true` if the timeline has a column of delays.
    pub const fn has_delay(&self) -> bool {
        self.columns.delay.is_some()
    }

    /// Returns `true` if the timeline has a column of losses.
    pub const fn has_loss(&self) -> bool {
        self.columns.per.is_some()
    }

    /// Returns the highest rate of all lines; `None` without the column.
    pub fn highest_rate(&self) -> Option<BitRate> {
        self.steps.iter().filter_map(|step| step.conditions.rate).max().and_then(BitRate::from_bps)
    }

    /// Returns the shortest delay of all lines; zero without the column.
    pub fn shortest_delay(&self) -> Span {
        self.steps.iter().map(|step| step.conditions.delay).min().unwrap_or(Span::ZERO)
    }

    /// Returns the conditions at `now`, and their end ([`Time::NEVER`]: for good). A step begins at its time.
    pub fn at(&self, now: Time) -> (Conditions, Time) {
        let since_start = now.since(Time::ZERO).as_nanos();
        let laps = self.period.map_or(0, |period| since_start / period.as_nanos());
        let begin = Time::ZERO + self.period.unwrap_or(Span::ZERO) * laps;
        let within = now.since(begin);
        let next = self.steps.partition_point(|step| step.start <= within);
        let until = match (self.steps.get(next), self.period) {
            (Some(step), _) => begin + step.start,
            (None, Some(period)) => begin + period,
            (None, None) => Time::NEVER,
        };
        (self.steps[next - 1].conditions, until)
    }

    /// Returns the work of one repetition. `None` if the timeline does not repeat, or has no rates.
    pub(super) fn lap(&self) -> Option<Lap> {
        let period = self.period.filter(|_| self.has_rate())?;
        let ends = self.steps.iter().skip(1).map(|step| step.start).chain([period]);
        let mut lap = Lap { period, work: 0, open: Span::ZERO };
        for (step, end) in self.steps.iter().zip(ends) {
            let rate = step.conditions.rate.unwrap_or(0);
            let span = end.saturating_sub(step.start);
            lap.work += u128::from(rate) * u128::from(span.as_nanos());
            if rate > 0 {
                lap.open = lap.open + span;
            }
        }
        Some(lap)
    }
}

/// One repetition of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lap {
    pub(super) period: Span,
    /// Work at full use: bit/s times nanoseconds, above zero.
    pub(super) work: u128,
    /// The time in which the rate is above 0.
    pub(super) open: Span,
}

impl Columns {
    fn parse(header: &str) -> Result<Self, TimelineError> {
        let wrong = || TimelineError::Header(quoted(header));
        let mut columns = Self { count: 1, ..Self::default() };
        let mut names = header.split(',').map(unquoted);
        if names.next() != Some("time_s") {
            return Err(wrong());
        }
        for name in names {
            let place = match name {
                "rate_bit_per_s" => &mut columns.rate,
                "delay_s" => &mut columns.delay,
                "per" => &mut columns.per,
                _ => return Err(wrong()),
            };
            if place.replace(columns.count).is_some() {
                return Err(wrong());
            }
            columns.count += 1;
        }
        if columns.count == 1 { Err(wrong()) } else { Ok(columns) }
    }

    fn step(&self, line: usize, text: &str) -> Result<TimelineStep, TimelineError> {
        let mut fields = [""; 4];
        let mut found = 0;
        for field in text.split(',') {
            if let Some(place) = fields.get_mut(found) {
                *place = unquoted(field);
            }
            found += 1;
        }
        if found != self.count {
            return Err(TimelineError::Fields { line, found, needed: self.count });
        }
        let field =
            |place: Option<usize>, limits| place.map(|place| number(line, fields[place], limits)).transpose();
        let start = number(line, fields[0], &TIME)?;
        let rate = field(self.rate, &RATE)?.map(|rate| (rate + 0.5) as u64);
        let delay = Span::from_secs_f64(field(self.delay, &DELAY)?.unwrap_or(0.0));
        let per = field(self.per, &LOSS)?.and_then(Probability::new).unwrap_or(Probability::ZERO);
        Ok(TimelineStep { start: Span::from_secs_f64(start), conditions: Conditions { rate, delay, per } })
    }
}

/// Returns a field without spaces around it and without the quotes that RFC 4180 allows; no field here has a comma in
/// it.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).map_or(field, str::trim)
}

/// Allowed values of a column.
struct Limits {
    column: &'static str,
    range: &'static str,
    allowed: fn(f64) -> bool,
}

const TIME: Limits =
    Limits { column: "time_s", range: "0 to 1e9", allowed: |value| (0.0..=1e9).contains(&value) };
const RATE: Limits = Limits {
    column: "rate_bit_per_s",
    range: "0 for an outage, or 1 to 1e12",
    allowed: |value| value == 0.0 || (1.0..=1e12).contains(&value),
};
const DELAY: Limits =
    Limits { column: "delay_s", range: "0 to 1e9", allowed: |value| (0.0..=1e9).contains(&value) };
const LOSS: Limits = Limits { column: "per", range: "0 to 1", allowed: |value| (0.0..=1.0).contains(&value) };

fn number(line: usize, text: &str, limits: &Limits) -> Result<f64, TimelineError> {
    let allowed = text.parse().ok().filter(|&value| (limits.allowed)(value));
    allowed.ok_or_else(|| {
        let Limits { column, range, .. } = *limits;
        TimelineError::Value { line, column, text: quoted(text), range }
    })
}

/// The present conditions of a timeline that is read again and again, mostly within one step.
#[derive(Clone, Debug)]
pub(crate) struct TimelineCursor {
    timeline: Arc<Timeline>,
    from: Time,
    until: Time,
    conditions: Conditions,
}

impl TimelineCursor {
    pub(crate) fn new(timeline: Arc<Timeline>) -> Self {
        let (conditions, until) = timeline.at(Time::ZERO);
        Self { timeline, from: Time::ZERO, until, conditions }
    }

    /// Returns the conditions at `now`, and their end.
    pub(crate) fn at(&mut self, now: Time) -> (Conditions, Time) {
        if !(self.from..self.until).contains(&now) {
            (self.conditions, self.until) = self.timeline.at(now);
            self.from = now;
        }
        (self.conditions, self.until)
    }
}

#[cfg(test)]
mod tests;
