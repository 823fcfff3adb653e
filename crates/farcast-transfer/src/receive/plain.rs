//! Messages about a file that came without a list of ours, as by NORM and MDP.

use farcast_delivery::Outcome;
use farcast_files::shown_name;
use farcast_net::ReceiveReport;
use farcast_norm::ReceiverOutcome;
use serde_json::{Value, json};

use super::{brought, kept};

/// Returns the result of the reception, in one sentence.
pub(super) fn outcome<E>(report: &ReceiveReport<E>, end: ReceiverOutcome) -> String {
    let name = shown_name(&report.offer.name);
    if let Some(error) = &report.error {
        return error.to_string();
    }
    if end == ReceiverOutcome::Withdrawn {
        let kept = kept(report, " for another time");
        return format!(
            "{name}: its sender cannot send it any more: it changed there, was removed, or is not remembered; {kept}"
        );
    }
    if report.outcome == Outcome::Missed {
        let kept = kept(report, " for another time");
        return format!("{name}: the sender has ended or cannot repair any more what did not arrive; {kept}");
    }
    match end {
        ReceiverOutcome::Complete(_) if report.vouched => {
            format!("{name} complete and verified: {}", brought(report))
        }
        ReceiverOutcome::Complete(_) => {
            format!("{name} complete: {}; nothing vouches for its content but the protocol", brought(report))
        }
        ReceiverOutcome::Lost | ReceiverOutcome::Withdrawn => {
            format!("{name}: the sender has ended or fallen silent; {}", kept(report, " for its return"))
        }
        ReceiverOutcome::Stopped => format!("{name}: stopped; {}", kept(report, " for the next try")),
    }
}

/// Returns the figures that are reported of the file.
pub(super) fn figures<E>(report: &ReceiveReport<E>) -> Value {
    let path = report.plain.as_ref().map(|file| file.path.as_str());
    let digest = report.plain.as_ref().map(|file| blake3::Hash::from_bytes(file.digest).to_string());
    json!({ "path": path, "vouched": report.vouched, "digest": digest })
}
