//! Counts of the packets that passed a link over time, in bins: for plots, with bounded memory for any run.
//!
//! A [`History`] takes the records that a [log](crate::packets) takes. Bins begin at 10 ms. Their width doubles when
//! there would be more than [`MOST_BINS`]: two neighbours become one, so that nothing is lost and every total stays.
//! The result is as if all records had been binned at the final width at once.
//!
//! # Bins of the counts
//!
//! | count | bin of |
//! |---|---|
//! | `entered`: each packet once, however many copies it has | its entry |
//! | `delivered`: each copy; `carried`: each packet of which a copy was delivered, once; delays, lateness | the copy's planned departure |
//! | lost and dropped: each copy, by cause | its planned departure; its entry, if it was never to leave |
//! | `ended`: each packet that is no longer inside, once | the fate of its first copy, as above |
//!
//! So the packets inside at a bin's end are those entered less those ended. A packet that a stage gives up long after
//! it entered has no later time in its record, and counts as gone at its entry.

use std::collections::{BTreeMap, BTreeSet};

use farcast_core::{Span, Time};

use crate::lateness::Lateness;
use crate::packets::{PacketDirection, PacketRecord, Verdict};

mod delays;
mod numbers;
mod sink;

pub use delays::Delays;
use numbers::NumberSet;
pub use sink::{HistorySink, shared};

/// The most bins of a history.
pub const MOST_BINS: usize = 300;
/// Width of bins at first.
const FIRST_WIDTH: Span = Span::from_millis(10);
/// Most causes of a direction that are counted separately; the others are "other".
const MOST_CAUSES: usize = 32;
/// Most terminals that are counted separately.
const MOST_TERMINALS: usize = 4096;
/// Most packets kept of which a copy was lost, to see whether another copy is delivered.
const MOST_UNDELIVERED: usize = 1 << 16;

/// Packets and their octets, with IP headers. Counts saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketTotals {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

impl PacketTotals {
    fn count(&mut self, octets: u32) {
        self.add(Self { packets: 1, octets: octets.into() });
    }

    fn add(&mut self, other: Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.octets = self.octets.saturating_add(other.octets);
    }
}

/// Counts of a bin of time in one direction. The module's table defines them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bin {
    /// Packets that entered.
    pub entered: PacketTotals,
    /// Copies that were delivered.
    pub delivered: PacketTotals,
    /// Packets of which the first copy was delivered.
    pub carried: PacketTotals,
    /// Packets that are no longer inside.
    pub ended: PacketTotals,
    /// Copies that were lost or dropped, by the index of their cause in [`DirectionHistory::causes`].
    pub failed: BTreeMap<u16, u64>,
    /// Delays of the copies that were delivered, from entry to planned departure.
    pub delays: Delays,
    /// Longest time from planned to real departure.
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

/// Reason for which copies did not arrive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LossCause {
    /// A limit dropped them, and not an error.
    pub dropped: bool,
    /// Cause in the log; empty if the log has none.
    pub name: String,
}

/// Counts of one direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DirectionHistory {
    /// Packets that entered, once each.
    pub entered: PacketTotals,
    /// Copies that were delivered.
    pub delivered: PacketTotals,
    /// Copies that were lost.
    pub lost: PacketTotals,
    /// Copies that were dropped.
    pub dropped: PacketTotals,
    /// Packets that were still inside at the end.
    pub held: PacketTotals,
    /// Bins from time 0 on, up to the last one with a record.
    pub bins: Vec<Bin>,
    /// Reasons for which copies did not arrive, in the order of their first occurrence.
    pub causes: Vec<LossCause>,
}

/// Counts of one terminal: of packets to it, and of packets from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TerminalHistory {
    /// Packets delivered to it, and packets from it delivered to the hub.
    pub delivered: [PacketTotals; 2],
    /// Packets lost.
    pub lost: [PacketTotals; 2],
    /// Packets dropped.
    pub dropped: [PacketTotals; 2],
}

/// Counts of the packets that passed a link, over time.
#[derive(Clone, Debug)]
pub struct History {
    width: Span,
    most: usize,
    ways: [DirectionHistory; 2],
    terminals: BTreeMap<u32, TerminalHistory>,
    lateness: Lateness,
    end: Time,
    /// Packets with a record.
    told: NumberSet,
    /// Forward packets of which a copy was lost and none was delivered yet.
    undelivered: BTreeSet<u64>,
}

impl History {
    /// Creates an empty history.
    pub fn new() -> Self {
        Self::with_bins(FIRST_WIDTH, MOST_BINS)
    }

    /// Creates an empty history with bins of this width at first (at least 1 ns), and at most `most` bins (at least 2).
    pub fn with_bins(width: Span, most: usize) -> Self {
        Self {
            width: width.max(Span::from_nanos(1)),
            most: most.max(2),
            ways: [DirectionHistory::default(), DirectionHistory::default()],
            terminals: BTreeMap::new(),
            lateness: Lateness::new(),
            end: Time::ZERO,
            told: NumberSet::default(),
            undelivered: BTreeSet::new(),
        }
    }

    /// Takes the record of a packet, or of a copy of one. The first record of a packet with copies ends the packet.
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
        // Only packets to terminals can have other copies.
        if first && record.way == PacketDirection::Forward && record.terminal.is_some() {
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

    /// Returns the bin of a time that [fits](Self::fit).
    fn bin(&mut self, way: PacketDirection, at: Time) -> &mut Bin {
        let index = (at.as_nanos() / self.width.as_nanos()) as usize;
        let bins = &mut self.ways[way_index(way)].bins;
        if bins.len() <= index {
            bins.resize_with(index + 1, Bin::default);
        }
        &mut bins[index]
    }

    /// Returns the present width of bins.
    pub fn width(&self) -> Span {
        self.width
    }

    /// Returns the counts of a direction.
    pub fn way(&self, way: PacketDirection) -> &DirectionHistory {
        &self.ways[way_index(way)]
    }

    /// Returns the counts of terminals with a record, by number: the first 4096 of them.
    pub fn terminals(&self) -> &BTreeMap<u32, TerminalHistory> {
        &self.terminals
    }

    /// Returns the lateness of packets, in both directions.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Returns the latest time in a record.
    pub fn end(&self) -> Time {
        self.end
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl DirectionHistory {
    /// Joins neighbouring bins.
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

    /// Returns the index of a cause.
    fn cause(&mut self, dropped: bool, name: &str) -> u16 {
        let known = self.causes.iter().position(|cause| cause.dropped == dropped && cause.name == name);
        let index = known.unwrap_or_else(|| {
            // The last two places are for all others.
            let (index, name) = match self.causes.len() {
                len if len < MOST_CAUSES => (len, name),
                _ => (MOST_CAUSES + usize::from(dropped), "other"),
            };
            while self.causes.len() <= index {
                self.causes
                    .push(LossCause { dropped: self.causes.len() > MOST_CAUSES, name: "other".into() });
            }
            self.causes[index] = LossCause { dropped, name: name.into() };
            index
        });
        index as u16
    }
}

const fn way_index(way: PacketDirection) -> usize {
    match way {
        PacketDirection::Forward => 0,
        PacketDirection::Return => 1,
    }
}

#[cfg(test)]
mod tests;
