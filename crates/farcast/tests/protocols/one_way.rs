//! Transfers to receivers that cannot answer: the way back is cut, in network namespaces that these tests make and
//! remove.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{self, Hosts, Place, Running, pause, wait_until};

/// Starts a receiver at host `n`.
fn receive(place: &Place, hosts: &Hosts, n: usize) -> Running {
    let mut command = place.farcast(["receive", "--one-way", "--from", &place.group, "--once", "--json"]);
    command.arg("--into").arg(place.path(&format!("host{n}"))).args(["--interface", "eth0"]);
    let running = place.start(&format!("host{n}"), hosts.at(n, &command));
    running.until("listening");
    running
}

/// Starts a sender at host 1.
fn send(place: &Place, hosts: &Hosts, file: &Path, args: &[&str]) -> Running {
    let mut command =
        place.farcast(["send", "--one-way", "--to", &place.group, "--json", "--interface", "eth0"]);
    command.arg(file).args(args);
    place.start("sender", hosts.at(1, &command))
}

/// Makes `count` hosts, of which only the first can send.
fn mute(count: usize) -> Hosts {
    let hosts = Hosts::new(count);
    (2..=count).for_each(|n| hosts.mute(n));
    hosts
}

/// Returns the octets heard divided by the size.
fn heard(summary: &Value) -> f64 {
    summary["heard_over_size"].as_f64().unwrap()
}

/// Asserts that the sender ends with an unknown result. Returns its summary.
fn assert_unknown(sender: Running) -> Value {
    let ended = sender.wait();
    assert_eq!(ended.code, Some(4), "{}", ended.story());
    assert_eq!(ended.summary()["outcome"], "unknown");
    ended.summary()
}

#[test]
fn lossy_late_and_killed_receivers_have_everything_and_needed_little_more() {
    const SIZE: usize = 20_000_000;
    let (place, hosts) = (Place::new(), mute(5));
    let file = place.file("product.bin", SIZE);
    hosts.lose(3, 8);
    // 50 ms at 60 Mbit/s are 250 of the 15,000 datagrams of a round; several come as one here.
    hosts.burst(4, 50, 300);
    hosts.lose(5, 2);
    let early: Vec<_> = (2..=4).map(|n| (n, receive(&place, &hosts, n))).collect();
    let args = ["--rate", "60 Mbit/s", "--repeat", "3"];
    let sender = send(&place, &hosts, &file, &args);
    sender.until("round");
    // Host 5 comes when half of the first round is over, and is killed while the parity of that round is sent or a little
    // later.
    pause(Duration::from_millis(1450));
    let late = receive(&place, &hosts, 5);
    sender.until_nth("round", 2);
    late.kill9();
    let kept = std::fs::read_dir(place.path("host5/.farcast")).unwrap().count();
    assert_eq!(kept, 1, "what it had is kept");
    let late = receive(&place, &hosts, 5);
    for (n, receiver) in early {
        let summary = receiver.succeed().summary();
        assert!(heard(&summary) < 1.03, "host {n}: {summary}");
        let parity = summary["parity_received"].as_u64().unwrap();
        assert_eq!(parity == 0, n == 2, "host {n}: without loss nothing is rebuilt: {summary}");
    }
    let summary = late.succeed().summary();
    let held = summary["segments_held_before"].as_u64().unwrap();
    assert!(held > 4000, "{summary}");
    assert!(heard(&summary) < 0.62, "half of it was there: {summary}");
    assert_unknown(sender);
    place.assert_received(&file, &["host2", "host3", "host4", "host5"]);
}

#[test]
fn what_is_missing_at_the_end_is_no_success_and_waits_for_another_time() {
    let (place, hosts) = (Place::new(), mute(2));
    let file = place.file("product.bin", 5_000_000);
    hosts.lose(2, 20);
    let receiver = receive(&place, &hosts, 2);
    assert_unknown(send(&place, &hosts, &file, &["--rate", "40 Mbit/s"]));
    // With --once it waits for another transmission, too: nothing has been received yet.
    let first = receiver.until("summary");
    receiver.kill9();
    assert_eq!((&first["complete"], &first["kept"]), (&false.into(), &true.into()), "{first}");
    assert!(!place.path("host2/product.bin").exists());
    let receiver = receive(&place, &hosts, 2);
    assert_unknown(send(&place, &hosts, &file, &["--rate", "40 Mbit/s", "--overhead", "60"]));
    let second = receiver.succeed().summary();
    let had = first["segments_have"].as_u64().unwrap();
    assert_eq!(second["segments_held_before"].as_u64().unwrap(), had);
    // Stored parity counts like new symbols: fewer symbols arrive than segments are missing.
    let parity = first["parity_received"].as_u64().unwrap();
    let (all, came) = (second["segments"].as_u64().unwrap(), |key: &str| second[key].as_u64().unwrap());
    assert!(parity > 100, "{first}");
    assert_eq!(came("dtus_received") + came("parity_received"), all - had - parity, "{second}");
    place.assert_received(&file, &["host2"]);
}

#[test]
fn a_directory_for_a_time_to_one_host_that_listens_on() {
    let (place, hosts) = (Place::new(), mute(2));
    let dir = place.path("tree");
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    for n in 0..50 {
        std::fs::write(dir.join(format!("sub/{n}")), common::noise(n, 20_000 + n as usize)).unwrap();
    }
    let mut command = place.farcast(["receive", "--one-way", "--from", &place.group, "--json"]);
    command.arg("--into").arg(place.path("host2")).args(["--interface", "eth0"]);
    let receiver = place.start("host2", hosts.at(2, &command));
    receiver.until("listening");
    let summary = assert_unknown(send(&place, &hosts, &dir, &["--rate", "20 Mbit/s", "--for", "1500 ms"]));
    assert!(summary["rounds"].as_u64().unwrap() >= 3, "{summary}");
    receiver.until("summary");
    wait_until("it to be told once", || {
        receiver.events().iter().filter(|e| e["event"] == "summary").count() == 1
    });
    receiver.terminate();
    place.assert_received(&dir, &["host2"]);
}

/// Returns the path of a link that loses a share `per` of packets to receivers.
fn link(place: &Place, per: &str) -> String {
    let path = place.path(&format!("link{per}.toml"));
    let way = |name: &str, per: &str| {
        format!("[link.{name}]\nrate = \"20 Mbit/s\"\ndelay = \"250 ms\"\nper = {per}\n")
    };
    std::fs::write(&path, way("forward", per) + &way("return", "0.0")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_prediction_says_who_would_have_it_and_what_to_add() {
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let (clean, lossy) = (link(&place, "0.0"), link(&place, "0.05"));
    let predict = |link: &str, args: &[&str]| {
        let mut command =
            place.farcast(["send", "--one-way", "--to", &place.group, "--rate", "5 Mbit/s", "--json"]);
        command.arg(&file).args(["--predict", link, "--replications", "20"]).args(args);
        place.run("predict", command)
    };
    let said = |link: &str, args: &[&str], code: i32| {
        let ended = predict(link, args);
        assert_eq!(ended.code, Some(code), "{}", ended.story());
        let mut said = ended.events()[0].clone();
        said["time"].take();
        said
    };
    // 2 MB and the list in symbols of 1,460 octets with 40 octets of headers, behind a tenth of a round's descriptions,
    // at most half a second.
    let one = said(&clean, &["--overhead", "0"], 0);
    let time = one["completion_time_s"]["mean"].as_f64().unwrap();
    assert!((3.7..3.9).contains(&time), "{one}");
    assert_eq!((&one["complete_share"], &one["sent_over_size"]["mean"]), (&1.0.into(), &1.0.into()), "{one}");
    let for_shares = |said: &Value| -> Vec<u64> {
        said["for_shares"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["overhead_percent"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(for_shares(&one), [0; 4]);
    // The sentence names a time limit that is too short. The shares to add do not depend on it.
    let short = said(&clean, &["--time-limit", "1 s"], 3);
    assert!(short["why_unfinished"][0].as_str().unwrap().contains("Raise --time-limit."), "{short}");
    assert_eq!(for_shares(&short), [0; 4]);
    let dead = said(&link(&place, "1.0"), &[], 3);
    assert!(dead["why_unfinished"][0].as_str().unwrap().contains("came through the link"), "{dead}");
    // One block of 1,370 segments: with n symbols sent, as many as are binomial come. 5.26 % more make that the mean.
    let none = said(&lossy, &["--overhead", "2"], 3);
    assert_eq!(none["complete"], 0, "{none}");
    let added = for_shares(&none);
    // Of 1,454 symbols 1,381 come in the mean, with a deviation of 8.3: 89 % have enough. Of 1,467 it is 1,394, enough for
    // 99.6 %, and of 1,480 1,406, for all but one in 10,000.
    assert_eq!(added, [6, 7, 7, 8], "{none}");
    let most = said(&lossy, &["--overhead", "8"], 0);
    assert!(most["complete_share"].as_f64().unwrap() > 0.99, "{most}");
    // The same command predicts the same, and two rounds do in any case.
    assert_eq!(most, said(&lossy, &["--overhead", "8"], 0));
    assert_eq!(said(&lossy, &["--overhead", "0", "--repeat", "2"], 0)["complete_share"], 1.0);
}

#[test]
fn a_plan_has_the_keys_of_a_scenario_and_options_go_before_it() {
    let place = Place::new();
    let (file, plan) = (place.file("product.bin", 100_000), place.path("plan.toml"));
    let clean = link(&place, "0.0");
    let run = |text: &str, args: &[&str]| {
        std::fs::write(&plan, text).unwrap();
        let mut command =
            place.farcast(["send", "--one-way", "--to", &place.group, "--json", "--predict", &clean]);
        command.arg("--plan").arg(&plan).arg(&file).args(["--replications", "2"]).args(args);
        place.run("plan", command)
    };
    let octets = |text: &str, args: &[&str]| {
        let ended = run(text, args);
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        ended.events()[0]["forward"]["octets"].as_f64().unwrap() as u64
    };
    let one = "[protocol]\nname = \"one-way\"\nrate = \"1 Mbit/s\"\noverhead_percent = 0\n";
    let three = format!("{one}repeat = 3\n");
    let (single, thrice) = (octets(one, &[]), octets(&three, &[]));
    assert!((28..31).contains(&(thrice * 10 / single)), "{single} {thrice}");
    assert_eq!(octets(&three, &["--repeat", "1"]), single);
    assert!(octets(one, &["--overhead", "50"]) * 10 > single * 14);
    let refused = |text: &str, parts: &[&str]| run(text, &[]).assert_failed(2, parts);
    refused("[protocol]\nname = \"one-way\"\n", &["rate"]);
    refused("[protocol]\nname = \"norm\"\nrate = \"1 Mbit/s\"\n", &["norm", "one-way"]);
    refused(&format!("{one}overhed_percent = 3\n"), &["overhed_percent", "overhead_percent"]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let place = Place::new();
    let file = place.file("product.bin", 1000);
    let refused = |args: &[&str], part: &str| {
        let mut command = place.farcast(["send", "--to", &place.group]);
        command.arg(&file).args(args);
        place.run("sender", command).assert_failed(2, &[part]);
    };
    refused(&["--one-way"], "--rate is missing");
    refused(&["--one-way", "--rate", "max"], "--rate max is MFTP's");
    refused(&["--one-way", "--rate", "1 Mbit/s", "--receivers", "a"], "--receivers");
    refused(&["--one-way", "--rate", "1 Mbit/s", "--for", "1 s", "--repeat", "2"], "cannot be used with");
    refused(&["--rate", "1 Mbit/s", "--repeat", "2"], "--repeat goes with --protocol one-way");
}
