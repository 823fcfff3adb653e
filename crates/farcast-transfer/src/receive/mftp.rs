//! Receiving files by MFTP.

use farcast_files::shown_name;
use farcast_mftp::message::cancel;
use farcast_mftp::{
    ClientId, Codec, ConfigError, Mftp, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome, Secret,
};
use serde_json::{Value, json};

use super::{
    MakeReceiver, ReceiveEvent, ReceiveJob, ReceivePlace, ReceiveProtocol, ReportOf, brought, kept,
    own_address, seed_of,
};
use crate::state::identity;
use crate::{Error, ProtocolName};

/// Receiver of files by MFTP.
#[derive(Debug)]
pub struct ReceiveMftp(ReceiverConfig);

impl ReceiveProtocol for ReceiveMftp {
    type Protocol = Mftp;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Mftp;
    const SEVERAL: bool = false;
    const PLAIN: bool = false;

    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error> {
        configure(job, place).map(Self)
    }

    fn codec(&self, _job: &ReceiveJob) -> Codec {
        Codec
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn engine(&self) -> MakeReceiver<Self> {
        let config = self.0.clone();
        Box::new(move |room| {
            Receiver::new(ReceiverConfig { receive_buffer_bytes: u32::try_from(room).ok(), ..config })
        })
    }

    fn event(&self, event: &ReceiverEvent, own: &str) -> Option<ReceiveEvent> {
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
        Some(ReceiveEvent { line, kind, fields })
    }

    fn outcome(&self, report: &ReportOf<Self>) -> String {
        outcome(report)
    }

    fn figures(&self, report: &ReportOf<Self>, receiver: &Receiver) -> Value {
        json!({
            "confirmed": matches!(end(report), ReceiverOutcome::Complete { confirmed: true, .. }),
            "unsaid_answers": receiver.stats().unsaid,
        })
    }
}

fn configure(job: &ReceiveJob, place: &ReceivePlace) -> Result<ReceiverConfig, Error> {
    let (from, name) = (place.from, place.name(job));
    // Without a name, the id is our address as the group's network sees it, or 0.0.0.0 if that is unknown.
    let own = own_address(job, from);
    let mut config = ReceiverConfig::new(ClientId::from_address(own), from.port());
    if let Some(name) = &name {
        config = config.named(name);
    }
    config.patience = job.patience;
    config.secret = Some(Secret(identity(&job.into, name.as_deref())?));
    config.seed = seed_of(job.seed, config.id.0);
    Ok(config)
}

/// Returns the outcome of the reception.
fn end(report: &ReportOf<ReceiveMftp>) -> &ReceiverOutcome {
    match &report.end {
        ReceiverEvent::Ended(outcome) => outcome,
        _ => &ReceiverOutcome::Incomplete,
    }
}

/// Returns the result of the reception, in one sentence.
fn outcome(report: &ReportOf<ReceiveMftp>) -> String {
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
