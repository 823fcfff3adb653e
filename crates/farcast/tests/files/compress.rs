//! Compressed transfers: `farcast send --compress`.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Place, dtus_sent, kill_midway, member, noise, segments, wait_for_journal};

/// Returns lines of text that compress well.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 64);
    for octets in noise(seed, len).chunks(4) {
        text.extend_from_slice(format!("{octets:?} was measured at octet {}\n", text.len()).as_bytes());
        if text.len() >= len {
            break;
        }
    }
    text.truncate(len);
    text
}

/// Makes a directory of text and noise. Returns its path, the octets of the texts, and all octets.
fn tree(place: &Place) -> (PathBuf, u64, u64) {
    let tree = place.path("tree");
    std::fs::create_dir_all(tree.join("sub")).unwrap();
    for (name, content) in [
        ("long.txt", text(1, 10_000_000)),
        ("noise.bin", noise(2, 300_000)),
        ("sub/short.txt", text(3, 20_000)),
        ("sub/tiny", b"too little to gain anything".to_vec()),
        ("sub/void", Vec::new()),
    ] {
        std::fs::write(tree.join(name), content).unwrap();
    }
    (tree, 10_020_000, 10_320_027)
}

/// Returns the stored octets by a summary or an event about compression.
fn stored(said: &Value, texts: u64) -> u64 {
    assert_eq!((&said["files"], said["size_bytes"].as_u64()), (&2.into(), Some(texts)), "{said}");
    let stored = said["stored_bytes"].as_u64().unwrap();
    assert!(stored > 100_000 && stored < texts / 2, "{said}");
    stored
}

#[test]
fn a_lossy_and_a_killed_receiver_have_the_files_as_they_were() {
    let place = Place::new();
    let (tree, texts, all) = tree(&place);
    let killed = place.receive("ant", &[]);
    let other = place.receive("bee", &["--simulate-loss", "5 %"]);
    let sender = place.send(&[&tree], &["--compress", "--rate", "6 Mbit/s", "--receivers", "ant,bee"]);
    kill_midway(&place, killed);
    let got = place.receive("ant", &[]).succeed();
    let lossy = other.succeed();
    let sent = sender.succeed();
    place.assert_received(&tree, &["ant", "bee"]);
    let summary = sent.summary();
    let stored = stored(&summary["compressed"], texts);
    assert_eq!(sent.all("compressed")[0]["stored_bytes"], stored);
    let size = summary["size_bytes"].as_u64().unwrap();
    assert!((stored + all - texts..stored + all - texts + 20_000).contains(&size), "{summary}");
    assert!(got.summary()["segments_held_before"].as_u64().unwrap() > 0, "{}", got.story());
    assert!(dtus_sent(&summary) < segments(&summary) * 2, "{summary}");
    assert_eq!(member(&summary, "ant")["complete"], true);
    // A receiver reports of each file its size and the octets that are sent of it.
    let files = lossy.all("files").remove(0);
    let long = files["files"].as_array().unwrap().iter().find(|one| one["path"] == "tree/long.txt").unwrap();
    assert_eq!(long["size_bytes"], 10_000_000);
    assert!(long["stored_bytes"].as_u64().unwrap() < 5_000_000, "{long}");

    // What is there is not sent again, nor is what a receiver without it needs anything else.
    let (ant, cat) = (place.receive("ant", &[]), place.receive("cat", &["--simulate-loss", "5 %"]));
    // The rate is low, so that little data passes while receivers compare, on a busy machine too.
    let sender = place.send(&[&tree], &["--compress", "--rate", "4 Mbit/s", "--receivers", "ant,cat"]);
    let (sent, held) = (sender.succeed().summary(), ant.succeed().summary());
    cat.succeed();
    place.assert_received(&tree, &["ant", "cat"]);
    assert_eq!(sent["size_bytes"], size);
    let came = held["dtus_received"].as_u64().unwrap();
    assert!(came < segments(&sent) / 20, "the list of files, and little more: {held}");
}

#[test]
fn one_way_a_killed_receiver_rebuilds_what_it_has_missed() {
    let place = Place::new();
    let (tree, texts, _) = tree(&place);
    let receive = |name: &str| {
        let mut command = place.farcast(["receive", "--one-way", "--from", &place.group, "--once", "--json"]);
        command.args(["--interface", place.interface, "--simulate-loss", "4 %", "--into"]);
        let running = place.start(name, {
            command.arg(place.path(name));
            command
        });
        running.until("listening");
        running
    };
    let (ant, bee) = (receive("ant"), receive("bee"));
    // This receiver has the long file already. The files that it lacks are rebuilt beside it all the same.
    std::fs::create_dir_all(place.path("cat/tree")).unwrap();
    std::fs::copy(tree.join("long.txt"), place.path("cat/tree/long.txt")).unwrap();
    let cat = receive("cat");
    // The rate is low, so that a receiver on a busy machine is back for most of the data.
    let args = ["--one-way", "--compress", "--rate", "10 Mbit/s", "--repeat", "3"];
    let sender = place.send(&[&tree], &args);
    wait_for_journal(&place.path("ant"));
    ant.kill9();
    let again = receive("ant").succeed();
    let lossy = bee.succeed();
    let sent = sender.wait();
    assert_eq!(sent.code, Some(4), "{}", sent.story());
    let stored = stored(&sent.summary()["compressed"], texts);
    assert!(sent.summary()["size_bytes"].as_u64().unwrap() < stored + 310_000, "{}", sent.story());
    for summary in [lossy.summary(), cat.succeed().summary()] {
        assert!(summary["parity_received"].as_u64().unwrap() > 0, "{summary}");
    }
    assert!(again.summary()["segments_held_before"].as_u64().unwrap() > 0, "{}", again.story());
    place.assert_received(&tree, &["ant", "bee", "cat"]);
}

#[test]
fn what_becomes_no_shorter_is_sent_as_ever_and_nothing_is_said_without_the_option() {
    let place = Place::new();
    let file = place.file("product.bin", 400_000);
    for (args, compressed) in [
        (&["--compress"][..], serde_json::json!({ "files": 0, "size_bytes": 0, "stored_bytes": 0 })),
        (&[], Value::Null),
    ] {
        let receiver = place.receive("ant", &[]);
        let all = [&["--rate", "40 Mbit/s", "--receivers", "ant"], args].concat();
        let sent = place.send(&[&file], &all).succeed();
        receiver.succeed();
        assert_eq!(sent.summary()["compressed"], compressed);
        assert_eq!(sent.all("compressed").len(), args.len());
        place.assert_received(&file, &["ant"]);
    }
}

#[test]
fn it_says_to_people_what_it_saved_and_predicts_what_travels() {
    let place = Place::new();
    let file = place.path("long.txt");
    std::fs::write(&file, text(1, 4_000_000)).unwrap();
    let receiver = place.receive("ant", &[]);
    let args = ["--compress", "--rate", "40 Mbit/s", "--receivers", "ant"];
    let ended = place.run("sender", place.send_command(&[&file], &args));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    receiver.succeed();
    assert!(ended.stdout.contains("; compressed 4 MB to "), "{}", ended.story());
    assert!(ended.stderr.contains("(1 file, 4 MB, ") && ended.stderr.contains(" as they are sent)"));
    let predicted = |more: &[&str]| {
        let args = ["--rate", "1 Mbit/s", "--receivers", "ant", "--json", "--predict", "geo"];
        let all = [&args, more, &["--replications", "2"]].concat();
        let ended = place.run("predict", place.send_command(&[&file], &all));
        let time = ended.all("prediction").first().and_then(|one| one["completion_time_s"]["mean"].as_f64());
        time.unwrap_or_else(|| panic!("{}", ended.story()))
    };
    assert!(predicted(&["--compress"]) < predicted(&[]) / 2.0);
}

#[test]
fn what_it_does_not_go_with_is_refused_in_a_sentence() {
    let place = Place::new();
    let file = place.file("product.bin", 1000);
    for (args, parts) in [
        (&["--protocol", "norm"][..], &["--compress", "MFTP and one way", "leave out --protocol"][..]),
        (&["--protocol", "mdp"], &["--compress", "MFTP and one way"]),
        (&["--protocol", "pgm"], &["--compress", "MFTP and one way"]),
        (&["--draft"], &["--compress", "--draft", "leave one of them out"]),
    ] {
        let all = [&["--compress", "--rate", "1 Mbit/s"], args].concat();
        place.run("sender", place.send_command(&[&file], &all)).assert_one_sentence(2, parts);
    }
    let mut command = place.farcast(["send", "--stream", "--compress", "--protocol", "norm"]);
    command.args(["--to", &place.group, "--rate", "1 Mbit/s"]);
    place.run("sender", command).assert_one_sentence(2, &["--compress", "--stream"]);
    let mut command = place.send_command(&[&file], &["--compress", "--rate", "1 Mbit/s"]);
    command.env("TMPDIR", place.path("nowhere"));
    place.run("sender", command).assert_one_sentence(1, &["nowhere", "TMPDIR"]);
}
