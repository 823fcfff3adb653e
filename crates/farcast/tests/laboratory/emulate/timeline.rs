//! `--timeline`: the page has the same numbers as the log of the same run, counted naively.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::run::{Emulate, need};
use crate::common::{Place, wait_until};

/// Line of a log.
#[derive(Clone, Debug)]
struct Line {
    number: u64,
    terminal: Option<u64>,
    entered: u64,
    /// Time at which the packet left or should have left, or at which it entered if it was never to leave.
    at: u64,
    left: Option<u64>,
    octets: u64,
    verdict: String,
    cause: String,
}

fn lines(log: &Path, way: &str) -> Vec<Line> {
    let text = fs::read_to_string(log).unwrap();
    let line = |text: &str| {
        let fields: Vec<&str> = text.split(',').collect();
        let [number, is, terminal, entered, planned, left, octets, verdict, cause] = fields[..] else {
            panic!("{text}");
        };
        let number_of = |text: &str| (!text.is_empty()).then(|| text.parse::<u64>().unwrap());
        (is == way).then(|| Line {
            number: number_of(number).unwrap(),
            terminal: number_of(terminal),
            entered: number_of(entered).unwrap(),
            at: number_of(planned).or(number_of(entered)).unwrap(),
            left: number_of(left),
            octets: number_of(octets).unwrap(),
            verdict: verdict.to_owned(),
            cause: cause.to_owned(),
        })
    };
    text.lines().skip(1).filter_map(line).collect()
}

/// Returns the JSON data of a page.
fn data(page: &Path) -> Value {
    let text = fs::read_to_string(page).unwrap();
    let (_, rest) = text.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn nanoseconds(seconds: &Value) -> u64 {
    (seconds.as_f64().unwrap() * 1e9).round() as u64
}

/// Returns packets and octets, in the form of a page.
fn sum<'a>(lines: impl Iterator<Item = &'a Line>) -> Value {
    let (packets, octets) = lines.fold((0, 0), |sum, line| (sum.0 + 1, sum.1 + line.octets));
    json!({"packets": packets, "octets": octets})
}

/// Returns the first line of each packet among the lines that `keep` accepts.
fn firsts(lines: &[Line], keep: impl Fn(&Line) -> bool) -> Vec<&Line> {
    let mut seen = BTreeSet::new();
    lines.iter().filter(|line| keep(line) && seen.insert(line.number)).collect()
}

/// Asserts that a direction of the page agrees with the lines.
fn assert_counted(way: &Value, lines: &[Line], width: u64) {
    let is = |verdict: &'static str| move |line: &&Line| line.verdict == verdict;
    let every = firsts(lines, |_| true);
    assert_eq!(way["entered"], sum(every.iter().copied()));
    for verdict in ["delivered", "lost", "dropped", "held"] {
        assert_eq!(way[verdict], sum(lines.iter().filter(is(verdict))), "{verdict}");
    }
    let carried = firsts(lines, |line| line.verdict == "delivered");
    let mut inside = 0;
    let bins = way["bins"].as_array().unwrap();
    let last = lines.iter().map(|line| line.at.max(line.entered) / width).max();
    assert_eq!(last.map_or(0, |last| last as usize + 1), bins.len());
    for (number, bin) in (0..).zip(bins) {
        let within = |at: u64| at / width == number;
        let entered: Vec<&Line> = every.iter().copied().filter(|line| within(line.entered)).collect();
        assert_eq!(bin["entered"], sum(entered.iter().copied()), "bin {number}");
        assert_eq!(
            bin["carried"],
            sum(carried.iter().copied().filter(|line| within(line.at))),
            "bin {number}"
        );
        let ended = every.iter().filter(|line| line.verdict != "held" && within(line.at));
        inside += entered.iter().map(|line| line.octets).sum::<u64>();
        inside -= ended.map(|line| line.octets).sum::<u64>();
        assert_eq!(bin["inside_octets"], json!(inside), "bin {number}");
        let here: Vec<&Line> = lines.iter().filter(is("delivered")).filter(|line| within(line.at)).collect();
        let late = here.iter().filter_map(|line| Some(line.left?.saturating_sub(line.at))).max();
        assert_eq!(nanoseconds(&bin["latest_s"]), late.unwrap_or(0), "bin {number}");
        assert_delays(&bin["delay"], here.iter().map(|line| line.at - line.entered).collect());
    }
    for cause in way["causes"].as_array().unwrap() {
        let verdict = if cause["dropped"] == true { "dropped" } else { "lost" };
        let mut counted: Vec<(u64, u64)> = Vec::new();
        for number in 0..bins.len() as u64 {
            let of = |line: &&Line| {
                line.verdict == verdict && cause["name"] == *line.cause && line.at / width == number
            };
            counted.push((number, lines.iter().filter(of).count() as u64));
        }
        counted.retain(|bin| bin.1 > 0);
        assert_eq!(cause["bins"], json!(counted), "{}", cause["name"]);
    }
}

/// Asserts the figures of sorted delays: the ends exactly, and quantiles within 1/32.
fn assert_delays(told: &Value, mut delays: Vec<u64>) {
    delays.sort_unstable();
    if delays.is_empty() {
        assert!(told.is_null(), "{told}");
        return;
    }
    let ends = [nanoseconds(&told["min_s"]), nanoseconds(&told["max_s"])];
    assert_eq!(ends, [delays[0], delays[delays.len() - 1]]);
    for (key, share) in [("p5_s", 5), ("p50_s", 50), ("p95_s", 95)] {
        let exact = delays[(share * delays.len()).div_ceil(100).max(1) - 1];
        let found = nanoseconds(&told[key]);
        assert!(found >= exact && found - exact <= exact / 32, "{key}: {found} for {exact}");
    }
}

/// A shared channel to three terminals, each of which loses a fifth.
const SCENARIO: &str = "[link.forward]\nrate = \"2 Mbit/s\"\ndelay = \"30 ms\"\nper = 0.2\nqueue = \"20 kB\"\n\
                        [link.return]\nrate = \"1 Mbit/s\"\ndelay = \"40 ms\"\nper = 0.1\n";

/// 60 datagrams of 1028 octets to all, at once.
const BURST: &str = "\
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
for _ in range(60):
    out.sendto(bytes(1000), ('239.1.1.1', 5000))
";

#[test]
fn the_page_counts_what_the_log_has() {
    need("python3", "python3");
    need("ping", "iputils-ping");
    let place = Place::new();
    let (log, page, again) = (place.path("run.csv"), place.path("run.html"), place.path("again.html"));
    let script = place.path("burst.py");
    fs::write(&script, BURST).unwrap();
    // ping fails where all its answers were lost, which is none of the page's business.
    let text = format!(
        "receivers = 3\n\
         [[programs]]\nname = \"burst\"\non = \"hub\"\ncommand = \"python3 {}\"\n\
         [[programs]]\nname = \"ping\"\non = \"terminals\"\n\
         command = \"ping -q -i 0.05 -c 20 $FARCAST_HUB || true\"\n{SCENARIO}",
        script.display()
    );
    let options = ["--log", log.to_str().unwrap(), "--timeline", page.to_str().unwrap()];
    let emulated = Emulate::toml(&place, "plots", &text).options(&options).start().succeed();

    let run = data(&page);
    let width = nanoseconds(&run["bin_s"]);
    for way in ["forward", "return"] {
        let lines = lines(&log, way);
        assert!(lines.iter().any(|line| line.verdict == "lost"), "nothing was lost {way}");
        assert_counted(&run[way], &lines, width);
        for (number, terminal) in (0..).zip(run["terminals"].as_array().unwrap()) {
            let index = usize::from(way == "return");
            for verdict in ["delivered", "lost", "dropped"] {
                let of = |line: &&Line| line.terminal == Some(number) && line.verdict == verdict;
                assert_eq!(terminal[verdict][index], sum(lines.iter().filter(of)), "{number} {verdict}");
            }
        }
        // The relay counts for itself.
        for key in ["entered", "delivered"] {
            assert_eq!(run[way][key], emulated.report[way][key], "{way} {key}");
        }
    }
    // 60 datagrams of 1028 octets are more than the queue of 20 kB holds.
    assert!(run["forward"]["dropped"]["packets"].as_u64() > Some(30), "{}", run["forward"]["dropped"]);
    assert_eq!(run["forward"]["rates_bps"], json!([[0.0, 2e6]]));
    let phases: Vec<&str> =
        run["events"].as_array().unwrap().iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!(phases.iter().filter(|kind| **kind == "start").count(), 4, "{phases:?}");

    let mut from =
        place.farcast(["emulate", "--from", log.to_str().unwrap(), "--timeline", again.to_str().unwrap()]);
    assert!(from.stderr(Stdio::null()).status().unwrap().success());
    let read = data(&again);
    for key in ["bin_s", "terminals"] {
        assert_eq!(read[key], run[key], "{key}");
    }
    for (way, key) in
        ["forward", "return"].into_iter().flat_map(|way| ["entered", "bins", "causes"].map(|key| (way, key)))
    {
        assert_eq!(read[way][key], run[way][key], "{way} {key}");
    }
}

#[test]
fn changes_and_programs_are_marked() {
    need("ping", "iputils-ping");
    let place = Place::new();
    let page = place.path("run.html");
    let emulate = Emulate::toml(&place, "marks", SCENARIO.replace("0.2", "0").as_str())
        .options(&["--timeline", page.to_str().unwrap()])
        .near("exec ping -q -n -i 0.1 -c 100 $FARCAST_PEER");
    let mut child = emulate.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    let ask = |request: &Value| {
        let asked = place.farcast(["emulate", "--control", &pid, &request.to_string()]).output().unwrap();
        (asked.status.success(), String::from_utf8(asked.stdout).unwrap())
    };
    let looked = || -> Value {
        let answer: Value = serde_json::from_str(&ask(&json!({"snapshot": {}})).1).unwrap_or_default();
        answer["ok"]["snapshot"].clone()
    };
    wait_until("packets pass", || looked()["return"]["delivered"]["packets"].as_u64() > Some(1));
    assert!(ask(&json!({"set": {"way": "forward", "rate": "1 Mbit/s", "outage": "300 ms"}})).0);
    assert!(!ask(&json!({"set": {"way": "forward", "stage": "nobody", "rate": "1 Mbit/s"}})).0);
    wait_until("something is lost and the outage over", || {
        let forward = looked()["forward"].clone();
        forward["lost"]["packets"].as_u64() > Some(0) && forward["outage_s"].is_null()
    });
    assert!(ask(&json!({"stop": {}})).0);
    wait_until("the emulation ends", || child.try_wait().unwrap().is_some());

    let run = data(&page);
    let events = run["events"].as_array().unwrap();
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    let [start, change, end] = ["start", "change", "end"].map(of).map(|events| {
        assert_eq!(events.len(), 1, "{run}");
        events[0].clone()
    });
    assert_eq!((&change["way"], &start["words"]), (&json!("forward"), &json!("near starts")));
    let words = change["words"].as_str().unwrap();
    assert!(words.contains("rate 1 Mbit/s") && words.contains("outage 300 ms"), "{words}");
    let at = change["at_s"].as_f64().unwrap();
    assert!(start["at_s"].as_f64() < Some(at) && Some(at) < end["at_s"].as_f64(), "{events:?}");
    assert_eq!(run["forward"]["rates_bps"], json!([[0.0, 2e6], [at, 1e6]]));
    assert_eq!(run["return"]["rates_bps"], json!([[0.0, 1e6]]));
    let outage = &run["forward"]["outages"][0];
    let length = outage["end_s"].as_f64().unwrap() - outage["begin_s"].as_f64().unwrap();
    assert!(outage["begin_s"] == change["at_s"] && (length - 0.3).abs() < 1e-9, "{outage}");
    assert_eq!(run["return"]["outages"], json!([]));
    // An outage drops packets only while it lasts.
    let causes = run["forward"]["causes"].as_array().unwrap();
    let bins =
        causes.iter().find(|cause| cause["name"] == "outage").unwrap()["bins"].as_array().unwrap().clone();
    let width = run["bin_s"].as_f64().unwrap();
    for bin in bins {
        let begin = bin[0].as_f64().unwrap() * width;
        assert!(begin + width > at && begin < at + 0.3, "{begin} s, outage from {at} s");
    }
}

#[test]
fn a_run_that_ends_at_once_and_files_that_are_no_logs_say_so() {
    let place = Place::new();
    let page = place.path("run.html");
    let timeline = ["--timeline", page.to_str().unwrap()];
    Emulate::toml(&place, "nothing", SCENARIO).options(&timeline).near("exit 0").start().succeed();
    assert!(fs::read_to_string(&page).unwrap().contains("No packet entered the link"));

    let text = place.path("notes.csv");
    fs::write(&text, "at,what\n").unwrap();
    for (from, expected) in [
        (text.to_str().unwrap(), "is no log of packets: its first line is not"),
        ("nowhere.parquet", "cannot read the log \"nowhere.parquet\""),
        ("log.json", "tells no format: name a log FILE.csv or FILE.parquet"),
        (page.to_str().unwrap(), "are one file"),
    ] {
        let refused = place.farcast(["emulate", "--from", from]).args(timeline).output().unwrap();
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(125) && told.contains(expected), "{told}");
    }
}
