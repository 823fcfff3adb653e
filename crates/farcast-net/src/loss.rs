//! Losing datagrams on purpose, to try things.

use farcast_core::Probability;
use farcast_core::random::RandomStream;

/// Loses each datagram with a probability of its own, by seed.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    probability: f64,
    stream: RandomStream,
}

impl Loss {
    pub(crate) fn new(probability: Probability, seed: u64) -> Self {
        Self { probability: probability.get(), stream: RandomStream::derive(seed, &[0x6C6F_7373]) }
    }

    /// Whether the next datagram is lost.
    pub(crate) fn strikes(&mut self) -> bool {
        self.probability > 0.0 && self.stream.chance(self.probability)
    }
}
