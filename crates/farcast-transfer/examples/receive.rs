//! Receives one transmission: `receive GROUP NAME DIRECTORY`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that shows what the library does")]

use std::process::ExitCode;

use farcast_transfer::{ReceiveUpdate, Receiver};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [group, name, directory] = &words[..] else {
        eprintln!("usage: receive GROUP NAME DIRECTORY");
        return ExitCode::from(2);
    };
    let receiver =
        Receiver::builder().from(group).name(name).into(directory).interface("127.0.0.1").once().build();
    let result = receiver.and_then(|receiver| {
        receiver.receive_with(&mut |update| match update {
            ReceiveUpdate::Listening { address } => println!("listening on {address}"),
            ReceiveUpdate::File { path } => println!("complete: {path}"),
            _ => {}
        })
    });
    match result {
        Ok(products) => println!("{} products", products.len()),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
