//! `farcast receive --one-way`.

use clap::Args;
use farcast_delivery::Outcome;
use farcast_files::shown_name;
use farcast_oneway::{Codec, OneWay, Receiver, ReceiverConfig, ReceiverEvent};
use serde_json::{Value, json};

use super::{Face, Heard, Report, Told, brought, receive};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure};

/// What comes one way.
#[derive(Args, Debug)]
#[command(next_help_heading = "One-way")]
pub(crate) struct OneWayArgs {
    /// What comes is sent one way, by farcast send --one-way: nothing is ever said. The same as --protocol one-way.
    #[arg(long, conflicts_with = "speaks")]
    pub(crate) one_way: bool,
}

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = ReceiverConfig { silence: args.patience, ..ReceiverConfig::default() };
    let make = |_| Ok::<_, std::convert::Infallible>(Receiver::new(config));
    receive(args, (&heard, false, args.seed.unwrap_or_default()), (&Codec, OneWayFace), make)
}

/// Messages about a reception that sends nothing back.
struct OneWayFace;

impl Face for OneWayFace {
    type Protocol = OneWay;

    const SEVERAL: bool = false;

    fn told(&self, _event: &ReceiverEvent, _own: &str) -> Option<Told> {
        None
    }

    fn outcome(&self, report: &Report<Self>) -> String {
        let name = shown_name(&report.offer.name);
        if let Some(error) = &report.error {
            return error.to_string();
        }
        let why = match report.outcome {
            Outcome::Complete(_) => return format!("{name} complete and verified: {}", brought(report)),
            Outcome::Missed => "the sender has ended, and some did not arrive",
            Outcome::Lost => "the sender has fallen silent",
            _ => "stopped",
        };
        format!("{name}: {why}; {}", super::kept(report, ", with parity, for another time"))
    }

    fn figures(&self, report: &Report<Self>, receiver: &Receiver) -> Value {
        let heard = receiver.heard(report.offer.object);
        let octets = heard * u64::from(report.offer.geometry.segment_size());
        json!({
            "symbols_heard": heard,
            "heard_over_size": octets as f64 / report.offer.geometry.size() as f64,
        })
    }
}
