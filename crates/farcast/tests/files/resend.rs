//! Older versions at receivers: what all of them have is not sent again.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{self, Place, assert_same, digest, dtus_sent, member, noise};

const RATE: [&str; 2] = ["--rate", "40 Mbit/s"];
const FILES: usize = 200;
/// Octets of a file of the tree. Each file is compared as a whole.
const FILE: usize = 30_000;

/// Makes a tree of many files. Returns its size.
fn tree(place: &Place) -> u64 {
    for n in 0..FILES {
        let path = place.path(&format!("tree/part-{}/file-{n:03}", n % 7));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, noise(n as u64, FILE)).unwrap();
    }
    (FILES * FILE) as u64
}

/// Gives file `n` of the tree other content of the same length.
fn change(place: &Place, n: usize) {
    fs::write(place.path(&format!("tree/part-{}/file-{n:03}", n % 7)), noise(1_000_000 + n as u64, FILE))
        .unwrap();
}

/// Copies `from` to `receiver` as its older version.
fn has(place: &Place, receiver: &str, from: &Path) {
    let to = place.path(receiver).join(from.file_name().unwrap());
    copy(from, &to);
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for name in common::names(from) {
            copy(&from.join(&name), &to.join(&name));
        }
        return;
    }
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// Sends `path` to `receivers`. Returns the sender's summary.
fn deliver(place: &Place, path: &Path, receivers: &[&str], args: &[&str], receive: &[&str]) -> Value {
    let running: Vec<_> = receivers.iter().map(|name| place.receive(name, receive)).collect();
    let names = receivers.join(",");
    let sender = place.send(&[path], &[&["--receivers", &names], args].concat());
    let summary = sender.succeed().summary();
    for receiver in running {
        let got = receiver.succeed().summary();
        assert_eq!((&got["complete"], &got["confirmed"]), (&Value::Bool(true), &Value::Bool(true)), "{got}");
    }
    summary
}

/// Returns the octets that the sender sent, with IP headers.
fn wire(summary: &Value) -> u64 {
    summary["wire_bytes"].as_u64().unwrap()
}

/// Asserts that `receivers` have each file of `sent`. They may have other files, too.
fn assert_has(place: &Place, sent: &Path, receivers: &[&str]) {
    for receiver in receivers {
        let got = place.path(receiver).join(sent.file_name().unwrap());
        assert_files(sent, &got);
        common::assert_clean(&place.path(receiver));
    }
}

fn assert_files(sent: &Path, got: &Path) {
    if !sent.is_dir() {
        return assert_same(sent, got);
    }
    for name in common::names(sent) {
        assert_files(&sent.join(&name), &got.join(&name));
    }
}

#[test]
fn a_tree_that_has_not_changed_is_a_list_of_files_on_the_wire() {
    let place = Place::new();
    let size = tree(&place);
    let tree = place.path("tree");
    let first = deliver(&place, &tree, &["ant"], &RATE, &[]);
    assert!(wire(&first) > size, "{first}");
    let again = deliver(&place, &tree, &["ant"], &RATE, &[]);
    assert!(wire(&again) < size * 3 / 100, "{again}");
    assert!(again["left_out_segments"].as_u64().unwrap() > common::segments(&again) * 97 / 100, "{again}");
    place.assert_received(&tree, &["ant"]);
}

#[test]
fn the_wire_carries_the_files_that_changed_and_those_that_are_new() {
    let place = Place::new();
    tree(&place);
    let (tree, at_ant) = (place.path("tree"), place.path("ant/tree"));
    has(&place, "ant", &tree);
    change(&place, 17);
    fs::remove_file(tree.join("part-2/file-100")).unwrap();
    fs::write(tree.join("part-2/file-new"), noise(2_000_000, 50_000)).unwrap();
    let summary = deliver(&place, &tree, &["ant"], &RATE, &[]);
    let differs = (FILE + 50_000) as u64;
    let octets = wire(&summary);
    assert!(octets > differs && octets < differs + 80_000, "{summary}");
    // A file that is not sent any more is not removed.
    assert!(digest(&at_ant.join("part-2/file-100")) == blake3::hash(&noise(100, FILE)));
    assert_has(&place, &tree, &["ant"]);
}

#[test]
fn what_moved_in_a_long_file_is_taken_from_where_it_was() {
    let place = Place::new();
    let (path, target) = (place.path("disk.img"), place.path("ant/disk.img"));
    let old = noise(1, 8_000_000);
    let new = [noise(2, 500_000), old.clone()].concat();
    fs::create_dir(place.path("ant")).unwrap();
    fs::write(&target, &old).unwrap();
    fs::write(&path, &new).unwrap();
    let mut reader = fs::File::open(&target).unwrap();
    let inode = reader.metadata().unwrap().ino();
    let receiver = place.receive("ant", &[]);
    let mut sender = place.send(&[&path], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    let mut looked = 0;
    while sender.is_running() {
        // A process that opens it finds either the old or the new file.
        let found = fs::read(&target).unwrap();
        assert!(found == old || found == new, "{} bytes of something else", found.len());
        looked += u32::from(found == old);
        common::pause(std::time::Duration::from_millis(50));
    }
    let summary = sender.succeed().summary();
    let compared = receiver.succeed().all("compared");
    assert_eq!(compared.len(), 1);
    assert!(wire(&summary) < 1_300_000, "{summary}");
    assert!(looked > 3, "the older version was there until the end");
    place.assert_received(&path, &["ant"]);
    assert_ne!(fs::metadata(&target).unwrap().ino(), inode);
    // A process that has it open continues to read the old content.
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest == old);
}

#[test]
fn everything_is_sent_where_one_receiver_has_nothing() {
    let place = Place::new();
    let size = tree(&place);
    let tree = place.path("tree");
    has(&place, "ant", &tree);
    change(&place, 17);
    let summary = deliver(&place, &tree, &["ant", "bee"], &RATE, &[]);
    assert!(wire(&summary) > size && wire(&summary) < size * 115 / 100, "{summary}");
    assert!(dtus_sent(&summary) >= common::segments(&summary), "{summary}");
    assert_eq!(summary["left_out_segments"], 0, "{summary}");
    assert_eq!(member(&summary, "ant")["complete"], true);
    assert_has(&place, &tree, &["ant", "bee"]);
}

#[test]
fn receivers_with_different_older_versions_get_what_any_of_them_lacks() {
    let place = Place::new();
    tree(&place);
    let tree = place.path("tree");
    has(&place, "ant", &tree);
    for n in [17, 18] {
        change(&place, n);
    }
    has(&place, "bee", &tree);
    // bee lacks two files, ant these and two more; cow nothing.
    for n in [60, 61] {
        change(&place, n);
    }
    has(&place, "cow", &tree);
    let summary = deliver(&place, &tree, &["ant", "bee", "cow"], &RATE, &[]);
    let differs = 4 * FILE as u64;
    let octets = wire(&summary);
    assert!(octets > differs && octets < differs + 90_000, "{summary}");
    assert_has(&place, &tree, &["ant", "bee", "cow"]);
}

#[test]
fn losses_bring_back_little_of_what_is_left_out() {
    let place = Place::new();
    let size = tree(&place);
    let tree = place.path("tree");
    for receiver in ["ant", "bee"] {
        has(&place, receiver, &tree);
    }
    for n in 30..40 {
        change(&place, n);
    }
    let lossy = ["--simulate-loss", "10 %"];
    let summary = deliver(&place, &tree, &["ant", "bee"], &["--rate", "8 Mbit/s"], &lossy);
    assert!(wire(&summary) < size / 8, "{summary}");
    assert!(
        summary["left_out_segments"].as_u64().unwrap() > common::segments(&summary) * 9 / 10,
        "{summary}"
    );
    assert_has(&place, &tree, &["ant", "bee"]);
}

#[test]
fn a_receiver_that_was_killed_after_the_comparison_goes_on() {
    // At once; and when its journal says what it took over.
    for later in [false, true] {
        let place = Place::new();
        let (path, target) = (place.path("disk.img"), place.path("ant/disk.img"));
        let old = noise(1, 8_000_000);
        fs::create_dir(place.path("ant")).unwrap();
        fs::write(&target, &old).unwrap();
        fs::write(&path, [noise(2, 500_000), old].concat()).unwrap();
        let mut receiver = place.receive("ant", &[]);
        let sender = place.send(&[&path], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
        common::wait_until("the comparison", || receiver.has("compared") || !receiver.is_running());
        assert!(receiver.is_running(), "nothing was compared");
        if later {
            common::wait_for_journal(&place.path("ant"));
        }
        receiver.kill9();
        let receiver = place.receive("ant", &[]);
        let summary = sender.succeed().summary();
        assert_eq!(receiver.succeed().summary()["confirmed"], true);
        assert!(wire(&summary) < 2_000_000, "{summary}");
        place.assert_received(&path, &["ant"]);
    }
}

/// Makes a place with a tree. Returns the place, the tree's size and its path. The receiver ant has the tree as it was
/// before one file changed.
fn changed() -> (Place, u64, PathBuf) {
    let place = Place::new();
    let size = tree(&place);
    let tree = place.path("tree");
    has(&place, "ant", &tree);
    change(&place, 17);
    (place, size, tree)
}

#[test]
fn a_directory_that_is_sent_as_a_dot_has_its_name() {
    let (place, size, tree) = changed();
    let receiver = place.receive("ant", &[]);
    let mut send =
        place.send_command(&[Path::new(".")], &[&RATE, &["--receivers", "ant", "--json"][..]].concat());
    send.current_dir(&tree);
    let summary = place.start("sender", send).succeed().summary();
    receiver.succeed();
    assert_eq!(summary["product"], "tree");
    assert!(wire(&summary) < size * 3 / 100, "{summary}");
    assert_has(&place, &tree, &["ant"]);
}

#[test]
fn a_table_says_what_was_left_out() {
    let (place, size, tree) = changed();
    let receiver = place.receive("ant", &[]);
    let send = place
        .send_command(&[&tree], &[&RATE, &["--receivers", "ant", "--stats", "--parity", "off"][..]].concat());
    let ended = place.start("sender", send).succeed();
    receiver.succeed();
    // The octets and the share of the line that begins like this.
    let row = |what: &str| -> (u64, String) {
        let line = ended.stdout.lines().find(|line| line.starts_with(what));
        let line = line.unwrap_or_else(|| panic!("no {what:?} in {}", ended.story()));
        let mut words = line[what.len()..].split_whitespace();
        let octets = words.next().unwrap().replace(',', "").parse().unwrap();
        (octets, words.collect::<Vec<_>>().join(" "))
    };
    let (product, share) = row("the files");
    assert!(product > size && product < size + 30_000 && share == "100.0 %", "{share}: {}", ended.stdout);
    let (left_out, _) = row("left out, as all had it");
    let (once, _) = row("content, sent once");
    assert!(left_out > size * 98 / 100 && left_out < size, "{}", ended.stdout);
    assert!(once > FILE as u64 && once < 3 * FILE as u64, "{}", ended.stdout);
    let (again, control) = (row("content, sent again").0, row("descriptions, requests and keys").0);
    assert!(product - left_out < once && once < (product - left_out) * 21 / 20, "{}", ended.stdout);
    assert_eq!(row("parity").0, 0);
    let (all, _) = row("all that was sent, with IP headers");
    assert!(all == once + again + control && all < size * 3 / 100, "{}", ended.stdout);
    assert!(row("heard from receivers, without").0 > 0);
}
