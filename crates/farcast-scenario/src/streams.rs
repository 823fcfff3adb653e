//! Names of random streams: the entity and the purpose for which a stream is drawn.
//!
//! Simulator and emulator draw from these streams, so that equal seeds draw the same in both.

use farcast_core::random::RandomStream;

/// Purpose of the draws of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Losses of a group of receivers behind the forward path.
    Losses = 1,
    /// A stage of the links.
    Stage = 2,
    /// Waiting times of the receivers of a group, where they wait at random.
    Waits = 3,
    /// Losses behind the return path, of the packets of one receiver or of all.
    ReturnLosses = 4,
    /// Losses of the terminal of a flow behind the forward path.
    FlowLosses = 5,
    /// Losses of the terminal of a flow behind the return path.
    FlowReturnLosses = 6,
    /// A flow itself.
    Flow = 7,
}

/// The streams of one replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    seed: u64,
    replication: u64,
}

impl Streams {
    /// Returns the streams of a replication, from 0.
    pub const fn new(seed: u64, replication: u64) -> Self {
        Self { seed, replication }
    }

    /// Returns the streams of an emulation: those of replication 0.
    pub const fn of_emulation(seed: u64) -> Self {
        Self::new(seed, 0)
    }

    /// Returns the stream of entity number `entity` for `purpose`.
    pub fn of(self, entity: u64, purpose: Purpose) -> RandomStream {
        RandomStream::derive(self.seed, &[self.replication, entity, purpose as u64])
    }

    /// Returns such a stream after change number `change`, from 1, of the stage or process that draws from it.
    pub fn changed(self, entity: u64, purpose: Purpose, change: u64) -> RandomStream {
        RandomStream::derive(self.seed, &[self.replication, entity, purpose as u64, change])
    }

    /// Returns a seed for an engine that derives its own streams.
    pub fn seed(self, entity: u64, purpose: Purpose) -> u64 {
        self.of(entity, purpose).bits()
    }
}
