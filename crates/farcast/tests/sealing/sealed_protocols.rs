//! Sealed files and streams by NORM, MDP and PGM between live processes, and attempts to forge or poison them. Also
//! transfers by every protocol to receivers with hybrid keys: docs/src/seal.md, "Threats".

mod memory;
mod refused;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use farcast_delivery::{Codec as _, KeyNumber};
use farcast_norm::message::{Answer, FromReceiver, FromSender};
use farcast_norm::{Body, Codec, Fec, Message, NodeId};
use farcast_seal::{HYBRID_KEYS_LEN, Kind};
use serde_json::json;

use self::memory::{fill, make_room, on_small_state, state_of};
use crate::common::{Running, digest, noise, pause, run, wait_until};
use crate::eve::Eve;
use crate::insider::GroupKey;
use crate::party::{Enemy, Parties, Record, refused};

/// 1.5 MB, which take two seconds at 6 Mbit/s.
const LEN: usize = 1_500_000;
const SLOW: [&str; 6] = ["--rate", "6 Mbit/s", "--rtt", "20 ms", "--receivers", "bob,eve"];

/// Starts a receiver of a stream. Returns it with the path of its output.
fn receive_stream(parties: &Parties, name: &str, protocol: &str) -> (Running, PathBuf) {
    receive_stream_with(parties, name, &["--protocol", protocol, "--simulate-loss", "2 %"])
}

fn receive_stream_with(parties: &Parties, name: &str, args: &[&str]) -> (Running, PathBuf) {
    let output = parties.place.path(&format!("{name}.stream"));
    let mut command = parties.own(name, parties.place.farcast(["receive", "--stream"]));
    command.args(["--from", &parties.place.group, "--interface", "lo"]).args(args);
    let command = shell(&format!("exec \"$@\" > '{}'", output.display()), &command);
    let running = parties.place.start(name, command);
    wait_until("a receiver", || running.stderr().contains("listening"));
    (running, output)
}

/// Starts `ann`'s sender of a stream, which reads `input`.
fn send_stream(parties: &Parties, input: &Path, args: &[&str]) -> Running {
    let mut command = parties.own("ann", parties.place.farcast(["send", "--stream"]));
    command.args(["--to", &parties.place.group, "--interface", "lo"]).args(args);
    parties.place.start("ann", shell(&format!("exec \"$@\" < '{}'", input.display()), &command))
}

/// Returns `command` run by this shell script, with the command's environment.
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
        let eve = Eve::new(&parties, protocol);
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
        // A member seals messages of the session, changed a little, as content and as control. They also leave in the
        // open.
        let mut forged = Vec::new();
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
            forged.push(said);
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
        // No forgery was believed, so only lost data is sent again.
        assert!(sent["wire_bytes_over_size"].as_f64().unwrap() < 1.4, "{protocol}: {sent}");
        let shows = |datagram: &[u8]| datagram.windows(8).any(|part| part == b"attack a");
        // The forged ones by PGM may look sealed, too.
        let others = |one: &Vec<u8>| Kind::of(one).is_some() && !forged.contains(one);
        let sealed = enemy.record().into_iter().map(|(_, one)| one).filter(others);
        assert!(sealed.into_iter().all(|one| !shows(&one)), "{protocol}");
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
        assert_eq!(said.into_iter().collect::<Vec<_>>(), [(1, 234), (2, HYBRID_KEYS_LEN)], "{protocol}");
    }
}

#[test]
fn nobody_acknowledges_for_another() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let mut eve = Eve::new(&parties, "norm");
    let file = parties.place.file("product.bin", 100_000);
    // Bob is absent, and eve says that bob has everything.
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
            // The datagram leaves in the open, as an outsider has it.
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

/// Returns all datagrams of a session of `ann` that only the enemy hears.
fn slept_through(parties: &Parties, begin: impl FnOnce(&[&str]) -> Running, protocol: &str) -> Record {
    let enemy = Enemy::new(&parties.place);
    let sender = begin(&["--protocol", protocol, "--rate", "20 Mbit/s", "--rtt", "20 ms"]);
    wait_until("silence", || {
        let before = enemy.record().len();
        pause(Duration::from_millis(300));
        before > 40 && enemy.record().len() == before
    });
    sender.kill9();
    let mut record = enemy.record();
    record.retain(|(_, datagram)| Kind::of(datagram).is_some());
    record
}

/// A whole session that bob did not hear is replayed into the present one, from the present one's address.
#[test]
fn no_session_is_played_into_a_later_one() {
    for protocol in ["norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let file = parties.place.path("product.bin");
        fs::write(&file, noise(1, 60_000)).unwrap();
        let before = slept_through(&parties, |args| parties.send(&file, args), protocol);
        fs::write(&file, noise(2, LEN)).unwrap();
        let enemy = Enemy::new(&parties.place);
        let bob = parties.receive("bob", &["--protocol", protocol, "--once"]);
        let sender = parties.send(
            &file,
            &["--protocol", protocol, "--rate", "6 Mbit/s", "--rtt", "20 ms", "--receivers", "bob"],
        );
        wait_until("data", || enemy.record().len() > 50);
        let server = enemy.record()[0].0;
        for (_, datagram) in &before {
            enemy.claim(datagram, server);
        }
        let sent = sender.succeed();
        let got = bob.succeed().summary();
        assert_eq!(
            digest(&file),
            digest(&parties.place.path("bob").join("product.bin")),
            "{protocol}: {got}"
        );
        assert_eq!(sent.all("done").len(), 1, "{protocol}: {}", sent.story());
        assert!(refused(&got, "its sender has begun another session since") >= 1, "{protocol}: {got}");
        assert!(refused(&got, "its session is not known") >= before.len() as u64 - 20, "{protocol}: {got}");
    }
}

/// An old session is replayed to bob before bob has heard any other. It is over for bob as soon as a new one begins.
/// Bob must not count the old session's data as parts of the new object, nor fill gaps of the new object with replayed
/// data.
#[test]
fn a_session_goes_on_with_nothing_of_an_earlier_one() {
    for protocol in ["norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let file = parties.place.path("product.bin");
        fs::write(&file, noise(1, 60_000)).unwrap();
        let before = slept_through(&parties, |args| parties.send(&file, args), protocol);
        fs::write(&file, noise(2, 300_000)).unwrap();
        let enemy = Enemy::new(&parties.place);
        let bob = parties.receive("bob", &["--protocol", protocol]);
        let all = before.len();
        let (whole, rest) = before.split_at(if protocol == "norm" { all / 2 } else { all });
        for (from, datagram) in whole {
            enemy.claim(datagram, *from);
            pause(Duration::from_micros(500));
        }
        let played = enemy.record().len();
        let args = ["--protocol", protocol, "--rate", "6 Mbit/s", "--rtt", "20 ms", "--receivers", "bob"];
        let sender = parties.send(&file, &args);
        wait_until("data", || enemy.record().len() > played + 10);
        let server = enemy.record()[played].0;
        for (_, datagram) in rest.iter().chain(whole) {
            enemy.claim(datagram, server);
        }
        let sent = sender.succeed();
        assert_eq!(sent.all("done").len(), 1, "{protocol}: {}", sent.story());
        assert_eq!(digest(&file), digest(&parties.place.path("bob").join("product.bin")), "{protocol}");
        bob.terminate();
        let ended = bob.wait();
        assert!(
            refused(ended.all("summary").last().unwrap(), "its session is over") >= 1,
            "{protocol}: {}",
            ended.story()
        );
    }
}

#[test]
fn a_receiver_that_is_trusted_no_more_is_not_waited_for() {
    for protocol in ["norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob", "eve"]);
        let file = parties.place.file("product.bin", 1_000_000);
        let by = ["--protocol", protocol];
        let bob = parties.receive("bob", &[&by[..], &["--once"]].concat());
        let eve = parties.receive("eve", &by);
        let args = ["--rate", "2 Mbit/s", "--rtt", "2 s", "--receivers", "bob,eve"];
        let sender = parties.send(&file, &[&by[..], &args].concat());
        sender.until_nth("progress", 2);
        run(&mut parties.at("ann", &["key", "revoke", "eve"]));
        let sent = sender.wait();
        bob.succeed();
        assert_eq!(digest(&file), digest(&parties.place.path("bob/product.bin")), "{protocol}");
        assert!(!parties.place.path("eve/product.bin").exists(), "{protocol}");
        let time = |kind| sent.all(kind)[0]["time"].as_f64().unwrap();
        assert!(time("lost") - time("revoked") < 1.0, "{protocol}: {}", sent.story());
        assert_eq!(sent.all("lost")[0]["receiver"], "eve", "{protocol}");
        // A silent receiver would be asked for many round trips more.
        assert!(time("summary") - time("done") < 5.0, "{protocol}: {}", sent.story());
        sent.assert_failed(3, &["eve did not acknowledge"]);
        eve.kill9();
    }
}

#[test]
fn no_stream_is_played_into_a_later_one() {
    for protocol in ["norm", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let input = parties.place.path("input");
        fs::write(&input, noise(1, 60_000)).unwrap();
        let args = ["--protocol", protocol, "--rate", "6 Mbit/s", "--rtt", "20 ms"];
        let before = slept_through(&parties, |args| send_stream(&parties, &input, args), protocol);
        fs::write(&input, noise(2, 600_000)).unwrap();
        let enemy = Enemy::new(&parties.place);
        let (bob, output) = receive_stream(&parties, "bob", protocol);
        let sender = send_stream(&parties, &input, &[&args[..], &["--receivers", "bob"]].concat());
        wait_until("data", || enemy.record().len() > 30);
        let server = enemy.record()[0].0;
        for (_, datagram) in &before {
            enemy.claim(datagram, server);
        }
        sender.succeed();
        let ended = bob.succeed();
        assert!(
            ended.stderr.contains("is of a transfer before the last one"),
            "{protocol}: {}",
            ended.stderr
        );
        assert_eq!(digest(&input), digest(&output), "{protocol}");
    }
}

/// Data behind a gap is written, although the sender has begun another stream and the gap will not be filled.
#[test]
fn what_came_behind_a_gap_is_written_when_another_stream_begins() {
    for protocol in ["norm", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let input = parties.place.path("input");
        let text: Vec<String> = (0..5000).map(|n| format!("line {n:05}\n")).collect();
        fs::write(&input, text.concat()).unwrap();
        let begin = |args: &[&str]| send_stream(&parties, &input, &[args, &["--lines"]].concat());
        let before = slept_through(&parties, begin, protocol);
        let enemy = Enemy::new(&parties.place);
        let args = ["--protocol", protocol, "--skip-gaps"];
        let (bob, output) = receive_stream_with(&parties, "bob", &args);
        // Most of the session is content of one length.
        let of = |len: usize| before.iter().map(|(_, one)| one).filter(move |one| one.len() == len);
        let content = before.iter().map(|(_, one)| one.len()).max_by_key(|&len| of(len).count());
        let hole = content.and_then(|len| of(len).nth(of(len).count() / 4));
        // The replayed half does not tell the end of the stream.
        for (from, datagram) in before[..before.len() / 2].iter().filter(|(_, one)| Some(one) != hole) {
            enemy.claim(datagram, *from);
            pause(Duration::from_micros(200));
        }
        let args =
            ["--protocol", protocol, "--rate", "6 Mbit/s", "--rtt", "20 ms", "--receivers", "bob", "--lines"];
        let sender = send_stream(&parties, &input, &args);
        let ended = bob.wait();
        sender.kill9();
        assert!(ended.stderr.contains("cannot be had"), "{protocol}: {}", ended.stderr);
        let written = fs::read_to_string(&output).unwrap();
        // The line at the gap is cut.
        let lines: Vec<usize> = written.lines().filter_map(|line| line.get(5..)?.parse().ok()).collect();
        let holes = lines.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
        assert!(lines[0] == 0 && holes == 1 && lines.len() > 1500, "{protocol}: {lines:?}");
    }
}

/// Eve has the keys of a session whose content is not signed. She replays them to a receiver of a protocol that signs
/// all datagrams.
#[test]
fn keys_of_a_protocol_are_none_for_another() {
    let parties = Parties::new(&["bob", "eve"]);
    let eve = Eve::new(&parties, "one way");
    let file = parties.place.file("product.bin", LEN);
    let keys = {
        let enemy = Enemy::new(&parties.place);
        parties.send(&file, &["--protocol", "one-way", "--rate", "20 Mbit/s"]).wait();
        enemy.keys().1
    };
    let group = GroupKey::of(&keys, (&eve.own.0, &eve.own.1)).unwrap();
    let enemy = Enemy::new(&parties.place);
    let bob = parties.receive("bob", &["--protocol", "norm", "--once"]);
    let mut honest = Eve::new(&parties, "norm");
    let args = [
        "--protocol",
        "norm",
        "--rate",
        "6 Mbit/s",
        "--rtt",
        "20 ms",
        "--receivers",
        "bob,eve",
        "--robust",
        "12",
    ];
    let sender = parties.send(&file, &args);
    let codec = Codec { fec: Fec::ReedSolomon8 };
    let mut data = Vec::new();
    wait_until("data", || {
        let said = honest.hear(&enemy).into_iter().map(|(_, said)| said);
        data.extend(said.filter(|said| {
            let packet = codec.decode(said);
            matches!(packet.map(|packet| packet.message.body), Ok(Body::Sender(_, FromSender::Data(_))))
        }));
        data.len() > 50
    });
    let server = honest.server();
    enemy.claim(&keys, server);
    for (n, said) in data.iter().enumerate() {
        // Eve spoils the data that comes next.
        let mut poison = said.clone();
        let end = poison.len() - 1;
        poison[end] ^= 1;
        enemy.claim(&group.seal(0xE2, 1 + n as u64, &poison), server);
    }
    let sent = sender.wait();
    let got = bob.succeed().summary();
    assert_eq!(digest(&file), digest(&parties.place.path("bob").join("product.bin")), "{got}");
    assert!(refused(&got, "its session is for another protocol or group") >= 1, "{got}");
    assert!(refused(&got, "its session is not known") >= 50, "{got}");
    sent.assert_failed(3, &["eve did not acknowledge"]);
}

/// Starts `bob`, whose memory lies on a small file system.
fn receive_with_small_state(parties: &Parties, protocol: &str, begins_full: bool) -> Running {
    let mut command = parties.own("bob", parties.place.receive_command("bob", &["--protocol", protocol]));
    command.arg("--json");
    let command = on_small_state(parties, "bob", &command, begins_full);
    let running = parties.place.start("bob", command);
    running.until("listening");
    running
}

/// Returns the options for a protocol's transfer to `bob` alone, of a second or two.
fn to_bob(protocol: &str) -> Vec<&str> {
    let mut args = vec!["--protocol", protocol, "--rate", "6 Mbit/s", "--receivers", "bob"];
    if protocol != "one-way" {
        args.extend(["--rtt", "20 ms"]);
    }
    if ["norm", "mdp"].contains(&protocol) {
        args.extend(["--robust", "3"]);
    }
    args
}

fn play(enemy: &Enemy, record: &[(std::net::SocketAddr, Vec<u8>)]) {
    for (from, datagram) in record {
        enemy.claim(datagram, *from);
        pause(Duration::from_micros(200));
    }
    pause(Duration::from_millis(500));
}

/// A receiver that cannot remember a session takes none of its data: the session could be replayed.
#[test]
fn what_cannot_be_remembered_is_not_accepted() {
    for protocol in ["one-way", "norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let file = parties.place.file("product.bin", 300_000);
        let enemy = Enemy::new(&parties.place);
        let bob = receive_with_small_state(&parties, protocol, true);
        parties.send(&file, &to_bob(protocol)).wait();
        let told = bob.until("forgetful");
        let reason = told["reason"].as_str().unwrap();
        assert!(reason.contains("/state-bob/farcast") && reason.contains("No space left"), "{reason}");
        assert!(reason.contains("make room there"), "{reason}");
        let mut record = enemy.record();
        record.retain(|(_, datagram)| Kind::of(datagram).is_some());
        bob.kill9();
        let bob = receive_with_small_state(&parties, protocol, true);
        play(&enemy, &record);
        assert!(!bob.has("file"), "{protocol}: {}", bob.stdout());
        bob.kill9();
        assert!(!parties.place.path("bob/product.bin").exists(), "{protocol}");
    }
}

/// The disk becomes full while content arrives. An object that is delivered once there is room again is delivered only
/// once.
#[test]
fn what_is_delivered_is_remembered_first() {
    for protocol in ["one-way", "norm", "mdp", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let file = parties.place.file("product.bin", 900_000);
        let bob = receive_with_small_state(&parties, protocol, false);
        let enemy = Enemy::new(&parties.place);
        let sender = parties.send(&file, &to_bob(protocol));
        bob.until("joined");
        fill(&parties, "bob", &bob);
        sender.wait();
        bob.until("forgetful");
        assert!(!bob.has("file"), "{protocol}: {}", bob.stdout());
        assert!(!parties.place.path("bob/product.bin").exists(), "{protocol}");
        make_room(&parties, "bob", &bob);
        parties.send(&file, &to_bob(protocol)).wait();
        bob.until("file");
        let memory = state_of(&parties, "bob", &bob).join("farcast/sealed");
        let remembered = fs::read_dir(memory).unwrap().map(|entry| entry.unwrap().path());
        let there = parties.place.path("state-bob/farcast/sealed");
        fs::create_dir_all(&there).unwrap();
        for path in remembered.filter(|path| path.is_file()) {
            fs::copy(&path, there.join(path.file_name().unwrap())).unwrap();
        }
        bob.kill9();
        fs::remove_file(parties.place.path("bob/product.bin")).unwrap();
        let bob = parties.receive("bob", &["--protocol", protocol]);
        let mut record = enemy.record();
        record.retain(|(_, datagram)| Kind::of(datagram).is_some());
        play(&enemy, &record);
        assert!(!bob.has("file"), "{protocol}: {}", bob.stdout());
        bob.kill9();
        assert!(!parties.place.path("bob/product.bin").exists(), "{protocol}");
    }
}

/// An ended stream is not received again after a restart. A stream that cannot be remembered does not begin.
#[test]
fn no_stream_is_played_again() {
    for protocol in ["norm", "pgm"] {
        let parties = Parties::new(&["bob"]);
        let input = parties.place.path("input");
        fs::write(&input, noise(1, 300_000)).unwrap();
        let enemy = Enemy::new(&parties.place);
        let args = ["--protocol", protocol, "--rate", "6 Mbit/s", "--rtt", "20 ms"];
        let (bob, output) = receive_stream_with(&parties, "bob", &["--protocol", protocol]);
        send_stream(&parties, &input, &[&args[..], &["--receivers", "bob"]].concat()).succeed();
        bob.succeed();
        assert_eq!(digest(&input), digest(&output), "{protocol}");
        let mut record = enemy.record();
        record.retain(|(_, datagram)| Kind::of(datagram).is_some());
        let (bob, output) = receive_stream_with(&parties, "bob", &["--protocol", protocol]);
        play(&enemy, &record);
        bob.kill9();
        assert_eq!(fs::metadata(&output).unwrap().len(), 0, "{protocol}");

        let output = parties.place.path("full.stream");
        let mut command = parties.own("bob", parties.place.farcast(["receive", "--stream"]));
        command.args(["--from", &parties.place.group, "--interface", "lo", "--protocol", protocol]);
        let command = on_small_state(&parties, "bob", &command, true);
        let bob =
            parties.place.start("bob", shell(&format!("exec \"$@\" > '{}'", output.display()), &command));
        wait_until("a receiver", || bob.stderr().contains("listening"));
        send_stream(&parties, &input, &[&args[..], &["--receivers", "bob"]].concat()).wait();
        assert!(bob.stderr().contains("nothing sealed is accepted: cannot "), "{}", bob.stderr());
        bob.kill9();
        assert_eq!(fs::metadata(&output).unwrap().len(), 0, "{protocol}");
    }
}
