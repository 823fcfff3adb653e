//! Paths that carry shorter datagrams than the first link, on separate hosts: network namespaces that these tests make
//! and remove.

use crate::common::{Ended, Hosts, Place, Running};

const SIZE: usize = 2_000_000;
const PROTOCOLS: [&str; 4] = ["mftp", "norm", "mdp", "pgm"];

/// Starts receiver `n` at host `n`.
fn receive(place: &Place, hosts: &Hosts, n: usize, args: &[&str]) -> Running {
    let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
    command.args(["--name", &n.to_string(), "--into"]).arg(place.path(&format!("host{n}"))).args(args);
    let running = place.start(&format!("host{n}"), hosts.at(n, &command));
    running.until("listening");
    running
}

/// Sends a file from host 1. Returns the end of the sender, and the octets sent divided by the size.
fn send(place: &Place, hosts: &Hosts, args: &[&str]) -> (Ended, f64) {
    let file = place.file("product.bin", SIZE);
    let mut command = place.farcast(["send", "--to", &place.group, "--rate", "20 Mbit/s", "--json"]);
    command.arg(file).args(args);
    let before = hosts.sent_by(1);
    let ended = place.start("sender", hosts.at(1, &command)).wait();
    (ended, (hosts.sent_by(1) - before) as f64 / SIZE as f64)
}

/// Sends by `protocol` to receiver 3 over IPv4. It is behind a router, whose link carries packets of `mtu` octets.
fn routed(protocol: &str, mtu: &str, says: bool) {
    routed_to("10.78.0.3", protocol, mtu, says);
}

/// Sends in the same way to one of the receiver's addresses.
fn routed_to(address: &str, protocol: &str, mtu: &str, says: bool) {
    let (place, hosts) = (Place::with_group(|port| format!("{address}:{port}")), Hosts::new(3));
    hosts.route(2, 3, mtu, says);
    let receiver = receive(&place, &hosts, 3, &["--protocol", protocol]);
    let args = ["--protocol", protocol, "--receivers", "3"];
    let (sent, octets) = send(&place, &hosts, &args);
    assert_eq!(sent.code, Some(0), "{protocol}: {}", sent.stdout);
    receiver.succeed();
    assert!(octets < 1.3, "{protocol}: {octets} times the size");
    place.assert_received(&place.path("product.bin"), &["host3"]);
}

#[test]
fn a_router_that_carries_less_and_says_nothing() {
    for protocol in PROTOCOLS {
        routed(protocol, "1400", false);
    }
    routed("mftp", "576", false);
}

#[test]
fn a_router_that_carries_less_and_says_so() {
    for protocol in PROTOCOLS {
        routed(protocol, "1492", true);
    }
    routed("mftp", "576", true);
}

#[test]
fn a_router_over_ipv6_that_carries_less() {
    for protocol in PROTOCOLS {
        routed_to("[fd78::3]", protocol, "1400", true);
    }
    routed_to("[fd78::3]", "norm", "1400", false);
}

/// Sends by `protocol` to receivers 2 and 3. Packets longer than `octets` do not reach receiver 2. Returns the end of
/// the sender.
fn one_is_narrow(place: &Place, (protocol, octets): (&str, u32), args: &[&str]) -> Ended {
    let hosts = Hosts::new(3);
    hosts.drop_longer(2, octets);
    let on = [&["--protocol", protocol, "--interface", "eth0"], args].concat();
    let receivers = [2, 3].map(|n| receive(place, &hosts, n, &on));
    let (sent, times) = send(place, &hosts, &[&on[..], &["--receivers", "2,3"]].concat());
    assert_eq!(sent.code, Some(0), "{protocol}: {}", sent.stdout);
    for receiver in receivers {
        receiver.succeed();
    }
    assert!(times < 1.3, "{protocol}: {times} times the size");
    place.assert_received(&place.path("product.bin"), &["host2", "host3"]);
    sent
}

#[test]
fn what_is_long_is_cut_where_it_does_not_arrive() {
    for protocol in PROTOCOLS {
        let sent = one_is_narrow(&Place::new(), (protocol, 1400), &[]);
        let narrow = sent.all("narrow");
        assert_eq!(narrow.len(), 1, "{protocol}: {narrow:?}");
        assert_eq!(narrow[0]["address"], "10.77.0.2");
        let datagram = narrow[0]["datagram_bytes"].as_u64().unwrap();
        let pieces = if datagram > 1252 { 1252 } else { 548 };
        assert_eq!(narrow[0]["pieces_bytes"], pieces, "{protocol}: {narrow:?}");
    }
}

/// A virtual bridge passes batches of datagrams that are not cut yet, and drops each datagram that leaves by itself.
#[test]
fn a_bridge_that_passes_batches_alone_is_noticed() {
    for (protocol, mtu) in [("mftp", "576"), ("norm", "1400"), ("mdp", "576"), ("pgm", "1400")] {
        let (place, hosts) = (Place::new(), Hosts::new(3));
        hosts.shrink(2, mtu);
        let on = ["--protocol", protocol, "--interface", "eth0"];
        let receivers = [2, 3].map(|n| receive(&place, &hosts, n, &on));
        let (sent, times) = send(&place, &hosts, &[&on[..], &["--receivers", "2,3"]].concat());
        assert_eq!(sent.code, Some(0), "{protocol}: {}", sent.stdout);
        for receiver in receivers {
            receiver.succeed();
        }
        assert!(times < 1.3, "{protocol}: {times} times the size: {}", sent.summary());
        place.assert_received(&place.path("product.bin"), &["host2", "host3"]);
    }
}

#[test]
fn what_would_be_cut_in_vain_is_cut_smaller_at_once() {
    // MDP's are short enough to be cut into the smallest pieces from the beginning.
    for protocol in ["mftp", "norm", "pgm"] {
        let sent = one_is_narrow(&Place::new(), (protocol, 576), &["--no-offload"]);
        let narrow = sent.all("narrow");
        assert_eq!(narrow.len(), 1, "{protocol}: {narrow:?}");
        assert_eq!(narrow[0]["pieces_bytes"], 548, "{protocol}: {narrow:?}");
        assert!(narrow[0]["datagram_bytes"].as_u64().unwrap() > 1252, "{protocol}: {narrow:?}");
    }
}

#[test]
fn what_is_long_is_cut_over_ipv6() {
    let place = Place::with_group(|port| format!("[ff15::fa:7004]:{port}"));
    let sent = one_is_narrow(&place, ("mftp", 1280), &[]);
    assert_eq!(sent.all("narrow")[0]["pieces_bytes"], 1232);
}

#[test]
fn where_nothing_is_dropped_nothing_is_cut() {
    for protocol in PROTOCOLS {
        let sent = one_is_narrow(&Place::new(), (protocol, 1500), &["--no-offload"]);
        assert!(sent.all("narrow").is_empty(), "{protocol}");
    }
}

#[test]
fn one_way_a_receiver_says_what_to_set() {
    let (place, hosts) = (Place::new(), Hosts::new(2));
    hosts.drop_longer(2, 1400);
    let on = ["--protocol", "one-way", "--interface", "eth0"];
    let receiver = receive(&place, &hosts, 2, &on);
    let (sent, _) = send(&place, &hosts, &[&on[..], &["--symbol-size", "1440"]].concat());
    assert!(sent.all("narrow").is_empty(), "nobody can tell it");
    let narrow = receiver.until("narrow");
    let fits = narrow["fits_bytes"].as_u64().unwrap().to_string();
    assert_eq!(narrow["told"], false, "{narrow}");
    // The port that drops packets treats a batch as one datagram.
    send(&place, &hosts, &[&on[..], &["--symbol-size", &fits, "--no-offload"]].concat());
    receiver.succeed();
    place.assert_received(&place.path("product.bin"), &["host2"]);
}
