//! Transfers by NORM: on the loopback interface, between hosts with losses both ways, after a kill, and as simulated.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::common::{Ended, Hosts, Place, Running, member, wait_for_journal, wait_until};

const NORM: [&str; 2] = ["--protocol", "norm"];
/// Round trip of this machine. Without the option the protocol assumes half a second.
const QUICK: [&str; 2] = ["--rtt", "20 ms"];

fn receive(place: &Place, name: &str, args: &[&str]) -> Running {
    place.receive(name, &[&NORM[..], args].concat())
}

fn send(place: &Place, files: &[&Path], args: &[&str]) -> Running {
    place.send(files, &[&NORM[..], &QUICK[..], args].concat())
}

/// Starts a receiver at host `n`, known by its address.
fn receive_at(place: &Place, hosts: &Hosts, n: usize, args: &[&str]) -> Running {
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(NORM).args(["--interface", "eth0"]).args(args);
    command.arg("--into").arg(place.path(&format!("host{n}")));
    let running = place.start(&format!("host{n}"), hosts.at(n, &command));
    running.until("listening");
    running
}

/// Starts a sender at host 1.
fn send_at(place: &Place, hosts: &Hosts, file: &Path, args: &[&str]) -> Running {
    let mut command = place.farcast(["send", "--to", &place.group, "--json", "--interface", "eth0"]);
    command.arg(file).args(NORM).args(QUICK).args(args);
    place.start("sender", hosts.at(1, &command))
}

fn segments_sent(summary: &Value) -> u64 {
    summary["segments_per_round"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
}

#[test]
fn three_hosts_that_lose_both_ways_known_by_their_addresses() {
    let (place, hosts) = (Place::new(), Hosts::new(4));
    let file = place.file("product.bin", 3_000_000);
    // What receivers say is lost, too.
    hosts.lose(1, 10);
    let mut receivers = Vec::new();
    for n in 2..=4 {
        hosts.lose(n, 5);
        receivers.push(receive_at(&place, &hosts, n, &[]));
    }
    let args = ["--rate", "20 Mbit/s", "--receivers", "10.77.0.2,10.77.0.3,10.77.0.4"];
    let sent = send_at(&place, &hosts, &file, &args).succeed().summary();
    assert_eq!((&sent["outcome"], &sent["exit_code"]), (&"acknowledged".into(), &0.into()), "{sent}");
    for (n, receiver) in (2..).zip(receivers) {
        let got = receiver.succeed().summary();
        assert_eq!((&got["vouched"], &got["complete"]), (&true.into(), &true.into()), "{got}");
        assert_eq!(member(&sent, &format!("10.77.0.{n}"))["complete"], true, "{sent}");
    }
    place.assert_received(&file, &["host2", "host3", "host4"]);
    // 2,084 segments, and repairs by coding for three receivers that lose a twentieth.
    let segments = segments_sent(&sent);
    assert!((2_084..2_084 * 5 / 4).contains(&segments), "{sent}");
}

#[test]
fn one_host_by_unicast() {
    let hosts = Hosts::new(2);
    let place = Place::with_group(|port| format!("10.77.0.2:{port}"));
    let file = place.file("product.bin", 500_000);
    hosts.lose(2, 5);
    let receiver = receive_at(&place, &hosts, 2, &[]);
    send_at(&place, &hosts, &file, &["--rate", "20 Mbit/s", "--receivers", "10.77.0.2"]).succeed();
    receiver.succeed();
    place.assert_received(&file, &["host2"]);
}

#[test]
fn each_file_of_a_tree_is_an_object() {
    let place = Place::new();
    place.file("tree/a.bin", 100_000);
    place.file("tree/b/c.bin", 1);
    place.file("tree/b/empty", 0);
    let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "10 %"]));
    send(&place, &[&place.path("tree")], &["--rate", "20 Mbit/s", "--receivers", "ant,bee"]).succeed();
    for receiver in receivers {
        let ended = receiver.succeed();
        assert_eq!(ended.all("summary").len(), 3, "{}", ended.story());
    }
    place.assert_received(&place.path("tree"), &["ant", "bee"]);
}

#[test]
fn a_receiver_killed_midway_goes_on() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let killed = receive(&place, "ant", &[]);
    let other = receive(&place, "bee", &["--simulate-loss", "2 %"]);
    let sender = send(&place, &[&file], &["--rate", "8 Mbit/s", "--receivers", "ant,bee"]);
    let journal = wait_for_journal(&place.path("ant"));
    let changed = || fs::metadata(&journal).and_then(|stat| stat.modified()).ok();
    let first = changed();
    wait_until("a second checkpoint", || changed() != first);
    killed.kill9();
    assert!(!place.path("ant").join("product.bin").exists(), "a file that is not complete has no name");
    let away = Instant::now();
    let again = receive(&place, "ant", &[]);
    // At 8 Mbit/s, in segments of 1440 octets.
    let missed = (away.elapsed().as_secs_f64() * 8e6 / 8.0 / 1440.0) as u64;
    let got = again.succeed().summary();
    other.succeed();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant", "bee"]);
    let held = got["segments_held_before"].as_u64().unwrap();
    assert!(held > 0, "nothing was kept: {got}");
    // The receiver asks only for data that was sent while it was away. Before its store has answered, it asks for
    // nothing. The rest is repairs for the other receiver's losses.
    let (asked, twice) = (got["naked_dtus"].as_u64().unwrap(), got["duplicates"].as_u64().unwrap());
    assert!(held + asked < 2_084 + 260, "{held} kept: {got}");
    let most = 2_084 + asked.max(missed) + 260;
    assert!(segments_sent(&sent) < most && twice < 260, "{held} kept, {missed} missed: {sent} {got}");
}

#[test]
fn a_named_receiver_that_is_not_there_is_told_of() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = receive(&place, "ant", &[]);
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant,nobody", "--robust", "3"];
    let sent = send(&place, &[&file], &args).wait();
    sent.assert_failed(3, &["not every receiver is known to have it: nobody did not acknowledge"]);
    let summary = sent.summary();
    assert_eq!(summary["outcome"], "incomplete");
    assert_eq!(member(&summary, "ant")["complete"], true, "{summary}");
    assert_eq!(member(&summary, "nobody")["complete"], false, "{summary}");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn with_nobody_named_it_is_not_known_who_has_it() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = receive(&place, "ant", &["--simulate-loss", "5 %"]);
    let mut command = place.send_command(&[&file], &[&NORM[..], &QUICK[..]].concat());
    command.args(["--rate", "20 Mbit/s", "--robust", "5"]);
    let sent: Ended = place.start("sender", command).succeed();
    assert!(sent.stdout.contains("who has it is not known"), "{}", sent.story());
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_sender_that_is_stopped_leaves_nothing_half_written() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, "ant", &[]);
    let sender = send(&place, &[&file], &["--rate", "8 Mbit/s", "--receivers", "ant"]);
    wait_for_journal(&place.path("ant"));
    sender.terminate();
    sender.wait().assert_failed(1, &["stopped; receivers keep what has come"]);
    receiver.until("summary");
    assert!(!place.path("ant").join("product.bin").exists());
    // The same command goes on where it stopped.
    let again = send(&place, &[&file], &["--rate", "8 Mbit/s", "--receivers", "ant"]);
    again.succeed();
    let told = receiver.succeed().all("summary");
    assert!(told[1]["segments_held_before"].as_u64().unwrap() > 0, "nothing was kept: {told:?}");
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_killed_sender_goes_on_with_receivers_that_have_waited() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, "ant", &[]);
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant"];
    let sender = send(&place, &[&file], &args);
    wait_for_journal(&place.path("ant"));
    sender.kill9();
    let sent = send(&place, &[&file], &args).succeed().summary();
    assert_eq!(member(&sent, "ant")["complete"], true, "{sent}");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let place = Place::new();
    let file = place.file("product.bin", 1000);
    let refused = |args: &[&str], parts: &[&str]| {
        let mut command = place.send_command(&[&file], &NORM);
        command.args(args);
        place.run("sender", command).assert_one_sentence(2, parts);
    };
    refused(&[], &["--rate is missing"]);
    refused(&["--rate", "max"], &["--rate max is MFTP's"]);
    let rate = ["--rate", "1 Mbit/s"];
    refused(&[&rate[..], &["--receivers", "7,0.0.0.7"]].concat(), &["7 and 0.0.0.7 are the same node"]);
    refused(&[&rate[..], &["--receivers", "0"]].concat(), &["is no node"]);
    refused(&[&rate[..], &["--parity", "32768"]].concat(), &["--parity: 32768 is out of range"]);
    refused(&[&rate[..], &["--predict", "geo"]].concat(), &["--predict has to know how many receive"]);
}
