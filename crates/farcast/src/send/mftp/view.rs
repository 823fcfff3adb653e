//! Output of `farcast send` by MFTP: progress, events, the closing table.

use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_delivery::{Phase, Protocol as _, RoundProgress};
use farcast_files::{Compressed, Outgoing};
use farcast_mftp::message::cancel;
use farcast_mftp::{ClientId, GivenUp, Member, MemberState, Mftp, Sender, SenderEvent, SenderOutcome};
use serde_json::{Value, json};

use super::advice::Advice;
use super::closing::{Closing, closing_sentence, closing_table, receivers, stats_table, summary};
use super::settings::in_use;
use super::{SendNotice, SendReport, outcome, turn};
use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::{MOST_LINES, Progress, part_of, percent, rate, time_left};
use crate::report::{End, Sending};
use crate::send::narrow::{self, Narrow};
use crate::send::{changed, changed_fields, changed_files, compress};
use crate::text::Text;
use crate::{Exit, Failure};

/// Interval between progress events for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// Output for the user of a sender.
pub(super) struct View<'a> {
    output: &'a mut Output,
    progress: Option<Progress>,
    args: &'a SendArgs,
    /// Destination of data.
    to: SocketAddr,
    size: u64,
    /// Result of compression, if compression was asked for.
    compressed: Option<Compressed>,
    data_began: Option<Time>,
    name: String,
    /// Files, each with the offset of its end in the product.
    files: Vec<(String, u64)>,
    next_report: Time,
    /// Set if advice was given.
    advised: bool,
    /// Record for a page, if a page is asked for.
    seen: Option<Sending>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        output: &'a mut Output,
        args: &'a SendArgs,
        to: SocketAddr,
        name: String,
        outgoing: &Outgoing,
    ) -> Self {
        let mut end = outgoing.manifest().head_len();
        let files = outgoing.manifest().entries().iter().filter(|entry| entry.is_file()).map(|entry| {
            end += entry.stored();
            (farcast_files::shown_name(&entry.path), end)
        });
        let seen = Sending::new(&args.page, Mftp::WORDS, (&name, outgoing.size()), to);
        Self {
            output,
            progress: None,
            args,
            to,
            size: outgoing.size(),
            compressed: compress::brought(args, outgoing),
            data_began: None,
            name,
            files: files.collect(),
            next_report: Time::ZERO,
            advised: false,
            seen,
        }
    }

    /// Records a notice for the page.
    pub(super) fn note(&mut self, now: Time, sender: &Sender, notice: &SendNotice<'_>) {
        let Some(seen) = &mut self.seen else { return };
        seen.observe::<Sender>(now, notice);
        if matches!(notice, SendNotice::Tick(_)) && seen.wants_look(now) {
            look(seen, now, sender);
        }
    }

    pub(super) fn observe(&mut self, now: Time, sender: &Sender, event: Option<&SenderEvent>) {
        let progress = self.progress.get_or_insert_with(|| Progress::new(self.output));
        let Some(event) = event else {
            let (prefix, message, done) = bar(now, sender, self.data_began, &self.files);
            let shown = progress.shows_lines();
            let lines =
                if shown { receiver_lines(now, sender, self.data_began, self.size) } else { Vec::new() };
            progress.update(self.output, now, (&prefix, &message), done, &lines);
            if now >= self.next_report {
                self.next_report = now + REPORT_EVERY;
                self.output.event("progress", progress_fields(now, sender, self.data_began));
                if let Some(advice) = Advice::of(sender).filter(|_| !self.advised) {
                    self.advised = true;
                    progress.line(self.output, &advice.sentence());
                    self.output.event("advice", advice.fields());
                }
            }
            return;
        };
        if let SenderEvent::Started { .. } = event {
            self.data_began = Some(now);
        }
        if let Some(line) = describe(sender, event) {
            progress.line(self.output, &line);
        }
        let (kind, fields) = fields(sender, event);
        self.output.event(kind, fields);
    }

    /// Reports a notice about the path out of this host, or about a file or a key.
    pub(super) fn way(&mut self, notice: &SendNotice<'_>) {
        let (line, kind, fields) = match notice {
            SendNotice::Waiting { why } => {
                (format!("waiting: {why}"), "waiting", json!({ "reason": why.to_string() }))
            }
            SendNotice::Back => ("going on: the way out is back".into(), "back", json!({})),
            SendNotice::Moved { address } => (
                format!("our address has changed: sending from {address} from now on"),
                "moved",
                json!({ "address": address.to_string() }),
            ),
            SendNotice::Revoked { name } => (
                format!("{name} is trusted no more: it can open nothing that is sent from now on"),
                "revoked",
                json!({ "receiver": name }),
            ),
            SendNotice::Refused { why } => (why.to_string(), "blocked", json!({ "reason": why.to_string() })),
            SendNotice::Fragmenting { packet, segment } => {
                (narrow::fragmenting(*packet, *segment, "--dtu-size"), "fragmenting", narrow::fits(*segment))
            }
            SendNotice::Narrow { receiver, datagram, limit, segment } => {
                let narrow = Narrow { receiver: *receiver, datagram: *datagram, limit: *limit };
                (narrow.sentence(Some((*segment, "--dtu-size"))), "narrow", narrow.fields(Some(*segment)))
            }
            SendNotice::Changed { file, name } => {
                let (line, fields) = changed(self.args, file, name);
                (line, "changed", fields)
            }
            SendNotice::Event(_) | SendNotice::Tick(_) => return,
        };
        if let Some(progress) = &mut self.progress {
            progress.line(self.output, &line);
        }
        self.output.event(kind, fields);
    }

    /// Removes the progress, so that others can show theirs.
    pub(super) fn rest(&mut self) -> &mut Output {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        self.output
    }

    pub(super) fn close(mut self, report: &SendReport) -> Result<Exit, Failure> {
        self.rest();
        if *outcome(report) == (SenderOutcome::Aborted { reason: cancel::ABORT_SOURCE_RENEWED }) {
            let line = format!("{}: all is sent again", changed_files(&report.changed));
            self.output.line(&line);
            self.output.event("again", json!({ "changed": changed_fields(&report.changed) }));
            return Ok(Exit::Again);
        }
        let incomplete: Vec<String> = incomplete(&report.sender, self.args.group.draft);
        let exit = exit_code(report, &incomplete);
        let mut fields = summary(report, &self.name, self.size, exit, self.args.group.draft);
        fields["compressed"] = json!(self.compressed.as_ref().map(compress::fields));
        fields["receivers_known"] = json!(!self.args.group.unlimited);
        self.output.event("summary", fields.clone());
        if let Some(table) = closing_table(report, self.args.group.draft) {
            self.output.result(&table);
        }
        if self.args.stats {
            self.output.result(&stats_table(report, self.size).blank());
        }
        if let Some(advice) = Advice::of(&report.sender) {
            self.output.result(&Text::line(&advice.closing(report, self.args.group.draft)).blank());
        }
        let closing = Closing {
            size: self.size,
            unlimited: self.args.group.unlimited,
            compressed: self.compressed.as_ref(),
        };
        let closing = closing_sentence(report, closing);
        self.output.result(&Text::line(&closing));
        let how = self.outcome(report, exit, &incomplete);
        if let Some(mut seen) = self.seen.take() {
            look(&mut seen, Time::ZERO + report.duration, &report.sender);
            let sent_per_round = seen.over(report);
            let end = End {
                closing: Some(closing),
                effective: in_use(report.sender.config()),
                receivers: receivers(&report.sender, self.args.group.draft),
                summary: fields,
            };
            seen.write(sent_per_round, end, &how, self.output);
        }
        how
    }

    /// Returns the failure of a transfer that could not go on and has no report.
    pub(super) fn failed(mut self, failure: Failure) -> Result<Exit, Failure> {
        self.rest();
        let how = Err(failure);
        if let Some(seen) = self.seen.take() {
            seen.write(Vec::new(), End::default(), &how, self.output);
        }
        how
    }

    /// Returns the result of the transfer.
    fn outcome(&self, report: &SendReport, exit: Exit, incomplete: &[String]) -> Result<Exit, Failure> {
        let failure = |sentence: String| Err(Failure { sentence, exit });
        if let Some(error) = &report.error {
            return failure(error.to_string());
        }
        match outcome(report) {
            SenderOutcome::NoReceivers => failure(no_receivers(self.args, self.to, report)),
            SenderOutcome::GroupInUse { by, .. } => failure(turn::refusal(self.args, self.to, &turn::other(*by))),
            SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } if incomplete.is_empty() => failure(
                "no receiver: who registered did not answer at its address; check the way from here to the receivers".into(),
            ),
            SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT } => failure(format!(
                "no receiver answers any more: {}; check their links, then send again: they keep what has come, if any",
                incomplete.join(", ")
            )),
            SenderOutcome::Aborted { reason: cancel::ABORT_TRANSFER_TIMEOUT } => {
                failure("the transfer took longer than --time-limit".into())
            }
            SenderOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED } => failure(format!(
                "not every receiver has it: {}; all else was delivered to {}; send it again",
                changed_files(&report.changed),
                incomplete.join(", ")
            )),
            SenderOutcome::Aborted { .. } => {
                failure("stopped; receivers keep what has come, if any, for the next try".into())
            }
            SenderOutcome::Finished if incomplete.is_empty() => Ok(exit),
            SenderOutcome::Finished => {
                failure(format!("not every receiver has it: {}", incomplete.join(", ")))
            }
        }
    }
}

fn exit_code(report: &SendReport, incomplete: &[String]) -> Exit {
    match outcome(report) {
        _ if report.error.is_some() => Exit::Failed,
        SenderOutcome::Finished if incomplete.is_empty() => Exit::Done,
        SenderOutcome::Finished
        | SenderOutcome::Aborted { reason: cancel::ABORT_STATUS_TIMEOUT | cancel::ABORT_SOURCE_CHANGED } => {
            Exit::Incomplete
        }
        _ => Exit::Failed,
    }
}

/// Returns the outcome for programs.
pub(super) fn outcome_word(outcome: &SenderOutcome) -> &'static str {
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

/// Returns `true` if the receiver is known to have everything. It must have said so in this run and have proved its
/// identity, or with `draft` only have said so. No other receiver may have had its name before.
pub(super) fn has_it(member: &Member, draft: bool) -> bool {
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
pub(super) fn standing(member: &Member, draft: bool) -> String {
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
        (other, _) => state(other),
    }
}

fn state(state: &MemberState) -> String {
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

fn given_up(why: GivenUp) -> &'static str {
    match why {
        GivenUp::Silent => "no longer answers",
        GivenUp::Greedy => "asked for more than anyone can need",
        GivenUp::Dismissed => "is trusted no more",
    }
}

/// Returns the reason for programs.
fn given_up_word(why: GivenUp) -> &'static str {
    match why {
        GivenUp::Silent => "silent",
        GivenUp::Greedy => "greedy",
        GivenUp::Dismissed => "revoked",
    }
}

fn quit_reason(reason: u32) -> String {
    match reason {
        cancel::QUIT_APPLICATION => "stopped there".into(),
        cancel::QUIT_TRANSFER_TIMEOUT => "it took too long".into(),
        cancel::QUIT_SYSTEM => "a problem of its system".into(),
        cancel::QUIT_ERROR_THRESHOLD => "it lost too much".into(),
        other => format!("reason {other}"),
    }
}

fn no_receivers(args: &SendArgs, to: SocketAddr, report: &SendReport) -> String {
    let (group, sender) = (to.ip(), &report.sender);
    let keys = if report.seal.is_some() {
        " with a key, that this host trusts that key and they trust this host's (farcast key list at both ends)"
    } else {
        ""
    };
    if sender.members().any(|(_, member)| matches!(member.state, MemberState::Declined(_))) {
        return format!("no receiver takes part: {}", incomplete(sender, args.group.draft).join(", "));
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
        args.socket.ttl,
        to.port()
    )
}

pub(super) fn label(sender: &Sender, client: ClientId) -> String {
    sender
        .members()
        .find(|(id, _)| *id == client)
        .map_or_else(|| client.to_string(), |(_, m)| m.label.clone())
}

/// Returns an event in words, or `None` for an event that the bar shows.
fn describe(sender: &Sender, event: &SenderEvent) -> Option<String> {
    Some(match event {
        SenderEvent::Registered { client, address, held: 0 } => {
            format!("registered: {} ({address})", label(sender, *client))
        }
        SenderEvent::Registered { client, address, held } => {
            let (held, segments) = (u64::from(*held), u64::from(sender.geometry().segments()));
            // A receiver that registers late holds the first of the data that is sent.
            let few = held * 1000 < segments;
            let part = if few { format!("{held} of {segments} DTUs") } else { percent(held, segments) };
            format!("registered: {} ({address}), has {part} already", label(sender, *client))
        }
        SenderEvent::Declined { client, reason } => {
            format!("declined: {} ({reason})", label(sender, *client))
        }
        SenderEvent::Refused { address, collision: true, client } => {
            format!("refused: {address}, because {} has the same name or address", label(sender, *client))
        }
        SenderEvent::Refused { address, .. } => format!("refused: {address}, which is not in --receivers"),
        SenderEvent::Started { receivers, restart: false } => {
            format!("data begins, {}", super::receivers(*receivers as usize))
        }
        SenderEvent::Started { receivers, .. } if sender.compares() => {
            let compare = if *receivers == 1 { "compares what it has" } else { "compare what they have" };
            format!("{} {compare}; what all of them have is left out", super::receivers(*receivers as usize))
        }
        SenderEvent::Started { receivers, restart: true } => {
            format!("going on where an earlier run stopped, {}", super::receivers(*receivers as usize))
        }
        SenderEvent::Done { client, .. } => format!("done: {}", label(sender, *client)),
        SenderEvent::Quit { client, reason, text } => {
            let why = text.clone().unwrap_or_else(|| quit_reason(*reason));
            format!("left: {} ({why})", label(sender, *client))
        }
        SenderEvent::Lost { client, why } => {
            format!("given up: {} {}", label(sender, *client), given_up(*why))
        }
        SenderEvent::Pass { .. } | SenderEvent::Delivered | SenderEvent::Ended(_) => return None,
    })
}

/// Returns an event for programs.
fn fields(sender: &Sender, event: &SenderEvent) -> (&'static str, Value) {
    let name = |client: &ClientId| label(sender, *client);
    match event {
        SenderEvent::Registered { client, address, held } => (
            "registered",
            json!({ "receiver": name(client), "address": address.to_string(), "segments_held": held }),
        ),
        SenderEvent::Declined { client, reason } => {
            ("declined", json!({ "receiver": name(client), "reason": reason.to_string() }))
        }
        SenderEvent::Refused { client, address, collision } => (
            "refused",
            json!({ "id": client.to_string(), "address": address.to_string(), "collision": collision }),
        ),
        SenderEvent::Started { receivers, restart } => {
            ("started", json!({ "receivers": receivers, "restart": restart }))
        }
        SenderEvent::Pass { pass, dtus } => ("pass", json!({ "pass": pass, "dtus": dtus })),
        SenderEvent::Done { client } => {
            let lost =
                sender.members().find(|(id, _)| id == client).map_or(0, |(_, member)| member.lost_dtus);
            ("done", json!({ "receiver": name(client), "naked_dtus": lost }))
        }
        SenderEvent::Quit { client, reason, text } => {
            ("quit", json!({ "receiver": name(client), "reason": reason, "text": text }))
        }
        SenderEvent::Lost { client, why } => {
            ("lost", json!({ "receiver": name(client), "why": given_up_word(*why) }))
        }
        SenderEvent::Delivered => ("delivered", json!({})),
        SenderEvent::Ended(outcome) => ("ended", json!({ "outcome": outcome_word(outcome) })),
    }
}

/// Returns the prefix of the bar, its message, and the part that is done with the whole.
fn bar(
    now: Time,
    sender: &Sender,
    began: Option<Time>,
    files: &[(String, u64)],
) -> (String, String, (u64, u64)) {
    let RoundProgress { round: pass, sent, segments: total } = sender.pass();
    match sender.phase() {
        Phase::Announcing => {
            let registered = sender.members().filter(|(_, m)| m.is_active()).count();
            ("announcing".into(), format!("{registered} registered"), (0, 1))
        }
        Phase::Waiting if pass == 0 => ("comparing".into(), "receivers look what they have".into(), (0, 1)),
        Phase::Waiting => (format!("pass {pass}"), "waiting for answers".into(), (1, 1)),
        Phase::Completing | Phase::Ended => ("closing".into(), String::new(), (1, 1)),
        _ => {
            let (sent, total) = (u64::from(sent), u64::from(total));
            let elapsed = began.map_or(Span::ZERO, |began| now.since(began));
            let mut message = format!("{sent} of {total} DTUs, {}", rate(wire_bytes(sender), elapsed));
            if pass == 1 {
                message += &time_left(sent, total, elapsed);
                let at = sent * u64::from(sender.geometry().segment_size());
                if let Some((path, _)) = files.iter().find(|(_, end)| at < *end).filter(|_| files.len() > 1) {
                    message.push_str("  ");
                    message.push_str(path);
                }
            }
            (format!("pass {pass}"), message, (sent, total))
        }
    }
}

/// Records each receiver's share of all data. Receivers that have left are not recorded.
fn look(seen: &mut Sending, now: Time, sender: &Sender) {
    let all = f64::from(sender.geometry().segments().max(1));
    let share = |(id, member)| {
        let member: &Member = member;
        (member.label.as_str(), f64::from(sender.received_by(id)) / all)
    };
    let gone = |member: &Member| matches!(member.state, MemberState::Quit(..) | MemberState::Lost(_));
    seen.look(now, sender.members().filter(|(_, member)| !gone(member)).map(share));
}

/// Returns a line for each receiver, as far as there is room.
fn receiver_lines(now: Time, sender: &Sender, began: Option<Time>, size: u64) -> Vec<String> {
    let elapsed = began.map_or(Span::ZERO, |began| now.since(began));
    let segments = u64::from(sender.geometry().segments());
    let line = |(id, member): (ClientId, &Member)| {
        let have = u64::from(sender.received_by(id));
        format!(
            "  {:<24} {:>7}  loss {:>7}  {:>12}  {}",
            member.label,
            percent(have, segments),
            percent(member.lost_dtus, member.sent_dtus(sender.received_by(id))),
            rate(part_of(size, have.saturating_sub(member.held.into()), segments), elapsed),
            if member.is_active() { String::new() } else { state(&member.state) }
        )
    };
    let mut lines: Vec<String> = sender.members().take(MOST_LINES).map(line).collect();
    let more = sender.members().count().saturating_sub(MOST_LINES);
    if let (Some(last), true) = (lines.last_mut(), more > 0) {
        *last = format!("  and {} more", more + 1);
    }
    lines
}

/// Returns the progress for programs.
fn progress_fields(now: Time, sender: &Sender, began: Option<Time>) -> Value {
    let RoundProgress { round: pass, sent, segments: total } = sender.pass();
    let members = sender.members().map(|(id, member)| {
        json!({
            "receiver": member.label,
            "segments": sender.received_by(id),
            "naked_dtus": member.lost_dtus,
            "dtus_dropped_unstored": member.unstored_dtus,
            "naks": member.naks,
            "state": state(&member.state),
        })
    });
    json!({
        "phase": sender.phase().word(),
        "elapsed_s": began.map_or(0.0, |began| now.since(began).as_secs_f64()),
        "pass": pass,
        "dtus_sent_in_pass": sent,
        "dtus_in_pass": total,
        "wire_bytes": wire_bytes(sender),
        "round_trip_s": sender.round_trip().as_secs_f64(),
        "receivers": members.collect::<Vec<Value>>(),
    })
}

/// Returns the bytes of all datagrams with their UDP and IP headers.
pub(super) fn wire_bytes(sender: &Sender) -> u64 {
    let stats = sender.stats();
    stats.bytes + stats.datagrams * if sender.is_ipv6() { 48 } else { 28 }
}
