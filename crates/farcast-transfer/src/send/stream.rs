//! Streams: sending what a reader gives, as it arrives, by NORM or PGM.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Codec as _, StreamSenderEngine, Transport};
use farcast_net::{
    PathNotice, SealCounts, SendSeal, SocketOptions, StreamSendJob, StreamSendNotice, StreamSendOptions,
};
use farcast_norm::settings::PathLimits;
use farcast_norm::stream::{StreamSender as NormSender, StreamSenderEvent as NormEvent};
use farcast_norm::{Kind, NodeId, Object, SenderConfig, SenderOutcome};
use farcast_pgm::Sending;
use farcast_pgm::stream::{
    StreamSender as PgmSender, StreamSenderConfig as PgmConfig, StreamSenderEvent as PgmEvent,
};

use super::pgm::{on_wire, session, way};
use super::{Preparation, ReceiverState, SendJob, await_network, destination, nack, norm, path_mtu, pgm};
use crate::sealing::{Sealing, signed_headers};
use crate::{Error, ProtocolName};

/// Segments of a block by NORM. A request for a missing segment waits until the block has passed.
const BLOCK: u16 = 64;
/// Header of each segment by NORM, octets.
const SEGMENT_HEADER: u16 = 8;
/// Least and greatest window in octets, if the user gives none.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
/// Round trips within which a receiver that lacks data has asked three times.
const TRIPS: u64 = 48;

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

/// Sends what `input` gives, until its end or until `stop` is set.
///
/// # Errors
/// The job cannot be done as it is, or the transfer could not go on.
pub fn send_stream(
    job: &SendJob,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let sealing = super::prepare(job)?;
    match job.protocol_name() {
        ProtocolName::Norm => by_norm(job, sealing.as_ref(), input, face, stop),
        ProtocolName::Pgm => by_pgm(job, sealing.as_ref(), input, face, stop),
        other => Err(Error::usage(format!("--stream goes with --protocol norm or pgm, and this is {other}"))),
    }
}

/// Parts of a stream that both protocols have.
struct Stream<'a> {
    protocol: ProtocolName,
    to: SocketAddr,
    /// Longest wait for a network.
    limit: Span,
    socket: SocketOptions,
    transport: Transport,
    rate: BitRate,
    sealing: Option<&'a Sealing>,
    named: BTreeMap<NodeId, String>,
}

/// Event of a stream's engine that both protocols have.
enum Told {
    Acknowledged(NodeId),
    Lost(NodeId),
    Ended(SenderOutcome),
}

fn by_norm(
    job: &SendJob,
    sealing: Option<&Sealing>,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let mut settings = norm::settings(job, sealing.is_some())?;
    if job.protocol.option("cc").is_some() {
        return Err(Error::usage("--cc is for files by NORM: a stream leaves at --rate"));
    }
    settings.block_len.get_or_insert(BLOCK);
    let stream = Stream {
        protocol: ProtocolName::Norm,
        to: destination(job)?,
        limit: settings.time_limit,
        socket: job.socket.socket(),
        transport: Transport::Udp,
        rate: settings.rate,
        sealing,
        named: nack::named(job, sealing)?,
    };
    let (to, ackers) = (stream.to, stream.named.keys().copied().collect());
    let make = |source: SocketAddr| {
        let plan = farcast_norm::settings::SendPlan {
            node: job.nack.node(source, sealing),
            // The instance differs in each run, because a stream is never sent again.
            instance: std::process::id() as u16 ^ (std::process::id() >> 16) as u16,
            objects: vec![Object {
                kind: Kind::Data,
                size: window(job, &settings),
                info: Vec::new(),
                vouched: None,
            }],
            source,
            group: to,
            ackers,
        };
        let headers = signed_headers(to, sealing.is_some());
        let config = settings.sender(plan, PathLimits { headers, mtu: path_mtu(job, to), granule: 1 });
        let header = if settings.segment_size.is_none() { SEGMENT_HEADER } else { 0 };
        NormSender::new(SenderConfig { segment_size: config.segment_size - header, ..config })
    };
    let told = |event: &NormEvent| match *event {
        NormEvent::Acknowledged(node) => Told::Acknowledged(node),
        NormEvent::Lost(node) => Told::Lost(node),
        NormEvent::Ended(how) => Told::Ended(how),
    };
    let engine = StreamMaker { make, told: &told, octets: &NormSender::octets };
    run(job, stream, engine, input, face, stop)
}

/// Returns the octets that are kept for repair by NORM.
fn window(job: &SendJob, settings: &farcast_norm::Settings) -> u64 {
    let trips = Span::from_nanos(settings.round_trip.as_nanos().saturating_mul(TRIPS));
    let octets = u128::from(trips.as_nanos()) * u128::from(settings.rate.as_bps()) / 8_000_000_000;
    let leaves = u64::try_from(octets).unwrap_or(u64::MAX);
    job.stream.window.map_or(leaves.clamp(KEPT.0, KEPT.1), |window| window.0)
}

fn by_pgm(
    job: &SendJob,
    sealing: Option<&Sealing>,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let settings = pgm::settings(job)?;
    let transport = farcast_pgm::Codec { raw: job.pgm.raw }.transport();
    if transport != Transport::Udp && job.pgm.unicast_port.is_some() {
        return Err(Error::usage("--unicast-port is of UDP, and --raw does without"));
    }
    let socket = job.socket.socket();
    let stream = Stream {
        protocol: ProtocolName::Pgm,
        to: destination(job)?,
        limit: settings.time_limit,
        socket: SocketOptions { port: job.pgm.unicast_port.unwrap_or(socket.port), ..socket },
        transport,
        rate: settings.rate,
        sealing,
        named: nack::named(job, sealing)?,
    };
    let to = stream.to;
    let named = stream.named.keys().copied().collect();
    let make = |source: SocketAddr| {
        let plan = farcast_pgm::settings::SendPlan {
            tsi: session(source, to, sealing.map(Sealing::number)),
            sending: Sending::Messages,
            source,
            group: to,
            named,
        };
        let kept = job.stream.window.map(|window| window.0);
        let sender = on_wire(job, settings.stream(plan, way(job, to, sealing.is_some()), kept));
        PgmSender::new(PgmConfig { sender, messages: job.stream.lines })
    };
    let told = |event: &PgmEvent| match *event {
        PgmEvent::Acknowledged(who) => Told::Acknowledged(who),
        PgmEvent::Lost(who) => Told::Lost(who),
        PgmEvent::Ended(how) => Told::Ended(how),
    };
    let engine = StreamMaker { make, told: &told, octets: &PgmSender::octets };
    run(job, stream, engine, input, face, stop)
}

/// Engine of a stream: how it is made, and how it is read.
struct StreamMaker<'a, S: StreamSenderEngine, M> {
    /// Makes the engine for our own address.
    make: M,
    /// Translates an event.
    told: &'a dyn Fn(&S::Event) -> Told,
    /// Returns the octets that the engine was given.
    octets: &'a dyn Fn(&S) -> u64,
}

/// Sends by the engine of `maker`.
fn run<S: StreamSenderEngine, E: std::error::Error + Send + Sync + 'static>(
    job: &SendJob,
    stream: Stream<'_>,
    maker: StreamMaker<'_, S, impl FnOnce(SocketAddr) -> Result<S, E>>,
    input: &mut (impl Read + AsFd),
    face: &mut dyn StreamFace,
    stop: &AtomicBool,
) -> Result<StreamSent, Error> {
    let StreamMaker { make, told, octets } = maker;
    let Stream { protocol, to, limit, socket, transport, rate, sealing, named } = stream;
    await_network(job, to, limit, &mut |note| face.prepare(&note), stop)?;
    face.begin(&StreamBegin { protocol, to, named: named.len(), sealing });
    let mut seal = nack::seal(job, to, rate, sealing)?;
    let options = StreamSendOptions { to, socket, transport, lines: job.stream.lines };
    let mut result = SenderOutcome::Aborted;
    let mut states: BTreeMap<NodeId, &str> = named.keys().map(|&node| (node, "is to acknowledge")).collect();
    let label = |node: NodeId| named.get(&node).cloned().unwrap_or_else(|| node.to_string());
    let mut observer = |_: &S, notice: &StreamSendNotice<'_, S::Event>| match notice {
        StreamSendNotice::Event(event) => match told(event) {
            Told::Acknowledged(node) => {
                states.insert(node, "has everything");
                face.event(&StreamEvent::Has(label(node)));
            }
            Told::Lost(node) => {
                states.insert(node, "did not acknowledge");
                face.event(&StreamEvent::Lost(label(node)));
            }
            Told::Ended(how) => result = how,
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
        octets: octets(&engine),
        seal: seal.as_ref().map(SendSeal::counts),
        receivers: states.iter().map(state).collect(),
    })
}
