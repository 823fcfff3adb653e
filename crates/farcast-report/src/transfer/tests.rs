#![expect(clippy::float_cmp, reason = "sums of whole numbers are exact")]

use super::*;
use crate::page::{Chart, Part, Table};

fn charts(page: &crate::page::Page) -> Vec<(&str, &Chart)> {
    let figures = page.parts.iter().filter_map(|part| match part {
        Part::Figure(figure) => Some((figure.title.as_str(), &figure.chart)),
        _ => None,
    });
    figures.collect()
}

fn table<'a>(page: &'a crate::page::Page, caption: &str) -> &'a Table {
    let found = page.parts.iter().find_map(|part| match part {
        Part::Table(table) if table.caption.starts_with(caption) => Some(table),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no table {caption}"))
}

fn receiver(number: usize) -> Receiver {
    Receiver {
        name: format!("station-{number}"),
        state: "done".into(),
        complete: true,
        time_s: Some(1.0 + number as f64 / 1e4),
        asked: Some(3),
        ..Receiver::default()
    }
}

/// Returns the record of a sender that looks ten times a second for `seconds` while `count` receivers become
/// complete.
fn sent(count: usize, seconds: u32) -> Sending {
    let names: Vec<String> = (0..count).map(|number| format!("station-{number}")).collect();
    let mut sending = Sending::new(Words::default());
    for tick in 0..=seconds * 10 {
        let (at, part) = (f64::from(tick) / 10.0, f64::from(tick) / f64::from(seconds * 10));
        let sent = u64::from(tick) * 1000;
        sending.passed(
            at,
            Totals { data: sent, repairs: sent / 10, requests: u64::from(tick) / 4, ..Totals::default() },
        );
        if sending.wants_look(at) {
            sending.look(at, names.iter().map(|name| (name.as_str(), part)));
        }
    }
    sending
}

#[test]
fn a_few_receivers_have_a_curve_each() {
    let close = Close { receivers: (0..3).map(receiver).collect(), size: 20_000, ..Close::default() };
    let page = sent(3, 2).page(&close);
    let charts = charts(&page);
    let titles: Vec<&str> = charts.iter().map(|(title, _)| *title).collect();
    assert_eq!(
        titles,
        ["Delivery over time", "Sending rate", "What was sent", "NAKs heard", "Segments asked for again"]
    );
    let Chart::Course { series, y, .. } = charts[0].1 else { panic!("{:?}", charts[0]) };
    assert_eq!((series.len(), series[2].name.as_str(), y.label.as_str()), (3, "station-2", "received, %"));
    assert_eq!(series[0].points.last().unwrap().y, 100.0);
    // 1000 octets in a tenth of a second, and repairs.
    let Chart::Stack { series, y, .. } = charts[1].1 else { panic!("{:?}", charts[1]) };
    assert_eq!((series.len(), y.label.as_str()), (2, "rate, kbit/s"));
    assert!((series[0].points[5].y - 80.0).abs() < 1e-6, "{:?}", series[0].points);
    let rows = &table(&page, "What was sent").rows;
    assert_eq!((rows[0][1].exact, rows[0][2].exact), (Some(20_000.0), Some(100.0)));
    // A number that no receiver has is left out as a column.
    assert_eq!(table(&page, "Receivers").columns.len(), 4);
}

#[test]
fn of_many_receivers_there_are_quantiles() {
    let close = Close { receivers: (0..20_000).map(receiver).collect(), ..Close::default() };
    let mut sending = sent(20_000, 4);
    let page = sending.page(&close);
    let charts = charts(&page);
    let Chart::Course { series, .. } = charts[0].1 else { panic!("{:?}", charts[0]) };
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["least", "5 %", "median", "95 %"]);
    let (title, Chart::Course { series, .. }) = charts[1] else { panic!("{:?}", charts[1]) };
    assert_eq!(title, "Receivers that have everything");
    let points = &series[0].points;
    assert!(points.len() < 1100 && points.last().unwrap().y == 20_000.0, "{}", points.len());
    let receivers = page.downloads.iter().find(|one| one.name == "receivers.csv").unwrap();
    assert_eq!(receivers.text.lines().count(), 20_001);
    // A look at 20,000 receivers takes time, so the next follows a fifth of a second later.
    sending.look(5.0, (0..20_000).map(|_| ("station", 1.0)));
    assert!(!sending.wants_look(5.15) && sending.wants_look(5.25));
}

#[test]
fn who_answers_nothing_has_no_empty_figures() {
    let mut sending = Sending::new(Words::default());
    sending.passed(1.0, Totals { parity: 1, ..Totals::default() });
    let page = sending.page(&Close::default());
    assert_eq!(charts(&page).len(), 2);
    let texts: Vec<&Part> = page.parts.iter().filter(|part| matches!(part, Part::Text(_))).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
}

#[test]
fn what_is_over_at_once_has_a_line() {
    let mut sending = Sending::new(Words::default());
    sending.passed(0.02, Totals { data: 1000, ..Totals::default() });
    sending.look(0.04, std::iter::once(("ant", 1.0)));
    let page = sending.page(&Close { receivers: vec![receiver(0)], ..Close::default() });
    let charts = charts(&page);
    let Chart::Course { series, has_steps: true, .. } = charts[0].1 else { panic!("{:?}", charts[0]) };
    let points: Vec<(f64, f64)> = series[0].points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(0.0, 100.0), (0.1, 100.0)]);
}

#[test]
fn rounds_without_end_are_counted() {
    let mut sending = Sending::new(Words::default());
    for round in 1..=1500 {
        sending.round(f64::from(round), round);
    }
    let page = sending.page(&Close { sent_per_round: vec![7, 5], ..Close::default() });
    let table = table(&page, "Rounds");
    let sent: Vec<&str> = table.rows[..3].iter().map(|row| row[2].shown.as_str()).collect();
    assert_eq!(sent, ["7", "5", ""]);
    assert_eq!((table.rows.len(), table.caption.as_str()), (1000, "Rounds; 500 more are not listed"));
}

fn product(name: &str, have: u32) -> Product {
    let came = Came { have, segments: have.into(), parity: 1, requests: 2, asked: 5, ..Came::default() };
    Product {
        name: name.into(),
        size: 95_000,
        segment_size: 1000,
        outcome: "complete".into(),
        complete: true,
        came,
        ..Product::default()
    }
}

#[test]
fn a_receiver_that_goes_on_keeps_the_latest() {
    let mut receiving = Receiving::new(Words::default());
    for number in 0..1200u32 {
        // Ten products one behind the other, and then nothing for a minute.
        let at = f64::from(number) + f64::from(number / 10) * 60.0;
        let one = product(&format!("product {number}"), 95);
        receiving.joined(
            at,
            number,
            Product { came: Came::default(), outcome: String::new(), ..one.clone() },
        );
        receiving.look(at + 0.5, number, Came { have: 50, segments: 50, ..Came::default() });
        assert!(receiving.is_busy());
        receiving.ended(at + 0.9, number, one);
        assert!(!receiving.is_busy());
    }
    let page = receiving.page(&Close { lead: vec!["product 1199 complete".into()], ..Close::default() });
    assert_eq!(page.lead[1], "1200 products so far, 1200 of them complete.");
    assert_eq!(table(&page, "The latest products; 200 before").rows.len(), 1000);
    let charts = charts(&page);
    let Chart::Course { series, x, y, .. } = charts[0].1 else { panic!("{:?}", charts[0]) };
    assert_eq!((series.len(), series[0].name.as_str()), (10, "product 1190"));
    assert_eq!((x.label.as_str(), y.label.as_str()), ("time since the first that is drawn, s", "stored, kB"));
    assert_eq!(series[9].points.last().unwrap().y, 95.0);
    assert!((series[9].points[0].x - 9.0).abs() < 1e-6, "{:?}", series[9].points);
    // Requests are not divided between two bins.
    let (title, Chart::Course { series, y, .. }) = charts[2] else { panic!("{:?}", charts[2]) };
    assert_eq!((title, y.label.as_str()), ("NAKs sent", "NAKs in 100 ms"));
    assert!(series[0].points.iter().all(|point| point.y == 0.0 || point.y == 2.0), "{:?}", series[0].points);
    assert!(!table(&page, "The latest").columns.iter().any(|column| column.title == "what became of it"));
}

#[test]
fn why_a_product_is_not_complete_is_said() {
    let mut receiving = Receiving::new(Words::default());
    receiving.joined(0.0, 1, product("a", 0));
    receiving.ended(0.5, 1, Product { complete: false, outcome: "a: stopped".into(), ..product("a", 9) });
    let page = receiving.page(&Close::default());
    let row = &table(&page, "Products").rows[0];
    assert_eq!((row[1].shown.as_str(), row.last().unwrap().shown.as_str()), ("not complete", "a: stopped"));
}

#[test]
fn what_is_under_way_is_on_the_page() {
    let mut receiving = Receiving::new(Words::default());
    let page = receiving.page(&Close::default());
    assert!(charts(&page).is_empty() && page.parts.len() == 2, "{page:?}");
    receiving.joined(3.0, 7, Product { came: Came::default(), outcome: String::new(), ..product("a", 0) });
    receiving.look(3.4, 7, Came { have: 10, segments: 10, ..Came::default() });
    let page = receiving.page(&Close::default());
    let rows = &table(&page, "Products").rows;
    assert_eq!((rows[0][1].shown.as_str(), rows[0][4].shown.as_str()), ("under way", "0.4"));
}
