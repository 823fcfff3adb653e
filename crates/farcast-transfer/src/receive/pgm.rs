//! Receiving by PGM.

use farcast_delivery::{Codec as _, Transport};
use farcast_pgm::stream::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
use farcast_pgm::{Codec, ConfigError, Pgm, Receiver, ReceiverConfig, settings};

use super::nack::own_node;
use super::stream::{StreamEvent, StreamProtocol, StreamReception, StreamUnit};
use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, own_address, seed_of};
use crate::{Error, ProtocolName};

/// Receiver of files by PGM.
#[derive(Debug)]
pub struct ReceivePgm(ReceiverConfig);

impl ReceiveProtocol for ReceivePgm {
    type Protocol = Pgm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Pgm;
    const MISSED: &'static str = "the sender has ended or cannot repair any more what did not arrive";

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        configure(job, place).map(Self)
    }

    fn codec(&self, job: &ReceiveJob) -> Codec {
        Codec { raw: job.pgm.raw }
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.0.clone();
        Box::new(move |_| Receiver::new(config))
    }
}

impl StreamProtocol for ReceivePgm {
    type Engine = StreamReceiver;

    const UNIT: StreamUnit = StreamUnit::Number;

    fn open(job: &ReceiveJob, place: &ReceivePlace) -> Result<StreamReception<StreamReceiver>, Error> {
        let receiver = configure(job, place)?;
        let seed = receiver.seed;
        let transport = Codec { raw: job.pgm.raw }.transport();
        if transport != Transport::Udp && job.pgm.unicast_port.is_some() {
            return Err(Error::usage(
                "--unicast-port is a UDP port, and --raw uses no UDP: leave one of them out",
            ));
        }
        let receiver = ReceiverConfig { unicast_port: job.pgm.unicast_port, ..receiver };
        let config = StreamReceiverConfig { receiver, from_now: job.stream.from_now };
        let engine = StreamReceiver::new(config).map_err(Error::wrong)?;
        Ok(StreamReception { engine, seed, transport })
    }

    fn event(event: &StreamReceiverEvent) -> Option<StreamEvent<'static>> {
        match *event {
            StreamReceiverEvent::Joined { tsi, source } => {
                let session = format!("{:?}.{}", tsi.gsi, tsi.port);
                let what = format!("session {session}");
                Some(StreamEvent::Joined { what, key: "session", id: session.into(), source })
            }
            StreamReceiverEvent::Files { source } => Some(StreamEvent::Files(source)),
            StreamReceiverEvent::Gone => None,
        }
    }

    fn requests(engine: &StreamReceiver) -> u64 {
        engine.naks()
    }
}

fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
    let node = own_node(job, place)?;
    let base = settings::receiver(node, place.from, job.pgm.rtt.unwrap_or(settings::ROUND_TRIP));
    Ok(ReceiverConfig {
        // PGMCC takes several receivers at one address for one.
        address: Some(own_address(job, place.from)).filter(|own| !own.is_multicast()),
        port: job.pgm.raw.then(|| place.from.port()),
        silent: job.nack.silent,
        expiry: job.patience,
        seed: seed_of(job.seed, node.0),
        ..base
    })
}
