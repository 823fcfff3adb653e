//! The page around the drawings.

use std::fmt::Write as _;

use super::chart::{FORMATS, draw_lateness, draw_way, name_of, way_of};
use super::events::look;
use super::{Direction, EventKind, Run, tables};
use crate::svg::{Area, Escaped, Svg};
use crate::text::is_obeyed;
use crate::words::{count, span, time};

const STYLE: &str = include_str!("page.css");

/// Returns the page of a run: one HTML file that needs nothing else, in the light or dark style of the reader's
/// browser.
pub fn page(run: &Run) -> String {
    let title = Escaped(&run.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    facts(&mut page, run);
    verdict(&mut page, run);
    tables::totals(&mut page, run);
    let is_empty = run.forward.entered.packets.max(run.back.entered.packets) == 0;
    if is_empty {
        paragraph(&mut page, "empty", "No packet entered the link, so there is nothing to draw.");
    } else {
        legend(&mut page, run);
        for direction in [Direction::Forward, Direction::Return] {
            way(&mut page, run, direction);
        }
        lateness(&mut page, run);
    }
    tables::terminals(&mut page, run);
    tables::events(&mut page, run);
    for note in &run.notes {
        paragraph(&mut page, "notes", note);
    }
    data(&mut page, run);
    page += "</main>\n</body>\n</html>\n";
    page
}

fn paragraph(page: &mut String, class: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "<p class=\"{class}\">{}</p>", Escaped(text));
}

fn facts(page: &mut String, run: &Run) {
    *page += "<dl>\n";
    let duration = ("duration".to_owned(), time(run.duration_s));
    for (name, value) in run.facts.iter().chain([&duration]) {
        let _ = writeln!(page, "<div><dt>{}</dt><dd>{}</dd></div>", Escaped(name), Escaped(value));
    }
    *page += "</dl>\n";
    if !run.command.is_empty() {
        let _ = writeln!(page, "<p><code>{}</code></p>", Escaped(&run.command));
    }
}

/// Writes whether the run counts, and how late packets were.
fn verdict(page: &mut String, run: &Run) {
    let late = &run.lateness;
    let limit = late.limit_s.map_or_else(String::new, |limit| format!(" (limit {})", span(limit)));
    let figures = if late.packets == 0 {
        "No packet left the link".to_owned()
    } else {
        format!(
            "Packets left late by {} (median), {} (99 %){limit}, {} (99.9 %), {} at most",
            span(late.p50_s),
            span(late.p99_s),
            span(late.p999_s),
            span(late.max_s),
        )
    };
    let (class, word, what) = match late.valid {
        Some(true) => ("valid", "VALID", ""),
        Some(false) => (
            "invalid",
            "INVALID",
            "This machine was too busy for the link: what programs measured is not the link's; run it again. ",
        ),
        None => ("unknown", "Lateness", ""),
    };
    let remark = if late.remark.is_empty() { String::new() } else { format!("; {}", late.remark) };
    let text = format!("{what}{figures}{remark}.");
    let _ = writeln!(page, "<p class=\"verdict {class}\"><strong>{word}:</strong> {}</p>", Escaped(&text));
}

fn way(page: &mut String, run: &Run, direction: Direction) {
    let name = name_of(direction);
    let ends = match direction {
        Direction::Forward => "hub to terminals",
        Direction::Return => "terminals to hub",
    };
    let _ = writeln!(page, "<section>\n<h2 id=\"{name}\">{name}: {ends}</h2>");
    if way_of(run, direction).entered.packets == 0 {
        paragraph(page, "empty", "No packet entered on this way.");
    } else {
        figure(page, |format| draw_way(run, direction, format));
    }
    *page += "</section>\n";
}

fn lateness(page: &mut String, run: &Run) {
    *page += "<section>\n<h2 id=\"lateness\">lateness of the emulator, both ways</h2>\n";
    figure(page, |format| draw_lateness(run, format));
    *page += "</section>\n";
}

/// Writes a drawing in each format; the style sheet shows one of them.
fn figure(page: &mut String, draw: impl Fn(super::chart::Format) -> String) {
    *page += "<figure>\n";
    for format in FORMATS {
        let _ = writeln!(page, "<div class=\"{}\">", format.name);
        *page += &draw(format);
        *page += "</div>\n";
    }
    *page += "</figure>\n";
}

/// Writes the legend of lines, bands and marks.
fn legend(page: &mut String, run: &Run) {
    let (left, right) = ((1.0, 7.0), (25.0, 7.0));
    let area = Area { x: 1.0, y: 1.0, width: 24.0, height: 12.0 };
    *page += "<ul class=\"legend\">\n";
    entry(page, "entered", |svg| svg.line("entered", left, right, ""));
    entry(page, "delivered, each packet once", |svg| {
        svg.rect("delivered-area", Area { y: 5.0, height: 8.0, ..area }, "");
        svg.line("delivered", (1.0, 5.0), (25.0, 5.0), "");
    });
    if run.forward.rates_bps.iter().chain(&run.back.rates_bps).any(|rate| rate.1.is_some()) {
        entry(page, "set rate", |svg| svg.line("set-rate", left, right, ""));
    }
    entry(page, "delay from entering to leaving, by when packets left: median", |svg| {
        svg.line("median", left, right, "");
    });
    entry(page, "5 % to 95 %", |svg| svg.rect("percentiles", area, ""));
    entry(page, "shortest to longest", |svg| svg.rect("range", area, ""));
    entry(page, "lost by errors or an outage", |svg| {
        svg.rect("loss-bar", Area { x: 9.0, width: 6.0, ..area }, "");
    });
    entry(page, "dropped by a limit", |svg| svg.rect("drop-bar", Area { x: 9.0, width: 6.0, ..area }, ""));
    let kinds = [
        (EventKind::Start, "a program starts"),
        (EventKind::End, "it ends"),
        (EventKind::Change, "the link is changed"),
    ];
    for (kind, words) in kinds {
        if run.events.iter().any(|event| event.kind == kind) {
            let (class, shape) = look(kind);
            entry(page, words, |svg| svg.shape(class, (12.0, 7.0), shape, ""));
        }
    }
    if !(run.forward.outages.is_empty() && run.back.outages.is_empty()) {
        entry(page, "an outage that was set", |svg| {
            svg.rect("outage", area, "");
            for x in [3.0, 10.0, 17.0] {
                svg.line("hatching", (x, 12.0), (x + 6.0, 2.0), "");
            }
        });
    }
    *page += "</ul>\n";
    paragraph(page, "notes", &format!("A bin is {}.", bin_width(run)));
}

fn bin_width(run: &Run) -> String {
    let bins = run.forward.bins.len().max(run.back.bins.len()) as u64;
    format!("{} wide; there are {}", span(run.bin_s), count(bins))
}

fn entry(page: &mut String, words: &str, draw: impl FnOnce(&mut Svg)) {
    let mut svg = Svg::default();
    draw(&mut svg);
    let words = Escaped(words);
    let svg = svg.as_str();
    let _ = writeln!(page, "<li><svg viewBox=\"0 0 26 14\" aria-hidden=\"true\">{svg}</svg>{words}</li>");
}

/// Writes the run as JSON, with escapes for markup and for characters that XML does not allow.
fn data(page: &mut String, run: &Run) {
    // A run has only numbers, texts and lists, which can always be written.
    let json = serde_json::to_string(run).unwrap_or_default();
    *page += "<script type=\"application/json\" id=\"data\">";
    for letter in json.chars() {
        match letter {
            '&' | '<' | '>' => {
                let _ = write!(page, "\\u{:04x}", u32::from(letter));
            }
            // A script may put these texts into a page; control characters are shown there, not obeyed.
            _ if is_obeyed(letter) => {
                let _ = write!(page, "\\{}", letter.escape_default());
            }
            _ => page.push(letter),
        }
    }
    *page += "</script>\n";
}
