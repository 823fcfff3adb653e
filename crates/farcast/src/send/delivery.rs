//! Sending by a protocol that has no view of its own: progress, events, and the messages at the end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::Engine;
use farcast_core::{Span, Time};
use farcast_delivery::{Phase, Protocol, RoundProgress, SenderEngine, Words};
use farcast_files::{Compressed, Outgoing};
use farcast_net::{SendOptions, SendSeal};
use farcast_report::transfer;
use serde_json::{Value, json};

use crate::args::{ChangingArg, SendArgs};
use crate::output::Output;
use crate::progress::{MOST_LINES, Progress, overhead, part_of, rate, size, time_left, times_the_size};
use crate::protocols::Speaks;
use crate::report::{End, Sending};
use crate::sealing;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure};

use super::narrow::{self, Narrow};
use super::{changed, changed_fields, changed_files, compress, socket_options};

/// Interval between progress events for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

pub(super) type Event<P> = <<P as Protocol>::Sender as Engine>::Event;
pub(super) type Report<P> = farcast_net::SendReport<<P as Protocol>::Sender>;
type Notice<'a, P> = farcast_net::SendNotice<'a, Event<P>>;

/// Protocol-specific parts of the messages about a transfer.
pub(super) trait Face {
    /// Protocol of the transfer.
    type Protocol: Protocol;

    /// Option that sets the length of segments.
    const SEGMENT_SIZE: &str = "--segment-size";

    /// Returns a message about an event, or `None` if it needs none.
    fn told(&mut self, now: Time, event: &Event<Self::Protocol>) -> Option<Told>;

    /// Returns the known receivers with their states.
    fn receivers(&self) -> Vec<Receiver>;

    /// Returns the verdict for the engine's last event.
    fn verdict(&self, end: &Event<Self::Protocol>) -> Verdict;

    /// Returns the figures that only this protocol reports in the end.
    fn figures(&self, sender: &<Self::Protocol as Protocol>::Sender) -> Value;

    /// Returns the values that came into effect, by the names of their options.
    fn settings(&self, sender: &<Self::Protocol as Protocol>::Sender) -> Vec<(&'static str, String)>;
}

/// Message about an event, in words and for programs.
pub(super) struct Told {
    pub(super) line: Option<String>,
    pub(super) kind: &'static str,
    pub(super) fields: Value,
}

/// Known receiver.
pub(super) struct Receiver {
    pub(super) label: String,
    pub(super) state: &'static str,
    /// Time at which it had everything.
    pub(super) complete: Option<Time>,
}

/// Result of a transfer.
pub(super) struct Verdict {
    /// Word for programs.
    pub(super) word: &'static str,
    pub(super) exit: Exit,
    /// Sentence for people. That of a failure is its error.
    pub(super) sentence: Option<String>,
}

/// Objects to send, with the settings of their transfer.
pub(super) struct Delivery {
    pub(super) to: SocketAddr,
    /// Name of the product.
    pub(super) name: String,
    pub(super) objects: Vec<Outgoing>,
    /// Result of compression, if compression was asked for.
    pub(super) compressed: Option<Compressed>,
    /// Time by which datagrams that leave together may be ahead of the clock.
    pub(super) burst: Span,
    pub(super) time_limit: Span,
    /// Seal of a sealed transfer.
    pub(super) seal: Option<SendSeal>,
}

/// Sends a delivery by the engine that `make` makes for our address. Returns the result.
pub(super) fn deliver<F: Face, E: std::error::Error + Send + Sync + 'static>(
    args: &SendArgs,
    delivery: Delivery,
    (codec, face): (&<F::Protocol as Protocol>::Codec, &mut F),
    make: impl FnOnce(SocketAddr) -> Result<<F::Protocol as Protocol>::Sender, E>,
    stop: &AtomicBool,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let Delivery { to, name, objects, compressed, burst, time_limit, mut seal } = delivery;
    let octets: u64 = objects.iter().map(|object| object.manifest().content_len()).sum();
    let mut view = View {
        output,
        progress: None,
        face,
        seen: Sending::new(&args.page, F::Protocol::WORDS, (&name, octets), to),
        began: None,
        name,
        octets,
        compressed,
        next_report: Time::ZERO,
        end: Time::ZERO + time_limit,
        late: false,
        args,
    };
    let options = SendOptions {
        to,
        socket: socket_options(&args.socket),
        burst,
        changing: args.changing.of(),
        // Not all receivers can tell data that differs from the announced data.
        look_again: true,
    };
    let start = AtomicBool::new(false);
    let mut observer =
        |now: Time, sender: &<F::Protocol as Protocol>::Sender, notice: &Notice<'_, F::Protocol>| {
            view.observe(now, sender, notice);
            if view.late {
                stop.store(true, Ordering::Relaxed);
            }
        };
    let report = farcast_net::send::<F::Protocol, E>(
        objects,
        (codec, seal.as_mut()),
        &options,
        make,
        (&start, stop),
        &mut observer,
    );
    match report {
        Ok(report) if args.changing == ChangingArg::Again && !report.changed.is_empty() => {
            Ok(view.again(&report))
        }
        Ok(report) => view.close(&report),
        Err(error) => view.failed(Failure::of_net(error)),
    }
}

/// Output for the user of a sender.
struct View<'a, F: Face> {
    output: &'a mut Output,
    progress: Option<Progress>,
    face: &'a mut F,
    /// Record for a page, if a page is asked for.
    seen: Option<Sending>,
    began: Option<Time>,
    name: String,
    octets: u64,
    compressed: Option<Compressed>,
    next_report: Time,
    /// Time at which `--time-limit` is over.
    end: Time,
    late: bool,
    args: &'a SendArgs,
}

impl<F: Face> View<'_, F> {
    const WORDS: Words = <F::Protocol as Protocol>::WORDS;

    fn observe(
        &mut self,
        now: Time,
        sender: &<F::Protocol as Protocol>::Sender,
        notice: &Notice<'_, F::Protocol>,
    ) {
        if let Some(seen) = &mut self.seen {
            seen.observe::<<F::Protocol as Protocol>::Sender>(now, notice);
        }
        match notice {
            farcast_net::SendNotice::Event(event) => {
                if self.began.is_none() && sender.phase() == Phase::Sending {
                    self.began = Some(now);
                }
                if let Some(told) = self.face.told(now, event) {
                    self.tell(told);
                }
            }
            farcast_net::SendNotice::Tick(_) => {
                self.late |= now >= self.end;
                self.tick(now, sender);
            }
            farcast_net::SendNotice::Waiting { why } => self.tell(Told {
                line: Some(format!("waiting: {why}")),
                kind: "waiting",
                fields: json!({ "reason": why.to_string() }),
            }),
            farcast_net::SendNotice::Back => self.tell(Told {
                line: Some("going on: the way out is back".into()),
                kind: "back",
                fields: json!({}),
            }),
            farcast_net::SendNotice::Moved { address } => self.tell(Told {
                line: Some(format!("our address has changed: sending from {address} from now on")),
                kind: "moved",
                fields: json!({ "address": address.to_string() }),
            }),
            farcast_net::SendNotice::Revoked { name } => self.tell(Told {
                line: Some(format!(
                    "{name} is trusted no more: it can open nothing that is sent from now on"
                )),
                kind: "revoked",
                fields: json!({ "receiver": name }),
            }),
            farcast_net::SendNotice::Changed { file, name } => {
                let (line, fields) = changed(self.args, file, name);
                self.tell(Told { line: Some(line), kind: "changed", fields });
            }
            farcast_net::SendNotice::Refused { why } => self.tell(Told {
                line: Some(why.to_string()),
                kind: "blocked",
                fields: json!({ "reason": why.to_string() }),
            }),
            farcast_net::SendNotice::Fragmenting { packet, segment } => self.tell(Told {
                line: Some(narrow::fragmenting(*packet, *segment, F::SEGMENT_SIZE)),
                kind: "fragmenting",
                fields: narrow::fits(*segment),
            }),
            farcast_net::SendNotice::Narrow { receiver, datagram, limit, segment } => {
                let narrow = Narrow { receiver: *receiver, datagram: *datagram, limit: *limit };
                self.tell(Told {
                    line: Some(narrow.sentence(Some((*segment, F::SEGMENT_SIZE)))),
                    kind: "narrow",
                    fields: narrow.fields(Some(*segment)),
                });
            }
        }
    }

    fn tell(&mut self, told: Told) {
        if let Some(line) = told.line {
            match &self.progress {
                Some(progress) => progress.line(self.output, &line),
                None => self.output.line(&line),
            }
        }
        self.output.event(told.kind, told.fields);
    }

    fn tick(&mut self, now: Time, sender: &<F::Protocol as Protocol>::Sender) {
        let progress = self.progress.get_or_insert_with(|| Progress::new(self.output));
        let RoundProgress { round, sent, segments } = sender.progress();
        // Repairs in this round are added to the segments that were to be sent.
        let (sent, total) = (u64::from(sent), u64::from(segments.max(sent)));
        let elapsed = self.began.map_or(Span::ZERO, |began| now.since(began));
        let round_word = Self::WORDS.round.one;
        let (prefix, message, done) = match sender.phase() {
            Phase::Sending => {
                let mut message = format!("{sent} of {total} {}", Self::WORDS.segment.after(total));
                if round == 1 {
                    message += &time_left(sent, total, elapsed);
                }
                (format!("{round_word} {round}"), message, (sent, total))
            }
            Phase::Waiting => (format!("{round_word} {round}"), "waiting for answers".into(), (1, 1)),
            Phase::Completing | Phase::Ended => ("closing".into(), String::new(), (1, 1)),
            _ => ("announcing".into(), String::new(), (0, 1)),
        };
        let shown = progress.shows_lines();
        let lines = if shown { receiver_lines(&self.face.receivers()) } else { Vec::new() };
        progress.update(self.output, now, (&prefix, &message), done, &lines);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            let fields = json!({
                "phase": sender.phase().word(), "elapsed_s": elapsed.as_secs_f64(),
                "round": round, "segments_sent_in_round": sent, "segments_in_round": total,
            });
            self.output.event("progress", fields);
        }
    }

    fn close(mut self, report: &Report<F::Protocol>) -> Result<Exit, Failure> {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let mut verdict = self.face.verdict(&report.end);
        if let Some(error) = &report.error {
            verdict = Verdict { word: "aborted", exit: Exit::Failed, sentence: Some(error.to_string()) };
        } else if self.late {
            let sentence = Some("the transfer took longer than --time-limit".into());
            verdict = Verdict { word: "time_limit", exit: Exit::Failed, sentence };
        } else if let Some(changed) = self.spoiled(report, &verdict) {
            let sentence = Some(format!("{changed}: receivers do not have it as it was; send it again"));
            verdict = Verdict { word: "changed", exit: Exit::Incomplete, sentence };
        }
        let fields = self.summary(report, &verdict);
        self.output.event("summary", fields.clone());
        if let Some(table) = self.table() {
            self.output.result(&table);
        }
        let Verdict { exit, sentence, .. } = verdict;
        let how = match sentence {
            Some(sentence) if exit != Exit::Done => Err(Failure { sentence, exit }),
            Some(sentence) => {
                self.output.result(&Text::line(&sentence));
                Ok(exit)
            }
            None => Ok(exit),
        };
        self.output.result(&Text::line(&self.closing(report)));
        if let Some(mut seen) = self.seen.take() {
            let sent_per_round = seen.over(report);
            let mut effective = self.face.settings(&report.sender);
            effective.push(("time-limit", self.end.since(Time::ZERO).to_string()));
            let closing = Some(self.closing(report));
            let end = End { closing, effective, receivers: self.receivers(), summary: fields };
            seen.write(sent_per_round, end, &how, self.output);
        }
        how
    }

    /// Returns in words the files that receivers may have got wrong. Receivers that are known to have everything have
    /// verified it.
    fn spoiled(&self, report: &Report<F::Protocol>, verdict: &Verdict) -> Option<String> {
        let acknowledged = verdict.exit == Exit::Done && !self.face.receivers().is_empty();
        // NORM and MDP stop sending a file that changes, and a receiver that lacks it never gets it.
        let takes_back = matches!(self.args.speaks(), Speaks::Norm | Speaks::Mdp);
        let all_lack = takes_back && verdict.exit == Exit::Incomplete;
        let sent: Vec<_> = report.changed.iter().filter(|file| all_lack || file.was_sent).cloned().collect();
        (!acknowledged && !sent.is_empty()).then(|| changed_files(&sent))
    }

    /// Reports that all is sent again, because files have changed.
    fn again(mut self, report: &Report<F::Protocol>) -> Exit {
        let line = format!("{}: all is sent again", changed_files(&report.changed));
        self.tell(Told {
            line: Some(line),
            kind: "again",
            fields: json!({ "changed": changed_fields(&report.changed) }),
        });
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        Exit::Again
    }

    /// Returns the failure of a transfer that could not go on and has no report.
    fn failed(mut self, failure: Failure) -> Result<Exit, Failure> {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let how = Err(failure);
        if let Some(seen) = self.seen.take() {
            let end = End { receivers: self.receivers(), ..End::default() };
            seen.write(Vec::new(), end, &how, self.output);
        }
        how
    }

    /// Returns the known receivers, for the page.
    fn receivers(&self) -> Vec<transfer::Receiver> {
        let one = |one: Receiver| transfer::Receiver {
            name: one.label,
            state: one.state.into(),
            complete: one.complete.is_some(),
            time_s: one.complete.map(Time::as_secs_f64),
            ..transfer::Receiver::default()
        };
        self.face.receivers().into_iter().map(one).collect()
    }

    fn summary(&self, report: &Report<F::Protocol>, verdict: &Verdict) -> Value {
        let receivers = self.face.receivers();
        let receivers = receivers.iter().map(|one| {
            json!({
                "receiver": one.label, "state": one.state, "complete": one.complete.is_some(),
                "time_s": one.complete.map(Time::as_secs_f64),
            })
        });
        let mut fields = json!({
            "product": self.name,
            "outcome": verdict.word,
            "error": report.error.as_ref().map(ToString::to_string),
            "exit_code": verdict.exit as u8,
            "size_bytes": self.octets,
            "time_s": report.duration.as_secs_f64(),
            "data_time_s": report.data_duration.as_secs_f64(),
            "wire_bytes": report.traffic.sent.octets,
            "wire_bytes_over_size": times_the_size(report.traffic.sent.octets, self.octets),
            "datagrams": report.traffic.sent.datagrams,
            "heard_bytes": report.traffic.heard,
            "malformed_datagrams": report.malformed,
            "changed": changed_fields(&report.changed),
            "compressed": self.compressed.as_ref().map(compress::fields),
            "seal": sealing::summary(report.seal.as_ref()),
            "receivers_known": !self.face.receivers().is_empty(),
            "receivers": receivers.collect::<Vec<Value>>(),
        });
        if let (Value::Object(fields), Value::Object(own)) = (&mut fields, self.face.figures(&report.sender))
        {
            fields.extend(own);
        }
        fields
    }

    /// Returns a table of the named receivers, or `None` without any.
    fn table(&self) -> Option<Text> {
        let receivers = self.face.receivers();
        if receivers.is_empty() {
            return None;
        }
        let mut table =
            Table::new(&[("receiver", Align::Left), ("state", Align::Left), ("time", Align::Right)]);
        for one in receivers {
            let time = one.complete.map_or_else(|| "-".into(), |at| at.since(Time::ZERO).to_string());
            table.row([one.label, one.state.into(), time]);
        }
        Some(table.render().blank())
    }

    /// Returns the octets of the files that have left at least once.
    fn begun(&self, report: &Report<F::Protocol>) -> u64 {
        let RoundProgress { round, sent, segments } = report.sender.progress();
        match round {
            0 => 0,
            1 if sent < segments => part_of(self.octets, sent.into(), segments.into()),
            _ => self.octets,
        }
    }

    /// Returns the result of the transfer in a sentence: the last line.
    fn closing(&self, report: &Report<F::Protocol>) -> String {
        let rounds = u64::from(report.sender.progress().round);
        let delivered = self.face.receivers().iter().any(|one| one.complete.is_some());
        // If no receiver acknowledges everything, only the time of data is known.
        let over = if delivered { report.duration } else { report.data_duration };
        let compressed = self.compressed.as_ref().map(|brought| format!("; {}", compress::sentence(brought)));
        format!(
            "{} in {} ({} of data), {rounds} {}, {} on the wire, {}, {}; {}{}",
            size(self.octets),
            report.duration,
            report.data_duration,
            Self::WORDS.round.after(rounds),
            size(report.traffic.sent.octets),
            overhead(report.traffic.sent.octets, self.octets),
            rate(self.begun(report), over),
            sealing::closing(report.seal.as_ref()),
            compressed.unwrap_or_default(),
        )
    }
}

/// Returns a line for each receiver, as far as there is room.
fn receiver_lines(receivers: &[Receiver]) -> Vec<String> {
    let line = |one: &Receiver| format!("  {:<24} {}", one.label, one.state);
    let mut lines: Vec<String> = receivers.iter().take(MOST_LINES).map(line).collect();
    let more = receivers.len().saturating_sub(MOST_LINES);
    if let (Some(last), true) = (lines.last_mut(), more > 0) {
        *last = format!("  and {} more", more + 1);
    }
    lines
}
