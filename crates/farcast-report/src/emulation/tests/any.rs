//! Any run gives a well-formed page in which no text overlaps another or leaves the drawing.

use proptest::prelude::*;

use super::*;

/// Times of any kind; most of them within the run.
fn time() -> impl Strategy<Value = f64> {
    prop_oneof![20 => 0.0f64..100.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => -1e9f64..1e9]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::from("near starts")), "\\PC{0,40}", any::<String>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 0u64..5_000_000, 1 => any::<u64>()]
}

prop_compose! {
    fn bins()(list in prop::collection::vec((number(), number(), number(), prop::option::of(time())), 0..60)) -> Vec<TimeBin> {
        let bin = |(entered, carried, inside_octets, delay): (u64, u64, u64, Option<f64>)| TimeBin {
            entered: Count { packets: entered, octets: entered },
            carried: Count { packets: carried, octets: carried },
            inside_octets,
            delay: delay.map(|d| Delay { min_s: d / 2.0, p5_s: d / 1.5, p50_s: d, p95_s: d * 1.5, max_s: d * 2.0 }),
            latest_s: delay.unwrap_or(0.0),
        };
        list.into_iter().map(bin).collect()
    }
}

prop_compose! {
    fn way()(
        bins in bins(),
        rates_bps in prop::collection::vec((time(), prop::option::of(number().prop_map(|n| n as f64))), 0..5),
        outages in prop::collection::vec((time(), time()), 0..4),
        causes in prop::collection::vec((any::<bool>(), words(), prop::collection::btree_map(0usize..80, number(), 0..9)), 0..9),
        packets in number(),
    ) -> DirectionTraffic {
        DirectionTraffic {
            entered: Count { packets, octets: packets },
            rates_bps,
            outages: outages.into_iter().map(|(begin_s, end_s)| TimeSpan { begin_s, end_s }).collect(),
            causes: causes
                .into_iter()
                .map(|(dropped, name, bins)| LossCause { dropped, name, bins: bins.into_iter().collect() })
                .collect(),
            bins,
            ..DirectionTraffic::default()
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![Just(EventKind::Start), Just(EventKind::End), Just(EventKind::Change)];
    let way = prop_oneof![Just(None), Just(Some(Direction::Forward)), Just(Some(Direction::Return))];
    (time(), kind, way, words()).prop_map(|(at_s, kind, way, words)| Event { at_s, kind, way, words })
}

prop_compose! {
    fn run()(
        title in words(),
        duration_s in prop_oneof![9 => Just(100.0), 1 => any::<f64>()],
        bin_s in prop_oneof![9 => Just(1.7), 1 => any::<f64>()],
        (forward, back) in (way(), way()),
        mut events in prop::collection::vec(event(), 0..12),
        limit_s in prop::option::of(time()),
    ) -> Run {
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let lateness = Lateness { limit_s, valid: limit_s.map(|limit| limit > 1.0), ..Lateness::default() };
        Run { title: title.clone(), command: title, duration_s, bin_s, forward, back, events, lateness, ..Run::default() }
    }
}

/// Returns the extent of a text: left, right, top and bottom, by the widths of a font that is as wide as most.
fn extent(element: &Element) -> (f64, f64, f64, f64) {
    let size = if element.attribute("class") == Some("heading") { 12.0 } else { 11.0 };
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

/// Returns the drawings of a page, each as its elements.
fn drawings(page: &str) -> Vec<Vec<Element>> {
    let begins = page.match_indices("<svg xmlns").map(|(begin, _)| begin);
    begins.map(|begin| elements(&page[begin..begin + page[begin..].find("</svg>").unwrap() + 6])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn texts_lie_beside_one_another(run in run()) {
        let page = page(&run);
        prop_assert!(!elements(document(&page)).is_empty());
        for (index, drawing) in drawings(&page).iter().enumerate() {
            let format = FORMATS[index % 2];
            let texts = drawing.iter().filter(|element| element.name == "text" && !element.text.trim().is_empty());
            let placed: Vec<_> = texts.map(|text| (extent(text), text)).collect();
            for (index, (a, one)) in placed.iter().enumerate() {
                prop_assert!(a.0 >= -0.1 && a.1 <= format.width + 0.1, "{one:?}");
                for (b, other) in &placed[index + 1..] {
                    let apart = a.1 <= b.0 || b.1 <= a.0 || a.3 <= b.2 || b.3 <= a.2;
                    prop_assert!(apart, "{one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn shapes_lie_within_the_panels(run in run()) {
        let page = page(&run);
        for (index, drawing) in drawings(&page).iter().enumerate() {
            let (left, right) = (FORMATS[index % 2].left - 0.1, FORMATS[index % 2].right + 0.1);
            for element in drawing {
                if element.name == "rect" {
                    let (x, width) = (element.number("x"), element.number("width"));
                    prop_assert!(x >= left - 2.5 && x + width <= right + 1.0, "{element:?}");
                }
                if element.name == "path" && element.attribute("class").is_some_and(|class| CURVES.contains(&class)) {
                    for (x, y) in corners(element.attribute("d").unwrap()) {
                        prop_assert!((left - 2.5..=right).contains(&x) && y >= 0.0, "{element:?}");
                    }
                }
            }
        }
    }
}

/// The classes of lines and areas.
const CURVES: [&str; 9] = [
    "entered",
    "delivered",
    "delivered-area",
    "set-rate",
    "median",
    "percentiles",
    "range",
    "inside",
    "inside-area",
];
