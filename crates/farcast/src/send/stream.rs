//! `farcast send --stream`: sends standard input as it arrives.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::Args;
use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span};
use farcast_delivery::{StreamSenderEngine, Transport};
use farcast_net::{SendSeal, SocketOptions, StreamSendNotice, StreamSendOptions};
use farcast_norm::{NodeId, SenderOutcome};
use serde_json::json;

use super::narrow::Narrow;
use super::{await_network, nack};
use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::protocols::NORM_AND_PGM;
use crate::sealing::{self, Sealing};
use crate::{Exit, Failure};

mod norm;
mod pgm;

pub(super) use norm::run as by_norm;
pub(super) use pgm::run as by_pgm;

/// Streams.
#[derive(Args, Debug)]
#[command(next_help_heading = NORM_AND_PGM)]
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
    /// Checks that options for streams come with `--stream`. Clap does not check this where another option conflicts
    /// with `--stream`.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if (self.lines || self.window.is_some()) && !self.stream {
            return Err(Failure::usage("--lines and --window go with --stream"));
        }
        Ok(())
    }
}

/// Settings of a stream that all protocols share.
struct Stream<'a> {
    /// Name of the protocol.
    by: &'static str,
    to: SocketAddr,
    /// Longest wait for a network.
    limit: Span,
    socket: SocketOptions,
    transport: Transport,
    /// Rate of sending.
    rate: BitRate,
    /// Keys of a sealed stream.
    sealing: Option<&'a Sealing>,
}

/// Event of a stream that all protocols have.
enum Told {
    /// A named receiver has everything up to the end.
    Acknowledged(NodeId),
    /// The sender waits for a named receiver no longer.
    Lost(NodeId),
    Ended(SenderOutcome),
}

/// Sends standard input by the engine that `make` makes. `told` translates its events, and `octets` returns the octets
/// that it was given.
fn send<S: StreamSenderEngine, E: std::error::Error + Send + Sync + 'static>(
    args: &SendArgs,
    (stream, named): (&Stream<'_>, &BTreeMap<NodeId, String>),
    make: impl FnOnce(SocketAddr) -> Result<S, E>,
    told: &dyn Fn(&S::Event) -> Told,
    octets: &dyn Fn(&S) -> u64,
) -> Result<Exit, Failure> {
    if args.protocol.predict.is_some() {
        return Err(Failure::usage("--predict is for files: how long a stream is, nobody knows"));
    }
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted()?;
    let &Stream { by, to, limit, transport, rate, sealing, .. } = stream;
    await_network(args, (to, limit), &mut output, &stop)?;
    let whom = nack::whom(named.len());
    output.line(&format!("sending standard input by {by} to {to}, for {whom}"));
    super::tell_seal(args, to, sealing, &mut output);
    let mut seal = nack::seal(args, (to, rate), sealing)?;
    let options =
        StreamSendOptions { to, socket: stream.socket.clone(), transport, lines: args.stream.lines };
    let mut outcome = SenderOutcome::Aborted;
    let mut states: BTreeMap<NodeId, &str> = named.keys().map(|&node| (node, "is to acknowledge")).collect();
    let label = |node: NodeId| named.get(&node).cloned().unwrap_or_else(|| node.to_string());
    let mut observer = |_: &S, notice: &StreamSendNotice<'_, S::Event>| match notice {
        StreamSendNotice::Refused(why) => {
            output.line(&why.to_string());
            output.event("blocked", json!({ "reason": why.to_string() }));
        }
        StreamSendNotice::Revoked { name } => {
            output.line(&format!("{name} is trusted no more, and opens nothing from now on"));
            output.event("revoked", json!({ "receiver": name }));
        }
        StreamSendNotice::Narrow { receiver, datagram, limit } => {
            let narrow = Narrow { receiver: *receiver, datagram: *datagram, limit: *limit };
            output.line(&narrow.sentence(None));
            output.event("narrow", narrow.fields(None));
        }
        StreamSendNotice::Event(event) => match told(event) {
            Told::Acknowledged(node) => {
                states.insert(node, "has everything");
                output.line(&format!("{} has everything", label(node)));
                output.event("acknowledged", json!({ "receiver": label(node) }));
            }
            Told::Lost(node) => {
                states.insert(node, "did not acknowledge");
                output.line(&format!("{} does not answer, and is not waited for any more; check that it receives with --stream", label(node)));
                output.event("lost", json!({ "receiver": label(node) }));
            }
            Told::Ended(how) => outcome = how,
        },
    };
    let mut input = std::io::stdin().lock();
    let engine = farcast_net::send_stream(&options, &mut input, (make, seal.as_mut()), &stop, &mut observer);
    let octets = octets(&engine.map_err(Failure::of_net)?);
    let counts = seal.as_ref().map(SendSeal::counts);
    let seal = sealing::summary(counts.as_ref());
    let exit = match outcome {
        SenderOutcome::Acknowledged | SenderOutcome::Unknown => Exit::Done,
        _ => Exit::Incomplete,
    };
    let receivers = states.iter().map(|(&node, state)| json!({ "receiver": label(node), "state": state }));
    let fields = json!({
        "outcome": super::named::word(outcome), "exit_code": exit as u8, "size_bytes": octets, "seal": seal,
        "receivers_known": !named.is_empty(), "receivers": receivers.collect::<Vec<serde_json::Value>>(),
    });
    output.event("summary", fields);
    if counts.is_some() {
        output.line(&sealing::closing(counts.as_ref()));
    }
    let sent = size(octets);
    match outcome {
        SenderOutcome::Acknowledged => output.line(&format!("all named receivers have the stream ({sent})")),
        SenderOutcome::Unknown => {
            output.line(&format!("the stream was sent ({sent}); who has it is not known, nobody was named"));
        }
        _ => {
            let sentence = format!("the stream was sent ({sent}), and a named receiver lacks some of it");
            return Err(Failure { sentence, exit });
        }
    }
    Ok(exit)
}
