//! `farcast receive` by MDP.

use clap::Args;
use farcast_mdp::{Codec, Mdp, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, Sync};
use farcast_norm::quantise::GroupSize;
use serde_json::Value;

use super::nack::{own_node, unicast};
use super::{Face, Heard, Report, Told, plain, receive, seed_of};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure};

/// How MDP behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "MDP")]
pub(crate) struct MdpArgs {
    /// How many receivers there are, which MDP does not say: each waits the longer before it asks, the more they are
    /// [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    group_size: Option<u32>,
}

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = configure(args, &heard)?;
    let seed = config.seed;
    receive(args, (&heard, true, seed), (&Codec, MdpFace), |_| Receiver::new(config))
}

fn configure(args: &ReceiveArgs, heard: &Heard) -> Result<ReceiverConfig, Failure> {
    let mut config = ReceiverConfig::new(own_node(args, heard)?, heard.from);
    config.unicast = unicast(args, heard)?;
    config.silent = args.nack.silent;
    // A receiver that was stopped continues, and a receiver that is asked whether it has everything has it.
    config.sync = Sync::Anywhere;
    if let Some(receivers) = args.mdp.group_size {
        config.receivers = GroupSize::of(receivers.into());
    }
    config.seed = seed_of(args.seed, config.node.0);
    Ok(config)
}

/// Messages about a reception by MDP.
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

/// Returns the outcome of the reception.
fn end(report: &Report<MdpFace>) -> ReceiverOutcome {
    match report.end {
        ReceiverEvent::Ended(_, outcome) => outcome,
        _ => ReceiverOutcome::Stopped,
    }
}
