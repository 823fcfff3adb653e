//! Files reach receivers on the loopback interface, in every way that the settings offer.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{self, Place, assert_same, dress, dtus_sent, member, pause};

const RATE: [&str; 2] = ["--rate", "40 Mbit/s"];

/// Sends one file of `len` bytes to `receivers` with `args`. Returns the summaries of the sender and the receivers.
fn deliver(place: &Place, len: usize, receivers: &[(&str, &[&str])], args: &[&str]) -> (Value, Vec<Value>) {
    let file = place.file("product.bin", len);
    let running: Vec<_> = receivers.iter().map(|(name, args)| place.receive(name, args)).collect();
    let sent = place.send(&[&file], args).succeed();
    let got = running.into_iter().map(|receiver| receiver.succeed().summary()).collect();
    let names: Vec<&str> = receivers.iter().map(|(name, _)| *name).collect();
    place.assert_received(&file, &names);
    (sent.summary(), got)
}

fn with<'a>(first: &[&'a str], second: &[&'a str]) -> Vec<&'a str> {
    [first, second].concat()
}

#[test]
fn three_named_receivers_that_lose_datagrams() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "5 %"];
    let (sent, got) = deliver(
        &place,
        3_000_000,
        &[("ant", lossy), ("bee", lossy), ("cow", lossy)],
        &with(&RATE, &["--receivers", "ant,bee,cow"]),
    );
    assert!(sent["passes"].as_u64().unwrap() > 1, "{sent}");
    for (name, summary) in ["ant", "bee", "cow"].iter().zip(&got) {
        assert_eq!(summary["complete"], true);
        assert_eq!(summary["confirmed"], true, "{summary}");
        assert!(summary["naked_dtus"].as_u64().unwrap() > 20, "{summary}");
        let member = member(&sent, name);
        assert_eq!((&member["complete"], &member["state"]), (&Value::Bool(true), &Value::from("done")));
    }
    // Each lost another 5 %: together less than 16 % went out again, and again.
    let (all, first) = (dtus_sent(&sent), sent["dtus_per_pass"][0].as_u64().unwrap());
    assert!(all * 100 < first * 125, "{sent}");
}

#[test]
fn files_and_directories_keep_their_modes_and_times() {
    let place = Place::new();
    let tree = place.path("tree");
    for (name, len) in
        [("tree/one", 1), ("tree/sub/two", 40_000), ("tree/sub/deep/three", 1_432), ("tree/void", 0)]
    {
        place.file(name, len);
    }
    fs::create_dir(tree.join("hollow")).unwrap();
    let alone = [place.file("alpha.bin", 200_000), place.file("beta with blank", 1), place.file("gämma", 0)];
    for (i, path) in [tree.join("one"), tree.join("sub/two"), tree.join("sub/deep/three"), tree.join("void")]
        .iter()
        .chain(&alone)
        .enumerate()
    {
        let mode = [0o644, 0o600, 0o751, 0o444][i % 4];
        dress(path, mode, 1_000_000_007_123_456_789 + i as u64 * 86_400_000_000_001);
    }
    for (name, mode) in [("sub/deep", 0o750), ("hollow", 0o711), ("sub", 0o705)] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let receiver = place.receive("ant", &["--simulate-loss", "3 %"]);
    let paths: Vec<&Path> = alone.iter().map(std::path::PathBuf::as_path).chain([tree.as_path()]).collect();
    place.send(&paths, &with(&RATE, &["--receivers", "ant"])).succeed();
    let files = receiver.succeed().all("file");
    assert_eq!(files.len(), 7, "{files:?}");
    for path in paths {
        assert_same(path, &place.path("ant").join(path.file_name().unwrap()));
    }
    assert_eq!(common::names(&place.path("ant")), ["alpha.bin", "beta with blank", "gämma", "tree"]);
}

#[test]
fn parity_that_nobody_counted() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "8 %"];
    let receivers = [("ant", lossy), ("bee", lossy), ("cow", lossy)];
    let args = ["--receivers", "ant,bee,cow", "--parity", "auto"];
    let (sent, _) = deliver(&place, 2_000_000, &receivers, &with(&RATE, &args));
    assert!(sent["parity_dtus"].as_u64().unwrap() > 0, "{sent}");
}

#[test]
fn parity_of_short_blocks() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "8 %"];
    let args = ["--receivers", "ant,bee,cow", "--block-size", "64", "--parity", "32"];
    let (sent, got) =
        deliver(&place, 2_000_000, &[("ant", lossy), ("bee", lossy), ("cow", lossy)], &with(&RATE, &args));
    assert!(sent["parity_dtus"].as_u64().unwrap() > 0, "{sent}");
    for summary in got {
        assert!(summary["parity_received"].as_u64().unwrap() > 0, "{summary}");
    }
}

#[test]
fn parity_of_blocks_above_255_symbols() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "8 %"];
    let args = ["--receivers", "ant,bee,cow", "--block-size", "400", "--parity", "120", "--dtu-size", "512"];
    let (sent, got) =
        deliver(&place, 1_000_000, &[("ant", lossy), ("bee", lossy), ("cow", lossy)], &with(&RATE, &args));
    assert!(sent["parity_dtus"].as_u64().unwrap() > 0, "{sent}");
    for summary in got {
        assert!(summary["parity_received"].as_u64().unwrap() > 0, "{summary}");
    }
}

#[test]
fn the_settings_of_the_study() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "5 %"];
    let args = [
        "--receivers",
        "ant,bee",
        "--pass-wait",
        "fixed",
        "--nak-timing",
        "end-of-first-pass",
        "--status-retry",
        "400 ms",
    ];
    let (sent, _) = deliver(&place, 500_000, &[("ant", lossy), ("bee", lossy)], &with(&RATE, &args));
    let passes = sent["passes"].as_u64().unwrap();
    assert!(passes >= 2, "{sent}");
    // A whole timer after every pass but the last.
    assert!(sent["data_time_s"].as_f64().unwrap() > 0.4 * (passes - 1) as f64, "{sent}");
}

#[test]
fn block_time_as_status_retry_timer() {
    let place = Place::new();
    let args = ["--receivers", "ant", "--status-retry", "block+4rtt", "--rtt", "20 ms"];
    deliver(&place, 500_000, &[("ant", &["--simulate-loss", "5 %"])], &with(&RATE, &args));
}

#[test]
fn answers_spread_over_time() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "5 %"];
    let args = ["--receivers", "ant,bee", "--spread", "100 ms"];
    deliver(&place, 300_000, &[("ant", lossy), ("bee", lossy)], &with(&RATE, &args));
}

#[test]
fn unicast() {
    let place = Place::with_group(|port| format!("127.0.0.1:{port}"));
    let (sent, _) = deliver(&place, 500_000, &[("ant", &["--simulate-loss", "3 %"])], &RATE);
    assert_eq!(sent["receivers"].as_array().unwrap().len(), 1);
}

#[test]
fn unicast_to_a_receiver_that_comes_later() {
    let place = Place::with_group(|port| format!("127.0.0.1:{port}"));
    let file = place.file("product.bin", 100_000);
    let sender = place.send(&[&file], &with(&RATE, &["--receivers", "ant"]));
    // Until somebody listens, the kernel refuses each announcement; that is no error.
    pause(Duration::from_millis(1500));
    let receiver = place.receive("ant", &[]);
    sender.succeed();
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
}

#[test]
fn unicast_over_ipv6() {
    let place = Place::with_group(|port| format!("[::1]:{port}")).on("::1");
    deliver(&place, 300_000, &[("ant", &["--simulate-loss", "3 %"])], &RATE);
}

#[test]
fn source_specific_multicast() {
    let place = Place::with_group(|port| format!("232.7.{}.{}:{port}", port >> 8, port & 255));
    let deaf = place.receive("deaf", &["--source", "127.0.0.9"]);
    deliver(&place, 300_000, &[("ant", &["--source", "127.0.0.1", "--simulate-loss", "3 %"])], &RATE);
    assert!(!deaf.has("joined"), "it listens to another source: {}", deaf.stdout());
}

#[test]
fn an_unlimited_group() {
    let place = Place::new();
    let file = place.file("product.bin", 500_000);
    let receivers = [place.receive("ant", &[]), place.receive("bee", &["--simulate-loss", "1 %"])];
    let sent =
        place.send(&[&file], &with(&RATE, &["--unlimited", "--start-after", "1 s"])).succeed().summary();
    assert!(sent["receivers"].as_array().unwrap().is_empty(), "{sent}");
    assert_eq!(sent["receivers_known"], false, "{sent}");
    for receiver in receivers {
        let summary = receiver.succeed().summary();
        assert_eq!(summary["complete"], true, "{summary}");
    }
    place.assert_received(&file, &["ant", "bee"]);
}

#[test]
fn as_fast_as_receivers_acknowledge() {
    let place = Place::new();
    let lossy: &[&str] = &["--simulate-loss", "1 %"];
    deliver(
        &place,
        20_000_000,
        &[("ant", lossy), ("bee", &[])],
        &["--rate", "max", "--receivers", "ant,bee"],
    );
}

#[test]
fn without_offload() {
    let place = Place::new();
    let plain: &[&str] = &["--no-offload", "--simulate-loss", "1 %"];
    let args = ["--rate", "max", "--receivers", "ant,bee", "--no-offload"];
    deliver(&place, 2_000_000, &[("ant", plain), ("bee", plain)], &args);
}

#[test]
fn a_small_receive_buffer() {
    let place = Place::new();
    deliver(
        &place,
        5_000_000,
        &[("ant", &["--receive-buffer", "200 kB"])],
        &["--rate", "max", "--receivers", "ant"],
    );
}

#[test]
fn announcements_on_a_group_of_their_own() {
    let place = Place::new();
    let data = place.group.replacen("239.255.", "239.254.", 1);
    let file = place.file("product.bin", 500_000);
    let lossy: &[&str] = &["--simulate-loss", "3 %"];
    let receivers = [place.receive("ant", lossy), place.receive("bee", lossy)];
    let mut command = place.farcast(["send"]);
    command.arg(&file).args(["--to", &data, "--announce", &place.group, "--interface", "127.0.0.1"]);
    command.args(RATE).args(["--receivers", "ant,bee", "--json"]);
    place.start("sender", command).succeed();
    for receiver in receivers {
        receiver.succeed();
    }
    place.assert_received(&file, &["ant", "bee"]);
}

#[test]
fn a_very_small_file_and_an_empty_one_need_one_pass() {
    for len in [0, 1, 1_000] {
        let place = Place::new();
        let (sent, _) = deliver(&place, len, &[("ant", &[])], &with(&RATE, &["--receivers", "ant"]));
        assert_eq!(sent["passes"], 1, "{sent}");
    }
}

#[test]
fn small_and_large_datagrams() {
    for (dtu, len) in [("100", 100_000), ("9000", 1_000_000), ("60000", 3_000_000)] {
        let place = Place::new();
        let args = with(&RATE, &["--receivers", "ant", "--dtu-size", dtu]);
        deliver(&place, len, &[("ant", &["--simulate-loss", "5 %"])], &args);
    }
}

#[test]
fn hops_and_dscp_are_in_the_datagrams() {
    common::need_root("a raw socket that sees IP headers");
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let (group, port) = place.group.split_once(':').unwrap();
    // A raw socket sees what a host takes in: this one makes it take the group.
    let join = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    join.join_multicast_v4(&group.parse().unwrap(), &"127.0.0.1".parse().unwrap()).unwrap();
    let raw = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, Some(socket2::Protocol::UDP));
    let mut raw = raw.unwrap();
    raw.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let _sender =
        place.send(&[&file], &with(&RATE, &["--ttl", "7", "--dscp", "46", "--announce-time", "60 s"]));
    let port: u16 = port.parse().unwrap();
    loop {
        let mut header = [0; 2048];
        let len = std::io::Read::read(&mut raw, &mut header).unwrap();
        let udp = usize::from(header[0] & 15) * 4;
        if len >= udp + 8 && u16::from_be_bytes([header[udp + 2], header[udp + 3]]) == port {
            assert_eq!((header[1] >> 2, header[8]), (46, 7), "DSCP and TTL");
            return;
        }
    }
}

#[test]
fn a_transfer_that_goes_on_tells_no_loss_where_there_is_none() {
    let place = Place::new();
    let file = place.file("product.bin", 6_000_000);
    let receiver = place.receive("7", &[]);
    let sender = place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "7"]);
    common::wait_for_journal(&place.path("7"));
    pause(Duration::from_millis(500));
    sender.kill9();
    receiver.terminate();
    receiver.wait();
    let (sent, got) = {
        let receiver = place.receive("7", &[]);
        let sent = place.send(&[&file], &with(&RATE, &["--receivers", "7"])).succeed();
        (sent.summary(), receiver.succeed().summary())
    };
    let (held, all) = (got["segments_held_before"].as_u64().unwrap(), got["segments"].as_u64().unwrap());
    assert!(0 < held && held < all, "{got}");
    // Parity may take the place of DTUs, with a little more than is needed.
    assert!(dtus_sent(&sent) < all - held + 10, "each once: {sent}");
    assert_eq!((&got["naked_dtus"], &got["loss_percent"]), (&0.into(), &0.0.into()), "{got}");
    let member = member(&sent, "7");
    assert_eq!((&member["naked_dtus"], &member["loss_percent"]), (&0.into(), &0.0.into()), "{sent}");
    place.assert_received(&file, &["7"]);
}

/// Returns the command of an example of the library, with its state and configuration in `place`.
fn example(place: &Place, name: &str, words: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_farcast")).with_file_name("examples").join(name);
    assert!(path.exists(), "{} is not built: cargo build --workspace --examples", path.display());
    let mut command = Command::new(path);
    command
        .args(words)
        .env("XDG_STATE_HOME", place.path("example"))
        .env("XDG_CONFIG_HOME", place.path("example"));
    command
}

#[test]
fn a_program_sends_by_the_library_what_the_command_line_receives() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let receiver = place.receive("ant", &["--simulate-loss", "3 %"]);
    let mut sender = example(&place, "send", &[&place.group, "40 Mbit/s", "ant"]);
    let sent = sender.arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&sent.stdout);
    assert!(sent.status.success() && said.contains("2000000 octets in "), "{sent:?}");
    receiver.succeed();
    place.assert_received(&file, &["ant"]);
    // Nobody is called so: the error is that of the command line.
    let mut sender = example(&place, "send", &[&place.group, "fast", "ant"]);
    let refused = sender.arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("the rate \"fast\""), "{refused:?}");
}

#[test]
fn a_program_receives_by_the_library_what_the_command_line_sends() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let into = place.path("ant");
    let mut receiver = example(&place, "receive", &[&place.group, "ant"]);
    let mut receiver = receiver.arg(&into).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("listening on "));
    place.send(&[&file], &with(&RATE, &["--receivers", "ant"])).succeed();
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(receiver.wait().unwrap().success());
    assert_eq!(said, ["complete: product.bin", "1 products"]);
    place.assert_received(&file, &["ant"]);
}
