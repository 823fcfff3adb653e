//! Sending by NORM.

use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_delivery::{KeyNumber, Transport};
use farcast_files::{Entry, Outgoing};
use farcast_norm::settings::{PathLimits, SendPlan as Plan};
use farcast_norm::stream::StreamSender;
use farcast_norm::{Codec, ConfigError, Kind, NodeId, Norm, Object, Reached, Sender, SenderConfig, Settings};
use serde_json::Value;

use super::nack::{self, NackSendProtocol, NameRoom, SendLimits, SendNack, said_of};
use super::named::{Named, figures};
use super::stream::Stream;
use super::{Scanned, SendEvent, SendJob, destination, settings};
use crate::sealing::Sealing;
use crate::state::transmission;
use crate::{Error, ProtocolName};

/// Segments of a block of a stream. A request for a missing segment waits until the block has passed.
const BLOCK: u16 = 64;
/// Header of each segment of a stream, octets.
const SEGMENT_HEADER: u16 = 8;
/// Least and greatest window of a stream in octets, if the user gives none.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
/// Round trips within which a receiver that lacks data has asked three times.
const TRIPS: u64 = 48;

/// Sender of files by NORM.
pub type SendNorm = SendNack<Norm>;

impl SendNorm {
    /// Returns the configuration for sending `objects` from `source`.
    pub fn configuration(
        &self,
        job: &SendJob,
        objects: Vec<Object>,
        source: SocketAddr,
        instance: u16,
    ) -> SenderConfig {
        let plan = Plan {
            node: job.nack.node(source, self.number()),
            instance,
            objects,
            source,
            group: self.basis.to,
            ackers: self.named.nodes().collect(),
        };
        self.settings.sender(plan, self.path(job))
    }
}

impl NackSendProtocol for Norm {
    type Own = Reached;
    type Settings = Settings;
    type Config = SenderConfig;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Norm;

    fn settings(job: &SendJob, sealed: bool) -> Result<Settings, Error> {
        let mut settings = settings::read(job, |table| Settings::read(table))?;
        // Only the sender can open a sealed answer.
        settings.unicast |= sealed;
        Ok(settings)
    }

    fn limits(settings: &Settings) -> SendLimits {
        SendLimits { rate: settings.rate, burst: settings.burst, time: settings.time_limit }
    }

    fn configured(sender: &SendNorm, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let object = |entry: &Entry| {
            let (size, info, vouched) = said_of(job, entry);
            Object { kind: Kind::File, size, info, vouched }
        };
        let objects = files.entries().map(object).collect();
        sender.configuration(job, objects, source, instance(&files.objects))
    }

    fn name_room(_job: &SendJob, config: &SenderConfig) -> NameRoom {
        NameRoom { segment: config.segment_size.into(), beside: 0, longest: usize::MAX }
    }

    fn codec(sender: &SendNorm, _job: &SendJob) -> Codec {
        // The code does not depend on the objects or on the source address.
        let plan = Plan {
            node: NodeId::NONE,
            instance: 0,
            objects: Vec::new(),
            source: sender.basis.to,
            group: sender.basis.to,
            ackers: sender.named.nodes().collect(),
        };
        let config = sender.settings.sender(plan, PathLimits { headers: 28, mtu: None, granule: 1 });
        Codec { fec: config.fec }
    }

    fn engine(
        job: &SendJob,
        config: SenderConfig,
        source: SocketAddr,
        number: Option<KeyNumber>,
    ) -> Result<Sender, ConfigError> {
        Sender::new(SenderConfig { node: job.nack.node(source, number), source, ..config })
    }

    fn own_event(named: &Named, &Reached { node, object }: &Reached) -> Option<SendEvent> {
        Some(SendEvent::Reached { receiver: named.label(node), object: object.get().into() })
    }

    fn heard(sender: &Sender, node: NodeId) -> Option<Time> {
        sender.heard(node)
    }

    fn figures(sender: &Sender) -> Value {
        figures(sender.sent_per_round(), Some(sender.grtt()), sender.rejects())
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_norm::settings::in_effect(sender.config()))
    }
}

/// Returns an instance id that is the same for the same files and most likely another for other files. Receivers
/// thereby recognise the objects that they have.
fn instance(objects: &[Outgoing]) -> u16 {
    let mut hasher = blake3::Hasher::new();
    for one in objects {
        hasher.update(one.id().as_bytes());
    }
    let [a, b, ..] = *hasher.finalize().as_bytes();
    u16::from_be_bytes([a, b])
}

/// Returns the stream that `job` asks for.
///
/// # Errors
/// The job cannot be done as it is.
pub(super) fn stream<'a>(
    job: &'a SendJob,
    sealing: Option<&'a Sealing>,
) -> Result<Stream<'a, impl FnOnce(SocketAddr) -> Result<StreamSender, ConfigError>>, Error> {
    let mut settings = Norm::settings(job, sealing.is_some())?;
    if job.protocol.option("cc").is_some() {
        return Err(Error::usage("--cc is for files by NORM: a stream leaves at --rate"));
    }
    settings.block_len.get_or_insert(BLOCK);
    let (to, named) = (destination(job)?, nack::named(job, sealing)?);
    let (limit, rate) = (settings.time_limit, settings.rate);
    let ackers = named.keys().copied().collect();
    let make = move |source: SocketAddr| {
        let size = window(job, &settings);
        let plan = Plan {
            node: job.nack.node(source, sealing.map(Sealing::number)),
            // Each stream has another instance, because a stream is never sent again.
            instance: transmission() as u16,
            objects: vec![Object { kind: Kind::Data, size, info: Vec::new(), vouched: None }],
            source,
            group: to,
            ackers,
        };
        let config = settings.sender(plan, nack::path(job, to, sealing.is_some()));
        let header = if settings.segment_size.is_none() { SEGMENT_HEADER } else { 0 };
        StreamSender::new(SenderConfig { segment_size: config.segment_size - header, ..config })
    };
    Ok(Stream {
        protocol: ProtocolName::Norm,
        to,
        limit,
        socket: job.socket.socket(),
        transport: Transport::Udp,
        rate,
        sealing,
        named,
        make,
    })
}

/// Returns the octets of a stream that are kept for repair.
fn window(job: &SendJob, settings: &Settings) -> u64 {
    let trips = Span::from_nanos(settings.round_trip.as_nanos().saturating_mul(TRIPS));
    let octets = u128::from(trips.as_nanos()) * u128::from(settings.rate.as_bps()) / 8_000_000_000;
    let leaves = u64::try_from(octets).unwrap_or(u64::MAX);
    job.stream.window.map_or(leaves.clamp(KEPT.0, KEPT.1), |window| window.0)
}
