//! `farcast send`.
//!
//! The transfer itself is `farcast_transfer`'s. This module shows it: `common` for all protocols but MFTP, whose view is
//! in `mftp`, and `predict` what would come of it.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_files::{ChangedFile, Compressed};
use farcast_net::{PathNotice, SendNotice};
use farcast_transfer::names::list;
use farcast_transfer::sealing::Sealing;
use farcast_transfer::send::{
    Changing, Controls, Preparation, Scanned, SendFace, SendMdp, SendMftp, SendNorm, SendOneWay, SendPgm,
    SendProtocol, Sent, change_word, datagram_to, scan, send, shown,
};
use farcast_transfer::{Error, ProtocolName};
use serde_json::{Value, json};

use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::{Progress, size};
use crate::{Exit, Failure, outputs, report};

mod common;
mod mftp;
mod missing;
mod narrow;
mod predict;
mod stats;
mod stream;
#[cfg(test)]
mod tests;

use predict::Predict;

pub(crate) fn run(args: &mut SendArgs) -> Result<Exit, Failure> {
    check(args)?;
    args.job.group.read_files()?;
    let (args, job) = (&*args, &args.job);
    match job.protocol_name() {
        ProtocolName::Norm | ProtocolName::Pgm if job.stream.stream => stream::run(args),
        ProtocolName::Mftp => mftp::run(args),
        ProtocolName::Norm => common::run::<SendNorm>(args),
        ProtocolName::Mdp => common::run::<SendMdp>(args),
        ProtocolName::Pgm => common::run::<SendPgm>(args),
        ProtocolName::OneWay => common::run::<SendOneWay>(args),
    }
}

/// Refuses outputs that cannot be written beside the transfer.
fn check(args: &SendArgs) -> Result<(), Failure> {
    let (log, page) = (args.output.log.as_deref(), args.page.report.as_deref());
    let written = [("--log", log), ("--report", page), ("--missing", args.missing.as_deref())];
    for path in &args.job.paths {
        outputs::outside(&written, path, "which must not change while it is sent")?;
    }
    let plan = args.job.protocol.plan.as_deref();
    outputs::distinct(&[&[("--plan", plan)], &written[..]].concat())?;
    for list in list::files(&args.job.group.receivers) {
        outputs::distinct(&[&[("--receivers", Some(list))], &written[..]].concat())?;
    }
    missing::check(args)?;
    if page.is_some() && args.job.stream.stream {
        return Err(Failure::usage("--report draws how files are delivered, and --stream sends none"));
    }
    if page.is_some() && args.predict.is_some() {
        return Err(Failure::usage(
            "--report draws a transfer, and --predict sends nothing; farcast simulate --report draws a prediction",
        ));
    }
    report::check(&args.output, &args.page, &[("--plan", plan)])
}

/// Sends the files of `args` by the protocol `P`, and lists the receivers that lack them.
fn transfer<P: SendProtocol>(
    args: &SendArgs,
    face: &mut impl SendFace<P>,
    controls: Controls<'_>,
) -> Result<Sent<P>, Error> {
    let sent = send::<P>(&args.job, face, controls);
    missing::write(args, &sent);
    sent
}

/// Steps of a transfer before data leaves, as they are shown.
struct Steps<'a> {
    args: &'a SendArgs,
    output: Output,
    progress: Option<Progress>,
    clock: farcast_net::Clock,
}

impl<'a> Steps<'a> {
    fn new(args: &'a SendArgs) -> Result<Self, Failure> {
        let output = Output::new(&args.output)?;
        Ok(Self { args, output, progress: None, clock: farcast_net::Clock::start() })
    }

    /// Shows a step.
    fn show(&mut self, note: &Preparation<'_>) {
        match note {
            Preparation::Hashing { hashed, total } => {
                let message = format!("{} of {}", size(*hashed), size(*total));
                self.update(self.clock.now(), "hashing", &message, *hashed, *total);
            }
            Preparation::Hashed | Preparation::Waited => self.clear(),
            Preparation::Skipped(skipped) => {
                let (path, reason) = (shown(&skipped.path), skipped.reason.to_string());
                self.output.line(&format!("not sent: {path} ({reason})"));
                self.output.event("skipped", json!({ "path": path, "reason": reason }));
            }
            Preparation::Compressed(compressed) => {
                self.output.line(&compressed_sentence(compressed));
                self.output.event("compressed", compressed_fields(compressed));
            }
            Preparation::NoNetwork(missing) => {
                self.output.line(&format!("waiting: {missing}"));
                self.output.event("waiting", json!({ "reason": missing.to_string() }));
            }
            Preparation::GroupInUse { to, whom, process, address } => {
                let reason = format!("{to} is in use by {whom}");
                self.output.line(&format!("waiting: {reason}; this one begins when the group is free"));
                let mut fields = match address {
                    Some(address) => json!({ "address": address.to_string() }),
                    None => json!({ "process": process }),
                };
                fields["reason"] = reason.into();
                self.output.event("waiting", fields);
            }
            Preparation::Waiting { whom, now } => {
                // Elsewhere than on a terminal one line is enough.
                let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
                if progress.shows_lines() {
                    self.update(*now, "waiting", &format!("for {whom}"), 0, 1);
                }
            }
            _ => {}
        }
    }

    fn update(&mut self, now: Time, prefix: &str, message: &str, done: u64, total: u64) {
        let progress = self.progress.get_or_insert_with(|| Progress::new(&self.output));
        progress.update(&self.output, now, (prefix, message), (done, total), &[]);
    }

    fn clear(&mut self) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
    }

    /// Announces a transmission: what is sent where, for whom, and how it is sealed.
    fn announce<P: SendProtocol>(&mut self, protocol: &P, files: &Scanned) {
        let job = &self.args.job;
        let to = protocol.basis().to;
        let count = files.files();
        let what = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let (on_disk, sent) = (files.files_octets(), files.octets());
        let octets = if on_disk == sent {
            size(on_disk)
        } else {
            format!("{}, {} as they are sent", size(on_disk), size(sent))
        };
        let by = match P::NAME {
            ProtocolName::Mftp => String::new(),
            ProtocolName::OneWay => " one way".into(),
            other => format!(" by {}", other.title()),
        };
        let (name, destined) = (&files.name, protocol.destined(job));
        self.output.line(&format!("sending {name} ({what}, {octets}){by} to {to}, {destined}"));
        self.seal(to, protocol.basis().sealing.as_ref());
    }

    /// Tells whether the transfer is sealed, for whom, and with which kinds of receivers' keys.
    fn seal(&mut self, to: SocketAddr, sealing: Option<&Sealing>) {
        let Some(sealing) = sealing else { return self.output.line("not sealed") };
        self.output.line(&sealing.sentence());
        let Some(hybrids) = sealing.hybrids(datagram_to(&self.args.job, to)) else { return };
        for line in hybrids.lines() {
            self.output.line(&line);
        }
        self.output.event("hybrid_keys", hybrids.fields());
    }
}

/// Returns the message about a file that has changed, in a line and for programs.
fn changed(args: &SendArgs, file: &ChangedFile, name: &str) -> (String, Value) {
    let then = match args.job.changing {
        Changing::Skip => "nothing of it is sent any more",
        Changing::Again => "all is sent again",
        Changing::Fail => "so this ends",
    };
    let line = format!("{name} {}: {then}", file.change.words_while_sent());
    (line, json!({ "path": name, "change": change_word(file.change) }))
}

/// Returns the files that have changed, for programs.
fn changed_fields(changed: &[ChangedFile]) -> Value {
    changed
        .iter()
        .map(|file| json!({ "path": shown(&file.path), "change": change_word(file.change) }))
        .collect()
}

/// Returns the result of compression in words.
fn compressed_sentence(compressed: &Compressed) -> String {
    match compressed.files {
        0 => "not compressed: that would make nothing shorter".into(),
        _ => format!("compressed {} to {}", size(compressed.size), size(compressed.stored)),
    }
}

/// Returns the result of compression for programs.
fn compressed_fields(compressed: &Compressed) -> Value {
    json!({
        "files": compressed.files,
        "size_bytes": compressed.size,
        "stored_bytes": compressed.stored,
    })
}

/// Returns the words about a receiver that is no longer trusted, as [`notice_words`] does.
fn revoked_words(name: &str) -> (String, &'static str, Value) {
    let line = format!("{name} is trusted no more: it can open nothing that is sent from now on");
    (line, "revoked", json!({ "receiver": name }))
}

/// Returns the words about the path and the sockets, as [`notice_words`] does.
fn path_words(notice: &PathNotice<'_>, option: &str) -> (String, &'static str, Value) {
    match *notice {
        PathNotice::Waiting { why } => {
            (format!("waiting: {why}"), "waiting", json!({ "reason": why.to_string() }))
        }
        PathNotice::Back => ("going on: the way out is back".into(), "back", json!({})),
        PathNotice::Moved { address } => (
            format!("our address has changed: sending from {address} from now on"),
            "moved",
            json!({ "address": address.to_string() }),
        ),
        PathNotice::Refused { why } => (why.to_string(), "blocked", json!({ "reason": why.to_string() })),
        PathNotice::Fragmenting { packet, segment } => {
            let fields = narrow::fits(segment);
            (narrow::fragmenting(packet, segment, option), "fragmenting", fields)
        }
        PathNotice::Narrow { receiver, datagram, limit, segment } => {
            let narrow = narrow::Narrow { receiver, datagram, limit };
            let avoids = segment.map(|segment| (segment, option));
            let fields = narrow.fields(segment);
            (narrow.sentence(avoids), "narrow", fields)
        }
    }
}

/// Returns the words about a notice of the network driver: a line for people, its kind and its fields. `option` sets the
/// length of segments. Events of the engine and ticks have none.
fn notice_words<E>(
    args: &SendArgs,
    notice: &SendNotice<'_, E>,
    option: &str,
) -> Option<(String, &'static str, Value)> {
    Some(match notice {
        SendNotice::Path(notice) => path_words(notice, option),
        SendNotice::Revoked { name } => revoked_words(name),
        SendNotice::Changed { file, name } => {
            let (line, fields) = changed(args, file, name);
            (line, "changed", fields)
        }
        SendNotice::Event(_) | SendNotice::Tick(_) => return None,
    })
}
