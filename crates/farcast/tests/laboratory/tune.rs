//! `farcast tune`: the best settings, compared with the results of a full grid.

use std::fs;

use farcast_testkit::browser;
use serde_json::Value;

use crate::common::{Ended, Place};

/// Options for a small file to few receivers, with much loss.
const SMALL: [&str; 9] = [
    "mftp-bgan",
    "--set",
    "receivers=10",
    "--set",
    "protocol.file=60 kB",
    "--set",
    "link.forward.per=0.02",
    "--case",
    "protocol.srt.n=4",
];

fn tune(place: &Place, args: &[&str]) -> Ended {
    place.run("tune", place.farcast([&["tune"], args].concat()))
}

fn json(place: &Place, args: &[&str]) -> Value {
    let ended = tune(place, &[args, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Returns the means of a full grid, by the varied value.
fn grid(place: &Place, args: &[&str], vary: &str) -> Vec<(String, f64)> {
    let ended = place.run("sweep", place.farcast([&["sweep"], args, &["--vary", vary, "--json"]].concat()));
    let object: Value = serde_json::from_str(&ended.stdout).unwrap();
    let points = object["points"].as_array().unwrap().iter();
    let mean = |point: &Value| {
        let value =
            point["settings"].as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        (value, point["completion_time_s"]["mean"].as_f64().unwrap())
    };
    points.map(mean).collect()
}

#[test]
fn the_winner_is_that_of_a_full_grid() {
    let place = Place::new();
    let vary = "protocol.srt.n=1..8";
    let object = json(&place, &[&SMALL[..], &["--vary", vary, "-n", "400"]].concat());
    let case = &object["cases"][0];
    let full = grid(&place, &[&SMALL[..7], &["-n", "400"]].concat(), vary);
    let least = full.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let settings = case["settings"].as_array().unwrap();
    let named =
        |value: &str| settings.iter().find(|one| one["set"][0] == format!("protocol.srt.n={value}")).unwrap();
    // Where all replications were run, the mean is that of the grid. The winner is that of the grid, or tied with it.
    assert_eq!(settings[0]["fate"], "best");
    assert!(["best", "tied"].contains(&named(&least.0)["fate"].as_str().unwrap()), "{case}");
    for (value, mean) in &full {
        let one = named(value);
        if one["replications"] == 400 {
            assert_eq!(one["value"].as_f64().unwrap(), *mean, "n = {value}");
        }
        if one["fate"] == "worse" {
            assert!(*mean > least.1, "n = {value} was dropped: {full:?}");
        }
    }
    // It took less than the grid, and the scenario's own is among the settings and was run to the end.
    assert!(case["replications"].as_u64() < case["full_grid"].as_u64());
    let default = settings.iter().filter(|one| one["is_default"] == true).collect::<Vec<_>>();
    assert!(default.len() == 1 && default[0]["set"][0] == "protocol.srt.n=4", "{default:?}");
    assert!(default[0]["replications"].as_u64() >= settings[0]["replications"].as_u64());
    // The same again, on any number of threads.
    let threads = |n: &str| {
        let mut one = json(&place, &[&SMALL[..], &["--vary", vary, "-n", "60", "--threads", n]].concat());
        for name in ["cpu_s", "full_grid_cpu_s"] {
            one["cases"][0][name] = Value::Null;
        }
        one
    };
    assert_eq!(threads("1"), threads("3"));
}

#[test]
fn bounds_are_kept() {
    let place = Place::new();
    let vary = ["--vary", "protocol.dtu_size=100 B,526 B,1400 B", "-n", "100"];
    let free = json(&place, &[&SMALL[..7], &vary, &["--case", "protocol.srt.n=4"]].concat());
    let octets = |case: &Value| case["bounded"][0].as_f64();
    let bound = ["--subject-to", "octets_forward < 1.7 * file", "--case", "protocol.srt.n=4"];
    let bounded = json(&place, &[&SMALL[..7], &vary, &bound].concat());
    let best = &bounded["cases"][0]["best"];
    assert!(octets(best).unwrap() < 1.7 * 60e3, "{best}");
    for one in bounded["cases"][0]["settings"].as_array().unwrap() {
        assert_eq!(one["fate"] == "out_of_bounds", octets(one).unwrap() >= 1.7 * 60e3, "{one}");
    }
    assert_eq!(free["cases"][0]["none_within_bounds"], false);
    let ended = tune(&place, &[&SMALL[..], &vary, &["--subject-to", "forward.octets < 0.5 * file"]].concat());
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    assert!(ended.stdout.contains("No setting keeps forward.octets < 0.5 * file"), "{}", ended.story());
    assert!(!ended.stdout.contains("is the best"), "none is: {}", ended.story());
}

#[test]
fn a_setting_that_is_never_finished_is_told_in_words() {
    let place = Place::new();
    let ended = tune(
        &place,
        &[
            "mftp-bgan",
            "--case",
            "receivers=1000",
            "--vary",
            "protocol.srt.round_trip=1 s,150 s",
            "--set",
            "protocol.spread=120 s",
            "-n",
            "4",
            "--first",
            "2",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert!(ended.stdout.contains("not all of its replications were finished"), "{}", ended.story());
    // The result holds for any confidence, and for a figure whose best is 0.
    for more in [
        &["--confidence", "100 %"][..],
        &["--confidence", "0 %"],
        &["--minimise", "naks.late"],
        &["--minimise", "naks.late.p50"],
    ] {
        let ended = tune(
            &place,
            &[&SMALL[..], &["--vary", "protocol.srt.n=1,4", "-n", "4", "--first", "2"], more].concat(),
        );
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        assert!(!ended.stdout.contains("NaN") && !ended.stdout.contains("inf "), "{}", ended.story());
    }
}

#[test]
fn what_the_command_line_sets_is_not_a_cases() {
    let place = Place::new();
    let few = ["--vary", "protocol.srt.n=1,4", "-n", "2", "--first", "2"];
    let set = json(&place, &[&["mftp-bgan", "--set", "receivers=3"], &few[..]].concat());
    let case = json(&place, &[&["mftp-bgan", "--case", "receivers=3"], &few[..]].concat());
    assert_eq!(set["cases"].as_array().unwrap().len(), 1, "{set}");
    assert_eq!(set["cases"][0]["settings"], case["cases"][0]["settings"]);
    let said = tune(&place, &[&["mftp-bgan", "--set", "receivers=3"], &few[..]].concat());
    assert!(
        said.stderr.contains("the scenario's cases set receivers, as --set receivers=3 does"),
        "{}",
        said.story()
    );
    let wrong = [&["mftp-bgan", "--set", "receivers=3", "--case", "receivers=4"], &few[..]].concat();
    tune(&place, &wrong).assert_one_sentence(2, &["receivers is set by --case, and by --set receivers=3"]);
    let wrong = ["mftp-bgan", "--set", "receivers=3", "--vary", "receivers=2,3"];
    tune(&place, &wrong).assert_one_sentence(2, &["receivers is varied, and set as well"]);
    let sweep = place.run("sweep", place.farcast([&["sweep"], &wrong[..]].concat()));
    sweep.assert_one_sentence(2, &["receivers is varied, and set as well (receivers=3)"]);
}

#[test]
fn a_figure_has_one_name_and_answers_to_those_that_it_had() {
    let place = Place::new();
    let few = ["--vary", "protocol.srt.n=1,4", "-n", "2", "--first", "2"];
    for name in ["forward.octets", "octets_forward", "forward_octets"] {
        let object = json(&place, &[&SMALL[..], &few, &["--minimise", name]].concat());
        assert_eq!(object["minimise"], "forward.octets.mean", "{name}");
        let sweep = [&["sweep"], &SMALL[..7], &["--vary", "protocol.srt.n=1,4", "-n", "2", "--column", name]]
            .concat();
        let swept = place.run("sweep", place.farcast(sweep));
        assert_eq!(swept.code, Some(0), "{}", swept.story());
        assert!(swept.stdout.contains("forward.octets"), "{}", swept.story());
    }
}

#[test]
fn the_papers_cases_are_in_the_scenario() {
    let place = Place::new();
    let object = json(&place, &["mftp-bgan", "-n", "60"]);
    let cases: Vec<_> =
        object["cases"].as_array().unwrap().iter().map(|case| case["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["20 receivers, PER 0.001", "40 receivers, PER 0.005", "80 receivers, PER 0.005"]);
    for case in object["cases"].as_array().unwrap() {
        assert_eq!(case["settings"].as_array().unwrap().len(), 10);
    }
}

#[test]
fn a_range_that_nobody_knows() {
    let place = Place::new();
    let robust = ["--vary", "protocol.srt.n=1,4", "--robust", "link.forward.per=0.001..0.1", "-n", "40"];
    let object = json(&place, &[&SMALL[..], &robust].concat());
    let best = &object["cases"][0]["best"];
    let each: Vec<f64> =
        best["conditions"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(each.len(), 5);
    assert!(each.is_sorted(), "it takes longer with more loss: {each:?}");
    let mean = each.iter().sum::<f64>() / 5.0;
    assert!((best["value"].as_f64().unwrap() - mean).abs() < 1e-9 * mean);
}

#[test]
fn a_plan_is_what_send_takes() {
    let place = Place::new();
    let transfers = [
        ("mftp-bgan", "protocol.srt.n=1,4", "mftp"),
        ("sgls-mdp", "protocol.block_size=20,64", "mdp"),
        ("pgm-satellite", "protocol.backoff=20 ms,50 ms", "pgm"),
    ];
    for (scenario, vary, protocol) in transfers {
        let plan = place.path(protocol);
        let case = if scenario == "mftp-bgan" { "receivers=3" } else { "time_limit=20 s" };
        let minimise = ["--minimise", "forward.octets", "--case", case, "-n", "2", "--first", "2", "--quiet"];
        let ended = tune(
            &place,
            &[&[scenario, "--vary", vary, "--plan", plan.to_str().unwrap()], &minimise[..]].concat(),
        );
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        assert!(fs::read_to_string(&plan).unwrap().contains("[protocol]"));
        let file = place.file("product", 1000);
        let speaks = [
            "--plan",
            plan.to_str().unwrap(),
            "--predict",
            "geo",
            "--replications",
            "2",
            "--receivers",
            "a,b",
        ];
        let sent = place.run("send", place.send_command(&[&file], &speaks));
        assert_eq!(sent.code, Some(0), "{scenario}: {}", sent.story());
        // The protocol of the command line overrides that of the plan.
        let other = if protocol == "mftp" { "norm" } else { "mftp" };
        let contrary = [&["--protocol", other], &speaks[..]].concat();
        let sent = place.run("send", place.send_command(&[&file], &contrary));
        assert_eq!(sent.code, Some(2), "{scenario}: {}", sent.story());
    }
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let place = Place::new();
    let sentence = |args: &[&str], parts: &[&str]| tune(&place, args).assert_one_sentence(2, parts);
    sentence(&["tcp-geo"], &["nothing is varied", "--vary"]);
    sentence(
        &["mftp-bgan", "--minimise", "speed", "-n", "2", "--first", "2"],
        &["speed", "completion_time_s"],
    );
    sentence(&["mftp-bgan", "--subject-to", "octets_forward < 2 * size"], &["no number called size"]);
    sentence(&["mftp-bgan", "--subject-to", "fast"], &["bounds nothing"]);
    sentence(&["mftp-bgan", "--plan", "x.toml"], &["one case", "--case"]);
}

#[test]
fn a_page_has_whole_names_and_words() {
    let place = Place::new();
    let path = place.path("tune.html");
    let vary = ["--vary", "protocol.srt.n=1,2", "--vary", "protocol.nak_timing=each_block,end_of_first_pass"];
    let report = ["-n", "10", "--report", path.to_str().unwrap()];
    let ended = tune(&place, &[&SMALL[..], &vary, &report].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let opened = browser::open(&path, "");
    assert!(opened.console.is_empty(), "{:?}", opened.console);
    for whole in ["protocol.nak_timing=each_block", "protocol.nak_timing=end_of_first_pass"] {
        let drawn = [format!(">{whole}</tspan>"), format!(">{whole}</text>")];
        assert!(drawn.iter().any(|drawn| opened.document.contains(drawn)), "{whole} is cut");
    }
    assert!(opened.document.contains(">mean completion time (s)</text>"), "the axis has no words");
    let headings = opened.texts("table-0", "th");
    assert!(headings.iter().any(|heading| heading.contains("mean completion time (s)")), "{headings:?}");
    assert!(!headings.iter().any(|heading| heading.contains("completion_time_s")), "{headings:?}");
}
