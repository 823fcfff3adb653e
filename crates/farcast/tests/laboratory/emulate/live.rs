//! Link that is watched and changed while it runs, and the record of the changes.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::run::{Emulate, need};
use crate::common::{Place, wait_until};

const LINK: &str =
    "[link.forward]\nrate = \"8 Mbit/s\"\ndelay = \"30 ms\"\n[link.return]\ndelay = \"20 ms\"\n";

/// Sends a request to the emulation of process `pid`. Returns the answer and the exit code.
fn ask(place: &Place, pid: u32, request: &Value) -> (Value, Option<i32>) {
    let command = place.farcast(["emulate", "--control", &pid.to_string(), &request.to_string()]).output();
    let output = command.unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (answer, output.status.code())
}

#[test]
fn a_link_changes_while_ping_runs() {
    need("ping", "iputils-ping");
    let place = Place::new();
    let emulate = Emulate::toml(&place, "live", LINK).near("exec ping -n -i 0.2 -c 100 $FARCAST_PEER");
    let mut child = emulate.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let snapshot = || ask(&place, pid, &json!({"snapshot": {}})).0["ok"]["snapshot"].clone();
    wait_until("the emulation answers", || {
        let asked = place.farcast(["emulate", "--control", &pid.to_string(), r#"{"snapshot":{}}"#]).output();
        asked.unwrap().status.success()
    });
    wait_until("packets have come back", || snapshot()["forward"]["delivered"]["packets"].as_u64() > Some(2));

    let (described, _) = ask(&place, pid, &json!({"describe": {}}));
    let description = &described["ok"]["description"];
    assert_eq!((&description["pid"], &description["seed"]), (&json!(pid), &json!(1)));
    assert_eq!(description["hosts"][0]["address"], "10.0.0.1", "{description}");

    let set = |change: Value| ask(&place, pid, &json!({ "set": change }));
    assert_eq!(set(json!({"way": "forward", "delay": "80 ms", "per": 1})), (json!({"ok": {}}), Some(0)));
    assert_eq!(
        set(json!({"way": "forward", "delay": "90 ms", "outage": "0 s"})),
        (json!({"ok": {}}), Some(0))
    );
    let (described, _) = ask(&place, pid, &json!({"describe": {}}));
    let changes = json!([{"way": "forward", "delay": "90000000 ns", "per": "1"}]);
    assert_eq!(described["ok"]["description"]["changes"], changes, "{described}");
    wait_until("packets are lost", || snapshot()["forward"]["lost"]["packets"].as_u64() > Some(2));
    let seen = snapshot();
    assert_eq!((&seen["forward"]["delay_s"], &seen["forward"]["per"]), (&json!(0.09), &json!(1.0)));
    assert_eq!((&seen["return"]["delay_s"], &seen["return"]["lost"]["packets"]), (&json!(0.02), &json!(0)));
    assert_eq!(seen["programs"][0]["phase"], "running", "{seen}");

    let (answer, code) = set(json!({"way": "return", "stage": "uplink", "delay": "1 ms"}));
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("no stage \"uplink\"")), "{answer}");
    assert_eq!(code, Some(1));
    assert_eq!(ask(&place, pid, &json!({"stop": {}})).1, Some(0));
    wait_until("the emulation ends", || child.try_wait().unwrap().is_some());
}

#[test]
fn a_capture_and_a_log_hold_every_packet() {
    need("ping", "iputils-ping");
    need("tshark", "tshark");
    let tcpdump = need("tcpdump", "tcpdump");
    let place = Place::new();
    let (trace, log) = (place.path("link.pcapng"), place.path("link.parquet"));
    let options = ["--trace", trace.to_str().unwrap(), "--log", log.to_str().unwrap()];
    let emulate = Emulate::toml(&place, "kept", LINK).options(&options);
    emulate.near("ping -q -i 0.1 -c 4 $FARCAST_PEER").start().succeed();

    let fields = ["frame.time_epoch", "frame.interface_name", "icmp.type", "icmp.seq", "frame.len"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&trace).args(["-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    // Four requests and four replies, each at both ends.
    assert_eq!(rows.len(), 16, "{text}{}", String::from_utf8_lossy(&output.stderr));
    for sequence in 1..=4 {
        let at = |interface: &str, kind: &str| -> f64 {
            let sequence = sequence.to_string();
            let row = rows.iter().find(|row| row[1] == interface && row[2] == kind && row[3] == sequence);
            let row = row.unwrap_or_else(|| panic!("no {kind} {sequence} at {interface}: {text}"));
            assert_eq!(row[4], "84");
            row[0].parse().unwrap()
        };
        // A packet is never early: request (8) from near to far, reply (0) back, which takes 84 us on the line.
        let (there, back) = (at("far", "8") - at("near", "8"), at("near", "0") - at("far", "0"));
        assert!(there > 0.02 - 1e-6 && back > 0.03 + 84e-6 - 1e-6, "{there} s there, {back} s back");
    }

    // tcpdump reads interfaces of one link type only.
    let output = Command::new(tcpdump).args(["-nn", "-tt", "-r"]).arg(&trace).output().unwrap();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let pings = ["IP 10.64.0.1 > 10.0.0.1: ICMP echo request,", "IP 10.0.0.1 > 10.64.0.1: ICMP echo reply,"];
    let counts = pings.map(|ping| text.matches(ping).count());
    assert_eq!((counts, text.lines().count()), ([8, 8], 16), "{text}{said}");

    let octets = fs::read(&log).unwrap();
    assert!(octets.starts_with(b"PAR1") && octets.ends_with(b"PAR1"));
}
