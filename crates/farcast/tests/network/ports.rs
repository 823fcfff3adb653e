//! Ports and firewalls, on separate hosts: network namespaces that these tests make and remove.

use std::path::Path;
use std::process::Command;

use crate::common::{self, Hosts, Place, Running, run};

const ON: [&str; 2] = ["--interface", "eth0"];
const RATE: [&str; 2] = ["--rate", "20 Mbit/s"];
const REFUSED: &str = "this host refuses to send: Operation not permitted (a firewall rule of its own?)";

fn receive(place: &Place, hosts: &Hosts, args: &[&str]) -> Running {
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json", "--name", "7"]);
    command.arg("--into").arg(place.path("7")).args(args);
    let running = place.start("7", hosts.at(2, &command));
    running.until("listening");
    running
}

fn send(place: &Place, hosts: &Hosts, file: &Path, args: &[&str]) -> Running {
    let mut command = place.farcast(["send", "--to", &place.group, "--json"]);
    command.arg(file).args(RATE).args(args);
    place.start("sender", hosts.at(1, &command))
}

/// Loads rules of nftables at host `n`.
fn nft(hosts: &Hosts, n: usize, rules: &str) {
    let mut nft = Command::new("nft");
    // Its grammar has ends of lines.
    nft.arg(rules.replace("; ", ";\n").replace("{ ", "{\n") + "\n");
    run(&mut hosts.at(n, &nft));
}

/// Drops the outgoing packets of host `n` that `which` describes.
fn refuse(hosts: &Hosts, n: usize, which: &str) {
    nft(
        hosts,
        n,
        &format!("table inet own {{ chain out {{ type filter hook output priority 0; {which} drop; }}; }}"),
    );
}

#[test]
fn a_host_that_refuses_to_send_says_so() {
    for protocol in ["mftp", "norm", "mdp", "pgm", "one-way"] {
        let (place, hosts) = (Place::new(), Hosts::new(1));
        let file = place.file("product.bin", 10_000);
        refuse(&hosts, 1, "meta l4proto udp");
        let ended = send(&place, &hosts, &file, &[&ON[..], &["--protocol", protocol]].concat()).wait();
        ended.assert_failed(1, &[REFUSED]);
        assert_eq!(ended.all("blocked").len(), 1, "{protocol}: {}", ended.story());
    }
    for protocol in ["norm", "pgm"] {
        let (place, hosts) = (Place::new(), Hosts::new(1));
        refuse(&hosts, 1, "meta l4proto udp");
        let mut command = place.farcast(["send", "--stream", "--to", &place.group, "--protocol", protocol]);
        command.args(ON).args(RATE);
        let ended = place.run("stream", hosts.at(1, &command));
        ended.assert_failed(1, &[REFUSED]);
    }
}

#[test]
fn a_receiver_that_may_not_answer_says_so() {
    for protocol in ["mftp", "norm", "mdp", "pgm"] {
        let (place, hosts) = (Place::new(), Hosts::new(2));
        let file = place.file("product.bin", 10_000);
        // IGMP passes, answers do not.
        refuse(&hosts, 2, "meta l4proto udp");
        let receiver = receive(&place, &hosts, &[&ON[..], &["--protocol", protocol]].concat());
        let sender =
            send(&place, &hosts, &file, &[&ON[..], &["--protocol", protocol, "--receivers", "7"]].concat());
        let refused = receiver.until("blocked");
        assert_eq!(refused["reason"], REFUSED, "{protocol}");
        sender.kill9();
        receiver.kill9();
    }
}

/// The sender is behind a firewall with one open port, which drops all other incoming packets.
#[test]
fn a_sender_behind_a_firewall_hears_answers_at_its_port() {
    for protocol in ["mftp", "norm", "mdp", "pgm"] {
        let (place, hosts) = (Place::new(), Hosts::new(2));
        let file = place.file("product.bin", 100_000);
        nft(
            &hosts,
            1,
            "table inet wall { chain in { type filter hook input priority 0; policy drop; iif lo accept; \
             ct state established,related accept; ip protocol igmp accept; udp dport 5402 accept; }; }",
        );
        let to_sender = ["--protocol", protocol, "--answers", "sender"];
        let answering =
            if protocol == "norm" || protocol == "mdp" { &to_sender[..] } else { &to_sender[..2] };
        let receiver = receive(&place, &hosts, &[&ON[..], answering].concat());
        let args = [&ON[..], &["--protocol", protocol, "--receivers", "7", "--answer-port", "5402"]].concat();
        let sent = send(&place, &hosts, &file, &args).wait();
        assert_eq!(sent.code, Some(0), "{protocol}: {}", sent.story());
        receiver.succeed();
        place.assert_received(&file, &["7"]);
    }
}

/// The receiver's answers may leave from one port only.
#[test]
fn a_receiver_answers_from_its_port() {
    for protocol in ["mftp", "norm", "mdp", "pgm"] {
        let (place, hosts) = (Place::new(), Hosts::new(2));
        let file = place.file("product.bin", 100_000);
        refuse(&hosts, 2, "meta l4proto udp udp sport != 5403");
        let args = [&ON[..], &["--protocol", protocol, "--answer-port", "5403"]].concat();
        let receiver = receive(&place, &hosts, &args);
        let args = [&ON[..], &["--protocol", protocol, "--receivers", "7"]].concat();
        send(&place, &hosts, &file, &args).succeed();
        receiver.succeed();
        place.assert_received(&file, &["7"]);
    }
}

#[test]
fn a_port_that_cannot_be_is_refused() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    for (args, part) in [
        (&["--protocol", "one-way"][..], "nobody answers"),
        (&["--protocol", "pgm", "--raw"], "--raw uses no UDP"),
    ] {
        let args = [&RATE[..], &["--answer-port", "5402"], args].concat();
        place
            .run("sender", place.send_command(&[&file], &args))
            .assert_one_sentence(2, &["--answer-port", part]);
    }
    let port = place.port.to_string();
    let ended = place.run("ant", place.receive_command("ant", &["--answer-port", &port]));
    ended.assert_one_sentence(2, &["the port that is listened to"]);
}

/// The zone of an IPv6 address is its interface.
#[test]
fn the_zone_of_an_address_is_the_interface() {
    for (group, args) in [
        ("[ff12::fa:7001%eth0]", &[][..]),
        ("[ff15::fa:7001%eth0]", &[]),
        ("[ff02::fa:7001]", &["--interface", "eth0"]),
    ] {
        let (place, hosts) = (Place::with_group(|port| format!("{group}:{port}")), Hosts::new(2));
        for n in 1..=2 {
            hosts.wait_for_link_local(n);
        }
        let file = place.file("product.bin", 10_000);
        let receiver = receive(&place, &hosts, args);
        send(&place, &hosts, &file, &[args, &["--receivers", "7"]].concat()).succeed();
        receiver.succeed();
        place.assert_received(&file, &["7"]);
    }
    let place = Place::with_group(|port| format!("[ff12::fa:7001%eth0]:{port}"));
    let file = place.file("product.bin", 1_000);
    let ended = place.run("sender", place.send_command(&[&file], &RATE));
    ended.assert_failed(2, &["%eth0 names an interface, and --interface names 127.0.0.1"]);
    let mut command = place.farcast(["receive", "--from", "[ff12::1%nosuch0]", "--once", "--into"]);
    command.arg(place.path("7"));
    let running = place.start("7", command);
    common::wait_until("it waits", || running.stderr().contains("there is no interface nosuch0"));
}
