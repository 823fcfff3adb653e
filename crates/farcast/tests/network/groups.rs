//! Participants of a transfer and its start; receivers that are refused, given up, or never come.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{self, Place, dtus_sent, member, pause, segments, wait_until};

const RATE: [&str; 2] = ["--rate", "20 Mbit/s"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RATE[..], more].concat()
}

#[test]
fn a_receiver_that_comes_late_is_served_too() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let first = place.receive("ant", &[]);
    // Eight seconds: two late announcements.
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--wait-for", "1"]);
    wait_until("data at the first receiver", || first.has("files"));
    let late = place.receive("bee", &[]);
    let sent = sender.succeed().summary();
    first.succeed();
    late.succeed();
    place.assert_received(&file, &["ant", "bee"]);
    assert_eq!(member(&sent, "bee")["complete"], true);
}

#[test]
fn without_late_entry_it_is_not() {
    let place = Place::new();
    let file = place.file("product.bin", 600_000);
    let first = place.receive("ant", &[]);
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--wait-for", "1", "--no-late-entry"]);
    wait_until("data at the first receiver", || first.has("files"));
    let late = place.receive("bee", &[]);
    let sent = sender.succeed().summary();
    first.succeed();
    assert_eq!(sent["receivers"].as_array().unwrap().len(), 1, "{sent}");
    assert!(!late.has("accepted"), "{}", late.stdout());
}

#[test]
fn data_waits_for_as_many_receivers_as_asked() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let first = place.receive("ant", &[]);
    let sender = place.send(&[&file], &with(&["--wait-for", "2"]));
    sender.until("registered");
    pause(Duration::from_secs(1));
    assert!(!sender.has("started"), "{}", sender.stdout());
    let second = place.receive("bee", &[]);
    assert_eq!(sender.until("started")["receivers"], 2);
    sender.succeed();
    first.succeed();
    second.succeed();
    place.assert_received(&file, &["ant", "bee"]);
}

#[test]
fn data_begins_when_enter_is_pressed() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = place.receive("ant", &[]);
    let mut command = place.send_command(&[&file], &with(&["--start-on-enter", "--json"]));
    command.stdin(Stdio::piped());
    let mut sender = place.start("sender", command);
    sender.until("registered");
    pause(Duration::from_secs(1));
    assert!(!sender.has("started"), "{}", sender.stdout());
    sender.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    sender.succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn an_open_group_has_room_for_so_many() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receivers = [place.receive("ant", &[]), place.receive("bee", &[])];
    let sent = place.send(&[&file], &with(&["--limit", "1"])).succeed().summary();
    assert_eq!(sent["receivers"].as_array().unwrap().len(), 1, "{sent}");
    let [first, second] = receivers;
    wait_until("one of two receivers", || first.has("summary") || second.has("summary"));
}

#[test]
fn a_receiver_stays_for_the_next_product() {
    let place = Place::new();
    let receiver = place.start("ant", place.receive_command("ant", &["--json"]));
    receiver.until("listening");
    for (n, name) in (1..).zip(["one.bin", "two.bin"]) {
        let file = place.file(name, 200_000);
        place.send(&[&file], &with(&["--receivers", "ant"])).succeed();
        receiver.until_nth("summary", n);
        place.assert_received(&file, &["ant"]);
    }
    receiver.terminate();
    let ended = receiver.succeed();
    assert_eq!(ended.all("summary").len(), 2);
}

#[test]
fn nobody_answers() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let ended = place.run("sender", place.send_command(&[&file], &with(&["--announce-time", "1500 ms"])));
    // The message names the checks: the receivers, the interface, the TTL, switches, firewalls.
    let group = format!("farcast receive --from {}", place.group);
    let how =
        ["nobody answered", &group, "--interface", "ip route get", "--ttl", "snooping", "nft", "tcpdump"];
    ended.assert_failed(1, &how);
}

#[test]
fn nobody_answers_at_an_address() {
    let place = Place::with_group(|port| format!("127.0.0.1:{port}"));
    let file = place.file("product.bin", 1_000);
    let ended = place.run("sender", place.send_command(&[&file], &with(&["--announce-time", "1500 ms"])));
    ended.assert_failed(1, &["127.0.0.1 does not answer", "farcast receive --from", "firewall", "ping"]);
}

#[test]
fn a_listed_receiver_that_never_comes_is_named() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = place.receive("ant", &[]);
    let args = with(&["--receivers", "ant,ghost", "--start-after", "1 s", "--json"]);
    let ended = place.run("sender", place.send_command(&[&file], &args));
    ended.assert_failed(3, &["ghost (did not register)"]);
    let sent = ended.summary();
    assert_eq!((&sent["exit_code"], &member(&sent, "ghost")["complete"]), (&3.into(), &false.into()));
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_receiver_that_vanishes_is_given_up_and_named() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receiver = place.receive("ant", &[]);
    let vanishing = place.receive("bee", &[]);
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant,bee", "--silence", "3 s", "--json"];
    let sender = place.start("sender", place.send_command(&[&file], &args));
    wait_until("data at the second receiver", || vanishing.has("files"));
    vanishing.kill9();
    let ended = sender.wait();
    ended.assert_failed(3, &["bee (no longer answers)"]);
    assert_eq!(ended.all("lost").len(), 1);
    let sent = ended.summary();
    assert_eq!(member(&sent, "ant")["complete"], true, "{sent}");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn when_the_only_receiver_vanishes_the_sender_says_so() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let vanishing = place.receive("ant", &[]);
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant", "--silence", "3 s", "--json"];
    let sender = place.start("sender", place.send_command(&[&file], &args));
    wait_until("data", || vanishing.has("files"));
    vanishing.kill9();
    let ended = sender.wait();
    assert!(matches!(ended.code, Some(1 | 3)), "{}", ended.story());
    ended.assert_failed(ended.code.unwrap(), &["ant (no longer answers)"]);
}

#[test]
fn a_receiver_that_is_stopped_leaves_and_says_so() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receivers = [place.receive("ant", &[]), place.receive("bee", &[])];
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant,bee", "--json"];
    let sender = place.start("sender", place.send_command(&[&file], &args));
    let [stays, leaves] = receivers;
    wait_until("data", || leaves.has("files"));
    leaves.terminate();
    leaves.wait().assert_failed(1, &["stopped", "kept for the next try"]);
    sender.wait().assert_failed(3, &["bee (left: stopped there)"]);
    stays.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_sender_that_is_stopped_tells_its_receivers() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receiver = place.receive("ant", &[]);
    let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    wait_until("data", || receiver.has("files"));
    sender.terminate();
    sender.wait().assert_failed(1, &["stopped"]);
    receiver.wait().assert_failed(1, &["the sender ended it", "stopped at the sender"]);
}

#[test]
fn a_group_in_use_is_left_to_the_first() {
    let place = Place::new();
    let (file, other) = (place.file("product.bin", 2_000_000), place.file("other.bin", 1_000));
    let receiver = place.receive("ant", &[]);
    let first = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    wait_until("data", || receiver.has("files"));
    let mut second = place.send_command(&[&other], &with(&[]));
    // As on another host.
    second.env("XDG_STATE_HOME", place.path("elsewhere"));
    let second = place.run("second", second);
    second.assert_failed(1, &[&place.group, "in use by a transmission from 127.0.0.1"]);
    first.succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn of_two_senders_on_one_host_the_second_is_refused_at_once() {
    let place = Place::new();
    let (file, other) = (place.file("product.bin", 2_000_000), place.file("other.bin", 1_000));
    let receiver = place.receive("ant", &[]);
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant"];
    let first = place.send(&[&file, &other], &args);
    wait_until("data", || receiver.has("files"));
    let pid = format!("process {}", first.child.id());
    for paths in [[&*file, &*other], [&*other, &*file]] {
        let second = place.run("second", place.send_command(&paths, &args));
        second.assert_one_sentence(1, &[&place.group, "in use by another farcast send", &pid]);
    }
    let sent = first.succeed().summary();
    assert_eq!(dtus_sent(&sent), segments(&sent) + 1, "nothing was sent again: {sent}");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_sender_that_was_killed_keeps_nobody_away() {
    let place = Place::new();
    let file = place.file("product.bin", 200_000);
    let first = place.send(&[&file], &with(&["--receivers", "ant"]));
    let state = place.path("state/farcast");
    let locks = || common::names(&state).into_iter().filter(|name| name.contains(".lock")).count();
    wait_until("its lock", || state.exists() && locks() == 1);
    first.kill9();
    assert_eq!(locks(), 1);
    let receiver = place.receive("ant", &[]);
    place.send(&[&file], &with(&["--receivers", "ant"])).succeed();
    receiver.succeed();
    assert_eq!(locks(), 0, "a lock goes with its owner");
}

#[test]
fn of_two_that_announce_both_go_on() {
    // An announcement blocks no other sender. Otherwise one datagram a second would keep everyone from sending.
    let place = Place::new();
    let (file, other) = (place.file("product.bin", 1_000), place.file("other.bin", 1_000));
    let args = with(&["--announce-time", "5 s"]);
    let start = |path: &std::path::PathBuf, state: &str| {
        let mut command = place.send_command(&[path], &args);
        command.env("XDG_STATE_HOME", place.path(state));
        place.start("sender", command)
    };
    let both = [start(&file, "one"), start(&other, "two")];
    for ended in both.map(common::Running::wait) {
        ended.assert_failed(1, &["nobody answered"]);
    }
}

#[test]
fn of_two_receivers_with_one_name_the_second_is_refused() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let first = place.receive("ant", &[]);
    // Eight seconds: an announcement for those who come late is among them.
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    wait_until("data", || first.has("files"));
    let args = ["receive", "--from", &place.group, "--interface", "127.0.0.1", "--name", "ant", "--once"];
    let mut command = place.farcast(args);
    command.arg("--into").arg(place.path("elsewhere"));
    place.run("second", command).assert_failed(1, &["another receiver has this name", "--name"]);
    let sent = sender.succeed();
    assert_eq!(sent.all("refused")[0]["collision"], true, "{}", sent.story());
    first.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn two_receivers_with_one_name_from_the_start() {
    let place = Place::new();
    let file = place.file("product.bin", 500_000);
    let first = place.receive("ant", &[]);
    let args = ["receive", "--from", &place.group, "--interface", "127.0.0.1", "--name", "ant", "--once"];
    let mut command = place.farcast(args);
    command.arg("--json").arg("--into").arg(place.path("elsewhere"));
    let second = place.start("second", command);
    second.until("listening");
    place.send(&[&file], &["--rate", "2 Mbit/s", "--wait-for", "1"]).succeed();
    let ended = [first.wait(), second.wait()];
    let refused: Vec<_> = ended.iter().filter(|one| one.code == Some(1)).collect();
    assert_eq!(refused.len(), 1, "{} {}", ended[0].story(), ended[1].story());
    refused[0].assert_failed(1, &["another receiver has this name"]);
}

#[test]
fn a_receiver_that_is_not_on_the_list_stays_out_and_is_told() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000_000);
    let stranger = place.receive("stranger", &[]);
    let invited = place.receive("ant", &[]);
    let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    // It does not register (draft §6), so the sender never hears of it; it goes on listening.
    assert_eq!(stranger.until("not_invited")["receiver"], "stranger");
    sender.succeed();
    assert!(!stranger.has("joined"), "{}", stranger.stdout());
    invited.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_receiver_waits_for_a_sender_that_fell_silent_and_stops_when_told() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000_000);
    let receiver = place.receive("ant", &["--patience", "1 s"]);
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    wait_until("data", || receiver.has("files"));
    sender.kill9();
    let said = receiver.until("summary");
    assert_eq!(said["complete"], false, "{said}");
    assert!(said["outcome"].as_str().unwrap().contains("fell silent"), "{said}");
    place.send(&[&file], &with(&["--receivers", "ant"])).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}
