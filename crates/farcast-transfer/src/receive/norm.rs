//! Receiving by NORM.

use farcast_delivery::Transport;
use farcast_norm::stream::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
use farcast_norm::{Codec, ConfigError, Fec, Norm, Receiver, ReceiverConfig};

use super::nack::{own_node, unicast};
use super::stream::{StreamEvent, StreamProtocol, StreamReception, StreamUnit};
use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, seed_of};
use crate::{Error, ProtocolName};

/// Receiver of files by NORM.
#[derive(Debug)]
pub struct ReceiveNorm(ReceiverConfig);

impl ReceiveProtocol for ReceiveNorm {
    type Protocol = Norm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Norm;

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        configure(job, place).map(Self)
    }

    fn codec(&self, _job: &ReceiveJob) -> Codec {
        // The data that arrives tells its own code.
        Codec { fec: Fec::ReedSolomon8 }
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.0.clone();
        Box::new(move |_| Receiver::new(config))
    }
}

impl StreamProtocol for ReceiveNorm {
    type Engine = StreamReceiver;

    const UNIT: StreamUnit = StreamUnit::Octet;

    fn open(job: &ReceiveJob, place: &ReceivePlace) -> Result<StreamReception<StreamReceiver>, Error> {
        let receiver = configure(job, place)?;
        let seed = receiver.seed;
        let config =
            StreamReceiverConfig { from_now: job.stream.from_now, ..StreamReceiverConfig::new(receiver) };
        let engine = StreamReceiver::new(config).map_err(Error::wrong)?;
        Ok(StreamReception { engine, seed, transport: Transport::Udp })
    }

    fn event(event: &StreamReceiverEvent) -> Option<StreamEvent<'static>> {
        match *event {
            StreamReceiverEvent::Joined { sender, source } => {
                let what = format!("node {sender}");
                Some(StreamEvent::Joined { what, key: "node", id: sender.0.into(), source })
            }
            StreamReceiverEvent::Files { source } => Some(StreamEvent::Files(source)),
            StreamReceiverEvent::Gone => None,
        }
    }

    fn requests(engine: &StreamReceiver) -> u64 {
        engine.nacks()
    }
}

fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
    let mut config = ReceiverConfig::new(own_node(job, place)?, place.from);
    config.unicast = unicast(job, place)?;
    config.silent = job.nack.silent;
    config.seed = seed_of(job.seed, config.node.0);
    Ok(config)
}
