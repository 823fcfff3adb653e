//! `farcast receive`.

use std::process::Command;

use farcast_core::{Bitmap, Run, Span, Time};
use farcast_files::{Durability, Options, Overwrite};
use farcast_mftp::{ClientId, Receiver, ReceiverConfig, ReceiverEvent, ReceiverOutcome};
use farcast_net::{FileInfo, ReceiveNotice, ReceiveOptions, ReceiveReport};
use serde_json::{Value, json};

use crate::args::ReceiveArgs;
use crate::output::Output;
use crate::progress::{Progress, percent, rate, size, time_left};
use crate::send::socket_options;
use crate::{Exit, Failure, outputs};

pub(crate) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    let why = "where the sender names the files and could replace it";
    outputs::log_outside(args.output.log.as_deref(), &args.into, why)?;
    let output = Output::new(&args.output)?;
    let config = configure(args)?;
    let options = ReceiveOptions {
        from: args.from,
        source: args.source,
        into: args.into.clone(),
        files: Options {
            durability: if args.no_sync { Durability::NoSync } else { Durability::Sync },
            overwrite: if args.keep_existing { Overwrite::Keep } else { Overwrite::Overwrite },
            ..Options::default()
        },
        socket: socket_options(&args.socket),
        once: args.once,
        discard: args.discard,
        simulate_loss: args.simulate_loss,
        seed: config.seed,
    };
    let stop = crate::interrupt::interrupted()?;
    let mut view =
        View { output, progress: None, args, files: Vec::new(), joined: None, next_report: Time::ZERO };
    let mut observer =
        |now: Time, receiver: &Receiver, notice: &ReceiveNotice<'_>| view.observe(now, receiver, notice);
    let last = farcast_net::receive(&options, config, &stop, &mut observer).map_err(Failure::of_net)?;
    match last {
        Some(report) if args.once && !report.is_complete() => {
            Err(Failure { sentence: outcome(&report), exit: Exit::Failed })
        }
        None if args.once => {
            Err(Failure { sentence: "stopped before anything came".into(), exit: Exit::Failed })
        }
        _ => Ok(Exit::Done),
    }
}

fn configure(args: &ReceiveArgs) -> Result<ReceiverConfig, Failure> {
    if let Some(name) = &args.name
        && !(1..=64).contains(&name.len())
    {
        return Err(Failure::usage("--name must have 1 to 64 bytes"));
    }
    // Without a name, the id is our address as the group's network sees it; 0.0.0.0 where that is not known.
    let own = own_address(args);
    let mut config = ReceiverConfig::new(ClientId::from_address(own), args.from.port());
    if let Some(name) = &args.name {
        config = config.named(name);
    }
    config.patience = args.patience;
    config.seed = args.seed.unwrap_or(u64::from(config.id.0));
    Ok(config)
}

fn own_address(args: &ReceiveArgs) -> std::net::IpAddr {
    farcast_net::own_address(args.from, &socket_options(&args.socket)).unwrap_or(args.from.ip())
}

/// Between reports of progress for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// What the person at the receiver sees.
struct View<'a> {
    output: Output,
    progress: Option<Progress>,
    args: &'a ReceiveArgs,
    files: Vec<FileInfo>,
    joined: Option<Joined>,
    next_report: Time,
}

struct Joined {
    at: Time,
    held: u32,
    dtu_size: u64,
    name: String,
    sender: String,
}

impl View<'_> {
    fn observe(&mut self, now: Time, receiver: &Receiver, notice: &ReceiveNotice<'_>) {
        match notice {
            ReceiveNotice::Listening { address } => {
                let id = self.args.name.clone().unwrap_or_else(|| receiver.id().to_string());
                self.say(&format!("{id} listens on {address}, files go into {}", self.args.into.display()));
                self.output.event("listening", json!({ "address": address.to_string(), "receiver": id }));
            }
            ReceiveNotice::Joined { offer, held } => {
                let (total, geometry) = (offer.geometry.segments(), offer.geometry);
                let had = match held {
                    0 => String::new(),
                    held => format!(", {} is here already", percent(u64::from(*held), u64::from(total))),
                };
                self.say(&format!(
                    "receiving {} ({}) from {}{had}",
                    offer.name,
                    size(geometry.size()),
                    offer.server
                ));
                self.output.event(
                    "joined",
                    json!({
                        "product": offer.name, "sender": offer.server.to_string(),
                        "size_bytes": geometry.size(), "segments": total, "segments_held": held,
                    }),
                );
                self.files.clear();
                self.joined = Some(Joined {
                    at: now,
                    held: *held,
                    dtu_size: geometry.dtu_size().into(),
                    name: offer.name.clone(),
                    sender: offer.server.to_string(),
                });
            }
            ReceiveNotice::Files(files) => {
                self.files = files.to_vec();
                let list: Vec<Value> =
                    files.iter().map(|file| json!({ "path": file.path, "size_bytes": file.size })).collect();
                self.output.event("files", json!({ "files": list }));
            }
            ReceiveNotice::FileDone { path } => {
                self.say(&format!("complete: {path}"));
                self.output.event("file", json!({ "path": path }));
            }
            ReceiveNotice::Event(event) => self.event(event),
            ReceiveNotice::Tick => self.tick(now, receiver),
            ReceiveNotice::Ended(report) => self.ended(report),
        }
    }

    fn say(&mut self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(&self.output, text),
            None => self.output.line(text),
        }
    }

    fn event(&mut self, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::Pass { pass } => self.output.event("pass", json!({ "pass": pass })),
            ReceiverEvent::Accepted => self.output.event("accepted", json!({})),
            ReceiverEvent::Busy { server } => {
                self.say(&format!(
                    "passed over: an announcement from {server}, while this transmission runs"
                ));
                self.output.event("busy", json!({ "sender": server.to_string() }));
            }
            ReceiverEvent::NotInvited { server } => {
                let id = self.args.name.clone().unwrap_or_else(|| own_address(self.args).to_string());
                self.say(&format!(
                    "passed over: an announcement from {server} for a list of receivers without {id}; if it should be \
                     there, compare --name here with --receivers at the sender"
                ));
                self.output.event("not_invited", json!({ "sender": server.to_string(), "receiver": id }));
            }
            ReceiverEvent::JoinGroup(group) | ReceiverEvent::LeaveGroup(group) => {
                self.output.event("group", json!({ "group": group.to_string() }));
            }
            _ => {}
        }
    }

    fn tick(&mut self, now: Time, receiver: &Receiver) {
        let (Some(joined), Some(have)) = (&self.joined, receiver.have()) else { return };
        let total = u64::from(have.len());
        if total == 0 {
            return;
        }
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        let elapsed = now.since(joined.at);
        let count = u64::from(have.count());
        let fresh = count.saturating_sub(joined.held.into());
        let stats = receiver.stats();
        let heard = stats.dtus + stats.naked_dtus;
        let message = format!(
            "{}, {}, loss {}{}",
            joined.name,
            rate(fresh * joined.dtu_size, elapsed),
            percent(stats.naked_dtus, heard),
            time_left(fresh, total - (count - fresh), elapsed)
        );
        let lines: Vec<String> = if self.files.len() > 1 {
            let open = self.files.iter().map(|file| (file, part(file, have, joined.dtu_size)));
            open.filter(|(_, part)| *part < 1.0)
                .map(|(file, part)| {
                    format!("  {:<40} {:>5.1} % of {}", file.path, part * 100.0, size(file.size))
                })
                .collect()
        } else {
            Vec::new()
        };
        progress.update(&self.output, now, ("receiving", &message), (count, total), &lines);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            self.output.event(
                "progress",
                json!({
                    "elapsed_s": elapsed.as_secs_f64(),
                    "segments_have": count,
                    "segments": total,
                    "duplicates": stats.duplicates,
                    "naks": stats.naks,
                    "naked_dtus": stats.naked_dtus,
                }),
            );
        }
    }

    fn ended(&mut self, report: &ReceiveReport) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let total = report.offer.geometry.segments();
        let rejects: Vec<Value> = report
            .rejects
            .iter()
            .map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n }))
            .collect();
        self.output.event(
            "summary",
            json!({
                "product": report.offer.name,
                "sender": report.offer.server.to_string(),
                "complete": report.is_complete(),
                "confirmed": matches!(report.outcome, ReceiverOutcome::Complete { confirmed: true, .. }),
                "outcome": outcome(report),
                "size_bytes": report.offer.geometry.size(),
                "time_s": report.duration.as_secs_f64(),
                "segments": total,
                "segments_have": report.have,
                "segments_held_before": report.held,
                "dtus_received": report.stats.dtus,
                "parity_received": report.stats.parity,
                "duplicates": report.stats.duplicates,
                "naks": report.stats.naks,
                "naked_dtus": report.stats.naked_dtus,
                "malformed_datagrams": report.malformed,
            "unsent_answers": report.unsent,
                "rejected_messages": rejects,
            }),
        );
        self.output.line(&outcome(report));
        if report.is_complete() {
            self.on_complete();
        }
        self.joined = None;
    }

    /// Runs the user's command, and says so if it fails; the product stays complete.
    fn on_complete(&mut self) {
        let (Some(command), Some(joined)) = (&self.args.on_complete, &self.joined) else { return };
        let status = Command::new("sh")
            .args(["-c", command])
            .env("FARCAST_DIR", &self.args.into)
            .env("FARCAST_PRODUCT", &joined.name)
            .env("FARCAST_SENDER", &joined.sender)
            .status();
        let said = match status {
            Ok(status) if status.success() => {
                return self.output.event("on_complete", json!({ "exit_code": 0 }));
            }
            Ok(status) => format!("--on-complete ended with {status}"),
            Err(error) => format!("--on-complete could not be run: {error}"),
        };
        crate::output::error(&said);
        self.output.event("on_complete", json!({ "error": said }));
    }
}

/// How much of `file` is there, from 0 to 1.
fn part(file: &FileInfo, have: &Bitmap, dtu_size: u64) -> f64 {
    let (first, end) = (file.start / dtu_size, (file.start + file.size).div_ceil(dtu_size));
    let run = Run::new(first as u32, (end - first) as u32);
    run.map_or(1.0, |run| f64::from(have.count_in(run)) / f64::from(run.count()))
}

/// How it went, in one sentence.
fn outcome(report: &ReceiveReport) -> String {
    let name = &report.offer.name;
    if let Some(error) = &report.error {
        return error.to_string();
    }
    let have = percent(u64::from(report.have), u64::from(report.offer.geometry.segments()));
    match &report.outcome {
        ReceiverOutcome::Complete { confirmed, .. } => {
            let bytes = report.offer.geometry.size();
            let unknown = if *confirmed { "" } else { " (the sender did not confirm that it knows)" };
            format!(
                "{name} complete and verified: {} in {}, {}{unknown}",
                size(bytes),
                report.duration,
                rate(bytes, report.duration)
            )
        }
        ReceiverOutcome::Aborted { text: Some(text), .. } => {
            format!("{name}: the sender ended it: {text} ({have} is here and kept)")
        }
        ReceiverOutcome::Aborted { reason, .. } => {
            format!("{name}: the sender ended it with reason {reason} ({have} is here and kept)")
        }
        ReceiverOutcome::Stopped => format!("{name}: stopped; {have} is here and kept for the next try"),
        ReceiverOutcome::NotAccepted => {
            format!(
                "{name}: the sender does not confirm our registration; check the way back to {}",
                report.offer.server
            )
        }
        ReceiverOutcome::SenderLost => {
            format!("{name}: the sender fell silent; {have} is here and kept for its return")
        }
        ReceiverOutcome::Incomplete => {
            format!("{name}: the sender ended it with {have} here; it is kept for the next try")
        }
    }
}
