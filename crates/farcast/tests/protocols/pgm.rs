//! Transfers by PGM: on the loopback interface, between hosts with losses both ways, after a kill, and as simulated.

use std::fs;
use std::path::Path;

use crate::common::{Hosts, Place, Running, kill_midway, member, rounds_sent, wait_for_journal};

const PGM: [&str; 2] = ["--protocol", "pgm"];
/// Round trip of this machine. Without the option the protocol assumes half a second.
const RTT: [&str; 2] = ["--rtt", "20 ms"];

fn receive(place: &Place, name: &str, args: &[&str]) -> Running {
    place.receive(name, &[&PGM[..], &RTT, args].concat())
}

fn send(place: &Place, files: &[&Path], args: &[&str]) -> Running {
    place.send(files, &[&PGM[..], &RTT, &["--rate", "20 Mbit/s"], args].concat())
}

/// Sends at a rate that leaves time for a kill.
fn send_slowly(place: &Place, file: &Path, args: &[&str]) -> Running {
    place.send(&[file], &[&PGM[..], &RTT, &["--rate", "8 Mbit/s"], args].concat())
}

#[test]
fn files_arrive_repaired() {
    let unasked = ["--parity-ahead", "1", "--block-size", "8"];
    let ways =
        [&[][..], &["--cc"], &["--parity", "auto"], &unasked, &["--parity", "auto", "--parity-ahead", "2"]];
    for way in ways {
        let place = Place::new();
        let file = place.file("product.bin", 1_000_001);
        let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "5 %"]));
        let args = [&["--receivers", "ant,bee"], way].concat();
        let sent = send(&place, &[&file], &args).succeed().summary();
        assert_eq!((&sent["outcome"], &sent["exit_code"]), (&"acknowledged".into(), &0.into()), "{sent}");
        let digest = blake3::hash(&fs::read(&file).unwrap()).to_string();
        for receiver in receivers {
            let got = receiver.succeed().summary();
            assert_eq!((&got["vouched"], &got["complete"]), (&true.into(), &true.into()), "{got}");
            assert_eq!(got["digest"], digest.as_str(), "{got}");
        }
        place.assert_received(&file, &["ant", "bee"]);
    }
}

#[test]
fn each_file_of_a_tree_is_an_object_and_may_be_empty() {
    let place = Place::new();
    place.file("tree/a.bin", 100_000);
    place.file("tree/b/c.bin", 1);
    place.file("tree/b/empty", 0);
    let receivers = ["ant", "bee"].map(|name| receive(&place, name, &["--simulate-loss", "10 %"]));
    send(&place, &[&place.path("tree")], &["--receivers", "ant,bee"]).succeed();
    for receiver in receivers {
        let ended = receiver.succeed();
        assert_eq!(ended.all("summary").len(), 3, "{}", ended.story());
    }
    place.assert_received(&place.path("tree"), &["ant", "bee"]);
}

#[test]
fn a_receiver_killed_midway_goes_on_with_what_it_has_kept() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let killed = receive(&place, "ant", &[]);
    let other = receive(&place, "bee", &["--simulate-loss", "2 %"]);
    let sender = send_slowly(&place, &file, &["--receivers", "ant,bee"]);
    kill_midway(&place, killed);
    let got = receive(&place, "ant", &[]).succeed().summary();
    other.succeed();
    let sent = sender.succeed().summary();
    place.assert_received(&file, &["ant", "bee"]);
    let held = got["segments_held_before"].as_u64().unwrap();
    assert!(held > 0 && got["vouched"] == true, "nothing was kept: {got}");
    // There are 2,073 segments with their descriptions. Stored data is not requested again, and missing data leaves at
    // most twice more.
    let again = rounds_sent(&sent).saturating_sub(2_075);
    assert!(again <= 2 * (2_073 - held) && again < 2_073 / 2, "{held} kept: {sent}");
}

#[test]
fn a_killed_sender_goes_on_with_receivers_that_have_waited() {
    let place = Place::new();
    let file = place.file("product.bin", 3_000_000);
    let receiver = receive(&place, "ant", &[]);
    let sender = send_slowly(&place, &file, &["--receivers", "ant"]);
    wait_for_journal(&place.path("ant"));
    sender.kill9();
    assert!(!place.path("ant").join("product.bin").exists(), "a file that is not complete has no name");
    let sent = send_slowly(&place, &file, &["--receivers", "ant"]).succeed().summary();
    assert_eq!(member(&sent, "ant")["complete"], true, "{sent}");
    let told = receiver.succeed().all("summary");
    assert!(told.last().unwrap()["segments_held_before"].as_u64().unwrap() > 0, "nothing was kept: {told:?}");
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_plan_is_followed_and_what_it_takes_predicted() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let plan = place.path("plan.toml");
    fs::write(&plan, "[protocol]\nname = \"pgm\"\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n").unwrap();
    let mut command = place.send_command(&[&file], &PGM);
    command.arg("--plan").arg(&plan).args(["--receivers", "ant,bee", "--predict", "geo", "--json"]);
    let ended = place.start("sender", command).succeed();
    let predicted = ended.all("prediction").remove(0);
    assert_eq!((&predicted["receivers"], &predicted["unfinished"]), (&2.into(), &0.into()), "{predicted}");
    // 70 segments of at most 1,500 octets, and half of 500 ms.
    let took = predicted["completion_time_s"]["mean"].as_f64().unwrap();
    assert!(took > 0.8 && took < 3.0, "{predicted}");
    assert!(!place.path("ant").exists(), "nothing was sent");
    let refused = |args: &[&str], parts: &[&str]| {
        let mut command = place.send_command(&[&file], &PGM);
        command.args(args);
        place.run("sender", command).assert_one_sentence(2, parts);
    };
    refused(&[], &["--rate is missing"]);
    refused(&["--rate", "max"], &["--rate max is MFTP's"]);
    refused(&["--rate", "1 Mbit/s", "--predict", "geo"], &["--predict has to know how many receive"]);
    refused(&["--rate", "1 Mbit/s", "--parity", "8"], &["--parity"]);
}

#[test]
fn a_named_receiver_that_is_not_there_is_missed() {
    let place = Place::new();
    let file = place.file("product.bin", 10_000);
    let ant = receive(&place, "ant", &[]);
    let ended = send(&place, &[&file], &["--receivers", "ant,bee", "--linger", "3 s"]).wait();
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    assert!(ended.stderr.contains("bee did not acknowledge"), "{}", ended.story());
    ant.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn one_host_by_unicast_that_loses_both_ways_by_udp_and_by_ip_alone() {
    for raw in [&[][..], &["--raw"]] {
        let hosts = Hosts::new(2);
        let place = Place::with_group(|port| format!("10.77.0.2:{port}"));
        let file = place.file("product.bin", 500_000);
        hosts.lose(1, 5);
        hosts.lose(2, 5);
        let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
        command.args(PGM).args(RTT).args(raw).args(["--interface", "eth0", "--into"]);
        command.arg(place.path("host2"));
        let receiver = place.start("host2", hosts.at(2, &command));
        receiver.until("listening");
        let mut command = place.farcast(["send", "--to", &place.group, "--json", "--interface", "eth0"]);
        command.arg(&file).args(PGM).args(RTT).args(raw).args(["--rate", "20 Mbit/s"]);
        command.args(["--receivers", "10.77.0.2"]);
        place.start("sender", hosts.at(1, &command)).succeed();
        receiver.succeed();
        place.assert_received(&file, &["host2"]);
    }
}
