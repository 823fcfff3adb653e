//! Receiving: from options to files, by any protocol.
//!
//! [`receive`] waits for the network, opens the keys and runs the protocol's engine over the network driver. What a
//! protocol does in its own way is in its [`ReceiveProtocol`]. Everything that a user may want to see goes to a
//! [`ReceiveFace`].
//!
//! | file | contents |
//! |---|---|
//! | `receive/options.rs` | choices of the caller |
//! | `receive/mftp.rs`, `norm.rs`, `mdp.rs`, `pgm.rs`, `one_way.rs` | one [`ReceiveProtocol`] each |
//! | `receive/nack.rs`, `receive/plain.rs` | parts that NORM, MDP and PGM share |
//! | `receive/stream.rs` | streams by NORM and PGM |

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use farcast_core::Time;
use farcast_core::engine::Engine;
use farcast_delivery::Protocol;
use farcast_files::{Durability, Naming, Options, Overwrite, StoreError};
use farcast_net::{ListenOptions, NetError, ReceiveNotice, ReceiveOptions, ReceiveReport};
use ipnet::IpNet;
use serde_json::Value;

use crate::host::{Endpoint, Family, Host};
use crate::sealing::{self, Sealing};
use crate::words::{counted, percent, rate, size};
use crate::{Error, ErrorKind, ProtocolName, names};

mod mdp;
mod mftp;
mod nack;
mod norm;
mod one_way;
pub mod options;
mod pgm;
mod plain;
pub mod stream;

pub use mdp::ReceiveMdp;
pub use mftp::ReceiveMftp;
pub use norm::ReceiveNorm;
pub use one_way::ReceiveOneWay;
pub use options::ReceiveJob;
pub use pgm::ReceivePgm;
use stream::{StreamFace, StreamReceived};

/// Engine of the receiver of `P`.
pub type ReceiverOf<P> = <<P as ReceiveProtocol>::Protocol as Protocol>::Receiver;
/// Event of the engine of `P`.
pub type EventOf<P> = <ReceiverOf<P> as Engine>::Event;
/// Notice of the network driver to a receiver of `P`.
pub type NoticeOf<'a, P> = ReceiveNotice<'a, EventOf<P>>;
/// Report of the network driver on an object of `P`.
pub type ReportOf<P> = ReceiveReport<EventOf<P>>;
/// Maker of the engine, from the octets of the kernel's receive buffer.
pub type MakeReceiver<P> =
    Box<dyn FnOnce(usize) -> Result<ReceiverOf<P>, <P as ReceiveProtocol>::ConfigError>>;

/// Protocol-specific parts of the reception of files.
pub trait ReceiveProtocol: Sized {
    /// Protocol of the reception.
    type Protocol: Protocol;
    /// Error of a configuration that cannot be used.
    type ConfigError: std::error::Error + Send + Sync + 'static;

    /// Name of the protocol.
    const NAME: ProtocolName;
    /// Set if a transmission may have several objects. A receiver with `--once` waits for all of them.
    const SEVERAL: bool = true;
    /// Set if objects without a list of ours are received, too.
    const PLAIN: bool = true;
    /// Sentence about an object that can no longer be completed.
    const MISSED: &'static str =
        "its sender cannot send it any more: it changed there, was removed, or is not remembered";

    /// Reads the settings of `job`.
    ///
    /// # Errors
    /// Options contradict each other, or do not suit the protocol.
    fn new(job: &ReceiveJob, place: &ReceivePlace) -> Result<Self, Error>;

    /// Returns the codec of the protocol's messages.
    fn codec(&self, job: &ReceiveJob) -> <Self::Protocol as Protocol>::Codec;

    /// Returns the random seed of losses on purpose.
    fn seed(&self) -> u64;

    /// Returns a function that makes the engine.
    fn engine(&self) -> MakeReceiver<Self>;

    /// Returns the message about an event of the protocol, or `None` if it needs none. This receiver's name is `own`.
    fn event(&self, _event: &EventOf<Self>, _own: &str) -> Option<ReceiveEvent> {
        None
    }

    /// Returns the result of the reception of an object, in one sentence.
    fn outcome(&self, report: &ReportOf<Self>) -> String {
        plain::outcome(report, Self::MISSED)
    }

    /// Returns the figures that only this protocol reports in the end, for programs.
    fn figures(&self, report: &ReportOf<Self>, _receiver: &ReceiverOf<Self>) -> Value {
        plain::figures(report)
    }
}

/// Message about an event of a protocol.
#[derive(Clone, PartialEq, Debug)]
pub struct ReceiveEvent {
    /// Line for people, if it needs one.
    pub line: Option<String>,
    /// Kind, in one word.
    pub kind: &'static str,
    /// Fields, for programs.
    pub fields: Value,
}

/// Observer of a reception, who shows it to a user.
pub trait ReceiveFace<P: ReceiveProtocol> {
    /// Takes note of a missing network, which is waited for.
    fn waiting(&mut self, missing: &NetError);

    /// Takes note of the beginning.
    fn begin(&mut self, place: &ReceivePlace);

    /// Takes note of what the network driver and the engine report.
    fn observe(&mut self, now: Time, protocol: &P, receiver: &ReceiverOf<P>, notice: &NoticeOf<'_, P>);
}

/// Addresses that a receiver hears, with names resolved, and its keys.
#[derive(Debug)]
pub struct ReceivePlace {
    /// Group, or our own address, and port.
    pub from: SocketAddr,
    /// Only sender that is heard, in a source-specific group.
    pub source: Option<IpAddr>,
    /// Senders that are accepted; empty to accept all.
    pub accept: Vec<IpNet>,
    /// Keys of sealed transfers.
    pub sealing: Option<Sealing>,
}

impl ReceivePlace {
    /// Checks the options that all protocols share, reads the keys and resolves the names.
    ///
    /// # Errors
    /// Options contradict each other, a key cannot be used, or a name has no address.
    pub fn of(job: &ReceiveJob) -> Result<Self, Error> {
        job.stream.check()?;
        job.name.iter().try_for_each(|name| names::check("--name", name))?;
        names::check_all("--trust", &job.trust)?;
        check_answer_port(job)?;
        if job.pgm.unicast_port.is_some() && !job.stream.stream {
            return Err(Error::usage("--unicast-port goes with --stream"));
        }
        let sealing = Sealing::to_receive(job)?;
        // A host that is given as an address fixes the family.
        let wanted = job.source.as_ref().and_then(Host::address).map(Family::of);
        let from = job.from.resolve("--from", wanted)?;
        if from.port() == 0 {
            return Err(Error::usage("--from must not have port 0: nobody could send there"));
        }
        let family = Family::of(from.ip());
        let source = job.source.as_ref().map(|host| host.resolve("--source", Some(family))).transpose()?;
        let accept: Result<Vec<_>, _> = job.accept.iter().map(|one| one.resolve("--accept")).collect();
        Ok(Self { from, source, accept: accept?.concat(), sealing })
    }

    /// Returns this receiver's name, or `None` if only its address identifies it.
    pub fn name(&self, job: &ReceiveJob) -> Option<String> {
        job.name.clone().or_else(|| self.sealing.as_ref().map(|sealing| sealing.name().to_owned()))
    }

    /// Returns the options of the sockets. `seed` is that of losses on purpose.
    fn listen(&self, job: &ReceiveJob, seed: u64) -> ListenOptions {
        ListenOptions {
            from: self.from,
            source: self.source,
            accept: self.accept.clone(),
            socket: job.socket.socket(),
            silent: job.nack.silent,
            simulate_loss: job.simulate_loss,
            seed,
        }
    }

    /// Returns this receiver's name, or its address if it has no name.
    pub fn own_name(&self, job: &ReceiveJob) -> String {
        self.name(job).unwrap_or_else(|| own_address(job, self.from).to_string())
    }
}

/// Receives what `job` asks for by the protocol `P`, until `stop` is set, or until the end of the one transmission that
/// the job wants. Returns the protocol and the report on the last object, if there was one.
///
/// # Errors
/// The job cannot be done as it is, or the reception could not go on.
pub fn receive<P: ReceiveProtocol>(
    job: &ReceiveJob,
    face: &mut impl ReceiveFace<P>,
    stop: &AtomicBool,
) -> Result<(P, Option<ReportOf<P>>), Error> {
    let place = ReceivePlace::of(job)?;
    let protocol = P::new(job, &place)?;
    let socket = job.socket.socket();
    let mut say = |missing: &NetError| face.waiting(missing);
    if !farcast_net::wait_to_listen(place.from, place.source, &socket, stop, &mut say)? {
        return Ok((protocol, None));
    }
    let options = ReceiveOptions {
        listen: place.listen(job, protocol.seed()),
        into: job.into.clone(),
        files: Options {
            durability: if job.no_sync { Durability::NoSync } else { Durability::Sync },
            overwrite: if job.keep_existing { Overwrite::Keep } else { Overwrite::Overwrite },
            hidden: job.hidden,
            quota: job.quota.quota(),
            vouched_only: true,
            naming: Naming::AtOnce,
            enduring: place.sealing.is_some(),
        },
        plain: P::PLAIN,
        once: job.once,
        discard: job.discard,
        wait_for_room: job.wait_for_room,
    };
    face.begin(&place);
    let mut seal = place.sealing.as_ref().map(|sealing| {
        let scopes = sealing::scopes(job.protocol_name(), false, place.from);
        sealing.receiver(scopes, P::NAME != ProtocolName::OneWay && !job.nack.silent)
    });
    let mut seal = seal.take().transpose()?;
    let (codec, make) = (protocol.codec(job), protocol.engine());
    let mut observer = |now: Time, receiver: &ReceiverOf<P>, notice: &NoticeOf<'_, P>| {
        face.observe(now, &protocol, receiver, notice);
    };
    let seal = seal.as_mut();
    let reception = farcast_net::ReceiveJob::<P::Protocol> { options: &options, codec: &codec, seal, stop };
    let last = farcast_net::receive(reception, make, &mut observer)?;
    Ok((protocol, last))
}

/// Receives a stream into `output`, until its end or until `stop` is set.
///
/// # Errors
/// The job cannot be done as it is, or the reception could not go on.
pub fn receive_stream(
    job: &ReceiveJob,
    output: &mut impl Write,
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamReceived, Error> {
    let place = ReceivePlace::of(job)?;
    match job.protocol_name() {
        ProtocolName::Norm => stream::run::<ReceiveNorm>(job, &place, output, face, stop),
        ProtocolName::Pgm => stream::run::<ReceivePgm>(job, &place, output, face, stop),
        other => Err(Error::usage(format!("--stream goes with --protocol norm or pgm, and this is {other}"))),
    }
}

/// Refuses options that do not go with `--answer-port`.
fn check_answer_port(job: &ReceiveJob) -> Result<(), Error> {
    let Some(port) = job.socket.answer_port else { return Ok(()) };
    if job.pgm.raw {
        return Err(Error::usage(
            "--answer-port is a UDP port, and --raw uses no UDP: leave one of them out",
        ));
    }
    let listened = match &job.from {
        Endpoint::Address(address) | Endpoint::Zoned { address, .. } => address.port(),
        Endpoint::Name { port, .. } => *port,
    };
    if port == listened {
        return Err(Error::usage(format!(
            "--answer-port {port} is the port that is listened to; answers leave from another"
        )));
    }
    if job.from.address().is_some_and(|address| !address.is_multicast()) {
        return Err(Error::usage(
            "--answer-port is for groups: at an address of its own a receiver answers from where it listens",
        ));
    }
    Ok(())
}

/// Returns our own address, as the network of `from` sees it.
fn own_address(job: &ReceiveJob, from: SocketAddr) -> IpAddr {
    farcast_net::own_address(from, &job.socket.socket()).unwrap_or(from.ip())
}

/// Returns the random seed of the receiver with this id: the chosen one, or else a seed that differs for each id. The
/// default is never the id itself. Engines derive their draws from the seed and the id, which cancel out if they are
/// equal. All receivers would then ask at the same instants.
fn seed_of(chosen: Option<u64>, id: u32) -> u64 {
    chosen.unwrap_or(!u64::from(id))
}

/// Returns the kind of the error for an object that is not complete. The kind is `Incomplete` if the receiver could not
/// use a file's name, and `Failed` otherwise.
pub fn kind_of<E>(report: &ReceiveReport<E>) -> ErrorKind {
    let named = |error: &NetError| {
        use StoreError as E;
        matches!(error, NetError::Store(E::Withheld { .. } | E::NamesMeet { .. } | E::ImpossibleName { .. }))
    };
    if report.error.as_ref().is_some_and(named) { ErrorKind::Incomplete } else { ErrorKind::Failed }
}

/// Returns the sentence about a sender that has left, and about files of it that never came.
pub fn never_came<E>(report: &ReceiveReport<E>) -> String {
    let (files, sender) = (counted(report.missed.into(), "file"), report.offer.sender);
    format!("{sender} has ended or fallen silent, and {files} that it had sent did not come: send them again")
}

/// Returns the share of an incomplete object that is here, and whether it is kept. The text `until` follows "kept".
fn kept<E>(report: &ReceiveReport<E>, until: &str) -> String {
    let have = percent(u64::from(report.have), u64::from(report.offer.geometry.segments()));
    if report.kept { format!("{have} is here and kept{until}") } else { "nothing of it is kept".into() }
}

/// Returns the size, time and rate of a complete object.
fn brought<E>(report: &ReceiveReport<E>) -> String {
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
