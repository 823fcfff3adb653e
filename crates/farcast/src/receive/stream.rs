//! `farcast receive --stream`: what a sender of NORM streams, to standard output.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use clap::Args;
use farcast_net::{StreamEnd, StreamNotice, StreamReceiveOptions};
use farcast_norm::stream::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent};
use serde_json::json;

use super::{Heard, waiting};
use crate::args::ReceiveArgs;
use crate::output::Output;
use crate::progress::size;
use crate::send::socket_options;
use crate::{Exit, Failure};

/// Streams.
#[derive(Args, Debug)]
#[command(next_help_heading = "NORM")]
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
    /// What of it goes with a stream does. Where something conflicts with `--stream`, clap does not ask for it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if (self.from_now || self.skip_gaps) && !self.stream {
            return Err(Failure::usage("--from-now and --skip-gaps go with --stream"));
        }
        Ok(())
    }
}

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    if args.output.json {
        return Err(Failure::usage("--json goes to standard output, and so does the stream: use --log"));
    }
    let heard = Heard::of(args)?;
    let receiver = super::norm::configure(args, &heard)?;
    let seed = receiver.seed;
    let mut engine = StreamReceiver::new(StreamReceiverConfig {
        from_now: args.stream.from_now,
        ..StreamReceiverConfig::new(receiver)
    })
    .map_err(Failure::wrong)?;
    let mut output = Output::new(&args.output)?;
    let stop = crate::interrupt::interrupted()?;
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
        accept: heard.accept,
        socket,
        simulate_loss: args.simulate_loss,
        seed,
    };
    // Not buffered: who reads it is not to wait for more than there is.
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    let mut out =
        File::from(descriptor.map_err(|error| Failure::usage(format!("standard output: {error}")))?);
    let mut view = View { args, from: heard.from, output, lacks: None, gone: false };
    let end = farcast_net::receive_stream(&options, &mut out, &mut engine, &stop, &mut |notice| {
        view.observe(notice)
    });
    let end = end.map_err(Failure::of_net)?;
    let complete = view.lacks.is_none() && matches!(end, StreamEnd::Ended(_));
    view.output.event("summary", json!({ "requests": engine.nacks(), "complete": complete }));
    match (end, view.lacks) {
        (StreamEnd::Ended(octets), None) => {
            view.output.line(&format!("the stream has ended ({})", size(octets)));
            Ok(Exit::Done)
        }
        // Who reads no further has what it wants.
        (StreamEnd::Unread, None) => Ok(Exit::Done),
        (_, Some(sentence)) => Err(Failure { sentence, exit: Exit::Failed }),
        (StreamEnd::Stopped, None) if !view.gone => Err(stopped()),
        _ => Err(Failure {
            sentence: "the sender has left before the stream's end".into(),
            exit: Exit::Failed,
        }),
    }
}

/// What the person at the receiver sees.
struct View<'a> {
    args: &'a ReceiveArgs,
    from: SocketAddr,
    output: Output,
    /// What cannot be had, in words.
    lacks: Option<String>,
    gone: bool,
}

impl View<'_> {
    /// Tells of what happens; whether to go on.
    fn observe(&mut self, notice: &StreamNotice<'_, StreamReceiverEvent>) -> bool {
        match *notice {
            StreamNotice::Listening => {
                self.output.line(&format!("listening on {}, the stream goes to standard output", self.from));
                self.output.event("listening", json!({}));
            }
            StreamNotice::Event(&StreamReceiverEvent::Joined { sender, source }) => {
                self.output.line(&format!("receiving a stream of node {sender} at {source}"));
                self.output.event("joined", json!({ "node": sender.0, "sender": source.to_string() }));
            }
            StreamNotice::Event(StreamReceiverEvent::Gone) => {
                self.gone = true;
                return false;
            }
            StreamNotice::Begins(0) => {}
            StreamNotice::Begins(at) => {
                self.output.line(&format!("it goes on {} from its beginning", size(at)));
                self.output.event("begins", json!({ "offset": at }));
            }
            StreamNotice::Gap(from, to) => return self.gap(from, to),
        }
        true
    }

    fn gap(&mut self, from: u64, to: Option<u64>) -> bool {
        self.output.event("gap", json!({ "from": from, "to": to }));
        if from == 0 && self.args.stream.from_now {
            return true;
        }
        let what = match (from, to) {
            (0, None) => {
                "the stream's beginning cannot be had any more (--from-now does without it)".to_owned()
            }
            (from, None) => format!("octets behind the first {from} of the stream cannot be had"),
            (from, Some(to)) => format!("octets {from} to {to} of the stream cannot be had"),
        };
        self.output.line(&what);
        self.lacks.get_or_insert(what);
        self.args.stream.skip_gaps
    }
}
