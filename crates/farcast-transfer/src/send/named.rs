//! State of named receivers that acknowledge, for NORM, MDP and PGM.

use std::collections::BTreeMap;

use farcast_core::engine::RejectCounts;
use farcast_core::{Span, Time};
use farcast_delivery::SenderEngine;
use farcast_delivery::nack::{NodeId, SenderEvent, SenderOutcome};
use farcast_net::SendReport;
use serde_json::{Value, json};

use super::{
    ReceiverState, SendEvent, SendOutcome, Standing, Tally, Unconfirmed, Verdict, changed_files, some,
};
use crate::ProtocolName;

/// Named receivers, which are to acknowledge, by their nodes.
#[derive(Clone, Debug)]
pub struct Named {
    receivers: BTreeMap<NodeId, Acker>,
    protocol: ProtocolName,
    sealed: bool,
}

#[derive(Clone, Debug)]
struct Acker {
    label: String,
    acknowledged: Option<Time>,
    lost: bool,
}

impl Named {
    pub(super) fn new(protocol: ProtocolName, sealed: bool, named: BTreeMap<NodeId, String>) -> Self {
        let fresh = |label: String| Acker { label, acknowledged: None, lost: false };
        let receivers = named.into_iter().map(|(node, label)| (node, fresh(label))).collect();
        Self { receivers, protocol, sealed }
    }

    /// Returns the nodes of the receivers.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.receivers.keys().copied()
    }

    /// Returns the number of receivers.
    pub(super) fn len(&self) -> usize {
        self.receivers.len()
    }

    pub(super) fn label(&self, node: NodeId) -> String {
        self.receivers.get(&node).map_or_else(|| node.to_string(), |one| one.label.clone())
    }

    /// Records that a receiver has everything since `now`.
    fn acknowledged(&mut self, now: Time, node: NodeId) -> SendEvent {
        if let Some(one) = self.receivers.get_mut(&node) {
            one.acknowledged = Some(now);
        }
        SendEvent::Has(self.label(node))
    }

    /// Records that a receiver does not answer.
    fn lost(&mut self, node: NodeId) -> SendEvent {
        if let Some(one) = self.receivers.get_mut(&node) {
            one.lost = true;
        }
        SendEvent::Lost(self.label(node))
    }

    /// Returns the event that `event` of the engine stands for, if any. `own` translates those of the protocol.
    pub(super) fn event<X>(
        &mut self,
        now: Time,
        event: &SenderEvent<X>,
        own: impl FnOnce(&Self, &X) -> Option<SendEvent>,
    ) -> Option<SendEvent> {
        Some(match *event {
            SenderEvent::Started { named } => SendEvent::Started { receivers: named.into() },
            SenderEvent::Round { round, segments } => SendEvent::Round { round, segments },
            SenderEvent::Acknowledged(node) => self.acknowledged(now, node),
            SenderEvent::Lost(node) => self.lost(node),
            SenderEvent::Delivered => SendEvent::Delivered,
            SenderEvent::Ended(outcome) => SendEvent::Ended(outcome_word(outcome)),
            SenderEvent::Own(ref event) => return own(self, event),
        })
    }

    /// Returns the receivers with their states.
    pub(super) fn receivers(&self) -> Vec<ReceiverState> {
        let state = |one: &Acker| match one.acknowledged {
            Some(_) => "has it",
            None if one.lost => "did not acknowledge",
            None => "is to acknowledge",
        };
        let told = |one: &Acker| ReceiverState {
            name: one.label.clone(),
            state: state(one).into(),
            complete: one.acknowledged,
        };
        self.receivers.values().map(told).collect()
    }

    /// Returns the numbers of the receivers.
    pub(super) fn tally(&self) -> Tally {
        let count = |which: fn(&&Acker) -> bool| self.receivers.values().filter(which).count() as u64;
        Tally {
            known: self.receivers.len() as u64,
            confirmed: count(|one| one.acknowledged.is_some()),
            gone: count(|one| one.acknowledged.is_none() && one.lost),
        }
    }

    /// Returns the receivers that have not acknowledged. `heard` returns the time at which a node was heard last.
    pub(super) fn unconfirmed(&self, heard: impl Fn(NodeId) -> Option<Time>) -> Vec<Unconfirmed> {
        let one = |(&node, one): (&NodeId, &Acker)| {
            let heard = heard(node);
            let standing = if heard.is_some() { Standing::Lacks } else { Standing::Absent };
            Unconfirmed { name: one.label.clone(), address: None, standing, lacks: None, heard }
        };
        self.receivers.iter().filter(|(_, one)| one.acknowledged.is_none()).map(one).collect()
    }

    /// Returns the verdict for the last event of a transfer.
    pub(super) fn verdict<X>(&self, end: &SenderEvent<X>) -> Verdict {
        let SenderEvent::Ended(outcome) = *end else {
            let sentence = Some("it did not end".into());
            return Verdict { word: "aborted", outcome: SendOutcome::Failed, sentence };
        };
        let (result, sentence) = match outcome {
            SenderOutcome::Acknowledged => (SendOutcome::Done, None),
            SenderOutcome::Unknown => (
                SendOutcome::Done,
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
                    some(&lacking),
                    self.protocol
                );
                (SendOutcome::Incomplete, Some(sentence))
            }
            SenderOutcome::Aborted => (
                SendOutcome::Failed,
                Some("stopped; receivers keep what has come, if any, for the next try".into()),
            ),
        };
        Verdict { word: outcome_word(outcome), outcome: result, sentence }
    }
}

/// Returns the verdict on the transmission of `report`, where that of its engine is `verdict`. The time limit may have
/// ended it (`late`), and receivers may be `known`.
pub(super) fn judge<S: SenderEngine>(
    report: &SendReport<S>,
    late: bool,
    known: bool,
    verdict: Verdict,
) -> Verdict {
    if let Some(error) = &report.error {
        let sentence = Some(error.to_string());
        return Verdict { word: "aborted", outcome: SendOutcome::Failed, sentence };
    }
    if late {
        let sentence = Some("the transfer took longer than --time-limit".into());
        return Verdict { word: "time_limit", outcome: SendOutcome::Failed, sentence };
    }
    // Receivers that are known to have everything have verified it.
    let acknowledged = verdict.outcome == SendOutcome::Done && known;
    // A file that changes is not sent any more, so a receiver that lacks it never gets it.
    let all_lack = verdict.outcome == SendOutcome::Incomplete;
    let spoiled: Vec<_> = report.changed.iter().filter(|file| all_lack || file.was_sent).cloned().collect();
    if acknowledged || spoiled.is_empty() {
        return verdict;
    }
    let sentence =
        Some(format!("{}: receivers do not have it as it was; send it again", changed_files(&spoiled)));
    Verdict { word: "changed", outcome: SendOutcome::Incomplete, sentence }
}

/// Returns an outcome for programs.
pub fn outcome_word(outcome: SenderOutcome) -> &'static str {
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
