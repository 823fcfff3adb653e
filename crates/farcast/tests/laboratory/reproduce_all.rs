//! All studies in one run, written as files. Some of them run in real time, so no other test runs beside them.

use std::fs;
use std::path::Path;

use farcast_testkit::browser;
use serde_json::Value;

use crate::common::{self, Place};

const KEYS: &str = "paper,item,row,column,published,farcast,ci95_half_width,verdict,rule";
const CASES: [&str; 3] = ["20 receivers, PER 0.001", "40 receivers, PER 0.005", "80 receivers, PER 0.005"];

#[test]
fn results_are_written_as_files() {
    common::need_root("hosts in network namespaces");
    let place = Place::new();
    let dir = place.path("deep/results");
    let mut command = place.farcast(["reproduce", "--quick", "--out"]);
    command.arg(&dir);
    let ended = place.run("reproduce", command);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let plots = ["2a", "2b", "3a", "3b", "3c", "3d", "4a", "4b", "4c", "4d", "5"];
    let plots = plots.map(|figure| format!("pgm-satellite-figure-{figure}.svg"));
    assert!(names.iter().zip(&plots).all(|(name, plot)| name.to_str() == Some(plot)), "{names:?}");
    let tables = ["report.html", "reproduce.csv", "reproduce.json", "reproduce.md"];
    assert_eq!(names[plots.len()..], tables, "and nothing half-written");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&read("reproduce.json")).unwrap();
    let of =
        |paper: &str| -> Vec<Value> { rows.iter().filter(|row| row["paper"] == paper).cloned().collect() };
    for paper in ["mftp-bgan", "mdp-ftp", "ftp-umts", "tcp-mlppp"] {
        let ended = place.run("alone", place.farcast(["reproduce", paper, "--quick", "--json"]));
        let alone: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        assert!(of(paper) == alone, "{paper} is the same among all papers and alone");
    }
    check_page(&dir.join("report.html"), &rows);
    check_reference(&of("tcp-reference"));
    check_agreement(&of("agreement"));
    check_programs(&of("ftp-emulated"));
    let csv = read("reproduce.csv");
    let lines: Vec<_> = csv.split_terminator("\r\n").collect();
    assert_eq!((lines[0], lines.len()), (KEYS, 1 + rows.len()));
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

/// Checks the page as a browser shows it: the verdicts of every study first, then each study's numbers, all as in
/// `rows`.
fn check_page(path: &Path, rows: &[Value]) {
    let opened = browser::open(path, "");
    assert!(opened.console.is_empty(), "{:?}", opened.console);
    let mut papers: Vec<&str> = rows.iter().map(|row| row["paper"].as_str().unwrap()).collect();
    papers.dedup();
    let verdicts: Vec<String> = papers
        .iter()
        .flat_map(|paper| {
            let count = |verdict: &str| {
                rows.iter()
                    .filter(|row| row["paper"] == *paper && row["verdict"] == verdict)
                    .count()
                    .to_string()
            };
            let counts = ["agrees", "differs", "undetermined", "not_published"].map(count);
            std::iter::once((*paper).to_owned()).chain(counts)
        })
        .collect();
    assert_eq!(opened.texts("table-0", "td"), verdicts);
    for (number, paper) in papers.iter().enumerate() {
        let cells = opened.texts(&format!("table-{}", number + 1), "td");
        let own: Vec<&Value> = rows.iter().filter(|row| row["paper"] == *paper).collect();
        assert_eq!(cells.len(), 7 * own.len().min(1000), "{paper}");
        for (cells, row) in cells.chunks(7).zip(own) {
            assert_eq!((&row["row"], &row["item"]), (&cells[0].as_str().into(), &cells[1].as_str().into()));
            let shown: f64 = cells[4].parse().unwrap();
            let ours = row["farcast"].as_f64().unwrap();
            assert!((shown - ours).abs() <= 0.5, "{paper}: {shown} for {ours}");
            let verdict = row["verdict"].as_str().unwrap().replace('_', " ");
            assert_eq!(cells[6], verdict, "{paper}");
        }
    }
    assert!(opened.document.matches("class=\"marks\"").count() >= 5, "figures are missing");
}

/// Checks the goodput of other TCPs. All cells of the kernel agree. All cells of ns-2 agree except those whose slow
/// start overruns the queue over the longest delays.
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
    // Cells without random draws and without recovery agree to a tenth of a per cent.
    for row in ns2.iter().filter(|row| row["column"] == "window 20, PER 0") {
        let (theirs, ours) = (row["published"].as_f64().unwrap(), row["farcast"].as_f64().unwrap());
        assert!((ours / theirs - 1.0).abs() < 1e-3, "{row}");
    }
}

/// Checks simulation and real time against arithmetic, and against each other where nothing is drawn.
fn check_agreement(rows: &[Value]) {
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let of = |item: &str, case: &str| -> Vec<&Value> {
        let is = |row: &&Value| row["item"] == item && row["row"].as_str().unwrap().starts_with(case);
        rows.iter().filter(is).collect()
    };
    // Four cases of MFTP with three numbers, six of TCP with three.
    assert_eq!(rows.len(), 30);
    // Nothing is drawn, and one engine is on both sides.
    let alike = |row: &&Value| {
        row["row"].as_str().unwrap().contains("no loss") && row["column"] != "the kernel's TCP"
    };
    let differ: Vec<_> = rows.iter().filter(alike).filter(|row| row["verdict"] != "agrees").collect();
    assert!(differ.is_empty(), "{differ:#?}");
    for (case, delay) in [("2 Mbit/s, 100 ms, no loss", 0.1), ("2 Mbit/s, 260 ms, no loss", 0.26)] {
        for flavour in ["Reno", "CUBIC"] {
            let case = format!("TCP {flavour}: {case}");
            // 450,000 octets once and 500,000 once, in 311 and 346 segments of at most 1448 octets with 52 of headers;
            // SYN, its answer and the data cross the link once each.
            let segments = f64::midpoint(311.0, 346.0);
            let least = 3.0 * delay + (475_000.0 + segments * 52.0) * 8.0 / 2e6;
            let times = of("completion time, s", &case);
            assert_eq!(times.len(), 2);
            for row in times {
                let (simulated, real) = (number(row, "published"), number(row, "farcast"));
                assert!(simulated > least && real > least, "{least} s at least: {row}");
                // What is dropped at the end costs a round trip, at most twice the delays with a full queue.
                assert!((simulated - real).abs() < 4.0 * delay, "{row}");
            }
            for row in of("data segments sent", &case) {
                assert!(number(row, "published") >= segments && number(row, "farcast") >= segments, "{row}");
            }
        }
    }
    // One pass of packets of 1500 octets at 1.9 Mbit/s, and the way: the file and the manifest before it are 559 DTUs
    // of 1432 octets.
    let case = "MFTP to 3 receivers: 2 Mbit/s, 260 ms, no loss";
    let pass = 559.0 * 1500.0 * 8.0 / 1.9e6 + 0.26;
    let time = number(of("completion time, s", case)[0], "published");
    assert!((time - pass).abs() < 0.01, "{time} s, not {pass} s");
    for key in ["published", "farcast"] {
        assert!((number(of("passes", case)[0], key) - 1.0).abs() < 1e-12);
        assert!((number(of("data segments sent", case)[0], key) - 559.0).abs() < 1e-9);
    }
}

/// Checks the times of real programs against arithmetic, and against the simulation where nothing is drawn but escapes.
fn check_programs(rows: &[Value]) {
    let of = |item: &str| -> Vec<&Value> {
        rows.iter().filter(|row| row["item"].as_str().unwrap().starts_with(item)).collect()
    };
    assert_eq!((of("from RETR").len(), of("likewise").len(), rows.len()), (6, 6, 12));
    for row in of("from RETR") {
        // 71 segments of at most 1448 octets with 52 of headers, at 384 kbit/s, or at 8N1 over the serial line; and
        // RETR's way there with the data's back.
        let octets = 102_400.0 + 71.0 * 52.0;
        let serial = row["row"].as_str().unwrap().starts_with("serial");
        let least = if serial { octets / 11_520.0 + 0.2 } else { octets * 8.0 / 384_000.0 + 0.115 };
        let [simulated, real] = ["published", "farcast"].map(|key| row[key].as_f64().unwrap());
        assert!(simulated > least && real > least, "{least} s at least: {row}");
        if row["column"].as_str().unwrap().starts_with("BER 0") {
            // Frames have 8 octets more, and some octets are escaped.
            assert!(real < least + 0.2 && row["verdict"] == "agrees", "{row}");
        }
    }
}
