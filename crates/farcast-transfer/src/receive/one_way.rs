//! Receiving files one way.

use std::convert::Infallible;

use farcast_delivery::Outcome;
use farcast_files::shown_name;
use farcast_oneway::{Codec, OneWay, Receiver, ReceiverConfig, ReceiverEvent};
use serde_json::{Value, json};

use super::{MakeReceiver, ReceiveJob, ReceivePlace, ReceiveProtocol, ReportOf, brought, kept};
use crate::{Error, ProtocolName};

/// Receiver of files one way.
#[derive(Debug)]
pub struct ReceiveOneWay {
    config: ReceiverConfig,
    seed: u64,
}

impl ReceiveProtocol for ReceiveOneWay {
    type Protocol = OneWay;
    type ConfigError = Infallible;

    const NAME: ProtocolName = ProtocolName::OneWay;
    const SEVERAL: bool = false;
    const PLAIN: bool = false;

    fn new(job: &ReceiveJob, _place: &ReceivePlace) -> Result<Self, Error> {
        let config = ReceiverConfig { silence: job.patience, ..ReceiverConfig::default() };
        Ok(Self { config, seed: job.seed.unwrap_or_default() })
    }

    fn codec(&self, _job: &ReceiveJob) -> Codec {
        Codec
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.config;
        Box::new(move |_| Ok(Receiver::new(config)))
    }

    fn outcome(&self, report: &ReportOf<Self>) -> String {
        let name = shown_name(&report.offer.name);
        if let Some(error) = &report.error {
            return error.to_string();
        }
        if let ReceiverEvent::Withdrawn { outcome, why, .. } = &report.end {
            return match outcome {
                Outcome::SourceChanged => format!("{name}: {why}; everything else that was sent is here"),
                _ => format!(
                    "{name}: {why}; the sender has ended, and some of the rest did not arrive either; {}",
                    kept(report, ", with parity, for another time")
                ),
            };
        }
        let why = match report.outcome {
            Outcome::Complete(_) => return format!("{name} complete and verified: {}", brought(report)),
            Outcome::Missed => "the sender has ended, and some did not arrive",
            Outcome::Lost => "the sender has fallen silent",
            _ => "stopped",
        };
        format!("{name}: {why}; {}", kept(report, ", with parity, for another time"))
    }

    fn figures(&self, report: &ReportOf<Self>, receiver: &Receiver) -> Value {
        let heard = receiver.heard(report.offer.object);
        let octets = heard * u64::from(report.offer.geometry.segment_size());
        json!({
            "symbols_heard": heard,
            "heard_over_size": octets as f64 / report.offer.geometry.size() as f64,
        })
    }
}
