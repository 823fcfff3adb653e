//! Sending as a call: [`Sender`].

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use farcast_core::{Span, Time};
use farcast_delivery::settings::SendRate;
use farcast_delivery::{Phase, RoundProgress, SenderEngine};
use farcast_net::{PathNotice, SendNotice};

use crate::cancel::Cancel;
use crate::host::Endpoint;
use crate::send::{
    Changing, Controls, NoticeOf, Preparation, ReceiverState, ReportOf, Scanned, SendEvent, SendFace,
    SendJob, SendMdp, SendMftp, SendNorm, SendOneWay, SendOutcome, SendPgm, SendProtocol, SenderOf, Sent,
    changed_files, send, shown,
};
use crate::{Error, ProtocolName};

/// Sender of files to a group of receivers, or to one.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sender = farcast_transfer::Sender::builder()
///     .to("239.255.1.1:5402")
///     .rate("20 Mbit/s")
///     .receivers(["station-1", "station-2"])
///     .build()?;
/// let summary = sender.send(["charts"])?;
/// println!("{} octets in {}", summary.octets, summary.duration);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sender {
    job: SendJob,
    cancel: Cancel,
}

/// Choices of a [`Sender`]. A choice that is not made has the default of the command line.
#[derive(Clone, Debug)]
#[must_use]
pub struct SenderBuilder {
    job: SendJob,
    has_destination: bool,
    /// First choice that makes no sense.
    error: Option<Error>,
}

impl Default for SenderBuilder {
    fn default() -> Self {
        let nowhere = Endpoint::Address(std::net::SocketAddr::from(([0, 0, 0, 0], 0)));
        Self { job: SendJob::new(nowhere), has_destination: false, error: None }
    }
}

impl SenderBuilder {
    /// Sends to this group or host. The default port is 5402, another follows the address, as in `239.255.1.1:5402`.
    pub fn to(mut self, destination: &str) -> Self {
        match destination.parse() {
            Ok(to) => (self.job.to, self.has_destination) = (to, true),
            Err(error) => self.fail(format!("the destination {destination:?}: {error}")),
        }
        self
    }

    /// Sends at this rate, such as `20 Mbit/s`, or with `max` at the pace of the receivers.
    pub fn rate(mut self, rate: &str) -> Self {
        match rate {
            "max" => self.job.rate = Some(SendRate::Max),
            _ => match rate.parse() {
                Ok(rate) => self.job.rate = Some(SendRate::Limit(rate)),
                Err(error) => self.fail(format!("the rate {rate:?}: {error}")),
            },
        }
        self
    }

    /// Serves only these receivers, each of which is to confirm. By default every receiver that listens is served.
    pub fn receivers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.job.group.receivers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Uses this protocol instead of MFTP.
    pub fn protocol(mut self, protocol: ProtocolName) -> Self {
        self.job.by = protocol;
        self
    }

    /// Gives the product this name at receivers instead of that of the first path.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.job.name = Some(name.into());
        self
    }

    /// Sends out of this interface, by its name or address.
    pub fn interface(mut self, interface: impl Into<String>) -> Self {
        self.job.socket.interface = Some(interface.into());
        self
    }

    /// Sets the TTL of multicast; with 1 it stays on the local network.
    pub fn ttl(mut self, hops: u8) -> Self {
        self.job.socket.ttl = hops;
        self
    }

    /// Seals with the key in this file instead of this host's own.
    pub fn key(mut self, file: impl Into<PathBuf>) -> Self {
        self.job.seal.key = Some(file.into());
        self
    }

    /// Seals nothing, although this host has a key.
    pub fn unsealed(mut self) -> Self {
        self.job.seal.unsealed = true;
        self
    }

    /// Chooses the reaction to a file that changes during the transfer.
    pub fn changing(mut self, changing: Changing) -> Self {
        self.job.changing = changing;
        self
    }

    /// Waits for this time if another sender uses the group, instead of giving up at once.
    pub fn wait(mut self, time: Span) -> Self {
        self.job.group.wait = Some(time);
        self
    }

    /// Reads settings from this file, as `farcast tune` writes it.
    pub fn plan(mut self, file: impl Into<PathBuf>) -> Self {
        self.job.protocol.plan = Some(file.into());
        self
    }

    /// Sets a key of the protocol, with its value as in TOML, such as `parity` to `16`.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.job.protocol.keys.push((key.into(), value.into()));
        self
    }

    /// Returns the sender.
    ///
    /// # Errors
    /// There is no destination, or a choice makes no sense.
    pub fn build(self) -> Result<Sender, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.has_destination {
            return Err(Error::usage(
                "nothing says where to send: give a destination, as in to(\"239.255.1.1\")",
            ));
        }
        Ok(Sender { job: self.job, cancel: Cancel::new() })
    }

    fn fail(&mut self, sentence: String) {
        self.error.get_or_insert_with(|| Error::usage(sentence));
    }
}

impl From<SendJob> for Sender {
    fn from(job: SendJob) -> Self {
        Self { job, cancel: Cancel::new() }
    }
}

impl Sender {
    /// Begins to choose.
    pub fn builder() -> SenderBuilder {
        SenderBuilder::default()
    }

    /// Returns a handle that cancels the transfers of this sender.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Sends files and directories. Returns when every receiver that was named or has registered has everything.
    ///
    /// # Errors
    /// The choices do not suit, the transfer failed or was cancelled, or some receivers are incomplete.
    pub fn send<P: Into<PathBuf>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<SendSummary, SendError> {
        self.send_with(paths, &mut |_| {})
    }

    /// Sends files and directories as [`send`](Self::send) does, and passes events to `update`.
    ///
    /// # Errors
    /// The same errors as those of [`send`](Self::send).
    pub fn send_with<P: Into<PathBuf>>(
        &self,
        paths: impl IntoIterator<Item = P>,
        update: &mut dyn FnMut(SendUpdate),
    ) -> Result<SendSummary, SendError> {
        let mut job = self.job.clone();
        job.paths = paths.into_iter().map(Into::into).collect();
        if job.paths.is_empty() {
            return Err(Error::usage("there is nothing to send: name a file").into());
        }
        match job.protocol_name() {
            ProtocolName::Mftp => self.run::<SendMftp>(&job, update),
            ProtocolName::Norm => self.run::<SendNorm>(&job, update),
            ProtocolName::Mdp => self.run::<SendMdp>(&job, update),
            ProtocolName::Pgm => self.run::<SendPgm>(&job, update),
            ProtocolName::OneWay => self.run::<SendOneWay>(&job, update),
        }
    }

    /// Sends all octets of `reader` as a file called `name`. Receivers may ask for any part of the file again, so the
    /// octets first go to a temporary file. It is in `TMPDIR`, or else in `/var/tmp`.
    ///
    /// # Errors
    /// The reader cannot be read, or the errors of [`send`](Self::send).
    pub fn send_reader(
        &self,
        name: &str,
        reader: &mut dyn Read,
        update: &mut dyn FnMut(SendUpdate),
    ) -> Result<SendSummary, SendError> {
        if name.is_empty() || name.contains('/') || [".", ".."].contains(&name) {
            return Err(Error::usage(format!("{name:?} is no name of a file")).into());
        }
        let place = tempfile::tempdir_in(farcast_net::scratch_dir()).map_err(Error::from)?;
        let path = place.path().join(name);
        copy(reader, &path).map_err(Error::from)?;
        self.send_with([path], update)
    }

    fn run<P: SendProtocol>(
        &self,
        job: &SendJob,
        update: &mut dyn FnMut(SendUpdate),
    ) -> Result<SendSummary, SendError> {
        let start = AtomicBool::new(false);
        let mut face = Updates { update, began: None };
        let controls = Controls { start: &start, stop: self.cancel.flag() };
        let sent = send::<P>(job, &mut face, controls)?;
        let verdict = sent.verdict(job);
        let summary = SendSummary::of(&sent, verdict.outcome, verdict.sentence.clone());
        match verdict.result() {
            Ok(_) => Ok(summary),
            Err(error) => Err(SendError { error, summary: Some(Box::new(summary)) }),
        }
    }
}

fn copy(reader: &mut dyn Read, path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    io::copy(reader, &mut file)?;
    Ok(())
}

/// Event of a transfer for its user.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SendUpdate {
    /// Files are read and hashed.
    Hashing {
        /// Octets that were hashed.
        hashed: u64,
        /// Octets in all.
        total: u64,
    },
    /// A file was found and is not sent.
    Skipped {
        /// Path of the file.
        path: String,
        /// Reason.
        reason: String,
    },
    /// The sender waits for something that is missing.
    Waiting {
        /// Sentence about it.
        reason: String,
    },
    /// A transmission begins.
    Began {
        /// Name of the product.
        name: String,
        /// Octets of all files.
        octets: u64,
        /// Sentence about the keys of both sides, if the transfer is sealed.
        sealed: Option<String>,
    },
    /// Progress, ten times a second.
    Progress(SendProgress),
    /// Event of the protocol.
    Event(SendEvent),
    /// Files have changed, and everything is sent again.
    Again {
        /// Files that have changed, in words.
        changed: String,
    },
    /// Something that a user should know.
    Notice {
        /// Sentence about it.
        sentence: String,
    },
}

/// Progress of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct SendProgress {
    /// Phase in one word: announcing, sending, waiting, completing, and so on.
    pub phase: &'static str,
    /// Number of the round of sending, from 1; 0 before data.
    pub round: u32,
    /// Segments sent in the round.
    pub sent: u32,
    /// Segments that the round sends in all, as far as is known.
    pub segments: u32,
    /// Time since data began.
    pub elapsed: Span,
    /// Receivers that are known to have everything.
    pub complete: usize,
    /// Receivers that are known.
    pub receivers: usize,
}

/// Result of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub struct SendSummary {
    /// Name of the product.
    pub name: String,
    /// Outcome.
    pub outcome: SendOutcome,
    /// Sentence for people, if there is something to say.
    pub sentence: Option<String>,
    /// Octets of all files.
    pub octets: u64,
    /// Octets that left, with headers of UDP and IP.
    pub wire_octets: u64,
    /// Rounds of sending.
    pub rounds: u32,
    /// Time from the first datagram to the end.
    pub duration: Span,
    /// Time from the first datagram of data to the last.
    pub data_duration: Span,
    /// Known receivers with their states.
    pub receivers: Vec<ReceiverState>,
}

impl SendSummary {
    fn of<P: SendProtocol>(sent: &Sent<P>, outcome: SendOutcome, sentence: Option<String>) -> Self {
        let report = &sent.report;
        Self {
            name: sent.files.name.clone(),
            outcome,
            sentence,
            octets: sent.files.octets(),
            wire_octets: report.traffic.sent.octets,
            rounds: report.sender.progress().round,
            duration: report.duration,
            data_duration: report.data_duration,
            receivers: sent.protocol.receivers(),
        }
    }
}

/// Error of a transfer. A transfer that ran to its end, and left some receivers incomplete, has a summary.
#[derive(Clone, PartialEq, Debug)]
pub struct SendError {
    /// Error in a sentence.
    pub error: Error,
    /// Result, if the transfer ran to its end.
    pub summary: Option<Box<SendSummary>>,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SendError {}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        Self { error, summary: None }
    }
}

/// Face that passes on the events.
struct Updates<'a> {
    update: &'a mut dyn FnMut(SendUpdate),
    began: Option<Time>,
}

impl<P: SendProtocol> SendFace<P> for Updates<'_> {
    fn prepare(&mut self, note: &Preparation<'_>) {
        let update = match note {
            &Preparation::Hashing { hashed, total } => SendUpdate::Hashing { hashed, total },
            Preparation::Skipped(skipped) => {
                SendUpdate::Skipped { path: shown(&skipped.path), reason: skipped.reason.to_string() }
            }
            Preparation::NoNetwork(missing) => SendUpdate::Waiting { reason: missing.to_string() },
            Preparation::GroupInUse { to, whom, .. } => {
                SendUpdate::Waiting { reason: format!("{to} is in use by {whom}") }
            }
            _ => return,
        };
        (self.update)(update);
    }

    fn begin(&mut self, protocol: &P, files: &Scanned) {
        let sealed = protocol.basis().sealing.as_ref().map(crate::sealing::Sealing::sentence);
        (self.update)(SendUpdate::Began { name: files.name.clone(), octets: files.octets(), sealed });
        self.began = None;
    }

    fn observe(
        &mut self,
        now: Time,
        (protocol, sender): (&P, &SenderOf<P>),
        notice: &NoticeOf<'_, P>,
        told: Option<SendEvent>,
    ) {
        if sender.phase() == Phase::Sending {
            self.began.get_or_insert(now);
        }
        let sentence = match notice {
            SendNotice::Event(_) => {
                if let Some(event) = told {
                    (self.update)(SendUpdate::Event(event));
                }
                return;
            }
            SendNotice::Tick(_) => {
                let progress = self.progress(now, protocol, sender);
                return (self.update)(SendUpdate::Progress(progress));
            }
            SendNotice::Path(PathNotice::Waiting { why }) => {
                return (self.update)(SendUpdate::Waiting { reason: why.to_string() });
            }
            SendNotice::Path(notice) => path_sentence(notice),
            SendNotice::Revoked { name } => {
                format!("{name} is trusted no more: it can open nothing that is sent from now on")
            }
            SendNotice::Changed { file, name } => format!("{name} {}", file.change.words_while_sent()),
        };
        (self.update)(SendUpdate::Notice { sentence });
    }

    fn again(&mut self, report: &ReportOf<P>) {
        (self.update)(SendUpdate::Again { changed: changed_files(&report.changed) });
    }
}

impl Updates<'_> {
    fn progress<P: SendProtocol>(&self, now: Time, protocol: &P, sender: &SenderOf<P>) -> SendProgress {
        let RoundProgress { round, sent, segments } = sender.progress();
        let tally = protocol.tally(sender);
        SendProgress {
            phase: sender.phase().word(),
            round,
            sent,
            segments: segments.max(sent),
            elapsed: self.began.map_or(Span::ZERO, |began| now.since(began)),
            complete: tally.confirmed as usize,
            receivers: tally.known as usize,
        }
    }
}

/// Returns the sentence about a sender's path and sockets.
fn path_sentence(notice: &PathNotice<'_>) -> String {
    match notice {
        PathNotice::Waiting { why } => format!("waiting: {why}"),
        PathNotice::Back => "going on: the way out is back".into(),
        PathNotice::Moved { address } => {
            format!("our address has changed: sending from {address} from now on")
        }
        PathNotice::Refused { why } => why.to_string(),
        PathNotice::Fragmenting { packet, .. } => {
            format!("the path carries packets of {packet} octets: datagrams leave in fragments")
        }
        PathNotice::Narrow { receiver, limit, .. } => {
            format!("the path to {} is narrow: datagrams leave in pieces of {limit} octets", receiver.ip())
        }
    }
}
