//! `farcast receive` by NORM.

use clap::{Args, ValueEnum};
use farcast_norm::{Codec, Fec, Norm, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use serde_json::Value;

use super::{Face, Heard, Report, Told, own_address, plain, receive};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure, node};

/// How NORM behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "NORM")]
pub(crate) struct NormArgs {
    /// Whom to answer: the group, so that who hears it need not ask for the same, or the sender alone, where others
    /// would not hear it [default: the group, if it is one that anybody may send to].
    #[arg(long, value_enum, value_name = "WHOM")]
    pub(crate) answers: Option<Answers>,
    /// Never say anything: receive what comes, as over a one-way link.
    #[arg(long)]
    pub(crate) silent: bool,
}

/// Whom a receiver answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Answers {
    /// The group.
    Group,
    /// The sender alone.
    Sender,
}

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = configure(args, &heard)?;
    let seed = config.seed;
    // What comes says itself how it is coded.
    let codec = Codec { fec: Fec::ReedSolomon8 };
    receive(args, (&heard, true, seed), (&codec, NormFace), |_| Receiver::new(config))
}

pub(super) fn configure(args: &ReceiveArgs, heard: &Heard) -> Result<ReceiverConfig, Failure> {
    let node = match &args.name {
        Some(name) => node::of_name(name)?,
        None => node::of_address(own_address(args, heard.from)),
    };
    // To a group of one source, only that one can send.
    let any_source = heard.from.ip().is_multicast() && heard.source.is_none();
    let mut config = ReceiverConfig::new(node, heard.from);
    config.unicast = match args.norm.answers {
        Some(Answers::Group) if !any_source => {
            return Err(Failure::usage("--answers group needs a group that anybody may send to"));
        }
        Some(whom) => whom == Answers::Sender,
        None => !any_source,
    };
    config.silent = args.norm.silent;
    config.seed = args.seed.unwrap_or(u64::from(node.0));
    Ok(config)
}

/// What is told of a reception by NORM.
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

/// How it ended.
fn end(report: &Report<NormFace>) -> ReceiverOutcome {
    match report.end {
        ReceiverEvent::Ended(_, outcome) => outcome,
        _ => ReceiverOutcome::Stopped,
    }
}
