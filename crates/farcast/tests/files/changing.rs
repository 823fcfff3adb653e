//! Files that change while they are sent: only that file is lost, and both ends report it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{self, Ended, Place, Running, assert_same, noise};

/// Transfer of a tree of five files, one of which changes meanwhile: the tree, and the ends of the sender and the
/// receiver.
struct Run {
    place: Place,
    sent: Ended,
    got: Ended,
}

const NAMES: [&str; 5] = ["f1", "f2", "f3", "f4", "f5"];

fn run(protocol: &str, args: &[&str], change: impl FnOnce(&Path, &Running)) -> Run {
    let place = Place::new();
    for name in NAMES {
        place.file(&format!("d/{name}"), 700_000);
    }
    let tree = place.path("d");
    let one_way: &[&str] = &["--one-way"];
    let kind: &[&str] = if protocol == "one-way" { one_way } else { &["--protocol", protocol] };
    let receiver = place.receive("7", kind);
    let named: &[&str] = if protocol == "one-way" { &["--repeat", "1"] } else { &["--receivers", "7"] };
    let sender = place.send(&[&tree], &[kind, named, &["--rate", "10 Mbit/s"], args].concat());
    change(&tree, &sender);
    let sent = sender.wait();
    if sent.code == Some(1) && protocol != "mftp" {
        // By these protocols a sender that was stopped may come back.
        common::pause(Duration::from_secs(1));
        receiver.terminate();
    }
    Run { place, sent, got: receiver.wait() }
}

/// Waits until the first file has arrived, and the last is still to be sent.
fn midway(sender: &Running) {
    sender.until_nth("progress", 2);
    common::pause(Duration::from_millis(500));
}

impl Run {
    /// Returns the receiver's path of a file of the tree.
    fn place_of(&self, name: &str) -> PathBuf {
        self.place.path("7/d").join(name)
    }

    fn received(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.place_of(name)).ok()
    }

    fn assert_has(&self, names: &[&str]) {
        for name in names {
            assert_same(&self.place.path("d").join(name), &self.place_of(name));
        }
    }
}

#[test]
fn what_is_touched_grows_or_is_delivered_already_is_no_harm() {
    for protocol in ["mftp", "norm", "mdp", "pgm", "one-way"] {
        let done = run(protocol, &[], |tree, sender| {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut log = fs::File::options().append(true).open(tree.join("f5")).unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        log.write_all(b"another line\n").unwrap();
                        common::pause(Duration::from_millis(20));
                    }
                });
                midway(sender);
                fs::File::options()
                    .write(true)
                    .open(tree.join("f4"))
                    .unwrap()
                    .set_modified(std::time::UNIX_EPOCH)
                    .unwrap();
                fs::remove_file(tree.join("f1")).unwrap();
                common::pause(Duration::from_millis(2500));
                stop.store(true, Ordering::Relaxed);
            });
        });
        let code = if protocol == "one-way" { 4 } else { 0 };
        assert_eq!(
            (done.sent.code, done.got.code),
            (Some(code), Some(0)),
            "{protocol}: {} {}",
            done.sent.stderr,
            done.got.stderr
        );
        done.assert_has(&["f2", "f3"]);
        assert!(done.received("f5").unwrap().len() >= 700_000);
    }
}

#[test]
fn a_file_that_changes_costs_itself_alone_and_both_ends_name_it() {
    for (change, word) in [
        (rewrite as fn(&Path), "changed"),
        (shorten, "changed"),
        (remove, "was removed"),
        (become_fifo, "is no file any more"),
    ] {
        let done = run("mftp", &[], |tree, sender| {
            sender.until_nth("progress", 1);
            change(&tree.join("f4"));
        });
        assert_eq!(
            (done.sent.code, done.got.code),
            (Some(3), Some(1)),
            "{} {}",
            done.sent.stderr,
            done.got.stderr
        );
        for said in [&done.sent.stderr, &done.got.stderr] {
            assert!(said.contains("f4\" ") && said.contains(word), "{word}: {said}");
        }
        done.assert_has(&["f1", "f2", "f3", "f5"]);
        assert_eq!(done.received("f4"), None);
        if word == "was removed" {
            let summary = done.sent.summary();
            assert_eq!(common::member(&summary, "7")["naked_dtus"], 0, "nothing was lost on the way");
        }
    }
}

#[test]
fn what_becomes_no_file_costs_itself_by_other_protocols_too() {
    for protocol in ["norm", "mdp", "pgm", "one-way"] {
        let done = run(protocol, &["--time-limit", "60 s"], |tree, sender| {
            sender.until_nth("progress", 1);
            become_fifo(&tree.join("f4"));
        });
        assert_ne!(done.sent.code, Some(0), "{protocol}: {}", done.sent.stdout);
        assert!(done.sent.stderr.contains("f4\" is no file any more"), "{protocol}: {}", done.sent.stderr);
        done.assert_has(&["f1", "f2", "f3", "f5"]);
        assert_eq!(done.received("f4"), None, "{protocol}");
    }
}

#[test]
fn a_receiver_is_told_how_many_files_are_gone() {
    let done = run("mftp", &[], |tree, sender| {
        sender.until_nth("progress", 1);
        fs::remove_dir_all(tree).unwrap();
    });
    assert_eq!((done.sent.code, done.got.code), (Some(3), Some(1)), "{}", done.got.stderr);
    assert!(done.got.stderr.contains("other files are not what they were either"), "{}", done.got.stderr);
}

#[test]
fn small_files_beside_one_that_changes_arrive() {
    let place = Place::new();
    for n in 0..300 {
        place.file(&format!("d/{n:03}"), 100 + n);
    }
    let tree = place.path("d");
    let receiver = place.receive("7", &["--simulate-loss", "10 %"]);
    let sender = place.send(&[&tree], &["--receivers", "7", "--rate", "200 kbit/s"]);
    sender.until("started");
    rewrite(&tree.join("200"));
    let (sent, got) = (sender.wait(), receiver.wait());
    assert_eq!((sent.code, got.code), (Some(3), Some(1)), "{} {}", sent.stderr, got.stderr);
    for n in (0..300).filter(|n| *n != 200) {
        let name = format!("d/{n:03}");
        assert_same(&place.path(&name), &place.path("7").join(&name));
    }
}

/// One way, files share blocks and their code.
#[test]
fn one_way_others_of_its_blocks_arrive_with_losses_too() {
    for loss in ["0 %", "8 %"] {
        let place = Place::new();
        for n in 0..300 {
            place.file(&format!("d/{n:03}"), 100 + n);
        }
        place.file("d/long", 400_000);
        let tree = place.path("d");
        let receiver = place.receive("7", &["--one-way", "--simulate-loss", loss]);
        let sender = place.send(&[&tree], &["--one-way", "--repeat", "3", "--rate", "2 Mbit/s"]);
        sender.until("progress");
        for changing in ["200", "201", "long"] {
            rewrite(&tree.join(changing));
        }
        let (sent, got) = (sender.wait(), receiver.wait());
        assert_eq!((sent.code, got.code), (Some(3), Some(1)), "{loss}: {} {}", sent.story(), got.story());
        for said in [&sent.stderr, &got.stderr] {
            assert!(said.contains(" changed while it was being sent"), "{loss}: {said}");
        }
        assert!(got.stderr.contains("everything else that was sent is here"), "{loss}: {}", got.stderr);
        for n in (0..300).filter(|n| ![200, 201].contains(n)) {
            let name = format!("d/{n:03}");
            assert_same(&place.path(&name), &place.path("7").join(&name));
        }
        assert!(!place.path("7").join("d/long").exists(), "{loss}");
    }
}

#[test]
fn what_changed_is_sent_again_where_that_is_wished() {
    for protocol in ["mftp", "norm", "pgm"] {
        let done = run(protocol, &["--changing", "again"], |tree, sender| {
            sender.until_nth("progress", 1);
            rewrite(&tree.join("f5"));
        });
        assert_eq!(done.sent.code, Some(0), "{protocol}: {} {}", done.sent.stdout, done.sent.stderr);
        done.assert_has(&NAMES);
        assert_eq!(done.sent.all("again").len(), 1, "{}", done.sent.stdout);
        if protocol == "mftp" {
            assert_eq!(done.got.code, Some(0), "{}", done.got.story());
            common::assert_clean(&done.place.path("7"));
        }
    }
}

#[test]
fn it_fails_where_that_is_wished() {
    for protocol in ["mftp", "norm", "mdp", "pgm", "one-way"] {
        let done = run(protocol, &["--changing", "fail"], |tree, sender| {
            sender.until_nth("progress", 1);
            rewrite(&tree.join("f4"));
        });
        assert_eq!(done.sent.code, Some(1), "{protocol}: {}", done.sent.story());
        let said = &done.sent.stderr;
        assert!(said.contains("f4\" changed while it was being sent"), "{protocol}: {said}");
        assert_eq!(done.received("f4"), None, "{protocol}");
    }
}

#[test]
fn by_other_protocols_the_file_is_named_and_never_wrong() {
    for protocol in ["norm", "mdp", "pgm", "one-way"] {
        let done = run(protocol, &["--time-limit", "60 s"], |tree, sender| {
            sender.until_nth("progress", 1);
            rewrite(&tree.join("f4"));
        });
        assert_ne!(done.sent.code, Some(0), "{protocol}: {}", done.sent.stdout);
        assert!(done.sent.stderr.contains("f4\" changed"), "{protocol}: {}", done.sent.stderr);
        done.assert_has(&["f1", "f2", "f3"]);
        assert_eq!(done.received("f4"), None, "{protocol}");
    }
}

#[test]
fn a_file_that_changes_is_not_repeated_whatever_its_times_say() {
    for change in [rewrite_unseen as fn(&Path), remove] {
        for protocol in ["mftp", "norm", "mdp", "pgm", "one-way"] {
            let began = Instant::now();
            let done = run(protocol, &[], |tree, sender| {
                sender.until_nth("progress", 1);
                change(&tree.join("f4"));
            });
            let both = [&done.sent, &done.got];
            let said = both.map(|ended| (ended.code, ended.stderr.contains("f4")));
            assert_eq!(
                said,
                [(Some(3), true), (Some(1), true)],
                "{protocol}: {} {}",
                both[0].story(),
                both[1].story()
            );
            assert!(!done.got.stderr.contains("damaged"), "{protocol}: {}", done.got.stderr);
            done.assert_has(&["f1", "f2", "f3", "f5"]);
            assert_eq!(done.received("f4"), None, "{protocol}");
            let wire = done.sent.summary()["wire_bytes"].as_u64().unwrap();
            assert!(wire < 3_500_000, "{protocol}: {wire} octets of 3,500,000");
            assert!(began.elapsed() < Duration::from_secs(20), "{protocol}: {:?}", began.elapsed());
        }
    }
}

/// Without named receivers, a file that changes before its turn is not reported as sent: no receiver has it.
#[test]
fn what_nobody_has_is_not_called_sent() {
    let robust = ["--robust", "3"];
    for (protocol, stays) in [("norm", robust), ("mdp", robust), ("pgm", ["--linger", "4 s"])] {
        let place = Place::new();
        for name in NAMES {
            place.file(&format!("d/{name}"), 700_000);
        }
        let tree = place.path("d");
        let args = [&["--protocol", protocol, "--rate", "10 Mbit/s"], &stays[..]].concat();
        let sender = place.send(&[&tree], &args);
        sender.until_nth("progress", 1);
        rewrite_unseen(&tree.join("f5"));
        let sent = sender.wait();
        sent.assert_failed(3, &["f5\" changed while it was being sent"]);
    }
}

fn rewrite(path: &Path) {
    fs::write(path, noise(99, fs::metadata(path).unwrap().len() as usize)).unwrap();
}

/// Writes other content of the same length, and restores the modification time.
fn rewrite_unseen(path: &Path) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    rewrite(path);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn shorten(path: &Path) {
    fs::File::options().write(true).open(path).unwrap().set_len(500).unwrap();
}

fn become_fifo(path: &Path) {
    remove(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}
