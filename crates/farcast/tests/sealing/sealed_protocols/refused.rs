//! Hosts whose keys and memory of sealed sessions lie on a file system that refuses a nicety.

use std::fs;

use rustix::io::Errno;

use crate::common::refused::{Call, refusing};
use crate::common::{Ended, Place, assert_same};
use crate::party::Parties;

/// Returns the number of times that `said` stands in the standard error of `ended`.
fn times(ended: &Ended, said: &str) -> usize {
    ended.stderr.matches(said).count()
}

#[test]
fn keys_and_what_is_remembered_of_sessions_do_without_niceties() {
    let cases = [
        (Call::Fsync, "names in", [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS].as_slice()),
        (Call::Flock, "could not be locked", [Errno::NOLCK, Errno::OPNOTSUPP].as_slice()),
    ];
    for (call, said, errnos) in cases {
        for &errno in errnos {
            let parties = Parties::new(&[]);
            let refused = |name: &str, args: &[&str]| {
                let ended = parties.place.run(name, refusing(&parties.at(name, args), call, errno));
                assert_eq!((ended.code, times(&ended, said)), (Some(0), 1), "{errno}: {}", ended.story());
                ended.stdout
            };
            let line =
                |shown: String| shown.lines().find(|line| line.starts_with("bob ")).unwrap().to_owned();
            let bob = line(refused("bob", &["key", "new", "bob"]));
            refused("ann", &["key", "trust", &bob, "--as", "receiver"]);
            parties.trust("bob", "ann", "sender");
            let file = parties.place.file("product.bin", 10_000);
            let receive = parties.place.receive_command("bob", &["--protocol", "norm", "--once", "--json"]);
            let receiver = parties.place.start("bob", refusing(&parties.own("bob", receive), call, errno));
            receiver.until("listening");
            let how = ["--protocol", "norm", "--rate", "4 Mbit/s", "--receivers", "bob"];
            let send = parties.own("ann", parties.place.send_command(&[&file], &how));
            let sender = parties.place.run("ann", refusing(&send, call, errno));
            let got = receiver.wait();
            assert_eq!(
                (sender.code, got.code),
                (Some(0), Some(0)),
                "{errno}: {} {}",
                sender.story(),
                got.story()
            );
            assert!(got.all("forgetful").is_empty(), "{}", got.story());
            assert_same(&file, &parties.place.path("bob/product.bin"));
        }
    }
    let place = Place::new();
    let mut new = place.farcast(["key", "new", "ant"]);
    new.env("XDG_CONFIG_HOME", place.path("ant"));
    place.run("ant", refusing(&new, Call::Fsync, Errno::IO)).assert_one_sentence(1, &["cannot write"]);
    place.run("ant", refusing(&new, Call::Flock, Errno::IO)).assert_one_sentence(1, &["cannot write"]);
}

#[test]
fn without_locks_no_key_of_many_is_lost() {
    let parties = Parties::new(&[]);
    let names: Vec<String> = (0..12).map(|n| format!("bob{n}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let parties = &parties;
            scope.spawn(move || {
                parties.make(name);
                let shown = parties.at(name, &["key", "show"]).output().unwrap().stdout;
                let shown = String::from_utf8(shown).unwrap();
                let line = shown.lines().find(|line| !line.starts_with('#')).unwrap();
                let trust = parties.at("ann", &["key", "trust", line, "--as", "receiver"]);
                let ended = parties.place.run(name, refusing(&trust, Call::Flock, Errno::NOLCK));
                assert_eq!(ended.code, Some(0), "{}", ended.story());
            });
        }
    });
    let config = parties.place.path("config-ann/farcast");
    let list = fs::read_to_string(config.join("trust")).unwrap();
    assert!(names.iter().all(|name| list.contains(&format!("receiver {name} "))), "{list}");
    assert!(!config.join(".trust.owner").exists());
}
