//! Streams: writing what a sender streams by NORM or PGM, as it arrives.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use farcast_delivery::{StreamEngine, StreamReceiverEngine, Transport};
use farcast_net::{
    ListenNotice, NetError, ReceiveSeal, SealCounts, StreamEnd, StreamNotice, StreamReceiveJob,
    StreamReceiveOptions,
};
use serde_json::Value;

use super::{ReceiveJob, ReceivePlace};
use crate::Error;
use crate::sealing;

/// Unit of places in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamUnit {
    /// Octets from the beginning of the stream.
    Octet,
    /// Sequence numbers of packets: the low 32 bits of a place. A place of 0 in all bits is the beginning.
    Number,
}

/// Event of a stream that is received.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// A stream is received.
    Joined {
        /// Its sender, in words.
        what: String,
        /// Kind of the sender's identifier.
        key: &'static str,
        /// Identifier of the sender, for programs.
        id: Value,
        /// Address of the sender.
        source: SocketAddr,
    },
    /// The sender at this address sends files and no stream.
    Files(SocketAddr),
    /// The stream begins or continues at a place that is not its beginning.
    Begins {
        /// The place.
        at: u64,
        /// Set if part of the stream before is missing.
        lacking: bool,
    },
    /// Part of the stream cannot be received any more.
    Gap {
        /// Beginning of the part.
        from: u64,
        /// End of the part, if that is known.
        to: Option<u64>,
        /// Sentence about it, unless the job does without it.
        what: Option<&'a str>,
    },
    /// Notice about the sockets.
    Listen(&'a ListenNotice<'a>),
}

/// Observer of a stream that is received.
pub trait StreamFace {
    /// Takes note of a missing network, which is waited for.
    fn waiting(&mut self, missing: &NetError);

    /// Takes note of the beginning.
    fn begin(&mut self, place: &ReceivePlace, unit: StreamUnit);

    /// Takes note of an event.
    fn event(&mut self, event: &StreamEvent<'_>);
}

/// Stream that has ended, or was left.
#[derive(Clone, Debug)]
pub struct StreamReceived {
    /// Reason for its end.
    pub end: StreamEnd,
    /// Sentence about the first part that could not be received, if one could not.
    pub lacks: Option<String>,
    /// Set if the sender left, or was silent for too long.
    pub gone: bool,
    /// Requests for repair that were made.
    pub requests: u64,
    /// Counts of the seal of a sealed stream.
    pub seal: Option<SealCounts>,
}

impl StreamReceived {
    /// Returns `true` if the whole stream was received.
    pub fn is_complete(&self) -> bool {
        self.lacks.is_none() && matches!(self.end, StreamEnd::Ended(_))
    }

    /// Returns the octets of the stream if it has ended, or `None` if its reader has what it wants.
    ///
    /// # Errors
    /// Part of the stream is missing, its sender has left, or the reception was stopped.
    pub fn result(&self) -> Result<Option<u64>, Error> {
        match (self.end, &self.lacks) {
            (StreamEnd::Ended(octets), None) => Ok(Some(octets)),
            // A reader that stops reading has what it wants.
            (StreamEnd::Unread, None) => Ok(None),
            (_, Some(sentence)) => Err(Error::failed(sentence.clone())),
            (StreamEnd::Stopped, None) if !self.gone => Err(stopped()),
            _ => Err(Error::failed("the sender has left before the stream's end")),
        }
    }
}

fn stopped() -> Error {
    Error::failed("stopped before the stream's end")
}

/// Protocol-specific parts of the reception of a stream.
pub(super) trait StreamProtocol {
    /// Engine of the receiver.
    type Engine: StreamReceiverEngine;

    /// Unit of places in the stream.
    const UNIT: StreamUnit;

    /// Makes the engine of the stream that `job` asks for.
    ///
    /// # Errors
    /// The job cannot be done as it is.
    fn open(job: &ReceiveJob, place: &ReceivePlace) -> Result<StreamReception<Self::Engine>, Error>;

    /// Returns the event for a user, or `None` if the sender has left, or was silent for too long.
    fn event(event: &<Self::Engine as StreamEngine>::Event) -> Option<StreamEvent<'static>>;

    /// Returns the number of requests for repair so far.
    fn requests(engine: &Self::Engine) -> u64;
}

/// Engine of a stream that is received, and how its datagrams arrive.
pub(super) struct StreamReception<E> {
    pub(super) engine: E,
    /// Random seed of losses on purpose.
    pub(super) seed: u64,
    pub(super) transport: Transport,
}

/// Receives a stream by the protocol `P` into `output`.
pub(super) fn run<P: StreamProtocol>(
    job: &ReceiveJob,
    place: &ReceivePlace,
    output: &mut impl Write,
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamReceived, Error> {
    let StreamReception { mut engine, seed, transport } = P::open(job, place)?;
    let socket = job.socket.socket();
    let mut say = |missing: &NetError| face.waiting(missing);
    if !farcast_net::wait_to_listen(place.from, place.source, &socket, stop, &mut say)? {
        return Err(stopped());
    }
    let options = StreamReceiveOptions { listen: place.listen(job, seed), transport };
    face.begin(place, P::UNIT);
    let scopes = sealing::scopes(job.protocol_name(), true, place.from);
    let seal = place.sealing.as_ref().map(|sealing| sealing.receiver(scopes, !job.nack.silent));
    let mut seal = seal.transpose()?;
    let mut progress = Progress { job, unit: P::UNIT, face, lacks: None, gone: false };
    let mut observer =
        |notice: &StreamNotice<'_, <P::Engine as StreamEngine>::Event>| progress.observe::<P>(notice);
    let reception = StreamReceiveJob { options: &options, seal: seal.as_mut(), stop };
    let end = farcast_net::receive_stream(reception, output, &mut engine, &mut observer)?;
    let Progress { lacks, gone, .. } = progress;
    let seal = seal.as_ref().map(ReceiveSeal::counts);
    Ok(StreamReceived { end, lacks, gone, requests: P::requests(&engine), seal })
}

/// Progress of a stream that is received.
struct Progress<'a> {
    job: &'a ReceiveJob,
    unit: StreamUnit,
    face: &'a mut dyn StreamFace,
    /// Sentence about the first part of the stream that cannot be received.
    lacks: Option<String>,
    gone: bool,
}

impl Progress<'_> {
    /// Takes note of a notice. Returns `false` if the reception should end.
    fn observe<P: StreamProtocol>(
        &mut self,
        notice: &StreamNotice<'_, <P::Engine as StreamEngine>::Event>,
    ) -> bool {
        match *notice {
            StreamNotice::Event(event) => match P::event(event) {
                Some(event) => self.face.event(&event),
                None => self.gone = true,
            },
            StreamNotice::Begins(0) => {}
            StreamNotice::Begins(at) => {
                self.face.event(&StreamEvent::Begins { at, lacking: self.lacks.is_some() });
            }
            StreamNotice::Gap(from, to) => return self.gap(from, to),
            StreamNotice::Listen(ref notice) => self.face.event(&StreamEvent::Listen(notice)),
        }
        !self.gone
    }

    fn gap(&mut self, from: u64, to: Option<u64>) -> bool {
        let what = gap_sentence(self.unit, from, to);
        let wanted = !(from == 0 && self.job.stream.from_now);
        self.face.event(&StreamEvent::Gap { from, to, what: wanted.then_some(what.as_str()) });
        if !wanted {
            return true;
        }
        self.lacks.get_or_insert(what);
        self.job.stream.skip_gaps
    }
}

/// Returns the sentence about a part of a stream that cannot be received.
fn gap_sentence(unit: StreamUnit, from: u64, to: Option<u64>) -> String {
    match (unit, from, to) {
        (StreamUnit::Octet, 0, None) => {
            "the stream's beginning cannot be had any more (--from-now does without it)".to_owned()
        }
        (StreamUnit::Octet, from, None) => {
            format!("octets behind the first {from} of the stream cannot be had")
        }
        (StreamUnit::Octet, from, Some(to)) => format!("octets {from} to {to} of the stream cannot be had"),
        (StreamUnit::Number, from, None) => format!("what has numbers from {} on cannot be had", from as u32),
        (StreamUnit::Number, from, Some(to)) if from + 1 == to => {
            format!("what has number {} cannot be had", from as u32)
        }
        (StreamUnit::Number, from, Some(to)) => {
            format!("what has numbers {} to {} cannot be had", from as u32, (to - 1) as u32)
        }
    }
}
