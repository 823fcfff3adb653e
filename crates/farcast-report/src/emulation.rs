//! Page of plots for a run of an emulated link: throughput, delay and losses of both directions over time.
//!
//! [`page`] draws a [`Run`] as one HTML file that needs nothing else: drawings are inline SVG, once for wide windows
//! and once for narrow ones, and there is no script. The page also carries the run as JSON, in the element `data`,
//! for readers who cannot see the drawings or have other questions. The page is well-formed XML. Equal runs give
//! equal pages.
//!
//! | file | content |
//! |---|---|
//! | `page.rs` | page around the drawings |
//! | `tables.rs` | totals, terminals and events in words |
//! | `chart.rs` | drawing of one direction: panels above one another, and the axis of time |
//! | `panels.rs` | throughput, delay, octets inside, and losses |
//! | `events.rs` | actions of programs and people |
//! | `axis.rs` | vertical axes: units of values, and places on the drawing |

mod axis;
mod chart;
mod events;
mod page;
mod panels;
mod tables;

use serde::Serialize;

pub use page::page;

/// A run, as far as it is drawn. Times are in seconds since its beginning; times outside 0 to
/// [`duration_s`](Self::duration_s) are drawn at the nearer edge.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Run {
    /// Title of the page: the name of the link or scenario.
    pub title: String,
    /// Facts about the run, each a name and a value: its seed, the version of the program.
    pub facts: Vec<(String, String)>,
    /// The command line; empty if it is not known.
    pub command: String,
    /// Duration of the run, in seconds.
    pub duration_s: f64,
    /// Width of a bin, in seconds. Bin n begins at n times this width.
    pub bin_s: f64,
    /// From the hub to the terminals.
    pub forward: DirectionTraffic,
    /// From the terminals to the hub.
    #[serde(rename = "return")]
    pub back: DirectionTraffic,
    /// The terminals.
    pub terminals: Vec<TerminalPackets>,
    /// Lateness of packets that left the emulator.
    pub lateness: Lateness,
    /// Actions of programs and people, in the order of time.
    pub events: Vec<Event>,
    /// Further remarks for the reader, a sentence each: what was left out, for example.
    pub notes: Vec<String>,
}

/// Packets and their octets, with IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

/// One direction of the link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct DirectionTraffic {
    /// Packets that entered; a packet to several terminals counts once.
    pub entered: Count,
    /// Copies of packets that were delivered, over all terminals.
    pub delivered: Count,
    /// Copies lost to errors, losses and outages.
    pub lost: Count,
    /// Copies that a limit dropped.
    pub dropped: Count,
    /// Packets that were still inside at the end.
    pub held: Count,
    /// The set rate in bit/s from each time on; `None` where it is unknown.
    pub rates_bps: Vec<(f64, Option<f64>)>,
    /// Outages that were set: nothing passed.
    pub outages: Vec<TimeSpan>,
    /// Traffic in each bin; bins behind the last are empty.
    pub bins: Vec<TimeBin>,
    /// Reasons for which copies did not arrive.
    pub causes: Vec<LossCause>,
}

/// A stretch of time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TimeSpan {
    /// Its beginning.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
}

/// Traffic of one direction in a bin.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TimeBin {
    /// Packets that entered.
    pub entered: Count,
    /// Packets that were delivered; a packet to several terminals counts once.
    pub carried: Count,
    /// Octets inside the link at the end of the bin.
    pub inside_octets: u64,
    /// Delays of the copies that were delivered; `None` if there were none.
    pub delay: Option<Delay>,
    /// Greatest lateness of a packet that left, in seconds.
    pub latest_s: f64,
}

/// One-way delays of a bin, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Delay {
    /// The shortest.
    pub min_s: f64,
    /// The 5th percentile.
    pub p5_s: f64,
    /// The median.
    pub p50_s: f64,
    /// The 95th percentile.
    pub p95_s: f64,
    /// The longest.
    pub max_s: f64,
}

/// Reason for which copies did not arrive.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LossCause {
    /// True if a limit dropped the copies; otherwise they were lost.
    pub dropped: bool,
    /// Name of the reason, as in the log.
    pub name: String,
    /// Number of each bin with such copies, and their count; in order.
    pub bins: Vec<(usize, u64)>,
}

/// Packets of a terminal: to it (forward) and from it (return).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TerminalPackets {
    /// Number of the terminal, from 0.
    pub terminal: u32,
    /// Delivered, forward and return.
    pub delivered: [Count; 2],
    /// Lost, forward and return.
    pub lost: [Count; 2],
    /// Dropped, forward and return.
    pub dropped: [Count; 2],
}

/// Lateness of packets that left the emulator, in seconds, and the verdict on it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Lateness {
    /// Number of packets behind the quantiles.
    pub packets: u64,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The 99.9th percentile.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
    /// Limit of the 99th percentile, if there is one.
    pub limit_s: Option<f64>,
    /// True if the run was punctual enough to count; `None` if unknown.
    pub valid: Option<bool>,
    /// Further reasons for the verdict; empty if there are none.
    pub remark: String,
}

/// An action of a program or a person.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Event {
    /// Time of the action, in seconds.
    pub at_s: f64,
    /// Kind of the action.
    pub kind: EventKind,
    /// Direction that it changed; `None` if both or neither.
    pub way: Option<Direction>,
    /// Description in a few words.
    pub words: String,
}

/// Kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A program began.
    Start,
    /// A program ended.
    End,
    /// The link was changed.
    Change,
}

/// Direction of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the hub to the terminals.
    Forward,
    /// From the terminals to the hub.
    Return,
}

#[cfg(test)]
mod tests;
