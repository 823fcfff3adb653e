//! Pages are read back: as XML by another reader, and their drawings by the places of their parts.

mod any;

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::axis::{Axis, Quantity};
use super::chart::FORMATS;
use super::*;
use crate::tests::markup::{Element, elements};

fn count(packets: u64, octets: u64) -> Count {
    Count { packets, octets }
}

/// Returns a bin with these octets, in packets of 1000 octets; those that were delivered took 250 to 400 ms.
fn bin(entered: u64, carried: u64, inside_octets: u64) -> TimeBin {
    let delay = Delay { min_s: 0.25, p5_s: 0.26, p50_s: 0.3, p95_s: 0.38, max_s: 0.4 };
    TimeBin {
        entered: count(entered / 1000, entered),
        carried: count(carried / 1000, carried),
        inside_octets,
        delay: (carried > 0).then_some(delay),
        latest_s: 0.001,
    }
}

/// Returns a run of ten seconds. Traffic of 1 and 2 Mbit/s enters, at a rate of 2 Mbit/s that is halved at 5 s. There
/// is an outage of a second.
fn small() -> Run {
    let octets = [125_000, 250_000, 250_000, 0, 250_000, 125_000, 125_000, 125_000];
    let bins: Vec<TimeBin> = octets.iter().map(|&octets| bin(octets, octets, octets / 4)).collect();
    let causes = vec![
        LossCause { dropped: false, name: "losses".into(), bins: vec![(0, 1), (2, 4)] },
        LossCause { dropped: true, name: "forward: queue full".into(), bins: vec![(4, 2)] },
    ];
    let forward = DirectionTraffic {
        entered: count(1257, 1_257_000),
        delivered: count(1250, 1_250_000),
        lost: count(5, 5000),
        dropped: count(2, 2000),
        held: count(0, 0),
        rates_bps: vec![(0.0, Some(2e6)), (5.0, Some(1e6))],
        outages: vec![TimeSpan { begin_s: 3.0, end_s: 4.0 }],
        bins,
        causes,
    };
    let event = |at_s, kind, way, words: &str| Event { at_s, kind, way, words: words.into() };
    Run {
        title: "geo".into(),
        facts: vec![("seed".into(), "7".into()), ("farcast".into(), "0.1.0".into())],
        command: "farcast emulate geo -- curl http://10.0.0.1/".into(),
        duration_s: 10.0,
        bin_s: 1.0,
        forward,
        events: vec![
            event(0.5, EventKind::Start, None, "near starts"),
            event(3.0, EventKind::Change, Some(Direction::Forward), "outage 1 s"),
            event(5.0, EventKind::Change, Some(Direction::Forward), "rate 1 Mbit/s"),
            event(9.0, EventKind::End, None, "near ends, code 0"),
        ],
        terminals: vec![TerminalPackets::default()],
        lateness: Lateness {
            packets: 1250,
            p50_s: 0.0001,
            p99_s: 0.0005,
            p999_s: 0.001,
            max_s: 0.001,
            limit_s: Some(0.0052),
            valid: Some(true),
            remark: String::new(),
        },
        ..Run::default()
    }
}

/// Returns the document without its first line, which is no element.
fn document(page: &str) -> &str {
    page.strip_prefix("<!DOCTYPE html>\n").expect("a document type")
}

/// Returns the drawing of a direction in the first format.
fn drawing<'a>(page: &'a str, heading: &str) -> &'a str {
    let at = page.find(&format!("<h2 id=\"{heading}\">")).expect("the section");
    let begin = at + page[at..].find("<svg").expect("a drawing");
    &page[begin..begin + page[begin..].find("</div>").expect("its end")]
}

fn of_class<'a>(elements: &'a [Element], class: &str) -> Vec<&'a Element> {
    elements.iter().filter(|element| element.attribute("class") == Some(class)).collect()
}

/// Returns the corners of a path that goes along and up or down.
fn corners(path: &str) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut corners = Vec::new();
    let path = path.replace('Z', "");
    let mut rest = path.as_str();
    while let Some(letter) = rest.chars().next() {
        let end = rest[1..].find(char::is_alphabetic).map_or(rest.len(), |end| end + 1);
        let numbers: Vec<f64> = rest[1..end].split(' ').map(|number| number.parse().unwrap()).collect();
        match (letter, &numbers[..]) {
            ('M', [to_x, to_y]) => (x, y) = (*to_x, *to_y),
            ('H', [to]) => x = *to,
            ('V', [to]) => y = *to,
            other => panic!("{other:?} in {path}"),
        }
        corners.push((x, y));
        rest = &rest[end..];
    }
    corners
}

/// Returns the height of a line at `x`.
fn height_at(corners: &[(f64, f64)], x: f64) -> f64 {
    corners.iter().rev().find(|corner| corner.0 <= x).expect("the line begins before").1
}

#[test]
fn curves_are_as_high_as_their_values() {
    let page = page(&small());
    let all = elements(drawing(&page, "forward"));
    let of = |class| corners(of_class(&all, class)[0].attribute("d").unwrap());
    let (delivered, entered, rate) = (of("delivered"), of("entered"), of("set-rate"));
    let x = |second: f64| FORMATS[0].left + (FORMATS[0].right - FORMATS[0].left) * second / 10.0;
    // The rate, 2 Mbit/s, is the head of the axis, and nothing its foot.
    let (head, foot) = (height_at(&rate, x(1.0)), height_at(&delivered, x(3.5)));
    for (second, mbit) in [(0.5, 1.0), (1.5, 2.0), (2.5, 2.0), (3.5, 0.0), (4.5, 2.0), (7.5, 1.0), (8.5, 0.0)]
    {
        let expected = foot + (head - foot) * mbit / 2.0;
        for line in [&delivered, &entered] {
            assert!((height_at(line, x(second)) - expected).abs() <= 0.11, "{second} s: {line:?}");
        }
    }
    assert!((height_at(&rate, x(5.1)) - f64::midpoint(head, foot)).abs() <= 0.11, "{rate:?}");
    // Delay: the axis ends at 400 ms, the longest; bins 0 to 2 and 4 to 7 have some.
    let (median, range) = (of("median"), of("range"));
    let floor = range.iter().map(|corner| corner.1).fold(0.0, f64::max);
    let ceiling = range.iter().map(|corner| corner.1).fold(f64::INFINITY, f64::min);
    // The band from 250 to 400 ms covers 150 of 400.
    let foot = ceiling + (floor - ceiling) * 400.0 / 150.0;
    let expected = foot + (ceiling - foot) * 300.0 / 400.0;
    assert!(median.iter().all(|corner| (corner.1 - expected).abs() <= 0.5), "{median:?}");
    let breaks: Vec<f64> = of_class(&all, "median")[0]
        .attribute("d")
        .unwrap()
        .split('M')
        .skip(1)
        .map(|part| part.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(breaks.len() == 2 && (breaks[1] - x(4.0)).abs() < 0.11, "{breaks:?}");
}

#[test]
fn losses_and_outages_and_changes_are_where_they_were() {
    let page = page(&small());
    let all = elements(drawing(&page, "forward"));
    let x = |second: f64| FORMATS[0].left + (FORMATS[0].right - FORMATS[0].left) * second / 10.0;
    for (class, begins) in [("loss-bar", &[0.0, 2.0][..]), ("drop-bar", &[4.0])] {
        let bars = of_class(&all, class);
        assert_eq!(bars.len(), begins.len(), "{class}");
        for (bar, begin) in bars.iter().zip(begins) {
            assert!(
                (bar.number("x") - x(*begin)).abs() <= 0.06
                    && (bar.number("width") - x(1.0) + x(0.0)).abs() < 0.11
            );
        }
    }
    // A count of one has a quarter of the height of four.
    let heights: Vec<f64> = of_class(&all, "loss-bar").iter().map(|bar| bar.number("height")).collect();
    assert!((heights[0] * 4.0 - heights[1]).abs() < 0.5, "{heights:?}");
    let outages = of_class(&all, "outage");
    assert!(outages.len() == 1 && (outages[0].number("x") - x(3.0)).abs() < 0.06);
    for (class, times) in [("start", &[0.5][..]), ("change", &[3.0, 5.0]), ("end", &[9.0])] {
        let marks: Vec<f64> = of_class(&all, class).iter().map(|mark| mark.begin().0).collect();
        assert_eq!(marks.len(), times.len(), "{class}");
        assert!(
            marks.iter().zip(times).all(|(mark, time)| (mark - x(*time)).abs() < 0.06),
            "{class}: {marks:?}"
        );
    }
    // A change of one direction is not shown on the other, on which nothing passed.
    assert!(page.contains("No packet entered on this way."));
    for written in
        ["lost: losses", "dropped: forward: queue full", "5 packets, up to 4 in a bin", "near ends, code 0"]
    {
        assert!(page.contains(written), "{written}");
    }
}

#[test]
fn the_data_is_in_the_page() {
    let mut run = small();
    run.title = "</script><b>&".into();
    let page = page(&run);
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    let read: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(read["title"], "</script><b>&");
    assert_eq!(read["forward"]["bins"][1]["entered"]["octets"], 250_000);
    assert_eq!(read["forward"]["causes"][1]["bins"][0], serde_json::json!([4, 2]));
    assert_eq!(read["forward"]["bins"][3]["delay"], serde_json::Value::Null);
    assert_eq!(read["return"]["entered"]["packets"], 0);
    assert!(!page.contains("<b>"));
}

#[test]
fn a_run_without_packets_says_so() {
    for run in [Run::default(), Run { forward: DirectionTraffic::default(), ..small() }] {
        let page = page(&run);
        assert!(page.contains("No packet entered the link, so there is nothing to draw."));
        assert!(!page.contains("<figure>") && !elements(document(&page)).is_empty());
    }
}

#[test]
fn an_invalid_run_says_so() {
    let valid = page(&small());
    assert!(valid.contains("<strong>VALID:</strong>") && !valid.contains("INVALID"));
    let mut run = small();
    run.lateness = Lateness { valid: Some(false), p99_s: 0.0061, ..run.lateness };
    let invalid = page(&run);
    assert!(
        invalid.contains("<strong>INVALID:</strong>") && invalid.contains("6.1 ms (99 %) (limit 5.2 ms)")
    );
    run.lateness = Lateness { valid: None, limit_s: None, ..run.lateness };
    let unknown = page(&run);
    assert!(!unknown.contains("VALID") && unknown.contains("6.1 ms (99 %), "));
}

#[test]
fn many_terminals_are_summed_up() {
    let terminal = |n: u32| TerminalPackets {
        terminal: n,
        delivered: [count(n.into(), 0), count(0, 0)],
        ..TerminalPackets::default()
    };
    let run = Run { terminals: (0..120).map(terminal).collect(), ..small() };
    let page = page(&run);
    let all = elements(document(&page));
    let rows: Vec<&str> = all
        .iter()
        .filter(|e| e.name == "th" && e.attribute("scope") == Some("row"))
        .map(|e| &*e.text)
        .collect();
    for (name, shown) in [("0", true), ("19", true), ("20", false), ("100 more, median", true)] {
        assert_eq!(rows.contains(&name), shown, "{name}");
    }
    // Of 20 to 119 the ranks 5, 50 and 95 are 24, 69 and 114.
    for (name, value) in [("5 %", 24), ("median", 69), ("95 %", 114)] {
        assert!(page.contains(&format!("100 more, {name}</th><td>{value}</td>")), "{name}");
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let page = page(&Run { command: String::new(), ..small() });
    let names = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(page.matches("http").count(), names, "the name of SVG's namespace");
    for outside in ["src=", "href", "@import", "<link", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<script").count(), 1, "the data");
    assert_eq!(page.matches("url(").count(), page.matches("url(#hatch-").count());
}

#[test]
fn colours_are_there_in_light_and_in_dark_and_every_class_has_a_style() {
    let style = include_str!("page.css");
    let (light, dark) = style.split_once("@media (prefers-color-scheme: dark)").unwrap();
    for name in style.split("var(--").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        let defined = format!("--{name}: #");
        assert!(light.contains(&defined) && dark.contains(&defined), "{name}");
    }
    let page = page(&small());
    for class in page.split("class=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' ')) {
        assert!(style.contains(&format!(".{class}")), "{class}");
    }
}

#[test]
fn python_reads_the_page_as_xml() {
    let mut run = small();
    run.title = "<b>&\"quoted\"'\u{1}\u{7f}\u{FFFF}</b> é 漢".into();
    run.events[0].words = "</svg><script>alert(1)</script>".into();
    run.forward.causes[0].name = "a & b]]>".into();
    run.notes.push("x < y".into());
    let page = page(&run);
    let program = "import sys, xml.etree.ElementTree as e; print(len(list(e.fromstring(sys.stdin.buffer.read()).iter())))";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("python3: {error}; this test needs the Debian package python3"));
    let mut input = python.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, page.as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let read: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert_eq!(read, elements(document(&page)).len());
}

#[test]
fn values_are_written_as_people_write_them() {
    for (quantity, value, text) in [
        (Quantity::Rate, 1_930_000.0, "1.93 Mbit/s"),
        (Quantity::Rate, 999.0, "999 bit/s"),
        (Quantity::Rate, 0.0, "0 bit/s"),
        (Quantity::Time, 0.2604, "260 ms"),
        (Quantity::Time, 0.001_25, "1.25 ms"),
        (Quantity::Octets, 65_000.0, "65 kB"),
        (Quantity::Octets, 20.0, "20 B"),
    ] {
        assert_eq!(quantity.words(value), text);
    }
}

proptest! {
    #[test]
    fn marks_of_an_axis_are_round_and_few(exponent in -9.0f64..15.0, marks in 2.0f64..6.0) {
        for quantity in [Quantity::Rate, Quantity::Time, Quantity::Octets, Quantity::Packets] {
            let most = 10f64.powf(exponent);
            let axis = Axis::new(quantity, most, 100.0, 0.0, marks);
            let all = axis.marks();
            prop_assert!((2..=7).contains(&all.len()), "{all:?} for {most}");
            let (top, step) = (all[all.len() - 1].0, all[1].0);
            let drawn = if quantity == Quantity::Time { most.min(5e5) } else { most };
            prop_assert!(top >= drawn * (1.0 - 1e-6), "{all:?} for {most}");
            prop_assert!((axis.y(top) - 0.0).abs() < 1e-6 && (axis.y(0.0) - 100.0).abs() < 1e-6);
            let digits = format!("{step:.0e}");
            prop_assert!(["1e", "2e", "5e"].iter().any(|round| digits.starts_with(round)), "{step}");
            // The label of a mark is its value in the unit.
            let size = top / all[all.len() - 1].1.parse::<f64>().unwrap();
            for (value, text) in &all {
                prop_assert!((text.parse::<f64>().unwrap() * size - value).abs() <= 1e-6 * top, "{all:?}");
            }
        }
    }
}
