//! `farcast sweep`: its results are those of `simulate`, and finished points are neither lost nor run again.

use std::fs;
use std::path::Path;
use std::time::Duration;

use farcast_lab::table::{Column, Table};
use farcast_testkit::browser;
use serde_json::Value;

use crate::common::{Ended, Place, pause};

/// Options for a small file to few receivers.
const SMALL: [&str; 5] = ["mftp-bgan", "--set", "receivers=10", "--set", "protocol.file=60 kB"];

fn sweep(place: &Place, args: &[&str]) -> Ended {
    place.run("sweep", place.farcast([&["sweep"], &SMALL[..], args].concat()))
}

fn done(place: &Place, args: &[&str]) -> Ended {
    let ended = sweep(place, args);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    ended
}

fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match table.column(name) {
        Some(Column::Numbers(values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_point_is_what_simulate_makes_of_its_settings() {
    let place = Place::new();
    let out = place.path("out");
    done(
        &place,
        &[
            "--vary",
            "link.forward.per=0.5 %,0.02",
            "--vary",
            "protocol.srt.n=2..3",
            "-n",
            "7",
            "--seed",
            "3",
            "--out",
            out.to_str().unwrap(),
        ],
    );
    let table = Table::read(&out).unwrap();
    assert_eq!(table.len(), 4 * 7);
    let (times, octets) = (numbers(&table, "completion_time_s"), numbers(&table, "forward.octets"));
    for (point, (per, n)) in [(0.005, 2), (0.005, 3), (0.02, 2), (0.02, 3)].into_iter().enumerate() {
        let (per_set, n_set) = (format!("link.forward.per={per}"), format!("protocol.srt.n={n}"));
        let more = ["--set", &per_set, "--set", &n_set, "-n", "7", "--seed", "3", "--json"];
        let ended = place.run("simulate", place.farcast([&["simulate"], &SMALL[..], &more].concat()));
        let object: Value = serde_json::from_str(&ended.stdout).unwrap();
        for (index, one) in object["replications"].as_array().unwrap().iter().enumerate() {
            let row = point * 7 + index;
            assert_eq!(times[row], one["completion_time_s"].as_f64().unwrap(), "point {point}, {index}");
            assert_eq!(octets[row], one["forward"]["octets"].as_f64().unwrap(), "point {point}, {index}");
            assert_eq!(numbers(&table, "link.forward.per")[row], per);
            assert_eq!(numbers(&table, "protocol.srt.n")[row], f64::from(n));
            assert_eq!(numbers(&table, "replication")[row], index as f64);
        }
    }
}

#[test]
fn killed_again_and_again_it_comes_to_the_same() {
    let place = Place::new();
    let vary =
        ["--vary", "link.forward.per=0.001..0.02/40", "--vary", "protocol.srt.n=1..4", "-n", "40", "--quiet"];
    let run = |out: &Path| {
        [&vary[..], &["--out", out.to_str().unwrap()]]
            .concat()
            .iter()
            .map(|&a| a.to_owned())
            .collect::<Vec<_>>()
    };
    let whole = place.path("whole");
    done(&place, &run(&whole).iter().map(String::as_str).collect::<Vec<_>>());
    let out = place.path("out");
    let journal = out.join("journal");
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let all = size(&whole.join("journal"));
    for kill in 1..=3 {
        let args = run(&out);
        let words = ["sweep"].into_iter().chain(SMALL).chain(args.iter().map(String::as_str));
        let mut running = place.start("sweep", place.farcast(words));
        while size(&journal) < all * kill / 4 && running.is_running() {
            pause(Duration::from_millis(1));
        }
        assert!(running.is_running(), "it was done before it was killed for the {kill}th time");
        running.kill9();
        assert!(!out.join("sweep.parquet").exists(), "no result before its time");
    }
    let kept = size(&journal);
    assert!(kept < all, "nothing was left to do");
    done(&place, &run(&out).iter().map(String::as_str).collect::<Vec<_>>());
    for name in ["sweep.parquet", "summary.csv"] {
        assert!(fs::read(out.join(name)).unwrap() == fs::read(whole.join(name)).unwrap(), "{name} differs");
    }
    // Finished points were not run again: the journal has each point once.
    assert_eq!(size(&journal), all);
}

#[test]
fn only_new_points_are_run() {
    let place = Place::new();
    let out = place.path("out");
    let out = out.to_str().unwrap();
    let told = |args: &[&str]| {
        let ended = done(&place, &[args, &["-n", "5", "--out", out]].concat());
        ended.stdout.lines().find(|line| line.contains(" points")).unwrap().to_owned()
    };
    assert!(told(&["--vary", "protocol.srt.n=1..3"]).starts_with("3 points, 15 replications"));
    assert!(told(&["--vary", "protocol.srt.n=1..5"]).starts_with("5 points (3 of them had been run before)"));
    assert!(told(&["--vary", "protocol.srt.n=2,4"]).starts_with("2 points (2 of them had been run before)"));
    // Any other input of the figures makes other points.
    assert!(told(&["--vary", "protocol.srt.n=2,4", "--seed", "2"]).starts_with("2 points, "));
    assert!(
        told(&["--vary", "protocol.srt.n=2,4", "--set", "protocol.spread=2 s"]).starts_with("2 points, ")
    );
}

#[test]
fn threads_and_order_change_nothing() {
    let place = Place::new();
    let read = |name: &str, threads: &str| {
        let out = place.path(name);
        let args = ["--vary", "link.forward.per=0.001,0.05", "--precision", "1 %", "--most", "200", "--out"];
        done(&place, &[&args[..], &[out.to_str().unwrap(), "--threads", threads]].concat());
        fs::read(out.join("sweep.parquet")).unwrap()
    };
    let one = read("one", "1");
    assert!(one == read("two", "2") && one == read("seven", "7"));
    let table = Table::read(&place.path("one")).unwrap();
    let rows = |point: f64| numbers(&table, "point").iter().filter(|&&one| one == point).count();
    assert!(
        rows(0.0) >= 10 && rows(0.0) != rows(1.0),
        "as many as the precision takes: {} {}",
        rows(0.0),
        rows(1.0)
    );
}

#[test]
fn figures_are_where_they_are_and_null_where_not() {
    let place = Place::new();
    let out = place.path("out");
    let ended = sweep(&place, &["--vary", "time_limit=1 s,1 h", "-n", "3", "--out", out.to_str().unwrap()]);
    assert_eq!(ended.code, Some(3), "a point that is not finished: {}", ended.story());
    let table = Table::read(&out).unwrap();
    let times = numbers(&table, "completion_time_s");
    assert!(
        times[..3].iter().all(|time| time.is_nan()) && times[3..].iter().all(|time| *time > 1.0),
        "{times:?}"
    );
    assert_eq!(numbers(&table, "time_limit"), [1.0, 1.0, 1.0, 3600.0, 3600.0, 3600.0], "in seconds");
    let summary = fs::read_to_string(out.join("summary.csv")).unwrap();
    let line = summary.lines().find(|line| line.starts_with("0,1 s,completion_time_s,")).unwrap();
    assert_eq!(line, "0,1 s,completion_time_s,3,0,,,,,,", "no mean of what never came");
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let place = Place::new();
    let sentence = |args: &[&str], parts: &[&str]| sweep(&place, args).assert_one_sentence(2, parts);
    sentence(&["--vary", "protocol.srt.m=1..3"], &["--vary protocol.srt.m=1: protocol.srt.m"]);
    // A value in the middle of an axis is found before anything is run.
    sentence(&["--vary", "link.forward.per=0.1,2"], &["link.forward.per", "2"]);
    sentence(
        &["--vary", "protocol.srt.n=1..2", "--vary", "protocol.srt.n=3"],
        &["protocol.srt.n is varied twice"],
    );
    sentence(
        &["--vary", "protocol.srt.n=1..2", "-n", "2", "--column", "speed"],
        &["speed", "completion_time_s"],
    );
    let out = place.path("mine");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("journal"), "of my own").unwrap();
    let args = ["--vary", "protocol.srt.n=1..2", "--out", out.to_str().unwrap()];
    sentence(&args, &["journal", "name another directory"]);
    assert_eq!(fs::read_to_string(out.join("journal")).unwrap(), "of my own");
}

#[test]
fn a_page_of_three_axes_draws_two_at_a_time() {
    let place = Place::new();
    let out = place.path("out");
    let vary = [
        "--vary",
        "link.forward.per=0.001,0.01",
        "--vary",
        "protocol.srt.n=1..4",
        "--vary",
        "protocol.spread=1 s..9 s/9",
    ];
    done(&place, &[&vary[..], &["-n", "2", "--out", out.to_str().unwrap()]].concat());
    let opened = browser::open(&out.join("report.html"), "");
    assert!(opened.console.is_empty(), "{:?}", opened.console);
    let parts = [
        "<h3>Over protocol.spread, by link.forward.per</h3>",
        "mean and 95 % interval of it; for protocol.srt.n = 3; the table has all combinations",
        "<h3>Over protocol.spread, by protocol.srt.n</h3>",
        "mean and 95 % interval of it; for link.forward.per = 0.01; the table has all combinations",
    ];
    for part in parts {
        assert!(opened.document.contains(part), "no {part}");
    }
    // Each of the other axes' values is in a legend, and every point in the table.
    for n in 1..=4 {
        assert!(opened.document.contains(&format!(">protocol.srt.n = {n}</text>")), "no curve for {n}");
    }
    assert_eq!(opened.texts("table-0", "td").len(), 2 * 4 * 9 * (3 + 7));
}

/// An error in a varied key is reported in the user's own words.
#[test]
fn a_key_that_is_not_there_is_told_as_it_was_given() {
    let place = Place::new();
    sweep(&place, &["--vary", "nosuch=1,2", "-n", "2"]).assert_one_sentence(2, &["--vary nosuch=1: nosuch"]);
    let tune = ["tune", "mftp-bgan", "--vary", "nosuch=1,2"];
    place.run("tune", place.farcast(tune)).assert_one_sentence(2, &["--vary nosuch=1: nosuch"]);
    let tune = ["tune", "mftp-bgan", "--robust", "nosuch=1,2"];
    place.run("tune", place.farcast(tune)).assert_one_sentence(2, &["--robust nosuch=1: nosuch"]);
    let set = ["--set", "nosuch=1", "--vary", "protocol.srt.n=2,3", "-n", "2"];
    sweep(&place, &set).assert_one_sentence(2, &["--set nosuch=1: nosuch"]);
}

/// Two names of one figure give one figure, and a count of one is in the singular.
#[test]
fn a_figure_is_shown_once_and_one_replication_is_one() {
    let place = Place::new();
    let twice = ["--column", "forward_octets", "--column", "octets_forward"];
    let vary = ["--vary", "protocol.srt.n=2", "-n", "1"];
    let ended = done(&place, &[&vary[..], &twice].concat());
    assert_eq!(ended.stdout.matches("forward.octets").count(), 1, "{}", ended.story());
    assert!(ended.stdout.contains("1 point, 1 replication, seed"), "{}", ended.story());
    let out = place.path("out");
    done(&place, &["--vary", "protocol.srt.n=2", "-n", "3", "--out", out.to_str().unwrap()]);
    let both = [out.to_str().unwrap(); 2];
    let compare = |args: &[&str]| place.run("compare", place.farcast([&["compare"], args].concat()));
    let ended = compare(&[&both[..], &twice, &["--json"]].concat());
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1, "{}", ended.story());
    let empty = place.path("empty.csv");
    fs::write(&empty, "a,b\r\n").unwrap();
    compare(&[both[0], empty.to_str().unwrap()]).assert_one_sentence(2, &["empty.csv has no row"]);
}
