//! `farcast receive --stream`: writes a sender's stream to standard output.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use farcast_net::{ListenNotice, NetError};
use farcast_transfer::receive::ReceivePlace;
use farcast_transfer::receive::receive_stream;
use farcast_transfer::receive::stream::{StreamEvent, StreamFace, StreamUnit};
use farcast_transfer::sealing::{self, Sealing};
use serde_json::json;

use super::listening::{Words, listen_words};
use super::waiting;
use crate::args::ReceiveArgs;
use crate::output::Output;
use crate::progress::size;
use crate::{Exit, Failure};

pub(super) fn run(args: &ReceiveArgs) -> Result<Exit, Failure> {
    if args.output.json {
        return Err(Failure::usage("--json goes to standard output, and so does the stream: use --log"));
    }
    let stop = crate::interrupt::interrupted_service(args.output.log.is_some())?;
    // Standard output is not buffered, so that a reader gets each part as soon as it arrives.
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    let mut out =
        File::from(descriptor.map_err(|error| Failure::usage(format!("standard output: {error}")))?);
    let output = Output::new(&args.output)?;
    let mut view = View { args, from: String::new(), unit: StreamUnit::Octet, output };
    let received = receive_stream(&args.job, &mut out, &mut view, &stop)?;
    let (requests, complete) = (received.requests, received.is_complete());
    let seal = sealing::summary(received.seal.as_ref());
    view.output.event("summary", json!({ "requests": requests, "complete": complete, "seal": seal }));
    if received.seal.is_some() {
        view.output.line(&sealing::closing(received.seal.as_ref()));
    }
    if let Some(octets) = received.result()? {
        view.output.line(&format!("the stream has ended ({})", size(octets)));
    }
    Ok(Exit::Done)
}

/// Output for the user of a receiver.
struct View<'a> {
    args: &'a ReceiveArgs,
    from: String,
    unit: StreamUnit,
    output: Output,
}

impl StreamFace for View<'_> {
    fn waiting(&mut self, missing: &NetError) {
        waiting(&mut self.output, missing);
    }

    fn begin(&mut self, place: &ReceivePlace, unit: StreamUnit) {
        (self.from, self.unit) = (place.from.to_string(), unit);
        let sealing = place.sealing.as_ref();
        self.output.line(&sealing.map_or_else(|| "not sealed".into(), Sealing::sentence));
    }

    fn event(&mut self, event: &StreamEvent<'_>) {
        match event {
            StreamEvent::Joined { what, key, id, source } => {
                self.output.line(&format!("receiving a stream of {what} at {source}"));
                self.output.event("joined", json!({ *key: id, "sender": source.to_string() }));
            }
            StreamEvent::Files(source) => {
                self.output.line(&format!(
                    "{source} sends files, no stream: nothing of it is taken; receive without --stream takes files"
                ));
                self.output.event("no_stream", json!({ "source": source.to_string() }));
            }
            &StreamEvent::Begins { at, lacking } => self.begins(at, lacking),
            &StreamEvent::Gap { from, to, what } => {
                let said = |place: u64| match self.unit {
                    StreamUnit::Number => u64::from(place as u32),
                    StreamUnit::Octet => place,
                };
                self.output.event("gap", json!({ "from": said(from), "to": to.map(said) }));
                if let Some(what) = what {
                    self.output.line(what);
                }
            }
            StreamEvent::Listen(notice) => self.notice(notice),
            _ => {}
        }
    }
}

impl View<'_> {
    fn notice(&mut self, notice: &ListenNotice<'_>) {
        if matches!(notice, ListenNotice::Listening { .. }) {
            self.output.line(&format!("listening on {}, the stream goes to standard output", self.from));
            return self.output.event("listening", json!({}));
        }
        let Words { line, kind, fields } = listen_words(notice, &self.from, self.args.job.seal.unsealed);
        self.output.line(&line);
        self.output.event(kind, fields);
    }

    fn begins(&mut self, at: u64, lacking: bool) {
        match self.unit {
            StreamUnit::Octet => {
                self.output.line(&format!("it goes on {} from its beginning", size(at)));
                self.output.event("begins", json!({ "offset": at }));
            }
            StreamUnit::Number => {
                let begins = if lacking { "goes on" } else { "is received from where it is," };
                let number = at as u32;
                self.output.line(&format!("it {begins} with number {number}"));
                self.output.event("begins", json!({ "number": number }));
            }
        }
    }
}
