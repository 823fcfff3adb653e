mod overlap;

use std::process::{Command, Stdio};

use farcast_delivery::Noun;
use proptest::prelude::*;

use super::chart::{LEFT, RIGHT};
use super::*;
use crate::tests::markup::{Element, elements};
use crate::{scale, words};

/// A protocol's words, one of them with a plural of its own.
const WORDS: Words = Words {
    round: Noun { one: "pass", many: "passes" },
    segment: Noun { one: "DTU", many: "DTUs" },
    nak: Noun { one: "NAK", many: "NAKs" },
    query: Noun { one: "status request", many: "status requests" },
    answers: "the Status Retry Timer",
};

/// Returns a timeline of two passes, of ten and two seconds, with a wait behind each, and three receivers.
fn small() -> Timeline {
    let pass = |number, begin_s, end_s, dtus| Pass { number, begin_s, end_s, dtus };
    let wait = |begin_s, end_s, naks| Wait { begin_s, end_s, what: "the Status Retry Timer".into(), naks };
    let point = |at_s| EventPoint { at_s, count: 1 };
    let nak = |sent_s, reached| LaneNak { sent_s, reached, dtus: 3 };
    let lane = |name: &str, naks, completed_s| Lane { name: name.into(), naks, completed_s };
    Timeline {
        title: "three receivers".into(),
        subtitle: "seed 1".into(),
        words: WORDS,
        figures: vec![("passes".into(), "2".into())],
        duration_s: 20.0,
        receivers: 3,
        passes: vec![pass(1, 0.0, 10.0, 1902), pass(2, 14.0, 16.0, 30)],
        data: vec![TimeSpan { begin_s: 0.0, end_s: 9.9 }, TimeSpan { begin_s: 14.0, end_s: 15.9 }],
        waits: vec![
            wait(10.0, 14.0, vec![(NakFate::Used, 2), (NakFate::Known, 1)]),
            wait(16.0, 20.0, vec![(NakFate::Used, 0)]),
        ],
        requests: vec![point(9.9), point(15.9)],
        naks_sent: vec![point(10.5), EventPoint { at_s: 11.0, count: 3 }],
        naks_reached: vec![
            (NakFate::Used, vec![point(11.0), point(11.5)]),
            (NakFate::Known, vec![point(12.0)]),
        ],
        completions: vec![point(10.0), point(15.0), point(16.0)],
        milestones: vec![(0.0, "data begins".into()), (20.0, "ended".into())],
        lanes: vec![
            lane("receiver 0", vec![nak(10.5, Some((11.0, NakFate::Used))), nak(11.0, None)], Some(16.0)),
            lane("receiver 1", vec![], Some(10.0)),
            lane("receiver 2", vec![nak(11.0, Some((11.5, NakFate::Known)))], Some(15.0)),
        ],
        notes: vec!["A note.".into()],
    }
}

/// Returns the place of a time of `small`: the axis is linear.
fn x(seconds: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * seconds / 20.0
}

/// Returns the drawing in a page.
fn drawing(page: &str) -> &str {
    let begin = page.find("<svg xmlns").expect("a drawing");
    let end = page.find("</figure>").expect("the figure's end");
    &page[begin..end]
}

fn of_class<'a>(elements: &'a [Element], name: &str, class: &str) -> Vec<&'a Element> {
    elements
        .iter()
        .filter(|element| element.name == name && element.attribute("class") == Some(class))
        .collect()
}

#[test]
fn passes_waits_and_data_are_where_they_were() {
    let page = page(&small());
    let all = elements(drawing(&page));
    for (class, times) in [
        ("pass", [(0.0, 10.0), (14.0, 16.0)]),
        ("wait", [(10.0, 14.0), (16.0, 20.0)]),
        ("data", [(0.0, 9.9), (14.0, 15.9)]),
    ] {
        let rects = of_class(&all, "rect", class);
        assert_eq!(rects.len(), times.len(), "{class}");
        for (rect, (begin, end)) in rects.iter().zip(times) {
            // Coordinates are written to a tenth.
            assert!((rect.number("x") - x(begin)).abs() <= 0.051, "{rect:?}");
            assert!((rect.number("width") - (x(end) - x(begin))).abs() <= 0.051, "{rect:?}");
        }
    }
    assert!(page.contains(">pass 1: 1,902 DTUs in 10.0 s<") && page.contains(">pass 2: 30 DTUs in 2.00 s<"));
    assert!(page.contains("from 10.000 s to 14.000 s the sender waits 4.00 s for the Status Retry Timer; meanwhile 3 NAKs reach it: 2 used, 1 known"));
    for written in [">waits 4.00 s<", ">for the Status Retry Timer<", ">3 NAKs come<", ">no NAK comes<"] {
        assert!(page.contains(written), "{written}");
    }
    assert!(page.contains(
        "Of 20.0 s the sender sends passes for 12.0 s (60 %), waits 8.00 s (40 %) for the Status Retry Timer."
    ));
}

#[test]
fn what_is_written_is_in_the_words_of_the_protocol() {
    let others = Words {
        round: Noun { one: "turn", many: "turns" },
        segment: Noun { one: "slice", many: "slices" },
        nak: Noun { one: "plea", many: "pleas" },
        query: Noun { one: "call", many: "calls" },
        answers: "pleas",
    };
    let wait = |wait: Wait| Wait { what: others.answers.into(), ..wait };
    let small = small();
    let waits = small.waits.iter().cloned().map(wait).collect();
    let page = page(&Timeline { words: others, waits, figures: Vec::new(), ..small });
    let (_, body) = page.split_once("<body>").unwrap();
    let told = body.split("<script>").next().unwrap();
    let all = elements(drawing(told));
    let tips: String = all.iter().map(|element| element.text.as_str()).collect();
    for word in ["pass ", "passes", "DTU", "NAK", "status request", "Status Retry"] {
        assert!(!told.contains(word), "{word} is written");
    }
    for word in ["sends turns", "turn 1: 1,902 slices", "3 pleas come", "pleas", "calls"] {
        assert!(tips.contains(word), "{word} is not written in {tips}");
    }
}

#[test]
fn every_kind_of_mark_is_as_often_as_it_happened() {
    let page = page(&small());
    let all = elements(drawing(&page));
    // In the lanes of all and of each receiver: sent 2 columns + 3, used 2 + 1, known 1 + 1; lost 1; complete 3, and
    // all of them once.
    for (class, count) in
        [("request", 2), ("sent", 5), ("used", 3), ("known", 2), ("late", 0), ("lost", 1), ("complete", 4)]
    {
        assert_eq!(of_class(&all, "path", class).len(), count, "{class}");
    }
    let requests: Vec<f64> = of_class(&all, "path", "request").iter().map(|path| path.begin().0).collect();
    assert!((requests[0] - x(9.9)).abs() < 0.06 && (requests[1] - x(15.9)).abs() < 0.06, "{requests:?}");
    let flights: Vec<(f64, f64)> = ["flight used", "flight known"]
        .iter()
        .flat_map(|class| of_class(&all, "line", class))
        .map(|line| (line.number("x1"), line.number("x2")))
        .collect();
    for ((begin, end), (sent, reached)) in flights.into_iter().zip([(10.5, 11.0), (11.0, 11.5)]) {
        assert!((begin - x(sent)).abs() < 0.06 && (end - x(reached)).abs() < 0.06);
    }
    // Each NAK that is drawn alone answers the request at 9.9 s.
    let asked: Vec<f64> = of_class(&all, "line", "asked").iter().map(|line| line.number("x1")).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|begin| (begin - x(9.9)).abs() < 0.06));
}

#[test]
fn the_curve_steps_at_completions_to_the_top() {
    let page = page(&small());
    let all = elements(drawing(&page));
    let curve = of_class(&all, "path", "curve")[0].attribute("d").unwrap().to_owned();
    let numbers: Vec<f64> = curve.split(['M', 'H', 'V', ' ']).filter_map(|part| part.parse().ok()).collect();
    // The path begins at the foot, then goes along and up for each receiver, then to the right.
    let bottom = numbers[1];
    assert_eq!(numbers.len(), 9, "{curve}");
    for (step, at) in [(0, 10.0), (1, 15.0), (2, 16.0)] {
        let (along, up) = (numbers[2 + 2 * step], numbers[3 + 2 * step]);
        assert!((along - x(at)).abs() < 0.06, "{curve}");
        assert!((bottom - up - 32.0 * (step as f64 + 1.0)).abs() < 0.06, "{curve}");
    }
    assert!((numbers[8] - RIGHT).abs() < 0.06);
}

#[test]
fn what_is_not_known_has_no_row_and_what_did_not_happen_has() {
    let timeline = Timeline { naks_sent: Vec::new(), ..small() };
    let page = page(&timeline);
    assert!(!page.contains("sent by receivers") && page.contains(">0 late<"));
}

#[test]
fn more_than_sixty_receivers_have_no_lanes() {
    for (receivers, drawn) in [(60, 60), (61, 0)] {
        let mut timeline = small();
        timeline.lanes = vec![timeline.lanes[1].clone(); receivers];
        let page = page(&timeline);
        assert_eq!(of_class(&elements(drawing(&page)), "text", "row").len(), drawn);
    }
}

#[test]
fn an_empty_timeline_is_a_page() {
    let page = page(&Timeline::default());
    assert!(!elements(drawing(&page)).is_empty());
}

#[test]
fn a_page_of_many_things_is_bounded() {
    let many = |count: u32| (0..count).map(|n| f64::from(n) * 1e-3);
    let points: Vec<EventPoint> = many(200_000).map(|at_s| EventPoint { at_s, count: 1000 }).collect();
    let lane = Lane {
        name: "receiver".into(),
        naks: many(10_000).map(|sent_s| LaneNak { sent_s, reached: None, dtus: 1 }).collect(),
        completed_s: None,
    };
    let timeline = Timeline {
        duration_s: 200.0,
        receivers: 1_000_000,
        passes: (0..)
            .zip(many(100_000))
            .map(|(number, t)| Pass { number, begin_s: t, end_s: t, dtus: 1 })
            .collect(),
        data: many(100_000).map(|t| TimeSpan { begin_s: t, end_s: t }).collect(),
        waits: many(100_000)
            .map(|t| Wait { begin_s: t, end_s: t, what: "x".into(), naks: Vec::new() })
            .collect(),
        requests: points.clone(),
        naks_sent: points.clone(),
        naks_reached: vec![(NakFate::Late, points.clone())],
        completions: points,
        lanes: vec![lane; 60],
        ..small()
    };
    // 60 lanes of 150 NAKs with three marks each are the most of it.
    assert!(page(&timeline).len() < 10_000_000);
}

#[test]
fn the_page_needs_nothing_else() {
    let page = page(&small());
    assert_eq!(page.matches("http").count(), 1, "the name of SVG's namespace");
    for outside in ["src=", "href", "@import", "<link", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("url(").count(), page.matches("url(#hatch)").count());
}

#[test]
fn colours_are_there_in_light_and_in_dark_and_every_class_has_a_style() {
    let style = include_str!("page.css");
    let (light, dark) = style.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let used = style.split("var(--").skip(1).map(|rest| rest.split(')').next().unwrap());
    for name in used {
        let defined = format!("--{name}: #");
        assert!(light.contains(&defined) && dark.contains(&defined), "{name}");
    }
    let page = page(&small());
    let named = ["balance"];
    for class in page.split("class=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' ')) {
        assert!(named.contains(&class) || style.contains(&format!(".{class}")), "{class}");
    }
}

#[test]
fn python_reads_the_drawing_as_xml() {
    let mut timeline = small();
    timeline.title = "<b>&\"quoted\"'\u{1}\u{7f}\u{FFFF}</b> é 漢".into();
    timeline.lanes[0].name = "</svg><script>alert(1)</script>".into();
    timeline.milestones[0].1 = "a & b".into();
    timeline.waits[0].what = "x < y".into();
    let page = page(&timeline);
    assert!(!page.contains("<b>") && page.matches("<script>").count() == 1);
    let program = "import sys, xml.etree.ElementTree as e; print(len(list(e.fromstring(sys.stdin.buffer.read()).iter())))";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("python3: {error}; this test needs the Debian package python3"));
    let mut input = python.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, drawing(&page).as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let count: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert_eq!(count, elements(drawing(&page)).len());
}

#[test]
fn numbers_are_written_as_people_write_them() {
    for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(words::count(value), text);
    }
    assert_eq!((words::counted(1, "hop").as_str(), words::counted(0, "hop").as_str()), ("1 hop", "0 hops"));
    let counted_as = |value| words::counted_as(value, WORDS.round);
    assert_eq!((counted_as(1).as_str(), counted_as(1902).as_str()), ("1 pass", "1,902 passes"));
    for (seconds, text) in [
        (0.0, "0.0 ms"),
        (0.0159, "15.9 ms"),
        (0.25, "250 ms"),
        (0.9996, "1.00 s"),
        (7.931, "7.93 s"),
        (27.54, "27.5 s"),
        (99.96, "100 s"),
        (1543.2, "1543 s"),
        (-1.0, "0.0 ms"),
        (f64::NAN, "0.0 ms"),
    ] {
        assert_eq!(words::span(seconds), text);
    }
    assert_eq!(words::time(31.2044), "31.204 s");
    assert_eq!((words::share(1.0, 3.0).as_str(), words::share(1.0, 0.0).as_str()), ("33 %", "0 %"));
}

proptest! {
    #[test]
    fn ticks_are_round_and_few(exponent in -5.0f64..12.0) {
        let duration = 10f64.powf(exponent);
        let ticks = scale::Scale::new(0.0, 1000.0, duration).ticks();
        prop_assert!((5..=13).contains(&ticks.len()), "{} at {duration}", ticks.len());
        prop_assert!(ticks.last().unwrap().0 <= duration * (1.0 + 1e-6));
        let step = ticks[1].0 - ticks[0].0;
        let digits = format!("{step:.0e}");
        prop_assert!(["1e", "2e", "5e"].iter().any(|round| digits.starts_with(round)), "{step}");
        for (n, (at, text)) in ticks.iter().enumerate() {
            prop_assert!((at - n as f64 * step).abs() <= 1e-9 * duration);
            let written: f64 = text.strip_suffix(" s").unwrap().parse().unwrap();
            prop_assert!((written - at).abs() <= 1e-9 * duration.max(1e-9), "{text} at {at}");
        }
    }

    #[test]
    fn columns_keep_every_point(times in prop::collection::vec(-5.0f64..130.0, 0..200), width in 0.5f64..40.0) {
        let points: Vec<EventPoint> = times.iter().map(|&at_s| EventPoint { at_s, count: 2 }).collect();
        let scale = scale::Scale::new(100.0, 1100.0, 120.0);
        let columns = scale.columns(&points, width);
        prop_assert_eq!(columns.iter().map(|column| column.count).sum::<u64>(), 2 * times.len() as u64);
        for column in &columns {
            prop_assert!(scale.x(column.last_s) - scale.x(column.first_s) <= width + 1e-6);
        }
        prop_assert!(columns.is_sorted_by(|a, b| a.last_s <= b.first_s));
    }
}
