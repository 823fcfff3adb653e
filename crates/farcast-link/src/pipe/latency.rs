//! The delay behind the server, and its variation.

use core::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::stage::NotSettable;
use farcast_core::{Span, Time};

use super::entering_before;

use crate::LinkError;

/// Variation of the delay from frame to frame, around the pipe's delay and independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jitter {
    /// The distribution of the difference from the delay.
    pub shape: JitterShape,
    /// Permission for a frame to overtake the one before. Otherwise it leaves with that one at the earliest.
    pub reorder: bool,
}

/// The distribution of jitter; its mean is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitterShape {
    /// Uniform.
    Uniform {
        /// Range from minus to plus this, at most the delay.
        half_width: Span,
    },
    /// Normal, drawn again where it falls outside the limit.
    Normal {
        /// The standard deviation before it is cut off.
        deviation: Span,
        /// Range from minus to plus this, at least the deviation and at most the delay.
        limit: Span,
    },
}

impl Jitter {
    pub(super) fn check(&self, delay: Span) -> Result<(), LinkError> {
        if self.shape.limit() > delay {
            return Err(LinkError::JitterBeyondDelay);
        }
        match self.shape {
            // From one deviation on, two of three draws lie inside.
            JitterShape::Normal { deviation, limit } if limit < deviation => Err(LinkError::JitterLimit),
            _ => Ok(()),
        }
    }
}

impl JitterShape {
    const fn limit(self) -> Span {
        match self {
            Self::Uniform { half_width } => half_width,
            Self::Normal { limit, .. } => limit,
        }
    }

    /// Draws a deviation from the mean, counted from the lower limit.
    fn draw(self, stream: &mut RandomStream) -> Span {
        match self {
            Self::Uniform { half_width } => {
                let width = half_width.as_nanos().saturating_mul(2);
                Span::from_nanos(stream.below(width.saturating_add(1)))
            }
            Self::Normal { deviation, limit } => loop {
                let offset = normal(stream) * deviation.as_nanos() as f64;
                let limit = limit.as_nanos() as f64;
                if (-limit..=limit).contains(&offset) {
                    return Span::from_nanos((limit + offset + 0.5) as u64);
                }
            },
        }
    }
}

/// Draws a standard normal number (Box and Muller, Annals of Mathematical Statistics 29, 1958), by libm's functions:
/// the same digits on every platform.
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// Latency from the end of a frame's sending to its release.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    delay: Span,
    jitter: Option<Jitter>,
    stream: RandomStream,
    /// Earliest time of a later release, where order is kept.
    floor: Time,
    /// The last release.
    latest: Time,
}

impl Latency {
    pub(super) const fn new(delay: Span, jitter: Option<Jitter>, stream: RandomStream) -> Self {
        Self { delay, jitter, stream, floor: Time::ZERO, latest: Time::ZERO }
    }

    pub(super) const fn delay(&self) -> Span {
        self.delay
    }

    /// Checks that frames may be delayed by `delay`.
    ///
    /// # Errors
    /// [`NotSettable::DelayBelowJitter`] if a frame might leave before it was sent.
    pub(super) fn may_set_delay(&self, delay: Span) -> Result<(), NotSettable> {
        let least = self.jitter.map_or(Span::ZERO, |jitter| jitter.shape.limit());
        if delay < least { Err(NotSettable::DelayBelowJitter { least }) } else { Ok(()) }
    }

    /// Delays by `delay`, an allowed delay, the frames that enter from now on; frames that entered before keep their
    /// times.
    pub(super) fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
        self.floor = self.floor.max(self.latest);
    }

    /// Releases frames: the first was sent by `departure`, and each of at most `most` in all `spacing` after the one
    /// before. Returns the time of the first, the number that is released evenly, and their spacing. The number is 1 if
    /// each frame has a delay of its own.
    pub(super) fn release(&mut self, departure: Time, spacing: Span, most: NonZeroU32) -> Release {
        let Some(Jitter { shape, reorder }) = self.jitter else {
            return self.keep_order(departure + self.delay, spacing, most);
        };
        let least = self.delay.saturating_sub(shape.limit());
        let mut at = departure + least + shape.draw(&mut self.stream);
        if !reorder {
            self.floor = self.floor.max(at);
            at = self.floor;
        }
        Release { at, spacing, count: NonZeroU32::MIN }
    }

    /// Releases frames in order. A frame that would overtake those released before the delay became shorter leaves
    /// together with the last of them.
    fn keep_order(&mut self, at: Time, spacing: Span, most: NonZeroU32) -> Release {
        if at < self.floor {
            let count = entering_before(at, spacing, self.floor, most);
            return Release { at: self.floor, spacing: Span::ZERO, count };
        }
        self.latest = self.latest.max(at + spacing * u64::from(most.get() - 1));
        Release { at, spacing, count: most }
    }
}

/// Frames that are released evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// Release of the first.
    pub(super) at: Time,
    /// The time from one to the next.
    pub(super) spacing: Span,
    /// Number of frames.
    pub(super) count: NonZeroU32,
}
