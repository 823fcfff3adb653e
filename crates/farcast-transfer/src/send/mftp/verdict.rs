//! Verdict on a transfer by MFTP, and the states of its receivers in words.

use std::net::SocketAddr;

use super::{ClientId, GivenUp, Member, MemberState, Report, Sender, SenderOutcome, cancel, outcome};
use crate::send::turn::{other, refusal};
use crate::send::{Lack, SendJob, SendOutcome, Standing, Tally, Unconfirmed, Verdict, changed_files, some};

/// Returns the verdict on a transmission of `job` to `to`.
pub(super) fn verdict(job: &SendJob, to: SocketAddr, report: &Report) -> Verdict {
    let incomplete = incomplete(&report.sender, job.group.draft);
    Verdict {
        word: outcome_word(outcome(report)),
        outcome: send_outcome(report, &incomplete),
        sentence: sentence(job, to, report, &incomplete),
    }
}

fn send_outcome(report: &Report, incomplete: &[String]) -> SendOutcome {
    match outcome(report) {
        _ if report.error.is_some() => SendOutcome::Failed,
        SenderOutcome::Finished if incomplete.is_empty() => SendOutcome::Done,
        SenderOutcome::Finished
        | SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT | cancel::ABORT_SOURCE_CHANGED } => {
            SendOutcome::Incomplete
        }
        _ => SendOutcome::Failed,
    }
}

/// Returns the sentence of a transmission that did not do what was asked of it.
fn sentence(job: &SendJob, to: SocketAddr, report: &Report, incomplete: &[String]) -> Option<String> {
    if let Some(error) = &report.error {
        return Some(error.to_string());
    }
    Some(match outcome(report) {
        SenderOutcome::NoReceivers => no_receivers(job, to, report),
        SenderOutcome::GroupInUse { by, .. } => refusal(job, to, &other(*by)),
        SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } if incomplete.is_empty() => {
            "no receiver: who registered did not answer at its address; check the way from here to the receivers".into()
        }
        SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } => format!(
            "no receiver answers any more: {}; check their links, then send again: they keep what has come, if any",
            some(incomplete)
        ),
        SenderOutcome::Aborted { reason: cancel::ABORT_TRANSFER_TIMEOUT } => {
            "the transfer took longer than --time-limit".into()
        }
        SenderOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED } => format!(
            "not every receiver has it: {}; all else was delivered to {}; send it again",
            changed_files(&report.changed),
            some(incomplete)
        ),
        SenderOutcome::Aborted { .. } => "stopped; receivers keep what has come, if any, for the next try".into(),
        SenderOutcome::Finished if incomplete.is_empty() => return None,
        SenderOutcome::Finished => format!("not every receiver has it: {}", some(incomplete)),
    })
}

/// Returns `true` if the receiver is known to have everything. It must have said so in this run and have proved its
/// identity, or with `draft` only have said so. No other receiver may have had its name before.
pub fn has_it(member: &Member, draft: bool) -> bool {
    member.state == MemberState::Done && (draft || member.is_proven()) && member.replaced.is_none()
}

/// Returns the receivers that are not known to have everything, each with its state.
fn incomplete(sender: &Sender, draft: bool) -> Vec<String> {
    sender
        .members()
        .filter(|(_, member)| !has_it(member, draft))
        .map(|(_, member)| format!("{} ({})", member.label, standing(member, draft)))
        .collect()
}

/// Returns the state of a receiver in words.
pub fn standing(member: &Member, draft: bool) -> String {
    match (&member.state, member.replaced) {
        (MemberState::Done, Some(address)) => {
            format!("done, but the one at {address} that had its name before did not get everything")
        }
        (MemberState::Done, None) if !draft && !member.is_proven() => {
            "says that it is done and cannot prove it; --draft believes it".into()
        }
        (MemberState::Invited, _) if member.remembered => {
            "had it in an earlier run, and was not there to confirm that it still has".into()
        }
        (MemberState::Active, _) if !draft && !member.is_proven() => {
            "registered, and never answered what was sent to its address".into()
        }
        (other, _) => state_words(other),
    }
}

/// Returns the numbers of the receivers that `sender` knows.
pub(super) fn tally(sender: &Sender) -> Tally {
    let draft = sender.config().secret.is_none();
    let mut tally = Tally::default();
    for (_, member) in sender.members() {
        tally.known += 1;
        tally.confirmed += u64::from(has_it(member, draft));
        let gone =
            matches!(member.state, MemberState::Declined(_) | MemberState::Quit(..) | MemberState::Lost(_));
        tally.gone += u64::from(gone);
    }
    tally
}

/// Returns the receivers that are not known to have everything.
pub(super) fn unconfirmed(sender: &Sender, draft: bool) -> Vec<Unconfirmed> {
    let one = |(client, member): (ClientId, &Member)| {
        let standing = match member.state {
            MemberState::Invited => Standing::Absent,
            MemberState::Active | MemberState::Done | MemberState::Lost(GivenUp::Silent) => Standing::Lacks,
            MemberState::Declined(_) | MemberState::Lost(GivenUp::Greedy | GivenUp::Dismissed) => {
                Standing::Refused
            }
            MemberState::Quit(..) => Standing::Left,
        };
        Unconfirmed {
            name: member.label.clone(),
            address: member.address,
            standing,
            lacks: lack(sender, client, member),
            heard: member.heard_at,
        }
    };
    sender.members().filter(|(_, member)| !has_it(member, draft)).map(one).collect()
}

/// Returns the data that a receiver lacks; `None` if it has said nothing of that.
fn lack(sender: &Sender, client: ClientId, member: &Member) -> Option<Lack> {
    if matches!(member.state, MemberState::Invited | MemberState::Declined(_) | MemberState::Done) {
        return None;
    }
    let geometry = sender.geometry();
    let segments = u64::from(geometry.segments().saturating_sub(sender.received_by(client)));
    let octets = segments * u64::from(geometry.segment_size());
    Some(Lack { segments, octets: octets.min(geometry.size()) })
}

/// Returns the state of a receiver in words, whatever it can prove.
pub fn state_words(state: &MemberState) -> String {
    match state {
        MemberState::Invited => "did not register".into(),
        MemberState::Active => "incomplete".into(),
        MemberState::Declined(reason) => format!("declined: {reason}"),
        MemberState::Done => "done".into(),
        MemberState::Quit(_, Some(text)) => format!("left: {text}"),
        MemberState::Quit(reason, None) => format!("left: {}", quit_reason(*reason)),
        MemberState::Lost(why) => given_up(*why).into(),
    }
}

/// Returns the reason for which a sender gave up a receiver, in words.
pub fn given_up(why: GivenUp) -> &'static str {
    match why {
        GivenUp::Silent => "no longer answers",
        GivenUp::Greedy => "asked for more than anyone can need",
        GivenUp::Dismissed => "is trusted no more",
    }
}

/// Returns the reason for which a receiver left, in words.
pub fn quit_reason(reason: u32) -> String {
    match reason {
        cancel::QUIT_APPLICATION => "stopped there".into(),
        cancel::QUIT_TRANSFER_TIMEOUT => "it took too long".into(),
        cancel::QUIT_SYSTEM => "a problem of its system".into(),
        cancel::QUIT_ERROR_THRESHOLD => "it lost too much".into(),
        other => format!("reason {other}"),
    }
}

fn no_receivers(job: &SendJob, to: SocketAddr, report: &Report) -> String {
    let (group, sender) = (to.ip(), &report.sender);
    let keys = if report.seal.is_some() {
        " with a key, that this host trusts that key and they trust this host's (farcast key list at both ends)"
    } else {
        ""
    };
    if sender.members().any(|(_, member)| matches!(member.state, MemberState::Declined(_))) {
        return format!("no receiver takes part: {}", incomplete(sender, job.group.draft).join(", "));
    }
    if !group.is_multicast() {
        return format!(
            "{group} does not answer; check that `farcast receive --from {}` runs there{keys} and that no firewall drops \
             UDP port {} (`ping {group}`, `nft list ruleset`)",
            to,
            to.port()
        );
    }
    format!(
        "nobody answered on {}; check, in this order: that receivers run (`farcast receive --from {} --name NAME`), by MFTP as this sender (--protocol), and have the names in --receivers, if it is given{keys}; the interface \
         at both ends (--interface; `ip route get {group}` shows the one in use); the TTL, {} now, if routers lie \
         between (--ttl); IGMP snooping without a querier on switches (`bridge mdb show`); firewalls (`nft list \
         ruleset`: UDP port {} and IGMP must pass); `tcpdump -ni IFACE host {group}` at a receiver shows \
         whether anything arrives",
        to,
        to,
        job.socket.ttl,
        to.port()
    )
}

/// Returns the outcome for programs.
pub fn outcome_word(outcome: &SenderOutcome) -> &'static str {
    match outcome {
        SenderOutcome::Finished => "finished",
        SenderOutcome::NoReceivers => "no_receivers",
        SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } => "all_receivers_lost",
        SenderOutcome::Aborted { reason: cancel::ABORT_TRANSFER_TIMEOUT } => "time_limit",
        SenderOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED } => "changed",
        SenderOutcome::Aborted { .. } => "aborted",
        SenderOutcome::GroupInUse { .. } => "group_in_use",
    }
}
