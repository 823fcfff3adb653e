//! `farcast receive`.
//!
//! What all protocols share stands here; each has a module of its own, which [`run`] chooses.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitStatus;
use std::sync::Arc;

use farcast_core::engine::Engine;
use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, Protocol, Received, ReceiverEngine};
use farcast_files::{Durability, Options, Overwrite, shown_name};
use farcast_net::{FileInfo, NetError, ReceiveOptions};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::args::ReceiveArgs;
use crate::hook::Hook;
use crate::host::{Family, Host};
use crate::output::Output;
use crate::progress::{Progress, percent, rate, size, time_left};
use crate::protocols::Speaks;
use crate::sealing::{self, Sealing};
use crate::send::socket_options;
use crate::{Exit, Failure, outputs, report};

mod files;
mod losses;
mod mdp;
mod mftp;
mod nack;
mod norm;
mod one_way;
mod pgm;
mod plain;
mod stream;

pub(crate) use mdp::MdpArgs;
pub(crate) use nack::NackArgs;
pub(crate) use one_way::OneWayArgs;
pub(crate) use pgm::PgmArgs;
pub(crate) use stream::StreamArgs;

use files::Files;
use losses::Losses;

type Engine_<F> = <<F as Face>::Protocol as Protocol>::Receiver;
type Event<F> = <Engine_<F> as Engine>::Event;
type Notice<'a, F> = farcast_net::ReceiveNotice<'a, Event<F>>;
type Report<F> = farcast_net::ReceiveReport<Event<F>>;

pub(crate) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    args.stream.check()?;
    if args.pgm.unicast_port.is_some() && !args.stream.stream {
        return Err(Failure::usage("--unicast-port goes with --stream"));
    }
    let why = "where the sender names the files and could replace it";
    let (log, page) = (args.output.log.as_deref(), args.page.report.as_deref());
    outputs::outside(&[("--log", log), ("--report", page)], &args.into, why)?;
    if page.is_some() && args.stream.stream {
        return Err(Failure::usage("--report draws how files are received, and --stream receives none"));
    }
    report::check(&args.output, &args.page, &[])?;
    match args.speaks() {
        Speaks::Mftp => mftp::run(args),
        Speaks::Norm if args.stream.stream => stream::by_norm(args),
        Speaks::Pgm if args.stream.stream => stream::by_pgm(args),
        Speaks::Norm => norm::run(args),
        Speaks::Mdp => mdp::run(args),
        Speaks::Pgm => pgm::run(args),
        Speaks::OneWay => one_way::run(args),
    }
}

/// What a protocol tells of a reception besides what all have in common.
trait Face {
    /// Which protocol.
    type Protocol: Protocol;

    /// Whether a transmission has several objects, all of which `--once` waits for.
    const SEVERAL: bool;

    /// An event of its own, if it is worth telling to the receiver that is called `own`.
    fn told(&self, event: &Event<Self>, own: &str) -> Option<Told>
    where
        Self: Sized;

    /// How it went, in one sentence.
    fn outcome(&self, report: &Report<Self>) -> String
    where
        Self: Sized;

    /// What only this protocol reports in the end.
    fn figures(&self, report: &Report<Self>, receiver: &Engine_<Self>) -> Value
    where
        Self: Sized;
}

/// An event, in words and for programs.
struct Told {
    line: Option<String>,
    kind: &'static str,
    fields: Value,
}

/// What the receiver of this id draws from: unless the user says, another seed for each id, and never the id itself.
/// Engines derive their draws from the seed and the id, which cancel out where they are the same: all receivers would
/// ask at the same instants.
fn seed_of(said: Option<u64>, id: u32) -> u64 {
    said.unwrap_or(!u64::from(id))
}

/// Receives by the engine that `make` makes, given the octets that the kernel keeps for us.
fn receive<F: Face, E: std::error::Error + Send + Sync + 'static>(
    args: &ReceiveArgs,
    (heard, plain, seed): (&Heard, bool, u64),
    (codec, face): (&<F::Protocol as Protocol>::Codec, F),
    make: impl FnOnce(usize) -> Result<Engine_<F>, E>,
) -> Result<Exit, Failure> {
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted()?;
    let socket = socket_options(&args.socket);
    let mut say = |missing: &NetError| waiting(&mut output, missing);
    let there = farcast_net::wait_to_listen(heard.from, heard.source, &socket, &stop, &mut say);
    if !there.map_err(Failure::of_net)? {
        return nothing(args);
    }
    let options = ReceiveOptions {
        from: heard.from,
        source: heard.source,
        accept: heard.accept.clone(),
        into: args.into.clone(),
        files: Options {
            durability: if args.no_sync { Durability::NoSync } else { Durability::Sync },
            overwrite: if args.keep_existing { Overwrite::Keep } else { Overwrite::Overwrite },
            hidden: args.hidden,
            quota: args.quota.quota(),
            vouched_only: true,
            enduring: heard.sealing.is_some(),
        },
        plain,
        socket,
        once: args.once,
        discard: args.discard,
        simulate_loss: args.simulate_loss,
        seed,
        wait_for_room: args.wait_for_room,
    };
    let page = report::Receiving::new(&args.page, F::Protocol::WORDS, heard.own_name(args), heard.from);
    let mut view = View {
        output,
        progress: None,
        args,
        face,
        seen: page,
        heard,
        joined: BTreeMap::new(),
        lacking: BTreeMap::new(),
        hook: args.on_complete.as_deref().map(Hook::new),
        next_report: Time::ZERO,
        hook_failed: false,
    };
    let mut observer =
        |now: Time, receiver: &Engine_<F>, notice: &Notice<'_, F>| view.observe(now, receiver, notice);
    let mut seal = heard
        .sealing
        .as_ref()
        .map(|sealing| {
            let scopes = sealing::scopes(args.speaks(), false, heard.from);
            sealing.receiver(scopes, args.speaks() != Speaks::OneWay && !args.nack.silent)
        })
        .transpose()?;
    let with = (codec, seal.as_mut());
    let last = farcast_net::receive::<F::Protocol, _>(&options, with, make, &stop, &mut observer);
    view.wait_for_hook();
    let page = view.seen.take();
    let how = view.over(last.map_err(Failure::of_net));
    if let Some(page) = page {
        page.finish(
            how.as_ref().map_or_else(|failure| failure.sentence.as_str(), |_| "The receiver has ended"),
        );
    }
    how
}

/// Whom a receiver hears, with names resolved.
struct Heard {
    from: SocketAddr,
    source: Option<IpAddr>,
    accept: Vec<IpNet>,
    sealing: Option<Sealing>,
}

impl Heard {
    fn of(args: &ReceiveArgs) -> Result<Self, Failure> {
        let sealing = Sealing::to_receive(args)?;
        // What is an address has no choice of its family.
        let wanted = args.source.as_ref().and_then(Host::address).map(Family::of);
        let from = args.from.resolve("--from", wanted)?;
        let family = Family::of(from.ip());
        let source = args.source.as_ref().map(|host| host.resolve("--source", Some(family))).transpose()?;
        let accept: Result<Vec<_>, _> = args.accept.iter().map(|one| one.resolve("--accept")).collect();
        Ok(Self { from, source, accept: accept?.concat(), sealing })
    }

    /// What this receiver is called, unless only its address says who it is.
    fn name(&self, args: &ReceiveArgs) -> Option<String> {
        args.name.clone().or_else(|| self.sealing.as_ref().map(|sealing| sealing.name().to_owned()))
    }

    /// What this receiver is called: its name or its address.
    fn own_name(&self, args: &ReceiveArgs) -> String {
        self.name(args).unwrap_or_else(|| own_address(args, self.from).to_string())
    }
}

/// It was stopped, and nothing has come.
fn nothing(args: &ReceiveArgs) -> Result<Exit, Failure> {
    if args.once {
        return Err(Failure { sentence: "stopped before anything came".into(), exit: Exit::Failed });
    }
    Ok(Exit::Done)
}

/// Says what is missing, and that it is waited for.
fn waiting(output: &mut Output, missing: &NetError) {
    output.line(&format!("waiting: {missing}"));
    output.event("waiting", json!({ "reason": missing.to_string() }));
}

fn own_address(args: &ReceiveArgs, from: SocketAddr) -> IpAddr {
    farcast_net::own_address(from, &socket_options(&args.socket)).unwrap_or(from.ip())
}

/// Between reports of progress for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// What the person at the receiver sees.
struct View<'a, F> {
    output: Output,
    progress: Option<Progress>,
    args: &'a ReceiveArgs,
    face: F,
    /// What is noted for a page, if there is to be one.
    seen: Option<report::Receiving>,
    /// Who is heard where.
    heard: &'a Heard,
    /// The objects that are under way.
    joined: BTreeMap<ObjectId, Joined>,
    /// The objects of several that have ended and are not complete, by their names, and why.
    lacking: BTreeMap<Vec<u8>, String>,
    hook: Option<Hook>,
    next_report: Time,
    /// Whether `--on-complete` failed.
    hook_failed: bool,
}

struct Joined {
    files: Files,
    at: Time,
    held: u32,
    dtu_size: u64,
    name: String,
    losses: Losses,
}

impl<F: Face> View<'_, F> {
    /// How the last product, and with it the command, ended.
    fn over(self, last: Result<Option<Report<F>>, Failure>) -> Result<Exit, Failure> {
        match last? {
            Some(report) if self.args.once && !report.is_complete() => {
                Err(Failure { sentence: self.face.outcome(&report), exit: Exit::Failed })
            }
            None => nothing(self.args),
            Some(_) if self.args.once && !self.lacking.is_empty() => {
                let sentence = self.lacking.into_values().next().unwrap_or_default();
                Err(Failure { sentence, exit: Exit::Failed })
            }
            // It has been said why.
            Some(_) if self.args.once && self.hook_failed => Ok(Exit::Failed),
            _ => Ok(Exit::Done),
        }
    }

    fn observe(&mut self, now: Time, receiver: &Engine_<F>, notice: &Notice<'_, F>) {
        self.tell_of_hook();
        if let Some(seen) = &mut self.seen {
            seen.observe(now, receiver, notice);
        }
        match notice {
            farcast_net::ReceiveNotice::Listening { address } => {
                let id = self.own_name();
                self.say(&format!("{id} listens on {address}, files go into {}", self.args.into.display()));
                let sealing = self.heard.sealing.as_ref();
                self.say(&sealing.map_or_else(|| "not sealed".into(), Sealing::sentence));
                let sealed = sealing.is_some();
                let fields = json!({ "address": address.to_string(), "receiver": id, "sealed": sealed });
                self.output.event("listening", fields);
            }
            farcast_net::ReceiveNotice::Waiting { why } => {
                self.say(&format!("waiting: {why}"));
                self.output.event("waiting", json!({ "reason": why.to_string() }));
            }
            farcast_net::ReceiveNotice::Rejoined => {
                self.say(&format!("listening again on {}", self.heard.from));
                self.output.event("rejoined", json!({ "address": self.heard.from.to_string() }));
            }
            farcast_net::ReceiveNotice::NotAccepted { source } => {
                self.say(&format!("passed over: what comes from {source}, which is not in --accept"));
                self.output.event("not_accepted", json!({ "source": source.to_string() }));
            }
            farcast_net::ReceiveNotice::Unlike { source, why } => {
                let (kind, text) = sealing::unlike(*why, *source);
                self.say(&text);
                self.output.event(kind, json!({ "source": source.to_string() }));
            }
            farcast_net::ReceiveNotice::Joined { offer, held } => {
                let (total, geometry) = (offer.geometry.segments(), offer.geometry);
                let had = match held {
                    0 => String::new(),
                    held => format!(", {} is here already", percent(u64::from(*held), u64::from(total))),
                };
                self.say(&format!(
                    "receiving {} ({}) from {}{had}",
                    shown_name(&offer.name),
                    size(geometry.size()),
                    offer.sender
                ));
                self.output.event(
                    "joined",
                    json!({
                        "product": shown_name(&offer.name), "sender": offer.sender.to_string(),
                        "size_bytes": geometry.size(), "segments": total, "segments_held": held,
                    }),
                );
                let joined = Joined {
                    files: Files::default(),
                    at: now,
                    held: *held,
                    dtu_size: geometry.segment_size().into(),
                    name: shown_name(&offer.name),
                    losses: Losses::default(),
                };
                self.joined.insert(offer.object, joined);
            }
            farcast_net::ReceiveNotice::Files { object, files } => {
                if let Some(joined) = self.joined.get_mut(object) {
                    joined.files = Files { list: Arc::clone(files), done: 0 };
                }
                if let Some((size, stored)) = files::compressed(files) {
                    self.say(&format!("compressed: {size} come as {stored}"));
                }
                if self.output.is_for_programs() {
                    let one = |file: &FileInfo| json!({ "path": file.path, "size_bytes": file.size, "stored_bytes": file.stored });
                    let list: Vec<Value> = files.iter().map(one).collect();
                    self.output.event("files", json!({ "files": list }));
                }
            }
            farcast_net::ReceiveNotice::Compared { found, .. } => {
                self.say(&format!("compared with what is here: {found} segments need not come"));
                self.output.event("compared", json!({ "segments": found }));
            }
            farcast_net::ReceiveNotice::FileDone { object, path } => self.file_done(*object, path),
            farcast_net::ReceiveNotice::Damaged { path, segments, .. } => {
                let what = path.unwrap_or("the list of files");
                self.say(&format!("arrived damaged: {what}; {segments} segments are asked for again"));
                self.output.event("damaged", json!({ "path": path, "segments": segments }));
            }
            farcast_net::ReceiveNotice::NoRoom { error, wait } => {
                self.say(&format!("the disk is full, waiting up to {wait} for room: {error}"));
                self.output.event("no_room", json!({ "error": error.to_string() }));
            }
            farcast_net::ReceiveNotice::Room => {
                self.say("there is room on the disk again");
                self.output.event("room", json!({}));
            }
            farcast_net::ReceiveNotice::Event(event) => self.event(event),
            farcast_net::ReceiveNotice::Tick => self.tick(now, receiver),
            farcast_net::ReceiveNotice::Ended(report) => self.ended(now, report, receiver),
        }
    }

    fn own_name(&self) -> String {
        self.heard.own_name(self.args)
    }

    fn file_done(&mut self, object: ObjectId, path: &str) {
        if let Some(joined) = self.joined.get_mut(&object) {
            joined.files.done += 1;
        }
        // There may be a million of them.
        if self.output.is_for_people() {
            self.say(&format!("complete: {path}"));
        }
        if self.output.is_for_programs() {
            self.output.event("file", json!({ "path": path }));
        }
    }

    fn say(&mut self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(&self.output, text),
            None => self.output.line(text),
        }
    }

    fn event(&mut self, event: &Event<F>) {
        let Some(told) = self.face.told(event, &self.own_name()) else { return };
        if let Some(line) = &told.line {
            self.say(line);
        }
        self.output.event(told.kind, told.fields);
    }

    fn tick(&mut self, now: Time, receiver: &Engine_<F>) {
        if self.joined.len() > 1 {
            return self.tick_of_several(now, receiver);
        }
        let Some(mut entry) = self.joined.first_entry() else { return };
        let (object, joined) = (*entry.key(), entry.get_mut());
        let Some(have) = receiver.have(object) else { return };
        let total = u64::from(have.len());
        if total == 0 {
            return;
        }
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        let elapsed = now.since(joined.at);
        let count = u64::from(have.count());
        let fresh = count.saturating_sub(joined.held.into());
        let came = receiver.received(object);
        let lost = joined.losses.count(&came);
        let message = format!(
            "{}, {}, loss {}{}",
            joined.name,
            rate(fresh * joined.dtu_size, elapsed),
            percent(lost, came.segments + lost),
            time_left(fresh, total - (count - fresh), elapsed)
        );
        let lines =
            if progress.shows_lines() { joined.files.lines(have, joined.dtu_size) } else { Vec::new() };
        progress.update(&self.output, now, ("receiving", &message), (count, total), &lines);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            self.output.event(
                "progress",
                json!({
                    "elapsed_s": elapsed.as_secs_f64(),
                    "segments_have": count,
                    "segments": total,
                    "duplicates": came.duplicates,
                    "naks": came.naks,
                    "naked_dtus": came.asked,
                }),
            );
        }
    }

    /// The same where several objects are under way: all of them together.
    fn tick_of_several(&mut self, now: Time, receiver: &Engine_<F>) {
        let (mut count, mut total, mut came) = (0, 0, Received::default());
        for &object in self.joined.keys() {
            let Some(have) = receiver.have(object) else { continue };
            count += u64::from(have.count());
            total += u64::from(have.len());
            let one = receiver.received(object);
            came.duplicates += one.duplicates;
            came.naks += one.naks;
            came.asked += one.asked;
        }
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        let message = format!("{} files under way", self.joined.len());
        progress.update(&self.output, now, ("receiving", &message), (count, total), &[]);
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            self.output.event(
                "progress",
                json!({
                    "objects": self.joined.len(), "segments_have": count, "segments": total,
                    "duplicates": came.duplicates, "naks": came.naks, "naked_dtus": came.asked,
                }),
            );
        }
    }

    fn ended(&mut self, now: Time, report: &Report<F>, receiver: &Engine_<F>) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let total = report.offer.geometry.segments();
        let rejects: Vec<Value> = report
            .rejects
            .iter()
            .map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n }))
            .collect();
        let mut fields = json!({
            "product": shown_name(&report.offer.name),
            "sender": report.offer.sender.to_string(),
            "complete": report.is_complete(),
            "outcome": self.face.outcome(report),
            "size_bytes": report.offer.geometry.size(),
            "time_s": report.duration.as_secs_f64(),
            "segments": total,
            "segments_have": report.have,
            "segments_held_before": report.held,
            "kept": report.kept,
            "dtus_received": report.received.segments,
            "parity_received": report.received.parity,
            "duplicates": report.received.duplicates,
            "naks": report.received.naks,
            "naked_dtus": report.received.asked,
            "malformed_datagrams": report.malformed,
            "unsent_answers": report.unsent,
            "datagrams_not_accepted": report.not_accepted,
            "datagrams_misdirected": report.misdirected,
            "dtus_dropped_unstored": report.unstored,
            "rejected_messages": rejects,
            "seal": sealing::summary(report.seal.as_ref()),
        });
        let own = self.face.figures(report, receiver);
        if let (Value::Object(fields), Value::Object(own)) = (&mut fields, own) {
            fields.extend(own);
        }
        let outcome = self.face.outcome(report);
        if let Some(seen) = &mut self.seen {
            seen.ended(now, report, &outcome, &fields);
        }
        self.output.event("summary", fields);
        self.output.line(&outcome);
        self.joined.remove(&report.offer.object);
        if report.is_complete() {
            self.lacking.remove(&report.offer.name);
            self.on_complete(report);
        } else if F::SEVERAL {
            self.lacking.insert(report.offer.name.clone(), outcome);
        }
    }

    /// Has the user's command run; the product stays complete, whatever comes of it.
    fn on_complete(&mut self, report: &Report<F>) {
        let Some(hook) = &mut self.hook else { return };
        hook.run([
            ("FARCAST_DIR", self.args.into.clone().into()),
            ("FARCAST_PRODUCT", shown_name(&report.offer.name).into()),
            ("FARCAST_SENDER", report.offer.sender.to_string().into()),
        ]);
    }

    /// Says how the user's command went, where it has ended.
    fn tell_of_hook(&mut self) {
        while let Some(ended) = self.hook.as_mut().and_then(Hook::ended) {
            self.hook_ended(ended);
        }
    }

    /// Waits until the user's command has ended for every product.
    fn wait_for_hook(&mut self) {
        while let Some(ended) = self.hook.as_mut().and_then(Hook::wait) {
            self.hook_ended(ended);
        }
    }

    fn hook_ended(&mut self, ended: io::Result<ExitStatus>) {
        let said = match ended {
            Ok(status) if status.success() => {
                return self.output.event("on_complete", json!({ "exit_code": 0 }));
            }
            Ok(status) => format!("--on-complete ended with {status}"),
            Err(error) => format!("--on-complete could not be run: {error}"),
        };
        self.hook_failed = true;
        crate::output::error(&said);
        self.output.event("on_complete", json!({ "error": said }));
    }
}

/// How much of what did not complete is here and kept, and until what.
fn kept<E>(report: &farcast_net::ReceiveReport<E>, until: &str) -> String {
    let have = percent(u64::from(report.have), u64::from(report.offer.geometry.segments()));
    if report.kept { format!("{have} is here and kept{until}") } else { "nothing of it is kept".into() }
}

/// The size, the time and the rate of what is complete.
fn brought<E>(report: &farcast_net::ReceiveReport<E>) -> String {
    let bytes = report.offer.geometry.size();
    let segments = u64::from(report.offer.geometry.segments());
    let fresh = segments - segments.min(report.held.into());
    let now = bytes.min(fresh * u64::from(report.offer.geometry.segment_size()));
    format!("{} in {}, {}", size(bytes), report.duration, rate(now, report.duration))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farcast_core::random::RandomStream;

    use super::*;

    #[test]
    fn receivers_of_which_nothing_is_said_draw_differently() {
        let first = |id: u32| RandomStream::derive(seed_of(None, id), &[u64::from(id)]).bits();
        let drawn: BTreeSet<u64> = (1..=1000).map(first).collect();
        assert_eq!(drawn.len(), 1000);
        assert_eq!(seed_of(Some(7), 1), 7);
    }
}
