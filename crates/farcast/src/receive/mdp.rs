//! `farcast receive` by MDP.

use farcast_files::shown_name;
use farcast_mdp::{Codec, Mdp, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use serde_json::{Value, json};

use super::{Face, Heard, Report, Told, brought, kept, own_address, receive};
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
        let name = shown_name(&report.offer.name);
        if let Some(error) = &report.error {
            return error.to_string();
        }
        match end(report) {
            ReceiverOutcome::Complete(_) => {
                if report.vouched {
                    return format!("{name} complete and verified: {}", brought(report));
                }
                let doubt = "nothing vouches for its content but the protocol";
                format!("{name} complete: {}; {doubt}", brought(report))
            }
            ReceiverOutcome::Lost => {
                format!("{name}: the sender has ended or fallen silent; {}", kept(report, " for its return"))
            }
            ReceiverOutcome::Stopped => format!("{name}: stopped; {}", kept(report, " for the next try")),
        }
    }

    fn figures(&self, report: &Report<Self>, _receiver: &Receiver) -> Value {
        let path = report.plain.as_ref().map(|file| file.path.as_str());
        let digest = report.plain.as_ref().map(|file| blake3::Hash::from_bytes(file.digest).to_string());
        json!({ "path": path, "vouched": report.vouched, "digest": digest })
    }
}

/// How it ended.
fn end(report: &Report<MdpFace>) -> ReceiverOutcome {
    match report.end {
        ReceiverEvent::Ended(_, outcome) => outcome,
        _ => ReceiverOutcome::Stopped,
    }
}
