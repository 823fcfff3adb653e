//! Receivers that are cut off for a while.

use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Span, Time};

use super::hazard::{Hazard, exponential};
use super::{Among, Losses, sorted};
use crate::LinkError;
use crate::outage::{OutagePhase, Schedule};

/// Length of a random outage; above zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutageLength {
    /// Exponential lengths with this mean.
    Exponential(Span),
    /// The same length for every outage.
    Fixed(Span),
}

impl OutageLength {
    const fn mean(self) -> Span {
        match self {
            Self::Exponential(span) | Self::Fixed(span) => span,
        }
    }

    fn draw(self, stream: &mut RandomStream) -> Span {
        match self {
            Self::Exponential(mean) => exponential_span(mean, stream),
            Self::Fixed(span) => span,
        }
    }

    /// Draws the rest of an outage that is found under way.
    fn remainder(self, stream: &mut RandomStream) -> Span {
        match self {
            Self::Exponential(mean) => exponential_span(mean, stream),
            Self::Fixed(span) => Span::from_nanos(stream.below(span.as_nanos()) + 1),
        }
    }
}

/// Outages that come at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomOutages {
    /// The mean of the exponential time from the end of an outage to the start of the next; above zero.
    pub between: Span,
    /// The length of each outage.
    pub length: OutageLength,
    /// Reach of an outage: if `true`, it cuts off all receivers together. Otherwise each receiver has outages of its
    /// own, independently.
    pub common: bool,
}

impl RandomOutages {
    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`LinkError::ZeroMean`] if the time between outages is zero, [`LinkError::ZeroOutage`] if their length is.
    pub fn check(&self) -> Result<(), LinkError> {
        if self.between.is_zero() {
            return Err(LinkError::ZeroMean("time between outages"));
        }
        if self.length.mean().is_zero() {
            return Err(LinkError::ZeroOutage);
        }
        Ok(())
    }

    /// Returns the mean time from the start of an outage to the start of the next.
    fn cycle(&self) -> Span {
        self.between + self.length.mean()
    }

    /// Returns the share of time spent in outages.
    fn share(&self) -> Probability {
        let (up, down) = (self.between.as_secs_f64(), self.length.mean().as_secs_f64());
        Probability::new(down / (up + down)).unwrap_or(Probability::ZERO)
    }

    /// Follows one receiver whose next outage starts at `start`. Returns the end of the outage that it is in at `now`;
    /// `None` if it is in none.
    fn follow(&self, mut start: Time, now: Time, stream: &mut RandomStream) -> Option<Time> {
        while start <= now {
            let end = start + self.length.draw(stream);
            if end > now || end == Time::NEVER {
                return Some(end);
            }
            start = end + exponential_span(self.between, stream);
        }
        None
    }
}

fn exponential_span(mean: Span, stream: &mut RandomStream) -> Span {
    // A float-to-integer cast saturates.
    Span::from_nanos((exponential(stream) * mean.as_nanos() as f64) as u64)
}

/// Outages: a receiver in an outage loses every frame that is on the channel meanwhile.
///
/// The one time with which a frame is offered decides its fate. An outage that begins or ends while the frame is being
/// received does not touch it.
#[derive(Clone, Debug)]
pub struct Outages {
    receivers: u32,
    cause: OutageSource,
}

#[derive(Clone, Debug)]
enum OutageSource {
    Scheduled(Schedule),
    Random(Renewal),
}

impl Outages {
    /// Creates outages by `schedule` that cut off all `receivers` together. The time alone decides, so this process is
    /// memoryless.
    pub fn scheduled(schedule: Schedule, receivers: u32) -> Self {
        Self { receivers, cause: OutageSource::Scheduled(schedule) }
    }

    /// Creates random outages of `receivers`. The first frame finds them in the stationary state: an outage is under
    /// way with the probability that outages have in the long run.
    ///
    /// # Errors
    /// The error of [`RandomOutages::check`].
    pub fn random(config: RandomOutages, receivers: u32, stream: RandomStream) -> Result<Self, LinkError> {
        config.check()?;
        let sites = if config.common { receivers.min(1) } else { receivers };
        Ok(Self { receivers, cause: OutageSource::Random(Renewal::new(config, sites, stream)) })
    }
}

impl Losses for Outages {
    fn draw(&mut self, now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let everyone = match &mut self.cause {
            OutageSource::Scheduled(schedule) => matches!(schedule.at(now), OutagePhase::Outage { .. }),
            OutageSource::Random(renewal) => {
                renewal.catch_up(now);
                if !renewal.config.common {
                    sorted::answer(&renewal.down, among, lost);
                }
                renewal.config.common && !renewal.down.is_empty()
            }
        };
        match among {
            Among::All if everyone => lost.extend(0..self.receivers),
            Among::These(asked) if everyone => lost.extend_from_slice(asked),
            _ => {}
        }
    }

    fn is_memoryless(&self) -> bool {
        matches!(self.cause, OutageSource::Scheduled(_))
    }
}

/// Mean cycles without a frame after which the state is drawn anew. The old state is forgotten by then, and following
/// every outage would take long.
const FORGOTTEN: u64 = 1 << 16;

/// Alternating times without and with an outage at a number of sites (a receiver each, or the channel).
///
/// Only sites in an outage are kept. From one frame to the next, a site without an outage is a candidate whose hazard
/// is the elapsed time over the mean time between outages. The position of the event in that hazard gives its time.
#[derive(Clone, Debug)]
struct Renewal {
    config: RandomOutages,
    sites: u32,
    onsets: Hazard,
    stream: RandomStream,
    /// Sites in an outage, ascending.
    down: Vec<u32>,
    /// The same sites with the end of each outage.
    ends: Vec<(u32, Time)>,
    fresh: Vec<(u32, Time)>,
    scratch: Vec<(u32, Time)>,
    /// Time of the last frame on the channel.
    last: Option<Time>,
}

impl Renewal {
    fn new(config: RandomOutages, sites: u32, mut stream: RandomStream) -> Self {
        let onsets = Hazard::new(RandomStream::derive(stream.bits(), &[]));
        let (down, ends, fresh, scratch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { config, sites, onsets, stream, down, ends, fresh, scratch, last: None }
    }

    /// Follows every site to `now`.
    fn catch_up(&mut self, now: Time) {
        let last = self.last.replace(now);
        match last.map(|last| now.since(last)) {
            Some(Span::ZERO) => return,
            Some(elapsed) if elapsed / FORGOTTEN < self.config.cycle() => self.follow(now - elapsed, now),
            _ => self.start(now),
        }
        self.down.clear();
        self.down.extend(self.ends.iter().map(|&(site, _)| site));
    }

    /// Draws the stationary state.
    fn start(&mut self, now: Time) {
        self.ends.clear();
        let Self { config, ends, stream, .. } = self;
        self.onsets.each(Hazard::of(config.share()), self.sites as usize, |site, _| {
            ends.push((site as u32, now + config.length.remainder(stream)));
        });
    }

    fn follow(&mut self, last: Time, now: Time) {
        let Self { config, ends, stream, fresh, .. } = self;
        let between = config.between.as_nanos() as f64;
        let hazard = now.since(last).as_nanos() as f64 / between;
        fresh.clear();
        self.onsets.each(hazard, self.sites as usize, |site, passed| {
            let site = site as u32;
            // All sites are candidates; those that were in an outage at `last` are followed below instead.
            if ends.binary_search_by_key(&site, |&(site, _)| site).is_err() {
                let start = last + Span::from_nanos((passed * between) as u64);
                fresh.extend(config.follow(start, now, stream).map(|end| (site, end)));
            }
        });
        ends.retain_mut(|(_, end)| {
            if *end > now {
                return true;
            }
            let next = *end + exponential_span(config.between, stream);
            config.follow(next, now, stream).map(|later| *end = later).is_some()
        });
        sorted::add(ends, fresh, &mut self.scratch);
    }
}

#[cfg(test)]
mod tests;
