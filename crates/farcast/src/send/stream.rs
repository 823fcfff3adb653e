//! `farcast send --stream`: what standard input gives, by NORM.

use clap::Args;
use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_net::StreamSendOptions;
use farcast_norm::settings::{Sent, Way};
use farcast_norm::stream::{StreamSender, StreamSenderEvent};
use farcast_norm::{Kind, NodeId, Object, SenderConfig, SenderOutcome, Settings};
use serde_json::json;

use super::nack::named;
use super::norm::settings;
use super::{await_network, destination, socket_options};
use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::{Exit, Failure};

/// Streams.
#[derive(Args, Debug)]
#[command(next_help_heading = "NORM")]
pub(crate) struct StreamArgs {
    /// Send what standard input gives, until its end, as one stream to whoever runs `receive --stream`.
    #[arg(long)]
    pub(crate) stream: bool,
    /// With --stream, each line is a message, with which receivers that come late may begin.
    #[arg(long, requires = "stream")]
    pub(crate) lines: bool,
    /// With --stream, how many octets of what was sent are kept for repair [default: what leaves while receivers ask
    /// three times, 1 MiB to 64 MiB].
    #[arg(long, value_name = "SIZE", requires = "stream")]
    pub(crate) window: Option<Bytes>,
}

impl StreamArgs {
    /// What of it goes with a stream does. Where something conflicts with `--stream`, clap does not ask for it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if (self.lines || self.window.is_some()) && !self.stream {
            return Err(Failure::usage("--lines and --window go with --stream"));
        }
        Ok(())
    }
}

/// Segments of a block: what lacks of one waits until it is through.
const BLOCK: u16 = 64;
/// Octets that each segment says of itself.
const SEGMENT_HEADER: u16 = 8;
/// What is kept at least and at most where it isn't said.
const KEPT: (u64, u64) = (1 << 20, 64 << 20);
/// Round trips in which whoever lacks anything has asked three times.
const TRIPS: u64 = 48;

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let mut settings = settings(args)?;
    if args.norm.cc {
        return Err(Failure::usage("--cc is for files: a stream leaves at --rate"));
    }
    settings.block_len.get_or_insert(BLOCK);
    let to = destination(args)?;
    let named = named(&args.group.receivers)?;
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted()?;
    await_network(args, (to, settings.time_limit), &mut output, &stop)?;
    let whom =
        if named.is_empty() { "whoever listens".into() } else { format!("{} named receivers", named.len()) };
    output.line(&format!("sending standard input by NORM to {to}, for {whom}"));
    let make = |source| {
        let sent = Sent {
            node: args.nack.node(source),
            // Another each time: what is sent is not the same, whatever it is.
            instance: std::process::id() as u16 ^ (std::process::id() >> 16) as u16,
            objects: vec![Object {
                kind: Kind::Data,
                size: window(args, &settings),
                info: Vec::new(),
                vouched: None,
            }],
            source,
            group: to,
            ackers: named.keys().copied().collect(),
        };
        StreamSender::new(configuration(args, &settings, sent))
    };
    let options = StreamSendOptions { to, socket: socket_options(&args.socket), lines: args.stream.lines };
    let mut outcome = SenderOutcome::Aborted;
    let label = |node: &NodeId| named.get(node).cloned().unwrap_or_else(|| node.to_string());
    let mut observer = |_: &StreamSender, event: &StreamSenderEvent| match event {
        StreamSenderEvent::Acknowledged(node) => {
            output.line(&format!("{} has everything", label(node)));
            output.event("acknowledged", json!({ "receiver": label(node) }));
        }
        StreamSenderEvent::Lost(node) => {
            output.line(&format!("{} does not answer, and is not waited for any more", label(node)));
            output.event("lost", json!({ "receiver": label(node) }));
        }
        StreamSenderEvent::Ended(how) => outcome = *how,
    };
    let mut input = std::io::stdin().lock();
    let engine = farcast_net::send_stream(&options, &mut input, make, &stop, &mut observer);
    let engine = engine.map_err(Failure::of_net)?;
    output.event("summary", json!({ "outcome": super::named::word(outcome), "size_bytes": engine.octets() }));
    let sent = size(engine.octets());
    match outcome {
        SenderOutcome::Acknowledged => output.line(&format!("all named receivers have the stream ({sent})")),
        SenderOutcome::Unknown => {
            output.line(&format!("the stream was sent ({sent}); who has it is not known, nobody was named"));
        }
        _ => {
            let sentence = format!("the stream was sent ({sent}), and a named receiver lacks some of it");
            return Err(Failure { sentence, exit: Exit::Incomplete });
        }
    }
    Ok(Exit::Done)
}

/// Octets that are kept.
fn window(args: &SendArgs, settings: &Settings) -> u64 {
    let trips = Span::from_nanos(settings.round_trip.as_nanos().saturating_mul(TRIPS));
    let octets = u128::from(trips.as_nanos()) * u128::from(settings.rate.as_bps()) / 8_000_000_000;
    let leaves = u64::try_from(octets).unwrap_or(u64::MAX);
    args.stream.window.map_or(leaves.clamp(KEPT.0, KEPT.1), |window| window.0)
}

fn configuration(args: &SendArgs, settings: &Settings, sent: Sent) -> SenderConfig {
    let mtu = farcast_net::path_mtu(sent.group, &socket_options(&args.socket)).ok().flatten();
    let way = Way { headers: if sent.group.is_ipv6() { 48 } else { 28 }, mtu, granule: 1 };
    let mut config = settings.sender(sent, way);
    if settings.segment_size.is_none() {
        config.segment_size -= SEGMENT_HEADER;
    }
    config
}
