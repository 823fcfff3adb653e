//! Unused settings: those that change nothing are named.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

use farcast_lab::{World, unused};
use farcast_scenario::document::Document;

const SCENARIO: &str = "receivers = 3\n[protocol]\nfile = \"10 kB\"\nrate = \"1 Mbit/s\"\n[link.forward]\n\
                        delay = \"250 ms\"\n[link.return]\ndelay = \"250 ms\"\n";

fn with(settings: &[&str]) -> Vec<String> {
    let mut document = Document::parse("test.toml", SCENARIO).expect("TOML");
    for setting in settings {
        document.set(setting).expect("a setting");
    }
    World::read(&document).unwrap_or_else(|error| panic!("{error}"));
    unused(&document)
}

#[test]
fn settings_that_another_makes_void_are_named() {
    assert!(with(&[]).is_empty());
    for (settings, void) in [
        (&["protocol.group=closed", "protocol.group_limit=7"][..], "protocol.group_limit"),
        (&["protocol.setup=done", "protocol.start_receivers=2"], "protocol.start_receivers"),
        (&["protocol.setup=done", "protocol.start_after=5 s"], "protocol.start_after"),
        (&["protocol.setup=done", "protocol.announce_limit=5 s"], "protocol.announce_limit"),
        (&["protocol.srt.round_trip=600 ms", "protocol.round_trip=2 s"], "protocol.round_trip"),
    ] {
        assert_eq!(with(settings), [void], "{settings:?}");
    }
}

#[test]
fn settings_that_matter_or_are_defaults_are_not() {
    for settings in [
        &["protocol.group_limit=7"][..],
        &["protocol.start_receivers=2", "protocol.start_after=5 s"],
        &["protocol.round_trip=1000 ms", "protocol.parity=auto", "protocol.pass_wait=draft"],
        &["protocol.start_after=none", "protocol.group_limit=none", "link.forward.rate=never"],
    ] {
        assert_eq!(with(settings), Vec::<String>::new(), "{settings:?}");
    }
}

#[test]
fn what_ships_says_nothing_in_vain() {
    for shipped in farcast_lab::shipped::scenarios() {
        let document = shipped.document().expect("it ships");
        assert_eq!(unused(&document), Vec::<String>::new(), "{}", shipped.name());
    }
}
