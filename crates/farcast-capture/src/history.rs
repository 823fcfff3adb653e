//! What passed a link over time, in bins: for plots, in memory that is bounded whatever the run's length.
//!
//! A [`History`] takes the records that a [log](crate::packets) takes. Bins begin at 10 ms and double their width when
//! there would be more than [`MOST_BINS`]: two neighbours become one, so that nothing is lost and every total stays. It
//! is as if all had been binned at the final width at once.
//!
//! # What is counted when
//!
//! | what | in the bin of |
//! |---|---|
//! | `entered`: each packet once, however many copies it has | its entering |
//! | `delivered`: each copy; `carried`: each packet of which a copy was delivered, once; delays, lateness | the copy's planned leaving |
//! | lost and dropped: each copy, by cause | its planned leaving; its entering, if it was never to leave |
//! | `ended`: each packet that is no longer inside, once | what became of its first copy, as above |
//!
//! So what is inside at a bin's end is what has entered less what has ended. A packet that a stage gives up long after
//! it entered has no later time in its record, and counts as gone at its entering.

use std::collections::{BTreeMap, BTreeSet};

use farcast_core::{Span, Time};

use crate::lateness::Lateness;
use crate::packets::{PacketRecord, Verdict, Way};

mod delays;
mod numbers;
mod sink;

pub use delays::Delays;
use numbers::Numbers;
pub use sink::{Sink, shared};

/// The most bins of a history.
pub const MOST_BINS: usize = 300;
/// How wide bins are at first.
const FIRST_WIDTH: Span = Span::from_millis(10);
/// Causes of a way that are told apart; the others are "other".
const MOST_CAUSES: usize = 32;
/// Terminals that are told apart.
const MOST_TERMINALS: usize = 4096;
/// Packets to several terminals, a copy of which was lost, that are kept to see whether another is delivered.
const MOST_UNDELIVERED: usize = 1 << 16;

/// Packets and their octets, with IP headers. Counts saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

impl Sum {
    fn count(&mut self, octets: u32) {
        self.add(Self { packets: 1, octets: octets.into() });
    }

    fn add(&mut self, other: Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.octets = self.octets.saturating_add(other.octets);
    }
}

/// What passed in a bin of time on one way. The module's table says what is counted when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bin {
    /// Packets that entered.
    pub entered: Sum,
    /// Copies that were delivered.
    pub delivered: Sum,
    /// Packets of which the first copy was delivered.
    pub carried: Sum,
    /// Packets that are no longer inside.
    pub ended: Sum,
    /// Copies that were lost or dropped, by the index of their cause in [`WayHistory::causes`].
    pub failed: BTreeMap<u16, u64>,
    /// From entering to planned leaving, of the copies that were delivered.
    pub delays: Delays,
    /// The longest time from planned to real leaving.
    pub latest: Span,
}

impl Bin {
    fn merge(&mut self, other: &Self) {
        self.entered.add(other.entered);
        self.delivered.add(other.delivered);
        self.carried.add(other.carried);
        self.ended.add(other.ended);
        for (&cause, &more) in &other.failed {
            let count = self.failed.entry(cause).or_default();
            *count = count.saturating_add(more);
        }
        self.delays.merge(&other.delays);
        self.latest = self.latest.max(other.latest);
    }
}

/// Why copies did not arrive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cause {
    /// Whether a limit dropped them, and no error.
    pub dropped: bool,
    /// What the log says; empty if it says nothing.
    pub name: String,
}

/// What passed on one way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WayHistory {
    /// Packets that entered, once each.
    pub entered: Sum,
    /// Copies that were delivered.
    pub delivered: Sum,
    /// Copies that were lost.
    pub lost: Sum,
    /// Copies that were dropped.
    pub dropped: Sum,
    /// Packets that were still inside at the end.
    pub held: Sum,
    /// The bins from time 0 on, up to the last in which something was told.
    pub bins: Vec<Bin>,
    /// Why copies did not arrive, in the order in which that happened first.
    pub causes: Vec<Cause>,
}

/// What one terminal got and lost: of what came to it, and of what it sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TerminalHistory {
    /// Delivered to it; of what it sent, to the hub.
    pub delivered: [Sum; 2],
    /// Lost.
    pub lost: [Sum; 2],
    /// Dropped.
    pub dropped: [Sum; 2],
}

/// What passed a link over time.
#[derive(Clone, Debug)]
pub struct History {
    width: Span,
    most: usize,
    ways: [WayHistory; 2],
    terminals: BTreeMap<u32, TerminalHistory>,
    lateness: Lateness,
    end: Time,
    /// Packets of which something was told.
    told: Numbers,
    /// Packets forward of which a copy was lost and none was delivered yet.
    undelivered: BTreeSet<u64>,
}

impl History {
    /// Nothing has passed yet.
    pub fn new() -> Self {
        Self::with_bins(FIRST_WIDTH, MOST_BINS)
    }

    /// With bins of this width at first, 1 ns at least, and at most so many of them, 2 at least.
    pub fn with_bins(width: Span, most: usize) -> Self {
        Self {
            width: width.max(Span::from_nanos(1)),
            most: most.max(2),
            ways: [WayHistory::default(), WayHistory::default()],
            terminals: BTreeMap::new(),
            lateness: Lateness::new(),
            end: Time::ZERO,
            told: Numbers::default(),
            undelivered: BTreeSet::new(),
        }
    }

    /// Takes what became of a packet, or of a copy of one. Of a packet with copies, the first that is told of ends it.
    pub fn record(&mut self, record: &PacketRecord<&str>) {
        let at = record.planned.unwrap_or(record.entered);
        self.end = self.end.max(at).max(record.entered).max(record.left.unwrap_or(Time::ZERO));
        self.fit(at.max(record.entered));
        let index = way_index(record.way);
        let first = self.told.insert(record.number);
        if first {
            self.ways[index].entered.count(record.octets);
            self.bin(record.way, record.entered).entered.count(record.octets);
            if record.verdict != Verdict::Held {
                self.bin(record.way, at).ended.count(record.octets);
            }
        }
        match record.verdict {
            Verdict::Delivered => self.delivered(record, at, first),
            Verdict::Lost => self.failed(record, at, first, false),
            Verdict::Dropped => self.failed(record, at, first, true),
            Verdict::Held => self.ways[index].held.count(record.octets),
        }
    }

    fn delivered(&mut self, record: &PacketRecord<&str>, at: Time, first: bool) {
        let carried = first || self.undelivered.remove(&record.number);
        let late = record.left.map(|left| left.since(at));
        let bin = self.bin(record.way, at);
        bin.delivered.count(record.octets);
        bin.delays.record(at.since(record.entered));
        bin.latest = bin.latest.max(late.unwrap_or_default());
        if carried {
            bin.carried.count(record.octets);
        }
        if let Some(late) = late {
            self.lateness.record(late);
        }
        let index = way_index(record.way);
        self.ways[index].delivered.count(record.octets);
        self.of_terminal(record, |terminal| terminal.delivered[index].count(record.octets));
    }

    fn failed(&mut self, record: &PacketRecord<&str>, at: Time, first: bool, dropped: bool) {
        let index = way_index(record.way);
        let cause = self.ways[index].cause(dropped, record.cause);
        let count = self.bin(record.way, at).failed.entry(cause).or_default();
        *count = count.saturating_add(1);
        let way = &mut self.ways[index];
        if dropped { &mut way.dropped } else { &mut way.lost }.count(record.octets);
        self.of_terminal(record, |terminal| {
            let counts = if dropped { &mut terminal.dropped } else { &mut terminal.lost };
            counts[index].count(record.octets);
        });
        // Only what goes to terminals can have other copies.
        if first && record.way == Way::Forward && record.terminal.is_some() {
            self.undelivered.insert(record.number);
            if self.undelivered.len() > MOST_UNDELIVERED {
                self.undelivered.pop_first();
            }
        }
    }

    fn of_terminal(&mut self, record: &PacketRecord<&str>, count: impl FnOnce(&mut TerminalHistory)) {
        let Some(number) = record.terminal else { return };
        if self.terminals.len() < MOST_TERMINALS || self.terminals.contains_key(&number) {
            count(self.terminals.entry(number).or_default());
        }
    }

    /// Doubles the width until `at` lies in a bin.
    fn fit(&mut self, at: Time) {
        while at.as_nanos() / self.width.as_nanos() >= self.most as u64 {
            self.width = self.width * 2;
            for way in &mut self.ways {
                way.halve();
            }
        }
    }

    /// The bin of a time that [fits](Self::fit).
    fn bin(&mut self, way: Way, at: Time) -> &mut Bin {
        let index = (at.as_nanos() / self.width.as_nanos()) as usize;
        let bins = &mut self.ways[way_index(way)].bins;
        if bins.len() <= index {
            bins.resize_with(index + 1, Bin::default);
        }
        &mut bins[index]
    }

    /// How wide bins are.
    pub fn width(&self) -> Span {
        self.width
    }

    /// What passed on a way.
    pub fn way(&self, way: Way) -> &WayHistory {
        &self.ways[way_index(way)]
    }

    /// Terminals of which something was told, by number: the first 4096 of them.
    pub fn terminals(&self) -> &BTreeMap<u32, TerminalHistory> {
        &self.terminals
    }

    /// How late packets left, on both ways.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// The latest time that was told.
    pub fn end(&self) -> Time {
        self.end
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl WayHistory {
    /// Joins neighbours.
    fn halve(&mut self) {
        let mut joined = Vec::with_capacity(self.bins.len().div_ceil(2));
        let mut bins = std::mem::take(&mut self.bins).into_iter();
        while let Some(mut bin) = bins.next() {
            if let Some(next) = bins.next() {
                bin.merge(&next);
            }
            joined.push(bin);
        }
        self.bins = joined;
    }

    /// The index of a cause.
    fn cause(&mut self, dropped: bool, name: &str) -> u16 {
        let known = self.causes.iter().position(|cause| cause.dropped == dropped && cause.name == name);
        let index = known.unwrap_or_else(|| {
            // The last two places are for all others.
            let (index, name) = match self.causes.len() {
                len if len < MOST_CAUSES => (len, name),
                _ => (MOST_CAUSES + usize::from(dropped), "other"),
            };
            while self.causes.len() <= index {
                self.causes.push(Cause { dropped: self.causes.len() > MOST_CAUSES, name: "other".into() });
            }
            self.causes[index] = Cause { dropped, name: name.into() };
            index
        });
        index as u16
    }
}

const fn way_index(way: Way) -> usize {
    match way {
        Way::Forward => 0,
        Way::Return => 1,
    }
}

#[cfg(test)]
mod tests;
