//! The page around the drawing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::marks::{FATES, Mark, meaning};
use super::{Timeline, chart};
use crate::svg::{Area, Escaped, Svg};
use crate::words::{share, span};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the page of a replication: one HTML file that needs nothing else, in the light or dark style of the
/// reader's browser.
pub fn page(timeline: &Timeline) -> String {
    let title = Escaped(&timeline.title);
    let head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let mut page = head;
    if !timeline.subtitle.is_empty() {
        paragraph(&mut page, "subtitle", &timeline.subtitle);
    }
    figures(&mut page, timeline);
    if let Some(balance) = balance(timeline) {
        paragraph(&mut page, "balance", &balance);
    }
    legend(&mut page, timeline);
    paragraph(&mut page, "scrolls", "The drawing is wider than the screen: it scrolls to the right \u{2192}");
    page += "<figure>\n";
    page += &chart::draw(timeline);
    page += "</figure>\n";
    for note in &timeline.notes {
        paragraph(&mut page, "notes", note);
    }
    page += "<script>\n";
    page += SCRIPT;
    page += "</script>\n</body>\n</html>\n";
    page
}

fn paragraph(page: &mut String, class: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "<p class=\"{class}\">{}</p>", Escaped(text));
}

fn figures(page: &mut String, timeline: &Timeline) {
    if timeline.figures.is_empty() {
        return;
    }
    *page += "<dl>\n";
    for (name, value) in &timeline.figures {
        let _ = writeln!(page, "<div><dt>{}</dt><dd>{}</dd></div>", Escaped(name), Escaped(value));
    }
    *page += "</dl>\n";
}

/// Returns a sentence on the share of time in which the sender sent, and on the shares in which it waited, by cause.
fn balance(timeline: &Timeline) -> Option<String> {
    let length = |begin: f64, end: f64| if begin < end { end - begin } else { 0.0 };
    let sending: f64 = timeline.passes.iter().map(|pass| length(pass.begin_s, pass.end_s)).sum();
    let mut waits: BTreeMap<&str, f64> = BTreeMap::new();
    for wait in &timeline.waits {
        *waits.entry(&wait.what).or_default() += length(wait.begin_s, wait.end_s);
    }
    let mut waits: Vec<(&str, f64)> = waits.into_iter().filter(|wait| wait.1 > 0.0).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole = timeline.duration_s;
    let is_length = |seconds: f64| seconds.is_finite() && seconds > 0.0;
    if !is_length(sending) || !is_length(whole) {
        return None;
    }
    let part = |time: f64| format!("{} ({})", span(time), share(time, whole));
    let rounds = timeline.words.round.many;
    let mut text = format!("Of {} the sender sends {rounds} for {}", span(whole), part(sending));
    for (what, time) in waits {
        let _ = write!(text, ", waits {} for {what}", part(time));
    }
    Some(text + ".")
}

/// Writes the legend of colours and shapes.
fn legend(page: &mut String, timeline: &Timeline) {
    let words = &timeline.words;
    let (round, nak, query) = (words.round.one, words.nak.one, words.query.one);
    *page += "<ul class=\"legend\">\n";
    let area = Area { x: 1.0, y: 1.0, width: 24.0, height: 12.0 };
    entry(page, &format!("a {round}; the dark foot is data that leaves"), |svg| {
        svg.rect("pass", area, "");
        svg.rect("data", Area { y: 9.0, height: 4.0, ..area }, "");
    });
    entry(page, "the sender waits, for what is written there", |svg| {
        svg.rect("wait-ground", area, "");
        svg.rect("wait", area, "");
    });
    mark(page, Mark::Request, query);
    mark(page, Mark::Sent, &format!("{nak} leaves a receiver"));
    for (fate, name) in FATES {
        let what = format!("{nak} reaches the sender, {name}: {}", meaning(fate, words));
        mark(page, Mark::Reached(fate), &what);
    }
    if !timeline.lanes.is_empty() {
        let line = |class| move |svg: &mut Svg| svg.line(class, (2.0, 7.0), (24.0, 7.0), "");
        entry(page, &format!("{nak} under way"), line("flight used"));
        if timeline.lanes.iter().flat_map(|lane| &lane.naks).any(|nak| nak.reached.is_none()) {
            entry(page, &format!("{nak} lost on the way"), |svg| {
                svg.line("flight lost", (4.0, 7.0), (18.0, 7.0), "");
                Mark::Lost.draw(svg, (18.0, 7.0), "");
            });
        }
        entry(page, "from the request to the answer: its way and the back-off", line("asked"));
        let waits = format!("receiver waits for {} that it asked for", words.segment.many);
        entry(page, &waits, line("lacking"));
        mark(page, Mark::Complete, "receiver complete");
    }
    *page += "</ul>\n";
}

fn mark(page: &mut String, mark: Mark, words: &str) {
    entry(page, words, |svg| mark.draw(svg, (13.0, 7.0), ""));
}

fn entry(page: &mut String, words: &str, draw: impl FnOnce(&mut Svg)) {
    let mut svg = Svg::default();
    draw(&mut svg);
    let words = Escaped(words);
    let _ = writeln!(page, "<li><svg viewBox=\"0 0 26 14\">{}</svg>{words}</li>", svg.as_str());
}
