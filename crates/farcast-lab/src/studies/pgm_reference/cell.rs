//! Measurements of ns-2, each with the scenario that repeats it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use farcast_scenario::Document;

use crate::study::StudyError;

/// Part of the scenario that all cells share: the tree's trunk and the timers.
const TREE: &str = include_str!("tree.toml");
/// A TCP flow with SACK from S2 to R11, with a window of 100 packets.
const TCP: &str = include_str!("tcp.toml");

/// A measurement: its values by column name.
pub(super) struct ReferenceCell<'a> {
    fields: BTreeMap<&'a str, &'a str>,
    /// The first receiver behind the satellite.
    first_of_b: String,
}

impl<'a> ReferenceCell<'a> {
    /// Returns all cells of a table whose first line names the columns.
    pub(super) fn all(table: &'a str) -> Vec<Self> {
        let mut lines = table.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let cell = |line: &'a str| {
            let fields: BTreeMap<_, _> = names.iter().copied().zip(line.split(',')).collect();
            let receivers: u32 = fields.get("receivers").and_then(|text| text.parse().ok()).unwrap_or(10);
            Self { fields, first_of_b: format!("R{}", receivers / 2 + 1) }
        };
        lines.map(cell).collect()
    }

    fn text(&self, column: &str) -> &'a str {
        self.fields.get(column).copied().unwrap_or_default()
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    /// Returns the measured mean of `column`; `None` if it was not measured.
    pub(super) fn mean(&self, column: &str) -> Option<f64> {
        self.number(&format!("{column}_mean"))
    }

    /// Returns the number of measured runs.
    pub(super) fn runs(&self) -> u64 {
        self.text("seeds").parse().unwrap_or(1)
    }

    /// Returns the time for which the source sends, in seconds.
    pub(super) fn duration_s(&self) -> f64 {
        self.number("sim_s").unwrap_or_default()
    }

    /// Returns the octets of a packet's payload.
    pub(super) fn payload(&self) -> f64 {
        self.number("payload").unwrap_or(1.0)
    }

    /// Returns the receiver that the table calls R6, after its name in a tree of ten.
    pub(super) fn first_of_b(&self) -> &str {
        &self.first_of_b
    }

    fn has_tcp(&self) -> bool {
        self.text("tcp_background") == "1"
    }

    /// Returns `true` if all receivers behind the satellite lose the same packets.
    fn is_shared(&self) -> bool {
        self.text("loss_mode") == "link"
    }

    pub(super) fn case(&self) -> String {
        let losses = if self.is_shared() { "on the satellite's link" } else { "at each receiver" };
        let tcp = if self.has_tcp() { ", TCP beside it" } else { "" };
        format!("losses {losses}{tcp}")
    }

    pub(super) fn column(&self) -> String {
        let per: f64 = self.number("per").unwrap_or_default();
        format!("PER {per}")
    }

    /// Returns the scenario.
    pub(super) fn document(&self) -> Result<Document, StudyError> {
        let mut text = TREE.to_owned();
        let receivers: u32 = self.text("receivers").parse().unwrap_or(10);
        let half = receivers / 2;
        // Every host of ns-2 has an element, between its receiver and its link.
        for number in 1..=receivers {
            let _ = write!(
                text,
                "\n[[node]]\nname = \"R{number}\"\nkind = \"receiver\"\n\n[[node]]\nname = \"H{number}\"\nkind = \"element\"\n\
                 \n[[edge]]\nname = \"host{number}\"\nfrom = \"H{number}\"\nto = [\"R{number}\"]\nlink = {{}}\n"
            );
        }
        for (name, gateway, range) in [("a", "G1", 1..=half), ("b", "G2", half + 1..=receivers)] {
            let names: Vec<String> = range.map(|number| format!("\"H{number}\"")).collect();
            let _ = write!(
                text,
                "\n[[edge]]\nname = \"{name}\"\nfrom = \"{gateway}\"\nto = [{}]\neach = true\nsymmetric = true\n\
                 link.forward = {{ rate = \"100 Mbit/s\", delay = \"1 ms\", queue_packets = 50 }}\n",
                names.join(", ")
            );
        }
        if self.has_tcp() {
            text += TCP;
        }
        let mut document = Document::parse("pgm-reference", &text)?;
        let lossy = if self.is_shared() { "satellite" } else { "b" };
        let (cbr, duration) = (self.number("cbr_bps").unwrap_or_default(), self.duration_s());
        // One at both ends of the time.
        let octets = (cbr * duration / 8.0 / self.payload()).floor() * self.payload();
        for setting in [
            format!("edge.{lossy}.link.forward.per={}", self.text("per")),
            format!("edge.satellite.link.forward.delay=\"{} ms\"", self.text("sat_delay_ms")),
            format!("time_limit=\"{} s\"", duration + 31.0),
            format!("protocol.file=\"{octets} B\""),
            format!("protocol.segment_size=\"{} B\"", self.payload()),
            format!("protocol.source_rate=\"{cbr} bit/s\""),
        ] {
            document.set(&setting)?;
        }
        Ok(document)
    }
}
