//! Record of a transfer at a sender.

use super::course::{Course, MOST_BINS};
use super::units::{self, Unit};
use super::{Close, Words};
use crate::page::{Axis, Bar, Cell, Chart, Column, Download, Figure, Mood, Page, Part, Point, Series, Table};

/// Most receivers that have a curve each; of more, quantiles are drawn.
const MOST_CURVES: usize = 12;
/// Most rounds that are listed one by one.
const MOST_ROUNDS: usize = 1000;
/// Pause after each look at receivers, in s for each receiver, so that looking costs the sender little.
const LOOK_PER_RECEIVER: f64 = 1e-5;
/// Quantiles shown of many receivers.
const QUANTILES: [(f64, &str); 4] = [(0.0, "least"), (0.05, "5 %"), (0.5, "median"), (0.95, "95 %")];
/// Names of the kinds of octets that leave.
const KINDS: [&str; 4] = ["data", "repairs", "parity", "control"];
/// Number of columns: the kinds, octets heard, requests, segments asked for.
const PASSING: usize = KINDS.len() + 3;
const REQUESTS: usize = 5;
const ASKED: usize = 6;

/// Totals so far: octets sent with all headers, by their purpose, and what was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Octets of segments in the first round.
    pub data: u64,
    /// Octets of segments in later rounds.
    pub repairs: u64,
    /// Octets of parity symbols.
    pub parity: u64,
    /// Octets of everything else that was sent.
    pub control: u64,
    /// Octets that were heard, without headers of UDP and IP.
    pub heard: u64,
    /// Requests for repair that were heard.
    pub requests: u64,
    /// Segments for which the requests asked.
    pub asked: u64,
}

impl Totals {
    fn columns(self) -> [u64; PASSING] {
        [self.data, self.repairs, self.parity, self.control, self.heard, self.requests, self.asked]
    }
}

/// State of a receiver, as far as its sender knows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Receiver {
    /// Name of the receiver.
    pub name: String,
    /// State in words.
    pub state: String,
    /// True if it is known to have everything.
    pub complete: bool,
    /// Time at which it had everything, in s.
    pub time_s: Option<f64>,
    /// Segments that it asked for again.
    pub asked: Option<u64>,
    /// Share of the sent segments that it asked for again, in %.
    pub loss_percent: Option<f64>,
    /// Requests for repair that it sent.
    pub requests: Option<u64>,
}

struct Round {
    began_s: f64,
    number: u32,
}

/// Record of a transfer at a sender.
pub struct Sending {
    words: Words,
    /// Traffic in each bin.
    passing: Course,
    totals: Totals,
    /// Time of the last record, in s.
    seen_s: f64,
    rounds: Vec<Round>,
    /// Number of rounds that are not listed.
    more_rounds: u32,
    /// Receivers that have a curve, in the order of their first appearance.
    names: Vec<String>,
    /// Share of the whole that each of these has, in %.
    shares: Course,
    /// Quantiles of that share over all receivers, and the number of receivers that have everything.
    crowd: Course,
    /// Time of the next look at receivers, in s.
    next_look_s: f64,
}

impl Sending {
    /// Creates an empty record, for a protocol with these terms.
    pub fn new(words: Words) -> Self {
        Self {
            words,
            passing: Course::of_counts(PASSING),
            totals: Totals::default(),
            seen_s: 0.0,
            rounds: Vec::new(),
            more_rounds: 0,
            names: Vec::new(),
            shares: Course::of_levels(MOST_CURVES),
            crowd: Course::of_levels(QUANTILES.len() + 1),
            next_look_s: 0.0,
        }
    }

    /// Records the totals until `at_s`.
    pub fn passed(&mut self, at_s: f64, totals: Totals) {
        let at_s = at_s.max(self.seen_s);
        let (now, before) = (totals.columns(), self.totals.columns());
        let mut more = [0.0; REQUESTS];
        for (more, (now, before)) in more.iter_mut().zip(now.into_iter().zip(before)) {
            *more = now.saturating_sub(before) as f64;
        }
        let (from, to) = (self.seen_s, at_s);
        self.passing.count(from, to, &more);
        for column in [REQUESTS, ASKED] {
            self.passing.tally(from, to, column, now[column].saturating_sub(before[column]));
        }
        (self.totals, self.seen_s) = (totals, at_s);
    }

    /// Records that a round begins at `at_s`.
    pub fn round(&mut self, at_s: f64, number: u32) {
        if self.rounds.len() < MOST_ROUNDS {
            self.rounds.push(Round { began_s: at_s, number });
        } else {
            self.more_rounds += 1;
        }
    }

    /// Returns `true` if it is time to [look](Self::look) at receivers.
    pub fn wants_look(&self, at_s: f64) -> bool {
        at_s >= self.next_look_s
    }

    /// Records, for all receivers, the share of the whole that each has, 0 to 1.
    pub fn look<'a>(&mut self, at_s: f64, receivers: impl Iterator<Item = (&'a str, f64)>) {
        let mut all = Vec::new();
        let mut shares = [f64::NAN; MOST_CURVES];
        for (name, share) in receivers {
            all.push(100.0 * share);
            if all.len() > MOST_CURVES && self.names.len() >= MOST_CURVES {
                continue;
            }
            let place = self.names.iter().position(|one| one == name);
            let place = place.or_else(|| {
                (self.names.len() < MOST_CURVES).then(|| self.names.push(name.to_owned()))?;
                Some(self.names.len() - 1)
            });
            if let Some(place) = place {
                shares[place] = 100.0 * share;
            }
        }
        self.next_look_s = at_s + (all.len() as f64 * LOOK_PER_RECEIVER).max(0.9 * self.crowd.width());
        if all.is_empty() {
            return;
        }
        self.shares.note(at_s, &shares);
        all.sort_unstable_by(f64::total_cmp);
        let mut crowd = [0.0; QUANTILES.len() + 1];
        for (value, (part, _)) in crowd.iter_mut().zip(QUANTILES) {
            *value = all[((all.len() - 1) as f64 * part).round() as usize];
        }
        crowd[QUANTILES.len()] = all.iter().rev().take_while(|share| **share >= 100.0).count() as f64;
        self.crowd.note(at_s, &crowd);
    }

    /// Returns the page.
    pub fn page(&self, close: &Close) -> Page {
        let clock = units::time(self.seen_s);
        let x = Axis::linear(&format!("time, {}", clock.name)).from_zero();
        let mut parts = vec![Part::Heading("Delivery".into())];
        parts.extend(self.delivery(close, clock, &x));
        let receivers = self.receivers(&close.receivers);
        let mut downloads = vec![Download {
            name: "summary.json".into(),
            mime: "application/json",
            text: close.summary.clone(),
        }];
        let csv = |name: &str, text: String| Download { name: name.into(), mime: "text/csv", text };
        if close.receivers.is_empty() {
            parts
                .push(Part::Text("No receiver is known to the sender: who has what, it cannot tell.".into()));
        } else {
            downloads.push(csv("receivers.csv", receivers.csv()));
            parts.push(Part::Table(receivers));
        }
        parts.push(Part::Heading("Sending".into()));
        parts.extend(self.rate(clock, &x));
        parts.extend(self.overhead(close.size));
        parts.push(Part::Heading("Feedback".into()));
        parts.extend(self.feedback(clock, &x));
        if !self.rounds.is_empty() {
            // A protocol with short rounds has many of them.
            let rounds = self.rounds(&close.sent_per_round);
            downloads.push(csv("rounds.csv", rounds.csv()));
            parts.extend([Part::Heading(capital(self.words.round.many)), Part::Table(rounds)]);
        }
        downloads.push(csv("time.csv", self.series()));
        Page {
            title: close.title.clone(),
            lead: close.lead.clone(),
            settings: close.settings.clone(),
            parts,
            downloads,
            made_by: close.made_by.clone(),
        }
    }

    /// Returns the figures of the share that receivers have over time, and of the number that have everything.
    fn delivery(&self, close: &Close, clock: Unit, x: &Axis) -> Vec<Part> {
        let (known, mut parts) = (close.receivers.len().max(self.names.len()), Vec::new());
        let course = |title: &str, note: &str, y: Axis, series: Vec<Series>, has_steps| {
            let chart = Chart::Course { x: x.clone(), y, series, has_steps };
            Part::Figure(Figure { title: title.into(), note: note.into(), chart })
        };
        let share = || Axis::linear("received, %").from_zero();
        if self.shares.bins().next().is_some() {
            if known <= MOST_CURVES {
                let series = self.names.iter().enumerate();
                let series = series.map(|(column, name)| known_curve(&self.shares, column, name, clock));
                let note =
                    "of each receiver, as far as the sender knows: what it has not asked for again, it has";
                parts.push(course("Delivery over time", note, share(), series.collect(), true));
            } else {
                let series = QUANTILES.into_iter().enumerate();
                let series = series.map(|(column, (_, name))| known_curve(&self.crowd, column, name, clock));
                let note = "of all receivers, as far as the sender knows: the one that has least, and the shares that at most \
                            5 %, half and 95 % of them have";
                parts.push(course("Delivery over time", note, share(), series.collect(), true));
            }
        }
        let mut times: Vec<f64> = close.receivers.iter().filter_map(|one| one.time_s).collect();
        if !times.is_empty() && (known > MOST_CURVES || parts.is_empty()) {
            times.sort_unstable_by(f64::total_cmp);
            let name = "have everything".to_owned();
            let series = vec![Series { name, points: steps(&times, self.drawn_until(), clock) }];
            let y = Axis::linear("receivers").from_zero().of_counts();
            let note = format!("of {known} that are known");
            parts.push(course("Receivers that have everything", &note, y, series, true));
        }
        parts
    }

    /// Returns the end of the curves of traffic, in s.
    fn drawn_until(&self) -> f64 {
        self.passing.bins().last().map_or(self.seen_s, |(begin, _)| begin + self.passing.width())
    }

    fn receivers(&self, receivers: &[Receiver]) -> Table {
        /// Selects a number of a receiver for a column.
        type Value = fn(&Receiver) -> Option<f64>;
        let some = |value: Value| receivers.iter().any(|one| value(one).is_some());
        let asked: Value = |one| one.asked.map(|asked| asked as f64);
        let requests: Value = |one| one.requests.map(|requests| requests as f64);
        let loss: Value = |one| one.loss_percent;
        let asked_again = format!("asked again, {}", self.words.segment.many);
        let numbers = [(asked_again.as_str(), asked), ("loss, %", loss), (self.words.nak.many, requests)];
        let numbers: Vec<_> = numbers.into_iter().filter(|(_, value)| some(*value)).collect();
        let mut columns = vec![Column::text("receiver"), Column::text("state"), Column::number("time, s")];
        columns.extend(numbers.iter().map(|(title, _)| Column::number(title)));
        let row = |one: &Receiver| {
            let mood = if one.complete { Mood::Good } else { Mood::Bad };
            let state = Cell::text(one.state.clone()).with(mood);
            let mut cells = vec![Cell::text(one.name.clone()), state, Cell::number(one.time_s)];
            cells.extend(numbers.iter().map(|(_, value)| Cell::number(value(one))));
            cells
        };
        Table { caption: "Receivers".into(), columns, rows: receivers.iter().map(row).collect() }
    }

    /// Returns the figure of the sending rate over time.
    fn rate(&self, clock: Unit, x: &Axis) -> Option<Part> {
        let width = self.passing.width();
        let bits = |octets: f64| octets * 8.0 / width;
        let greatest =
            self.passing.bins().map(|(_, bin)| bits(bin[..KINDS.len()].iter().sum())).fold(0.0, f64::max);
        let unit = units::rate(greatest);
        let there =
            KINDS.into_iter().zip(self.totals.columns()).enumerate().filter(|(_, (_, octets))| *octets > 0);
        let series: Vec<Series> = there
            .map(|(column, (name, _))| Series {
                name: name.into(),
                points: held(&self.passing, clock, |bin| bits(bin[column]) / unit.of),
            })
            .collect();
        (!series.is_empty()).then(|| {
            Part::Figure(Figure {
                title: "Sending rate".into(),
                note: format!(
                    "with headers of UDP and IP, in steps of {}; {}",
                    interval(width),
                    self.kinds()
                ),
                chart: Chart::Stack {
                    x: x.clone(),
                    y: Axis::linear(&format!("rate, {}", unit.name)),
                    series,
                },
            })
        })
    }

    /// Returns the explanation of the kinds of octets.
    fn kinds(&self) -> String {
        let (round, segments) = (self.words.round, self.words.segment.many);
        format!("data are {segments} of the first {}, repairs those of later {}", round.one, round.many)
    }

    /// Returns the figure and table of the octets that were sent.
    fn overhead(&self, size: u64) -> Vec<Part> {
        let octets = &self.totals.columns()[..KINDS.len()];
        let all: u64 = octets.iter().sum();
        if all == 0 {
            return Vec::new();
        }
        let unit = units::octets(all as f64);
        let bar = |(part, octets): (&str, &u64)| Bar {
            name: "sent".into(),
            part: part.into(),
            value: *octets as f64 / unit.of,
        };
        let bars = KINDS.into_iter().zip(octets).filter(|(_, octets)| **octets > 0).map(bar).collect();
        let row = |what: &str, octets: u64| {
            let percent = (size > 0).then(|| 100.0 * octets as f64 / size as f64);
            vec![Cell::text(what), whole(octets), thousandths(percent)]
        };
        let mut rows: Vec<_> =
            KINDS.into_iter().zip(octets).map(|(kind, &octets)| row(kind, octets)).collect();
        rows.push(row("all that was sent", all));
        rows.push(row("heard, without headers", self.totals.heard));
        rows.push(row("what is delivered", size));
        let columns =
            vec![Column::text("what"), Column::number("octets"), Column::number("% of what is delivered")];
        vec![
            Part::Figure(Figure {
                title: "What was sent".into(),
                note: format!("with headers of UDP and IP, to deliver {}", units::size(size)),
                chart: Chart::Bars { x: Axis::linear(&format!("octets, {}", unit.name)), bars },
            }),
            Part::Table(Table { caption: "What was sent, by what it was for".into(), columns, rows }),
        ]
    }

    fn rounds(&self, sent: &[u64]) -> Table {
        let Words { round, segment, .. } = self.words;
        let title = format!("{} sent, parity included", segment.many);
        let columns = vec![Column::number(round.one), Column::number("began, s"), Column::number(&title)];
        let row = |one: &Round| {
            let sent = sent.get((one.number as usize).wrapping_sub(1));
            let sent = sent.map_or_else(Cell::default, |&sent| whole(sent));
            vec![whole(one.number.into()), thousandths(Some(one.began_s)), sent]
        };
        let more = if self.more_rounds > 0 {
            format!("; {} more are not listed", self.more_rounds)
        } else {
            String::new()
        };
        let caption = format!("{}{more}", capital(round.many));
        Table { caption, columns, rows: self.rounds.iter().map(row).collect() }
    }

    /// Returns the figures of the requests of receivers over time.
    fn feedback(&self, clock: Unit, x: &Axis) -> Vec<Part> {
        let naks = self.words.nak.many;
        if self.totals.requests == 0 {
            let heard = if self.totals.heard == 0 {
                "Nothing was heard from receivers"
            } else {
                "Nobody asked for repair"
            };
            return vec![Part::Text(format!("{heard}."))];
        }
        let width = interval(self.passing.width());
        let segments = self.words.segment.many;
        let figure = |title: String, what: &str, column: usize| {
            let points = held(&self.passing, clock, |bin| bin[column]);
            let series = vec![Series { name: what.into(), points }];
            let y = Axis::linear(&format!("{what} in {width}")).from_zero().of_counts();
            let note = format!("as they came, in steps of {width}");
            Part::Figure(Figure {
                title,
                note,
                chart: Chart::Course { x: x.clone(), y, series, has_steps: true },
            })
        };
        vec![
            figure(format!("{naks} heard"), naks, REQUESTS),
            figure(format!("{} asked for again", capital(segments)), segments, ASKED),
        ]
    }

    /// Returns all columns over time, as CSV.
    fn series(&self) -> String {
        let mut columns = vec![Column::number("from_s"), Column::number("to_s")];
        columns.extend(KINDS.map(|kind| Column::number(&format!("{kind}_octets"))));
        columns.extend(["heard_octets", "requests", "asked"].map(Column::number));
        let width = self.passing.width();
        let row = |(begin, bin): (f64, &[f64])| {
            let values = [begin, begin + width].into_iter().chain(bin.iter().copied());
            values.map(|value| thousandths(Some(value))).collect()
        };
        let rows = self.passing.bins().map(row).collect();
        Table { caption: String::new(), columns, rows }.csv()
    }
}

/// Unit of time of a curve, and divisor of its values.
#[derive(Clone, Copy)]
pub(super) struct CurveScale {
    pub(super) clock: Unit,
    pub(super) of: f64,
}

/// Returns a column of `course` as a curve.
pub(super) fn curve(course: &Course, column: usize, name: &str, scale: CurveScale) -> Series {
    let seen = course.bins().filter(|(_, bin)| !bin[column].is_nan());
    // A level seen in a bin held at the end of the bin at the latest.
    let points = seen.map(|(begin, bin)| Point {
        x: (begin + course.width()) / scale.clock.of,
        y: bin[column] / scale.of,
        interval: None,
    });
    Series { name: name.to_owned(), points: points.collect() }
}

/// Returns a curve of what a receiver is known to have. A value holds until more is known; a point before the first
/// makes a line even of a single value.
fn known_curve(course: &Course, column: usize, name: &str, clock: Unit) -> Series {
    let mut series = curve(course, column, name, CurveScale { clock, of: 1.0 });
    if let Some(&first) = series.points.first() {
        series.points.insert(0, Point { x: first.x - course.width() / clock.of, ..first });
    }
    series
}

/// Returns the value of each bin of `course`, held until the next bin begins.
pub(super) fn held(course: &Course, clock: Unit, value: impl Fn(&[f64]) -> f64) -> Vec<Point> {
    let at = |x: f64, y: f64| Point { x: x / clock.of, y, interval: None };
    let mut points: Vec<Point> = course.bins().map(|(begin, bin)| at(begin, value(bin))).collect();
    let end = course.bins().last().map(|(begin, bin)| at(begin + course.width(), value(bin)));
    points.extend(end);
    points
}

/// Returns the number of `times`, which are sorted, that have passed, from 0 to `end`.
fn steps(times: &[f64], end: f64, clock: Unit) -> Vec<Point> {
    let at = |x: f64, y: usize| Point { x: x / clock.of, y: y as f64, interval: None };
    let every = times.len().div_ceil(MOST_BINS).max(1);
    let mut points = vec![at(0.0, 0)];
    let drawn =
        times.iter().enumerate().filter(|(place, _)| (place + 1) % every == 0 || place + 1 == times.len());
    points.extend(drawn.map(|(place, &time)| at(time, place + 1)));
    points.push(at(end.max(times.last().copied().unwrap_or(0.0)), times.len()));
    points
}

/// Creates a cell with an exact whole number.
pub(super) fn whole(count: u64) -> Cell {
    Cell { shown: count.to_string(), exact: Some(count as f64), mood: Mood::Plain }
}

/// Creates a cell with a number to three decimals at most.
pub(super) fn thousandths(value: Option<f64>) -> Cell {
    Cell::number(value.map(|value| (value * 1e3).round() / 1e3))
}

/// Returns the width of a bin in words.
pub(super) fn interval(width: f64) -> String {
    if width < 1.0 { format!("{:.0} ms", width * 1e3) } else { format!("{} s", crate::page::digits(width)) }
}

/// Returns `text` with a capital first letter.
pub(super) fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
