//! Delay behind the server, and how it varies.

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use crate::LinkError;

/// How the delay varies from frame to frame, around the pipe's delay and independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jitter {
    /// The distribution of what is added to the delay or taken from it.
    pub shape: JitterShape,
    /// Whether a frame may overtake the one before. Otherwise it leaves at the earliest with it.
    pub reorder: bool,
}

/// The distribution of jitter; its mean is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitterShape {
    /// Uniform.
    Uniform {
        /// From minus to plus this, at most the delay.
        half_width: Span,
    },
    /// Normal, drawn again where it falls outside the limit.
    Normal {
        /// The standard deviation before it is cut off.
        deviation: Span,
        /// From minus to plus this, at least the deviation and at most the delay.
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

    /// A deviation from the mean, counted from the lower limit.
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

/// A standard normal number (Box and Muller, Annals of Mathematical Statistics 29, 1958), by libm's functions: the
/// same digits on every platform.
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// From the end of a frame's sending to its release.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    delay: Span,
    jitter: Option<Jitter>,
    stream: RandomStream,
    /// The last release, which the next may not precede.
    floor: Time,
}

impl Latency {
    pub(super) const fn new(delay: Span, jitter: Option<Jitter>, stream: RandomStream) -> Self {
        Self { delay, jitter, stream, floor: Time::ZERO }
    }

    /// Whether each frame has a delay of its own.
    pub(super) const fn varies(&self) -> bool {
        self.jitter.is_some()
    }

    /// When a frame is released that was sent by `departure`.
    pub(super) fn release(&mut self, departure: Time) -> Time {
        let Some(Jitter { shape, reorder }) = self.jitter else { return departure + self.delay };
        let least = self.delay.saturating_sub(shape.limit());
        let at = departure + least + shape.draw(&mut self.stream);
        if reorder {
            return at;
        }
        self.floor = self.floor.max(at);
        self.floor
    }
}
