//! `farcast receive` by MFTP.

use farcast_files::shown_name;
use farcast_mftp::message::cancel;
use farcast_mftp::{ClientId, Codec, Mftp, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use serde_json::{Value, json};

use super::{Face, Heard, Report, Told, brought, kept, own_address, receive, seed_of};
use crate::args::ReceiveArgs;
use crate::{Exit, Failure};

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let heard = Heard::of(args)?;
    let config = configure(args, &heard)?;
    let seed = config.seed;
    let make = |room: usize| {
        Receiver::new(ReceiverConfig { receive_buffer_bytes: u32::try_from(room).ok(), ..config })
    };
    receive(args, (&heard, false, seed), (&Codec, MftpFace), make)
}

fn configure(args: &ReceiveArgs, heard: &Heard) -> Result<ReceiverConfig, Failure> {
    let (from, name) = (heard.from, heard.name(args));
    // Without a name, the id is our address as the group's network sees it, or 0.0.0.0 if that is unknown.
    let own = own_address(args, from);
    let mut config = ReceiverConfig::new(ClientId::from_address(own), from.port());
    if let Some(name) = &name {
        config = config.named(name);
    }
    config.patience = args.patience;
    config.secret = Some(crate::state::identity(&args.into, name.as_deref())?);
    config.seed = seed_of(args.seed, config.id.0);
    Ok(config)
}

/// Messages about a reception by MFTP.
struct MftpFace;

impl Face for MftpFace {
    type Protocol = Mftp;

    const SEVERAL: bool = false;

    fn told(&self, event: &ReceiverEvent, own: &str) -> Option<Told> {
        let (line, kind, fields) = match event {
            ReceiverEvent::Pass { pass } => (None, "pass", json!({ "pass": pass })),
            ReceiverEvent::Accepted => (None, "accepted", json!({})),
            ReceiverEvent::Busy { server } => (
                Some(format!("passed over: an announcement from {server}, while this transmission runs")),
                "busy",
                json!({ "sender": server.to_string() }),
            ),
            ReceiverEvent::NotInvited { server } => (
                Some(format!(
                    "passed over: an announcement from {server} for a list of receivers without {own}; if it should be \
                     there, compare --name here with --receivers at the sender"
                )),
                "not_invited",
                json!({ "sender": server.to_string(), "receiver": own }),
            ),
            ReceiverEvent::JoinGroup(group) | ReceiverEvent::LeaveGroup(group) => {
                (None, "group", json!({ "group": group.to_string() }))
            }
            _ => return None,
        };
        Some(Told { line, kind, fields })
    }

    fn outcome(&self, report: &Report<Self>) -> String {
        outcome(report)
    }

    fn figures(&self, report: &Report<Self>, receiver: &Receiver) -> Value {
        json!({
            "confirmed": matches!(end(report), ReceiverOutcome::Complete { confirmed: true, .. }),
            "unsaid_answers": receiver.stats().unsaid,
        })
    }
}

/// Returns the outcome of the reception.
fn end(report: &Report<MftpFace>) -> &ReceiverOutcome {
    match &report.end {
        ReceiverEvent::Ended(outcome) => outcome,
        _ => &ReceiverOutcome::Incomplete,
    }
}

/// Returns the result of the reception, in one sentence.
fn outcome(report: &Report<MftpFace>) -> String {
    let name = shown_name(&report.offer.name);
    if let Some(error) = &report.error {
        return error.to_string();
    }
    let kept = |until: &str| kept(report, until);
    match end(report) {
        ReceiverOutcome::Complete { confirmed, .. } => {
            let unknown = if *confirmed { "" } else { " (the sender did not confirm that it knows)" };
            format!("{name} complete and verified: {}{unknown}", brought(report))
        }
        ReceiverOutcome::Aborted { text: Some(text), .. } => {
            format!("{name}: the sender ended it: {text} ({})", kept(""))
        }
        ReceiverOutcome::Aborted { reason: cancel::ABORT_NOT_INVITED, .. } => format!(
            "{name}: the sender's list of receivers does not have this one; compare --name here with --receivers there"
        ),
        ReceiverOutcome::Aborted { reason: cancel::ABORT_COLLISION, .. } => format!(
            "{name}: another receiver has this name or address; start this one with another --name ({})",
            kept("")
        ),
        ReceiverOutcome::Aborted { reason, .. } => {
            format!("{name}: the sender ended it with reason {reason} ({})", kept(""))
        }
        ReceiverOutcome::Stopped => format!("{name}: stopped; {}", kept(" for the next try")),
        ReceiverOutcome::NotAccepted => {
            format!(
                "{name}: the sender does not confirm our registration; check the way back to {}",
                report.offer.sender
            )
        }
        ReceiverOutcome::SenderLost => {
            format!("{name}: the sender fell silent; {}", kept(" for its return"))
        }
        ReceiverOutcome::Incomplete => {
            format!("{name}: the sender ended it; {}", kept(" for the next try"))
        }
    }
}
