//! View of a transfer by any protocol but MFTP: progress, events, and the messages at the end.

use std::cmp::Reverse;

use farcast_core::{Span, Time};
use farcast_delivery::{Phase, Protocol, RoundProgress, SenderEngine, Words};
use farcast_report::transfer;
use farcast_transfer::sealing;
use farcast_transfer::send::{
    NoticeOf, ReceiverState, ReportOf, SendEvent, SenderOf, Verdict, changed_files,
};

use super::predict::advise;
use super::stats::stats_table;
use super::{
    Controls, Error, Exit, Failure, Predict, Preparation, Progress, Scanned, SendArgs, SendFace, SendNotice,
    SendProtocol, Sent, Steps, Value, changed_fields, compressed_fields, compressed_sentence, json,
    notice_words, scan, size, transfer,
};
use crate::progress::receivers::{Confirmations, MOST_ROWS, Sparing, few, left_out, lines};
use crate::progress::{overhead, part_of, rate, time_left, times_the_size};
use crate::report::{End, Sending};
use crate::table::{Align, Table};
use crate::text::Text;

/// Interval between progress events for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// Sends the files of `args` by the protocol `P`, or predicts that.
pub(super) fn run<P: Predict>(args: &SendArgs) -> Result<Exit, Failure> {
    let job = &args.job;
    let mut view = View::<P>::new(args)?;
    if let Some(link) = &args.predict {
        let protocol = P::new(job, farcast_transfer::send::prepare(job)?)?;
        let files = scan(&protocol, job, &mut view)?;
        protocol.check(job, &files)?;
        return protocol.predict(args, &files, link, &mut view.steps.output);
    }
    let stop = crate::interrupt::interrupted()?;
    let start = std::sync::atomic::AtomicBool::new(false);
    let sent = transfer::<P>(args, &mut view, Controls { start: &start, stop: &stop })?;
    let how = view.close(&sent);
    if let Ok(Exit::Unknown) = how {
        view.steps.output.line("who has received it, nobody here can tell: receivers cannot answer");
    }
    how
}

/// Returns the protocol's terms.
const fn words<P: SendProtocol>() -> Words {
    <P::Protocol as Protocol>::WORDS
}

/// Output for the user of a sender.
struct View<'a, P> {
    steps: Steps<'a>,
    /// Record for a page, if a page is asked for.
    seen: Option<Sending>,
    began: Option<Time>,
    next_report: Time,
    /// Confirmations so far.
    confirmations: Confirmations,
    /// Lines about single receivers.
    sparing: Sparing,
    protocol: std::marker::PhantomData<P>,
}

impl<P: Predict> SendFace<P> for View<'_, P> {
    fn prepare(&mut self, note: &Preparation<'_>) {
        self.steps.show(note);
    }

    fn begin(&mut self, protocol: &P, files: &Scanned) {
        self.steps.announce(protocol, files);
        advise(protocol, self.steps.args, files, &mut self.steps.output);
        let (page, to) = (&self.steps.args.page, protocol.basis().to);
        self.seen = Sending::new(page, words::<P>(), (&files.name, files.octets()), to);
        (self.began, self.next_report) = (None, Time::ZERO);
        self.confirmations = Confirmations::default();
    }

    fn observe(
        &mut self,
        now: Time,
        (protocol, sender): (&P, &SenderOf<P>),
        notice: &NoticeOf<'_, P>,
        told: Option<SendEvent>,
    ) {
        if let Some(seen) = &mut self.seen {
            seen.observe::<SenderOf<P>>(now, notice);
        }
        if let Some((line, kind, fields)) = notice_words(self.steps.args, notice, P::SEGMENT_SIZE) {
            return self.tell(Some(&line), kind, fields);
        }
        match notice {
            SendNotice::Tick(_) => self.tick(now, protocol, sender),
            SendNotice::Event(_) if self.began.is_none() && sender.phase() == Phase::Sending => {
                self.began = Some(now);
            }
            _ => {}
        }
        if let Some((line, kind, fields)) = told.and_then(event_words) {
            let line = line.and_then(|line| self.sparing.line(kind, line));
            self.tell(line.as_deref(), kind, fields);
        }
    }

    fn failed(&mut self, error: &Error) {
        self.steps.clear();
        if let Some(seen) = self.seen.take() {
            let how = Err(Failure::from(error.clone()));
            seen.write(Vec::new(), End::default(), &how, &self.steps.output);
        }
    }

    fn again(&mut self, report: &ReportOf<P>) {
        let line = format!("{}: all is sent again", changed_files(&report.changed));
        self.tell(Some(&line), "again", json!({ "changed": changed_fields(&report.changed) }));
        self.steps.clear();
    }
}

/// Returns the words about an event of a protocol: a line for people, its kind and its fields.
fn event_words(event: SendEvent) -> Option<(Option<String>, &'static str, Value)> {
    Some(match event {
        SendEvent::Started { receivers } => (None, "started", json!({ "named_receivers": receivers })),
        SendEvent::Round { round, segments } => {
            (None, "round", json!({ "round": round, "segments": segments }))
        }
        SendEvent::Object(object) => (None, "object", json!({ "object": object })),
        SendEvent::Reached { receiver, object } => {
            (None, "reached", json!({ "receiver": receiver, "object": object }))
        }
        SendEvent::Has(receiver) => {
            (Some(format!("has it: {receiver}")), "done", json!({ "receiver": receiver }))
        }
        SendEvent::Lost(receiver) => {
            (Some(format!("does not acknowledge: {receiver}")), "lost", json!({ "receiver": receiver }))
        }
        SendEvent::Delivered => (None, "delivered", json!({})),
        SendEvent::Ended(outcome) => (None, "ended", json!({ "outcome": outcome })),
        SendEvent::Other { line, kind, fields } => (line, kind, fields),
        _ => return None,
    })
}

impl<'a, P: SendProtocol> View<'a, P> {
    fn new(args: &'a SendArgs) -> Result<Self, Failure> {
        Ok(Self {
            steps: Steps::new(args)?,
            seen: None,
            began: None,
            next_report: Time::ZERO,
            confirmations: Confirmations::default(),
            sparing: Sparing::default(),
            protocol: std::marker::PhantomData,
        })
    }

    fn tell(&mut self, line: Option<&str>, kind: &'static str, fields: Value) {
        if let Some(line) = line {
            match &self.steps.progress {
                Some(progress) => progress.line(&self.steps.output, line),
                None => self.steps.output.line(line),
            }
        }
        self.steps.output.event(kind, fields);
    }

    fn tick(&mut self, now: Time, protocol: &P, sender: &SenderOf<P>) {
        let progress = self.steps.progress.get_or_insert_with(|| Progress::new(&self.steps.output));
        let RoundProgress { round, sent, segments } = sender.progress();
        // Repairs in this round are added to the segments that were to be sent.
        let (sent, total) = (u64::from(sent), u64::from(segments.max(sent)));
        let elapsed = self.began.map_or(Span::ZERO, |began| now.since(began));
        let tally = protocol.tally(sender);
        let confirmed = self.confirmations.words(now, tally);
        let several = (tally.known > 1).then_some(confirmed.as_str());
        let part = (tally.confirmed, tally.known);
        let round_word = words::<P>().round.one;
        let (prefix, message, done) = match sender.phase() {
            Phase::Sending => {
                let mut message = format!("{sent} of {total} {}", words::<P>().segment.after(total));
                if round == 1 {
                    message += &time_left(sent, total, elapsed);
                } else if let Some(confirmed) = several {
                    message = format!("{confirmed}; {message}");
                }
                (format!("{round_word} {round}"), message, (sent, total))
            }
            Phase::Waiting => {
                let message = several.unwrap_or("waiting for answers");
                (
                    format!("{round_word} {round}"),
                    message.into(),
                    if several.is_some() { part } else { (1, 1) },
                )
            }
            Phase::Completing | Phase::Ended => {
                ("closing".into(), several.unwrap_or_default().into(), (1, 1))
            }
            _ => ("announcing".into(), String::new(), (0, 1)),
        };
        let room = progress.room();
        let lines = if room > 0 { receiver_lines(&protocol.receivers(), room) } else { Vec::new() };
        progress.update(&self.steps.output, now, (&prefix, &message), done, &lines);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            let fields = json!({
                "phase": sender.phase().word(), "elapsed_s": elapsed.as_secs_f64(),
                "round": round, "segments_sent_in_round": sent, "segments_in_round": total,
            });
            self.steps.output.event("progress", fields);
        }
    }

    /// Shows the end of the transfer. Returns its result.
    fn close(&mut self, sent: &Sent<P>) -> Result<Exit, Failure> {
        self.steps.clear();
        let verdict = sent.verdict(&self.steps.args.job);
        let fields = summary(sent, &verdict);
        self.steps.output.event("summary", fields.clone());
        if let Some(table) = table(&sent.protocol.receivers()) {
            self.steps.output.result(&table);
        }
        if self.steps.args.stats {
            let table = stats_table(sent.files.octets(), None, &sent.report.traffic);
            self.steps.output.result(&table);
        }
        let how = verdict.result().map(Exit::of).map_err(Failure::from);
        if let (Ok(_), Some(sentence)) = (&how, &verdict.sentence) {
            self.steps.output.result(&Text::line(sentence));
        }
        let closing = closing(sent);
        self.steps.output.result(&Text::line(&closing));
        if let Some(mut seen) = self.seen.take() {
            let sent_per_round = seen.over(&sent.report);
            let mut effective = P::in_effect(&sent.report.sender);
            effective.push(("time-limit", sent.protocol.basis().time_limit.to_string()));
            let receivers = sent.protocol.receivers().into_iter().map(on_page).collect();
            let end = End { closing: Some(closing), effective, receivers, summary: fields };
            seen.write(sent_per_round, end, &how, &self.steps.output);
        }
        how
    }
}

/// Returns the summary for programs.
fn summary<P: SendProtocol>(sent: &Sent<P>, verdict: &Verdict) -> Value {
    let (report, files) = (&sent.report, &sent.files);
    let receivers = sent.protocol.receivers();
    let octets = files.octets();
    let receivers = receivers.iter().map(|one| {
        json!({
            "receiver": one.name, "state": one.state, "complete": one.complete.is_some(),
            "time_s": one.complete.map(Time::as_secs_f64),
        })
    });
    let mut fields = json!({
        "product": files.name,
        "outcome": verdict.word,
        "error": report.error.as_ref().map(ToString::to_string),
        "exit_code": Exit::of(verdict.outcome) as u8,
        "size_bytes": octets,
        "time_s": report.duration.as_secs_f64(),
        "data_time_s": report.data_duration.as_secs_f64(),
        "wire_bytes": report.traffic.sent.octets,
        "wire_bytes_over_size": times_the_size(report.traffic.sent.octets, octets),
        "datagrams": report.traffic.sent.datagrams,
        "heard_bytes": report.traffic.heard,
        "malformed_datagrams": report.malformed,
        "changed": changed_fields(&report.changed),
        "compressed": files.compressed.as_ref().map(compressed_fields),
        "seal": sealing::summary(report.seal.as_ref()),
        "receivers_known": !sent.protocol.receivers().is_empty(),
        "receivers": receivers.collect::<Vec<Value>>(),
    });
    if let (Value::Object(fields), Value::Object(own)) = (&mut fields, sent.protocol.figures(&report.sender))
    {
        fields.extend(own);
    }
    fields
}

/// Returns the result of the transfer in a sentence: the last line.
fn closing<P: SendProtocol>(sent: &Sent<P>) -> String {
    let (report, octets) = (&sent.report, sent.files.octets());
    let rounds = u64::from(report.sender.progress().round);
    let delivered = sent.protocol.receivers().iter().any(|one| one.complete.is_some());
    // If no receiver acknowledges everything, only the time of data is known.
    let over = if delivered { report.duration } else { report.data_duration };
    let compressed =
        sent.files.compressed.as_ref().map(|brought| format!("; {}", compressed_sentence(brought)));
    format!(
        "{} in {} ({} of data), {rounds} {}, {} on the wire, {}, {}; {}{}",
        size(octets),
        report.duration,
        report.data_duration,
        words::<P>().round.after(rounds),
        size(report.traffic.sent.octets),
        overhead(report.traffic.sent.octets, octets),
        rate(begun(sent), over),
        sealing::closing(report.seal.as_ref()),
        compressed.unwrap_or_default(),
    )
}

/// Returns the octets of the files that have left at least once.
fn begun<P: SendProtocol>(sent: &Sent<P>) -> u64 {
    let octets = sent.files.octets();
    let RoundProgress { round, sent, segments } = sent.report.sender.progress();
    match round {
        0 => 0,
        1 if sent < segments => part_of(octets, sent.into(), segments.into()),
        _ => octets,
    }
}

/// Returns a receiver as the page shows it.
fn on_page(one: ReceiverState) -> transfer::Receiver {
    transfer::Receiver {
        name: one.name,
        state: one.state,
        complete: one.complete.is_some(),
        time_s: one.complete.map(Time::as_secs_f64),
        ..transfer::Receiver::default()
    }
}

/// Returns a table of the named receivers, or `None` without any. Of many it has those that came last, or not at all.
fn table(receivers: &[ReceiverState]) -> Option<Text> {
    if receivers.is_empty() {
        return None;
    }
    let mut table = Table::new(&[("receiver", Align::Left), ("state", Align::Left), ("time", Align::Right)]);
    let last = |one: &&ReceiverState| Reverse(one.complete.unwrap_or(Time::NEVER));
    let (shown, more) = few(receivers.iter(), MOST_ROWS, last);
    for one in shown {
        let time = one.complete.map_or_else(|| "-".into(), |at| at.since(Time::ZERO).to_string());
        table.row([one.name.clone(), one.state.clone(), time]);
    }
    Some(table.render().then(Text::lines(left_out(more))).blank())
}

/// Returns a line for each receiver, as far as there is room for `most`: first for those that lack something.
fn receiver_lines(receivers: &[ReceiverState], most: usize) -> Vec<String> {
    let line = |one: &ReceiverState| format!("  {:<24} {}", one.name, one.state);
    lines(receivers.iter(), most, |one| one.complete.is_some(), line)
}
