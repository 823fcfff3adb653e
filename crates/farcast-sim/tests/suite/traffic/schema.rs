//! Schema of `[[traffic]]`: keys, and error messages.

use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;

use super::tcp::GEO;
use super::{CBR, beside};
use crate::worlds::{count, document, error, once, transfer};
use farcast_mftp::figures;

#[test]
fn flows_are_set_by_name() {
    let base = once(CBR, &[]);
    let fast = once(CBR, &["traffic.two.rate=1 Mbit/s"]);
    let sent = |all: &Replication| [0, 1].map(|n| super::cbr(&all.flows[n]).sent);
    // A second at a packet every 2 ms, or every 1 ms.
    assert_eq!((sent(&base), sent(&fast)), ([5001, 500], [5001, 1000]));
    assert_eq!(fast.flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn presets_have_defaults_that_keys_change() {
    let shown = |settings: &[&str], key: &str| {
        let document = document(GEO, settings).unwrap();
        Scenario::read(&document).unwrap();
        let keys = document.keys_read();
        let found = keys.iter().find(|(name, ..)| name == &format!("traffic.bulk.{key}"));
        found.unwrap_or_else(|| panic!("no {key} in {keys:?}")).1.clone()
    };
    for (settings, key, expected) in [
        (&[][..], "initial_window", "\"2 packets\""),
        (&[], "delayed_ack", "\"off\""),
        (&[], "rto.min", "\"200 ms\""),
        (&[], "rto.initial", "\"3 s\""),
        (&[], "rto.granularity", "\"10 ms\""),
        (&[], "initial_ssthresh", "\"1000 packets\""),
        (&["traffic.bulk.initial_ssthresh=none"], "initial_ssthresh", "\"none\""),
        (&["traffic.bulk.preset=linux_2_4"], "first_window", "\"5840 B\""),
        (&[], "timestamps", "false"),
        (&[], "packet_overhead", "\"20 B\""),
        (&["traffic.bulk.recovery=newreno"], "sack", "false"),
        (&["traffic.bulk.preset=modern"], "congestion", "\"cubic\""),
        (&["traffic.bulk.preset=modern"], "recovery", "\"sack\""),
        (&["traffic.bulk.preset=modern"], "rto.variation", "\"linux\""),
        (&["traffic.bulk.preset=linux_2_4"], "rto.variation", "\"rfc6298\""),
        (&["traffic.bulk.preset=modern"], "after_timeout", "\"linux\""),
        (&["traffic.bulk.preset=rfc"], "after_timeout", "\"slow_start\""),
        (&["traffic.bulk.preset=modern"], "reduction", "\"proportional_safe\""),
        (&["traffic.bulk.preset=modern"], "increase", "\"delivered\""),
        (&["traffic.bulk.preset=rfc", "traffic.bulk.increase=octets"], "increase", "\"octets\""),
        (&["traffic.bulk.preset=linux_2_4"], "delayed_ack", "\"quick\""),
        (&["traffic.bulk.preset=rfc"], "initial_window", "\"rfc6928\""),
        (
            &["traffic.bulk.preset=rfc", "traffic.bulk.initial_window=3 packets"],
            "initial_window",
            "\"3 packets\"",
        ),
        (&["traffic.bulk.window=64 KiB"], "window", "\"64 KiB\""),
    ] {
        assert_eq!(shown(settings, key), expected, "{settings:?} {key}");
    }
}

/// Asserts that these settings of `text` are refused with messages that begin with these sentences.
fn refuses(text: &str, cases: &[(&[&str], &str)]) {
    for (settings, expected) in cases {
        let said = error(text, settings);
        assert!(said.starts_with(expected), "{settings:?}: {said}");
    }
}

#[test]
fn what_a_flow_cannot_be_is_refused_in_one_sentence() {
    refuses(
        CBR,
        &[
            (&["traffic.one.rate=300"], "--set traffic.one.rate=300: traffic.one.rate: 300 has no unit; "),
            (
                &["traffic.three.rate=1 kbit/s"],
                "--set traffic.three.rate=1 kbit/s: traffic.three: this list has no ",
            ),
            (
                &["traffic.one.protocol=tpc"],
                "--set traffic.one.protocol=tpc: traffic.one.protocol: \"tpc\" is not known, did you mean \"tcp\"; it must be one of \"tcp\", \"cbr\", \"ftp\"",
            ),
            (
                &["traffic.one.size=1 MB"],
                "--set traffic.one.size=1 MB: traffic.one.size: this key is unknown",
            ),
            (
                &["traffic.one.stop=0 s"],
                "--set traffic.one.stop=0 s: traffic.one.stop: it stops before it has sent anything; a time after start",
            ),
            (
                &["traffic.one.on=1 s"],
                "--set traffic.one.on=1 s: traffic.one.on: a pause needs both its times; on and off",
            ),
            (
                &["traffic.one.off=1 s"],
                "--set traffic.one.off=1 s: traffic.one.off: a pause needs both its times; on and off",
            ),
            (
                &["traffic.one.on=0 s", "traffic.one.off=1 s"],
                "--set traffic.one.on=0 s: traffic.one.on: it never sends; a time above zero",
            ),
            (
                &["traffic.one.payload=65508 B"],
                "--set traffic.one.payload=65508 B: traffic.one.payload: it fits no datagram; at most 65507 B",
            ),
            (
                &["traffic.one.direction=up"],
                "--set traffic.one.direction=up: traffic.one.direction: \"up\" is not known; it must be one of \"forward\", \"return\"",
            ),
            (&["traffic=[]"], "--set traffic=[]: traffic: it is empty; at least one [[traffic]]"),
            (&["receivers=3"], "test.toml: protocol: this key is missing at the top; "),
            (&["protocol.file=1 kB"], "test.toml: receivers: this key is missing at the top; "),
        ],
    );
}

#[test]
fn what_a_connection_cannot_be_is_refused_in_one_sentence() {
    refuses(
        GEO,
        &[
            (
                &["traffic.bulk.size=0 B"],
                "--set traffic.bulk.size=0 B: traffic.bulk.size: there is nothing to transfer; at least 1 B",
            ),
            (&["traffic.bulk.window=20"], "--set traffic.bulk.window=20: traffic.bulk.window: "),
            (
                &["traffic.bulk.window=many packets"],
                "--set traffic.bulk.window=many packets: traffic.bulk.window: \"many packets\" is not known; a number of packets or a size, as in \"20 packets\" or \"64 KiB\"",
            ),
            (
                &["traffic.bulk.window=0 packets"],
                "--set traffic.bulk.window=0 packets: traffic.bulk.window: a receive window of 0 octets cannot work: ",
            ),
            (
                &["traffic.bulk.initial_window=rfc1"],
                "--set traffic.bulk.initial_window=rfc1: traffic.bulk.initial_window: \"rfc1\" is not known; ",
            ),
            (
                &["traffic.bulk.mss=70 kB"],
                "--set traffic.bulk.mss=70 kB: traffic.bulk.mss: it fits no segment; 64 B to 65535 B",
            ),
            (
                &["traffic.bulk.mss=10 B"],
                "--set traffic.bulk.mss=10 B: traffic.bulk.mss: a maximum segment size of 10 octets is too small: at least 64; ",
            ),
            (
                &["traffic.bulk.recovery=fak"],
                "--set traffic.bulk.recovery=fak: traffic.bulk.recovery: \"fak\" is not known, did you mean \"fack\"; ",
            ),
            (
                &["traffic.bulk.sack=false"],
                "test.toml:12: traffic.bulk.recovery: this recovery works on SACK blocks, and sack is off; ",
            ),
            (
                &["traffic.bulk.rto.min=1 h"],
                "--set traffic.bulk.rto.min=1 h: traffic.bulk.rto: the retransmission timer needs ",
            ),
            (
                &["traffic.bulk.rto.mni=1 s"],
                "--set traffic.bulk.rto.mni=1 s: traffic.bulk.rto.mni: this key is unknown, did you mean min; ",
            ),
        ],
    );
}

#[test]
fn tcp_needs_links_that_take_time() {
    let text = GEO.split_once("[link").unwrap().0;
    assert_eq!(
        error(text, &[]),
        "test.toml:10: traffic.bulk.protocol: over links that take no time TCP would send without end in one instant; a \
         rate or a delay in link.forward or link.return"
    );
    let all = once(text, &["link.return.delay=1 ms", "time_limit=1 s"]);
    assert!(all.flows[0].octets > 0);
    let varying = ["link.forward.delay=20 ms", "link.forward.jitter=20 ms", "time_limit=10 s"];
    assert!(once(text, &varying).flows[0].octets > 100_000);
}

#[test]
fn two_flows_of_one_name_are_refused() {
    let twice = CBR.replace("\"two\"", "\"one\"");
    assert_eq!(
        error(&twice, &[]),
        "test.toml:8: traffic: two members of this list are named \"one\"; each must have its own name"
    );
}

#[test]
fn links_of_other_kinds_carry_flows_too() {
    let flows = "[[traffic]]\nname = \"up\"\nprotocol = \"tcp\"\ndirection = \"return\"\nsize = \"20 kB\"\n\
                 [[traffic]]\nname = \"down\"\nprotocol = \"tcp\"\nsize = \"20 kB\"\n";
    let text = beside(flows)
        .replace("[link.forward]\ndelay = \"250 ms\"\nloses = \"data\"", "[link.forward]\nkind = \"bgan\"")
        .replace("[link.return]\ndelay = \"250 ms\"", "[link.return]\nkind = \"bgan\"");
    let all = once(&text, &["protocol.rate=300 kbit/s", "link.forward.per=0.01"]);
    for flow in &all.flows {
        let time = flow.completion_time_s.unwrap();
        assert!(time > 2.0 && flow.octets == 20_000, "{flow:?}");
    }
    assert_eq!(transfer(&all).incomplete, 0);
    assert!(
        count(&all, figures::NAKS_COLLIDED) > 0,
        "terminals of flows contend with receivers and each other: {all:?}"
    );
    // An outage holds packets back, and stages in a row carry them as well.
    let held = "[[link.stages]]\nname = \"sky\"\ndirection = \"forward\"\nkind = \"hold\"\nstart = \"0 s\"\n\
                length = \"7 s\"\n[[link.stages]]\nname = \"tail\"\ndirection = \"return\"\ndelay = \"1 s\"\n\
                rate = \"1 Mbit/s\"\n";
    let all = once(&format!("{CBR}{held}"), &["traffic.one.stop=1 s"]);
    let delay = super::cbr(&all.flows[0]).delay_p95_s.unwrap();
    // Packet n, which left at 2n ms, is sent from 7000 + n ms on; to a thousandth, 25 of 500 packets take longer than
    // packet 25.
    assert!((delay - (7.0 + 0.001 * 26.0 + 0.1 - 0.050)).abs() < 0.007, "{delay}");
}
