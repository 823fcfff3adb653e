//! The names of random streams: which draws of which entity they are for.
//!
//! Whoever simulates or emulates draws from these, so that equal seeds draw the same in both.

use farcast_core::random::RandomStream;

/// Which draw of an entity a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// What a group of receivers loses behind the way forward.
    Losses = 1,
    /// A stage of the links.
    Stage = 2,
    /// How long the receivers of a group wait where they wait at random.
    Waits = 3,
    /// What is lost of a receiver's, or of all receivers', behind the way back.
    ReturnLosses = 4,
    /// What the terminal of a flow loses behind the way forward.
    FlowLosses = 5,
    /// What is lost of the terminal of a flow behind the way back.
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
    /// Those of a replication, from 0.
    pub const fn new(seed: u64, replication: u64) -> Self {
        Self { seed, replication }
    }

    /// Those of an emulation: of replication 0.
    pub const fn of_emulation(seed: u64) -> Self {
        Self::new(seed, 0)
    }

    /// The stream of entity number `entity` for `purpose`.
    pub fn of(self, entity: u64, purpose: Purpose) -> RandomStream {
        RandomStream::derive(self.seed, &[self.replication, entity, purpose as u64])
    }

    /// The same after change number `change`, from 1, of what draws from it.
    pub fn changed(self, entity: u64, purpose: Purpose, change: u64) -> RandomStream {
        RandomStream::derive(self.seed, &[self.replication, entity, purpose as u64, change])
    }

    /// A number for an engine that derives its own streams.
    pub fn seed(self, entity: u64, purpose: Purpose) -> u64 {
        self.of(entity, purpose).bits()
    }
}
