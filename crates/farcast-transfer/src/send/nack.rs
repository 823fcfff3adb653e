//! Sending by NORM, MDP or PGM. Their receivers do not register, and ask for the data that they lack.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;

use farcast_core::engine::Engine;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::nack::{MOST_OBJECTS, NodeId, SenderEvent};
use farcast_delivery::{KeyNumber, PathLimits, Protocol, Vouched};
use farcast_files::names::first_meeting;
use farcast_files::{Entry, Outgoing, safe_path, shown_name};
use farcast_net::SendSeal;
use farcast_seal::Contents;
use serde_json::Value;

use super::named::{Named, judge};
use super::options::NackOptions;
use super::scanned::hashed;
use super::{
    Basis, EventOf, MakeSender, Preparation, ReceiverState, ReportOf, Scanned, SendEvent, SendJob,
    SendProtocol, SenderOf, Tally, Unconfirmed, Verdict, burst, datagram_to, destination, path_mtu,
};
use crate::sealing::{self, Sealing};
use crate::{Error, ProtocolName, node};

/// Protocol whose receivers ask for the data that they lack, as a sender of files sees it.
pub trait NackSendProtocol:
    Protocol<Sender: Engine<Event = SenderEvent<<Self as NackSendProtocol>::Own>>>
{
    /// Event that only this protocol has.
    type Own;
    /// Settings of a transfer.
    type Settings: Debug;
    /// Configuration of a sender.
    type Config;
    /// Error of a configuration that cannot be sent.
    type ConfigError: std::error::Error + Send + Sync + 'static;

    /// Name of the protocol.
    const NAME: ProtocolName;

    /// Reads the settings of `job`.
    ///
    /// # Errors
    /// Options contradict each other, or do not suit the protocol.
    fn settings(job: &SendJob, sealed: bool) -> Result<Self::Settings, Error>;

    /// Returns the limits of a transfer with `settings`.
    fn limits(settings: &Self::Settings) -> SendLimits;

    /// Returns the configuration for sending `files` from `source`.
    fn configured(
        sender: &SendNack<Self>,
        job: &SendJob,
        files: &Scanned,
        source: SocketAddr,
    ) -> Self::Config;

    /// Returns the room for the names of files.
    fn name_room(job: &SendJob, config: &Self::Config) -> NameRoom;

    /// Returns the codec of the protocol's messages.
    fn codec(sender: &SendNack<Self>, job: &SendJob) -> Self::Codec;

    /// Makes the engine of `config` that sends from `source`. In a sealed transfer this host's key has the `number`.
    ///
    /// # Errors
    /// The configuration cannot be sent.
    fn engine(
        job: &SendJob,
        config: Self::Config,
        source: SocketAddr,
        number: Option<KeyNumber>,
    ) -> Result<Self::Sender, Self::ConfigError>;

    /// Returns the message about an event that only this protocol has, or `None` if it needs none.
    fn own_event(_named: &Named, _event: &Self::Own) -> Option<SendEvent> {
        None
    }

    /// Returns the time at which `sender` heard the receiver `node` last. A protocol whose requests name no receiver
    /// does not know it.
    fn heard(_sender: &Self::Sender, _node: NodeId) -> Option<Time> {
        None
    }

    /// Returns the figures that are reported in the end, for programs.
    fn figures(sender: &Self::Sender) -> Value;

    /// Returns the values that came into effect, by the names of their options.
    fn in_effect(sender: &Self::Sender) -> Vec<(&'static str, String)>;
}

/// Limits of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// Highest rate.
    pub rate: BitRate,
    /// Octets that may leave together.
    pub burst: u64,
    /// Longest time of the transfer.
    pub time: Span,
}

/// Sender of files by the protocol `P`.
#[derive(Debug)]
pub struct SendNack<P: NackSendProtocol> {
    pub(super) basis: Basis,
    pub(super) settings: P::Settings,
    pub(super) named: Named,
    rate: BitRate,
}

impl<P: NackSendProtocol> SendNack<P> {
    /// Returns the settings in effect.
    pub fn settings(&self) -> &P::Settings {
        &self.settings
    }

    /// Returns the number of named receivers.
    pub fn named(&self) -> usize {
        self.named.len()
    }

    /// Returns the configuration for sending `files` from `source`.
    pub fn configured(&self, job: &SendJob, files: &Scanned, source: SocketAddr) -> P::Config {
        P::configured(self, job, files, source)
    }

    /// Checks that the engine takes the configuration for sending `files`.
    ///
    /// # Errors
    /// The configuration cannot be sent.
    pub fn check_configuration(&self, job: &SendJob, files: &Scanned) -> Result<(), Error> {
        let to = self.basis.to;
        P::engine(job, self.configured(job, files, to), to, self.number()).map(drop).map_err(Error::wrong)
    }

    /// Returns the number of this host's key in a sealed transfer.
    pub(super) fn number(&self) -> Option<KeyNumber> {
        self.basis.sealing.as_ref().map(Sealing::number)
    }

    /// Returns the properties of the path to the receivers.
    pub(super) fn path(&self, job: &SendJob) -> PathLimits {
        path(job, self.basis.to, self.basis.sealing.is_some())
    }
}

impl<P: NackSendProtocol> SendProtocol for SendNack<P> {
    type Protocol = P;
    type ConfigError = P::ConfigError;

    const NAME: ProtocolName = P::NAME;

    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error> {
        let settings = P::settings(job, sealing.is_some())?;
        let to = destination(job)?;
        let named = Named::new(P::NAME, sealing.is_some(), named(job, sealing.as_ref())?);
        let limits = P::limits(&settings);
        let burst = burst(Some(limits.rate), limits.burst);
        let basis = Basis { to, sealing, patience: limits.time, time_limit: limits.time, burst };
        Ok(Self { basis, settings, named, rate: limits.rate })
    }

    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
        scan(job, note)
    }

    fn check(&self, job: &SendJob, files: &Scanned) -> Result<(), Error> {
        let config = self.configured(job, files, self.basis.to);
        check_names::<P>(job, files, &P::name_room(job, &config))
    }

    fn destined(&self, _job: &SendJob) -> String {
        format!("for {}", whom(self.named.len()))
    }

    fn codec(&self, job: &SendJob) -> P::Codec {
        P::codec(self, job)
    }

    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error> {
        seal(job, self.basis.to, self.rate, self.basis.sealing.as_ref())
    }

    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error> {
        let (config, number) = (self.configured(job, files, self.basis.to), self.number());
        Ok(Box::new(move |source| P::engine(job, config, source, number)))
    }

    fn event(&mut self, now: Time, _sender: &SenderOf<Self>, event: &EventOf<Self>) -> Option<SendEvent> {
        self.named.event(now, event, P::own_event)
    }

    fn receivers(&self) -> Vec<ReceiverState> {
        self.named.receivers()
    }

    fn tally(&self, _sender: &SenderOf<Self>) -> Tally {
        self.named.tally()
    }

    fn unconfirmed(&self, _job: &SendJob, report: &ReportOf<Self>) -> Vec<Unconfirmed> {
        self.named.unconfirmed(|node| P::heard(&report.sender, node))
    }

    fn verdict(&self, _job: &SendJob, report: &ReportOf<Self>, late: bool) -> Verdict {
        judge(report, late, self.named.len() > 0, self.named.verdict(&report.end))
    }

    fn figures(&self, sender: &SenderOf<Self>) -> Value {
        P::figures(sender)
    }

    fn in_effect(sender: &SenderOf<Self>) -> Vec<(&'static str, String)> {
        P::in_effect(sender)
    }
}

impl NackOptions {
    /// Returns the node id of the sender at `source`. In a sealed transfer it follows from the `number` of the key.
    pub(super) fn node(&self, source: SocketAddr, number: Option<KeyNumber>) -> NodeId {
        let chosen = number.map(KeyNumber::sender).or(self.node);
        chosen.map_or_else(|| node::of_sender(source.ip()), NodeId)
    }
}

/// Returns the properties of the path to `to`.
pub(super) fn path(job: &SendJob, to: SocketAddr, sealed: bool) -> PathLimits {
    PathLimits { headers: sealing::signed_headers(to, sealed), mtu: path_mtu(job, to), granule: 1 }
}

/// Refuses options that do not go with a seal.
fn check(job: &SendJob, sealing: Option<&Sealing>) -> Result<(), Error> {
    if sealing.is_some() && job.nack.node.is_some() {
        return Err(Error::usage("--node: in what is sealed the node id follows from the key"));
    }
    if sealing.is_some() && job.protocol.option("answers") == Some("group") {
        return Err(Error::usage(
            "--answers group: what is sealed is answered to the sender, as nobody else could open it",
        ));
    }
    Ok(())
}

/// Makes the seal of a transfer to `to`, if it is sealed. Receivers do not register, so every receiver gets the same
/// keys. When a receiver finds forged data, the sender may be unable to repair it, so every datagram is signed.
pub fn seal(
    job: &SendJob,
    to: SocketAddr,
    rate: BitRate,
    sealing: Option<&Sealing>,
) -> Result<Option<SendSeal>, Error> {
    let datagram = datagram_to(job, to);
    let scope = sealing::scope(job.protocol_name(), job.stream.stream, to);
    sealing.map(|sealing| sealing.sender(scope, Contents::Signed, Some(rate), datagram)).transpose()
}

/// Scans the files that are sent, an object each.
fn scan(job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
    let mut skipped = Vec::new();
    let files = hashed(note, |progress| {
        let (files, left_out) = Outgoing::each(&job.paths, progress)?;
        skipped = left_out;
        Ok(files)
    })?;
    for one in &skipped {
        note(Preparation::Skipped(one));
    }
    check_meeting(job, &files)?;
    if files.len() > MOST_OBJECTS {
        return Err(Error::usage(format!("{} files: at most {MOST_OBJECTS} at a time", files.len())));
    }
    Ok(files)
}

/// Refuses two files that would have one name at receivers. A receiver that takes no hidden names renames a file whose
/// name begins with a dot.
fn check_meeting(job: &SendJob, files: &[Outgoing]) -> Result<(), Error> {
    let entries = files.iter().flat_map(|one| one.manifest().entries());
    let names: Vec<Vec<u8>> = entries.map(|entry| said_of(job, entry).1).collect();
    for hidden in [true, false] {
        let mapping = |name: &[u8]| safe_path(name, hidden, "");
        if let Some(met) = first_meeting(names.iter().map(Vec::as_slice), mapping) {
            return Err(Error::usage(format!(
                "\"{}\" and \"{}\" would both be {} at receivers: rename one, or send them one after the other into \
                 directories of their own",
                shown_name(&met.first),
                shown_name(&met.second),
                shown_name(&met.name)
            )));
        }
    }
    Ok(())
}

/// Checks that a datagram has room for the name of each file.
fn check_names<P: NackSendProtocol>(job: &SendJob, files: &Scanned, room: &NameRoom) -> Result<(), Error> {
    for entry in files.entries() {
        let (_, name, _) = said_of(job, entry);
        let needed = name.len() + room.beside;
        if needed <= room.segment && name.len() <= room.longest {
            continue;
        }
        let fits = name.len() <= room.longest && needed <= LARGEST_SEGMENT;
        let remedy = if fits { format!("--segment-size {needed} has room for it, ") } else { String::new() };
        return Err(Error::usage(format!(
            "the name of the file {} has {} octets, and {} has room for {} here: {remedy}--protocol mftp takes any, or give \
             the file a shorter name",
            shown_name(&name),
            name.len(),
            P::NAME.title(),
            room.longest.min(room.segment.saturating_sub(room.beside)),
        )));
    }
    Ok(())
}

/// Largest segment that `--segment-size` takes, in octets.
const LARGEST_SEGMENT: usize = 65_000;

/// Room for the names of files, in octets.
#[derive(Clone, Copy, Debug)]
pub struct NameRoom {
    /// Size of a segment, which holds the whole description of a file.
    pub segment: usize,
    /// Size of the description without the name.
    pub beside: usize,
    /// Length of the longest name, whatever the size of segments.
    pub longest: usize,
}

/// Returns the receivers in words, if `named` receivers are named.
pub fn whom(named: usize) -> String {
    match named {
        0 => "whoever listens".to_owned(),
        1 => "1 named receiver".to_owned(),
        n => format!("{n} named receivers"),
    }
}

/// Returns the nodes of `--receivers`, with the user's names for them. In a sealed transfer the nodes follow from keys.
pub(super) fn named(job: &SendJob, sealing: Option<&Sealing>) -> Result<BTreeMap<NodeId, String>, Error> {
    check(job, sealing)?;
    let receivers = &job.group.receivers;
    if let Some(sealing) = sealing {
        let node = |(number, name): (KeyNumber, &str)| (NodeId(number.receiver()), name.to_owned());
        return Ok(sealing.numbered(receivers).map(node).collect());
    }
    let mut nodes = BTreeMap::new();
    for name in receivers {
        let origin = job.group.origins.of(name);
        let node = node::of_name(name).map_err(|wrong| Error::usage(format!("{origin}{wrong}")))?;
        if let Some(other) = nodes.insert(node, name.clone()) {
            let origin = if origin.is_empty() { "--receivers: " } else { &origin };
            return Err(Error::usage(format!(
                "{origin}{other} and {name} are the same node: remove one of them"
            )));
        }
    }
    Ok(nodes)
}

/// Returns the description of a file for receivers: its size in octets, its name and its digest with other metadata.
/// The name is the path of the file. A file that is sent alone has the name that the user gave it.
pub(super) fn said_of(job: &SendJob, entry: &Entry) -> (u64, Vec<u8>, Option<Vouched>) {
    let vouched = entry.digest().map(|digest| Vouched { digest, mode: entry.mode, mtime_ns: entry.mtime_ns });
    let alone = job.paths.len() == 1 && !entry.path.contains(&b'/');
    let name = job.name.as_ref().filter(|_| alone);
    (entry.size(), name.map_or_else(|| entry.path.clone(), |name| name.clone().into_bytes()), vouched)
}
