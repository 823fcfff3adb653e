//! Published studies again: what `farcast reproduce` prints and writes.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files"
)]

mod common;

use std::fs;
use std::sync::OnceLock;

use common::Place;
use serde_json::Value;

const KEYS: [&str; 9] =
    ["paper", "item", "row", "column", "published", "farcast", "ci95_half_width", "verdict", "rule"];
const CASES: [&str; 3] = ["20 receivers, PER 0.001", "40 receivers, PER 0.005", "80 receivers, PER 0.005"];
const COLUMNS: [&str; 5] = ["n = 1", "n = 2", "n = 4", "n = 6", "n = 10"];

/// What the study prints, typed from its text: item, case, one number for each n.
fn shares() -> Vec<(&'static str, &'static str, [Option<f64>; 5])> {
    let all = |numbers: [f64; 5]| numbers.map(Some);
    vec![
        ("runs with 2 passes, %", CASES[0], all([21.0, 57.0, 93.0, 93.0, 93.0])),
        ("runs with 3 passes, %", CASES[0], all([79.0, 43.0, 7.0, 7.0, 7.0])),
        ("runs with 3 passes, %", CASES[1], all([7.0, 36.0, 79.0, 79.0, 79.0])),
        ("runs with 4 passes, %", CASES[1], all([79.0, 57.0, 21.0, 21.0, 21.0])),
        ("runs with 5 passes, %", CASES[1], all([14.0, 7.0, 0.0, 0.0, 0.0])),
        ("runs with 3 passes, %", CASES[2], all([0.0, 22.0, 78.0, 64.0, 57.0])),
        ("runs with 4 passes, %", CASES[2], [Some(100.0), Some(64.0), None, None, None]),
        ("runs with 5 passes, %", CASES[2], [Some(0.0), Some(14.0), None, None, None]),
    ]
}

/// The JSON of a quick run, made once.
fn quick() -> &'static [Value] {
    static ROWS: OnceLock<Vec<Value>> = OnceLock::new();
    ROWS.get_or_init(|| serde_json::from_str(&json(&Place::new(), &["--threads", "1"])).unwrap())
}

fn json(place: &Place, args: &[&str]) -> String {
    let mut command = place.farcast(["reproduce", "mftp-bgan", "--quick", "--json"]);
    command.args(args);
    let ended = place.run("reproduce", command);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.story());
    ended.stdout
}

/// The one row at a place.
fn row(item: &str, case: &str, column: &str) -> &'static Value {
    let is = |row: &&Value| row["item"] == item && row["row"] == case && row["column"] == column;
    let found: Vec<_> = quick().iter().filter(is).collect();
    assert_eq!(found.len(), 1, "rows of {item}, {case}, {column}");
    found[0]
}

#[test]
fn every_row_has_the_fields_and_a_known_verdict() {
    for row in quick() {
        let mut keys: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let mut expected = KEYS;
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(row["paper"], "mftp-bgan");
        assert!(row["farcast"].is_f64(), "{row}");
        assert!(row["ci95_half_width"].as_f64().is_none_or(|half| half >= 0.0), "{row}");
        assert!(row["rule"].as_str().unwrap().len() > 20, "{row}");
        let verdict = row["verdict"].as_str().unwrap();
        assert!(["agrees", "differs", "undetermined", "not_published"].contains(&verdict), "{row}");
        assert_eq!(row["published"].is_null(), verdict == "not_published", "{row}");
    }
}

#[test]
fn published_numbers_are_the_papers() {
    let mut found = 0;
    let mut check = |item: &str, case: &str, column: &str, published: Option<f64>| {
        assert_eq!(row(item, case, column)["published"].as_f64(), published, "{item}, {case}, {column}");
        found += 1;
    };
    for (item, case, numbers) in shares() {
        for (column, number) in COLUMNS.into_iter().zip(numbers) {
            check(item, case, column, number);
        }
    }
    for (column, timer) in COLUMNS.into_iter().zip([7.845, 8.845, 10.845, 12.845, 16.845]) {
        check("Status Retry Timer, s", "all cases", column, Some(timer));
    }
    let extremes = [(2.0, 3.0), (3.0, 5.0), (3.0, 5.0)];
    for ((case, delay), (fewest, most)) in CASES.into_iter().zip([54.1221, 81.065, 91.0157]).zip(extremes) {
        for column in COLUMNS {
            check("delay, s", case, column, (column == "n = 4").then_some(delay));
            check("runs with fewer or more passes, %", case, column, None);
            check("p-value of the passes", case, column, None);
            if column != "n = 4" {
                check("delay above that at n = 4, s", case, column, None);
            }
        }
        check("fewest passes", case, "", Some(fewest));
        check("most passes", case, "", Some(most));
        check("n of the least delay", case, "", Some(4.0));
        check("n from which the delay grows", case, "", Some(4.0));
    }
    assert_eq!(quick().len(), found, "there is no other row");
}

#[test]
fn shares_of_a_cell_add_up_and_differences_are_those_of_the_means() {
    for case in CASES {
        let sum = |column: &str| -> f64 {
            let here = |row: &&Value| {
                row["row"] == case
                    && row["column"] == column
                    && row["item"].as_str().unwrap().starts_with("runs with")
            };
            quick().iter().filter(here).map(|row| row["farcast"].as_f64().unwrap()).sum()
        };
        let delay = |column| row("delay, s", case, column)["farcast"].as_f64().unwrap();
        for column in COLUMNS {
            assert!((sum(column) - 100.0).abs() < 1e-9, "{case}, {column}");
        }
        for column in ["n = 1", "n = 2", "n = 6", "n = 10"] {
            let above = row("delay above that at n = 4, s", case, column)["farcast"].as_f64().unwrap();
            assert!((above - (delay(column) - delay("n = 4"))).abs() < 1e-9, "{case}, {column}");
        }
    }
}

/// 488 DTUs of 526 octets at 300 kbit/s, and n seconds.
#[test]
fn the_timers_are_arithmetic() {
    for (column, n) in COLUMNS.into_iter().zip([1.0, 2.0, 4.0, 6.0, 10.0]) {
        let row = row("Status Retry Timer, s", "all cases", column);
        let expected = 488.0 * 526.0 * 8.0 / 300_000.0 + n;
        assert!((row["farcast"].as_f64().unwrap() - expected).abs() < 1e-8, "{row}");
        assert_eq!(row["verdict"], "agrees");
    }
}

/// What stands in the tables is what `simulate` finds with the same settings.
#[test]
fn simulate_finds_the_same() {
    let place = Place::new();
    let mut command = place.farcast(["simulate", "mftp-bgan", "--json", "-n", "100", "--seed", "1"]);
    for setting in ["receivers=40", "link.forward.per=0.005", "protocol.srt.n=2"] {
        command.args(["--set", setting]);
    }
    let ended = place.run("simulate", command);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let ours = row("delay, s", CASES[1], "n = 2");
    let mean = &result["summary"]["completion_time_s"];
    assert_eq!((&ours["farcast"], &ours["ci95_half_width"]), (&mean["mean"], &mean["ci95_half_width"]));
    let passes = result["replications"].as_array().unwrap().iter().filter(|one| one["passes"] == 3).count();
    assert_eq!(row("runs with 3 passes, %", CASES[1], "n = 2")["farcast"].as_f64(), Some(passes as f64));
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let place = Place::new();
    let two = json(&place, &["--threads", "2"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&two).unwrap(), quick());
    assert_eq!(two, json(&place, &["--threads", "1"]), "byte for byte");
    assert_ne!(two, json(&place, &["--seed", "2"]));
}

/// The JSON of the paper on multilink bundles, made once.
fn bundle() -> &'static [Value] {
    static ROWS: OnceLock<Vec<Value>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let place = Place::new();
        let ended = place.run("reproduce", place.farcast(["reproduce", "tcp-mlppp", "--json"]));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.story());
        serde_json::from_str(&ended.stdout).unwrap()
    })
}

const BUNDLE_TABLES: [&str; 2] = ["Table I: 8 links", "Table II: 3 to 8 links"];

/// Table, column, printed prediction and measurement in minutes, typed from the paper.
const BUNDLE: [(&str, &str, f64, f64); 10] = [
    (BUNDLE_TABLES[0], "1.38 MB", 12.5, 11.0),
    (BUNDLE_TABLES[0], "5.62 MB", 51.0, 46.0),
    (BUNDLE_TABLES[0], "20.6 MB", 187.0, 180.0),
    (BUNDLE_TABLES[0], "35.7 MB", 324.0, 315.0),
    (BUNDLE_TABLES[1], "3 links, 4.82 MB", 98.1, 96.0),
    (BUNDLE_TABLES[1], "4 links, 0.85 MB", 13.4, 15.0),
    (BUNDLE_TABLES[1], "5 links, 1.91 MB", 24.1, 21.0),
    (BUNDLE_TABLES[1], "6 links, 1.39 MB", 15.4, 13.0),
    (BUNDLE_TABLES[1], "7 links, 3.40 MB", 33.2, 30.0),
    (BUNDLE_TABLES[1], "8 links, 1.40 MB", 12.7, 12.0),
];

/// The one row of the bundle's paper at a place.
fn bundle_row(item: &str, case: &str, column: &str) -> &'static Value {
    let is = |row: &&Value| row["item"] == item && row["row"] == case && row["column"] == column;
    let found: Vec<_> = bundle().iter().filter(is).collect();
    assert_eq!(found.len(), 1, "rows of {item}, {case}, {column}");
    found[0]
}

#[test]
fn predictions_of_the_bundles_model_agree_and_measurements_wait() {
    for (case, column, predicted, measured) in BUNDLE {
        let row = bundle_row("predicted transfer time, min", case, column);
        let ours = row["farcast"].as_f64().unwrap();
        assert!((ours / predicted - 1.0).abs() < 0.005, "{row}");
        assert_eq!((row["published"].as_f64(), &row["verdict"]), (Some(predicted), &"agrees".into()));
        assert!(row["rule"].as_str().unwrap().contains("within 0.5 %"), "{row}");
        let row = bundle_row("measured transfer time, min", case, column);
        assert_eq!((row["published"].as_f64(), &row["verdict"]), (Some(measured), &"undetermined".into()));
        assert_eq!(row["farcast"].as_f64(), Some(ours), "the model's beside it");
        assert!(row["rule"].as_str().unwrap().contains("until the bundle is simulated"), "{row}");
    }
    let judged = bundle().iter().filter(|row| row["verdict"] != "not_published").count();
    assert_eq!(judged, 2 * BUNDLE.len(), "nothing else is judged");
}

/// Values worked out apart from the paper's equation (13), in minutes.
#[test]
fn figures_of_the_bundles_model_are_rows() {
    let value = |item: &str, case: &str, column: &str| {
        let row = bundle_row(item, case, column);
        assert!(row["published"].is_null() && row["verdict"] == "not_published", "{row}");
        row["farcast"].as_f64().unwrap()
    };
    for (interval, minutes) in [("50", 110.7), ("30", 121.6), ("20", 138.7)] {
        let column = format!("a drop of a link every {interval} min");
        let ours = value("transfer time, min", "Figure 4: 10 MB over 6 links", &column);
        assert!((ours - minutes).abs() < 0.05, "{interval} min: {ours}");
    }
    for (p, minutes) in [("1e-5", [42.541, 26.592]), ("5e-4", [51.526, 32.190]), ("1e-3", [62.486, 39.014])] {
        for (interval, minutes) in ["10", "100"].into_iter().zip(minutes) {
            let (item, column) = (format!("transfer time at p = {p}, min"), format!("every {interval} min"));
            let case = "Figure 5: 100 MB over 4 Inmarsat links, a drop of a link";
            let ours = value(&item, case, &column);
            assert!((ours - minutes).abs() < 6e-4, "p {p}, {interval} min: {ours}");
        }
    }
    assert_eq!(bundle().len(), 2 * BUNDLE.len() + 3 + 20);
}

#[test]
fn a_paper_without_chance_says_so() {
    let place = Place::new();
    let ended = place.run("reproduce", place.farcast(["reproduce", "tcp-mlppp"]));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert!(ended.stdout.contains("no chance is in them"), "{}", ended.story());
    let last = ended.stdout.lines().last().unwrap();
    assert_eq!(last, "20 numbers compared: 10 agree, 0 differ, 10 undetermined; not published: 23.");
}

/// The grid of other TCPs' goodput: all of ns-2's cells agree but for those whose slow start overruns the queue over the
/// longest delays, and all of the kernel's.
fn check_reference(rows: &[Value]) {
    assert!(rows.iter().all(|row| row["paper"] == "tcp-reference"));
    let of = |peer: &str| -> Vec<&Value> {
        let is = |row: &&Value| {
            row["item"] == "goodput, kbit/s" && row["row"].as_str().is_some_and(|row| row.starts_with(peer))
        };
        rows.iter().filter(is).collect()
    };
    let (ns2, ns3, linux) = (of("ns-2"), of("ns-3"), of("linux"));
    assert_eq!((ns2.len(), ns3.len(), linux.len()), (102, 32, 4));
    let differ: Vec<_> = ns2.iter().chain(&linux).filter(|row| row["verdict"] != "agrees").collect();
    let known = |row: &Value| {
        let overrun = [
            ("sack, round trip 560 ms", "window 1000, PER 0"),
            ("sack, round trip 600 ms", "window 200, PER 0"),
            ("sack, round trip 600 ms", "window 500, PER 0"),
            ("sack, round trip 1000 ms", "window 500, PER 0"),
            ("reno, round trip 1000 ms", "window 500, PER 0"),
        ];
        overrun
            .iter()
            .any(|(case, column)| row["row"] == format!("ns-2.35 {case}") && row["column"] == *column)
    };
    assert!(differ.iter().all(|row| known(row)), "{differ:?}");
    // What nothing is drawn for and no recovery has a part in is the same to a tenth of a per cent.
    for row in ns2.iter().filter(|row| row["column"] == "window 20, PER 0") {
        let (theirs, ours) = (row["published"].as_f64().unwrap(), row["farcast"].as_f64().unwrap());
        assert!((ours / theirs - 1.0).abs() < 1e-3, "{row}");
    }
}

#[test]
fn an_unknown_paper_is_wrong_usage() {
    let place = Place::new();
    let ended = place.run("reproduce", place.farcast(["reproduce", "mftp-began"]));
    ended.assert_one_sentence(
        2,
        &["mftp-began is no paper that farcast reproduces", "mftp-bgan", "tcp-mlppp", "tcp-reference", "all"],
    );
    assert_eq!(ended.stdout, "");
}

#[test]
fn results_are_written_as_files() {
    let place = Place::new();
    let dir = place.path("deep/results");
    let mut command = place.farcast(["reproduce", "--quick", "--out"]);
    command.arg(&dir);
    let ended = place.run("reproduce", command);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["reproduce.csv", "reproduce.json", "reproduce.md"], "and nothing half-written");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&read("reproduce.json")).unwrap();
    let (first, others) = rows.split_at(quick().len());
    let (second, third) = others.split_at(bundle().len());
    assert_eq!((first, second), (quick(), bundle()), "all papers are these and the reference");
    check_reference(third);
    let csv = read("reproduce.csv");
    let lines: Vec<_> = csv.split_terminator("\r\n").collect();
    assert_eq!((lines[0], lines.len()), (KEYS.join(",").as_str(), 1 + rows.len()));
    assert!(
        lines[1].starts_with("mftp-bgan,\"Status Retry Timer, s\",all cases,n = 1,7.845,"),
        "{}",
        lines[1]
    );
    let page = read("reproduce.md");
    for part in [CASES[0], CASES[1], CASES[2], "54.1221", "81.065", "91.0157"] {
        assert!(page.contains(part) && ended.stdout.contains(part), "no {part}: {}", ended.story());
    }
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.contains("numbers compared: ") && page.trim_end().ends_with(last), "{last}");
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_simulated() {
    let place = Place::new();
    let file = place.file("taken", 1);
    let mut command = place.farcast(["reproduce", "--out"]);
    command.arg(&file);
    place.run("reproduce", command).assert_one_sentence(2, &["cannot write", "taken"]);
}
