//! Reception into file systems that refuse a call, restrict names or ignore case, and names that collide there.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{self, Ended, Place, noise, scripted_into_mount};

/// Options of each protocol's sender and receiver. The receiver does not need the rate and the names.
const PROTOCOLS: [(&[&str], &[&str]); 5] = [
    (&["--receivers", "ant", "--rate", "20 Mbit/s"], &[]),
    (
        &["--protocol", "norm", "--receivers", "ant", "--rate", "20 Mbit/s", "--robust", "3"],
        &["--protocol", "norm"],
    ),
    (
        &["--protocol", "mdp", "--receivers", "ant", "--rate", "20 Mbit/s", "--robust", "3"],
        &["--protocol", "mdp"],
    ),
    (
        &["--protocol", "pgm", "--receivers", "ant", "--rate", "20 Mbit/s", "--linger", "3 s"],
        &["--protocol", "pgm"],
    ),
    // Nothing is asked for again, and file systems in user space are slow.
    (&["--one-way", "--rate", "20 Mbit/s", "--repeat", "4"], &["--one-way"]),
];

/// Index of PGM, whose receiver waits long for its sender's silence.
const PGM: usize = 3;

/// Commands that mount NTFS, which ignores case, with Windows' names only: none has a colon.
const NTFS: &str = "truncate -s 64M \"$PLACE/image\" && mkntfs -F -q \"$PLACE/image\" >/dev/null 2>&1 && \
                    lowntfs-3g -o ignore_case,windows_names \"$PLACE/image\" \"$PLACE/ant\"";
/// Commands that mount a file system that lets nobody set a mode.
const NO_MODES: &str = "mkdir \"$PLACE/back\" && bindfs --chmod-deny \"$PLACE/back\" \"$PLACE/ant\"";

/// Sends `paths` into the file system that `mount` mounts. Returns the ends of the sender and the receiver. The
/// received files are in `got`.
fn send_into(
    place: &Place,
    mount: &str,
    paths: &[&Path],
    (send, receive): (&[&str], &[&str]),
) -> (Ended, Ended) {
    let script = format!(
        "{mount} || exit 77; \"$@\"; code=$?; mkdir \"$PLACE/got\"; cp -r \"$PLACE/ant/.\" \"$PLACE/got\"; \
         umount \"$PLACE/ant\"; exit $code"
    );
    let args = [receive, &["--once", "--json"]].concat();
    let mut command: Command = scripted_into_mount(place, "size=4m", &args, &script);
    command.env("PLACE", place.root());
    let receiver = place.start("ant", command);
    receiver.until("listening");
    let sender = place.send(paths, send).wait();
    (sender, receiver.wait())
}

/// Returns the content of a received file.
fn got(place: &Place, path: &str) -> Option<String> {
    fs::read_to_string(place.path("got").join(path)).ok()
}

/// Runs `test` for each protocol in parallel, because most of the time is waiting.
fn by_each_protocol(test: impl Fn(usize, (&[&str], &[&str])) + Sync) {
    by_each_protocol_but(usize::MAX, test);
}

/// Runs `test` for each protocol but one.
fn by_each_protocol_but(left_out: usize, test: impl Fn(usize, (&[&str], &[&str])) + Sync) {
    std::thread::scope(|scope| {
        for (number, protocol) in PROTOCOLS.into_iter().enumerate().filter(|(at, _)| *at != left_out) {
            let test = &test;
            scope.spawn(move || test(number, protocol));
        }
    });
}

fn write(place: &Place, path: &str, content: &str) {
    let path = place.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn a_mode_that_cannot_be_set_is_said_once_and_costs_nothing() {
    by_each_protocol(|_, protocol| {
        let place = Place::new();
        write(&place, "d/one", "1");
        write(&place, "d/two", "2");
        let (sender, receiver) = send_into(&place, NO_MODES, &[&place.path("d")], protocol);
        assert_eq!(receiver.code, Some(0), "{}", receiver.story());
        assert!(matches!(sender.code, Some(0 | 4)), "{}", sender.story());
        let said = receiver.all("not_supported");
        assert!(
            said.len() == 1 && said[0]["what"] == "mode" && said[0]["errno"] == 1,
            "{}",
            receiver.story()
        );
        assert_eq!(
            ["d/one", "d/two"].map(|name| got(&place, name)),
            [Some("1".into()), Some("2".into())],
            "{}",
            receiver.story()
        );
        assert!(!place.path("got/.farcast").exists(), "nothing of the state stays: {}", receiver.story());
    });
}

#[test]
fn names_that_a_file_system_folds_cost_the_second_file_only() {
    by_each_protocol_but(PGM, |_, protocol| {
        let place = Place::new();
        write(&place, "d/README", "upper");
        write(&place, "d/readme", "lower");
        write(&place, "d/z", "other");
        let (sender, receiver) = send_into(&place, NTFS, &[&place.path("d")], protocol);
        receiver.assert_failed(3, &["README", "readme", "are one name in"]);
        assert!(matches!(sender.code, Some(3 | 4)), "{}", sender.story());
        let prefix = if place.path("got/d").exists() { "d/" } else { "d_" };
        // The file system shows names in small letters.
        let first = got(&place, &format!("{prefix}readme")).unwrap();
        assert_eq!(got(&place, &format!("{prefix}z")).as_deref(), Some("other"), "{}", receiver.story());
        let done: Vec<_> =
            receiver.all("file").iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
        let told = if first == "upper" { "README" } else { "readme" };
        assert_eq!(done.iter().filter(|path| path.to_lowercase().ends_with("readme")).count(), 1, "{done:?}");
        assert!(done.contains(&format!("{prefix}{told}")), "{done:?} has {first}");
        assert!(!place.path("got/.farcast").exists(), "nothing of the state stays: {}", receiver.story());
    });
}

#[test]
fn a_name_that_cannot_be_costs_that_file_only() {
    by_each_protocol_but(PGM, |_, protocol| {
        let place = Place::new();
        write(&place, "d/a:b", "impossible");
        write(&place, "d/ok", "possible");
        let (sender, receiver) = send_into(&place, NTFS, &[&place.path("d")], protocol);
        receiver.assert_failed(3, &["a:b", "cannot be a name in"]);
        assert!(matches!(sender.code, Some(3 | 4)), "{}", sender.story());
        assert_eq!(
            got(&place, "d/ok").or(got(&place, "d_ok")).as_deref(),
            Some("possible"),
            "{}",
            receiver.story()
        );
        assert!(!place.path("got/.farcast").exists(), "nothing of the state stays: {}", receiver.story());
    });
}

#[test]
fn every_protocol_keeps_directories() {
    by_each_protocol(|_, (send, receive)| {
        let place = Place::new();
        for path in ["d/f", "d/x/y", "d/x_y", "d/x/deep/er/z"] {
            write(&place, path, path);
        }
        let receiver = place.receive("ant", receive);
        let sent = place.send(&[&place.path("d")], send).wait();
        assert!(matches!(sent.code, Some(0 | 4)), "{}", sent.story());
        receiver.succeed();
        place.assert_received(&place.path("d"), &["ant"]);
    });
}

#[test]
fn files_that_would_have_one_name_are_not_sent() {
    let place = Place::new();
    write(&place, "d/x\ny", "one");
    write(&place, "d/x_y", "two");
    write(&place, "f\ny", "three");
    write(&place, "f_y/g", "four");
    write(&place, "e/f", "five");
    fs::create_dir_all(place.path("e/none/at/all")).unwrap();
    for protocol in ["norm", "mdp", "pgm"] {
        let args = ["--protocol", protocol, "--rate", "20 Mbit/s", "--receivers", "ant"];
        let ended = place.run("sender", place.send_command(&[&place.path("d")], &args));
        ended.assert_one_sentence(2, &["d/x", "would both be d/x_y"]);
        // A file would be where the other needs a directory.
        let (file, tree) = (place.path("f\ny"), place.path("f_y"));
        for paths in [[&*file, &*tree], [&*tree, &*file]] {
            let ended = place.run("sender", place.send_command(&paths, &args));
            ended.assert_one_sentence(2, &["\"f_y/g\"", "would both be f_y "]);
        }
        // Directories that hold no file are named.
        let mut receiver = place.receive(protocol, &["--protocol", protocol]);
        assert!(receiver.is_running());
        let named = [&args[..5], &[protocol]].concat();
        let ended = place.send(&[&place.path("e")], &named).succeed();
        receiver.succeed();
        let left_out: Vec<_> = ended.all("skipped").iter().map(|one| one["path"].to_string()).collect();
        assert!(
            left_out.len() == 3 && left_out.iter().all(|path| path.contains("e/none")),
            "{}",
            ended.story()
        );
    }
}

#[test]
fn what_says_that_it_is_empty_and_is_not_is_not_sent() {
    let place = Place::new();
    for args in [&["--receivers", "ant"][..], &["--protocol", "norm"], &["--one-way"]] {
        let args = [args, &["--rate", "20 Mbit/s"]].concat();
        let ended = place.run("sender", place.send_command(&[Path::new("/proc/version")], &args));
        ended.assert_one_sentence(2, &["/proc/version", "has another length"]);
    }
}

#[test]
fn a_receiving_directory_that_is_none_is_wrong_usage() {
    let place = Place::new();
    let file = place.file("file", 10);
    std::os::unix::fs::symlink("nowhere", place.path("link")).unwrap();
    let ended = place.run("receiver", place.receive_command("file", &[]));
    ended.assert_one_sentence(2, &[file.to_str().unwrap(), "is a file", "--into"]);
    let ended = place.run("receiver", place.receive_command("link", &[]));
    ended.assert_one_sentence(2, &["link", "nowhere", "is not there"]);
    let ended = place.run("receiver", place.receive_command("file/below/it", &[]));
    ended.assert_one_sentence(2, &[file.to_str().unwrap(), "is a file", "--into"]);
}

#[test]
fn room_for_parity_is_looked_for_before_anything_is_sent() {
    common::need_root("a mount of its own");
    let place = Place::new();
    let file = place.file("product.bin", 2_000_000);
    let send = place.send_command(&[&file], &["--one-way", "--rate", "20 Mbit/s", "--json"]);
    let full = place.path("full");
    fs::create_dir(&full).unwrap();
    let script = format!("mount -t tmpfs -o size=64k tmpfs '{0}' && TMPDIR='{0}' \"$@\"", full.display());
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &script, "sh"]);
    command.arg(send.get_program()).args(send.get_args()).env("XDG_STATE_HOME", place.path("state"));
    let receiver = place.receive("ant", &["--one-way"]);
    let ended = place.run("sender", command);
    ended.assert_failed(1, &["cannot keep parity in", "No space left", "set TMPDIR"]);
    assert!(!receiver.has("joined"), "nothing was sent: {}", ended.story());
}

/// Commands that mount a file system in which nothing can be removed.
const NO_REMOVAL: &str = "mkdir \"$PLACE/back\" && bindfs --delete-deny \"$PLACE/back\" \"$PLACE/ant\"";

#[test]
fn where_nothing_can_be_removed_the_same_comes_again() {
    by_each_protocol(|_, protocol| {
        let place = Place::new();
        let parent = place.path("d");
        fs::create_dir(&parent).unwrap();
        let (send, receive) = protocol;
        let script = format!(
            "{NO_REMOVAL} || exit 77; for turn in 0 1 2; do until [ -e \"$PLACE/turn$turn\" ]; do sleep 0.05; done; \"$@\" || exit 78; done; mkdir \"$PLACE/got\"; \
             cp -r \"$PLACE/ant/.\" \"$PLACE/got\"; umount \"$PLACE/ant\""
        );
        let args = [receive, &["--once", "--json"]].concat();
        let mut command = scripted_into_mount(&place, "size=4m", &args, &script);
        command.env("PLACE", place.root());
        let receiver = place.start("ant", command);
        // The files are so large that the receiver keeps something of them on disk, which stays.
        for (turn, seed) in [1, 1, 2].into_iter().enumerate() {
            for name in ["one", "two"] {
                fs::write(parent.join(name), noise(seed, 2_500_000)).unwrap();
            }
            // The earlier transmissions have ended by then.
            write(&place, &format!("turn{turn}"), "");
            receiver.until_nth("listening", turn + 1);
            let sender = place.send(&[&parent], send).wait();
            assert!(matches!(sender.code, Some(0 | 4)), "{}", sender.story());
        }
        let receiver = receiver.wait();
        assert_eq!(receiver.code, Some(0), "{}", receiver.story());
        for name in ["one", "two"] {
            let there = ["d/", "d_"].map(|before| place.path("got").join(format!("{before}{name}")));
            let there = there.iter().find_map(|path| fs::read(path).ok());
            assert!(there.is_some_and(|there| there == noise(2, 2_500_000)), "{}", receiver.story());
        }
    });
}
