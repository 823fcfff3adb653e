//! A page with every kind of part: `cargo run -p farcast-report --example page -- FILE.html`.

use farcast_report::page::{
    Axis, Bar, Cell, Chart, Column, Download, Figure, HeatCell, Interval, Mood, Page, Part, Point, Series,
    Table,
};

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "page.html".into());
    std::fs::write(path, page().html())
}

fn figure(title: &str, note: &str, chart: Chart) -> Part {
    Part::Figure(Figure { title: title.into(), note: note.into(), chart })
}

/// Returns a page with every kind of part, and numbers that are easily checked.
pub(crate) fn page() -> Page {
    let curve = |name: &str, slope: f64| {
        let point = |step: i32| {
            let x = 1e-4 * 10f64.powf(f64::from(step) / 3.0);
            let y = 50.0 + slope * x.log10().abs().powf(-1.5) * 100.0;
            Point { x, y, interval: Some((y - 2.0, y + 3.0)) }
        };
        Series { name: name.into(), points: (0..8).map(point).collect() }
    };
    let row = |n: u32, value: f64, kind: &str| Interval {
        name: format!("protocol.srt.n = {n}"),
        kind: kind.into(),
        value,
        interval: Some((value - 0.5, value + 0.5)),
    };
    let bar = |name: &str, part: &str, value: f64| Bar { name: name.into(), part: part.into(), value };
    let cells = (0..5).flat_map(|x| {
        (0..4).map(move |y| HeatCell { x: format!("{x}"), y: format!("{y}"), value: f64::from(x * y) })
    });
    let sample = |shift: f64| (0..400).map(|n| shift + (f64::from(n) / 40.0).powf(1.3)).collect::<Vec<f64>>();
    Page {
        title: "A page with everything".into(),
        lead: vec!["What happened, in a sentence or two.".into(), "And how sure that is: 95 %.".into()],
        settings: vec![
            ("receivers".into(), "20".into()),
            ("link.forward.per".into(), "0.001".into()),
            ("protocol.rate".into(), "\"300 kbit/s\"".into()),
        ],
        parts: vec![
            Part::Heading("Figures".into()),
            figure(
                "Completion over losses",
                "mean and 95 % interval",
                Chart::Lines {
                    x: Axis::logarithmic("packet error rate"),
                    y: Axis::linear("completion time, s").from_zero(),
                    series: vec![
                        curve("receivers = 20", 1.0),
                        curve("receivers = 80", 2.0),
                        curve("receivers = 1000", 3.0),
                    ],
                },
            ),
            figure(
                "Who has it when",
                "share of receivers",
                Chart::Distribution {
                    x: Axis::linear("time, s"),
                    samples: vec![("n = 1".into(), sample(50.0)), ("n = 4".into(), sample(53.0))],
                },
            ),
            figure(
                "Settings",
                "mean and 95 % interval; the line is the default",
                Chart::Intervals {
                    x: Axis::linear("completion time, s"),
                    rows: vec![row(1, 53.0, "best"), row(2, 54.0, "worse"), row(4, 55.5, "worse")],
                    reference: Some(55.5),
                },
            ),
            figure(
                "Octets",
                "by kind",
                Chart::Bars {
                    x: Axis::linear("octets"),
                    bars: vec![
                        bar("MFTP", "file", 1e6),
                        bar("MFTP", "repairs", 2e5),
                        bar("NORM", "file", 1e6),
                        bar("NORM", "repairs", 1.4e5),
                    ],
                },
            ),
            figure(
                "Two settings",
                "mean",
                Chart::Heat {
                    labels: ["protocol.srt.n".into(), "receivers".into(), "completion time, s".into()],
                    cells: cells.collect(),
                },
            ),
            Part::Heading("Numbers".into()),
            Part::Text("A click on a heading sorts by it.".into()),
            Part::Table(Table {
                caption: "Three numbers".into(),
                columns: vec![Column::text("setting"), Column::number("time, s"), Column::text("verdict")],
                rows: vec![
                    vec![Cell::text("a"), Cell::number(Some(10.5)), Cell::text("agrees").with(Mood::Good)],
                    vec![Cell::text("b"), Cell::number(Some(9.25)), Cell::text("differs").with(Mood::Bad)],
                    vec![
                        Cell::text("<c>"),
                        Cell::number(None),
                        Cell::text("undetermined").with(Mood::Unsure),
                    ],
                ],
            }),
        ],
        downloads: vec![Download { name: "numbers.csv".into(), mime: "text/csv", text: "a,10.5\r\n".into() }],
        made_by: "farcast 0.1.0".into(),
    }
}
