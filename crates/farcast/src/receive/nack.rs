//! Parts of `receive` that NORM, MDP and PGM share. Their receivers ask for the data that they lack.

use clap::{Args, ValueEnum};
use farcast_norm::NodeId;

use super::{Heard, own_address};
use crate::args::ReceiveArgs;
use crate::protocols::{NORM_AND_MDP, NORM_MDP_AND_PGM};
use crate::{Failure, node};

/// How they behave.
#[derive(Args, Debug)]
#[command(next_help_heading = NORM_AND_MDP)]
pub(crate) struct NackArgs {
    /// Whom to answer: the group, so that who hears it need not ask for the same, or the sender alone, where others
    /// would not hear it [default: the group, if it is one that anybody may send to].
    #[arg(long, value_enum, value_name = "WHOM")]
    answers: Option<Answers>,
    /// Never say anything: receive what comes, as over a one-way link.
    #[arg(help_heading = NORM_MDP_AND_PGM, long)]
    pub(super) silent: bool,
}

/// Whom a receiver answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Answers {
    /// The group.
    Group,
    /// The sender alone.
    Sender,
}

/// Returns the id of the receiving node.
pub(super) fn own_node(args: &ReceiveArgs, heard: &Heard) -> Result<NodeId, Failure> {
    match (&heard.sealing, &args.name) {
        // The sender knows the receiver by its key.
        (Some(sealing), _) => Ok(NodeId(sealing.number().receiver())),
        (None, Some(name)) => node::of_name(name),
        (None, None) => Ok(node::of_address(own_address(args, heard.from))),
    }
}

/// Returns `true` if the receiver answers the sender alone.
pub(super) fn unicast(args: &ReceiveArgs, heard: &Heard) -> Result<bool, Failure> {
    // In a group of one source only that source can send, and a host is no group.
    if heard.sealing.is_some() {
        return match args.nack.answers {
            Some(Answers::Group) => Err(Failure::usage(
                "--answers group: what is sealed is answered to the sender, as nobody else could open it",
            )),
            _ => Ok(true),
        };
    }
    let any_source = heard.from.ip().is_multicast() && heard.source.is_none();
    match args.nack.answers {
        Some(Answers::Group) if !any_source => {
            Err(Failure::usage("--answers group needs a group that anybody may send to"))
        }
        Some(whom) => Ok(whom == Answers::Sender),
        None => Ok(!any_source),
    }
}
