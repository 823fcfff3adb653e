//! Messages about a file that came without a list of ours, as by NORM and MDP.

use farcast_delivery::Outcome;
use farcast_files::shown_name;
use farcast_net::ReceiveReport;
use serde_json::{Value, json};

use super::{brought, kept};

/// Returns the result of the reception, in one sentence. `missed` is the sentence about an object that can no longer be
/// completed.
pub(super) fn outcome<E>(report: &ReceiveReport<E>, missed: &str) -> String {
    let name = shown_name(&report.offer.name);
    if let Some(error) = &report.error {
        return error.to_string();
    }
    match report.outcome {
        Outcome::Complete(_) if report.vouched => {
            format!("{name} complete and verified: {}", brought(report))
        }
        Outcome::Complete(_) => {
            format!("{name} complete: {}; nothing vouches for its content but the protocol", brought(report))
        }
        Outcome::Missed => format!("{name}: {missed}; {}", kept(report, " for another time")),
        Outcome::Withdrawn => {
            format!("{name}: it changed at its sender or was removed; {}", kept(report, " for another time"))
        }
        Outcome::Lost => {
            format!("{name}: the sender has ended or fallen silent; {}", kept(report, " for its return"))
        }
        _ => format!("{name}: stopped; {}", kept(report, " for the next try")),
    }
}

/// Returns the figures that are reported of the file.
pub(super) fn figures<E>(report: &ReceiveReport<E>) -> Value {
    let path = report.plain.as_ref().map(|file| file.path.as_str());
    let digest = report.plain.as_ref().map(|file| blake3::Hash::from_bytes(file.digest).to_string());
    json!({ "path": path, "vouched": report.vouched, "digest": digest })
}
