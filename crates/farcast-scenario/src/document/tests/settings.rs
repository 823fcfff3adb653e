//! Assignments laid over a document.

use farcast_core::Span;
use farcast_core::units::Probability;

use super::{FULL, LEAST, Scenario, Stage, document, rate};
use crate::document::Document;

/// Returns the document with these assignments laid over it.
fn with(text: &str, assignments: &[&str]) -> Document {
    let mut document = document(text);
    for assignment in assignments {
        document.set(assignment).expect("an assignment");
    }
    document
}

/// Returns the error of an assignment, when it is made or when the document is read.
fn error(assignment: &str) -> String {
    let mut document = document(FULL);
    let error = document.set(assignment).and_then(|()| Scenario::read(&document).map(drop));
    error.expect_err("refused").to_string()
}

#[test]
fn replaces_and_creates() {
    let assignments = [
        "link.forward.rate=2 Mbit/s",
        "link.forward.delay = \"1 s\"",
        "link.return.rate=64 kbit/s",
        " title = plain words ",
        "sizes=[1, 2]",
        "verbose=true",
        "seed=0x10",
        "link.forward.per=1 %",
    ];
    let scenario = Scenario::read(&with(LEAST, &assignments)).expect("valid");
    assert_eq!(scenario.forward.rate, rate(2_000_000));
    assert_eq!(scenario.forward.delay, Span::from_secs(1));
    assert_eq!(Some(scenario.forward.per), Probability::new(0.01));
    assert_eq!(scenario.back.map(|back| back.rate), Some(rate(64_000)));
    assert_eq!(scenario.title, "plain words");
    assert_eq!((scenario.sizes, scenario.verbose, scenario.seed), (vec![1, 2], true, 16));
}

#[test]
fn the_last_assignment_holds() {
    let scenario = Scenario::read(&with(LEAST, &["seed=2", "seed=x", "seed=3"])).expect("valid");
    assert_eq!(scenario.seed, 3);
}

#[test]
fn reaches_members_of_a_list_by_name() {
    let assignments = ["link.stages.uplink.rate=5 bit/s", "link.stages.\"air\".per=0.5"];
    let scenario = Scenario::read(&with(FULL, &assignments)).expect("valid");
    let expected = [
        Stage::Pipe { name: "uplink".to_owned(), rate: rate(5) },
        Stage::Loss { name: "air".to_owned(), per: Probability::new(0.5).expect("valid") },
    ];
    assert_eq!(scenario.stages, expected);
    let escaped = ["link.stages.air.name=\"a\\nb\"", "link.stages.\"a\\u000Ab\".per=1"];
    let scenario = Scenario::read(&with(FULL, &escaped)).expect("valid");
    assert_eq!(
        scenario.stages[1],
        Stage::Loss { name: "a\nb".to_owned(), per: Probability::new(1.0).expect("valid") }
    );
    // After a change of its name, a member is reached by the new name.
    let renamed = ["link.stages.air.name=sky.1", "link.stages.'sky.1'.per=1"];
    let scenario = Scenario::read(&with(FULL, &renamed)).expect("valid");
    assert_eq!(
        scenario.stages[1],
        Stage::Loss { name: "sky.1".to_owned(), per: Probability::new(1.0).expect("valid") }
    );
}

#[test]
fn an_error_names_the_assignment() {
    assert_eq!(
        error("link.forward.per=1.5"),
        "--set link.forward.per=1.5: link.forward.per: 1.5 is out of range; it must lie within 0 to 1, or 0 % to 100 %"
    );
    assert_eq!(
        error("link.forward.rate=fast"),
        "--set link.forward.rate=fast: link.forward.rate: \"fast\" is not a bit rate; \
         it must begin with a number, as in \"20 Mbit/s\""
    );
    assert_eq!(
        error("link.stages.air.per=2"),
        "--set link.stages.air.per=2: link.stages.air.per: 2 is out of range; \
         it must lie within 0 to 1, or 0 % to 100 %"
    );
    assert_eq!(
        error("link.forward={per=0}"),
        "--set link.forward={per=0}: link.forward.rate: this key is missing in the table link.forward; \
         add it, as in rate = \"20 Mbit/s\""
    );
    assert_eq!(error("link=1"), "--set link=1: link: 1 is not a table; it must be a table, headed [link]");
    assert_eq!(
        error("seed=99999999999999999999"),
        "--set seed=99999999999999999999: seed: 99999999999999999999 is too large; \
         an integer must fit into 64 bits with its sign"
    );
}

#[test]
fn an_unknown_key_is_the_same_error_as_in_the_file() {
    assert_eq!(
        error("link.forward.perr=0.1"),
        "--set link.forward.perr=0.1: link.forward.perr: this key is unknown, did you mean per; \
         the keys here are rate, delay, per, queue, order, weight"
    );
    assert_eq!(
        error("lnik.forward.per=0.1"),
        "--set lnik.forward.per=0.1: lnik: this key is unknown, did you mean link; \
         the keys here are title, seed, verbose, sizes, link"
    );
    // An unknown key in the file comes before one in an assignment.
    let document = with(&format!("{LEAST}zz = 1\n"), &["link.forward.aa=1"]);
    assert_eq!(
        Scenario::read(&document).expect_err("unknown").to_string(),
        "scenarios/x.toml:4: link.forward.zz: this key is unknown; \
         the keys here are rate, delay, per, queue, order, weight"
    );
}

#[test]
fn what_is_no_assignment() {
    for text in ["seed", "", "=1", ".seed=1", "link..per=1", "\"seed=1", "\"a\"b=1", "link.=1"] {
        assert_eq!(
            error(text),
            format!("--set {text}: this is no assignment; write KEY=VALUE, as in link.forward.per=0.005")
        );
    }
}

#[test]
fn what_leads_nowhere() {
    assert_eq!(
        error("link.stages.up.rate=1 bit/s"),
        "--set link.stages.up.rate=1 bit/s: link.stages.up: this list has no member of this name; \
         its members are \"uplink\", \"air\""
    );
    assert_eq!(
        error("sizes.a=1"),
        "--set sizes.a=1: sizes.a: this list has no member of this name; its members have no names"
    );
    assert_eq!(
        error("link.stages.air=1"),
        "--set link.stages.air=1: link.stages.air: a member of a list cannot be replaced; set one of its keys"
    );
    assert_eq!(
        error("link.forward.rate.x=1"),
        "--set link.forward.rate.x=1: link.forward.rate: \"20 Mbit/s\" is not a table; \
         it must be a table for something in it to be set"
    );
}

#[test]
fn what_lies_too_deep() {
    let brackets = format!("a={}{}", "[".repeat(17), "]".repeat(17));
    assert_eq!(
        error(&brackets),
        format!(
            "--set {brackets}: this lies too deep; at most 16 tables and lists may lie within each other"
        )
    );
    let keys = format!("{}x=1", "a.".repeat(16));
    assert!(
        error(&keys).ends_with(": this lies too deep; at most 16 tables and lists may lie within each other")
    );
    let both = format!("{}x={{a.b.c.d=1}}", "a.".repeat(13));
    assert!(
        error(&both).ends_with(": this lies too deep; at most 16 tables and lists may lie within each other")
    );
}

#[test]
fn an_assignment_that_fails_changes_nothing() {
    let mut document = document(FULL);
    let before = Scenario::read(&document).expect("valid");
    for assignment in ["link.stages.up.rate=1", "title.x.y=1", "nonsense", "seed=99999999999999999999"] {
        assert!(document.set(assignment).is_err());
    }
    assert_eq!(Scenario::read(&document), Ok(before));
    document.set("link.forward.per=7").expect("an assignment");
    assert!(
        Scenario::read(&document)
            .expect_err("out of range")
            .to_string()
            .starts_with("--set link.forward.per=7: ")
    );
}

#[test]
fn odd_text_stays_in_one_short_line() {
    assert_eq!(
        error("seed=a\nb\u{1b}[31m"),
        "--set seed=a b [31m: seed: \"a\\nb\\u001B[31m\" is not an integer; \
         it must be an integer from 0 to 9223372036854775807"
    );
    let long = format!("seed={}", "x".repeat(1_000));
    assert!(error(&long).starts_with(&format!("--set seed={}...: seed: ", "x".repeat(75))));
}
