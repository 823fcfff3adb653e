//! Page of a replication: the sender's passes and waits, and the receivers' requests for repair.
//!
//! [`page`] draws a [`Timeline`] as one HTML file that needs nothing else: drawings are inline SVG, and a few lines
//! of script show the time under the pointer. Details without room in the drawing are left to tooltips. Equal
//! timelines give equal pages.
//!
//! | file | content |
//! |---|---|
//! | `page.rs` | page around the drawing |
//! | `chart.rs` | drawing: the order of its lanes, and the axis |
//! | `sender.rs`, `naks.rs`, `receivers.rs` | lanes of the drawing |
//! | `marks.rs` | marks in the lanes |

mod chart;
mod marks;
mod naks;
mod page;
mod receivers;
mod sender;

use farcast_delivery::Words;

pub use page::page;

/// One replication, as far as it is drawn. All times are in seconds since its beginning; times outside 0 to
/// [`duration_s`](Self::duration_s) are drawn at the nearer edge.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Title of the page: the name of the scenario.
    pub title: String,
    /// Identity of the replication: seed and number.
    pub subtitle: String,
    /// The protocol's terms for its rounds, segments and requests.
    pub words: Words,
    /// Key figures: each a name and a value with its unit.
    pub figures: Vec<(String, String)>,
    /// Duration of the replication, in seconds.
    pub duration_s: f64,
    /// Number of receivers.
    pub receivers: u64,
    /// The sender's passes.
    pub passes: Vec<Pass>,
    /// Times in which data left the sender.
    pub data: Vec<TimeSpan>,
    /// Times in which the sender waited.
    pub waits: Vec<Wait>,
    /// Status requests that left the sender.
    pub requests: Vec<EventPoint>,
    /// NAKs that left receivers; empty if that is not known.
    pub naks_sent: Vec<EventPoint>,
    /// NAKs that reached the sender, by their fate.
    pub naks_reached: Vec<(NakFate, Vec<EventPoint>)>,
    /// Times at which receivers came to have everything.
    pub completions: Vec<EventPoint>,
    /// Turning points of the transmission, each a time in seconds and a few words.
    pub milestones: Vec<(f64, String)>,
    /// Single receivers. More than 60 are not drawn.
    pub lanes: Vec<Lane>,
    /// Further remarks for the reader, a sentence each: what was left out, for example.
    pub notes: Vec<String>,
}

/// A pass of the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pass {
    /// Number of the pass.
    pub number: u32,
    /// Its beginning, in seconds.
    pub begin_s: f64,
    /// Its end, in seconds.
    pub end_s: f64,
    /// DTUs that the sender sent in it.
    pub dtus: u64,
}

/// A stretch of time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimeSpan {
    /// Its beginning.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
}

/// Time in which the sender had nothing to send.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// Its beginning, in seconds.
    pub begin_s: f64,
    /// Its end, in seconds.
    pub end_s: f64,
    /// Cause of the wait, as in "the Status Retry Timer".
    pub what: String,
    /// NAKs that came meanwhile, by their fate; empty if the sender waits for none.
    pub naks: Vec<(NakFate, u64)>,
}

/// Events of one kind at one time, or so close together that they are drawn as one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EventPoint {
    /// Time, in seconds.
    pub at_s: f64,
    /// Number of events.
    pub count: u64,
}

/// Fate of a NAK at the sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NakFate {
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
    /// Name of the receiver.
    pub name: String,
    /// NAKs of the receiver.
    pub naks: Vec<LaneNak>,
    /// Time at which it had everything, in seconds.
    pub completed_s: Option<f64>,
}

/// A NAK of one receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LaneNak {
    /// Time at which it left, in seconds.
    pub sent_s: f64,
    /// Time at which it reached the sender, in seconds, and its fate; `None` if it was lost.
    pub reached: Option<(f64, NakFate)>,
    /// DTUs that it asked for.
    pub dtus: u32,
}

#[cfg(test)]
mod tests;
