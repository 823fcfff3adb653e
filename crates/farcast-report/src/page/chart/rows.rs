//! Charts with a row for each name.

use serde_json::{Value, json};

use super::{Axis, Bar, Interval, across, colour, ticks, ticks_across};
use crate::text::visible;

/// Most characters of a name that fits beside its row on a narrow screen.
const BESIDE: usize = 18;
/// Most characters of a line above a row on a narrow screen.
const LINE: usize = 44;
/// Pixels of a line of a name, and below those of a row without its name.
const LINE_HEIGHT: usize = 14;
const ROW: usize = 22;

/// Names of rows, without the parts that all of them share.
pub(super) struct Names {
    /// Parts that all names share.
    common: Vec<String>,
    /// Rest of each name, in lines.
    short: Vec<String>,
}

impl Names {
    pub(super) fn of(names: &[&str]) -> Self {
        let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split(", ").collect()).collect();
        let first = parts.first().cloned().unwrap_or_default();
        let is_common = |part: &&str| parts.iter().all(|parts| parts.contains(part));
        let common: Vec<&str> = first.into_iter().filter(is_common).collect();
        let rest = |parts: &Vec<&str>| -> Vec<String> {
            parts.iter().filter(|part| !common.contains(part)).map(|&part| part.to_owned()).collect()
        };
        let short: Vec<Vec<String>> = parts.iter().map(rest).collect();
        // A single row keeps its whole name; so do all rows if one has nothing but the common parts.
        if names.len() < 2 || short.iter().any(Vec::is_empty) {
            let whole = |parts: &Vec<&str>| wrapped(parts.iter().copied());
            return Self { common: Vec::new(), short: parts.iter().map(whole).collect() };
        }
        let short = short.iter().map(|parts| wrapped(parts.iter().map(String::as_str))).collect();
        Self { common: common.into_iter().map(str::to_owned).collect(), short }
    }

    /// Returns `true` if names stand beside their rows; otherwise each stands above its own.
    fn are_beside(&self) -> bool {
        self.short.iter().all(|name| name.chars().count() <= BESIDE)
    }

    /// Returns the height in pixels of a row with its name.
    fn step(&self) -> usize {
        let lines = self.short.iter().map(|name| name.lines().count()).max().unwrap_or(1);
        if self.are_beside() { ROW } else { ROW + lines * LINE_HEIGHT }
    }

    /// Returns the pixels between the middle of a row with its name and the middle of its drawing.
    fn shift(&self) -> usize {
        (self.step() - ROW) / 2
    }

    /// Returns the channel that assigns values to rows.
    fn channel(&self, order: &[&str]) -> Value {
        let axis = if self.are_beside() { json!({"labelExpr": "datum.label"}) } else { Value::Null };
        let mut channel = json!({"field": "row", "type": "nominal", "title": null, "axis": axis});
        channel["sort"] = if self.are_beside() { json!(self.short) } else { json!(order) };
        channel
    }

    /// Returns the row of the value of name number `place`.
    fn row<'a>(&'a self, place: usize, order: &[&'a str]) -> &'a str {
        if self.are_beside() { &self.short[place] } else { order[place] }
    }

    /// Returns the layer of names above their rows; `None` if names stand beside them.
    fn layer(&self) -> Option<Value> {
        let top = (self.step() / 2) as f64 - 2.0;
        let mark = json!({"type": "text", "align": "left", "baseline": "top", "lineBreak": "\n", "lineHeight": LINE_HEIGHT,
                          "dx": 2, "dy": -top, "fontSize": 12});
        let encoding = json!({"x": {"value": 0}, "text": {"field": "short", "type": "nominal"}});
        (!self.are_beside()).then(|| json!({"mark": mark, "encoding": encoding}))
    }

    /// Returns the title of the figure with the parts that all rows share.
    fn title(&self) -> Value {
        if self.common.is_empty() {
            return Value::Null;
        }
        let text = wrapped(self.common.iter().map(String::as_str)) + " (all rows)";
        let lines: Vec<&str> = text.lines().collect();
        json!({"text": lines, "anchor": "start", "fontSize": 12, "fontWeight": "normal"})
    }
}

/// Wraps parts into lines of at most [`LINE`] characters: between parts, else between words, else anywhere.
fn wrapped<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let part = &*visible(part);
        let room = lines.last().map_or(0, |line| LINE.saturating_sub(line.chars().count() + 2));
        if let Some(line) = lines.last_mut() {
            line.push_str(", ");
            if part.chars().count() <= room {
                line.push_str(part);
                continue;
            }
        }
        lines.extend(broken(part));
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Wraps one part into lines, between words if there are any.
fn broken(part: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for letter in part.chars() {
        if line.chars().count() >= LINE {
            let rest = line.rfind(' ').map_or_else(String::new, |blank| line.split_off(blank + 1));
            lines.push(core::mem::replace(&mut line, rest));
        }
        line.push(letter);
    }
    lines.push(line);
    lines
}

pub(super) fn intervals(x: &Axis, rows: &[Interval], reference: Option<f64>) -> Value {
    let order: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let names = Names::of(&order);
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows {
        if !kinds.contains(&row.kind.as_str()) {
            kinds.push(&row.kind);
        }
    }
    let drawn = rows.iter().enumerate().filter(|(_, row)| row.value.is_finite());
    let values: Vec<Value> = drawn
        .map(|(place, row)| {
            let (low, high) = row.interval.unwrap_or((row.value, row.value));
            json!({"name": row.name, "row": names.row(place, &order), "short": names.short[place],
                   "x": row.value, "low": low, "high": high, "series": row.kind})
        })
        .collect();
    let tooltip = json!([
        {"field": "name", "title": " "},
        {"field": "x", "title": x.label, "format": ".5~g"},
        {"field": "low", "title": "from", "format": ".5~g"},
        {"field": "high", "title": "to", "format": ".5~g"},
    ]);
    let place = |field: &str| across(field, x, rows.iter().map(|row| row.value));
    let (colour, shift) = (colour(&kinds), names.shift());
    let mut layer = vec![
        json!({"mark": {"type": "rule", "strokeWidth": 2, "yOffset": shift},
               "encoding": {"x": place("low"), "x2": {"field": "high"}, "color": colour}}),
        json!({"mark": {"type": "point", "filled": true, "size": 70, "opacity": 1, "yOffset": shift},
               "encoding": {"x": place("x"), "tooltip": tooltip, "color": colour}}),
    ];
    layer.extend(names.layer());
    let height = rows.len() * names.step();
    if let Some(reference) = reference.filter(|reference| reference.is_finite()) {
        let encoding = json!({"x": {"field": "at", "type": "quantitative"}, "y": {"value": 0},
                              "y2": {"value": height}, "color": {"value": "#888"}});
        layer.insert(
            0,
            json!({"data": {"values": [{"at": reference}]},
                               "mark": {"type": "rule", "strokeDash": [5, 4]}, "encoding": encoding}),
        );
    }
    json!({
        "title": names.title(),
        "data": {"values": values},
        "height": height,
        "encoding": {"y": names.channel(&order)},
        "layer": layer,
    })
}

pub(super) fn bars(x: &Axis, bars: &[Bar]) -> Value {
    let (mut order, mut parts): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for bar in bars {
        if !order.contains(&bar.name.as_str()) {
            order.push(&bar.name);
        }
        if !parts.contains(&bar.part.as_str()) {
            parts.push(&bar.part);
        }
    }
    let names = Names::of(&order);
    let drawn = bars.iter().filter(|bar| bar.value.is_finite());
    let values: Vec<Value> = drawn
        .filter_map(|bar| {
            let place = order.iter().position(|name| *name == bar.name)?;
            Some(json!({"name": bar.name, "row": names.row(place, &order), "short": names.short[place],
                        "series": bar.part, "x": bar.value}))
        })
        .collect();
    let tooltip = json!([
        {"field": "name", "title": " "},
        {"field": "series", "title": "part"},
        {"field": "x", "title": x.label, "format": ".5~g"},
    ]);
    let length = json!({"field": "x", "type": "quantitative", "title": x.label, "stack": "zero",
                        "axis": ticks_across(ticks())});
    let mut layer = vec![json!({
        "mark": {"type": "bar", "height": ROW - 6, "yOffset": names.shift()},
        "encoding": {"x": length, "color": colour(&parts), "tooltip": tooltip},
    })];
    layer.extend(names.layer());
    json!({
        "title": names.title(),
        "data": {"values": values},
        "height": order.len() * (names.step() + 6),
        "encoding": {"y": names.channel(&order)},
        "layer": layer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_differs() {
        let names = Names::of(&[
            "completion time, link.forward.per = 0.001, receivers = 20",
            "completion time, link.forward.per = 0.001, receivers = 80",
        ]);
        assert_eq!(names.common, ["completion time", "link.forward.per = 0.001"]);
        assert_eq!(names.short, ["receivers = 20", "receivers = 80"]);
        assert!(names.are_beside());
        assert_eq!(names.title()["text"], json!(["completion time, link.forward.per = 0.001 (all rows)"]));
    }

    #[test]
    fn long_names_are_whole_and_in_lines() {
        let same = ["protocol.srt.n = 4, protocol.nak_timing = end_of_first_pass"; 2];
        assert_eq!(Names::of(&same).short[0], "protocol.srt.n = 4,\nprotocol.nak_timing = end_of_first_pass");
        let long = "x".repeat(100);
        let names = Names::of(&[&long, "y"]);
        assert_eq!(names.short[0].replace('\n', ""), long);
        assert!(names.short[0].lines().all(|line| line.chars().count() <= LINE) && !names.are_beside());
        assert_eq!(
            Names::of(&["protocol.nak_timing=end_of_first_pass (the scenario's)", "y"]).short[0],
            "protocol.nak_timing=end_of_first_pass (the\nscenario's)"
        );
        assert_eq!(Names::of(&["a, b"]).short, ["a, b"]);
        assert_eq!(Names::of(&["a\nb"]).short, ["a\\nb"], "a newline of a stranger");
        assert!(Names::of(&[]).short.is_empty());
    }
}
