//! Receiving files by NORM.

use farcast_norm::{Codec, ConfigError, Fec, Norm, Receiver, ReceiverConfig};
use serde_json::Value;

use super::nack::{own_node, unicast};
use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, ReportOf, plain, seed_of};
use crate::{Error, ProtocolName};

/// Receiver of files by NORM.
#[derive(Debug)]
pub struct ReceiveNorm(ReceiverConfig);

impl ReceiveProtocol for ReceiveNorm {
    type Protocol = Norm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Norm;
    const SEVERAL: bool = true;
    const PLAIN: bool = true;

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        configure(job, place).map(Self)
    }

    fn codec(&self) -> Codec {
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

    fn outcome(&self, report: &ReportOf<Self>) -> String {
        plain::outcome(report, plain::WITHDRAWN)
    }

    fn figures(&self, report: &ReportOf<Self>, _receiver: &Receiver) -> Value {
        plain::figures(report)
    }
}

pub(super) fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
    let mut config = ReceiverConfig::new(own_node(job, place)?, place.from);
    config.unicast = unicast(job, place)?;
    config.silent = job.nack.silent;
    config.seed = seed_of(job.seed, config.node.0);
    Ok(config)
}
