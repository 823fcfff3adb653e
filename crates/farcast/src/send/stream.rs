//! `farcast send --stream`: sends standard input as it arrives.

use farcast_delivery::nack::SenderOutcome;
use farcast_transfer::sealing;
use farcast_transfer::send::nack::whom;
use farcast_transfer::send::stream::{StreamBegin, StreamEvent, StreamFace};
use farcast_transfer::send::{outcome_word, send_stream};
use serde_json::{Value, json};

use super::{Exit, Failure, Preparation, SendArgs, Steps, path_words, revoked_words};
use crate::progress::size;

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    if args.predict.is_some() {
        return Err(Failure::usage("--predict is for files: how long a stream is, nobody knows"));
    }
    let stop = crate::interrupt::interrupted()?;
    let mut view = View(Steps::new(args)?);
    let sent = send_stream(&args.job, &mut std::io::stdin().lock(), &mut view, &stop)?;
    let output = &mut view.0.output;
    let (outcome, octets) = (sent.outcome, sent.octets);
    let exit = match outcome {
        SenderOutcome::Acknowledged | SenderOutcome::Unknown => Exit::Done,
        _ => Exit::Incomplete,
    };
    let receivers = sent.receivers.iter().map(|one| json!({ "receiver": one.name, "state": one.state }));
    let fields = json!({
        "outcome": outcome_word(outcome), "exit_code": exit as u8, "size_bytes": octets,
        "seal": sealing::summary(sent.seal.as_ref()), "receivers_known": !sent.receivers.is_empty(),
        "receivers": receivers.collect::<Vec<Value>>(),
    });
    output.event("summary", fields);
    if sent.seal.is_some() {
        output.line(&sealing::closing(sent.seal.as_ref()));
    }
    let octets = size(octets);
    match outcome {
        SenderOutcome::Acknowledged => {
            output.line(&format!("all named receivers have the stream ({octets})"));
        }
        SenderOutcome::Unknown => {
            output
                .line(&format!("the stream was sent ({octets}); who has it is not known, nobody was named"));
        }
        _ => {
            let sentence = format!("the stream was sent ({octets}), and a named receiver lacks some of it");
            return Err(Failure { sentence, exit });
        }
    }
    Ok(exit)
}

/// Output for the user of a stream's sender.
struct View<'a>(Steps<'a>);

impl StreamFace for View<'_> {
    fn prepare(&mut self, note: &Preparation<'_>) {
        self.0.show(note);
    }

    fn begin(&mut self, stream: &StreamBegin<'_>) {
        let StreamBegin { protocol, to, named, sealing } = stream;
        let (by, whom) = (protocol.title(), whom(*named));
        self.0.output.line(&format!("sending standard input by {by} to {to}, for {whom}"));
        self.0.seal(*to, *sealing);
    }

    fn event(&mut self, event: &StreamEvent<'_>) {
        let output = &mut self.0.output;
        let (line, kind, fields) = match event {
            StreamEvent::Path(notice) => path_words(notice, "--segment-size"),
            StreamEvent::Revoked(name) => revoked_words(name),
            StreamEvent::Has(name) => {
                (format!("{name} has everything"), "acknowledged", json!({ "receiver": name }))
            }
            StreamEvent::Lost(name) => (
                format!(
                    "{name} does not answer, and is not waited for any more; check that it receives with --stream"
                ),
                "lost",
                json!({ "receiver": name }),
            ),
            _ => return,
        };
        output.line(&line);
        output.event(kind, fields);
    }
}
