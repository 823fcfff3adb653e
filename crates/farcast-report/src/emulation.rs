//! A run of an emulated link as a page of plots: throughput, delay and losses of both ways over its time.
//!
//! [`page`] draws a [`Run`] as one HTML file that needs nothing else: drawings are SVG within it, once for wide windows
//! and once for narrow ones, and there is no script. What is drawn is also in the page as JSON, in the element `data`,
//! which is the run as it was given; whoever cannot see the drawings, or has other questions, reads that. The page is
//! well-formed XML. The same run gives the same page.
//!
//! | file | what |
//! |---|---|
//! | `page.rs` | the page around the drawings |
//! | `tables.rs` | totals, terminals and events in words |
//! | `chart.rs` | the drawing of a way: panels above one another, and the axis of time |
//! | `panels.rs` | throughput, delay, what is inside, and losses |
//! | `events.rs` | what programs and people did |
//! | `axis.rs` | values and their units, from numbers to places |

mod axis;
mod chart;
mod events;
mod page;
mod panels;
mod tables;

use serde::Serialize;

pub use page::page;

/// A run, as far as it is drawn. Times are in seconds since its beginning; what lies outside 0 to
/// [`duration_s`](Self::duration_s) is drawn at that edge.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Run {
    /// What the page is called: the link's or scenario's name.
    pub title: String,
    /// What the reader should know of the run, each a name and a value: its seed, the program's version.
    pub facts: Vec<(String, String)>,
    /// The command line; empty if it is not known.
    pub command: String,
    /// How long the run took, in seconds.
    pub duration_s: f64,
    /// The width of a bin, in seconds. Bin n begins at n times this.
    pub bin_s: f64,
    /// From the hub to the terminals.
    pub forward: Way,
    /// From the terminals to the hub.
    #[serde(rename = "return")]
    pub back: Way,
    /// The terminals.
    pub terminals: Vec<Terminal>,
    /// How late packets left.
    pub lateness: Lateness,
    /// What programs and people did, in the order of time.
    pub events: Vec<Event>,
    /// What else the reader should know, such as what was left out; a sentence each.
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

/// One way of the link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Way {
    /// Packets that entered, each once.
    pub entered: Count,
    /// Copies of packets that were delivered, over all terminals.
    pub delivered: Count,
    /// Copies that errors, losses and outages took.
    pub lost: Count,
    /// Copies that a limit dropped.
    pub dropped: Count,
    /// Packets that were still inside at the end.
    pub held: Count,
    /// The rate in bit/s from a time on, where it is known.
    pub rates_bps: Vec<(f64, Option<f64>)>,
    /// When nothing passed because somebody wanted it.
    pub outages: Vec<Interval>,
    /// What passed in each bin; those behind the last are empty.
    pub bins: Vec<Bin>,
    /// Why copies did not arrive.
    pub causes: Vec<Cause>,
}

/// A stretch of time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// When it began.
    pub begin_s: f64,
    /// When it ended.
    pub end_s: f64,
}

/// What passed on a way in a bin.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Bin {
    /// Packets that entered.
    pub entered: Count,
    /// Packets that were delivered, each once however many terminals got it.
    pub carried: Count,
    /// Octets inside at the bin's end.
    pub inside_octets: u64,
    /// How long copies that were delivered took; `None` if there were none.
    pub delay: Option<Delay>,
    /// The longest time by which a packet left too late, in seconds.
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

/// A reason why copies did not arrive.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cause {
    /// Whether a limit dropped them; else they were lost.
    pub dropped: bool,
    /// What it is called, as in the log.
    pub name: String,
    /// The number of a bin, and how many copies that was; in order.
    pub bins: Vec<(usize, u64)>,
}

/// A terminal's packets: on the way forward to it, and on the way back from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Terminal {
    /// Its number, from 0.
    pub terminal: u32,
    /// Delivered, forward and return.
    pub delivered: [Count; 2],
    /// Lost, forward and return.
    pub lost: [Count; 2],
    /// Dropped, forward and return.
    pub dropped: [Count; 2],
}

/// How late packets left, and whether that was too late. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Lateness {
    /// Of how many packets the quantiles tell.
    pub packets: u64,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The 99.9th percentile.
    pub p999_s: f64,
    /// The longest.
    pub max_s: f64,
    /// What the 99th percentile may be, where that is known.
    pub limit_s: Option<f64>,
    /// Whether the run was punctual enough to count, where that is known.
    pub valid: Option<bool>,
    /// The rest of the reasons for that; empty if there is nothing to say.
    pub remark: String,
}

/// What somebody did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Event {
    /// When, in seconds.
    pub at_s: f64,
    /// Of what kind it was.
    pub kind: EventKind,
    /// Which way it changed; `None` of both, or of neither.
    pub way: Option<Direction>,
    /// In a few words.
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

/// Which way.
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
