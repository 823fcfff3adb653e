//! Log of the departures, arrivals and events in a network.

use core::fmt::Debug;
use core::net::SocketAddr;

use farcast_core::Time;

/// One segment that left a host.
#[derive(Clone, PartialEq, Debug)]
pub struct Departure<M> {
    /// Time of departure.
    pub at: Time,
    /// Number of the host.
    pub from: usize,
    /// Destination: a group or a host.
    pub to: SocketAddr,
    /// Message of one segment.
    pub message: M,
}

/// One segment on its way from a host to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Leg<M> {
    /// Time of departure.
    pub at: Time,
    /// Number of the sending host.
    pub from: usize,
    /// Number of the receiving host.
    pub to: usize,
    /// Message of one segment.
    pub message: M,
    /// Number of copies that arrive as they were sent: 0 if the segment is lost or damaged.
    pub copies: u32,
}

/// Event that an engine reported to its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happening {
    /// Time of the event.
    pub at: Time,
    /// Number of the host.
    pub host: usize,
    /// Debug text of the event.
    pub text: String,
}

/// Log of a run.
///
/// Hosts advance independently as far as nothing can reach them. So entries of different hosts are ordered only once
/// the log is [`sorted`](Self::sorted); entries of one host always are.
#[derive(Clone, PartialEq, Debug)]
pub struct Log<M> {
    /// Segments that left, cut into single ones.
    pub departures: Vec<Departure<M>>,
    /// Fate of each departure on its way to each receiving host.
    pub legs: Vec<Leg<M>>,
    /// Events that engines reported to their owners.
    pub events: Vec<Happening>,
}

impl<M> Default for Log<M> {
    fn default() -> Self {
        Self { departures: Vec::new(), legs: Vec::new(), events: Vec::new() }
    }
}

impl<M: Debug + PartialEq> Log<M> {
    /// Returns the log with its entries in the order of time, then of hosts.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.departures.sort_by_key(|d| (d.at, d.from));
        self.legs.sort_by_key(|l| (l.at, l.from, l.to));
        self.events.sort_by_key(|e| (e.at, e.host));
        self
    }

    /// Returns the first difference of two sorted logs, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        first_difference("departure", &self.departures, &other.departures)
            .into_iter()
            .chain(first_difference("leg", &self.legs, &other.legs))
            .chain(first_difference("event", &self.events, &other.events))
            .min_by_key(|(at, _)| *at)
            .map(|(_, text)| text)
    }
}

/// An entry of a log that happened at some time.
trait Timed: PartialEq + Debug {
    fn at(&self) -> Time;
}

impl<M: PartialEq + Debug> Timed for Departure<M> {
    fn at(&self) -> Time {
        self.at
    }
}

impl<M: PartialEq + Debug> Timed for Leg<M> {
    fn at(&self) -> Time {
        self.at
    }
}

impl Timed for Happening {
    fn at(&self) -> Time {
        self.at
    }
}

fn first_difference<T: Timed>(what: &str, a: &[T], b: &[T]) -> Option<(Time, String)> {
    let at = a.iter().zip(b).position(|(x, y)| x != y).or((a.len() != b.len()).then(|| a.len().min(b.len())));
    let at = at?;
    let time = a.get(at).into_iter().chain(b.get(at)).map(Timed::at).min()?;
    Some((time, format!("{what} {at} differs:\n  {:?}\n  {:?}", a.get(at), b.get(at))))
}
