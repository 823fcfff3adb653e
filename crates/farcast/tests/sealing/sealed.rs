//! Sealed transfers of live processes, and attempts to read, forge, stall or poison them: docs/src/seal.md, "Threats".

mod lists;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use farcast_core::{Bitmap, Run};
use farcast_delivery::Codec as _;
use farcast_mftp::message::{
    Abort, Announce, Completion, Data, DataKind, DeclineReason, Done, End, Nak, Registration, cancel,
};
use farcast_mftp::{Body, ClientId, Codec, Message, wire};
use farcast_seal::{Class, Contents, Kind, Scope, SenderConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{self, Running, digest, member, pause, wait_until};
use crate::eve::Eve;
use crate::insider::GroupKey;
use crate::party::{Enemy, Parties, refused, say};

/// 1.5 MB, which take six seconds at 2 Mbit/s: time in which an attack can happen.
const LEN: usize = 1_500_000;
const SLOW: [&str; 4] = ["--rate", "2 Mbit/s", "--silence", "5 s"];

fn has(parties: &Parties, file: &Path, name: &str) -> bool {
    let got = parties.place.path(name).join(file.file_name().unwrap());
    got.exists() && digest(file) == digest(&got)
}

fn succeed(
    parties: &Parties,
    file: &Path,
    sender: Running,
    receivers: Vec<(&str, Running)>,
) -> (Value, Vec<Value>) {
    let sent = sender.succeed().summary();
    let got = receivers.into_iter().map(|(name, receiver)| {
        let got = receiver.succeed().summary();
        assert!(has(parties, file, name), "{name}: {got}");
        got
    });
    let got = got.collect();
    (sent, got)
}

/// Waits for the first announcement, which a member of the group can open, and returns it with its transmission.
fn announcement(enemy: &Enemy, group: &GroupKey) -> (u32, Announce) {
    enemy.await_first("an announcement", |_, datagram| {
        let said = (Kind::of(datagram) == Some(Kind::Control)).then(|| group.open(datagram).unwrap())?;
        let message = Codec.decode(&said[..said.len() - 64]).ok()?.message;
        let Body::Announce(announce) = message.body else { return None };
        Some((message.transmission, *announce))
    })
}

#[test]
fn a_file_to_those_on_the_list() {
    let parties = Parties::new(&["bob", "eve"]);
    let file = parties.place.file("product.bin", 3_000_000);
    let bob = parties.receive("bob", &["--once", "--simulate-loss", "5 %"]);
    let eve = parties.receive("eve", &["--once", "--simulate-loss", "2 %"]);
    let sender = parties.send(&file, &["--rate", "50 Mbit/s", "--receivers", "bob,eve"]);
    let (sent, got) = succeed(&parties, &file, sender, vec![("bob", bob), ("eve", eve)]);
    assert_eq!(sent["seal"]["refused"].as_array().map(Vec::len), Some(0), "{sent}");
    // It is chance whether receivers lacked a key for a moment.
    for one in got {
        let others = one["seal"]["refused"].as_array().unwrap().iter();
        let others = others.filter(|why| why["reason"] != "the key of its epoch is not known").count();
        assert_eq!(others, 0, "{one}");
    }
}

#[test]
fn one_way_to_those_on_the_list() {
    let parties = Parties::new(&["bob"]);
    let file = parties.place.file("product.bin", 1_000_000);
    let bob = parties.receive("bob", &["--once", "--one-way", "--simulate-loss", "5 %"]);
    let sender = parties.send(&file, &["--one-way", "--rate", "20 Mbit/s", "--overhead", "30"]);
    let sent = sender.wait();
    assert_eq!(sent.code, Some(4), "{}", sent.story());
    bob.succeed();
    assert!(has(&parties, &file, "bob"));
}

#[test]
fn a_prediction_counts_what_a_seal_adds() {
    let parties = Parties::new(&["bob", "eve"]);
    let file = parties.place.file("product.bin", 2_000_000);
    let link = parties.place.path("link.toml");
    fs::write(&link, "[link.forward]\ndelay = \"100 us\"\n[link.return]\ndelay = \"100 us\"\n").unwrap();
    let args = ["--rate", "20 Mbit/s", "--receivers", "bob,eve"];
    let mut predict = args.to_vec();
    predict.extend(["--replications", "2", "--predict", link.to_str().unwrap()]);
    let predicted = parties.send(&file, &predict).succeed().all("prediction").remove(0);
    let bob = parties.receive("bob", &["--once"]);
    let eve = parties.receive("eve", &["--once"]);
    let (sent, _) = succeed(&parties, &file, parties.send(&file, &args), vec![("bob", bob), ("eve", eve)]);
    // Three copies of one datagram for two receivers, and no receiver needs another.
    assert_eq!(predicted["seal"]["keys_octets"]["mean"], 3.0 * 318.0, "{predicted}");
    let octets = |value: &Value| value.as_f64().unwrap();
    let (predicted, sent) = (octets(&predicted["forward"]["octets"]["mean"]), octets(&sent["wire_bytes"]));
    // The number of announcements and the losses between processes are chance.
    assert!((predicted - sent).abs() < 0.01 * sent, "{predicted} {sent}");
    assert!(sent > 2_000_000.0 * 1500.0 / 1420.0, "{sent}");
}

#[test]
fn an_outsider_reads_nothing_and_forges_nothing() {
    let parties = Parties::new(&["bob"]);
    let enemy = Enemy::new(&parties.place);
    let file = parties.place.path("product.bin");
    let pattern = b"attack at dawn, ".repeat(LEN / 16);
    fs::write(&file, &pattern).unwrap();
    let bob = parties.receive("bob", &["--once"]);
    let sender = parties.send(&file, &[&SLOW[..], &["--receivers", "bob"]].concat());
    sender.until("started");
    let server = enemy.server();
    let (transmission, client) = (7, ClientId::from_name("bob"));
    let body = |body: Body| plain(&Message::new(transmission, body));
    let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus: Run::one(0), len: 4, last_len: 4 };
    let forged: Vec<Vec<u8>> = vec![
        body(Body::Announce(
            common::forged::announcement(server, parties.place.group.parse::<SocketAddr>().unwrap().ip())
                .into(),
        )),
        body(Body::Abort(Abort { reason: cancel::ABORT_SOURCE_CHANGED, hosts: None, text: None })),
        body(Body::Completion(Completion { turn: None, hosts: Some(vec![client]) })),
        body(Body::End(End { server, response: server })),
        body(Body::Data(data)),
        body(Body::Done(Done { round: None, server, client, naked_dtus: 0, duration_s: 1 })),
    ];
    // The forgery leaves in the open, and then sealed as each kind, with the session's name and a future counter.
    let genuine = enemy.await_first("a control datagram", |_, one| {
        (Kind::of(one) == Some(Kind::Control)).then(|| one.to_vec())
    });
    for round in 0..20u8 {
        for (n, message) in forged.iter().enumerate() {
            enemy.claim(message, server);
            say(message, "127.0.0.1:9".parse().unwrap(), server);
            for kind in [0xE1, 0xE2, 0xE3, 0xE6, 0xE7] {
                let mut dressed = genuine[..12].to_vec();
                dressed[0] = kind;
                dressed[10] = dressed[10].wrapping_add(1 + round);
                dressed[11] = n as u8 + 1;
                dressed.extend_from_slice(message);
                dressed.resize(dressed.len().max(300), 0);
                enemy.claim(&dressed, server);
                dressed[0] = 0xE4 + kind % 2;
                say(&dressed, "127.0.0.1:9".parse().unwrap(), server);
            }
        }
        pause(Duration::from_millis(50));
    }
    let (sent, got) = succeed(&parties, &file, sender, vec![("bob", bob)]);
    assert!(refused(&got[0], "it is not sealed") >= 100, "{}", got[0]);
    assert!(refused(&got[0], "it does not open") >= 100, "{}", got[0]);
    assert!(refused(&sent, "it is not sealed") >= 100, "{sent}");
    assert!(refused(&sent, "it is for, or of, somebody who is not on the list") >= 100, "{sent}");
    // The enemy sees neither the file, nor its name, nor a message.
    let heard = enemy.record();
    assert!(heard.len() > 1000);
    for (from, datagram) in heard.iter().filter(|(_, datagram)| Kind::of(datagram).is_some()) {
        let shows = |what: &[u8]| datagram.windows(what.len()).any(|part| part == what);
        let ours = forged.iter().any(|message| shows(message));
        assert!(ours || !shows(b"attack a") && !shows(b"product."), "{from}");
        assert!(wire::decode(datagram).is_err());
    }
}

#[test]
fn no_session_is_played_again() {
    let parties = Parties::new(&["bob"]);
    let enemy = Enemy::new(&parties.place);
    let (first, second) =
        (parties.place.file("first.bin", 200_000), parties.place.file("second.bin", 300_000));
    let args = ["--rate", "10 Mbit/s", "--receivers", "bob"];
    let bob = parties.receive("bob", &[]);
    parties.send(&first, &args).succeed();
    bob.until("summary");
    // An open datagram is only counted.
    let mut record = enemy.record();
    record.retain(|(_, datagram)| Kind::of(datagram).is_some());
    assert!(record.len() > 100, "{}", record.len());
    fs::remove_file(parties.place.path("bob").join("first.bin")).unwrap();
    // The record is replayed while the session goes on, after its sender was killed, and into the middle of another
    // session.
    for (from, datagram) in &record {
        enemy.claim(datagram, *from);
    }
    pause(Duration::from_millis(300));
    let joined = bob.events().iter().filter(|event| event["event"] == "joined").count();
    assert_eq!(joined, 1, "{:?}", bob.stdout());
    bob.kill9();
    let bob = parties.receive("bob", &["--once"]);
    for (from, datagram) in &record {
        enemy.claim(datagram, *from);
    }
    pause(Duration::from_millis(300));
    let sender = parties.send(&second, &args);
    sender.until("started");
    for (from, datagram) in &record {
        enemy.claim(datagram, *from);
        // The enemy cannot hear answers. A datagram for the group is no answer.
        say(datagram, *from, enemy.record().last().unwrap().0);
    }
    let (_, got) = succeed(&parties, &second, sender, vec![("bob", bob)]);
    assert!(refused(&got[0], "its session is over") >= 2, "{}", got[0]);
    assert!(refused(&got[0], "its session is not known") >= 2 * (record.len() as u64 - 20), "{}", got[0]);
    assert!(!parties.place.path("bob").join("first.bin").exists());
}

/// One way: an object is begun in one session and completed by a second one. A record of the second session must not
/// make the receiver take the object again.
#[test]
fn no_session_is_played_again_that_went_on_with_another() {
    let parties = Parties::new(&["bob"]);
    let file = parties.place.file("product.bin", 600_000);
    let args = ["--protocol", "one-way", "--rate", "6 Mbit/s", "--repeat", "6"];
    let bob = parties.receive("bob", &["--protocol", "one-way", "--once"]);
    let sender = parties.send(&file, &args);
    bob.until("joined");
    pause(Duration::from_millis(500));
    sender.kill9();
    let enemy = Enemy::new(&parties.place);
    assert_eq!(parties.send(&file, &args).wait().code, Some(4), "nobody can tell");
    bob.succeed();
    assert!(has(&parties, &file, "bob"));
    fs::remove_file(parties.place.path("bob").join("product.bin")).unwrap();
    let bob = parties.receive("bob", &["--protocol", "one-way", "--once"]);
    for (from, datagram) in enemy.record() {
        enemy.claim(&datagram, from);
        pause(Duration::from_micros(100));
    }
    pause(Duration::from_millis(300));
    assert!(!bob.has("joined") && !bob.has("file"), "{}", bob.stdout());
    bob.kill9();
}

/// In this session bob had nothing more to receive, and only said so. It is over for bob like the session in which bob
/// received the object.
#[test]
fn a_session_that_only_heard_that_all_is_there_is_closed() {
    let parties = Parties::new(&["bob"]);
    let file = parties.place.file("product.bin", 100_000);
    let args = ["--rate", "3 Mbit/s", "--receivers", "bob"];
    let enemy = Enemy::new(&parties.place);
    let bob = parties.receive("bob", &["--once"]);
    let sender = parties.send(&file, &args);
    sender.until("started");
    // All of the file reaches bob's host, but bob's confirmation is not heard.
    let pid = rustix::process::Pid::from_child(&bob.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    signal(Signal::STOP);
    let content = || enemy.record().iter().filter(|(_, one)| Kind::of(one) == Some(Kind::Content)).count();
    wait_until("all content", || content() >= 100_000 / 1404);
    pause(Duration::from_millis(50));
    sender.kill9();
    signal(Signal::CONT);
    bob.until("file");
    let enemy = Enemy::new(&parties.place);
    parties.send(&file, &args).succeed();
    bob.succeed();
    let record = enemy.record();
    assert!(!record.iter().any(|(_, one)| Kind::of(one) == Some(Kind::Content)), "bob had everything");
    let fingerprint = parties.identity("bob").public().fingerprint();
    let path = parties.place.path("state-bob").join(format!("farcast/sealed/{fingerprint}"));
    let remembered = fs::read_to_string(path).unwrap();
    let sessions: Vec<_> = remembered.lines().filter(|line| line.starts_with("session ")).collect();
    assert!(sessions.len() == 2 && sessions.iter().all(|line| line.contains(" closed ")), "{remembered}");
}

#[test]
fn what_is_flipped_or_pasted_or_repeated_is_refused() {
    let parties = Parties::new(&["bob"]);
    let enemy = Enemy::new(&parties.place);
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let sender = parties.send(&file, &[&SLOW[..], &["--receivers", "bob"]].concat());
    sender.until("started");
    // After each datagram follow the same datagram, the same with a flipped bit, and its body under the header of the
    // one before.
    let mut done = 0;
    let mut before: Option<Vec<u8>> = None;
    wait_until("enough was tampered with", || {
        let record = enemy.record();
        let genuine: Vec<_> = record[done..].iter().filter(|(from, _)| *from == record[0].0).collect();
        for (from, datagram) in genuine.into_iter().take(40) {
            if datagram.len() < 40 {
                continue;
            }
            enemy.claim(datagram, *from);
            let mut flipped = datagram.clone();
            // Half of them have a counter that was not used yet.
            flipped[8] ^= (done % 2) as u8;
            let at = 96 + done % (8 * (flipped.len() - 12));
            flipped[at / 8] ^= 1 << (at % 8);
            enemy.claim(&flipped, *from);
            if let Some(before) = before.replace(datagram.clone()) {
                enemy.claim(&[&before[..12], &datagram[12..]].concat(), *from);
            }
        }
        // The enemy also hears its own forgeries.
        done = enemy.record().len();
        done > 1500 || has(&parties, &file, "bob")
    });
    let (_, got) = succeed(&parties, &file, sender, vec![("bob", bob)]);
    assert!(refused(&got[0], "it was seen before, or is too late") >= 100, "{}", got[0]);
    assert!(refused(&got[0], "it does not open") >= 50, "{}", got[0]);
    assert_eq!(got[0]["seal"]["misplaced"], 0, "{}", got[0]);
}

/// Content of an announcement.
struct Told {
    transmission: u32,
    announce: Announce,
}

/// Returns `message` as octets.
fn plain(message: &Message) -> Vec<u8> {
    let mut datagram = Vec::new();
    wire::encode(message, 0, &mut datagram);
    datagram.resize(wire::encoded_len(message, 0), 0);
    datagram
}

/// Waits for an announcement in the datagrams that `eve` hears, and returns it.
fn overhear(eve: &mut Eve, enemy: &Enemy) -> Told {
    let mut told = None;
    wait_until("an announcement", || {
        for (class, said) in eve.hear(enemy) {
            let Ok(packet) = Codec.decode(&said) else { continue };
            if let (Class::Control, Body::Announce(announce)) = (class, packet.message.body) {
                told = Some(Told { transmission: packet.message.transmission, announce: *announce });
            }
        }
        told.is_some()
    });
    told.unwrap()
}

#[test]
fn a_member_speaks_for_nobody_else() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let mut eve = Eve::new(&parties, "mftp");
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let args = ["--rate", "2 Mbit/s", "--silence", "2 s", "--start-after", "1 s", "--receivers", "bob,eve"];
    let sender = parties.send(&file, &args);
    let told = overhear(&mut eve, &enemy);
    sender.until("started");
    // Eve says that bob is done, that bob declines, and that bob lacks everything.
    let (server, to) = (told.announce.server, told.announce.response);
    let client = ClientId::from_name("bob");
    let decline = Registration {
        name: Some("bob".into()),
        ..Registration::new(server, client, Err(DeclineReason::Disk))
    };
    let mut missing = Bitmap::new(told.announce.block_size.next_multiple_of(8));
    (0..told.announce.block_size).for_each(|segment| {
        missing.insert(segment);
    });
    let bodies = [
        Body::Done(Done { round: None, server, client, naked_dtus: 0, duration_s: 1 }),
        Body::Registration(decline),
        Body::Nak(Nak { server, client, pass: 1, block: 0, missing, parity_held: 0, unstored: 0 }),
    ];
    for _ in 0..50 {
        for body in &bodies {
            eve.say(plain(&Message::new(told.transmission, body.clone())), to);
        }
        pause(Duration::from_millis(10));
    }
    let sent = sender.wait();
    bob.succeed();
    assert!(has(&parties, &file, "bob"));
    let summary = sent.summary();
    assert_eq!(member(&summary, "bob")["complete"], true, "{summary}");
    assert!(member(&summary, "bob")["time_s"].as_f64().unwrap() > 4.0, "not before it had it: {summary}");
    assert!(summary["seal"]["misplaced"].as_u64().unwrap() >= 150, "{summary}");
    assert!(summary["wire_bytes_over_size"].as_f64().unwrap() < 1.1, "nothing was sent again: {summary}");
    sent.assert_failed(3, &["eve"]);
}

#[test]
fn a_storm_of_forged_answers_is_refused() {
    let parties = Parties::new(&["bob"]);
    let enemy = Enemy::new(&parties.place);
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let sender = parties.send(&file, &[&SLOW[..], &["--receivers", "bob"]].concat());
    sender.until("started");
    let (server, keys) = enemy.keys();
    // The forgery has bob's tag, which anybody can read there.
    let mut forged = vec![0xE4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    forged[2..6].copy_from_slice(&keys[86..90]);
    for n in 0..20_000u32 {
        forged.truncate(12);
        forged[0] = 0xE4 + (n % 2) as u8;
        forged[8..12].copy_from_slice(&(n + 1).to_be_bytes());
        forged.resize(12 + 40 + 100, n as u8);
        say(&forged, "127.0.0.1:9".parse().unwrap(), server);
    }
    let (sent, _) = succeed(&parties, &file, sender, vec![("bob", bob)]);
    assert!(refused(&sent, "it does not open") >= 10_000, "{sent}");
    assert!(sent["wire_bytes_over_size"].as_f64().unwrap() < 1.1, "nothing was sent again: {sent}");
    // Six seconds are the time of the data at its rate.
    assert!(sent["time_s"].as_f64().unwrap() < 9.0, "{sent}");
}

#[test]
fn a_member_that_poisons_data_delays_and_nothing_more() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let eve = Eve::new(&parties, "mftp");
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let honest = parties.receive("eve", &["--once"]);
    let sender = parties.send(&file, &[&SLOW[..], &["--receivers", "bob,eve"]].concat());
    sender.until("started");
    let (server, keys) = enemy.keys();
    let group = GroupKey::of(&keys, (&eve.own.0, &eve.own.1)).unwrap();
    let (transmission, announce) = announcement(&enemy, &group);
    // Eve seals an abort, which she cannot sign as the sender.
    let abort = plain(&Message::new(
        transmission,
        Body::Abort(Abort { reason: cancel::ABORT_SOURCE_CHANGED, hosts: None, text: None }),
    ));
    let signed = [&abort[..], &[7; 64]].concat();
    // She then seals the abort as content, and false content all over the file, under the highest counters.
    let len = announce.dtu_size as u16;
    for n in 0..200u32 {
        enemy.claim(&group.seal(0xE3, 1_000_000 + u64::from(n), &signed), server);
        enemy.claim(&group.seal(0xE2, 1_000_000 + u64::from(n), &abort), server);
        let segment = 900 - n;
        let dtus = Run::one(segment % announce.block_size);
        let block = segment / announce.block_size;
        let data = Data { pass: 1, block, kind: DataKind::Source, dtus, len, last_len: len };
        let mut poison = Vec::new();
        Codec.encode(&Message::new(transmission, Body::Data(data)), 0, &mut poison);
        poison.resize(poison.len() + usize::from(len), 0x66);
        enemy.claim(&group.seal(0xE2, (1 << 40) - u64::from(n), &poison), server);
    }
    let (sent, got) = succeed(&parties, &file, sender, vec![("bob", bob), ("eve", honest)]);
    for one in &got {
        assert!(refused(one, "its signature does not hold") >= 100, "{one}");
        assert!(one["seal"]["misplaced"].as_u64().unwrap() >= 100, "{one}");
    }
    // Each poisoning costs that a part of a file, 1 MiB or more, is sent again.
    assert!(sent["wire_bytes_over_size"].as_f64().unwrap() < 3.5, "{sent}");
}

#[test]
fn a_member_that_poisons_the_head_ends_nobody() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let eve = Eve::new(&parties, "mftp");
    let file = parties.place.file("product.bin", 300_000);
    let bob = parties.receive("bob", &["--once"]);
    // The sender waits for the absent receiver, and then begins.
    let args = ["--rate", "2 Mbit/s", "--silence", "3 s", "--start-after", "3 s", "--receivers", "bob,eve"];
    let sender = parties.send(&file, &args);
    sender.until("registered");
    let (server, keys) = enemy.keys();
    let group = GroupKey::of(&keys, (&eve.own.0, &eve.own.1)).unwrap();
    let (transmission, announce) = announcement(&enemy, &group);
    let len = announce.dtu_size as u16;
    for n in 0..40u64 {
        let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus: Run::one(0), len, last_len: len };
        let mut poison = Vec::new();
        Codec.encode(&Message::new(transmission, Body::Data(data)), 0, &mut poison);
        poison.resize(poison.len() + usize::from(len), n as u8);
        enemy.claim(&group.seal(0xE2, 1_000_000 + n, &poison), server);
        pause(Duration::from_millis(60));
    }
    let sent = sender.wait();
    let got = bob.succeed();
    assert!(has(&parties, &file, "bob"), "{}", got.story());
    assert!(got.all("damaged").len() > 10, "{}", got.story());
    sent.assert_failed(3, &["eve"]);
}

/// Another sender whom bob trusts sends from ann's address, sealed and signed in a session of its own. Its messages
/// must not count as ann's.
#[test]
fn one_trusted_sender_does_not_speak_for_another() {
    let parties = Parties::new(&["bob"]);
    parties.make("mal");
    parties.trust("bob", "mal", "sender");
    let enemy = Enemy::new(&parties.place);
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let sender = parties.send(&file, &[&SLOW[..], &["--receivers", "bob"]].concat());
    sender.until("started");
    let server = enemy.server();
    let shown = String::from_utf8(parties.at("bob", &["key", "show"]).output().unwrap().stdout).unwrap();
    let key = shown.split_whitespace().find(|word| word.starts_with("farcast-key-1:")).unwrap();
    let config = SenderConfig {
        identity: parties.identity("mal"),
        receivers: vec![farcast_seal::Listed { name: "bob".into(), key: key.parse().unwrap() }],
        began_ms: 1,
        scope: Scope::of("mftp", parties.place.group.parse().unwrap()),
        contents: Contents::Together,
        datagram: 1472,
    };
    let mut mal = farcast_seal::Sender::new(config, [3; 32]);
    for keys in mal.keys(true) {
        enemy.claim(&keys, server);
    }
    // The other sender may be a member of ann's group elsewhere, and know the transmission.
    for transmission in (0..=u32::from(u16::MAX)).step_by(4096) {
        let client = ClientId::from_name("bob");
        for body in [
            Body::Completion(Completion { turn: None, hosts: Some(vec![client]) }),
            Body::Completion(Completion { turn: None, hosts: None }),
            Body::Abort(Abort { reason: cancel::ABORT_SOURCE_CHANGED, hosts: None, text: None }),
        ] {
            let mut datagram = plain(&Message::new(transmission, body));
            mal.seal_control(&mut datagram).unwrap();
            enemy.claim(&datagram, server);
        }
    }
    let (_, got) = succeed(&parties, &file, sender, vec![("bob", bob)]);
    assert_eq!(got[0]["seal"]["misplaced"], 48, "{}", got[0]);
}
