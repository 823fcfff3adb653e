//! `farcast receive --stream`: writes a sender's stream to standard output.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use clap::Args;
use farcast_delivery::{StreamEngine, StreamReceiverEngine, Transport};
use farcast_net::{ReceiveSeal, StreamEnd, StreamNotice, StreamReceiveOptions};
use serde_json::{Value, json};

use super::narrow::Narrow;
use super::{Heard, waiting};
use crate::args::ReceiveArgs;
use crate::output::Output;
use crate::progress::size;
use crate::protocols::NORM_AND_PGM;
use crate::sealing::{self, Sealing};
use crate::send::socket_options;
use crate::{Exit, Failure};

mod norm;
mod pgm;

pub(super) use norm::run as by_norm;
pub(super) use pgm::run as by_pgm;

/// Streams.
#[derive(Args, Debug)]
#[command(next_help_heading = NORM_AND_PGM)]
pub(crate) struct StreamArgs {
    /// Write the stream that is sent to standard output, until its end.
    #[arg(long)]
    pub(crate) stream: bool,
    /// With --stream, begin with the next message instead of what the sender can still repair.
    #[arg(long, requires = "stream")]
    pub(crate) from_now: bool,
    /// With --stream, go on with the next message where octets cannot be had; otherwise that is the end.
    #[arg(long, requires = "stream")]
    pub(crate) skip_gaps: bool,
}

impl StreamArgs {
    /// Checks that options for streams come with `--stream`. Clap does not check this where another option conflicts
    /// with `--stream`.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if (self.from_now || self.skip_gaps) && !self.stream {
            return Err(Failure::usage("--from-now and --skip-gaps go with --stream"));
        }
        Ok(())
    }
}

/// Protocol-specific parts of the reception of a stream.
trait Face {
    /// Engine that receives the stream.
    type Engine: StreamReceiverEngine;

    /// Unit of places in the stream.
    const PLACE: Place;

    /// Returns the message about an event.
    fn told(event: &<Self::Engine as StreamEngine>::Event) -> Told;

    /// Returns the number of requests for repair so far.
    fn requests(engine: &Self::Engine) -> u64;
}

/// Unit of places in a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Octets from the beginning of the stream.
    Octet,
    /// Sequence numbers of packets: the low 32 bits of a place. A place of 0 in all bits is the beginning.
    Number,
}

/// Event of a stream that all protocols have.
enum Told {
    /// A stream is received: its description in words and for programs, and its source.
    Joined { what: String, known_as: (&'static str, Value), source: SocketAddr },
    /// The sender at this address sends files and no stream.
    Files(SocketAddr),
    /// The stream's sender has left, or was silent for too long.
    Gone,
}

/// Receives a stream to standard output.
fn receive<F: Face>(
    args: &ReceiveArgs,
    heard: &Heard,
    (mut engine, seed, transport): (F::Engine, u64, Transport),
) -> Result<Exit, Failure> {
    if args.output.json {
        return Err(Failure::usage("--json goes to standard output, and so does the stream: use --log"));
    }
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted_service(args.output.log.is_some())?;
    let socket = socket_options(&args.socket);
    let there = farcast_net::wait_to_listen(heard.from, heard.source, &socket, &stop, &mut |missing| {
        waiting(&mut output, missing);
    });
    let stopped = || Failure { sentence: "stopped before the stream's end".into(), exit: Exit::Failed };
    if !there.map_err(Failure::of_net)? {
        return Err(stopped());
    }
    let options = StreamReceiveOptions {
        from: heard.from,
        source: heard.source,
        accept: heard.accept.clone(),
        socket,
        transport,
        silent: args.nack.silent,
        simulate_loss: args.simulate_loss,
        seed,
    };
    // Standard output is not buffered, so that a reader gets each part as soon as it arrives.
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    let mut out =
        File::from(descriptor.map_err(|error| Failure::usage(format!("standard output: {error}")))?);
    let sealing = heard.sealing.as_ref();
    output.line(&sealing.map_or_else(|| "not sealed".into(), Sealing::sentence));
    let scopes = sealing::scopes(args.speaks(), true, heard.from);
    let mut seal = sealing.map(|sealing| sealing.receiver(scopes, !args.nack.silent)).transpose()?;
    let mut view = View { args, from: heard.from, place: F::PLACE, output, lacks: None, gone: false };
    let with = (&mut engine, seal.as_mut());
    let end =
        farcast_net::receive_stream(&options, &mut out, with, &stop, &mut |notice| view.observe::<F>(notice));
    let end = end.map_err(Failure::of_net)?;
    let complete = view.lacks.is_none() && matches!(end, StreamEnd::Ended(_));
    let counts = seal.as_ref().map(ReceiveSeal::counts);
    let requests = F::requests(&engine);
    let seal = sealing::summary(counts.as_ref());
    view.output.event("summary", json!({ "requests": requests, "complete": complete, "seal": seal }));
    if counts.is_some() {
        view.output.line(&sealing::closing(counts.as_ref()));
    }
    match (end, view.lacks) {
        (StreamEnd::Ended(octets), None) => {
            view.output.line(&format!("the stream has ended ({})", size(octets)));
            Ok(Exit::Done)
        }
        // A reader that stops reading has what it wants.
        (StreamEnd::Unread, None) => Ok(Exit::Done),
        (_, Some(sentence)) => Err(Failure { sentence, exit: Exit::Failed }),
        (StreamEnd::Stopped, None) if !view.gone => Err(stopped()),
        _ => Err(Failure {
            sentence: "the sender has left before the stream's end".into(),
            exit: Exit::Failed,
        }),
    }
}

/// Output for the user of a receiver.
struct View<'a> {
    args: &'a ReceiveArgs,
    from: SocketAddr,
    place: Place,
    output: Output,
    /// Sentence about the first part of the stream that cannot be received.
    lacks: Option<String>,
    gone: bool,
}

impl View<'_> {
    /// Reports a notice. Returns `false` if the reception should end.
    fn observe<F: Face>(&mut self, notice: &StreamNotice<'_, <F::Engine as StreamEngine>::Event>) -> bool {
        match *notice {
            StreamNotice::Listening => {
                self.output.line(&format!("listening on {}, the stream goes to standard output", self.from));
                self.output.event("listening", json!({}));
            }
            StreamNotice::Event(event) => match F::told(event) {
                Told::Joined { what, known_as: (key, id), source } => {
                    self.output.line(&format!("receiving a stream of {what} at {source}"));
                    self.output.event("joined", json!({ key: id, "sender": source.to_string() }));
                }
                Told::Files(source) => {
                    self.output.line(&format!(
                        "{source} sends files, no stream: nothing of it is taken; receive without --stream takes files"
                    ));
                    self.output.event("no_stream", json!({ "source": source.to_string() }));
                }
                Told::Gone => {
                    self.gone = true;
                    return false;
                }
            },
            StreamNotice::Refused(why) => {
                self.output.line(&format!("no answers leave: {why}"));
                self.output.event("blocked", json!({ "reason": why.to_string() }));
            }
            StreamNotice::Forgetful(why) => {
                self.output.line(&format!("nothing sealed is accepted: {why}"));
                self.output.event("forgetful", json!({ "reason": why.to_string() }));
            }
            StreamNotice::Unlike { source, why } => {
                let (kind, text) = sealing::unlike(why, source, self.args.seal.unsealed);
                self.output.line(&text);
                self.output.event(kind, json!({ "source": source.to_string() }));
            }
            StreamNotice::Narrow { source, datagram, passes, told } => {
                let narrow = Narrow { source, datagram, passes, told };
                self.output.line(&narrow.sentence());
                self.output.event("narrow", narrow.fields());
            }
            StreamNotice::Begins(0) => {}
            StreamNotice::Begins(at) => self.begins(at),
            StreamNotice::Gap(from, to) => return self.gap(from, to),
        }
        true
    }

    fn begins(&mut self, at: u64) {
        match self.place {
            Place::Octet => {
                self.output.line(&format!("it goes on {} from its beginning", size(at)));
                self.output.event("begins", json!({ "offset": at }));
            }
            Place::Number => {
                let begins = if self.lacks.is_some() { "goes on" } else { "is received from where it is," };
                let number = at as u32;
                self.output.line(&format!("it {begins} with number {number}"));
                self.output.event("begins", json!({ "number": number }));
            }
        }
    }

    fn gap(&mut self, from: u64, to: Option<u64>) -> bool {
        let what = match (self.place, from, to) {
            (Place::Octet, 0, None) => {
                "the stream's beginning cannot be had any more (--from-now does without it)".to_owned()
            }
            (Place::Octet, from, None) => {
                format!("octets behind the first {from} of the stream cannot be had")
            }
            (Place::Octet, from, Some(to)) => format!("octets {from} to {to} of the stream cannot be had"),
            (Place::Number, from, None) => format!("what has numbers from {} on cannot be had", from as u32),
            (Place::Number, from, Some(to)) if from + 1 == to => {
                format!("what has number {} cannot be had", from as u32)
            }
            (Place::Number, from, Some(to)) => {
                format!("what has numbers {} to {} cannot be had", from as u32, (to - 1) as u32)
            }
        };
        let said = |place: u64| if self.place == Place::Number { u64::from(place as u32) } else { place };
        self.output.event("gap", json!({ "from": said(from), "to": to.map(said) }));
        if from == 0 && self.args.stream.from_now {
            return true;
        }
        self.output.line(&what);
        self.lacks.get_or_insert(what);
        self.args.stream.skip_gaps
    }
}
