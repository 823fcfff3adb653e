//! Receiving files by MDP.

use farcast_delivery::nack::quantise::GroupSize;
use farcast_mdp::{Codec, ConfigError, Mdp, Receiver, ReceiverConfig, Sync};

use super::nack::{own_node, unicast};
use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, seed_of};
use crate::{Error, ProtocolName};

/// Receiver of files by MDP.
#[derive(Debug)]
pub struct ReceiveMdp(ReceiverConfig);

impl ReceiveProtocol for ReceiveMdp {
    type Protocol = Mdp;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Mdp;

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        configure(job, place).map(Self)
    }

    fn codec(&self, _job: &ReceiveJob) -> Codec {
        Codec
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.0.clone();
        Box::new(move |_| Receiver::new(config))
    }
}

fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
    let mut config = ReceiverConfig::new(own_node(job, place)?, place.from);
    config.unicast = unicast(job, place)?;
    config.silent = job.nack.silent;
    // A receiver that was stopped continues, and a receiver that is asked whether it has everything has it.
    config.sync = Sync::Anywhere;
    if let Some(receivers) = job.mdp.group_size {
        config.receivers = GroupSize::of(receivers.into());
    }
    config.seed = seed_of(job.seed, config.node.0);
    Ok(config)
}
