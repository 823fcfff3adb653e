//! A replication as a page: who sent, who waited for what, and who asked for what again.
//!
//! [`page`] draws a [`Timeline`] as one HTML file that needs nothing else: drawings are SVG within it, and its few
//! lines of script only show the time under the pointer. What there is no room for is left out of the drawing and said
//! when the pointer rests on it. The same timeline gives the same page.
//!
//! | file | what |
//! |---|---|
//! | `page.rs` | the page around the drawing |
//! | `chart.rs` | the drawing: what is above what, and the axis |
//! | `sender.rs`, `naks.rs`, `receivers.rs` | its lanes |
//! | `marks.rs` | what they are drawn with |

mod chart;
mod marks;
mod naks;
mod page;
mod receivers;
mod sender;

use farcast_delivery::Words;

pub use page::page;

/// One replication, as far as it is drawn. All times are in seconds since its beginning; what lies outside
/// 0 to [`duration_s`](Self::duration_s) is drawn at that edge.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// What the page is called: the scenario's name.
    pub title: String,
    /// What it is: seed, number of the replication.
    pub subtitle: String,
    /// What the protocol calls its rounds, segments and requests.
    pub words: Words,
    /// Key figures: each a name and a value with its unit.
    pub figures: Vec<(String, String)>,
    /// How long the replication took, in seconds.
    pub duration_s: f64,
    /// How many receivers there are.
    pub receivers: u64,
    /// The sender's passes.
    pub passes: Vec<Pass>,
    /// When data left the sender.
    pub data: Vec<Interval>,
    /// What the sender waited for.
    pub waits: Vec<Wait>,
    /// Status requests that left the sender.
    pub requests: Vec<Point>,
    /// NAKs that left receivers; empty if that is not known.
    pub naks_sent: Vec<Point>,
    /// NAKs that reached the sender, each kind of fate on its own.
    pub naks_reached: Vec<(Fate, Vec<Point>)>,
    /// Receivers that came to have everything.
    pub completions: Vec<Point>,
    /// Turns of the transmission, each a time in seconds and a few words.
    pub milestones: Vec<(f64, String)>,
    /// Receivers one by one. More than 60 are not drawn.
    pub lanes: Vec<Lane>,
    /// What else the reader should know, such as what was left out; a sentence each.
    pub notes: Vec<String>,
}

/// A pass of the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pass {
    /// Its number.
    pub number: u32,
    /// When it began, in seconds.
    pub begin_s: f64,
    /// When it ended, in seconds.
    pub end_s: f64,
    /// DTUs that it sent.
    pub dtus: u64,
}

/// A stretch of time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// When it began.
    pub begin_s: f64,
    /// When it ended.
    pub end_s: f64,
}

/// A time in which the sender had nothing to send.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// When it began, in seconds.
    pub begin_s: f64,
    /// When it ended, in seconds.
    pub end_s: f64,
    /// What it waited for, as in "the Status Retry Timer".
    pub what: String,
    /// NAKs that came meanwhile; empty if none is waited for.
    pub naks: Vec<(Fate, u64)>,
}

/// Things that happened at one time, or so close together that it makes no difference here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// When, in seconds.
    pub at_s: f64,
    /// How many.
    pub count: u64,
}

/// What became of a NAK at the sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// It made the sender schedule something.
    Used,
    /// It asked for nothing new.
    Known,
    /// A later pass than the one that it answers had begun.
    Late,
}

/// One receiver.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lane {
    /// What it is called.
    pub name: String,
    /// Its NAKs.
    pub naks: Vec<LaneNak>,
    /// When it had everything, in seconds.
    pub completed_s: Option<f64>,
}

/// A NAK of one receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LaneNak {
    /// When it left, in seconds.
    pub sent_s: f64,
    /// When it reached the sender, in seconds, and what became of it; `None` if it was lost.
    pub reached: Option<(f64, Fate)>,
    /// DTUs that it asked for.
    pub dtus: u32,
}

#[cfg(test)]
mod tests;
