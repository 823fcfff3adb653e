//! What becomes of packets behind the last stage.

use farcast_core::random::RandomStream;
use farcast_core::{Among, Losses, Probability, Time};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_scenario::links::LossSpec;

use super::Cause;

/// What a terminal loses on one way.
#[derive(Debug)]
pub(super) struct Fates {
    outages: Box<dyn Losses>,
    /// All other processes.
    losses: Box<dyn Losses>,
}

impl Fates {
    /// Those of terminal number `terminal`: all processes but outages, and outages, with draws from one stream as if they
    /// were one.
    pub(super) fn new((losses, outages): &(LossSpec, LossSpec), terminal: u32, stream: RandomStream) -> Self {
        let outages = outages.make(terminal, 1, stream.clone());
        Self { outages, losses: losses.make(terminal, 1, stream) }
    }

    /// From now on packets are lost independently with this probability, and by nothing else.
    pub(super) fn independent(per: Probability, stream: RandomStream) -> Self {
        Self { outages: Box::new(NoLoss), losses: Box::new(Bernoulli::new(per, 1, stream)) }
    }

    /// Why a packet of `octets` is lost that is there at `now`, if it is. Each process is asked about every packet.
    pub(super) fn draw(&mut self, now: Time, octets: u64, lost: &mut Vec<u32>) -> Option<Cause> {
        lost.clear();
        self.losses.draw(now, octets, Among::All, lost);
        let others = lost.len();
        self.outages.draw(now, octets, Among::All, lost);
        match (lost.len() > others, others > 0) {
            (true, _) => Some(Cause::OUTAGE),
            (false, true) => Some(Cause::LOSSES),
            (false, false) => None,
        }
    }
}
