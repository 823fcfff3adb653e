//! Lists of receivers, and hosts that are not on them.

use std::path::Path;
use std::time::Duration;

use farcast_core::Time;
use farcast_seal::Kind;

use super::{LEN, has, succeed};
use crate::common::{self, Ended, Place, Running, member, pause, wait_until};
use crate::eve::Eve;
use crate::insider::GroupKey;
use crate::party::{Enemy, Parties, refused};

#[test]
fn who_has_no_key_or_is_not_listed_is_told() {
    let parties = Parties::new(&["bob"]);
    let file = parties.place.file("product.bin", 10_000);
    let bob = parties.receive("bob", &["--once"]);
    let open = parties.place.start("open", parties.place.receive_command("open", &["--json"]));
    open.until("listening");
    parties.make("zoe");
    parties.make("mal");
    parties.trust("zoe", "mal", "sender");
    let zoe = parties.receive("zoe", &[]);
    let sender = parties.send(&file, &["--rate", "5 Mbit/s", "--receivers", "bob"]);
    succeed(&parties, &file, sender, vec![("bob", bob)]);
    open.until("sealed");
    zoe.until("not_trusted");
    assert!(common::names(&parties.place.path("open")).is_empty() && !has(&parties, &file, "zoe"));
    // The sender refuses transfers that it cannot seal.
    let mistakes = [
        (vec!["--receivers", "bob,kim"], "kim has no key here"),
        (vec!["--receivers", "bob", "--protocol", "norm", "--node", "7"], "follows from the key"),
        (vec!["--receivers", "bob", "--protocol", "norm", "--answers", "group"], "nobody else could open it"),
        (vec!["--receivers", "bob", "--protocol", "pgm", "--raw"], "carried by UDP"),
        (vec!["--receivers", "bob", "--draft"], "add --unsealed to --draft"),
    ];
    for (args, why) in mistakes {
        let mut all = vec!["--rate", "5 Mbit/s"];
        all.extend(args);
        parties.send(&file, &all).wait().assert_one_sentence(2, &[why]);
    }
}

#[test]
fn who_is_not_invited_gets_no_keys() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let mut eve = Eve::new(&parties, "mftp");
    let file = parties.place.file("product.bin", 500_000);
    let (bob, uninvited) = (parties.receive("bob", &["--once"]), parties.receive("eve", &[]));
    let sender = parties.send(&file, &["--rate", "2 Mbit/s", "--receivers", "bob"]);
    succeed(&parties, &file, sender, vec![("bob", bob)]);
    uninvited.until("no_key");
    let record = enemy.record();
    let keys: Vec<_> = record.iter().filter(|(_, one)| Kind::of(one) == Some(Kind::Keys)).collect();
    assert!(!keys.is_empty());
    for (from, datagram) in &record {
        assert!(eve.seal.open(Time::ZERO, *from, &mut datagram.clone()).is_err());
    }
}

#[test]
fn who_is_revoked_reads_no_more_and_its_keys_are_worth_nothing() {
    let parties = Parties::new(&["bob", "eve"]);
    let enemy = Enemy::new(&parties.place);
    let eve = Eve::new(&parties, "mftp");
    let file = parties.place.file("product.bin", LEN);
    let bob = parties.receive("bob", &["--once"]);
    let honest = parties.receive("eve", &["--once"]);
    let sender = parties.send(&file, &["--rate", "2 Mbit/s", "--silence", "200 s", "--receivers", "bob,eve"]);
    sender.until("started");
    let record = enemy.record();
    let (server, keys) = record.iter().find(|(_, one)| Kind::of(one) == Some(Kind::Keys)).unwrap();
    let old = GroupKey::of(keys, (&eve.own.0, &eve.own.1)).unwrap();
    common::run(&mut parties.at("ann", &["key", "revoke", "eve"]));
    sender.until("revoked");
    let from = enemy.record().len();
    wait_until("keys of another epoch", || {
        enemy.record()[from.saturating_sub(50)..]
            .iter()
            .any(|(_, one)| Kind::of(one) == Some(Kind::Keys) && one[84] == 2)
    });
    // Eve's key opens no datagram of the session, and no host takes what eve seals.
    for (_, keys) in
        enemy.record().iter().filter(|(_, one)| Kind::of(one) == Some(Kind::Keys) && one[84] == 2)
    {
        assert!(GroupKey::of(keys, (&eve.own.0, &eve.own.1)).is_none());
    }
    pause(Duration::from_millis(500));
    for n in 0..100 {
        enemy.claim(&old.seal(0xE2, 500_000 + n, b"poison"), *server);
    }
    let sent: Ended = sender.wait();
    let got = bob.succeed().summary();
    assert!(has(&parties, &file, "bob") && !has(&parties, &file, "eve"));
    assert!(refused(&got, "the key of its epoch is not known") >= 100, "{got}");
    let summary = sent.summary();
    assert_eq!(member(&summary, "bob")["complete"], true, "{summary}");
    assert_eq!(member(&summary, "eve")["complete"], false, "{summary}");
    // The sender does not wait for the revoked receiver.
    let time = |kind| sent.all(kind)[0]["time"].as_f64().unwrap();
    assert!(time("lost") - time("revoked") < 1.0, "{}", sent.story());
    sent.assert_failed(3, &["eve (is trusted no more)"]);
    assert_eq!(sent.all("lost")[0]["why"], "revoked");
    honest.kill9();
    let again = parties.send(&file, &["--rate", "2 Mbit/s", "--receivers", "bob,eve"]);
    again.wait().assert_one_sentence(2, &["eve is revoked", "--again"]);
}

/// Listed hosts get keys wherever the datagrams go. A transfer to one host therefore needs a list of names.
#[test]
fn what_goes_to_one_host_is_for_those_named() {
    let place = Place::with_group(|port| format!("127.0.0.1:{port}"));
    let parties = Parties::in_place(place, &["bob", "eve"]);
    let file = parties.place.file("product.bin", 200_000);
    let group = format!("239.255.0.9:{}", parties.place.group.rsplit_once(':').unwrap().1);
    for args in [
        &["--one-way"][..],
        &["--protocol", "norm"],
        &["--unlimited"],
        &["--announce", &parties.place.group, "--to", &group],
    ] {
        let all = [&["--rate", "20 Mbit/s"], args].concat();
        let to = if args.contains(&"--to") { &[][..] } else { &["--to", &parties.place.group] };
        let mut command = parties.own("ann", parties.place.farcast(["send"]));
        command.arg(&file).args(all).args(to);
        let refused = parties.place.run("ann", command);
        refused.assert_one_sentence(2, &["127.0.0.1 is one host", "trusts 2 receivers", "--receivers"]);
    }
    for args in [&["--one-way", "--overhead", "30"][..], &["--unlimited"]] {
        let listens = if args[0] == "--one-way" { &["--one-way", "--once"][..] } else { &["--once"] };
        let bob = parties.receive("bob", listens);
        let sender = parties.send(&file, &[&["--rate", "20 Mbit/s", "--receivers", "bob"], args].concat());
        let nobody_can_tell = if args[0] == "--one-way" { 4 } else { 0 };
        assert_eq!(sender.wait().code, Some(nobody_can_tell), "{args:?}");
        bob.succeed();
        assert!(has(&parties, &file, "bob"), "{args:?}");
        std::fs::remove_file(parties.place.path("bob").join("product.bin")).unwrap();
    }
    // In the open there are no keys, and an address names no receiver.
    for (args, why) in [("--one-way", "no meaning one way"), ("--unlimited", "this one is not sealed")] {
        let sender = parties.send(&file, &["--unsealed", "--rate", "1 Mbit/s", "--receivers", "bob", args]);
        sender.wait().assert_one_sentence(2, &["--receivers", why]);
    }
}

/// A transfer to any listener would end for receivers that hear another announcement in the same group.
#[test]
fn one_to_whoever_listens_has_its_announcements_for_itself() {
    let parties = Parties::new(&["bob"]);
    let file = parties.place.file("product.bin", 400_000);
    let send = |n: usize, args: &[&str]| announced_apart(&parties, &file, n, args);
    let bob = parties.receive("bob", &["--once"]);
    let first = send(1, &["--unlimited"]);
    bob.until("joined");
    let reason = format!("{} is in use by another farcast send", parties.place.group);
    for args in [&["--receivers", "bob"][..], &["--unlimited"]] {
        send(2, args).wait().assert_one_sentence(1, &[&reason]);
    }
    let next = send(2, &["--receivers", "bob", "--wait", "60 s"]);
    assert!(next.until("waiting")["reason"].as_str().unwrap().contains(&reason));
    first.succeed();
    bob.succeed();
    assert!(has(&parties, &file, "bob"));
    std::fs::remove_file(parties.place.path("bob").join("product.bin")).unwrap();
    let bob = parties.receive("bob", &["--once"]);
    next.succeed();
    bob.succeed();
    // Transfers with registration can run beside each other.
    let bob = parties.receive("bob", &[]);
    let third = send(3, &["--receivers", "bob"]);
    third.until("started");
    let mut fourth = send(4, &["--receivers", "bob"]);
    third.succeed();
    assert!(fourth.is_running(), "{}", fourth.stderr());
    fourth.kill9();
    bob.kill9();
}

/// Between the reading of the list and the beginning of data, files are hashed, and the sender may wait for its turn.
#[test]
fn who_is_revoked_before_it_begins_is_waited_for_by_nobody() {
    let parties = Parties::new(&["bob", "eve"]);
    let file = parties.place.file("product.bin", 400_000);
    let bob = parties.receive("bob", &["--once"]);
    let first = announced_apart(&parties, &file, 1, &["--unlimited"]);
    bob.until("joined");
    let next = announced_apart(&parties, &file, 2, &["--receivers", "bob,eve", "--wait", "60 s"]);
    next.until("waiting");
    common::run(&mut parties.at("ann", &["key", "revoke", "eve"]));
    let eve = parties.receive("eve", &[]);
    first.succeed();
    bob.succeed();
    std::fs::remove_file(parties.place.path("bob").join("product.bin")).unwrap();
    let bob = parties.receive("bob", &["--once"]);
    let sent = next.wait();
    bob.succeed();
    eve.kill9();
    assert!(has(&parties, &file, "bob") && !has(&parties, &file, "eve"));
    let time = |kind| sent.all(kind)[0]["time"].as_f64().unwrap();
    assert!(time("lost") < time("started"), "{}", sent.story());
    let registered: Vec<_> = sent.all("registered").iter().map(|one| one["receiver"].clone()).collect();
    assert_eq!(registered, ["bob"], "{}", sent.story());
    sent.assert_failed(3, &["eve (is trusted no more)"]);
    assert_eq!(sent.all("lost")[0]["why"], "revoked");
}

/// Sends with announcements in the common group, and data in the `n`th group of its own.
fn announced_apart(parties: &Parties, file: &Path, n: usize, args: &[&str]) -> Running {
    let (address, port) = parties.place.group.rsplit_once(':').unwrap();
    let x = address.rsplit('.').nth(1).unwrap();
    let mut command = parties.own("ann", parties.place.farcast(["send"]));
    command.arg(file).args(["--announce", &parties.place.group, "--to", &format!("239.254.{x}.{n}:{port}")]);
    command.args(["--interface", "127.0.0.1", "--rate", "2 Mbit/s", "--json"]).args(args);
    parties.place.start("ann", command)
}
