//! `farcast receive --one-way`.

use farcast_core::Time;
use farcast_delivery::{Offer, Outcome};
use farcast_files::shown_name;
use farcast_net::{NetError, ReceiveOptions};
use farcast_oneway::{Codec, OneWay, Receiver, ReceiverConfig, ReceiverEvent};
use serde_json::{Value, json};

use super::{REPORT_EVERY, nothing};
use crate::args::ReceiveArgs;
use crate::hook::Hook;
use crate::output::Output;
use crate::progress::{Progress, percent, rate, size, time_left};
use crate::{Exit, Failure};

type ReceiveNotice<'a> = farcast_net::ReceiveNotice<'a, ReceiverEvent>;
type ReceiveReport = farcast_net::ReceiveReport<ReceiverEvent>;

pub(super) fn run(
    args: &ReceiveArgs,
    options: &ReceiveOptions,
    stop: &std::sync::atomic::AtomicBool,
    output: Output,
) -> Result<Exit, Failure> {
    let config = ReceiverConfig { silence: args.patience, ..ReceiverConfig::default() };
    let hook = args.on_complete.as_deref().map(Hook::new);
    let mut view =
        View { args, output, progress: None, joined: None, hook, hook_failed: false, next_report: Time::ZERO };
    let mut observer =
        |now: Time, receiver: &Receiver, notice: &ReceiveNotice<'_>| view.observe(now, receiver, notice);
    let make = |_| Ok::<_, NetError>(Receiver::new(config));
    let last = farcast_net::receive::<OneWay, _>(options, &Codec, make, stop, &mut observer);
    view.tell_of_hook(true);
    match last.map_err(Failure::of_net)? {
        Some(report) if args.once && !report.is_complete() => {
            Err(Failure { sentence: outcome(&report), exit: Exit::Failed })
        }
        None => nothing(args),
        // It has been said why.
        Some(_) if args.once && view.hook_failed => Ok(Exit::Failed),
        _ => Ok(Exit::Done),
    }
}

/// What the person at the receiver sees.
struct View<'a> {
    args: &'a ReceiveArgs,
    output: Output,
    progress: Option<Progress>,
    /// What was joined last, when, and how many segments were there then.
    joined: Option<(Time, Offer, u32)>,
    hook: Option<Hook>,
    hook_failed: bool,
    next_report: Time,
}

impl View<'_> {
    fn observe(&mut self, now: Time, receiver: &Receiver, notice: &ReceiveNotice<'_>) {
        self.tell_of_hook(false);
        match notice {
            ReceiveNotice::Listening { address } => {
                self.say(&format!(
                    "listening one way on {address}, files go into {}",
                    self.args.into.display()
                ));
                self.output.event("listening", json!({ "address": address.to_string() }));
            }
            ReceiveNotice::Waiting { why } => super::waiting(&mut self.output, why),
            ReceiveNotice::Rejoined => self.say("listening again"),
            ReceiveNotice::NotAccepted { source } => {
                self.say(&format!("passed over: what comes from {source}, which is not in --accept"));
                self.output.event("not_accepted", json!({ "source": source.to_string() }));
            }
            ReceiveNotice::Joined { offer, held } => self.join(now, offer, *held),
            ReceiveNotice::FileDone { path, .. } => {
                self.say(&format!("complete: {path}"));
                self.output.event("file", json!({ "path": path }));
            }
            ReceiveNotice::Damaged { path, segments, .. } => {
                let what = path.unwrap_or("the list of files");
                self.say(&format!("arrived damaged: {what}; {segments} segments have to come again"));
                self.output.event("damaged", json!({ "path": path, "segments": segments }));
            }
            ReceiveNotice::NoRoom { error, wait } => {
                self.say(&format!("the disk is full, waiting up to {wait} for room: {error}"));
                self.output.event("no_room", json!({ "error": error.to_string() }));
            }
            ReceiveNotice::Room => self.say("there is room on the disk again"),
            ReceiveNotice::Compared { .. } | ReceiveNotice::Files { .. } | ReceiveNotice::Event(_) => {}
            ReceiveNotice::Tick => self.tick(now, receiver),
            ReceiveNotice::Ended(report) => self.ended(report),
        }
    }

    fn join(&mut self, now: Time, offer: &Offer, held: u32) {
        let total = offer.geometry.segments();
        let had = match held {
            0 => String::new(),
            held => format!(", {} is here already", percent(u64::from(held), u64::from(total))),
        };
        let (name, octets) = (shown_name(&offer.name), offer.geometry.size());
        self.say(&format!("receiving {name} ({}) from {}{had}", size(octets), offer.sender));
        self.output.event(
            "joined",
            json!({
                "product": name, "sender": offer.sender.to_string(), "size_bytes": octets, "segments": total,
                "segments_held": held,
            }),
        );
        self.joined = Some((now, offer.clone(), held));
    }

    fn say(&self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(&self.output, text),
            None => self.output.line(text),
        }
    }

    fn tick(&mut self, now: Time, receiver: &Receiver) {
        let Some((at, offer, held)) = &self.joined else { return };
        let Some((there, total)) = receiver.symbols(offer.object) else { return };
        let (elapsed, fresh) = (now.since(*at), there.saturating_sub(*held));
        let message = format!(
            "{}, {}{}",
            shown_name(&offer.name),
            rate(u64::from(fresh) * u64::from(offer.geometry.segment_size()), elapsed),
            time_left(fresh.into(), u64::from(total.saturating_sub(*held)), elapsed)
        );
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        let counts = (u64::from(there.min(total)), u64::from(total));
        progress.update(&self.output, now, ("receiving", &message), counts, &[]);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            let elapsed = elapsed.as_secs_f64();
            self.output
                .event("progress", json!({ "elapsed_s": elapsed, "symbols_have": there, "symbols": total }));
        }
    }

    fn ended(&mut self, report: &ReceiveReport) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let rejects = report.rejects.iter();
        let rejects: Vec<Value> =
            rejects.map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n })).collect();
        let (geometry, received) = (&report.offer.geometry, &report.received);
        let symbols = received.segments + received.parity;
        self.output.event(
            "summary",
            json!({
                "product": shown_name(&report.offer.name),
                "sender": report.offer.sender.to_string(),
                "complete": report.is_complete(),
                "outcome": outcome(report),
                "size_bytes": geometry.size(),
                "time_s": report.duration.as_secs_f64(),
                "segments": geometry.segments(),
                "segments_have": report.have,
                "segments_held_before": report.held,
                "kept": report.kept,
                "segments_received": received.segments,
                "parity_received": received.parity,
                "surplus": received.duplicates,
                "needed_over_size": (symbols * u64::from(geometry.segment_size())) as f64 / geometry.size() as f64,
                "malformed_datagrams": report.malformed,
                "datagrams_not_accepted": report.not_accepted,
                "datagrams_misdirected": report.misdirected,
                "symbols_dropped_unstored": report.unstored,
                "rejected_messages": rejects,
            }),
        );
        self.output.line(&outcome(report));
        if report.is_complete()
            && let Some(hook) = &mut self.hook
        {
            hook.run([
                ("FARCAST_DIR", self.args.into.clone().into()),
                ("FARCAST_PRODUCT", shown_name(&report.offer.name).into()),
                ("FARCAST_SENDER", report.offer.sender.to_string().into()),
            ]);
        }
        self.joined = None;
    }

    /// Says how the user's command went, where it has ended; waits for that if `all`.
    fn tell_of_hook(&mut self, all: bool) {
        while let Some(ended) = self.hook.as_mut().and_then(|hook| if all { hook.wait() } else { hook.ended() }) {
            let said = match ended {
                Ok(status) if status.success() => {
                    self.output.event("on_complete", json!({ "exit_code": 0 }));
                    continue;
                }
                Ok(status) => format!("--on-complete ended with {status}"),
                Err(error) => format!("--on-complete could not be run: {error}"),
            };
            self.hook_failed = true;
            crate::output::error(&said);
            self.output.event("on_complete", json!({ "error": said }));
        }
    }
}

/// How it went, in one sentence.
fn outcome(report: &ReceiveReport) -> String {
    let name = shown_name(&report.offer.name);
    if let Some(error) = &report.error {
        return error.to_string();
    }
    let (bytes, geometry) = (report.offer.geometry.size(), &report.offer.geometry);
    match report.outcome {
        Outcome::Complete(_) => {
            let fresh = report.received.segments + report.received.parity;
            let fresh = bytes.min(fresh * u64::from(geometry.segment_size()));
            format!(
                "{name} complete and verified: {} in {}, {}",
                size(bytes),
                report.duration,
                rate(fresh, report.duration)
            )
        }
        _ => {
            let why = if report.outcome == Outcome::Lost { "the sender has ended or is silent" } else { "stopped" };
            let have = percent(u64::from(report.have), u64::from(geometry.segments()));
            let kept = if report.kept {
                format!("{have} is here and kept, with parity, for the next round")
            } else {
                "nothing of it is kept".into()
            };
            format!("{name}: {why}; {kept}")
        }
    }
}
