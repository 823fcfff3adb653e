//! Sends files to a group: `send GROUP RATE RECEIVER,.. PATH...`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that shows what the library does")]

use std::process::ExitCode;

use farcast_transfer::{SendUpdate, Sender};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [group, rate, receivers, paths @ ..] = &words[..] else {
        eprintln!("usage: send GROUP RATE RECEIVER,.. PATH...");
        return ExitCode::from(2);
    };
    let sender =
        Sender::builder().to(group).rate(rate).receivers(receivers.split(',')).interface("127.0.0.1").build();
    let sent = sender.map_err(Into::into).and_then(|sender| {
        sender.send_with(paths, &mut |update| {
            if let SendUpdate::Progress(progress) = update {
                println!("round {}: {} of {}", progress.round, progress.sent, progress.segments);
            }
        })
    });
    match sent {
        Ok(summary) => println!("{} octets in {}", summary.octets, summary.duration),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
