//! `--help`: a screen, and the rest by section.

use std::collections::BTreeSet;

use crate::common::Place;

/// Commands with sections.
const LONG: [&str; 6] = ["send", "receive", "simulate", "sweep", "tune", "emulate"];
/// Commands whose help fits a screen.
const SHORT: [&[&str]; 18] = [
    &[],
    &["compare"],
    &["model"],
    &["model", "pftk"],
    &["model", "mathis"],
    &["model", "cardwell"],
    &["model", "mlppp"],
    &["model", "pgmcc"],
    &["reproduce"],
    &["partials"],
    &["key"],
    &["key", "new"],
    &["key", "show"],
    &["key", "trust"],
    &["key", "list"],
    &["key", "revoke"],
    &["key", "renew"],
    &["demo"],
];

fn help(place: &Place, args: &[&str]) -> String {
    let ended = place.run("help", place.farcast(args));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {}", ended.story());
    let shown = ended.stdout;
    for line in shown.lines() {
        assert!(line.chars().count() <= 100, "{args:?}: {line}");
        assert!(!line.ends_with(' '), "{args:?}: {line:?}");
    }
    let blank = shown.lines().collect::<Vec<_>>().windows(2).any(|pair| pair.iter().all(|l| l.is_empty()));
    assert!(!blank && shown.ends_with('\n') && !shown.ends_with("\n\n"), "{args:?}: {shown:?}");
    shown
}

/// Returns the options that begin a line.
fn options(shown: &str) -> BTreeSet<String> {
    let option = |line: &str| {
        let word =
            line.strip_prefix("  -q, ").or(line.strip_prefix("  -n, ")).or(line.strip_prefix("      "))?;
        let word = word.split_whitespace().next().filter(|word| word.starts_with("--"))?;
        Some(word.to_owned())
    };
    shown.lines().filter_map(option).collect()
}

/// Returns the sections that a screen mentions.
fn sections(shown: &str) -> Vec<String> {
    let text = shown.replace('\n', " ");
    let (_, rest) = text.split_once("--help SECTION, which is ").unwrap();
    let (list, _) = rest.split_once(" or all.").unwrap();
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn help_fits_a_screen() {
    let place = Place::new();
    for command in LONG {
        let shown = help(&place, &[command, "--help"]);
        assert!(shown.lines().count() <= 40, "{} lines:\n{shown}", shown.lines().count());
        assert!(shown.contains("Usage: farcast ") && shown.contains("Examples:\n  farcast "), "{shown}");
        assert_eq!(shown, help(&place, &[command, "-h"]));
        assert_eq!(shown, help(&place, &["help", command]));
    }
    for command in SHORT {
        let shown = help(&place, &[command, &["--help"]].concat());
        assert!(shown.lines().count() <= 40, "{} lines:\n{shown}", shown.lines().count());
        assert!(!shown.contains("SECTION"), "{shown}");
        assert_eq!(shown, help(&place, &[command, &["--help", "all"]].concat()));
    }
}

#[test]
fn each_option_is_in_a_section_or_on_the_screen() {
    let place = Place::new();
    for command in LONG {
        let screen = help(&place, &[command, "--help"]);
        let mut found = options(&screen);
        for section in sections(&screen) {
            let shown = help(&place, &[command, "--help", &section]);
            // Its own heading, and those that it shares with others: "NORM and MDP".
            let headings = shown.lines().filter(|line| !line.is_empty() && !line.starts_with(' '));
            let is_its = |heading: &str| {
                let mut parts = heading.trim_end_matches(':').split(" and ");
                parts.any(|part| part.to_lowercase().split(' ').next() == Some(&section))
            };
            assert!(headings.clone().count() >= 1 && headings.clone().all(is_its), "{section}: {shown}");
            assert!(!options(&shown).is_empty(), "{shown}");
            assert_eq!(shown, help(&place, &["help", command, &section]));
            found.extend(options(&shown));
        }
        let all = help(&place, &[command, "--help", "all"]);
        assert_eq!(found, options(&all), "{command}");
        assert!(found.len() >= 13 && all.contains("Exit codes: "), "{command}: {found:?}");
        assert!(!all.contains("--inside") && !all.contains("--discard"), "{all}");
    }
}

#[test]
fn a_section_that_is_not_there() {
    let place = Place::new();
    for (args, code, parts) in [
        (&["send", "--help", "nosuch"][..], 2, "farcast send has no section \"nosuch\": it has receivers, "),
        (&["help", "receive", "nosuch"], 2, "farcast receive has no section \"nosuch\": it has "),
        (&["partials", "--help", "network"], 2, "farcast partials has no section \"network\": it has all"),
        (&["emulate", "--help", "nosuch"], 125, "it has "),
    ] {
        place.run("help", place.farcast(args)).assert_one_sentence(code, &[parts]);
    }
}

#[test]
fn what_is_no_call_for_help_is_left_to_its_command() {
    let place = Place::new();
    // Behind the section, or an option that is no section's name.
    let screen = help(&place, &["send", "--help"]);
    assert_eq!(screen, help(&place, &["send", "--to", "239.1.1.1", "--help", "--rate", "max"]));
    let ended = place.run("help", place.farcast(["help", "nosuch"]));
    ended.assert_failed(2, &["unrecognized subcommand 'nosuch'", "try '--help'"]);
    let ended = place.run("send", place.farcast(["send", "--nosuch"]));
    ended.assert_failed(2, &["unexpected argument '--nosuch'", "try '--help'"]);
    let ended = place.run("send", place.farcast(["send", "help", "--to", "239.1.1.1", "--rate", "max"]));
    ended.assert_one_sentence(2, &["help", "No such file"]);
}
