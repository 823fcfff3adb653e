//! Output of a reception, for the person and the program at the receiver.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitStatus;
use std::sync::Arc;

use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, Offer, Protocol, Received, ReceiverEngine};
use farcast_files::partials::Partial;
use farcast_files::shown_name;
use farcast_net::{FileInfo, ListenNotice, NetError, Removed};
use farcast_transfer::ErrorKind;
use farcast_transfer::receive::{
    EventOf, NoticeOf, ReceiveFace, ReceivePlace, ReceiveProtocol, ReceiverOf, ReportOf, kind_of, never_came,
};
use farcast_transfer::sealing::{self, Sealing};
use serde_json::{Value, json};

use super::files::{self, Files};
use super::listening::listen_words;
use super::{nothing, waiting};
use crate::args::ReceiveArgs;
use crate::hook::Hook;
use crate::output::Output;
use crate::progress::{Pace, Progress, loss_percent, percent, rate, size};
use crate::{Exit, Failure, report};

/// Interval between progress events for programs.
const REPORT_EVERY: Span = Span::from_secs(1);

/// Most objects that are remembered as incomplete.
const MOST_LACKING: usize = 1 << 14;

/// Output for the user of a receiver, of all objects that it receives.
pub(super) struct View<'a, P: ReceiveProtocol> {
    output: Output,
    progress: Option<Progress>,
    args: &'a ReceiveArgs,
    /// Record for a page, if a page is asked for.
    seen: Option<report::Receiving>,
    /// Address that is listened to, and the receiver's name.
    from: String,
    own_name: String,
    /// Sentence about the keys of both sides, if transfers are sealed.
    sealed: Option<String>,
    /// Objects that are being received.
    joined: BTreeMap<ObjectId, Joined>,
    /// Objects that have ended incomplete, by sender and name, each with the reason. Only protocols with several
    /// objects use this.
    lacking: BTreeMap<(SocketAddr, Vec<u8>), Failure>,
    hook: Option<Hook>,
    /// Summaries of products whose command has not ended, in the order of the commands.
    summaries: VecDeque<Value>,
    next_report: Time,
    /// Set if `--on-complete` failed.
    hook_failed: bool,
    protocol: std::marker::PhantomData<P>,
}

struct Joined {
    files: Files,
    at: Time,
    held: u32,
    dtu_size: u64,
    name: String,
    pace: Pace,
}

impl<P: ReceiveProtocol> ReceiveFace<P> for View<'_, P> {
    fn waiting(&mut self, missing: &NetError) {
        waiting(&mut self.output, missing);
    }

    fn begin(&mut self, place: &ReceivePlace) {
        self.own_name = place.own_name(&self.args.job);
        self.from = place.from.to_string();
        self.sealed = place.sealing.as_ref().map(Sealing::sentence);
        let (page, words) = (&self.args.page, <P::Protocol as Protocol>::WORDS);
        self.seen = report::Receiving::new(page, words, self.own_name.clone(), place.from);
    }

    fn observe(&mut self, now: Time, protocol: &P, receiver: &ReceiverOf<P>, notice: &NoticeOf<'_, P>) {
        self.notice(now, protocol, receiver, notice);
    }
}

impl<'a, P: ReceiveProtocol> View<'a, P> {
    pub(super) fn new(args: &'a ReceiveArgs) -> Result<Self, Failure> {
        Ok(Self {
            output: Output::new(&args.output)?,
            progress: None,
            args,
            seen: None,
            from: String::new(),
            own_name: String::new(),
            sealed: None,
            joined: BTreeMap::new(),
            lacking: BTreeMap::new(),
            hook: args.on_complete.as_deref().map(|command| Hook::new(command, args.output.json)),
            summaries: VecDeque::new(),
            next_report: Time::ZERO,
            hook_failed: false,
            protocol: std::marker::PhantomData,
        })
    }

    /// Takes the record for a page.
    pub(super) fn take_page(&mut self) -> Option<report::Receiving> {
        self.seen.take()
    }

    /// Returns the result of the command after the last product.
    pub(super) fn over(self, last: Result<(P, Option<ReportOf<P>>), Failure>) -> Result<Exit, Failure> {
        let (protocol, last) = last?;
        match last {
            Some(report) if self.args.job.once && !report.is_complete() => {
                let failure = Failure { sentence: protocol.outcome(&report), exit: exit_of(&report) };
                Err(if P::SEVERAL { self.told(&report.offer.name, failure) } else { failure })
            }
            None => nothing(self.args),
            // Objects that other senders announced and did not send are not missing.
            Some(report) if self.args.job.once && self.lacks(report.offer.sender) => {
                let mut lacking = self.lacking.iter();
                let of_sender = lacking.find(|((sender, _), _)| *sender == report.offer.sender);
                let nothing = || Failure { sentence: String::new(), exit: Exit::Failed };
                let of_sender = of_sender.map(|((_, name), failure)| {
                    self.told(name, Failure { sentence: failure.sentence.clone(), exit: failure.exit })
                });
                Err(of_sender.unwrap_or_else(nothing))
            }
            Some(report) if self.args.job.once && report.missed > 0 => {
                Err(Failure { sentence: never_came(&report), exit: Exit::Failed })
            }
            // The reason has been printed.
            Some(_) if self.args.job.once && self.hook_failed => Ok(Exit::Failed),
            _ => Ok(Exit::Done),
        }
    }

    /// Returns the failure of one of several objects. The sentence leaves out the reason if people have read it
    /// already.
    fn told(&self, name: &[u8], failure: Failure) -> Failure {
        if !self.output.is_for_people() {
            return failure;
        }
        Failure { sentence: format!("not complete: {}; see above", shown_name(name)), ..failure }
    }

    fn notice(&mut self, now: Time, protocol: &P, receiver: &ReceiverOf<P>, notice: &NoticeOf<'_, P>) {
        self.tell_of_hook();
        if let Some(seen) = &mut self.seen {
            seen.observe(now, receiver, notice);
        }
        match notice {
            farcast_net::ReceiveNotice::Listen(ListenNotice::Listening { address }) => {
                self.listening(*address);
            }
            farcast_net::ReceiveNotice::Listen(notice) => {
                let words = listen_words(notice, &self.from, self.args.job.seal.unsealed);
                self.tell(&words.line, words.kind, words.fields);
            }
            farcast_net::ReceiveNotice::Joined { offer, held } => self.joined(now, offer, *held),
            farcast_net::ReceiveNotice::Files { object, files } => self.files(*object, files),
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
            farcast_net::ReceiveNotice::Event(event) => self.event(protocol, event),
            farcast_net::ReceiveNotice::Tick => {
                self.output.follow_log();
                self.tick(now, receiver);
            }
            farcast_net::ReceiveNotice::Ended(report) => self.ended(now, protocol, report, receiver),
            of_disk => self.observe_disk(of_disk),
        }
    }

    /// Reports that the receiver takes part in the transfer of an `offer`, of which it has `held` segments already.
    fn joined(&mut self, now: Time, offer: &Offer, held: u32) {
        let (total, geometry) = (offer.geometry.segments(), offer.geometry);
        let had = match held {
            0 => String::new(),
            held => format!(", {} is here already", percent(u64::from(held), u64::from(total))),
        };
        let name = shown_name(&offer.name);
        self.say(&format!("receiving {name} ({}) from {}{had}", size(geometry.size()), offer.sender));
        self.output.event(
            "joined",
            json!({
                "product": name, "sender": offer.sender.to_string(),
                "size_bytes": geometry.size(), "segments": total, "segments_held": held,
            }),
        );
        let joined = Joined {
            files: Files::default(),
            at: now,
            held,
            dtu_size: geometry.segment_size().into(),
            name,
            pace: Pace::default(),
        };
        self.joined.insert(offer.object, joined);
    }

    /// Reports the files of an object, which are known now.
    fn files(&mut self, object: ObjectId, files: &Arc<[FileInfo]>) {
        if let Some(joined) = self.joined.get_mut(&object) {
            joined.files = Files { list: Arc::clone(files), done: 0 };
        }
        if let Some((size, stored)) = files::compressed(files) {
            self.say(&format!("compressed: {size} come as {stored}"));
        }
        if self.output.is_for_programs() {
            let one = |file: &FileInfo| json!({ "path": file.path, "size_bytes": file.size, "stored_bytes": file.stored });
            self.output.list("files", "files", || files.iter().map(one));
        }
    }

    /// Reports a notice about the receiving directory or its file system.
    fn observe_disk(&mut self, notice: &NoticeOf<'_, P>) {
        match notice {
            farcast_net::ReceiveNotice::NoRoom { error, wait } => {
                let full = format!("the disk is full, waiting up to {wait} for room: {error}");
                self.tell(&full, "no_room", json!({ "error": error.to_string() }));
            }
            farcast_net::ReceiveNotice::Withheld { path, why, .. } => {
                self.say(&format!("not delivered: {why}"));
                self.output.event("withheld", json!({ "path": path, "reason": why }));
            }
            farcast_net::ReceiveNotice::Refused(refusal) => {
                self.say(&refusal.to_string());
                let path = shown_name(refusal.path.as_os_str().as_bytes());
                let fields = json!({ "what": refusal.nicety.word(), "path": path, "errno": refusal.errno });
                self.output.event("not_supported", fields);
            }
            farcast_net::ReceiveNotice::Removed { partial, why } => self.removed(partial, *why),
            farcast_net::ReceiveNotice::Room => {
                self.tell("there is room on the disk again", "room", json!({}));
            }
            _ => {}
        }
    }

    fn listening(&mut self, address: SocketAddr) {
        let id = self.own_name.clone();
        // Packets without UDP have no port.
        let address = if address.port() == 0 { address.ip().to_string() } else { address.to_string() };
        self.say(&format!("{id} listens on {address}, files go into {}", self.args.job.into.display()));
        let sealed = self.sealed.is_some();
        self.say(&self.sealed.clone().unwrap_or_else(|| "not sealed".into()));
        let fields = json!({ "address": address, "receiver": id, "sealed": sealed });
        self.output.event("listening", fields);
    }

    /// Reports that the stored part of a product was removed.
    fn removed(&mut self, partial: &Partial, why: Removed) {
        let name = partial.name.as_deref().map_or_else(|| partial.id.to_string(), shown_name);
        let (why, word) = match why {
            Removed::TooOld => ("it was kept for as long as --keep-partials says", "too_old"),
            Removed::Useless => ("its list of files never came", "useless"),
            Removed::MakesRoom => ("its place was needed for what is sent now", "makes_room"),
        };
        let held = size(partial.held);
        self.say(&format!("removed: what was here of {name}, {held}, which was not complete: {why}"));
        self.output.event(
            "removed",
            json!({ "id": partial.id.to_string(), "name": name, "held_bytes": partial.held, "reason": word }),
        );
    }

    fn file_done(&mut self, object: ObjectId, path: &str) {
        if let Some(joined) = self.joined.get_mut(&object) {
            joined.files.done += 1;
        }
        // A product may have a million files.
        if self.output.is_for_people() {
            self.say(&format!("complete: {path}"));
        }
        if self.output.is_for_programs() {
            self.output.event("file", json!({ "path": path }));
        }
    }

    /// Reports to people and programs.
    fn tell(&mut self, text: &str, kind: &str, fields: Value) {
        self.say(text);
        self.output.event(kind, fields);
    }

    fn say(&mut self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(&self.output, text),
            None => self.output.line(text),
        }
    }

    fn event(&mut self, protocol: &P, event: &EventOf<P>) {
        let Some(told) = protocol.event(event, &self.own_name) else { return };
        if let Some(line) = &told.line {
            self.say(line);
        }
        self.output.event(told.kind, told.fields);
    }

    fn tick(&mut self, now: Time, receiver: &ReceiverOf<P>) {
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
        let message = format!(
            "{}, {}, loss {}{}",
            joined.name,
            rate(fresh * joined.dtu_size, elapsed),
            percent(came.lost, came.sent),
            joined.pace.time_left(now, count, total)
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
                    "naked_dtus": came.lost,
                    "loss_percent": loss_percent(came.lost, came.sent),
                }),
            );
        }
    }

    /// Shows the progress of all objects together, where several are under way.
    fn tick_of_several(&mut self, now: Time, receiver: &ReceiverOf<P>) {
        let (mut count, mut total, mut came) = (0, 0, Received::default());
        for &object in self.joined.keys() {
            let Some(have) = receiver.have(object) else { continue };
            count += u64::from(have.count());
            total += u64::from(have.len());
            let one = receiver.received(object);
            came.duplicates += one.duplicates;
            came.naks += one.naks;
            came.lost += one.lost;
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
                    "duplicates": came.duplicates, "naks": came.naks, "naked_dtus": came.lost,
                }),
            );
        }
    }

    fn ended(&mut self, now: Time, protocol: &P, report: &ReportOf<P>, receiver: &ReceiverOf<P>) {
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
            "outcome": protocol.outcome(report),
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
            "naked_dtus": report.received.lost,
            "loss_percent": loss_percent(report.received.lost, report.received.sent),
            "malformed_datagrams": report.malformed,
            "unsent_answers": report.unsent,
            "datagrams_not_accepted": report.not_accepted,
            "datagrams_misdirected": report.misdirected,
            "dtus_dropped_unstored": report.unstored,
            "rejected_messages": rejects,
            "seal": sealing::summary(report.seal.as_ref()),
        });
        if P::SEVERAL {
            fields["lacking"] = self.lacking_of(report).into();
        }
        let own = protocol.figures(report, receiver);
        if let (Value::Object(fields), Value::Object(own)) = (&mut fields, own) {
            fields.extend(own);
        }
        let outcome = protocol.outcome(report);
        if let Some(seen) = &mut self.seen {
            seen.ended(now, report, &outcome, &fields);
        }
        // If the report ends the receiver, its outcome is printed as the last sentence.
        if !self.args.job.once || P::SEVERAL || report.is_complete() || !report.counts() {
            self.output.line(&outcome);
        }
        self.joined.remove(&report.offer.object);
        if report.is_complete() {
            // The object may have come from another address, after its sender was started again.
            self.lacking.retain(|(_, name), _| *name != report.offer.name);
            self.on_complete(report, fields);
        } else {
            self.output.event("summary", fields);
            if P::SEVERAL {
                self.note_lacking(report, Failure { sentence: outcome, exit: exit_of(report) });
            }
        }
    }

    /// Returns the names of the same sender's objects that ended before, incomplete.
    fn lacking_of(&self, report: &ReportOf<P>) -> Vec<String> {
        let of_sender = self.lacking.keys().filter(|(sender, _)| *sender == report.offer.sender);
        let others = of_sender.filter(|(_, name)| *name != report.offer.name);
        others.map(|(_, name)| shown_name(name)).collect()
    }

    /// Returns `true` if an object of `sender` is not complete.
    fn lacks(&self, sender: SocketAddr) -> bool {
        self.lacking.keys().any(|(of, _)| *of == sender)
    }

    /// Remembers an object that is not complete. Above the limit, an object of another sender is forgotten.
    fn note_lacking(&mut self, report: &ReportOf<P>, failure: Failure) {
        let sender = report.offer.sender;
        if self.lacking.len() >= MOST_LACKING {
            let other = self.lacking.keys().find(|(of, _)| *of != sender).cloned();
            other.map(|other| self.lacking.remove(&other));
        }
        self.lacking.insert((sender, report.offer.name.clone()), failure);
    }

    /// Starts the user's command. The product stays complete, whatever the command does. The product's summary is
    /// reported after the command has ended.
    fn on_complete(&mut self, report: &ReportOf<P>, summary: Value) {
        let Some(hook) = &mut self.hook else { return self.output.event("summary", summary) };
        self.summaries.push_back(summary);
        hook.run([
            ("FARCAST_DIR", self.args.job.into.clone().into()),
            ("FARCAST_PRODUCT", shown_name(&report.offer.name).into()),
            ("FARCAST_SENDER", report.offer.sender.to_string().into()),
        ]);
    }

    /// Reports the ends of the user's commands that have ended.
    fn tell_of_hook(&mut self) {
        while let Some(ended) = self.hook.as_mut().and_then(Hook::ended) {
            self.hook_ended(ended);
        }
    }

    /// Waits until the user's command has ended for every product.
    pub(super) fn wait_for_hook(&mut self) {
        while let Some(ended) = self.hook.as_mut().and_then(Hook::wait) {
            self.hook_ended(ended);
        }
    }

    fn hook_ended(&mut self, ended: io::Result<ExitStatus>) {
        self.tell_how_hook_ended(ended);
        if let Some(summary) = self.summaries.pop_front() {
            self.output.event("summary", summary);
        }
    }

    fn tell_how_hook_ended(&mut self, ended: io::Result<ExitStatus>) {
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

/// Returns the exit code of a reception that is not complete.
fn exit_of<E>(report: &farcast_net::ReceiveReport<E>) -> Exit {
    if kind_of(report) == ErrorKind::Incomplete { Exit::Incomplete } else { Exit::Failed }
}
