//! State of named receivers that acknowledge, for NORM, MDP and PGM.

use std::collections::BTreeMap;

use farcast_core::engine::RejectCounts;
use farcast_core::{Span, Time};
use farcast_norm::{NodeId, SenderOutcome};
use serde_json::{Value, json};

use super::delivery::{Receiver, Told, Verdict};
use crate::Exit;

/// Named receivers, which are to acknowledge, by their nodes.
pub(super) struct Named {
    receivers: BTreeMap<NodeId, One>,
    /// Name of the protocol for `--protocol`.
    protocol: &'static str,
    sealed: bool,
}

struct One {
    label: String,
    acknowledged: Option<Time>,
    lost: bool,
}

impl Named {
    pub(super) fn new((protocol, sealed): (&'static str, bool), named: &BTreeMap<NodeId, String>) -> Self {
        let fresh = |label: &String| One { label: label.clone(), acknowledged: None, lost: false };
        Self {
            receivers: named.iter().map(|(&node, label)| (node, fresh(label))).collect(),
            protocol,
            sealed,
        }
    }

    pub(super) fn label(&self, node: NodeId) -> String {
        self.receivers.get(&node).map_or_else(|| node.to_string(), |one| one.label.clone())
    }

    /// Records that a receiver has everything since `now`.
    pub(super) fn acknowledged(&mut self, now: Time, node: NodeId) -> Told {
        if let Some(one) = self.receivers.get_mut(&node) {
            one.acknowledged = Some(now);
        }
        let label = self.label(node);
        let line = Some(format!("has it: {label}"));
        Told { line, kind: "done", fields: json!({ "receiver": label }) }
    }

    /// Records that a receiver does not answer.
    pub(super) fn lost(&mut self, node: NodeId) -> Told {
        if let Some(one) = self.receivers.get_mut(&node) {
            one.lost = true;
        }
        let label = self.label(node);
        let line = Some(format!("does not acknowledge: {label}"));
        Told { line, kind: "lost", fields: json!({ "receiver": label }) }
    }

    /// Returns the receivers with their states.
    pub(super) fn receivers(&self) -> Vec<Receiver> {
        let state = |one: &One| match one.acknowledged {
            Some(_) => "has it",
            None if one.lost => "did not acknowledge",
            None => "is to acknowledge",
        };
        let told =
            |one: &One| Receiver { label: one.label.clone(), state: state(one), complete: one.acknowledged };
        self.receivers.values().map(told).collect()
    }

    /// Returns the verdict for an outcome, or for a transfer without one.
    pub(super) fn verdict(&self, outcome: Option<SenderOutcome>) -> Verdict {
        let Some(outcome) = outcome else {
            return Verdict { word: "aborted", exit: Exit::Failed, sentence: Some("it did not end".into()) };
        };
        let (exit, sentence) = match outcome {
            SenderOutcome::Acknowledged => (Exit::Done, None),
            SenderOutcome::Unknown => (
                Exit::Done,
                Some("sent; nobody was named, so who has it is not known (--receivers has receivers acknowledge)".into()),
            ),
            SenderOutcome::Incomplete { .. } => {
                let lacking = self.receivers.values().filter(|one| one.acknowledged.is_none());
                let lacking: Vec<&str> = lacking.map(|one| one.label.as_str()).collect();
                let keys = if self.sealed { ", and trust this host's key (farcast key list)" } else { "" };
                let sentence = format!(
                    "not every receiver is known to have it: {} did not acknowledge; one that hears this and cannot \
                     keep it, as on a full disk, says why in its own output; otherwise check that they listen with \
                     --protocol {} under these names{keys}",
                    lacking.join(", "),
                    self.protocol
                );
                (Exit::Incomplete, Some(sentence))
            }
            SenderOutcome::Aborted => {
                (Exit::Failed, Some("stopped; receivers keep what has come, if any, for the next try".into()))
            }
        };
        Verdict { word: word(outcome), exit, sentence }
    }
}

/// Returns an outcome for programs.
pub(super) fn word(outcome: SenderOutcome) -> &'static str {
    match outcome {
        SenderOutcome::Acknowledged => "acknowledged",
        SenderOutcome::Unknown => "unknown",
        SenderOutcome::Incomplete { .. } => "incomplete",
        SenderOutcome::Aborted => "aborted",
    }
}

/// Returns the figures that these protocols report in the end. Only some of them measure a `round_trip`.
pub(super) fn figures(sent_per_round: &[u64], round_trip: Option<Span>, rejects: &RejectCounts) -> Value {
    let rejects: Vec<Value> =
        rejects.iter().map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n })).collect();
    json!({
        "rounds": sent_per_round.len(),
        "segments_per_round": sent_per_round,
        "round_trip_s": round_trip.map(Span::as_secs_f64),
        "rejected_messages": rejects,
    })
}
