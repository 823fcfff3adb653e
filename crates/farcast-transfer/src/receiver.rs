//! Receiving as a call: [`Receiver`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, ReceiverEngine};
use farcast_files::shown_name;
use farcast_net::{ListenNotice, NetError, ReceiveNotice};

use crate::cancel::Cancel;
use crate::host::Endpoint;
use crate::receive::{
    NoticeOf, ReceiveFace, ReceiveJob, ReceiveMdp, ReceiveMftp, ReceiveNorm, ReceiveOneWay, ReceivePgm,
    ReceivePlace, ReceiveProtocol, ReceiverOf, kind_of, never_came, receive,
};
use crate::{Error, ProtocolName, sealing};

/// Receiver of the transfers to a group, or to this host.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let receiver = farcast_transfer::Receiver::builder()
///     .from("239.255.1.1:5402")
///     .into("inbox")
///     .name("station-1")
///     .once()
///     .build()?;
/// for product in receiver.receive()? {
///     println!("{} from {}", product.name, product.sender);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Receiver {
    job: ReceiveJob,
    cancel: Cancel,
}

/// Choices of a [`Receiver`]. A choice that is not made has the default of the command line.
#[derive(Clone, Debug)]
#[must_use]
pub struct ReceiverBuilder {
    job: ReceiveJob,
    has_group: bool,
    has_directory: bool,
    /// First choice that makes no sense.
    error: Option<Error>,
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        let nowhere = Endpoint::Address(SocketAddr::from(([0, 0, 0, 0], 0)));
        let job = ReceiveJob::new(nowhere, PathBuf::new());
        Self { job, has_group: false, has_directory: false, error: None }
    }
}

impl ReceiverBuilder {
    /// Listens on this group, or on this address of the host. The default port is 5402, another follows the address, as
    /// in `239.255.1.1:5402`.
    pub fn from(mut self, group: &str) -> Self {
        match group.parse() {
            Ok(from) => (self.job.from, self.has_group) = (from, true),
            Err(error) => {
                self.error.get_or_insert_with(|| Error::usage(format!("the group {group:?}: {error}")));
            }
        }
        self
    }

    /// Puts files into this directory, and makes the directory if it is missing.
    pub fn into(mut self, directory: impl Into<PathBuf>) -> Self {
        (self.job.into, self.has_directory) = (directory.into(), true);
        self
    }

    /// Sets the name of this receiver; several receivers of one host need names.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.job.name = Some(name.into());
        self
    }

    /// Uses this protocol instead of MFTP.
    pub fn protocol(mut self, protocol: ProtocolName) -> Self {
        self.job.by = protocol;
        self
    }

    /// Ends after the first transmission.
    pub fn once(mut self) -> Self {
        self.job.once = true;
        self
    }

    /// Listens at this interface, by its name or address.
    pub fn interface(mut self, interface: impl Into<String>) -> Self {
        self.job.socket.interface = Some(interface.into());
        self
    }

    /// Opens with the key in this file instead of this host's own.
    pub fn key(mut self, file: impl Into<PathBuf>) -> Self {
        self.job.seal.key = Some(file.into());
        self
    }

    /// Opens nothing that is sealed, although this host has a key.
    pub fn unsealed(mut self) -> Self {
        self.job.seal.unsealed = true;
        self
    }

    /// Stops waiting for a sender that sends nothing for this time.
    pub fn patience(mut self, time: Span) -> Self {
        self.job.patience = time;
        self
    }

    /// Drops this share of the arriving datagrams, from 0 to 1, for trials.
    pub fn simulate_loss(mut self, part: f64) -> Self {
        match farcast_core::Probability::new(part) {
            Some(part) => self.job.simulate_loss = part,
            None => {
                self.error.get_or_insert_with(|| Error::usage(format!("{part} is no part from 0 to 1")));
            }
        }
        self
    }

    /// Returns the receiver.
    ///
    /// # Errors
    /// There is no group or no directory, or a choice makes no sense.
    pub fn build(self) -> Result<Receiver, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.has_group {
            return Err(Error::usage(
                "nothing says where to listen: give a group, as in from(\"239.255.1.1\")",
            ));
        }
        if !self.has_directory {
            return Err(Error::usage("nothing says where files go: give a directory, as in into(\"inbox\")"));
        }
        Ok(Receiver { job: self.job, cancel: Cancel::new() })
    }
}

impl From<ReceiveJob> for Receiver {
    fn from(job: ReceiveJob) -> Self {
        Self { job, cancel: Cancel::new() }
    }
}

impl Receiver {
    /// Begins to choose.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }

    /// Returns a handle that ends the reception.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Receives until it is cancelled, or with [`once`](ReceiverBuilder::once) until the first transmission has ended.
    /// Returns the complete products of that transmission. Without `once` the result is empty, and
    /// [`receive_with`](Self::receive_with) reports each product when it is complete.
    ///
    /// # Errors
    /// The choices do not suit, the reception failed, or the one transmission is not complete.
    pub fn receive(&self) -> Result<Vec<ReceivedProduct>, Error> {
        self.receive_with(&mut |_| {})
    }

    /// Receives as [`receive`](Self::receive) does, and passes events to `update`.
    ///
    /// # Errors
    /// The same errors as those of [`receive`](Self::receive).
    pub fn receive_with(&self, update: &mut dyn FnMut(ReceiveUpdate)) -> Result<Vec<ReceivedProduct>, Error> {
        match self.job.protocol_name() {
            ProtocolName::Mftp => self.run::<ReceiveMftp>(update),
            ProtocolName::Norm => self.run::<ReceiveNorm>(update),
            ProtocolName::Mdp => self.run::<ReceiveMdp>(update),
            ProtocolName::Pgm => self.run::<ReceivePgm>(update),
            ProtocolName::OneWay => self.run::<ReceiveOneWay>(update),
        }
    }

    fn run<P: ReceiveProtocol>(
        &self,
        update: &mut dyn FnMut(ReceiveUpdate),
    ) -> Result<Vec<ReceivedProduct>, Error> {
        let unsealed = self.job.seal.unsealed;
        let mut face = Updates {
            update,
            unsealed,
            joined: BTreeMap::new(),
            once: self.job.once,
            complete: Vec::new(),
            lacking: BTreeMap::new(),
        };
        let (protocol, last) = receive::<P>(&self.job, &mut face, self.cancel.flag())?;
        if !self.job.once {
            return Ok(face.complete);
        }
        let Some(report) = last else { return Err(Error::failed("cancelled before anything came")) };
        if !report.is_complete() {
            return Err(Error { kind: kind_of(&report), sentence: protocol.outcome(&report) });
        }
        // Objects that other senders announced and did not send are not missing.
        let sender = report.offer.sender;
        if let Some((_, error)) = face.lacking.into_iter().find(|((of, _), _)| P::SEVERAL && *of == sender) {
            return Err(error);
        }
        if report.missed > 0 {
            return Err(Error::failed(never_came(&report)));
        }
        Ok(face.complete)
    }
}

/// Event of a reception for its user.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ReceiveUpdate {
    /// The receiver listens.
    Listening {
        /// Address that is listened to.
        address: SocketAddr,
    },
    /// The receiver waits for something that is missing.
    Waiting {
        /// Sentence about it.
        reason: String,
    },
    /// A product is received.
    Joined {
        /// Name of the product.
        name: String,
        /// Address of its sender.
        sender: SocketAddr,
        /// Octets of the product.
        octets: u64,
    },
    /// Progress of a product, ten times a second.
    Progress {
        /// Name of the product.
        name: String,
        /// Segments that are here.
        have: u32,
        /// Segments in all.
        segments: u32,
    },
    /// A file is complete and has its final name.
    File {
        /// Path of the file below the receiving directory.
        path: String,
    },
    /// A product is complete.
    Complete(ReceivedProduct),
    /// The reception of a product has ended, and it is not complete.
    Incomplete {
        /// Name of the product.
        name: String,
        /// Sentence about it.
        reason: String,
    },
    /// Something that a user should know.
    Notice {
        /// Sentence about it.
        sentence: String,
    },
}

/// Product that is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedProduct {
    /// Name of the product.
    pub name: String,
    /// Address of its sender.
    pub sender: SocketAddr,
    /// Octets of the product.
    pub octets: u64,
    /// Time from joining to completion.
    pub duration: Span,
    /// Set if its content was verified by a digest that its sender vouches for.
    pub verified: bool,
}

/// Face that passes on the events.
struct Updates<'a> {
    update: &'a mut dyn FnMut(ReceiveUpdate),
    unsealed: bool,
    /// Products that are being received.
    joined: BTreeMap<ObjectId, String>,
    /// Set if the complete products are returned at the end.
    once: bool,
    complete: Vec<ReceivedProduct>,
    /// Objects that have ended incomplete, by sender and name, each with the reason.
    lacking: BTreeMap<(SocketAddr, Vec<u8>), Error>,
}

/// Most objects that are remembered as incomplete.
const MOST_LACKING: usize = 1 << 14;

impl<P: ReceiveProtocol> ReceiveFace<P> for Updates<'_> {
    fn waiting(&mut self, missing: &NetError) {
        (self.update)(ReceiveUpdate::Waiting { reason: missing.to_string() });
    }

    fn begin(&mut self, place: &ReceivePlace) {
        if let Some(sealing) = &place.sealing {
            (self.update)(ReceiveUpdate::Notice { sentence: sealing.sentence() });
        }
    }

    fn observe(&mut self, _now: Time, protocol: &P, receiver: &ReceiverOf<P>, notice: &NoticeOf<'_, P>) {
        let update = match notice {
            &ReceiveNotice::Listen(ListenNotice::Listening { address }) => {
                ReceiveUpdate::Listening { address }
            }
            ReceiveNotice::Listen(ListenNotice::Waiting { why }) => {
                ReceiveUpdate::Waiting { reason: why.to_string() }
            }
            ReceiveNotice::Joined { offer, .. } => {
                let name = shown_name(&offer.name);
                self.joined.insert(offer.object, name.clone());
                ReceiveUpdate::Joined { name, sender: offer.sender, octets: offer.geometry.size() }
            }
            ReceiveNotice::FileDone { path, .. } => ReceiveUpdate::File { path: (*path).to_owned() },
            ReceiveNotice::Tick => return self.progress::<P>(receiver),
            ReceiveNotice::Ended(report) => {
                let offer = &report.offer;
                let name = shown_name(&offer.name);
                self.joined.remove(&offer.object);
                if report.is_complete() {
                    // The object may have come from another address, after its sender was started again.
                    self.lacking.retain(|(_, name), _| *name != offer.name);
                    let product = ReceivedProduct {
                        name,
                        sender: offer.sender,
                        octets: offer.geometry.size(),
                        duration: report.duration,
                        verified: report.vouched,
                    };
                    // A receiver that runs for years would collect products without end.
                    if self.once {
                        self.complete.push(product.clone());
                    }
                    ReceiveUpdate::Complete(product)
                } else {
                    let reason = protocol.outcome(report);
                    if self.lacking.len() < MOST_LACKING {
                        let error = Error { kind: kind_of(report), sentence: reason.clone() };
                        self.lacking.insert((offer.sender, offer.name.clone()), error);
                    }
                    ReceiveUpdate::Incomplete { name, reason }
                }
            }
            other => {
                let Some(sentence) = sentence(other, self.unsealed) else { return };
                ReceiveUpdate::Notice { sentence }
            }
        };
        (self.update)(update);
    }
}

impl Updates<'_> {
    fn progress<P: ReceiveProtocol>(&mut self, receiver: &ReceiverOf<P>) {
        for (&object, name) in &self.joined {
            let Some(have) = receiver.have(object) else { continue };
            let (have, segments) = (have.count(), have.len());
            (self.update)(ReceiveUpdate::Progress { name: name.clone(), have, segments });
        }
    }
}

/// Returns the sentence about a notice that a user should know, if it is one.
fn sentence<E>(notice: &ReceiveNotice<'_, E>, unsealed: bool) -> Option<String> {
    Some(match notice {
        ReceiveNotice::Listen(notice) => listen_sentence(notice, unsealed),
        ReceiveNotice::Damaged { path, segments, .. } => {
            let what = path.unwrap_or("the list of files");
            format!("arrived damaged: {what}; {segments} segments are asked for again")
        }
        ReceiveNotice::NoRoom { error, wait } => {
            format!("the disk is full, waiting up to {wait} for room: {error}")
        }
        ReceiveNotice::Withheld { why, .. } => format!("not delivered: {why}"),
        ReceiveNotice::Refused(refusal) => refusal.to_string(),
        ReceiveNotice::Room => "there is room on the disk again".into(),
        _ => return None,
    })
}

/// Returns the sentence about a receiver's sockets, and about datagrams that were not accepted.
fn listen_sentence(notice: &ListenNotice<'_>, unsealed: bool) -> String {
    match notice {
        ListenNotice::Listening { address } => format!("listening on {address}"),
        ListenNotice::Waiting { why } => format!("waiting: {why}"),
        ListenNotice::Rejoined => "listening again".into(),
        ListenNotice::Blocked { why } => format!("no answers leave: {why}"),
        ListenNotice::Forgetful { why } => format!("nothing sealed is accepted: {why}"),
        ListenNotice::NotAccepted { source } => format!("what comes from {source} is not accepted"),
        ListenNotice::Unlike { source, why } => sealing::unlike(*why, *source, unsealed).1,
        ListenNotice::Narrow { source, datagram, .. } => {
            format!("no datagram of {datagram} octets arrives from {source}: the path carries less")
        }
    }
}
