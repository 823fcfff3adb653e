//! `farcast send --protocol pgm --stream`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_delivery::{Codec as _, Transport};
use farcast_net::SocketOptions;
use farcast_norm::NodeId;
use farcast_pgm::settings::Sent;
use farcast_pgm::stream::{StreamSender, StreamSenderConfig, StreamSenderEvent};
use farcast_pgm::{Codec, Sending, Settings};

use super::{Stream, Told, send};
use crate::args::SendArgs;
use crate::sealing::Sealing;
use crate::send::nack::named;
use crate::send::pgm::{node, on_wire, outcome, session, settings, way};
use crate::send::{destination, socket_options};
use crate::{Exit, Failure};

pub(in crate::send) fn run(args: &SendArgs, sealing: Option<&Sealing>) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    let to = destination(args)?;
    let named = named(args, sealing)?;
    let transport = Codec { raw: args.pgm.raw }.transport();
    if transport != Transport::Udp && args.pgm.unicast_port.is_some() {
        return Err(Failure::usage("--unicast-port is of UDP, and --raw does without"));
    }
    let socket = socket_options(&args.socket);
    let socket = SocketOptions { port: args.pgm.unicast_port.unwrap_or(socket.port), ..socket };
    let stream =
        Stream { by: "PGM", to, limit: settings.time_limit, socket, transport, rate: settings.rate, sealing };
    let make = |source| StreamSender::new(configuration(args, (&settings, sealing), &named, (source, to)));
    let told = |event: &StreamSenderEvent| match *event {
        StreamSenderEvent::Acknowledged(who) => Told::Acknowledged(node(who)),
        StreamSenderEvent::Lost(who) => Told::Lost(node(who)),
        StreamSenderEvent::Ended(how) => Told::Ended(outcome(how)),
    };
    send(args, (&stream, &named), make, &told, &StreamSender::octets)
}

fn configuration(
    args: &SendArgs,
    (settings, sealing): (&Settings, Option<&Sealing>),
    named: &BTreeMap<NodeId, String>,
    (source, to): (SocketAddr, SocketAddr),
) -> StreamSenderConfig {
    let sent = Sent {
        tsi: session((source, to), sealing),
        sending: Sending::Messages,
        source,
        group: to,
        named: named.keys().map(|node| farcast_pgm::NodeId(node.0)).collect(),
    };
    let kept = args.stream.window.map(|window| window.0);
    let sender = on_wire(args, settings.stream(sent, way(args, (to, sealing.is_some())), kept));
    StreamSenderConfig { sender, messages: args.stream.lines }
}
