//! Links between hosts: rate, delay, loss, duplication, reordering and corruption.

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};

/// Effects of one direction between two hosts on each segment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Link {
    /// One-way delay. The network adds a few nanoseconds that differ from pair to pair.
    pub delay: Span,
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Probability that a segment arrives twice.
    pub duplication: f64,
    /// Range of a uniform extra delay of each segment; more than the spacing of segments reorders them.
    pub jitter: Span,
    /// Probability that a segment goes through the network's corruption hook.
    pub corruption: f64,
    /// Rate and queue of the link; if absent, segments do not wait.
    pub narrow: Option<Transmitter>,
}

/// A transmitter with a drop-tail queue. Runs enter it whole: a run is queued before another message of the same host
/// even if that message overtakes some of its segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transmitter {
    /// Rate, which counts UDP payload and headers.
    pub rate: BitRate,
    /// Bytes of headers of each segment.
    pub overhead: u16,
    /// Longest wait of a segment; a segment that would wait longer is lost.
    pub queue: Span,
    /// `true` if the host at the end of the link has one transmitter for all such links, as a return channel that many
    /// receivers share.
    pub shared: bool,
}

impl Link {
    /// Creates a link that only delays.
    pub fn clean(delay: Span) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Creates a link that delays and loses.
    pub fn lossy(delay: Span, loss: f64) -> Self {
        Self { delay, loss, ..Self::default() }
    }
}

/// Fate of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentFate {
    /// Number of copies that arrive.
    pub(crate) copies: u32,
    /// Extra delay of each copy.
    pub(crate) late: [Span; 2],
    pub(crate) corrupt: bool,
}

impl SegmentFate {
    /// Fate of a segment that arrives once, in time, as it was sent.
    pub(crate) const PLAIN: Self = Self { copies: 1, late: [Span::ZERO; 2], corrupt: false };

    /// Returns this fate after a wait in a queue, or after a queue without room (`None`).
    pub(crate) fn after(self, wait: Option<Span>) -> Self {
        match wait {
            Some(wait) => Self { late: self.late.map(|late| late + wait), ..self },
            None => Self { copies: 0, ..self },
        }
    }

    /// Returns `true` if the segment arrives once, in time and as it was sent, so that it may stay in its run.
    pub(crate) fn is_plain(&self) -> bool {
        self.copies == 1 && self.late[0].is_zero() && !self.corrupt
    }
}

/// A link and its random streams, one for each purpose, so that one effect does not change the draws of another.
#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    pub(crate) link: Link,
    pub(crate) delay: Span,
    loss: RandomStream,
    duplication: RandomStream,
    jitter: RandomStream,
    corruption: RandomStream,
    pub(crate) damage: RandomStream,
    /// Segments that have entered the link.
    pub(crate) entered: u64,
    /// Time at which a transmitter of its own is free again.
    pub(crate) free: Time,
}

impl LinkState {
    pub(crate) fn new(link: Link, seed: u64, from: usize, to: usize) -> Self {
        let stream = |purpose| RandomStream::derive(seed, &[from as u64, to as u64, purpose]);
        Self {
            delay: link.delay + apart(from, to),
            link,
            loss: stream(0),
            duplication: stream(1),
            jitter: stream(2),
            corruption: stream(3),
            damage: stream(4),
            entered: 0,
            free: Time::ZERO,
        }
    }

    /// Draws the fate of the next segment, in the order of departure.
    pub(crate) fn draw(&mut self) -> SegmentFate {
        self.entered += 1;
        let link = self.link;
        let lost = link.loss > 0.0 && self.loss.chance(link.loss);
        let twice = link.duplication > 0.0 && self.duplication.chance(link.duplication);
        let corrupt = link.corruption > 0.0 && self.corruption.chance(link.corruption);
        let mut late = [Span::ZERO; 2];
        if !link.jitter.is_zero() {
            // Both are drawn even if there is no second copy.
            late = [(); 2].map(|()| Span::from_nanos(self.jitter.below(link.jitter.as_nanos() + 1)));
        }
        SegmentFate { copies: if lost { 0 } else { 1 + u32::from(twice) }, late, corrupt }
    }
}

impl Transmitter {
    /// Queues a segment of `len` bytes of UDP payload that leaves at `at`, while the transmitter is busy until `free`.
    /// Returns the time until the segment is through, or `None` if the queue has no room for it.
    pub(crate) fn queue(&self, at: Time, len: usize, free: &mut Time) -> Option<Span> {
        let start = (*free).max(at);
        if start.since(at) > self.queue {
            return None;
        }
        *free = start + self.rate.time_of_bytes(len as u64 + u64::from(self.overhead));
        Some(free.since(at))
    }
}

/// Returns a few nanoseconds by which the delays of pairs differ, so that no outcome depends on the order of ties.
pub(crate) fn apart(from: usize, to: usize) -> Span {
    Span::from_nanos((from as u64 * 61 + to as u64 * 17) % 4001)
}
