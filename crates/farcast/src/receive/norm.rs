//! `farcast receive` by NORM.

use farcast_norm::{Codec, Fec, Norm, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use serde_json::Value;

use super::nack::{own_node, unicast};
use super::{Face, Heard, Report, Told, plain, receive, seed_of};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure};

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = configure(args, &heard)?;
    let seed = config.seed;
    // The data that arrives tells its own code.
    let codec = Codec { fec: Fec::ReedSolomon8 };
    receive(args, (&heard, true, seed), (&codec, NormFace), |_| Receiver::new(config))
}

pub(super) fn configure(args: &ReceiveArgs, heard: &Heard) -> Result<ReceiverConfig, Failure> {
    let mut config = ReceiverConfig::new(own_node(args, heard)?, heard.from);
    config.unicast = unicast(args, heard)?;
    config.silent = args.nack.silent;
    config.seed = seed_of(args.seed, config.node.0);
    Ok(config)
}

/// Messages about a reception by NORM.
struct NormFace;

impl Face for NormFace {
    type Protocol = Norm;

    const SEVERAL: bool = true;

    fn told(&self, _event: &ReceiverEvent, _own: &str) -> Option<Told> {
        None
    }

    fn outcome(&self, report: &Report<Self>) -> String {
        plain::outcome(report, end(report))
    }

    fn figures(&self, report: &Report<Self>, _receiver: &Receiver) -> Value {
        plain::figures(report)
    }
}

/// Returns the outcome of the reception.
fn end(report: &Report<NormFace>) -> ReceiverOutcome {
    match report.end {
        ReceiverEvent::Ended(_, outcome) => outcome,
        _ => ReceiverOutcome::Stopped,
    }
}
