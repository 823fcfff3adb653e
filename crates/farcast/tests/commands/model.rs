//! `farcast model`: its results against values worked out by hand, its refusals, and the object for programs.

use serde_json::Value;

use crate::common::{Ended, Place};

fn model(args: &[&str]) -> Ended {
    let place = Place::new();
    place.run("model", place.farcast([&["model"], args].concat()))
}

/// Returns the only object that `--json` prints.
fn json(args: &[&str]) -> Value {
    let ended = model(&[args, &["--json"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.story());
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Asserts the number at a key within a relative error of 1e-5, or an absolute one of 1e-9 close to zero.
fn assert_number(object: &Value, key: &str, expected: f64) {
    let number = object[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {object}"));
    assert!((number - expected).abs() <= 1e-5 * expected.abs().max(1e-4), "{key}: {number}, not {expected}");
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// With p = 1/4, b = 2, RTT = T0 = 1 s and no window: E\[`W_u`\] = 2/3 + sqrt(40/9) = 2.774852, Q = 1, f = 1.4921875, B
/// = (3 + 2.774852 + 4/3)/(3.774852 + 1.989583) = 1.233110, T = (3 + 1.387426 + 1)/5.764435 = 0.934597. The
/// approximation gives 1/(sqrt(1/3) + 1 * 1/4 * 3) = 0.753381.
#[test]
fn pftk_by_hand() {
    let object = json(&[
        "pftk",
        "--loss",
        "25 %",
        "--rtt",
        "1 s",
        "--timeout",
        "1 s",
        "--mss",
        "1000 B",
        "--size",
        "10 kB",
    ]);
    for (key, expected) in [
        ("throughput_packets_per_s", 1.233_110),
        ("throughput_bit_per_s", 9_864.88),
        ("received_packets_per_s", 0.934_597),
        ("unconstrained_window_packets", 2.774_852),
        ("timeout_probability", 1.0),
        ("approximate_packets_per_s", 0.753_381),
        ("transfer_time_s", 10.0 / 1.233_110),
    ] {
        assert_number(&object, key, expected);
    }
    assert_eq!((&object["model"], &object["bound"]), (&"pftk".into(), &"loss".into()));
    assert!(object["window_packets"].is_null());
    assert_eq!(
        keys(&object),
        [
            "approximate_bit_per_s",
            "approximate_bound",
            "approximate_packets_per_s",
            "bound",
            "loss",
            "model",
            "mss_bytes",
            "packets_per_ack",
            "received_packets_per_s",
            "rtt_s",
            "size_bytes",
            "size_packets",
            "throughput_bit_per_s",
            "throughput_packets_per_s",
            "timeout_probability",
            "timeout_s",
            "transfer_time_s",
            "unconstrained_window_packets",
            "window_packets",
        ]
    );
}

/// Without loss the throughput is a window per round trip: 64 KiB/1460 in 0.5 s, or 34 packets.
#[test]
fn windows_are_sizes_or_packets() {
    for (window, packets) in [("64 KiB", 65_536.0 / 1460.0), ("34 packets", 34.0), ("1 packet", 1.0)] {
        let object = json(&["pftk", "--loss", "0", "--rtt", "500 ms", "--window", window]);
        assert_number(&object, "window_packets", packets);
        assert_number(&object, "throughput_packets_per_s", 2.0 * packets);
        assert_number(&object, "timeout_s", 1.0);
        assert_eq!(object["bound"], "window");
        assert!(object["unconstrained_window_packets"].is_null(), "{object}");
        assert!(object.get("transfer_time_s").is_none(), "no size was given");
    }
}

/// sqrt(3/4)/(0.5 s * 0.1) = 17.3205 packets/s, and sqrt(3/2) with an ACK for each packet.
#[test]
fn mathis_by_hand() {
    let object = json(&["mathis", "--loss", "0.01", "--rtt", "500 ms", "--size", "1460 B"]);
    assert_number(&object, "throughput_packets_per_s", 17.320_508);
    assert_number(&object, "throughput_bit_per_s", 17.320_508 * 11_680.0);
    assert_number(&object, "constant", 0.866_025);
    assert_number(&object, "transfer_time_s", 1.0 / 17.320_508);
    let object = json(&["mathis", "--loss", "0.01", "--rtt", "500 ms", "--packets-per-ack", "1"]);
    assert_number(&object, "constant", 1.224_745);
    assert_number(&object, "throughput_packets_per_s", 24.494_897);
}

/// 146 kB are 100 packets. Without loss there are log(1 + 100/(2*2))/log(1.5) = 8.035 rounds, and one for the
/// handshake.
#[test]
fn cardwell_by_hand() {
    let base = ["cardwell", "--size", "146 kB", "--rtt", "100 ms", "--initial-window", "2"];
    let object = json(&[&base[..], &["--loss", "0"]].concat());
    let slow_start = 0.1 * 26.0_f64.ln() / 1.5_f64.ln();
    assert_number(&object, "slow_start_s", slow_start);
    assert_number(&object, "handshake_s", 0.1);
    assert_number(&object, "transfer_time_s", slow_start + 0.1);
    assert_number(&object, "throughput_bit_per_s", 146_000.0 * 8.0 / (slow_start + 0.1));
    // The terms worked out apart from the printed equations.
    let lossy = ["--loss", "0.01", "--window", "20 packets", "--timeout", "1 s", "--return-loss", "0.01"];
    let object = json(&[&base[..], &lossy, &["--syn-timeout", "3 s"]].concat());
    for (key, expected) in [
        ("slow_start_packets", 63.762_798),
        ("slow_start_window_packets", 20.0),
        ("slow_start_s", 0.706_701),
        ("loss_s", 0.173_076),
        ("congestion_avoidance_s", 0.551_342),
        ("delayed_ack_s", 0.0),
        ("handshake_s", 0.161_224),
        ("transfer_time_s", 1.592_344),
    ] {
        assert_number(&object, key, expected);
    }
    assert_eq!(object["bound"], "window");
    let object = json(&[&base[..], &["--loss", "0.01", "--no-handshake"]].concat());
    assert_number(&object, "handshake_s", 0.0);
    assert!(object.get("syn_timeout_s").is_none());
}

/// The defaults are the paper's bundle: 5.62 MB, with 1 MB = 1 024 000 octets, take the printed 51 min.
#[test]
fn mlppp_is_the_papers() {
    let object = json(&["mlppp", "--size", "5754880 B"]);
    let minutes = object["transfer_time_s"].as_f64().unwrap() / 60.0;
    assert!((minutes - 51.0).abs() < 0.5, "{minutes}");
    assert_number(&object, "unconstrained_window_packets", 52.2978);
    assert_number(&object, "timeout_after_drop_s", 60.0601);
    assert_number(&object, "share_sending", 0.839_840);
    assert_number(&object, "drop_interval_s", 375.0);
    // A window's size is rounded up to whole packets.
    let sized = json(&["mlppp", "--size", "5754880 B", "--window", "47.9 KiB"]);
    assert_eq!(sized, object);
}

/// 1000 octets and 530 ms: sqrt(3/2)/(0.53 * 0.1 * (1 + 0.09 * 1.0032)) = 21.1948 packets/s.
#[test]
fn pgmcc_by_hand() {
    let object = json(&["pgmcc", "--loss", "0.01", "--rtt", "530 ms", "--mss", "1000 B"]);
    assert_number(&object, "slowness_s", 0.057_785_3);
    assert_number(&object, "throughput_packets_per_s", 21.194_761);
    assert_number(&object, "throughput_bit_per_s", 169_558.0);
    let limited = json(&["pgmcc", "--loss", "0", "--rtt", "530 ms", "--window", "32 packets"]);
    assert_number(&limited, "throughput_packets_per_s", 32.0 / 0.53);
    assert_eq!(limited["bound"], "window");
}

#[test]
fn refusals_are_one_sentence() {
    let pftk = ["pftk", "--loss", "0.01", "--rtt", "1 s"];
    let with = |more: &[&'static str]| [&pftk[..], more].concat();
    for (args, sentence) in [
        (vec!["pftk", "--loss", "1", "--rtt", "1 s"], "the loss probability is 1; it must be below 1"),
        (vec!["mathis", "--loss", "0", "--rtt", "1 s"], "nothing bounds the throughput"),
        (vec!["pgmcc", "--loss", "0.1", "--rtt", "0 s"], "the round trip takes 0 s"),
        (with(&["--timeout", "0.5 s"]), "the timeout is 0.5 s; it must be at least the round trip, 1 s"),
        (with(&["--packets-per-ack", "0"]), "0 packets for each ACK were given; there must be 1 to 64"),
        (with(&["--window", "100 B"]), "packets; it must be 1 to 1073741824 packets"),
        (with(&["--window", "NaN packets"]), "the window is NaN packets"),
        (with(&["--mss", "0 B"]), "the data in a packet is 0 octets; it must be 1 to 4294967295 octets"),
        (vec!["mlppp", "--links", "0"], "the bundle has 0 links"),
        (
            vec!["mlppp", "--links", "50"],
            "a call of the bundle drops every 60.000 s; drops must be further apart than the timeout",
        ),
        (
            vec!["cardwell", "--size", "0 B", "--loss", "0.01", "--rtt", "1 s"],
            "the transfer has 0 segments; it must have at least 1",
        ),
        (
            vec!["cardwell", "--size", "1 kB", "--loss", "0.5", "--rtt", "1 s"],
            "the loss probability of a packet of the handshake is 0.5; it must be below 0.5",
        ),
    ] {
        let ended = model(&args);
        ended.assert_one_sentence(2, &[sentence]);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[test]
fn quantities_need_units_and_names_must_be_known() {
    for (args, part) in [
        (["pftk", "--loss", "0.1", "--rtt", "600"], "a number needs one of the units"),
        (["pftk", "--loss", "1.5", "--rtt", "1 s"], "it must lie within 0 to 1"),
        (["mlppp", "--window", "34", "--links", "8"], "it must be a number of packets"),
        (["padhye", "--loss", "0.1", "--rtt", "1 s"], "padhye"),
    ] {
        model(&args).assert_failed(2, &[part]);
    }
}

#[test]
fn tables_for_people_have_what_went_in_and_what_came_out() {
    let ended = model(&["mlppp", "--size", "5754880 B"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.story());
    for line in [
        "round trip                         19  s",
        "window                             34  packets",
        "                                 3975  packets",
        "                                  15.053  kbit/s",
        "bounded by                                the window",
        "transfer time                     3058.9  s",
    ] {
        assert!(ended.stdout.lines().any(|one| one == line), "no {line:?}: {}", ended.story());
    }
}
