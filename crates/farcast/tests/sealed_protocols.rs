//! What NORM, MDP and PGM deliver, files and streams, sealed between live processes, and who tries to forge or poison it; and
//! by whatever protocol to receivers with hybrid keys: docs/src/seal.md, "Threats".
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files and sockets"
)]

mod common;
#[path = "sealed/eve.rs"]
mod eve;
#[path = "sealed/insider.rs"]
mod insider;
#[path = "sealed/party.rs"]
mod party;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Running, digest, noise, pause, run, wait_until};
use eve::Eve;
use farcast_delivery::{Codec as _, KeyNumber};
use farcast_norm::message::{Answer, FromReceiver, FromSender};
use farcast_norm::{Body, Codec, Fec, Message, NodeId};
use farcast_seal::{HYBRID_KEYS_LEN, Kind};
use insider::GroupKey;
use party::{Enemy, Parties, refused};
use serde_json::json;

/// 1.5 MB at 6 Mbit/s: two seconds of data.
const LEN: usize = 1_500_000;
const SLOW: [&str; 6] = ["--rate", "6 Mbit/s", "--rtt", "20 ms", "--receivers", "bob,eve"];

/// Starts a receiver of a stream; with it, where the stream goes.
fn receive_stream(parties: &Parties, name: &str, protocol: &str) -> (Running, PathBuf) {
    let output = parties.place.path(&format!("{name}.stream"));
    let mut command =
        parties.own(name, parties.place.farcast(["receive", "--stream", "--protocol", protocol]));
    command.args(["--from", &parties.place.group, "--interface", "lo", "--simulate-loss", "2 %"]);
    let command = shell(&format!("exec \"$@\" > '{}'", output.display()), &command);
    let running = parties.place.start(name, command);
    wait_until("a receiver", || running.stderr().contains("listening"));
    (running, output)
}

/// Starts `ann`'s sender of a stream, that of `input`.
fn send_stream(parties: &Parties, input: &Path, args: &[&str]) -> Running {
    let mut command = parties.own("ann", parties.place.farcast(["send", "--stream"]));
    command.args(["--to", &parties.place.group, "--interface", "lo"]).args(args);
    parties.place.start("ann", shell(&format!("exec \"$@\" < '{}'", input.display()), &command))
}

/// `command` by this script of a shell, with what it knows of its environment.
fn shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.envs(set);
    for (name, _) in command.get_envs().filter(|(_, value)| value.is_none()) {
        shell.env_remove(name);
    }
    shell
}

#[test]
fn files_arrive_whatever_outsiders_and_members_say() {
    for protocol in ["norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob", "eve"]);
        let enemy = Enemy::new(&parties.place);
        let eve = Eve::new(&parties);
        let file = parties.place.path("product.bin");
        fs::write(&file, b"attack at dawn, ".repeat(LEN / 16)).unwrap();
        let args = ["--protocol", protocol, "--once", "--simulate-loss", "2 %"];
        let bob = parties.receive("bob", &args);
        let honest = parties.receive("eve", &args);
        let sender = parties.send(&file, &[&["--protocol", protocol][..], &SLOW].concat());
        wait_until("data", || enemy.record().len() > 100);
        let record = enemy.record();
        let (server, keys) = record.iter().find(|(_, one)| Kind::of(one) == Some(Kind::Keys)).unwrap();
        let group = GroupKey::of(keys, (&eve.own.0, &eve.own.1)).unwrap();
        // What has been said, changed a little, and sealed as content and as control by a member; and in the open.
        for (n, (_, one)) in record.iter().filter(|(_, one)| Kind::of(one) == Some(Kind::Control)).enumerate()
        {
            let mut said = group.open(one).unwrap();
            let signed = said.clone();
            said.truncate(said.len() - 64);
            let end = said.len() - 1;
            said[end] ^= 0x20;
            let poison = [&said[..], &signed[signed.len() - 64..]].concat();
            enemy.claim(&group.seal(0xE2, 100_000 + n as u64, &said), *server);
            enemy.claim(&group.seal(0xE3, 200_000 + n as u64, &poison), *server);
            enemy.claim(&said, *server);
        }
        let sent = sender.succeed().summary();
        for (name, receiver) in [("bob", bob), ("eve", honest)] {
            let got = receiver.succeed().summary();
            assert_eq!(
                digest(&file),
                digest(&parties.place.path(name).join("product.bin")),
                "{protocol}: {got}"
            );
            assert!(refused(&got, "its signature does not hold") >= 50, "{protocol}: {got}");
            // PGM begins with a port, whose first octet may be that of a kind.
            let open = ["it is not sealed", "it is malformed", "it is not for this side"];
            assert!(open.map(|why| refused(&got, why)).iter().sum::<u64>() >= 25, "{protocol}: {got}");
        }
        // Nothing of it was believed, so nothing but what was lost is sent again.
        assert!(sent["wire_bytes_over_size"].as_f64().unwrap() < 1.4, "{protocol}: {sent}");
        let shows = |datagram: &[u8]| datagram.windows(8).any(|part| part == b"attack a");
        let sealed = enemy.record().into_iter().filter(|(_, one)| Kind::of(one).is_some());
        assert!(sealed.map(|(_, one)| one).all(|one| !shows(&one)), "{protocol}");
    }
}

/// Bob has a hybrid key, and eve has none.
#[test]
fn a_file_to_some_with_hybrid_keys() {
    let parties = Parties::new(&["eve"]);
    run(&mut parties.at("bob", &["key", "new", "bob", "--hybrid"]));
    parties.trust("ann", "bob", "receiver");
    parties.trust("bob", "ann", "sender");
    for protocol in ["mftp", "norm"] {
        let enemy = Enemy::new(&parties.place);
        let file = parties.place.file(&format!("{protocol}.bin"), LEN);
        let args = ["--protocol", protocol, "--once", "--simulate-loss", "2 %"];
        let those = ["bob", "eve"].map(|name| (name, parties.receive(name, &args)));
        let rate = ["--protocol", protocol, "--rate", "20 Mbit/s", "--receivers", "bob,eve"];
        let sent = parties.send(&file, &rate).succeed();
        for (name, receiver) in those {
            let got = receiver.succeed().summary();
            let into = parties.place.path(name).join(file.file_name().unwrap());
            assert_eq!(digest(&file), digest(&into), "{protocol}, {name}: {got}");
            assert_eq!(refused(&got, "it is malformed"), 0, "{protocol}, {name}: {got}");
        }
        let told = sent.all("hybrid_keys");
        assert_eq!((told.len(), &told[0]["without"]), (1, &json!(["eve"])), "{}", sent.story());
        let record = enemy.record();
        let keys = record.iter().filter(|(_, one)| Kind::of(one) == Some(Kind::Keys));
        let said: BTreeSet<_> = keys.map(|(_, one)| (one[2], one.len())).collect();
        assert_eq!(said.into_iter().collect::<Vec<_>>(), [(1, 226), (2, HYBRID_KEYS_LEN)], "{protocol}");
    }
}

#[test]
fn nobody_acknowledges_for_another() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let mut eve = Eve::new(&parties);
    let file = parties.place.file("product.bin", 100_000);
    // Bob is not there, and eve says that it has everything.
    let sender = parties.send(&file, &[&["--protocol", "norm", "--robust", "5"][..], &SLOW].concat());
    let codec = Codec { fec: Fec::ReedSolomon8 };
    let mut flush = None;
    wait_until("the end", || {
        for (_, said) in eve.hear(&enemy) {
            let Ok(packet) = codec.decode(&said) else { continue };
            if let Body::Sender(terms, FromSender::Flush { point, .. }) = packet.message.body {
                flush = Some((packet.message.source, terms.instance, point));
            }
        }
        flush.is_some()
    });
    let (node, instance, point) = flush.unwrap();
    let number = |name: &str| KeyNumber(parties.identity(name).public().fingerprint().number());
    assert_eq!(node, NodeId(number("ann").sender()));
    for name in ["bob", "eve"] {
        let answer = Answer::Flushed { id: 0, point };
        let said = FromReceiver { sender: node, instance, response: None, feedback: None, answer };
        let source = NodeId(number(name).receiver());
        let message = Message { source, sequence: 0, body: Body::Receiver(said) };
        for _ in 0..10 {
            let mut datagram = Vec::new();
            codec.encode(&message, 0, &mut datagram);
            eve.say(datagram, eve.server());
            pause(Duration::from_millis(10));
        }
    }
    let sent = sender.wait();
    let summary = sent.summary();
    assert_eq!(summary["seal"]["misplaced"], 10, "{summary}");
    let done: Vec<_> = sent.all("done").iter().map(|event| event["receiver"].clone()).collect();
    assert_eq!(done, ["eve"], "{}", sent.story());
    sent.assert_failed(3, &["bob did not acknowledge"]);
}

#[test]
fn streams_arrive_and_are_read_by_nobody_else() {
    for protocol in ["norm", "pgm"] {
        let parties = Parties::new(&["bob", "eve"]);
        let enemy = Enemy::new(&parties.place);
        let input = parties.place.path("input");
        fs::write(&input, [&b"attack at dawn, ".repeat(1000)[..], &noise(1, 400_000)].concat()).unwrap();
        let receivers = ["bob", "eve"].map(|name| receive_stream(&parties, name, protocol));
        let sender = send_stream(&parties, &input, &[&["--protocol", protocol][..], &SLOW].concat());
        wait_until("data", || enemy.record().len() > 50);
        let record = enemy.record();
        let server = record[0].0;
        for (_, one) in &record {
            // In the open, as an outsider has it.
            enemy.claim(&one[12..], server);
        }
        let ended = sender.succeed();
        assert!(ended.stderr.contains("all named receivers have the stream"), "{}", ended.stderr);
        assert!(ended.stderr.contains("sealed between ann"), "{}", ended.stderr);
        for (receiver, output) in receivers {
            let ended = receiver.succeed();
            assert!(ended.stderr.contains("datagrams were refused"), "{protocol}: {}", ended.stderr);
            assert_eq!(digest(&input), digest(&output), "{protocol}");
        }
        let sealed = enemy.record().into_iter().filter(|(_, one)| Kind::of(one).is_some());
        for (_, one) in sealed {
            assert!(!one.windows(8).any(|part| part == b"attack a"), "{protocol}");
        }
    }
}
