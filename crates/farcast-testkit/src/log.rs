//! What happened in a network.

use core::fmt::Debug;
use core::net::SocketAddr;

use farcast_core::Time;

/// One segment that left a host.
#[derive(Clone, PartialEq, Debug)]
pub struct Departure<M> {
    /// When.
    pub at: Time,
    /// The host's number.
    pub from: usize,
    /// A group or a host.
    pub to: SocketAddr,
    /// A message of one segment.
    pub message: M,
}

/// One segment on its way from a host to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Leg<M> {
    /// When it left.
    pub at: Time,
    /// The number of the host that it left.
    pub from: usize,
    /// The number of the host that it goes to.
    pub to: usize,
    /// A message of one segment.
    pub message: M,
    /// How many copies arrive as they were sent: 0 when it is lost or damaged.
    pub copies: u32,
}

/// Something that an engine told its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happening {
    /// When.
    pub at: Time,
    /// The host's number.
    pub host: usize,
    /// The event's debug text.
    pub text: String,
}

/// Everything that happened.
///
/// Hosts advance independently as far as nothing can reach them, so entries of different hosts are ordered only
/// once the log is [`sorted`](Self::sorted); those of one host always are.
#[derive(Clone, PartialEq, Debug)]
pub struct Log<M> {
    /// Segments that left, cut into single ones.
    pub departures: Vec<Departure<M>>,
    /// What became of each on its way to each host that it was for.
    pub legs: Vec<Leg<M>>,
    /// What engines told their owners.
    pub events: Vec<Happening>,
}

impl<M> Default for Log<M> {
    fn default() -> Self {
        Self { departures: Vec::new(), legs: Vec::new(), events: Vec::new() }
    }
}

impl<M: Debug + PartialEq> Log<M> {
    /// The same with its entries in the order of time, then of hosts.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.departures.sort_by_key(|d| (d.at, d.from));
        self.legs.sort_by_key(|l| (l.at, l.from, l.to));
        self.events.sort_by_key(|e| (e.at, e.host));
        self
    }

    /// The first place where two sorted logs differ, in words.
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
