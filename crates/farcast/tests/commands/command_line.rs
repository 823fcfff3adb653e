//! Output of the command line, for people and for programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::common::{self, Hosts, Place, Running, dtus_sent, wait_until};

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
fn a_prediction_sends_nothing_and_says_what_it_would_take() {
    let place = Place::new();
    let predict = |args: &[&str]| {
        let all =
            [&["--rate", "2 Mbit/s", "--predict", "geo", "--replications", "20", "--json"], args].concat();
        place.run("sender", place.send_command(&[&place.file("product.bin", 100_000)], &all))
    };
    let ended = predict(&["--receivers", "ant,bee"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said = ended.events();
    let [said] = &said[..] else { panic!("{said:?}") };
    assert_eq!((&said["event"], &said["receivers"]), (&"prediction".into(), &2.into()));
    let mean = |path: &str| said.pointer(&format!("{path}/mean")).and_then(Value::as_f64).unwrap();
    // Data follows the announcement after 50 ms. 100 kB with headers are sent at 2 Mbit/s, and pass 270 ms.
    let (least, time) = (0.05 + 0.42 + 0.27, mean("/completion_time_s"));
    assert!(time > least && time < least + 0.1, "{time}");
    assert!(mean("/forward/octets") > 104_000.0 && mean("/forward/octets") < 112_000.0);
    assert_eq!(
        predict(&["--receivers", "ant,bee"]).events()[0]["completion_time_s"],
        said["completion_time_s"]
    );
    predict(&[]).assert_one_sentence(2, &["--predict", "--receivers", "--wait-for"]);
}

#[test]
fn a_plan_has_the_keys_of_a_scenario_and_options_go_before_it() {
    let place = Place::new();
    let plan = place.path("plan.toml");
    let predict = |text: &str, args: &[&str]| {
        fs::write(&plan, text).unwrap();
        let fixed = ["--plan", plan.to_str().unwrap(), "--wait-for", "1", "--predict", "geo", "--json"];
        let all = [&fixed[..], args].concat();
        place.run("sender", place.send_command(&[&place.file("product.bin", 100_000)], &all))
    };
    let time = |ended: &common::Ended| ended.events()[0]["completion_time_s"]["mean"].as_f64().unwrap();
    let slow = predict("[protocol]\nrate = \"1 Mbit/s\"\n", &[]);
    assert!((time(&slow) - (0.81 + 0.85)).abs() < 0.1, "{}", time(&slow));
    let fast = predict("[protocol]\nrate = \"1 Mbit/s\"\n", &["--rate", "4 Mbit/s"]);
    assert!((time(&fast) - (0.81 + 0.21)).abs() < 0.1, "{}", time(&fast));
    predict("[protocol]\nspread = \"1 s\"\n", &[]).assert_one_sentence(2, &["plan.toml", "rate"]);
    predict("[protocol]\nrate = \"1 Mbit/s\"\nblock_sise = 3\n", &[])
        .assert_one_sentence(2, &["plan.toml:3", "block_sise", "block_size"]);
}

#[test]
fn quantities_need_units() {
    let place = Place::new();
    for (args, parts) in [
        (["--rate", "20"], ["--rate", "units"]),
        (["--rate", "20 parsec"], ["--rate", "Mbit/s"]),
        (["--rate", "0 Mbit/s"], ["--rate", "within"]),
    ] {
        send(&place, &args).assert_failed(2, &parts);
    }
    for (args, parts) in [
        (["--start-after", "3"], ["--start-after: 3 has no unit", "units"]),
        (["--burst", "64"], ["--burst: 64 has no unit", "units"]),
        (["--status-retry", "soon"], ["--status-retry: ", "block+4rtt"]),
    ] {
        send(&place, &[&["--rate", "20 Mbit/s"], &args[..]].concat()).assert_one_sentence(2, &parts);
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
        (&["--unlimited", "--receivers", "ant"][..], "this one is not sealed"),
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
    let listed = serde_json::json!({
        "path": "product.bin", "size_bytes": 1_000_000, "stored_bytes": 1_000_000,
    });
    assert_eq!(files[0]["files"][0], listed);
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
    for part in ["ant", "done", " pass", "on the wire", "times the size"] {
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
    let ended = receiver.wait();
    ended.assert_one_sentence(1, &["--on-complete", "7"]);
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
        send.args(["--announce-time", "300 ms", "--interface", interface]).arg(&file);
        place.run("sender", hosts.at(host, &send)).assert_one_sentence(1, &parts);
        let mut receive =
            place.farcast(["receive", "--from", &place.group, "--interface", interface, "--json"]);
        receive.arg("--into").arg(place.path("ant"));
        // An impossible option is an error at once. A missing address is waited for.
        if host == 3 {
            place.run("ant", hosts.at(host, &receive)).assert_one_sentence(1, &parts);
        } else {
            assert_waits(&place.start("ant", hosts.at(host, &receive)), &parts);
        }
    }
}

/// Asserts that `running` waits for a reason with these parts, and ends well when it is told to.
fn assert_waits(running: &Running, parts: &[&str]) {
    let waiting = running.until("waiting");
    let reason = waiting["reason"].as_str().unwrap();
    assert!(parts.iter().all(|part| reason.contains(part)), "{waiting}");
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
        send.args(["--announce-time", "300 ms"]).arg(&file);
        place.run("sender", hosts.at(1, &send)).assert_one_sentence(1, &["there is no route to", way]);
    }
    let place = Place::new();
    let mut receive = place.farcast(["receive", "--from", &place.group, "--json", "--into"]);
    receive.arg(place.path("ant"));
    assert_waits(&place.start("ant", hosts.at(1, &receive)), &["there is no route to", "--interface"]);
}

#[test]
fn no_route_on_the_interface_that_was_named() {
    let (place, hosts) = (Place::with_group(|port| format!("[ff15::fa:7001]:{port}")), Hosts::new(1));
    let file = place.file("product.bin", 1_000);
    hosts.ip(1, &["-6", "route", "flush", "table", "local", "type", "multicast"]);
    let mut send = place.farcast(["send", "--to", &place.group, "--rate", "1 Mbit/s"]);
    send.args(["--interface", "lo", "--announce-time", "300 ms", "--json"]).arg(&file);
    let ended = place.run("sender", hosts.at(1, &send));
    ended.assert_one_sentence(1, &["no route to ff15::fa:7001 on interface lo", "ff00::/8 dev lo"]);
    assert!(!ended.stderr.contains("name an interface"), "{}", ended.story());
}

#[test]
fn sizes_of_dtus_are_quantities_or_numbers_of_bytes() {
    let place = Place::new();
    let file = place.file("product.bin", 14_000);
    // A directory for each, as what is there already is not sent again.
    for (name, size) in [("ant", "1400"), ("bee", "1400 B"), ("cat", "1.4 kB")] {
        let receiver = place.receive(name, &[]);
        let args = ["--rate", "20 Mbit/s", "--receivers", name, "--dtu-size", size];
        let sent = place.send(&[&file], &args).succeed().summary();
        receiver.succeed();
        let most = sent["size_bytes"].as_u64().unwrap().div_ceil(1400);
        assert!((most..most + 3).contains(&dtus_sent(&sent)), "{size}: {sent}");
    }
    for size in ["0 B", "70 kB", "1400 MB", "many"] {
        let args = ["--rate", "20 Mbit/s", "--dtu-size", size];
        place.run("sender", place.send_command(&[&file], &args)).assert_failed(2, &["1 B to 65000 B"]);
    }
}

#[test]
fn a_group_of_one_source_needs_its_source() {
    for group in ["232.7.7.7", "ff35::7"] {
        let place = Place::new();
        let mut receive = place.farcast(["receive", "--from", group, "--into"]);
        receive.arg(place.path("ant"));
        place.run("ant", receive).assert_one_sentence(2, &[group, "source-specific", "--source"]);
    }
}

#[test]
fn senders_to_accept_are_addresses_or_prefixes() {
    let place = Place::new();
    for wrong in ["10.0.0.0/33", "host/24", "10.0.0.1,,"] {
        let command = place.receive_command("ant", &["--accept", wrong]);
        place.run("ant", command).assert_failed(2, &["an address or a prefix"]);
    }
}

#[test]
fn an_address_that_is_not_ours() {
    let place = Place::new();
    let mut command = place.farcast(["receive", "--from", "192.0.2.1:20000", "--json", "--into"]);
    command.arg(place.path("ant"));
    assert_waits(&place.start("ant", command), &["cannot listen on 192.0.2.1:20000"]);
}

/// Returns the bit rate at the end of a line, in bit/s, or `None` for a dash.
fn rate_of(line: &str) -> Option<f64> {
    let before = line.split_once(';').map_or(line, |(before, _)| before);
    let words: Vec<&str> = before.split_whitespace().collect();
    let [.., number, unit] = words.as_slice() else { panic!("{line}") };
    let unit = match *unit {
        "-" => return None,
        "bit/s" => 1.0,
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        _ => panic!("{line}"),
    };
    Some(number.parse::<f64>().unwrap() * unit)
}

#[test]
fn rates_are_of_what_was_transferred_now() {
    let place = Place::new();
    let file = place.file("product.bin", 1_000_000);
    let to_ant = |args: &[&str]| {
        let receiver = place.start("ant", place.receive_command("ant", &["--once"]));
        wait_until("the receiver listens", || receiver.stderr().contains("listens on"));
        let args = [&["--receivers", "ant", "--rate"], args].concat();
        (receiver, place.start("sender", place.send_command(&[&file], &args)))
    };
    // The receiver has a part of the file, and a checkpoint of that.
    let (receiver, sender) = to_ant(&["2 Mbit/s"]);
    common::wait_for_journal(&place.path("ant"));
    common::pause(std::time::Duration::from_secs(1));
    sender.terminate();
    receiver.terminate();
    drop((receiver.wait(), sender.wait()));
    let (receiver, sender) = to_ant(&["2 Mbit/s"]);
    let (sent, got) = (sender.succeed(), receiver.succeed());
    assert!(got.stderr.contains(" is here already"), "{}", got.story());
    let complete = got.stderr.lines().find(|line| line.contains("complete and verified")).unwrap();
    assert!(rate_of(complete).is_some_and(|rate| rate < 2e6), "{complete}");
    let closing = sent.stdout.lines().last().unwrap();
    assert!(
        closing.contains("times the size") && rate_of(closing).is_some_and(|rate| rate < 2e6),
        "{closing}"
    );
    // The receiver has nothing of the product but the list of files.
    let (receiver, sender) = to_ant(&["2 Mbit/s"]);
    let (sent, got) = (sender.succeed(), receiver.succeed());
    let complete = got.stderr.lines().find(|line| line.contains("complete and verified")).unwrap();
    let closing = sent.stdout.lines().last().unwrap();
    for line in [complete, closing] {
        assert!(rate_of(line).is_none_or(|rate| rate < 5e6), "{line}");
    }
}

#[test]
fn names_that_are_no_utf_8_can_be_told_apart() {
    let place = Place::new();
    for (name, content) in [(&b"gr\xFCn"[..], "1"), (b"gr\xFDn", "2"), (b"gr\\xFCn", "3")] {
        fs::create_dir_all(place.path("tree")).unwrap();
        fs::write(place.path("tree").join(OsStr::from_bytes(name)), content).unwrap();
    }
    let receiver = place.receive("ant", &[]);
    place.send(&[&place.path("tree")], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.succeed();
    let files = ended.all("files").remove(0);
    let mut paths: Vec<&str> =
        files["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, [r"tree/gr\x5CxFCn", r"tree/gr\xFCn", r"tree/gr\xFDn"]);
    let done: Vec<_> = ended.all("file").iter().map(|event| event["path"].clone()).collect();
    assert_eq!(done.len(), 3, "{}", ended.story());
    assert!(done.iter().all(|path| paths.contains(&path.as_str().unwrap())), "{done:?}");
}

/// Returns the text on a terminal, line by line, without control sequences.
fn drawn(transcript: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = transcript.chars().peekable();
    while let Some(sign) = rest.next() {
        match sign {
            // After a cursor movement the text begins elsewhere.
            '\u{1b}' => {
                let end = rest.by_ref().find(char::is_ascii_alphabetic);
                if end != Some('m') {
                    lines.push(String::new());
                }
            }
            '\r' | '\n' => lines.push(String::new()),
            sign => lines.last_mut().unwrap().push(sign),
        }
    }
    lines
}

#[test]
fn no_line_of_the_bar_wraps_in_a_narrow_terminal() {
    let place = Place::new();
    let file = place.file(&format!("{}.bin", "long-name-".repeat(9)), 500_000);
    let receiver = place.receive("ant", &[]);
    let send = place.send_command(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    let words: Vec<String> = std::iter::once(send.get_program())
        .chain(send.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut terminal = std::process::Command::new("script");
    let command = format!("stty cols 50 rows 20; exec {}", words.join(" "));
    terminal.args(["-qec", &command]).arg(place.path("transcript")).env("TERM", "xterm");
    terminal.env("XDG_STATE_HOME", place.path("state"));
    let ended = place.run("terminal", terminal);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    receiver.succeed();
    let transcript = fs::read_to_string(place.path("transcript")).unwrap();
    let lines = drawn(&transcript);
    let bars: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("pass 1") || line.starts_with("  ant ")).collect();
    assert!(bars.iter().any(|line| line.starts_with("  ant ")) && bars.len() > 2, "{transcript}");
    for line in bars {
        assert!(line.trim_end().chars().count() < 50, "{line:?}");
    }
}

/// The last line tells the whole result: whether it was sealed or compressed, and that no receiver is known.
#[test]
fn the_last_line_tells_all() {
    let place = Place::new();
    let text = place.path("text");
    fs::write(&text, b"the same again and again, ".repeat(4000)).unwrap();
    let args = ["--rate", "20 Mbit/s", "--unlimited", "--start-after", "100 ms", "--compress", "--stats"];
    let sent = place.run("sender", place.send_command(&[&text], &args));
    assert_eq!(sent.code, Some(0), "{}", sent.story());
    let last = sent.stdout.lines().last().unwrap();
    for part in ["times the size", "; not sealed", "; compressed 104 kB to ", "who has it is not known"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(sent.stdout.contains("all that was sent"), "{}", sent.stdout);
    assert!(!sent.stdout.contains("asked again"), "no table of nobody: {}", sent.stdout);
    let args = ["--protocol", "norm", "--rate", "20 Mbit/s", "--robust", "2", "--rtt", "10 ms", "--stats"];
    let sent = place.run("sender", place.send_command(&[&text], &args));
    let last = sent.stdout.lines().last().unwrap();
    assert!(last.contains("times the size") && last.contains("; not sealed"), "{last}");
    for part in ["nobody was named", "content, sent once", "all that was sent"] {
        assert!(sent.stdout.contains(part), "{part}: {}", sent.stdout);
    }
}
