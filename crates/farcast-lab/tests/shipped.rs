//! Shipped scenarios and links, and documents in files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;

use farcast_lab::shipped::{self, OpenError, Shipped};
use farcast_lab::traffic::{TrafficError, send_over};
use farcast_scenario::Links;
use farcast_sim::scenario::{Scenario, TreeScenario};

#[test]
fn every_scenario_can_be_run() {
    for shipped in shipped::scenarios() {
        let document = shipped.document().unwrap();
        assert!(!Links::are_all_of(&document), "{}", shipped.name());
        if TreeScenario::is_one(&document) {
            TreeScenario::read(&document).unwrap();
        } else {
            Scenario::read(&document).unwrap();
        }
        let mut document = document;
        assert_eq!(send_over(&mut document, &["tcp".to_owned()]), Err(TrafficError::Scenario));
        assert_eq!(send_over(&mut document, &[]), Ok(()));
    }
}

/// Links that name files find them, whatever the working directory.
#[test]
fn every_link_carries_traffic() {
    for shipped in shipped::links() {
        let mut document = shipped.document().unwrap();
        assert!(Links::are_all_of(&document), "{}", shipped.name());
        assert_eq!(send_over(&mut document, &[]), Err(TrafficError::Nothing));
        send_over(&mut document, &["tcp, size = 10 kB".to_owned()]).unwrap();
        assert_eq!(Scenario::read(&document).unwrap().flows(), 1, "{}", shipped.name());
    }
}

#[test]
fn names_are_unique_and_lead_to_what_they_name() {
    let all = || shipped::scenarios().chain(shipped::links());
    let names: BTreeSet<_> = all().map(|one| one.name()).collect();
    assert_eq!(names.len(), all().count());
    for one in all() {
        assert_eq!(shipped::named(one.name()), Some(one));
        let title = one.title();
        assert!(!title.is_empty() && !title.starts_with('#') && !title.contains('\n'), "{title}");
    }
    assert_eq!(shipped::named("nothing"), None::<Shipped>);
    let error = shipped::document("nothing").unwrap_err();
    assert_eq!(error.to_string(), "no scenario nothing ships with farcast");
}

#[test]
fn a_path_wins_over_a_name_and_neither_is_an_error_that_lists_the_names() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    fs::write(at("geo"), "answer = 42\n").unwrap();
    let document = shipped::open(&at("geo")).unwrap();
    assert_eq!(document.root().integer("answer", 0..=100), Ok(42));
    assert!(Links::are_all_of(&shipped::open("geo").unwrap()));
    let error = shipped::open(&at("absent")).unwrap_err();
    assert!(matches!(error, OpenError::Unknown { .. }), "{error}");
    for one in shipped::scenarios().chain(shipped::links()) {
        assert!(error.to_string().contains(one.name()), "{error}");
    }
}

#[test]
fn a_file_is_refused_for_what_it_is() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    // A shipped name is no path.
    let error = shipped::file("geo".as_ref()).unwrap_err();
    assert!(matches!(&error, OpenError::Unreadable { path, .. } if path.as_os_str() == "geo"), "{error}");
    fs::write(at("no"), "no TOML").unwrap();
    assert!(matches!(shipped::file(&at("no")).unwrap_err(), OpenError::Document(_)));
    fs::write(at("long"), vec![b'\n'; 16 << 20]).unwrap();
    shipped::file(&at("long")).unwrap();
    fs::write(at("long"), vec![b'\n'; (16 << 20) + 1]).unwrap();
    let error = shipped::file(&at("long")).unwrap_err();
    assert!(error.to_string().ends_with("longer than any scenario, which has 16 MiB at most"), "{error}");
    // A file without an end is not read to its end.
    assert!(matches!(shipped::file("/dev/zero".as_ref()).unwrap_err(), OpenError::Unreadable { .. }));
}
