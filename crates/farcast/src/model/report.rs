//! Inputs and results of a model, for people and for programs.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::table::{Align, Table};
use crate::text::Text;

/// Value with its unit.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    /// Number in this unit, which the key names too. An infinite or absent number is null for programs.
    Number(f64, &'static str),
    /// Number of octets, packets or links, with that word.
    Count(u64, &'static str),
    /// Rate in bit/s, shown in kbit/s to people.
    BitRate(f64),
    /// Word for programs, and its meaning for people.
    Word(&'static str, &'static str),
}

/// Line of the tables, and key of the object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    key: &'static str,
    label: &'static str,
    value: Value,
}

impl Line {
    pub(super) fn new(key: &'static str, label: &'static str, value: Value) -> Self {
        Self { key, label, value }
    }

    pub(super) fn seconds(key: &'static str, label: &'static str, seconds: f64) -> Self {
        Self::new(key, label, Value::Number(seconds, "s"))
    }

    pub(super) fn number(key: &'static str, label: &'static str, number: f64) -> Self {
        Self::new(key, label, Value::Number(number, ""))
    }
}

/// Inputs and results of a model.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Report {
    /// Name of the model on the command line.
    pub(super) model: &'static str,
    /// Name of the model, and the kind of transfer that it describes.
    pub(super) title: &'static str,
    /// Inputs in effect.
    pub(super) given: Vec<Line>,
    /// Results.
    pub(super) found: Vec<Line>,
}

impl Report {
    /// Returns the tables for people.
    pub(super) fn text(&self) -> Text {
        let tables = [table("given", &self.given), table("found", &self.found)];
        Text::line(self.title).paragraph(Text::paragraphs(tables))
    }
}

/// Serialises one object: the model's name, its inputs and its results.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        for Line { key, value, .. } in self.given.iter().chain(&self.found) {
            match value {
                Value::Number(number, _) | Value::BitRate(number) => map.serialize_entry(key, number)?,
                Value::Count(count, _) => map.serialize_entry(key, count)?,
                Value::Word(word, _) => map.serialize_entry(key, word)?,
            }
        }
        map.end()
    }
}

fn table(heading: &str, lines: &[Line]) -> Text {
    let mut table = Table::new(&[(heading, Align::Left), ("", Align::Right), ("", Align::Left)]);
    for Line { label, value, .. } in lines {
        let (number, unit) = match value {
            Value::Number(number, unit) if number.is_finite() => (digits(*number), *unit),
            Value::Number(..) => ("none".into(), ""),
            Value::Count(count, unit) => (count.to_string(), *unit),
            Value::BitRate(bits_per_s) => (digits(bits_per_s / 1000.0), "kbit/s"),
            Value::Word(_, meaning) => (String::new(), *meaning),
        };
        table.row([(*label).to_owned(), number, unit.to_owned()]);
    }
    table.render()
}

/// Returns five significant digits, without trailing zeros in a fraction.
fn digits(number: f64) -> String {
    let size = number.abs();
    if size > 0.0 && !(1e-4..1e9).contains(&size) {
        return format!("{number:.4e}");
    }
    let places = (1..=8).find(|&places| size * 10_f64.powi(places) >= 1e4).unwrap_or(4);
    let places = if size >= 1e4 { 0 } else { usize::try_from(places).unwrap_or(0) };
    let fixed = format!("{number:.places$}");
    if places == 0 { fixed } else { fixed.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_are_enough() {
        for (number, text) in [
            (0.0, "0"),
            (0.56, "0.56"),
            (1.654_321_9, "1.6543"),
            (52.297_8, "52.298"),
            (14_700.4, "14700"),
            (0.000_5, "0.0005"),
            (0.000_012_345_6, "1.2346e-5"),
            (1234.0, "1234"),
            (2.5e12, "2.5000e12"),
        ] {
            assert_eq!(digits(number), text);
        }
    }

    #[test]
    fn what_has_no_bound_is_null_for_programs_and_none_for_people() {
        let given = vec![Line::new("window_packets", "window", Value::Number(f64::INFINITY, "packets"))];
        let report = Report { model: "m", title: "t", given, found: Vec::new() };
        assert_eq!(
            serde_json::to_string(&report).expect("an object"),
            r#"{"model":"m","window_packets":null}"#
        );
        assert!(report.text().to_string().contains("window  none"), "{}", report.text());
    }
}
