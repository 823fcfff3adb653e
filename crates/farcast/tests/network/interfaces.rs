//! Interfaces that come and go, on separate hosts: network namespaces that these tests make and remove.

use std::path::Path;
use std::time::Duration;

use crate::common::stage::Stage;
use crate::common::{self, Hosts, Place, Running, noise, pause, wait_until};

const ON: [&str; 2] = ["--interface", "eth0"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ON[..], more].concat()
}

/// Starts a receiver of one product at host 2.
fn receive(place: &Place, hosts: &Hosts, args: &[&str]) -> Running {
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(["--name", "ant", "--into"]).arg(place.path("ant")).args(args);
    place.start("ant", hosts.at(2, &command))
}

/// Starts a sender at host 1.
fn send(place: &Place, hosts: &Hosts, file: &Path, args: &[&str]) -> Running {
    let mut command = place.farcast(["send", "--to", &place.group, "--receivers", "ant", "--json"]);
    command.arg(file).args(args);
    place.start("sender", hosts.at(1, &command))
}

/// Octets of a product that takes some seconds at `SLOW`.
const SIZE: usize = 3_000_000;
const SLOW: [&str; 2] = ["--rate", "4 Mbit/s"];

/// Runs a transfer, with `happens` in its middle. Returns the ends of the receiver and the sender.
fn in_mid_transfer(
    place: &Place,
    hosts: &Hosts,
    (receiving, sending): (&[&str], &[&str]),
    happens: impl FnOnce(&Running, &Running),
) -> (common::Ended, common::Ended) {
    let file = place.file("product.bin", SIZE);
    let receiver = receive(place, hosts, receiving);
    receiver.until("listening");
    let sender = send(place, hosts, &file, &[&SLOW[..], sending].concat());
    receiver.until("files");
    happens(&receiver, &sender);
    let sent = sender.succeed();
    let got = receiver.succeed();
    place.assert_received(&file, &["ant"]);
    (got, sent)
}

#[test]
fn a_receiver_waits_for_an_interface_that_is_not_there_yet() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let file = place.file("product.bin", 100_000);
    hosts.unplug(2);
    let receiver = receive(&place, &hosts, &ON);
    let waiting = receiver.until("waiting");
    assert!(waiting["reason"].as_str().unwrap().contains("no interface eth0"), "{waiting}");
    hosts.plug(2);
    receiver.until("listening");
    send(&place, &hosts, &file, &with(&SLOW)).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_sender_waits_for_an_interface_that_is_not_there_yet() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let file = place.file("product.bin", 100_000);
    hosts.unplug(1);
    let receiver = receive(&place, &hosts, &ON);
    receiver.until("listening");
    let sender = send(&place, &hosts, &file, &with(&SLOW));
    sender.until("waiting");
    hosts.plug(1);
    sender.succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

/// A route over an interface without an address for other hosts, such as the loopback interface, is a valid route.
#[test]
fn a_receiver_hears_over_the_loopback_interface_where_the_route_says_so() {
    let (place, hosts) = (Place::new(), Hosts::new(1));
    let file = place.file("product.bin", 100_000);
    hosts.unplug(1);
    hosts.ip(1, &["link", "set", "lo", "up"]);
    hosts.ip(1, &["route", "add", "224.0.0.0/4", "dev", "lo"]);
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(["--name", "ant", "--into"]).arg(place.path("ant"));
    let receiver = place.start("ant", hosts.at(1, &command));
    receiver.until("listening");
    let args = ["--interface", "lo", "--rate", "4 Mbit/s"];
    send(&place, &hosts, &file, &args).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

/// Asserts that an idle receiver hears again after its interface was unplugged and plugged.
fn idle(group: impl FnOnce(u16) -> String, args: &[&str], routes: &[&str]) {
    let (place, hosts) = (Place::with_group(group), Hosts::new(2));
    let file = place.file("product.bin", 100_000);
    let route = || {
        if !routes.is_empty() {
            hosts.ip(2, routes);
        }
    };
    route();
    let receiver = receive(&place, &hosts, args);
    receiver.until("listening");
    hosts.unplug(2);
    receiver.until("waiting");
    hosts.plug(2);
    route();
    receiver.until("rejoined");
    send(&place, &hosts, &file, &with(&SLOW)).succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn an_idle_receiver_hears_again_when_its_interface_is_back() {
    idle(|port| format!("239.255.77.1:{port}"), &ON, &[]);
}

#[test]
fn an_idle_receiver_hears_again_over_ipv6() {
    idle(|port| format!("[ff15::fa:7003]:{port}"), &ON, &[]);
}

#[test]
fn an_idle_receiver_follows_the_routing_table() {
    let route = ["route", "add", "224.0.0.0/4", "dev", "eth0"];
    idle(|port| format!("239.255.77.2:{port}"), &[], &route);
}

#[test]
fn a_receiver_hears_again_in_mid_transfer() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    in_mid_transfer(&place, &hosts, (&ON, &ON), |receiver, _| {
        hosts.unplug(2);
        receiver.until("waiting");
        pause(Duration::from_millis(500));
        hosts.plug(2);
        receiver.until("rejoined");
    });
}

#[test]
fn a_receiver_hears_again_after_its_address_went_and_came() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    in_mid_transfer(&place, &hosts, (&ON, &ON), |receiver, _| {
        // At once, so that only what is told in between shows it.
        hosts.ip(2, &["address", "delete", "10.77.0.2/24", "dev", "eth0"]);
        hosts.ip(2, &["address", "add", "10.77.0.2/24", "dev", "eth0"]);
        receiver.until("rejoined");
    });
}

#[test]
fn a_receiver_goes_on_under_another_address() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let (_, sent) = in_mid_transfer(&place, &hosts, (&ON, &ON), |receiver, _| {
        hosts.ip(2, &["address", "delete", "10.77.0.2/24", "dev", "eth0"]);
        hosts.ip(2, &["address", "add", "10.77.0.22/24", "dev", "eth0"]);
        receiver.until("rejoined");
    });
    let from: Vec<_> = sent.all("registered").iter().map(|one| one["address"].to_string()).collect();
    assert!(from.len() == 2 && from[1].contains("10.77.0.22"), "{from:?}");
}

/// The receiver listens to two groups, and the kernel lets it join only one of them for a while. No change of an
/// interface tells it when it may join again.
#[test]
fn a_receiver_joins_its_private_group_again_however_late() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let file = place.file("product.bin", SIZE);
    let receiver = receive(&place, &hosts, &ON);
    receiver.until("listening");
    let port = place.group.rsplit(':').next().unwrap();
    let mut command = place.farcast(["send", "--announce", &place.group, "--receivers", "ant", "--json"]);
    command.args(["--to", &format!("239.255.77.99:{port}")]).arg(&file).args(with(&SLOW));
    let sender = place.start("sender", hosts.at(1, &command));
    receiver.until("files");
    hosts.sysctl(2, "net.ipv4.igmp_max_memberships=0");
    hosts.ip(2, &["address", "delete", "10.77.0.2/24", "dev", "eth0"]);
    hosts.ip(2, &["address", "add", "10.77.0.2/24", "dev", "eth0"]);
    receiver.until("waiting");
    // The news of the address has been read by then.
    pause(Duration::from_millis(500));
    hosts.sysctl(2, "net.ipv4.igmp_max_memberships=20");
    receiver.until("rejoined");
    sender.succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_receiver_joins_anew_when_the_carrier_is_back() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    in_mid_transfer(&place, &hosts, (&ON, &ON), |receiver, _| {
        hosts.ip(0, &["link", "set", "port2", "down"]);
        pause(Duration::from_millis(500));
        hosts.ip(0, &["link", "set", "port2", "up"]);
        receiver.until("rejoined");
    });
}

#[test]
fn a_sender_holds_data_while_its_interface_is_away() {
    for away in [false, true] {
        let (place, hosts) = (Place::new(), Hosts::new(2));
        let (_, sent) = in_mid_transfer(&place, &hosts, (&ON, &ON), |_, sender| {
            if away {
                hosts.unplug(1);
            } else {
                hosts.ip(0, &["link", "set", "port1", "down"]);
            }
            sender.until("waiting");
            pause(Duration::from_secs(3));
            assert!(!sender.has("lost"), "{}", sender.stdout());
            if away {
                hosts.plug(1);
            } else {
                hosts.ip(0, &["link", "set", "port1", "up"]);
            }
            sender.until("back");
        });
        // If sending had gone on, half of all data would have left in three seconds, and would have had to go again.
        let summary = sent.summary();
        let (went, all) = (common::dtus_sent(&summary), common::segments(&summary));
        assert!(went < all + all / 4, "{went} DTUs for {all}: {summary}");
    }
}

#[test]
fn a_sender_goes_on_under_another_address() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let (got, sent) = in_mid_transfer(&place, &hosts, (&ON, &ON), |_, sender| {
        hosts.ip(1, &["address", "delete", "10.77.0.1/24", "dev", "eth0"]);
        sender.until("waiting");
        hosts.ip(1, &["address", "add", "10.77.0.11/24", "dev", "eth0"]);
        let moved = sender.until("moved");
        assert!(moved["address"].as_str().unwrap().starts_with("10.77.0.11:"), "{moved}");
    });
    assert_eq!(common::member(&sent.summary(), "ant")["complete"], true);
    assert_eq!(got.summary()["confirmed"], true, "its Done reached the new address");
}

/// Asserts that a sender continues after its path has become too narrow for its datagrams.
fn narrow(rate: &str, on: &str) {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let size = if rate == "max" { 400_000_000 } else { SIZE };
    let file = place.file("product.bin", size);
    let receiver = receive(&place, &hosts, &[&ON[..], &["--no-sync"]].concat());
    receiver.until("listening");
    let sender = send(&place, &hosts, &file, &with(&["--rate", rate]));
    receiver.until("files");
    hosts.ip(1, &["link", "set", "eth0", "mtu", on]);
    sender.until("fragmenting");
    assert_eq!(sender.succeed().all("fragmenting").len(), 1, "it is said once");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn a_sender_goes_on_where_the_mtu_shrinks() {
    narrow("4 Mbit/s", "1000");
}

#[test]
fn a_sender_in_batches_goes_on_where_the_mtu_shrinks() {
    narrow("max", "576");
}

/// Streams by each protocol, with `happens` in its middle, and asserts that the whole stream arrives.
fn in_mid_stream(happens: impl Fn(&Stage, &Running, &Running)) {
    for protocol in ["norm", "pgm"] {
        let octets = noise(1, SIZE / 3);
        let stage = Stage::new(protocol, (1, 0), &octets);
        let receiver = stage.receives(2, &[]);
        let script = format!("exec \"$@\" < '{}'", stage.input.display());
        let args = ["--rate", "2 Mbit/s", "--rtt", "20 ms", "--receivers", "2", "--json"];
        let sender = stage.sends(&script, &args);
        let written = || std::fs::metadata(stage.output(2)).map_or(0, |output| output.len());
        wait_until("the first octets", || written() > 100_000);
        happens(&stage, &sender, &receiver);
        sender.succeed();
        receiver.succeed();
        assert!(std::fs::read(stage.output(2)).unwrap() == octets, "{protocol}: another stream arrived");
    }
}

fn until_said(running: &Running, what: &str) {
    wait_until(what, || running.stderr().contains(what));
}

#[test]
fn the_sender_of_a_stream_holds_it_while_its_interface_is_away() {
    in_mid_stream(|stage, sender, _| {
        stage.hosts.unplug(1);
        sender.until("waiting");
        pause(Duration::from_secs(3));
        stage.hosts.plug(1);
        sender.until("back");
    });
}

#[test]
fn the_sender_of_a_stream_goes_on_under_another_address() {
    in_mid_stream(|stage, sender, _| {
        stage.hosts.ip(1, &["address", "delete", "10.77.0.1/24", "dev", "eth0"]);
        sender.until("waiting");
        stage.hosts.ip(1, &["address", "add", "10.77.0.11/24", "dev", "eth0"]);
        let moved = sender.until("moved");
        assert!(moved["address"].as_str().unwrap().starts_with("10.77.0.11:"), "{moved}");
    });
}

#[test]
fn the_receiver_of_a_stream_hears_again_when_its_interface_is_back() {
    in_mid_stream(|stage, _, receiver| {
        stage.hosts.unplug(2);
        until_said(receiver, "waiting: ");
        stage.hosts.plug(2);
        until_said(receiver, "listening again");
    });
}

#[test]
fn a_stopped_receiver_that_waits_ends() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    hosts.unplug(2);
    let receiver = receive(&place, &hosts, &ON);
    receiver.until("waiting");
    receiver.terminate();
    receiver.wait().assert_one_sentence(1, &["stopped before anything came"]);
}
