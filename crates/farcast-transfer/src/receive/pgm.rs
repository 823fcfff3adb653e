//! Receiving files by PGM.

use farcast_pgm::{Codec, ConfigError, Pgm, Receiver, ReceiverConfig, settings};
use serde_json::Value;

use super::nack::own_node;
use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, ReportOf, own_address, plain, seed_of};
use crate::{Error, ProtocolName};

/// Receiver of files by PGM.
#[derive(Debug)]
pub struct ReceivePgm {
    config: ReceiverConfig,
    raw: bool,
}

impl ReceiveProtocol for ReceivePgm {
    type Protocol = Pgm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Pgm;
    const SEVERAL: bool = true;
    const PLAIN: bool = true;

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        Ok(Self { config: configure(job, place)?, raw: job.pgm.raw })
    }

    fn codec(&self) -> Codec {
        Codec { raw: self.raw }
    }

    fn seed(&self) -> u64 {
        self.config.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.config.clone();
        Box::new(move |_| Receiver::new(config))
    }

    fn outcome(&self, report: &ReportOf<Self>) -> String {
        plain::outcome(report, "the sender has ended or cannot repair any more what did not arrive")
    }

    fn figures(&self, report: &ReportOf<Self>, _receiver: &Receiver) -> Value {
        plain::figures(report)
    }
}

pub(super) fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
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
