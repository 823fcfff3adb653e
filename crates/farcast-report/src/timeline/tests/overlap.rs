//! Any timeline gives a well-formed page in which no text overlaps another or leaves the drawing.

use proptest::prelude::*;

use super::*;
use crate::timeline::chart::WIDTH;

/// Times of any kind; most of them within the drawing.
fn time() -> impl Strategy<Value = f64> {
    prop_oneof![
        20 => 0.0f64..100.0,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => -1e9f64..1e9,
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::from("the Status Retry Timer")),
        Just(String::from("data begins")),
        "\\PC{0,40}",
        any::<String>(),
    ]
}

fn points() -> impl Strategy<Value = Vec<EventPoint>> {
    let count = prop_oneof![1u64..4, any::<u64>()];
    prop::collection::vec((time(), count).prop_map(|(at_s, count)| EventPoint { at_s, count }), 0..40)
}

fn fate() -> impl Strategy<Value = NakFate> {
    prop_oneof![Just(NakFate::Used), Just(NakFate::Known), Just(NakFate::Late)]
}

fn passes() -> impl Strategy<Value = Vec<Pass>> {
    let pass = (any::<u32>(), time(), time(), any::<u64>());
    let pass =
        pass.prop_map(|(number, a, b, dtus)| Pass { number, begin_s: a.min(b), end_s: a.max(b), dtus });
    prop::collection::vec(pass, 0..12).prop_map(|mut passes| {
        passes.sort_by(|a, b| a.begin_s.total_cmp(&b.begin_s));
        passes
    })
}

/// Generates waits one after the other: a sender never waits for two things at once.
fn waits() -> impl Strategy<Value = Vec<Wait>> {
    let wait = (0.0f64..30.0, 0.0f64..30.0, words(), prop::collection::vec((fate(), any::<u64>()), 0..3));
    prop::collection::vec(wait, 0..12).prop_map(|list| {
        let mut at = 0.0;
        let wait = |(pause, long, what, naks)| {
            let begin_s = at + if pause < 15.0 { 0.0 } else { pause };
            at = begin_s + long;
            Wait { begin_s, end_s: at, what, naks }
        };
        list.into_iter().map(wait).collect()
    })
}

fn lanes() -> impl Strategy<Value = Vec<Lane>> {
    let reached = prop::option::of((time(), fate()));
    let nak = (time(), reached, any::<u32>());
    let nak = nak.prop_map(|(sent_s, reached, dtus)| LaneNak { sent_s, reached, dtus });
    let lane = (words(), prop::collection::vec(nak, 0..6), prop::option::of(time()));
    prop::collection::vec(lane.prop_map(|(name, naks, completed_s)| Lane { name, naks, completed_s }), 0..6)
}

prop_compose! {
    fn timeline()(
        (title, duration_s, receivers) in (words(), prop_oneof![9 => Just(100.0), 1 => any::<f64>()], any::<u64>()),
        (passes, waits, lanes) in (passes(), waits(), lanes()),
        (requests, naks_sent, used, known) in (points(), points(), points(), points()),
        completions in points(),
        milestones in prop::collection::vec((time(), words()), 0..6),
    ) -> Timeline {
        Timeline {
            title: title.clone(),
            subtitle: title.clone(),
            words: WORDS,
            figures: vec![(title.clone(), title.clone())],
            data: passes.iter().map(|pass| TimeSpan { begin_s: pass.begin_s, end_s: pass.end_s }).collect(),
            naks_reached: vec![(NakFate::Used, used), (NakFate::Known, known)],
            notes: vec![title],
            duration_s, receivers, passes, waits, requests, naks_sent, completions, milestones, lanes,
        }
    }
}

/// Returns the extent of a text: left, right, top and bottom, by the widths of a font that is as wide as most.
fn extent(element: &Element) -> (f64, f64, f64, f64) {
    let size = if ["note", "tick", "why", "row"].contains(&element.attribute("class").unwrap()) {
        11.0
    } else {
        12.0
    };
    let mut letters = element.text.clone();
    for entity in ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"] {
        letters = letters.replace(entity, "x");
    }
    let width = letters.chars().count() as f64 * size * 0.56;
    let (x, y) = (element.number("x"), element.number("y"));
    let left = match element.attribute("text-anchor").unwrap() {
        "start" => x,
        "middle" => x - width / 2.0,
        "end" => x - width,
        other => panic!("{other}"),
    };
    (left, left + width, y - 0.75 * size, y + 0.25 * size)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn texts_lie_beside_one_another(timeline in timeline()) {
        let page = page(&timeline);
        let all = elements(drawing(&page));
        let texts = || all.iter().filter(|element| element.name == "text" && !element.text.trim().is_empty());
        for text in texts() {
            let (left, right, ..) = extent(text);
            prop_assert!(left >= -0.1 && right <= WIDTH + 0.1, "{text:?}");
        }
        let placed: Vec<_> = texts().map(|text| (extent(text), text)).collect();
        for (index, (a, one)) in placed.iter().enumerate() {
            for (b, other) in &placed[index + 1..] {
                let apart = a.1 <= b.0 || b.1 <= a.0 || a.3 <= b.2 || b.3 <= a.2;
                prop_assert!(apart, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn shapes_lie_within_the_lanes(timeline in timeline()) {
        let page = page(&timeline);
        for element in elements(drawing(&page)) {
            if element.name == "rect" {
                let x = element.number("x");
                // A pass or wait too short to be seen is drawn two pixels wide.
                prop_assert!(x >= LEFT - 0.1 && x + element.number("width") <= RIGHT + 2.1, "{element:?}");
            }
            if element.name == "line" && element.attribute("class") != Some("hatching") {
                for end in ["x1", "x2"] {
                    prop_assert!((LEFT - 0.1..=RIGHT + 0.1).contains(&element.number(end)), "{element:?}");
                }
            }
        }
    }
}
