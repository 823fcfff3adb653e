//! Files travel by MDP: on the loopback interface, and between hosts with losses both ways.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files"
)]

mod common;

use std::fs;
use std::path::Path;

use common::{Hosts, Place, Running};

const MDP: [&str; 2] = ["--protocol", "mdp"];
/// The round trip of this machine: half a second would be reckoned with else.
const QUICK: [&str; 4] = ["--rtt", "20 ms", "--rate", "20 Mbit/s"];

fn receive(place: &Place, name: &str, args: &[&str]) -> Running {
    place.receive(name, &[&MDP[..], args].concat())
}

fn send(place: &Place, files: &[&Path], args: &[&str]) -> Running {
    place.send(files, &[&MDP[..], &QUICK[..], args].concat())
}

/// MDP says nothing of a file but its name: its times are those of its arrival.
fn assert_bytes(sent: &Path, got: &Path) {
    assert!(fs::read(sent).unwrap() == fs::read(got).unwrap(), "content of {}", got.display());
}

#[test]
fn files_arrive_repaired_by_parity() {
    let place = Place::new();
    let files = [("product.bin", 1_000_001)];
    let paths = files.map(|(name, size)| place.file(name, size));
    let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "10 %"]));
    let sent: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let sent = send(&place, &sent, &["--receivers", "ant,bee"]).succeed().summary();
    assert_eq!((&sent["outcome"], &sent["exit_code"]), (&"acknowledged".into(), &0.into()), "{sent}");
    for receiver in receivers {
        let ended = receiver.succeed();
        let summaries = ended.all("summary");
        assert_eq!(summaries.len(), files.len(), "{}", ended.story());
        for got in summaries {
            assert_eq!((&got["vouched"], &got["complete"]), (&false.into(), &true.into()), "{got}");
        }
    }
    for name in ["ant", "bee"] {
        for (path, (file, _)) in paths.iter().zip(files) {
            assert_bytes(path, &place.path(name).join(file));
        }
    }
}

#[test]
fn a_named_receiver_that_is_not_there_is_missed() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    let ant = receive(&place, "ant", &[]);
    let ended = send(&place, &[&file], &["--receivers", "ant,bee"]).wait();
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    assert!(ended.stderr.contains("bee did not acknowledge"), "{}", ended.story());
    ant.succeed();
    assert_bytes(&file, &place.path("ant").join("product.bin"));
}

#[test]
fn one_host_by_unicast_that_loses_both_ways() {
    let hosts = Hosts::new(2);
    let place = Place::with_group(|port| format!("10.77.0.2:{port}"));
    let file = place.file("product.bin", 500_000);
    hosts.lose(1, 5);
    hosts.lose(2, 5);
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(MDP).args(["--interface", "eth0", "--into"]).arg(place.path("host2"));
    let receiver = place.start("host2", hosts.at(2, &command));
    receiver.until("listening");
    let mut command = place.farcast(["send", "--to", &place.group, "--json", "--interface", "eth0"]);
    command.arg(&file).args(MDP).args(QUICK).args(["--receivers", "10.77.0.2"]);
    place.start("sender", hosts.at(1, &command)).succeed();
    receiver.succeed();
    assert_bytes(&file, &place.path("host2").join("product.bin"));
}
