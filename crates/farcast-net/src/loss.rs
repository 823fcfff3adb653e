//! Deliberate loss of datagrams, to try how a transfer copes.

use farcast_core::Probability;
use farcast_core::random::RandomStream;

/// Loses each datagram independently with the same probability. The seed decides which.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    probability: f64,
    stream: RandomStream,
}

impl Loss {
    pub(crate) fn new(probability: Probability, seed: u64) -> Self {
        Self { probability: probability.get(), stream: RandomStream::derive(seed, &[0x6C6F_7373]) }
    }

    /// Returns `true` if the next datagram is lost.
    pub(crate) fn strikes(&mut self) -> bool {
        self.probability > 0.0 && self.stream.chance(self.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_loses_its_part() {
        let mut loss = Loss::new(Probability::new(0.1).expect("valid"), 1);
        let struck = (0..10_000).filter(|_| loss.strikes()).count();
        // Mean 1000, standard deviation 30.
        assert!((880..1120).contains(&struck), "{struck}");
        let mut none = Loss::new(Probability::ZERO, 1);
        assert!((0..1000).all(|_| !none.strikes()));
    }
}
