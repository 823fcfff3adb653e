//! Results of replications as a table of numbers: a row for each replication, a column for each figure.
//!
//! The name of a column is the path of the figure in `simulate --json`: keys with dots between them, and names of
//! members in place of lists. Summaries, sweeps, bounds and files use the same names: `completion_time_s`,
//! `forward.octets`, `naks.sent`, `flows.download.goodput_bit_per_s`, `stages.uplink.dropped`. Former names of
//! figures are still understood ([`canonical`]). Lists of numbers, such as the packets of each pass, are not columns.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

/// Numbers of replications. A figure that a replication lacks is not-a-number in its row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Figures {
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    rows: usize,
    /// Index of each name.
    places: HashMap<String, usize>,
}

impl Figures {
    /// Creates a table without replications.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a table of these columns; `None` if their lengths differ or a name comes twice.
    pub fn of(columns: impl IntoIterator<Item = (String, Vec<f64>)>) -> Option<Self> {
        let mut table = Self::default();
        let mut rows = None;
        for (name, values) in columns {
            if *rows.get_or_insert(values.len()) != values.len() || table.places.contains_key(&name) {
                return None;
            }
            table.places.insert(name.clone(), table.names.len());
            table.names.push(name);
            table.columns.push(values);
        }
        table.rows = rows.unwrap_or_default();
        Some(table)
    }

    /// Adds a row with all numbers of a replication's result. `true` counts as 1, `false` as 0.
    pub fn push(&mut self, replication: &impl Serialize) {
        // A value that is not JSON would have no figures; results always are JSON.
        let value = serde_json::to_value(replication).unwrap_or_default();
        self.take(&mut String::new(), &value);
        self.rows += 1;
        for column in &mut self.columns {
            column.resize(self.rows, f64::NAN);
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns `true` if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the columns, ordered by name, the completion time first.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let mut all: Vec<_> =
            self.names.iter().map(String::as_str).zip(self.columns.iter().map(Vec::as_slice)).collect();
        all.retain(|(name, values)| !self.is_hollow(name, values));
        all.sort_unstable_by_key(|&(name, _)| order(name));
        all.into_iter()
    }

    /// Returns the values of a figure, one for each replication.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.places.get(name).map(|&place| self.columns[place].as_slice())
    }

    /// Returns the column for which `name` stands: its name, its former name, or its name with underscores in place
    /// of dots.
    pub fn find(&self, name: &str) -> Option<&str> {
        find(name, self.names.iter().map(String::as_str))
    }

    /// Returns `true` if the replications can be complete: a transfer, or a flow of a given size.
    pub fn has_end(&self) -> bool {
        let is_end = |name: &String| {
            name == "incomplete" || (name.starts_with("flows.") && name.ends_with(".completion_time_s"))
        };
        self.names.iter().any(is_end)
    }

    /// Returns `true` for a column that has no values because its figure is a group of others. An example is
    /// `receiver_time_s` in replications in which no receiver had the file, beside `receiver_time_s.p50` in others.
    fn is_hollow(&self, name: &str, values: &[f64]) -> bool {
        let is_part = |other: &String| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        values.iter().all(|value| value.is_nan()) && self.names.iter().any(is_part)
    }

    fn take(&mut self, path: &mut String, value: &Value) {
        match value {
            Value::Number(number) => self.set(path, number.as_f64().unwrap_or(f64::NAN)),
            Value::Bool(truth) => self.set(path, f64::from(u8::from(*truth))),
            Value::Null => self.set(path, f64::NAN),
            Value::Object(map) => {
                for (key, value) in map {
                    // The index only identifies the replication.
                    if !(path.is_empty() && key == "index") {
                        self.below(path, key, value);
                    }
                }
            }
            Value::Array(members) => {
                for member in members {
                    if let Some(name) = member.get("name").and_then(Value::as_str) {
                        self.below(path, name, member);
                    }
                }
            }
            Value::String(_) => {}
        }
    }

    fn below(&mut self, path: &mut String, key: &str, value: &Value) {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        self.take(path, value);
        path.truncate(length);
    }

    /// Puts a value into the row under construction.
    fn set(&mut self, name: &str, value: f64) {
        let place = if let Some(&place) = self.places.get(name) {
            place
        } else {
            self.names.push(name.to_owned());
            self.columns.push(Vec::new());
            self.places.insert(name.to_owned(), self.names.len() - 1);
            self.names.len() - 1
        };
        let column = &mut self.columns[place];
        column.resize(self.rows, f64::NAN);
        column.push(value);
    }
}

/// Former names of figures in summaries, predictions and bounds, each with the present name.
const FORMER: [(&str, &str); 9] = [
    ("octets_forward", "forward.octets"),
    ("forward_octets", "forward.octets"),
    ("octets_return", "return.octets"),
    ("return_octets", "return.octets"),
    ("airtime_forward_s", "forward.airtime_s"),
    ("forward_airtime_s", "forward.airtime_s"),
    ("airtime_return_s", "return.airtime_s"),
    ("return_airtime_s", "return.airtime_s"),
    ("median_receiver_time_s", "receiver_time_s.p50"),
];

/// Returns the present name of a figure: `forward.octets` for `octets_forward`. Other names are returned unchanged.
pub fn canonical(name: &str) -> &str {
    FORMER.iter().find(|(former, _)| *former == name).map_or(name, |(_, now)| now)
}

/// Returns the one of `names` for which `name` stands, as [`Figures::find`] does.
pub(crate) fn find<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<&str> = names.into_iter().collect();
    let is = |meant: &str| names.iter().copied().find(|other| *other == meant);
    let in_one_word = || names.iter().copied().find(|other| other.replace('.', "_") == name);
    is(name).or_else(|| is(canonical(name))).or_else(in_one_word)
}

/// Returns a sort key of a figure's name; the completion time comes first.
pub(crate) fn order(name: &str) -> (bool, &str) {
    (name != "completion_time_s", name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(replications: &[Value]) -> Figures {
        let mut figures = Figures::new();
        for one in replications {
            figures.push(one);
        }
        figures
    }

    #[test]
    fn names_are_paths() {
        let figures = table(&[json!({
            "index": 0, "completion_time_s": 2.5, "passes": [1, 2], "forward": {"octets": 12}, "done": true,
            "flows": [{"name": "a", "protocol": "tcp", "goodput_bit_per_s": 3.0}, {"name": "b", "loss": 0.5}],
        })]);
        let all: Vec<_> = figures.columns().map(|(name, values)| (name, values.to_vec())).collect();
        assert_eq!(
            all,
            [
                ("completion_time_s", vec![2.5]),
                ("done", vec![1.0]),
                ("flows.a.goodput_bit_per_s", vec![3.0]),
                ("flows.b.loss", vec![0.5]),
                ("forward.octets", vec![12.0]),
            ]
        );
        assert!(figures.column("index").is_none() && figures.column("passes").is_none());
    }

    #[test]
    fn what_is_absent_is_no_number_in_its_own_row() {
        let figures = table(&[
            json!({"a": 1, "time": null}),
            json!({"a": 2, "b": 5, "time": {"p50": 7}}),
            json!({"b": 6, "time": {"p50": 8}}),
        ]);
        let shown = |name| figures.column(name).map(|values| format!("{values:?}"));
        assert_eq!(shown("a").as_deref(), Some("[1.0, 2.0, NaN]"));
        assert_eq!(shown("b").as_deref(), Some("[NaN, 5.0, 6.0]"));
        assert_eq!(shown("time.p50").as_deref(), Some("[NaN, 7.0, 8.0]"));
        let names: Vec<_> = figures.columns().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "time.p50"], "a group that is absent once is no column");
        assert_eq!(figures.len(), 3);
    }

    #[test]
    fn a_figure_answers_to_the_names_that_it_had() {
        let figures = table(&[json!({
            "naks": {"sent": 1}, "forward": {"octets": 2}, "return": {"octets": 3}, "octets_return": 4,
        })]);
        for (said, meant) in [
            ("forward.octets", Some("forward.octets")),
            ("octets_forward", Some("forward.octets")),
            ("forward_octets", Some("forward.octets")),
            ("naks_sent", Some("naks.sent")),
            ("octets_return", Some("octets_return")),
            ("return_octets", Some("return.octets")),
            ("naks", None),
        ] {
            assert_eq!(figures.find(said), meant, "{said}");
        }
    }

    #[test]
    fn columns_have_one_length_and_a_name_each() {
        let column = |name: &str, values: &[f64]| (name.to_owned(), values.to_vec());
        assert!(Figures::of([column("a", &[1.0]), column("b", &[1.0, 2.0])]).is_none());
        assert!(Figures::of([column("a", &[1.0]), column("a", &[2.0])]).is_none());
        let figures = Figures::of([column("a", &[1.0, 2.0])]).unwrap();
        assert_eq!((figures.len(), figures.column("a")), (2, Some(&[1.0, 2.0][..])));
    }
}
