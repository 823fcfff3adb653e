//! Record of a transfer at a receiver.

use std::collections::{BTreeMap, VecDeque};

use super::course::Course;
use super::sending::{CurveScale, capital, curve, held, interval, thousandths, whole};
use super::units::{self, Unit};
use super::{Close, Words};
use crate::page::{Axis, Cell, Chart, Column, Download, Figure, Mood, Page, Part, Point, Series, Table};

/// Most products that have a curve: the latest.
const MOST_CURVES: usize = 12;
/// Most products that are listed: the latest.
const MOST_PRODUCTS: usize = 1000;
/// Idle time after which the next product begins a new origin of time, in s.
const PAUSE: f64 = 30.0;
/// Number of columns: new segments, parity, useless octets, requests, segments asked for.
const COMING: usize = 5;
const REQUESTS: usize = 3;
const ASKED: usize = 4;
/// Names of the columns that hold octets.
const KINDS: [&str; 3] = ["new segments", "parity", "brought nothing new"];

/// Progress of an object so far, in segments and requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Came {
    /// Segments that are present.
    pub have: u32,
    /// New segments that came.
    pub segments: u64,
    /// New parity symbols that came.
    pub parity: u64,
    /// Segments and symbols that brought nothing new.
    pub duplicates: u64,
    /// Requests for repair that were sent.
    pub requests: u64,
    /// Segments for which the requests asked.
    pub asked: u64,
}

/// An object in reception, as it was joined and as it ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Product {
    /// Name of the object.
    pub name: String,
    /// Name of the sender.
    pub sender: String,
    /// Size in octets.
    pub size: u64,
    /// Segment size in octets.
    pub segment_size: u32,
    /// Segments that were present before.
    pub held: u32,
    /// Outcome in a sentence; empty while reception is under way.
    pub outcome: String,
    /// True if the object is complete.
    pub complete: bool,
    /// Time that reception took, in s.
    pub time_s: f64,
    /// Progress of the object.
    pub came: Came,
}

struct OpenReception {
    product: Product,
    began_s: f64,
    seen_s: f64,
}

/// Octets of a product that are present, over time.
struct Stored {
    object: u32,
    name: String,
    /// Time of joining, in s since the origin, and octets present then.
    begin: (f64, f64),
    course: Course,
}

/// Record of a transfer at a receiver.
pub struct Receiving {
    words: Words,
    under_way: BTreeMap<u32, OpenReception>,
    /// The latest products that have ended, each with the time at which its reception began.
    ended: VecDeque<(f64, Product)>,
    /// Number of products that have ended, and number of complete ones among them.
    counts: (u64, u64),
    /// Origin of time in the drawings; `seen_s` is the time of the last record. Both in s.
    origin_s: f64,
    seen_s: f64,
    coming: Course,
    stored: VecDeque<Stored>,
}

impl Receiving {
    /// Creates an empty record, for a protocol with these terms.
    pub fn new(words: Words) -> Self {
        Self {
            words,
            under_way: BTreeMap::new(),
            ended: VecDeque::new(),
            counts: (0, 0),
            origin_s: 0.0,
            seen_s: 0.0,
            coming: Course::of_counts(COMING),
            stored: VecDeque::new(),
        }
    }

    /// Returns `true` if any object is in reception.
    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Returns the numbers of the objects in reception.
    pub fn objects(&self) -> Vec<u32> {
        self.under_way.keys().copied().collect()
    }

    /// Records that `object` is received from `at_s` on.
    pub fn joined(&mut self, at_s: f64, object: u32, product: Product) {
        if self.under_way.is_empty() && (self.counts.0 == 0 || at_s - self.seen_s > PAUSE) {
            (self.origin_s, self.coming) = (at_s, Course::of_counts(COMING));
            self.stored.clear();
        }
        self.seen_s = at_s;
        let (held, name) = (octets(&product, product.held), product.name.clone());
        self.under_way.insert(object, OpenReception { product, began_s: at_s, seen_s: at_s });
        if self.stored.len() == MOST_CURVES {
            self.stored.pop_front();
        }
        let begin = (at_s - self.origin_s, held);
        self.stored.push_back(Stored { object, name, begin, course: Course::of_levels(1) });
    }

    /// Records the progress of `object` until `at_s`.
    pub fn look(&mut self, at_s: f64, object: u32, came: Came) {
        let Some(one) = self.under_way.get_mut(&object) else { return };
        let (before, size) = (one.product.came, f64::from(one.product.segment_size));
        let more = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let counts = [
            more(came.segments, before.segments) * size,
            more(came.parity, before.parity) * size,
            more(came.duplicates, before.duplicates) * size,
        ];
        let (from, to) = (one.seen_s - self.origin_s, at_s - self.origin_s);
        self.coming.count(from, to, &counts);
        self.coming.tally(from, to, REQUESTS, came.requests.saturating_sub(before.requests));
        self.coming.tally(from, to, ASKED, came.asked.saturating_sub(before.asked));
        (one.product.came, one.seen_s) = (came, at_s);
        self.seen_s = at_s;
        let there = octets(&one.product, came.have);
        // Object numbers are reused: the latest product is meant.
        if let Some(stored) = self.stored.iter_mut().rfind(|stored| stored.object == object) {
            stored.course.note(at_s - self.origin_s, &[there]);
        }
    }

    /// Records the end of `object`, with the final data of `product`.
    pub fn ended(&mut self, at_s: f64, object: u32, product: Product) {
        self.look(at_s, object, product.came);
        if let Some(stored) = self.stored.iter_mut().rfind(|stored| stored.object == object) {
            // The name may have become known late.
            stored.name.clone_from(&product.name);
        }
        let began = self.under_way.remove(&object).map_or(at_s, |one| one.began_s);
        self.counts.0 += 1;
        self.counts.1 += u64::from(product.complete);
        self.seen_s = at_s;
        if self.ended.len() == MOST_PRODUCTS {
            self.ended.pop_front();
        }
        self.ended.push_back((began, product));
    }

    /// Returns the page. Parts of `close` that belong to a sender are ignored.
    pub fn page(&self, close: &Close) -> Page {
        let clock = units::time(self.seen_s - self.origin_s);
        let since =
            if self.counts.0 > 1 || self.stored.len() > 1 { " since the first that is drawn" } else { "" };
        let x = Axis::linear(&format!("time{since}, {}", clock.name)).from_zero();
        let mut parts = vec![Part::Heading("Products".into())];
        parts.extend(self.stored(clock, &x));
        let products = self.products();
        let csv = |name: &str, text: String| Download { name: name.into(), mime: "text/csv", text };
        let downloads = vec![
            Download { name: "summary.json".into(), mime: "application/json", text: close.summary.clone() },
            csv("products.csv", products.csv()),
            csv("time.csv", self.series()),
        ];
        if products.rows.is_empty() {
            parts.push(Part::Text("Nothing has come.".into()));
        } else {
            parts.push(Part::Table(products));
            parts.push(Part::Heading("What came".into()));
            parts.extend(self.coming(clock, &x));
            parts.push(Part::Heading("Feedback".into()));
            parts.extend(self.feedback(clock, &x));
        }
        let mut lead = close.lead.clone();
        let (all, complete) = self.counts;
        if all > 1 {
            lead.push(format!("{all} products so far, {complete} of them complete."));
        }
        Page {
            title: close.title.clone(),
            lead,
            settings: close.settings.clone(),
            parts,
            downloads,
            made_by: close.made_by.clone(),
        }
    }

    fn stored(&self, clock: Unit, x: &Axis) -> Option<Part> {
        let all = || self.stored.iter().flat_map(|one| one.course.bins().map(|(_, bin)| bin[0]));
        let unit = units::octets(all().fold(0.0, f64::max));
        let mut names: Vec<String> = Vec::new();
        let series = self.stored.iter().map(|one| {
            // The same product may be received again.
            let times = names.iter().filter(|name| **name == one.name).count();
            names.push(one.name.clone());
            let name = if times > 0 { format!("{} ({})", one.name, times + 1) } else { one.name.clone() };
            let mut series = curve(&one.course, 0, &name, CurveScale { clock, of: unit.of });
            let (at, held) = one.begin;
            series.points.insert(0, Point { x: at / clock.of, y: held / unit.of, interval: None });
            series
        });
        let series: Vec<Series> = series.collect();
        let note = if self.counts.0 as usize + self.under_way.len() > series.len() {
            format!("of the latest {} products", series.len())
        } else {
            "of each product, with what was here before".into()
        };
        (!series.is_empty()).then(|| {
            let y = Axis::linear(&format!("stored, {}", unit.name)).from_zero();
            let chart = Chart::Course { x: x.clone(), y, series, has_steps: false };
            Part::Figure(Figure { title: "Stored over time".into(), note, chart })
        })
    }

    fn products(&self) -> Table {
        let segments = self.words.segment.many;
        let mut columns = vec![
            Column::text("product"),
            Column::text("state"),
            Column::text("sender"),
            Column::number("began, s"),
            Column::number("time, s"),
            Column::number("octets"),
            Column::number(&format!("{segments} here before")),
            Column::number(&format!("{segments} received")),
            Column::number("parity received"),
            Column::number("brought nothing new"),
            Column::number(self.words.nak.many),
            Column::number(&format!("asked again, {segments}")),
        ];
        let any_failed = self.ended.iter().any(|(_, one)| !one.complete);
        if any_failed {
            columns.push(Column::text("what became of it"));
        }
        let row = |began: f64, one: &Product| {
            let (state, mood) = match (one.outcome.is_empty(), one.complete) {
                (true, _) => ("under way", Mood::Plain),
                (false, true) => ("complete", Mood::Good),
                (false, false) => ("not complete", Mood::Bad),
            };
            let mut cells =
                vec![Cell::text(&one.name), Cell::text(state).with(mood), Cell::text(&one.sender)];
            cells.extend([began, one.time_s].map(|time| thousandths(Some(time))));
            let Came { segments, parity, duplicates, requests, asked, .. } = one.came;
            cells.extend(
                [one.size, one.held.into(), segments, parity, duplicates, requests, asked].map(whole),
            );
            if any_failed {
                cells.push(Cell::text(if one.complete { "" } else { &one.outcome }));
            }
            cells
        };
        let ended = self.ended.iter().map(|(began, one)| row(*began, one));
        let under_way = self.under_way.values().map(|one| {
            row(one.began_s, &Product { time_s: one.seen_s - one.began_s, ..one.product.clone() })
        });
        let more = self.counts.0 as usize - self.ended.len();
        let caption = match more {
            0 => "Products".to_owned(),
            more => format!("The latest products; {more} before them are not listed"),
        };
        Table { caption, columns, rows: ended.chain(under_way).collect() }
    }

    fn coming(&self, clock: Unit, x: &Axis) -> Option<Part> {
        let width = self.coming.width();
        let bits = |octets: f64| octets * 8.0 / width;
        let sums = self.coming.bins().map(|(_, bin)| bits(bin[..KINDS.len()].iter().sum()));
        let unit = units::rate(sums.fold(0.0, f64::max));
        let there = |column: usize| self.coming.bins().any(|(_, bin)| bin[column] > 0.0);
        let kinds = KINDS.into_iter().enumerate().filter(|(column, _)| there(*column));
        let series: Vec<Series> = kinds
            .map(|(column, name)| Series {
                name: name.into(),
                points: held(&self.coming, clock, |bin| bits(bin[column]) / unit.of),
            })
            .collect();
        (!series.is_empty()).then(|| {
            Part::Figure(Figure {
                title: "Receiving rate".into(),
                note: format!("without headers, in steps of {}", interval(width)),
                chart: Chart::Stack {
                    x: x.clone(),
                    y: Axis::linear(&format!("rate, {}", unit.name)),
                    series,
                },
            })
        })
    }

    fn feedback(&self, clock: Unit, x: &Axis) -> Vec<Part> {
        let (naks, segments) = (self.words.nak.many, self.words.segment.many);
        if !self.coming.bins().any(|(_, bin)| bin[REQUESTS] > 0.0) {
            return vec![Part::Text("It asked for nothing again.".into())];
        }
        let width = interval(self.coming.width());
        let figure = |title: String, what: &str, column: usize| {
            let points = held(&self.coming, clock, |bin| bin[column]);
            let series = vec![Series { name: what.into(), points }];
            let y = Axis::linear(&format!("{what} in {width}")).from_zero().of_counts();
            let note = format!("as they were sent, in steps of {width}");
            Part::Figure(Figure {
                title,
                note,
                chart: Chart::Course { x: x.clone(), y, series, has_steps: true },
            })
        };
        vec![
            figure(format!("{naks} sent"), naks, REQUESTS),
            figure(format!("{} asked for again", capital(segments)), segments, ASKED),
        ]
    }

    /// Returns all columns over time, as CSV.
    fn series(&self) -> String {
        let titles = ["from_s", "to_s", "new_octets", "parity_octets", "useless_octets", "requests", "asked"];
        let (width, origin) = (self.coming.width(), self.origin_s);
        let row = |(begin, bin): (f64, &[f64])| {
            let values = [origin + begin, origin + begin + width].into_iter().chain(bin.iter().copied());
            values.map(|value| thousandths(Some(value))).collect()
        };
        let rows = self.coming.bins().map(row).collect();
        Table { caption: String::new(), columns: titles.map(Column::number).into(), rows }.csv()
    }
}

/// Returns the octets of `segments` segments.
fn octets(product: &Product, segments: u32) -> f64 {
    (u64::from(segments) * u64::from(product.segment_size)).min(product.size) as f64
}
