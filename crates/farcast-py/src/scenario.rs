//! Scenarios.

use std::sync::{Mutex, PoisonError};

use farcast_lab::traffic::send_over;
use farcast_lab::{World, shipped};
use farcast_scenario::document::{Document, Origin};
use pyo3::prelude::*;

use crate::errors::wrong;

/// A scenario with the settings laid over it.
#[pyclass(frozen, module = "farcast._native")]
pub(crate) struct Scenario(Mutex<Document>);

impl Scenario {
    /// Returns a copy of the document.
    pub(crate) fn document(&self) -> Document {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Scenario {
    /// Opens the scenario in a file, or the shipped one of this name.
    #[staticmethod]
    fn open(name: &str) -> PyResult<Self> {
        shipped::open(name).map(|document| Self(Mutex::new(document))).map_err(wrong)
    }

    /// Parses a TOML document; `name` is its name in errors.
    #[staticmethod]
    fn parse(name: &str, text: &str) -> PyResult<Self> {
        Document::parse(name, text).map(|document| Self(Mutex::new(document))).map_err(wrong)
    }

    /// Creates a scenario from a JSON object with its keys.
    #[staticmethod]
    fn of_json(json: &str) -> PyResult<Self> {
        let value: toml::Table = serde_json::from_str(json).map_err(wrong)?;
        Self::parse("scenario", &toml::to_string(&value).map_err(wrong)?)
    }

    /// Returns the scenario with `KEY=VALUE` laid over it, and with flows added if it is a link alone.
    fn with_settings(&self, assignments: Vec<String>, traffic: Vec<String>) -> PyResult<Self> {
        let mut document = self.document();
        for assignment in assignments {
            document.set(&assignment).map_err(wrong)?;
        }
        send_over(&mut document, &traffic).map_err(wrong)?;
        Ok(Self(Mutex::new(document)))
    }

    /// Returns the document as TOML, with the settings laid over it.
    fn text(&self) -> String {
        self.document().in_effect()
    }

    /// Returns the tuning settings of the scenario, as JSON.
    fn wish(&self) -> PyResult<String> {
        let wish = farcast_lab::tune::TuneTable::read(&self.document()).map_err(wrong)?;
        let cases: Vec<_> =
            wish.cases.iter().map(|case| serde_json::json!({"name": case.name, "set": case.set})).collect();
        Ok(serde_json::json!({
            "vary": wish.vary, "minimise": wish.minimise, "subject_to": wish.subject_to, "robust": wish.robust,
            "cases": cases,
        })
        .to_string())
    }

    /// Returns every key in effect: name, value as TOML, and origin.
    fn keys(&self) -> PyResult<Vec<(String, String, &'static str)>> {
        let document = self.document();
        World::read(&document).map_err(wrong)?;
        let origin = |origin| match origin {
            Origin::File => "file",
            Origin::Setting => "set",
            Origin::Default => "default",
        };
        Ok(document.keys_read().into_iter().map(|(key, value, from)| (key, value, origin(from))).collect())
    }
}

/// Returns the shipped scenarios and links: name, title, and kind.
#[pyfunction]
#[pyo3(name = "shipped")]
pub(crate) fn shipped_documents() -> Vec<(&'static str, &'static str, &'static str)> {
    let of = |kind| move |one: shipped::Shipped| (one.name(), one.title(), kind);
    shipped::scenarios().map(of("scenario")).chain(shipped::links().map(of("link"))).collect()
}
