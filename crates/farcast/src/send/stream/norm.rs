//! `farcast send --protocol norm --stream`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::Span;
use farcast_delivery::Transport;
use farcast_norm::settings::{Sent, Settings, Way};
use farcast_norm::stream::{StreamSender, StreamSenderEvent};
use farcast_norm::{Kind, NodeId, Object, SenderConfig};

use super::{Stream, Told, send};
use crate::args::SendArgs;
use crate::sealing::{Sealing, signed_headers};
use crate::send::nack::named;
use crate::send::norm::settings;
use crate::send::{destination, socket_options};
use crate::{Exit, Failure};

/// Segments of a block. A request for a missing segment waits until the block has passed.
const BLOCK: u16 = 64;
/// Header of each segment in octets.
const SEGMENT_HEADER: u16 = 8;
/// Least and greatest window in octets, if the user gives none.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
/// Round trips within which a receiver that lacks data has asked three times.
const TRIPS: u64 = 48;

pub(in crate::send) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let mut settings = settings(args, sealing)?;
    if args.norm.cc {
        return Err(Failure::usage("--cc is for files by NORM: a stream leaves at --rate"));
    }
    settings.block_len.get_or_insert(BLOCK);
    let to = destination(args)?;
    let named = named(args, sealing)?;
    let socket = socket_options(&args.socket);
    let stream = Stream {
        by: "NORM",
        to,
        limit: settings.time_limit,
        socket,
        transport: Transport::Udp,
        rate: settings.rate,
        sealing,
    };
    let make = |source| {
        let sent = sent(args, &settings, (&named, sealing), (source, to));
        StreamSender::new(configuration(args, (&settings, sealing.is_some()), sent))
    };
    let told = |event: &StreamSenderEvent| match *event {
        StreamSenderEvent::Acknowledged(node) => Told::Acknowledged(node),
        StreamSenderEvent::Lost(node) => Told::Lost(node),
        StreamSenderEvent::Ended(how) => Told::Ended(how),
    };
    send(args, (&stream, &named), make, &told, &StreamSender::octets)
}

fn sent(
    args: &SendArgs,
    settings: &Settings,
    (named, sealing): (&BTreeMap<NodeId, String>, Option<&Sealing>),
    (source, to): (SocketAddr, SocketAddr),
) -> Sent {
    Sent {
        node: args.nack.node(source, sealing),
        // The instance differs in each run, because a stream is never sent again.
        instance: std::process::id() as u16 ^ (std::process::id() >> 16) as u16,
        objects: vec![Object {
            kind: Kind::Data,
            size: window(args, settings),
            info: Vec::new(),
            vouched: None,
        }],
        source,
        group: to,
        ackers: named.keys().copied().collect(),
    }
}

/// Returns the octets that are kept for repair.
fn window(args: &SendArgs, settings: &Settings) -> u64 {
    let trips = Span::from_nanos(settings.round_trip.as_nanos().saturating_mul(TRIPS));
    let octets = u128::from(trips.as_nanos()) * u128::from(settings.rate.as_bps()) / 8_000_000_000;
    let leaves = u64::try_from(octets).unwrap_or(u64::MAX);
    args.stream.window.map_or(leaves.clamp(KEPT.0, KEPT.1), |window| window.0)
}

fn configuration(args: &SendArgs, (settings, sealed): (&Settings, bool), sent: Sent) -> SenderConfig {
    let mtu = farcast_net::path_mtu(sent.group, &socket_options(&args.socket)).ok().flatten();
    let way = Way { headers: signed_headers(sent.group, sealed), mtu, granule: 1 };
    let mut config = settings.sender(sent, way);
    if settings.segment_size.is_none() {
        config.segment_size -= SEGMENT_HEADER;
    }
    config
}
