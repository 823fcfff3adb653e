//! Sending: from options to a finished transfer, by any protocol.
//!
//! [`send`] does what every transfer needs, in this order. It reads the settings, scans the files, waits for the network
//! and for the group, and runs the protocol's engine over the network driver. What a protocol does in its own way is in
//! its [`SendProtocol`]. Everything that a user may want to see goes to a [`SendFace`].
//!
//! | file | contents |
//! |---|---|
//! | `send/options.rs` | choices of the caller |
//! | `send/settings.rs`, `send/arguments.rs` | settings of a protocol, and their options |
//! | `send/scanned.rs` | files of a transfer |
//! | `send/face.rs` | steps, events, receivers and the verdict, as a user sees them |
//! | `send/mftp.rs`, `send/one_way.rs` | one [`SendProtocol`] each |
//! | `send/nack.rs`, `send/named.rs` | the [`SendProtocol`] of NORM, MDP and PGM |
//! | `send/norm.rs`, `mdp.rs`, `pgm.rs` | one [`NackSendProtocol`](nack::NackSendProtocol) each |
//! | `send/stream.rs` | streams by NORM and PGM |
//! | `send/turn.rs` | waiting for a group that another sender uses |

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::Engine;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::Protocol;
use farcast_files::{Change, ChangedFile, Outgoing};
use farcast_net::{NetError, SendNotice, SendOptions, SendReport, SendSeal, Waited};
use serde_json::Value;

use crate::host::{Endpoint, Family};
use crate::lock::Lock;
use crate::sealing::{self, Sealing};
use crate::{Error, ErrorKind, ProtocolName, names};

#[cfg(feature = "clap")]
mod arguments;
mod face;
mod mdp;
mod mftp;
pub mod nack;
mod named;
mod norm;
mod one_way;
pub mod options;
mod pgm;
mod scanned;
pub mod settings;
pub mod stream;
mod turn;

pub use face::{
    Controls, Lack, Preparation, ReceiverState, SendEvent, SendFace, SendOutcome, Standing, Tally,
    Unconfirmed, Verdict,
};
pub use mdp::SendMdp;
pub use mftp::{
    SendMftp, given_up, has_it, outcome_word as mftp_outcome_word, quit_reason,
    receiver_id as mftp_receiver_id, standing, state_words,
};
pub use named::{Named, outcome_word};
pub use norm::SendNorm;
pub use one_way::{OneWayObject, SendOneWay, how_long};
pub use options::{Changing, SendJob};
pub use pgm::SendPgm;
pub use scanned::{Scanned, product_name};
use stream::{StreamFace, StreamSent};
use turn::Turn;

/// Most changed files that a message names.
const MOST_CHANGED: usize = 10;
/// Most receivers that a message names.
const MOST_NAMED: usize = 10;
/// Longest time by which datagrams that leave together may be ahead of the clock.
const MOST_AHEAD: Span = Span::from_millis(1);
/// Highest number of transmissions, if files change during each.
const TRIES: usize = 10;

/// Engine of the sender of `P`.
pub type SenderOf<P> = <<P as SendProtocol>::Protocol as Protocol>::Sender;
/// Event of the engine of `P`.
pub type EventOf<P> = <SenderOf<P> as Engine>::Event;
/// Notice of the network driver to a sender of `P`.
pub type NoticeOf<'a, P> = SendNotice<'a, EventOf<P>>;
/// Report of the network driver on a transmission of `P`.
pub type ReportOf<P> = SendReport<SenderOf<P>>;
/// Maker of the engine that sends from an address.
pub type MakeSender<'a, P> =
    Box<dyn FnOnce(SocketAddr) -> Result<SenderOf<P>, <P as SendProtocol>::ConfigError> + 'a>;

/// Parts of a transfer that all protocols have.
#[derive(Debug)]
pub struct Basis {
    /// Destination of data.
    pub to: SocketAddr,
    /// Keys of a sealed transfer.
    pub sealing: Option<Sealing>,
    /// Longest wait for a path out of this host.
    pub patience: Span,
    /// Time after which the transfer is stopped from outside; [`Span::MAX`] if its engine does that.
    pub time_limit: Span,
    /// Time by which datagrams that leave together may be ahead of the clock.
    pub burst: Span,
}

/// Protocol-specific parts of sending files.
pub trait SendProtocol: Sized {
    /// Protocol of the transfer.
    type Protocol: Protocol;
    /// Error of a configuration that cannot be sent.
    type ConfigError: std::error::Error + Send + Sync + 'static;

    /// Name of the protocol.
    const NAME: ProtocolName;
    /// Option that sets the length of segments.
    const SEGMENT_SIZE: &'static str = "--segment-size";
    /// Set if the files are checked once more at the end. Some receivers of the protocol cannot detect data that
    /// differs from what was announced.
    const LOOKS_AGAIN: bool = true;

    /// Set if the engine itself notices other transmissions on its group.
    const HEARS_OTHERS: bool = false;

    /// Reads the settings of `job`.
    ///
    /// # Errors
    /// Options contradict each other, or do not suit the protocol.
    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error>;

    /// Returns the parts of a transfer that all protocols have.
    fn basis(&self) -> &Basis;

    /// Scans the files.
    ///
    /// # Errors
    /// A file cannot be read, or cannot be sent by this protocol.
    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error>;

    /// Checks that the protocol can send the files.
    ///
    /// # Errors
    /// The name of a file does not fit.
    fn check(&self, _job: &SendJob, _files: &Scanned) -> Result<(), Error> {
        Ok(())
    }

    /// Takes the locks of the group.
    ///
    /// # Errors
    /// Another sender has one, and the wait is over.
    fn lock(
        &self,
        turn: &mut Turn<'_>,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Locked, Error> {
        turn.lock(note, stop)
    }

    /// Returns the rest of the sentence that announces the transfer, such as "for 3 receivers".
    fn destined(&self, job: &SendJob) -> String;

    /// Returns the codec of the protocol's messages.
    fn codec(&self, job: &SendJob) -> <Self::Protocol as Protocol>::Codec;

    /// Makes the seal of one transmission.
    ///
    /// # Errors
    /// The keys cannot be read.
    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error>;

    /// Returns a function that makes the engine for the address that it sends from.
    ///
    /// # Errors
    /// The settings do not suit the files.
    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error>;

    /// Takes note of an event. Returns the message about it, or `None` if it needs none.
    fn event(&mut self, now: Time, sender: &SenderOf<Self>, event: &EventOf<Self>) -> Option<SendEvent>;

    /// Takes note of the end of a transmission.
    fn ended(&mut self, _job: &SendJob, _files: &Scanned, _report: &ReportOf<Self>) {}

    /// Waits until the group is free, if this transmission ended because another one was using the group.
    ///
    /// # Errors
    /// The group cannot be listened to.
    fn wait_after(
        _report: &ReportOf<Self>,
        _turn: &mut Turn<'_>,
        _note: &mut dyn FnMut(Preparation<'_>),
        _stop: &AtomicBool,
    ) -> Result<Waited, Error> {
        Ok(Waited::Over)
    }

    /// Turns a transmission that another sender ended into one that was stopped.
    fn stopped(_report: &mut ReportOf<Self>) {}

    /// Returns `true` if the transmission has ended so that changed files are sent again.
    fn again(job: &SendJob, report: &ReportOf<Self>) -> bool {
        job.changing == Changing::Again && !report.changed.is_empty()
    }

    /// Returns the known receivers with their states.
    fn receivers(&self) -> Vec<ReceiverState>;

    /// Returns the numbers of the receivers that `sender` knows.
    fn tally(&self, _sender: &SenderOf<Self>) -> Tally {
        Tally::default()
    }

    /// Returns the receivers that are not known to have everything, after a transmission.
    fn unconfirmed(&self, _job: &SendJob, _report: &ReportOf<Self>) -> Vec<Unconfirmed> {
        Vec::new()
    }

    /// Returns the result of the transmission.
    fn verdict(&self, job: &SendJob, report: &ReportOf<Self>, late: bool) -> Verdict;

    /// Returns the figures that only this protocol reports in the end, for programs.
    fn figures(&self, sender: &SenderOf<Self>) -> Value;

    /// Returns the values that came into effect, by the names of their options.
    fn in_effect(sender: &SenderOf<Self>) -> Vec<(&'static str, String)>;
}

/// Transfer that has ended.
pub struct Sent<P: SendProtocol> {
    /// Protocol, with what it knows of receivers.
    pub protocol: P,
    /// Files that were sent.
    pub files: Scanned,
    /// Report of the network driver.
    pub report: ReportOf<P>,
    /// Set if the time limit ended it.
    pub late: bool,
}

/// Locks of a group, held while this lives.
#[derive(Debug)]
pub struct Locked {
    /// Locks.
    pub locks: Vec<Lock>,
    /// Set if another sender was waited for.
    pub waited: bool,
}

impl<P: SendProtocol> Sent<P> {
    /// Returns the receivers that are not known to have everything.
    pub fn unconfirmed(&self, job: &SendJob) -> Vec<Unconfirmed> {
        self.protocol.unconfirmed(job, &self.report)
    }

    /// Returns the result of the transfer.
    pub fn verdict(&self, job: &SendJob) -> Verdict {
        self.protocol.verdict(job, &self.report, self.late)
    }
}

/// Checks options that all protocols share. Returns the keys of a sealed transfer.
///
/// # Errors
/// Options contradict each other, or a key cannot be used.
pub fn prepare(job: &SendJob) -> Result<Option<Sealing>, Error> {
    job.stream.check()?;
    names::check_all("--receivers", &job.group.receivers)?;
    check_answer_port(job)?;
    if job.pgm.unicast_port.is_some() && !job.stream.stream {
        return Err(Error::usage("--unicast-port goes with --stream"));
    }
    check_compress(job)?;
    Sealing::to_send(job)
}

/// Sends the files of `job` by the protocol `P`, again where files change and the job wants that.
///
/// # Errors
/// The job cannot be done as it is, or the transfer could not go on. The result of a transfer that ran to its end is
/// in [`SendProtocol::verdict`].
pub fn send<P: SendProtocol>(
    job: &SendJob,
    face: &mut impl SendFace<P>,
    controls: Controls<'_>,
) -> Result<Sent<P>, Error> {
    for number in 0..TRIES {
        match once(job, face, controls) {
            Ok(sent) if P::again(job, &sent.report) => face.again(&sent.report),
            // The options were right at the first try, so a later error is not wrong usage.
            Err(error) if number > 0 => return Err(Error { kind: ErrorKind::Failed, ..error }),
            ended => return ended,
        }
    }
    Err(Error::failed(format!(
        "files changed each of the {TRIES} times that they were sent; send a copy of them"
    )))
}

/// Sends once. Files that change meanwhile are not sent again.
fn once<P: SendProtocol>(
    job: &SendJob,
    face: &mut impl SendFace<P>,
    controls: Controls<'_>,
) -> Result<Sent<P>, Error> {
    let mut protocol = P::new(job, prepare(job)?)?;
    let mut files = scan(&protocol, job, face)?;
    protocol.check(job, &files)?;
    let &Basis { to, patience: limit, .. } = protocol.basis();
    await_network(job, to, limit, &mut |note| face.prepare(&note), controls.stop)?;
    let mut turn = Turn::new(job, to);
    let locked = protocol.lock(&mut turn, &mut |note| face.prepare(&note), controls.stop)?;
    let mut waited = locked.waited;
    if !P::HEARS_OTHERS {
        let codec = protocol.codec(job);
        waited |= turn.until_silent(&codec, &mut |note| face.prepare(&note), controls.stop)?;
    }
    if waited {
        // Files that have changed meanwhile are sent as they are now.
        files = scan(&protocol, job, face)?;
    }
    loop {
        face.begin(&protocol, &files);
        let sent = transmit(&mut protocol, job, &files, face, controls);
        let (mut report, late) = sent.inspect_err(|error| face.failed(error))?;
        let waited = match job.group.wait {
            Some(_) => P::wait_after(&report, &mut turn, &mut |note| face.prepare(&note), controls.stop)?,
            None => Waited::Over,
        };
        if waited == Waited::Free {
            await_network(job, to, limit, &mut |note| face.prepare(&note), controls.stop)?;
            files = scan(&protocol, job, face)?;
            continue;
        }
        if waited == Waited::Stopped {
            P::stopped(&mut report);
        }
        return Ok(Sent { protocol, files, report, late });
    }
}

/// Sends what `input` gives as a stream, until its end or until `stop` is set.
///
/// # Errors
/// The job cannot be done as it is, or the transfer could not go on.
pub fn send_stream(
    job: &SendJob,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let sealing = prepare(job)?;
    match job.protocol_name() {
        ProtocolName::Norm => stream::run(job, norm::stream(job, sealing.as_ref())?, input, face, stop),
        ProtocolName::Pgm => stream::run(job, pgm::stream(job, sealing.as_ref())?, input, face, stop),
        other => Err(Error::usage(format!("--stream goes with --protocol norm or pgm, and this is {other}"))),
    }
}

/// Scans the files of `job`.
///
/// # Errors
/// A file cannot be read, or cannot be sent by this protocol.
pub fn scan<P: SendProtocol>(
    protocol: &P,
    job: &SendJob,
    face: &mut impl SendFace<P>,
) -> Result<Scanned, Error> {
    let objects = protocol.scan(job, &mut |note| face.prepare(&note))?;
    let compressed = objects.first().filter(|_| job.compress).map(|one| one.manifest().compressed());
    if let Some(compressed) = &compressed {
        face.prepare(&Preparation::Compressed(compressed));
    }
    Ok(Scanned { name: product_name(job), objects, compressed })
}

/// Runs the engine once. Returns the report, and `true` if the time limit ended it.
fn transmit<P: SendProtocol>(
    protocol: &mut P,
    job: &SendJob,
    files: &Scanned,
    face: &mut impl SendFace<P>,
    Controls { start, stop }: Controls<'_>,
) -> Result<(ReportOf<P>, bool), Error> {
    let &Basis { to, burst, time_limit: limit, .. } = protocol.basis();
    let options = SendOptions {
        to,
        socket: job.socket.socket(),
        burst,
        changing: job.changing.of(),
        look_again: P::LOOKS_AGAIN,
    };
    let codec = protocol.codec(job);
    let mut seal = protocol.seal(job)?;
    let make = protocol.engine(job, files)?;
    let end = Time::ZERO + limit;
    let mut late = false;
    let mut observer = |now: Time, sender: &SenderOf<P>, notice: &NoticeOf<'_, P>| {
        let told = match notice {
            SendNotice::Event(event) => protocol.event(now, sender, event),
            _ => None,
        };
        face.observe(now, (&*protocol, sender), notice, told);
        if matches!(notice, SendNotice::Tick(_)) && now >= end {
            late = true;
            stop.store(true, Ordering::Relaxed);
        }
    };
    let objects = files.objects.clone();
    let (seal, codec, options) = (seal.as_mut(), &codec, &options);
    let transmission = farcast_net::SendJob::<P::Protocol> { objects, codec, seal, options, start, stop };
    let report = farcast_net::send(transmission, make, &mut observer)?;
    protocol.ended(job, files, &report);
    Ok((report, late))
}

/// Refuses options that do not go with `--answer-port`.
fn check_answer_port(job: &SendJob) -> Result<(), Error> {
    if job.socket.answer_port.is_none() {
        return Ok(());
    }
    if job.pgm.raw {
        return Err(Error::usage(
            "--answer-port is a UDP port, and --raw uses no UDP: leave one of them out",
        ));
    }
    if job.pgm.unicast_port.is_some() {
        return Err(Error::usage(
            "--unicast-port and --answer-port both say where to send from: leave one out",
        ));
    }
    if job.protocol_name() == ProtocolName::OneWay {
        return Err(Error::usage("--answer-port: nobody answers what is sent one way"));
    }
    Ok(())
}

/// Refuses options that do not go with `--compress`. Compression needs a list of files that names the compressed ones,
/// and receivers that understand the list.
fn check_compress(job: &SendJob) -> Result<(), Error> {
    if !job.compress {
        return Ok(());
    }
    if job.stream.stream {
        return Err(Error::usage(
            "--compress is for files, and --stream sends none: compress what goes into it, as with zstd",
        ));
    }
    if !matches!(job.protocol_name(), ProtocolName::Mftp | ProtocolName::OneWay) {
        return Err(Error::usage(
            "--compress needs the list of files that travels by MFTP and one way: leave out --protocol, or compress the \
             files before they are sent",
        ));
    }
    if job.group.draft {
        return Err(Error::usage(
            "--compress needs receivers that are farcast, and --draft is for others: leave one of them out",
        ));
    }
    Ok(())
}

/// Returns the destination, with its name resolved.
///
/// # Errors
/// The name has no address, or the port is 0.
pub fn destination(job: &SendJob) -> Result<SocketAddr, Error> {
    // A host that is given as an address fixes the family.
    let wanted = job.announce.as_ref().and_then(Endpoint::address).map(Family::of);
    let to = job.to.resolve("--to", wanted)?;
    if to.port() == 0 {
        return Err(Error::usage("--to must not have port 0"));
    }
    Ok(to)
}

/// Waits until the network has a path to the destination, up to `limit`.
///
/// # Errors
/// The limit has passed, or `stop` was set.
pub fn await_network(
    job: &SendJob,
    to: SocketAddr,
    limit: Span,
    note: &mut dyn FnMut(Preparation<'_>),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut say = |missing: &NetError| note(Preparation::NoNetwork(missing));
    if farcast_net::wait_to_send(to, &job.socket.socket(), limit, stop, &mut say)? {
        return Ok(());
    }
    Err(Error::failed("stopped before there was a way to send"))
}

/// Returns the octets of the longest IP packet that passes unfragmented to `to`, if this host knows.
pub fn path_mtu(job: &SendJob, to: SocketAddr) -> Option<u32> {
    farcast_net::path_mtu(to, &job.socket.socket()).ok().flatten()
}

/// Returns the octets of a datagram to `to` that passes unfragmented, as far as this host knows.
pub fn datagram_to(job: &SendJob, to: SocketAddr) -> usize {
    let mtu = path_mtu(job, to).unwrap_or(1500);
    (mtu as usize).saturating_sub(sealing::headers(to, false).into())
}

/// Returns the first few of `receivers` in a row, and the number of the others.
fn some<S: AsRef<str>>(receivers: &[S]) -> String {
    let (named, more) = receivers.split_at(receivers.len().min(MOST_NAMED));
    let mut words: Vec<String> = named.iter().map(|one| one.as_ref().to_owned()).collect();
    if !more.is_empty() {
        words.push(format!("and {} more", more.len()));
    }
    words.join(", ")
}

/// Returns the files that have changed, in words.
pub fn changed_files(changed: &[ChangedFile]) -> String {
    let one = |file: &ChangedFile| format!("\"{}\" {}", shown(&file.path), file.change.words_while_sent());
    let mut words: Vec<String> = changed.iter().take(MOST_CHANGED).map(one).collect();
    if changed.len() > MOST_CHANGED {
        words.push(format!("and {} more", changed.len() - MOST_CHANGED));
    }
    words.join(", ")
}

/// Returns the word that tells programs how a file changed.
pub fn change_word(change: Change) -> &'static str {
    match change {
        Change::Changed => "changed",
        Change::Removed => "removed",
        Change::Replaced => "replaced",
        Change::Unreadable => "unreadable",
    }
}

/// Returns a number of receivers in words.
pub fn receivers(n: usize) -> String {
    if n == 1 { "1 receiver".into() } else { format!("{n} receivers") }
}

/// Returns a path as it is shown.
pub fn shown(path: &Path) -> String {
    farcast_files::shown_name(path.as_os_str().as_bytes())
}

/// Returns the time by which a batch may be ahead of the clock: that of the burst at the rate, a millisecond at most.
fn burst(rate: Option<BitRate>, burst: u64) -> Span {
    rate.map_or(MOST_AHEAD, |rate| rate.time_of_bytes(burst).min(MOST_AHEAD))
}
