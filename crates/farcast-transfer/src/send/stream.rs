//! Streams: sending what a reader gives, as it arrives, by NORM or PGM.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use farcast_core::{BitRate, Span};
use farcast_delivery::nack::{NodeId, SenderOutcome, StreamSenderEvent};
use farcast_delivery::{StreamSenderEngine, Transport};
use farcast_net::{
    PathNotice, SealCounts, SendSeal, SocketOptions, StreamSendJob, StreamSendNotice, StreamSendOptions,
};

use super::{Preparation, ReceiverState, SendJob, await_network, nack};
use crate::sealing::Sealing;
use crate::{Error, ProtocolName};

/// Observer of a stream that is sent.
pub trait StreamFace {
    /// Takes note of a step before data leaves.
    fn prepare(&mut self, note: &Preparation<'_>);

    /// Takes note of the beginning.
    fn begin(&mut self, stream: &StreamBegin<'_>);

    /// Takes note of an event.
    fn event(&mut self, event: &StreamEvent<'_>);
}

/// Facts on a stream that begins.
#[derive(Debug)]
pub struct StreamBegin<'a> {
    /// Protocol.
    pub protocol: ProtocolName,
    /// Destination.
    pub to: SocketAddr,
    /// Number of named receivers.
    pub named: usize,
    /// Keys of a sealed stream.
    pub sealing: Option<&'a Sealing>,
}

/// Event of a stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// Notice about the path and the sockets.
    Path(&'a PathNotice<'a>),
    /// A receiver, named here, is no longer trusted: it can open nothing from now on.
    Revoked(&'a str),
    /// A named receiver has everything up to the end.
    Has(String),
    /// A named receiver does not answer, and is waited for no longer.
    Lost(String),
}

/// Stream that has ended.
#[derive(Clone, Debug)]
pub struct StreamSent {
    /// Outcome.
    pub outcome: SenderOutcome,
    /// Octets of the stream.
    pub octets: u64,
    /// Counts of the seal of a sealed stream.
    pub seal: Option<SealCounts>,
    /// Named receivers with their states.
    pub receivers: Vec<ReceiverState>,
}

/// Parts of a stream that both protocols have.
pub(super) struct Stream<'a, M> {
    pub(super) protocol: ProtocolName,
    pub(super) to: SocketAddr,
    /// Longest wait for a network.
    pub(super) limit: Span,
    pub(super) socket: SocketOptions,
    pub(super) transport: Transport,
    pub(super) rate: BitRate,
    pub(super) sealing: Option<&'a Sealing>,
    pub(super) named: BTreeMap<NodeId, String>,
    /// Maker of the engine that sends from our own address.
    pub(super) make: M,
}

/// Sends what `input` gives as the `stream`.
pub(super) fn run<
    S: StreamSenderEngine<Event = StreamSenderEvent>,
    E: std::error::Error + Send + Sync + 'static,
>(
    job: &SendJob,
    stream: Stream<'_, impl FnOnce(SocketAddr) -> Result<S, E>>,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let Stream { protocol, to, limit, socket, transport, rate, sealing, named, make } = stream;
    await_network(job, to, limit, &mut |note| face.prepare(&note), stop)?;
    face.begin(&StreamBegin { protocol, to, named: named.len(), sealing });
    let mut seal = nack::seal(job, to, rate, sealing)?;
    let options = StreamSendOptions { to, socket, transport, lines: job.stream.lines };
    let mut result = SenderOutcome::Aborted;
    let mut states: BTreeMap<NodeId, &str> = named.keys().map(|&node| (node, "is to acknowledge")).collect();
    let label = |node: NodeId| named.get(&node).cloned().unwrap_or_else(|| node.to_string());
    let mut observer = |_: &S, notice: &StreamSendNotice<'_, S::Event>| match notice {
        StreamSendNotice::Event(event) => match **event {
            StreamSenderEvent::Acknowledged(node) => {
                states.insert(node, "has everything");
                face.event(&StreamEvent::Has(label(node)));
            }
            StreamSenderEvent::Lost(node) => {
                states.insert(node, "did not acknowledge");
                face.event(&StreamEvent::Lost(label(node)));
            }
            StreamSenderEvent::Ended(how) => result = how,
        },
        StreamSendNotice::Path(notice) => face.event(&StreamEvent::Path(notice)),
        StreamSendNotice::Revoked { name } => face.event(&StreamEvent::Revoked(name)),
    };
    let transmission = StreamSendJob { options: &options, seal: seal.as_mut(), stop };
    let engine = farcast_net::send_stream(transmission, input, make, &mut observer)?;
    let state = |(&node, state): (&NodeId, &&str)| ReceiverState {
        name: label(node),
        state: (*state).into(),
        complete: None,
    };
    Ok(StreamSent {
        outcome: result,
        octets: engine.octets(),
        seal: seal.as_ref().map(SendSeal::counts),
        receivers: states.iter().map(state).collect(),
    })
}
