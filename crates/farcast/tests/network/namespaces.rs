//! Transfers between separate hosts: network namespaces on one bridge, which these tests make and remove.

use std::path::Path;

use crate::common::{self, Hosts, Place, Running};

/// Starts a receiver at host `n`, known by its address or by a name.
fn receive(place: &Place, hosts: &Hosts, n: usize, args: &[&str]) -> Running {
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.arg("--into").arg(place.path(&format!("host{n}"))).args(args);
    let running = place.start(&format!("host{n}"), hosts.at(n, &command));
    running.until("listening");
    running
}

/// Starts a sender at host 1.
fn send(place: &Place, hosts: &Hosts, file: &Path, args: &[&str]) -> Running {
    let mut command = place.farcast(["send", "--to", &place.group, "--json"]);
    command.arg(file).args(args);
    place.start("sender", hosts.at(1, &command))
}

#[test]
fn five_lossy_hosts_known_by_their_addresses() {
    let (place, hosts) = (Place::new(), Hosts::new(6));
    let file = place.file("product.bin", 5_000_000);
    let mut receivers = Vec::new();
    for n in 2..=6 {
        hosts.lose(n, 3);
        receivers.push(receive(&place, &hosts, n, &["--interface", "eth0"]));
    }
    let everyone = "10.77.0.2,10.77.0.3,10.77.0.4,10.77.0.5,10.77.0.6";
    let args = ["--interface", "eth0", "--rate", "20 Mbit/s", "--receivers", everyone];
    let sent = send(&place, &hosts, &file, &args).succeed().summary();
    for (n, receiver) in (2..).zip(receivers) {
        let got = receiver.succeed().summary();
        // 3 % of 3,492 are 105, give or take 10.
        let lost = got["naked_dtus"].as_u64().unwrap();
        assert!((50..400).contains(&lost), "host {n}: {got}");
        let member = common::member(&sent, &format!("10.77.0.{n}"));
        assert_eq!(member["complete"], true, "{sent}");
    }
    place.assert_received(&file, &["host2", "host3", "host4", "host5", "host6"]);
}

#[test]
fn an_open_group_through_routes_at_the_rate_of_acknowledgements() {
    let (place, hosts) = (Place::new(), Hosts::new(3));
    let file = place.file("product.bin", 5_000_000);
    let mut receivers = Vec::new();
    for n in 1..=3 {
        hosts.ip(n, &["route", "add", "224.0.0.0/4", "dev", "eth0"]);
    }
    for n in 2..=3 {
        hosts.lose(n, 1);
        receivers.push(receive(&place, &hosts, n, &[]));
    }
    send(&place, &hosts, &file, &["--rate", "max", "--wait-for", "2"]).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    place.assert_received(&file, &["host2", "host3"]);
}

/// Sends to two lossy hosts over IPv6.
fn over_ipv6(group: &str, args: &[&str], no_addresses: bool) {
    let (place, hosts) = (Place::with_group(|port| format!("[{group}]:{port}")), Hosts::new(3));
    if no_addresses {
        for n in 1..=3 {
            hosts.ip(n, &["address", "delete", &format!("fd77::{n}/64"), "dev", "eth0"]);
            hosts.wait_for_link_local(n);
        }
    }
    let file = place.file("product.bin", 500_000);
    let mut receivers = Vec::new();
    for n in 2..=3 {
        hosts.lose(n, 3);
        let args = [&["--interface", "eth0"][..], args].concat();
        receivers.push(receive(&place, &hosts, n, &args));
    }
    let args = ["--interface", "eth0", "--rate", "20 Mbit/s", "--wait-for", "2"];
    send(&place, &hosts, &file, &args).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    place.assert_received(&file, &["host2", "host3"]);
}

#[test]
fn ipv6_of_the_site() {
    over_ipv6("ff15::fa:7001", &[], false);
}

#[test]
fn ipv6_of_the_link() {
    over_ipv6("ff12::fa:7001", &[], false);
}

#[test]
fn ipv6_where_hosts_have_link_local_addresses_only() {
    over_ipv6("ff02::fa:7001", &[], true);
}

#[test]
fn ipv6_of_one_source() {
    over_ipv6("ff35::fa:7001", &["--source", "fd77::1"], false);
}

#[test]
fn ipv4_of_one_source() {
    let place = Place::with_group(|port| format!("232.77.0.1:{port}"));
    let hosts = Hosts::new(3);
    let file = place.file("product.bin", 500_000);
    let receiver = receive(&place, &hosts, 2, &["--interface", "eth0", "--source", "10.77.0.1"]);
    let deaf = receive(&place, &hosts, 3, &["--interface", "eth0", "--source", "10.77.0.9"]);
    send(&place, &hosts, &file, &["--interface", "10.77.0.1", "--rate", "20 Mbit/s"]).succeed();
    receiver.succeed();
    place.assert_received(&file, &["host2"]);
    assert!(!deaf.has("joined"), "it listens to another source: {}", deaf.stdout());
}

#[test]
fn a_receiver_without_a_name_is_called_by_its_ipv6_address() {
    let (place, hosts) = (Place::with_group(|port| format!("[ff15::fa:7002]:{port}")), Hosts::new(2));
    let file = place.file("product.bin", 100_000);
    let receiver = receive(&place, &hosts, 2, &["--interface", "eth0"]);
    assert_eq!(receiver.until("listening")["receiver"], "fd77::2");
    let args = ["--interface", "eth0", "--rate", "20 Mbit/s", "--receivers", "fd77::2"];
    let sent = send(&place, &hosts, &file, &args).succeed().summary();
    assert_eq!(common::member(&sent, "fd77::2")["complete"], true, "{sent}");
    receiver.succeed();
}

#[test]
fn a_receiver_hears_the_interface_that_it_was_told_and_no_other() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    let file = place.file("product.bin", 500_000);
    let receiver = receive(&place, &hosts, 2, &["--interface", "eth0", "--name", "ant"]);
    // The host has joined the group where the other listens, and this one is not to profit from it.
    let deaf = receive(&place, &hosts, 2, &["--interface", "lo", "--name", "bee"]);
    send(&place, &hosts, &file, &["--interface", "eth0", "--rate", "20 Mbit/s"]).succeed();
    receiver.succeed();
    assert!(!deaf.has("joined"), "it listens to another interface: {}", deaf.stdout());
}
