//! Parts of receiving that NORM, MDP and PGM share. Their receivers ask for the data that they lack.

use farcast_delivery::nack::NodeId;

use super::options::Answers;
use super::{ReceiveJob, ReceivePlace, own_address};
use crate::{Error, node};

/// Returns the id of the receiving node.
pub(super) fn own_node(job: &ReceiveJob, place: &ReceivePlace) -> Result<NodeId, Error> {
    match (&place.sealing, &job.name) {
        // The sender knows the receiver by its key.
        (Some(sealing), _) => Ok(NodeId(sealing.number().receiver())),
        (None, Some(name)) => node::of_name(name),
        (None, None) => Ok(node::of_address(own_address(job, place.from))),
    }
}

/// Returns `true` if the receiver answers the sender alone.
pub(super) fn unicast(job: &ReceiveJob, place: &ReceivePlace) -> Result<bool, Error> {
    // In a group of one source only that source can send, and a host is no group.
    if place.sealing.is_some() {
        return match job.nack.answers {
            Some(Answers::Group) => Err(Error::usage(
                "--answers group: what is sealed is answered to the sender, as nobody else could open it",
            )),
            _ => Ok(true),
        };
    }
    let any_source = place.from.ip().is_multicast() && place.source.is_none();
    match job.nack.answers {
        Some(Answers::Group) if !any_source => {
            Err(Error::usage("--answers group needs a group that anybody may send to"))
        }
        Some(whom) => Ok(whom == Answers::Sender),
        None => Ok(!any_source),
    }
}
