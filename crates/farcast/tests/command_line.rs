//! What the command line says, to people and to programs.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files"
)]

mod common;

use std::fs;

use common::{Hosts, Place, dtus_sent, wait_until};
use serde_json::Value;

/// Runs `farcast send FILE --to GROUP ARGS`.
fn send(place: &Place, args: &[&str]) -> common::Ended {
    let file = place.file("product.bin", 1_000);
    place.run("sender", place.send_command(&[&file], args))
}

#[test]
fn without_a_rate_it_says_how_to_choose_one() {
    let ended = send(&Place::new(), &[]);
    ended.assert_one_sentence(2, &["--rate is missing", "--rate \"20 Mbit/s\"", "--rate max"]);
}

#[test]
fn quantities_need_units() {
    let place = Place::new();
    for (args, parts) in [
        (["--rate", "20"], ["--rate", "units"]),
        (["--rate", "20 parsec"], ["--rate", "Mbit/s"]),
        (["--rate", "0 Mbit/s"], ["--rate", "within"]),
        (["--start-after", "3"], ["--start-after", "units"]),
        (["--burst", "64"], ["--burst", "units"]),
        (["--status-retry", "soon"], ["--status-retry", "block+4rtt"]),
    ] {
        send(&place, &args).assert_failed(2, &parts);
    }
    place
        .run("ant", place.receive_command("ant", &["--simulate-loss", "200 %"]))
        .assert_failed(2, &["--simulate-loss", "within"]);
}

#[test]
fn wrong_usage_exits_with_2() {
    let place = Place::new();
    let rate = ["--rate", "20 Mbit/s"];
    for (args, part) in [
        (&["--unlimited", "--receivers", "ant"][..], "cannot be used with"),
        (&["--receivers", "ant,ant"], "ant"),
        (&["--announce", "239.1.1.1:9"], "same port"),
        (&["--announce", "[ff15::1]:9"], "same port"),
        (&["--dtu-size", "70000"], "65000"),
        (&["--ttl", "300"], "255"),
        (&["--dscp", "64"], "63"),
        (&["--no-such-option"], "--no-such-option"),
        (&["--log", "/no/such/directory/log"], "/no/such/directory/log"),
    ] {
        send(&place, &[&rate[..], args].concat()).assert_failed(2, &[part]);
    }
    send(&place, &["--rate", "max", "--unlimited"]).assert_one_sentence(2, &["--rate max needs receivers"]);
    let missing = place.path("missing");
    let ended = place.run("sender", place.send_command(&[&missing], &rate));
    ended.assert_one_sentence(2, &["missing", "No such file"]);
    let ended = place.run("sender", place.send_command(&["/dev/null".as_ref()], &rate));
    ended.assert_one_sentence(2, &["not sent"]);
    let long = "n".repeat(65);
    let ended = place.run("ant", place.receive_command(&long, &[]));
    ended.assert_one_sentence(2, &["--name must have 1 to 64 bytes"]);
    let mut command =
        place.farcast(["receive", "--from", "127.0.0.1:20000", "--source", "127.0.0.1", "--into"]);
    command.arg(place.path("ant"));
    place.run("ant", command).assert_failed(2, &["--source needs a multicast group"]);
}

#[test]
fn a_log_among_what_is_sent_or_received_is_refused() {
    let place = Place::new();
    let file = place.file("tree/product.bin", 1_000);
    let (tree, log) = (place.path("tree"), place.path("tree/new.log"));
    for (path, log) in [(&tree, &log), (&file, &file)] {
        let args = ["--rate", "20 Mbit/s", "--log", log.to_str().unwrap()];
        let ended = place.run("sender", place.send_command(&[path], &args));
        ended.assert_one_sentence(2, &["--log", "is sent", "elsewhere"]);
    }
    // By way of a symbolic link it is the same directory.
    std::os::unix::fs::symlink("tree", place.path("ant")).unwrap();
    let ended = place.run("ant", place.receive_command("ant", &["--log", log.to_str().unwrap()]));
    ended.assert_one_sentence(2, &["--log", "could replace it", "elsewhere"]);
    assert!(!log.exists() && fs::read(file).unwrap().len() == 1_000, "nothing was written");
}

#[test]
fn help_names_the_exit_codes() {
    let place = Place::new();
    for command in ["send", "receive"] {
        let ended = place.run("help", place.farcast([command, "--help"]));
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("Exit codes: 0 done, 1 failed, 2 "), "{}", ended.stdout);
    }
}

#[test]
fn what_programs_read_is_consistent() {
    let place = Place::new();
    let (file, log) = (place.file("product.bin", 1_000_000), place.path("log"));
    let log_name = log.to_str().unwrap();
    let receiver = place.receive("ant", &["--simulate-loss", "5 %"]);
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant", "--log", log_name];
    let sender = place.send(&[&file], &args).succeed();
    let receiver = receiver.succeed();
    let lines = fs::read_to_string(&log).unwrap();
    assert_eq!(lines, sender.stdout, "the log has the same lines");
    for ended in [&sender, &receiver] {
        let events = ended.events();
        let times: Vec<f64> = events.iter().map(|event| event["time"].as_f64().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(events.last().unwrap()["event"], "summary");
        assert!(ended.stderr.is_empty(), "nothing else is said: {}", ended.stderr);
    }
    let (sent, got) = (sender.summary(), receiver.summary());
    assert_eq!(sent["exit_code"], 0);
    assert_eq!(sent["passes"].as_u64().unwrap(), sent["dtus_per_pass"].as_array().unwrap().len() as u64);
    let wire = sent["wire_bytes"].as_f64().unwrap();
    let ratio = wire / sent["size_bytes"].as_f64().unwrap();
    assert!((sent["wire_bytes_over_size"].as_f64().unwrap() - ratio).abs() < 1e-9, "{sent}");
    assert!(sent["datagrams"].as_u64().unwrap() > dtus_sent(&sent), "{sent}");
    assert!(sent["time_s"].as_f64() >= sent["data_time_s"].as_f64(), "{sent}");
    let member = common::member(&sent, "ant");
    assert_eq!(member["naked_dtus"], got["naked_dtus"], "{sent} {got}");
    assert!(got["naks"].as_u64() >= member["naks"].as_u64(), "5 % of them were lost, or none: {sent} {got}");
    assert_eq!(
        (&got["segments"], &got["segments_have"]),
        (&common::segments(&sent).into(), &got["segments"])
    );
    assert_eq!(got["size_bytes"], sent["size_bytes"]);
    assert_eq!(sender.all("pass").len() as u64, sent["passes"].as_u64().unwrap());
    let files = receiver.all("files");
    assert_eq!(files[0]["files"][0], serde_json::json!({ "path": "product.bin", "size_bytes": 1_000_000 }));
}

#[test]
fn a_log_without_json_has_the_lines_for_programs() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let (ours, theirs) = (place.path("send.log"), place.path("receive.log"));
    let args = ["--once", "--log", theirs.to_str().unwrap()];
    let receiver = place.start("ant", place.receive_command("ant", &args));
    wait_until("the receiver listens", || receiver.stderr().contains("listens on"));
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant", "--log", ours.to_str().unwrap()];
    let sender = place.run("sender", place.send_command(&[&file], &args));
    assert_eq!(sender.code, Some(0), "{}", sender.story());
    let receiver = receiver.succeed();
    // The closing table for people: each receiver, the passes, the bytes on the wire over those of the file.
    for part in ["ant", "done", "passes", "on the wire", "times the size"] {
        assert!(sender.stdout.contains(part), "no {part:?} in {}", sender.stdout);
    }
    assert!(receiver.stderr.contains("complete and verified"), "{}", receiver.stderr);
    for (log, last) in [(ours, "summary"), (theirs, "summary")] {
        let text = fs::read_to_string(log).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.last().unwrap()["event"], last, "{text}");
    }
}

#[test]
fn quiet_is_quiet() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = place.start("ant", place.receive_command("ant", &["--once", "--quiet"]));
    let args = ["--rate", "20 Mbit/s", "--receivers", "ant", "--quiet"];
    let sender = place.run("sender", place.send_command(&[&file], &args));
    for ended in [sender, receiver.succeed()] {
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str(), ended.code), ("", "", Some(0)));
    }
}

#[test]
fn progress_is_shown_to_people() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let receiver = place.start("ant", place.receive_command("ant", &["--once"]));
    // Four seconds: two lines.
    let args = ["--rate", "4 Mbit/s", "--receivers", "ant"];
    let sender = place.run("sender", place.send_command(&[&file], &args));
    let receiver = receiver.succeed();
    assert!(sender.stderr.contains("pass 1") && sender.stderr.contains(" DTUs, "), "{}", sender.stderr);
    assert!(
        receiver.stderr.contains("receiving ") && receiver.stderr.contains("loss"),
        "{}",
        receiver.stderr
    );
}

#[test]
fn a_command_runs_when_a_product_is_complete() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let command = "echo \"$FARCAST_DIR $FARCAST_PRODUCT $FARCAST_SENDER\" > \"$FARCAST_DIR/note\"";
    let receiver = place.receive("ant", &["--on-complete", command]);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.succeed();
    let note = fs::read_to_string(place.path("ant/note")).unwrap();
    let expected = format!("{} product.bin 127.0.0.1:", place.path("ant").display());
    assert!(note.starts_with(&expected), "{note}");
    assert_eq!(ended.all("on_complete")[0]["exit_code"], 0);
}

#[test]
fn a_command_that_fails_is_told_of_and_the_product_stays() {
    let place = Place::new();
    let file = place.file("product.bin", 100_000);
    let receiver = place.receive("ant", &["--on-complete", "exit 7"]);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.succeed();
    ended.assert_one_sentence(0, &["--on-complete", "7"]);
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_time_limit_ends_it() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let receiver = place.receive("ant", &[]);
    let args = ["--rate", "1 Mbit/s", "--receivers", "ant", "--time-limit", "2 s", "--json"];
    let ended = place.run("sender", place.send_command(&[&file], &args));
    ended.assert_one_sentence(1, &["--time-limit"]);
    receiver.wait().assert_failed(1, &["kept"]);
}

#[test]
fn an_interface_that_is_not_there_or_no_use() {
    let (place, hosts) = (Place::new(), Hosts::new(3));
    hosts.ip(1, &["address", "flush", "dev", "eth0"]);
    hosts.ip(2, &["link", "set", "eth0", "down"]);
    hosts.ip(3, &["link", "set", "eth0", "multicast", "off"]);
    let file = place.file("product.bin", 1_000);
    for (host, interface, parts) in [
        (1, "nosuch0", ["there is no interface nosuch0", "ip address"]),
        (1, "10.9.9.9", ["there is no interface 10.9.9.9", "ip address"]),
        (1, "eth0", ["eth0 has no IPv4 address", "--interface"]),
        (2, "eth0", ["eth0 is down", "ip link set eth0 up"]),
        (3, "eth0", ["eth0 does no multicast", "multicast on"]),
    ] {
        let mut send = place.farcast(["send", "--to", &place.group, "--rate", "max", "--json"]);
        send.args(["--interface", interface]).arg(&file);
        place.run("sender", hosts.at(host, &send)).assert_one_sentence(1, &parts);
        let mut receive =
            place.farcast(["receive", "--from", &place.group, "--interface", interface, "--json"]);
        receive.arg("--into").arg(place.path("ant"));
        place.run("ant", hosts.at(host, &receive)).assert_one_sentence(1, &parts);
    }
}

#[test]
fn no_route() {
    let hosts = Hosts::new(1);
    for (group, way) in [
        ("239.255.7.7:20000", "--interface"),
        ("192.0.2.77:20000", "ip route"),
        ("[2001:db8::77]:20000", "ip route"),
    ] {
        let place = Place::with_group(|_| group.into());
        let file = place.file("product.bin", 1_000);
        let mut send = place.farcast(["send", "--to", group, "--rate", "max", "--json"]);
        send.arg(&file);
        place.run("sender", hosts.at(1, &send)).assert_one_sentence(1, &["there is no route to", way]);
    }
    let place = Place::new();
    let mut receive = place.farcast(["receive", "--from", &place.group, "--json", "--into"]);
    receive.arg(place.path("ant"));
    place.run("ant", hosts.at(1, &receive)).assert_one_sentence(1, &["there is no route to", "--interface"]);
}

#[test]
fn an_address_that_is_not_ours() {
    let place = Place::new();
    let mut command = place.farcast(["receive", "--from", "192.0.2.1:20000", "--json", "--into"]);
    command.arg(place.path("ant"));
    place.run("ant", command).assert_one_sentence(1, &["cannot listen on 192.0.2.1:20000"]);
}
