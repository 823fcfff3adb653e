//! `farcast receive` by MDP.

use farcast_mdp::{Codec, Mdp, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use serde_json::Value;

use super::{Face, Heard, Report, Told, own_address, plain, receive};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure, node};

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let node = match &args.name {
        Some(name) => node::of_name(name)?,
        None => node::of_address(own_address(args, heard.from)),
    };
    let mut config = ReceiverConfig::new(node, heard.from);
    // To a group of one source, only that one can send; and a host is no group.
    config.unicast = !heard.from.ip().is_multicast() || heard.source.is_some();
    config.seed = args.seed.unwrap_or(u64::from(node.0));
    let seed = config.seed;
    receive(args, (&heard, true, seed), (&Codec, MdpFace), |_| Receiver::new(config))
}

/// What is told of a reception by MDP.
struct MdpFace;

impl Face for MdpFace {
    type Protocol = Mdp;

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

/// How it ended.
fn end(report: &Report<MdpFace>) -> ReceiverOutcome {
    match report.end {
        ReceiverEvent::Ended(_, outcome) => outcome,
        _ => ReceiverOutcome::Stopped,
    }
}
