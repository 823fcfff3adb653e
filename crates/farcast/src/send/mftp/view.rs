//! Output of `farcast send` by MFTP: progress, events, the closing table.

use farcast_core::{Span, Time};
use farcast_delivery::{Phase, Protocol as _, RoundProgress};
use farcast_files::Outgoing;
use farcast_mftp::{ClientId, GivenUp, Member, MemberState, Mftp, Sender, SenderEvent, SenderOutcome};
use farcast_transfer::send::{
    NoticeOf, SendEvent, Tally, changed_files, given_up, mftp_outcome_word as outcome_word, quit_reason,
    receivers as receivers_words, state_words as state,
};

use super::advice::Advice;
use super::closing::{Closing, closing_sentence, closing_table, receivers, summary};
use super::{SendMftp, SendReport};
use crate::progress::receivers::{Confirmations, Sparing, lines};
use crate::progress::{part_of, percent, rate, time_left};
use crate::report::{End, Sending};
use crate::send::predict::advise;
use crate::send::stats::stats_table;
use crate::send::{
    Error, Exit, Failure, Output, Preparation, Progress, Scanned, SendFace, SendNotice, SendProtocol, Sent,
    Steps, Value, changed_fields, compressed_fields, json, notice_words,
};
use crate::text::Text;

/// Most receivers that one line names.
const MOST_NAMED: usize = 3;
/// Interval between progress events for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// Output for the user of a sender.
pub(super) struct View<'a> {
    steps: Steps<'a>,
    data_began: Option<Time>,
    size: u64,
    /// Files, each with the offset of its end in the product.
    files: Vec<(String, u64)>,
    next_report: Time,
    /// Set if advice was given.
    advised: bool,
    /// Confirmations so far.
    confirmations: Confirmations,
    /// Lines about single receivers.
    sparing: Sparing,
    /// Record for a page, if a page is asked for.
    seen: Option<Sending>,
}

impl SendFace<SendMftp> for View<'_> {
    fn prepare(&mut self, note: &Preparation<'_>) {
        if matches!(note, Preparation::GroupInUse { .. }) {
            self.steps.clear();
        }
        self.steps.show(note);
    }

    fn begin(&mut self, protocol: &SendMftp, files: &Scanned) {
        self.steps.announce(protocol, files);
        advise(protocol, self.steps.args, files, &mut self.steps.output);
        let outgoing = files.objects.first();
        let mut end = outgoing.map_or(0, |one| one.manifest().head_len());
        let entries = outgoing.into_iter().flat_map(|one| one.manifest().entries());
        let ends = entries.filter(|entry| entry.is_file()).map(|entry| {
            end += entry.stored();
            (farcast_files::shown_name(&entry.path), end)
        });
        self.files = ends.collect();
        self.size = outgoing.map_or(0, Outgoing::size);
        let to = protocol.basis().to;
        self.seen = Sending::new(&self.steps.args.page, Mftp::WORDS, (&files.name, self.size), to);
        (self.data_began, self.next_report, self.advised) = (None, Time::ZERO, false);
        self.confirmations = Confirmations::default();
    }

    fn observe(
        &mut self,
        now: Time,
        (protocol, sender): (&SendMftp, &Sender),
        notice: &NoticeOf<'_, SendMftp>,
        _told: Option<SendEvent>,
    ) {
        self.note(now, sender, notice);
        match notice {
            // The sender may wait for the group, so this is not the end yet.
            SendNotice::Event(SenderEvent::Ended(SenderOutcome::GroupInUse { .. }))
                if self.steps.args.job.group.wait.is_some() => {}
            SendNotice::Event(event) => self.event(now, sender, event),
            SendNotice::Tick(_) => self.tick(now, protocol, sender),
            notice => {
                let words = notice_words(self.steps.args, notice, SendMftp::SEGMENT_SIZE);
                let Some((line, kind, fields)) = words else { return };
                if let Some(progress) = &mut self.steps.progress {
                    progress.line(&self.steps.output, &line);
                }
                self.steps.output.event(kind, fields);
            }
        }
    }

    fn failed(&mut self, error: &Error) {
        self.steps.clear();
        if let Some(seen) = self.seen.take() {
            let how = Err(Failure::from(error.clone()));
            seen.write(Vec::new(), End::default(), &how, &self.steps.output);
        }
    }

    fn again(&mut self, report: &SendReport) {
        self.steps.clear();
        self.steps.output.line(&format!("{}: all is sent again", changed_files(&report.changed)));
        self.steps.output.event("again", json!({ "changed": changed_fields(&report.changed) }));
    }
}

impl<'a> View<'a> {
    pub(super) fn new(steps: Steps<'a>) -> Self {
        Self {
            steps,
            data_began: None,
            size: 0,
            files: Vec::new(),
            next_report: Time::ZERO,
            advised: false,
            confirmations: Confirmations::default(),
            sparing: Sparing::default(),
            seen: None,
        }
    }

    /// Returns the output, for a prediction.
    pub(super) fn output(&mut self) -> &mut Output {
        &mut self.steps.output
    }

    /// Records a notice for the page.
    fn note(&mut self, now: Time, sender: &Sender, notice: &NoticeOf<'_, SendMftp>) {
        let Some(seen) = &mut self.seen else { return };
        seen.observe::<Sender>(now, notice);
        if matches!(notice, SendNotice::Tick(_)) && seen.wants_look(now) {
            look(seen, now, sender);
        }
    }

    fn tick(&mut self, now: Time, protocol: &SendMftp, sender: &Sender) {
        if self.data_began.is_none() && sender.pass().sent > 0 {
            self.data_began = Some(now);
        }
        let output = &mut self.steps.output;
        let progress = self.steps.progress.get_or_insert_with(|| Progress::new(output));
        let tally = protocol.tally(sender);
        let confirmed = self.confirmations.words(now, tally);
        let facts = Facts { tally, confirmed: &confirmed, began: self.data_began, files: &self.files };
        let (prefix, message, done) = bar(now, sender, &facts);
        let lines = receiver_lines(now, sender, self.data_began, self.size, progress.room());
        progress.update(output, now, (&prefix, &message), done, &lines);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            output.event("progress", progress_fields(now, sender, self.data_began));
            if let Some(advice) = Advice::of(sender).filter(|_| !self.advised) {
                self.advised = true;
                progress.line(output, &advice.sentence());
                output.event("advice", advice.fields());
            }
        }
    }

    fn event(&mut self, now: Time, sender: &Sender, event: &SenderEvent) {
        let output = &mut self.steps.output;
        let progress = self.steps.progress.get_or_insert_with(|| Progress::new(output));
        if let SenderEvent::Started { .. } = event {
            self.data_began.get_or_insert(now);
        }
        let (kind, fields) = fields(sender, event);
        if let Some(line) = describe(sender, event).and_then(|line| self.sparing.line(kind, line)) {
            progress.line(output, &line);
        }
        output.event(kind, fields);
    }

    /// Shows the end of the transfer. Returns its result.
    pub(super) fn close(mut self, sent: &Sent<SendMftp>) -> Result<Exit, Failure> {
        self.steps.clear();
        let (args, report) = (self.steps.args, &sent.report);
        let (group, draft) = (&args.job.group, args.job.group.draft);
        let verdict = sent.verdict(&args.job);
        let mut fields = summary(report, &sent.files.name, self.size, &verdict, draft);
        fields["compressed"] = json!(sent.files.compressed.as_ref().map(compressed_fields));
        fields["receivers_known"] = json!(!group.unlimited);
        let output = &mut self.steps.output;
        output.event("summary", fields.clone());
        if let Some(table) = closing_table(report, draft) {
            output.result(&table);
        }
        if args.stats {
            let (left_out, segments) = (report.sender.left_out(), report.sender.geometry().segments());
            let left_out = part_of(self.size, left_out.into(), segments.into());
            output.result(&stats_table(self.size, Some(left_out), &report.traffic));
        }
        if let Some(advice) = Advice::of(&report.sender) {
            output.result(&Text::line(&advice.closing(report, draft)).blank());
        }
        let compressed = sent.files.compressed.as_ref();
        let closing = Closing { size: self.size, unlimited: group.unlimited, compressed };
        let closing = closing_sentence(report, closing);
        output.result(&Text::line(&closing));
        let how = verdict.result().map(Exit::of).map_err(Failure::from);
        if let Some(mut seen) = self.seen.take() {
            look(&mut seen, Time::ZERO + report.duration, &report.sender);
            let sent_per_round = seen.over(report);
            let end = End {
                closing: Some(closing),
                effective: SendMftp::in_effect(&report.sender),
                receivers: receivers(&report.sender, draft),
                summary: fields,
            };
            seen.write(sent_per_round, end, &how, output);
        }
        how
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
            format!("data begins, {}{}", receivers_words(*receivers as usize), unheard(sender))
        }
        SenderEvent::Started { receivers, .. } if sender.compares() => {
            let compare = if *receivers == 1 { "compares what it has" } else { "compare what they have" };
            format!("{} {compare}; what all of them have is left out", receivers_words(*receivers as usize))
        }
        SenderEvent::Started { receivers, restart: true } => {
            format!("going on where an earlier run stopped, {}", receivers_words(*receivers as usize))
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

/// Returns the listed receivers that have not answered, in words that follow others; empty if all have.
fn unheard(sender: &Sender) -> String {
    let absent: Vec<&str> = sender.awaited().map(|member| member.label.as_str()).collect();
    let (named, more) = absent.split_at(absent.len().min(MOST_NAMED));
    let have = if absent.len() == 1 { "has" } else { "have" };
    match (named, more) {
        ([], _) => String::new(),
        (named, []) => format!("; {} {have} not answered yet", named.join(", ")),
        (named, more) => format!("; {} and {} more {have} not answered yet", named.join(", "), more.len()),
    }
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
            let absent: Vec<&str> = sender.awaited().map(|member| member.label.as_str()).collect();
            ("started", json!({ "receivers": receivers, "restart": restart, "absent": absent }))
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

/// Facts that the bar shows beside those of the engine.
struct Facts<'a> {
    tally: Tally,
    /// Numbers of the receivers in words.
    confirmed: &'a str,
    /// Time at which data began.
    began: Option<Time>,
    /// Files, each with the offset of its end in the product.
    files: &'a [(String, u64)],
}

/// Returns the prefix of the bar, its message, and the part that is done with the whole.
fn bar(now: Time, sender: &Sender, facts: &Facts<'_>) -> (String, String, (u64, u64)) {
    let &Facts { tally, confirmed, .. } = facts;
    let RoundProgress { round: pass, sent, segments: total } = sender.pass();
    let several = tally.known > 1;
    let done = if several { (tally.confirmed, tally.known) } else { (1, 1) };
    match sender.phase() {
        Phase::Announcing if sent == 0 => {
            let registered = sender.members().filter(|(_, m)| m.is_active()).count();
            ("announcing".into(), format!("{registered} registered"), (0, 1))
        }
        // All data has left early, and some receivers have not registered yet.
        Phase::Announcing if several && sent >= total => {
            ("waiting".into(), format!("{confirmed}; {}", waits_for(sender)), done)
        }
        Phase::Waiting if sender.is_resting() && several => {
            ("waiting".into(), format!("{confirmed}; {}", waits_for(sender)), done)
        }
        Phase::Waiting if sender.is_resting() => ("waiting".into(), waits_for(sender), done),
        Phase::Waiting if pass == 0 => ("comparing".into(), "receivers look what they have".into(), (0, 1)),
        Phase::Waiting if several => (format!("pass {pass}"), confirmed.into(), done),
        Phase::Waiting => (format!("pass {pass}"), "waiting for answers".into(), done),
        Phase::Completing | Phase::Ended if several => ("closing".into(), confirmed.into(), (1, 1)),
        Phase::Completing | Phase::Ended => ("closing".into(), String::new(), (1, 1)),
        _ => {
            let (sent, total) = (u64::from(sent), u64::from(total));
            let message = sending(now, sender, facts);
            let message = if pass > 1 && several { format!("{confirmed}; {message}") } else { message };
            (format!("pass {pass}"), message, (sent, total))
        }
    }
}

/// Returns the progress of a pass in words.
fn sending(now: Time, sender: &Sender, facts: &Facts<'_>) -> String {
    let RoundProgress { round: pass, sent, segments: total } = sender.pass();
    let (sent, total) = (u64::from(sent), u64::from(total));
    let elapsed = facts.began.map_or(Span::ZERO, |began| now.since(began));
    let mut message = format!("{sent} of {total} DTUs, {}", rate(wire_bytes(sender), elapsed));
    if pass == 1 {
        message += &time_left(sent, total, elapsed);
        let at = sent * u64::from(sender.geometry().segment_size());
        let mut ends = facts.files.iter().filter(|_| facts.files.len() > 1);
        if let Some((path, _)) = ends.find(|(_, end)| at < *end) {
            message.push_str("  ");
            message.push_str(path);
        }
    }
    message
}

/// Returns what the sender waits for when all receivers that have come are served.
fn waits_for(sender: &Sender) -> String {
    let absent = sender.awaited().count();
    match (absent, sender.awaited().next()) {
        (0, _) => "for receivers that may still register".into(),
        (1, Some(member)) => format!("for {}, which has not answered yet", member.label),
        (n, _) => format!("for {n} receivers that have not answered yet"),
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

/// Returns a line for each receiver, as far as there is room for `most`: first for those that have least. Data of
/// `size` octets began to leave at `began`.
fn receiver_lines(now: Time, sender: &Sender, began: Option<Time>, size: u64, most: usize) -> Vec<String> {
    let segments = u64::from(sender.geometry().segments());
    let line = |(id, member): (ClientId, &Member)| {
        // The rate of a receiver that has everything stays as it was.
        let until = member.done_at.unwrap_or(now);
        let elapsed = began.map_or(Span::ZERO, |began| until.since(began));
        let have = u64::from(sender.received_by(id));
        format!(
            "  {:<24} {:>7}  loss {:>7}  {:>12}  {}",
            member.label,
            percent(have, segments),
            percent(member.lost_dtus, member.sent_dtus(sender.received_by(id))),
            rate(part_of(size, have.saturating_sub(member.held.into()), segments), elapsed),
            match &member.state {
                MemberState::Active => String::new(),
                MemberState::Invited => "not here yet".into(),
                other => state(other),
            }
        )
    };
    let slowest = |&(id, member): &(ClientId, &Member)| {
        let rank = match member.state {
            MemberState::Active => 0,
            MemberState::Invited => 1,
            MemberState::Declined(_) | MemberState::Quit(..) | MemberState::Lost(_) => 2,
            MemberState::Done => 3,
        };
        (rank, sender.received_by(id), id)
    };
    lines(sender.members(), most, slowest, line)
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
