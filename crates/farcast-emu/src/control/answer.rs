//! What a running emulation answers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::request::{Change, Way};
use super::snapshot::Snapshot;

/// A line from the emulation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The request was done.
    Ok(Answer),
    /// It was not; one sentence says why.
    Error(String),
    /// A snapshot of a watch, which answers no request.
    Snapshot(Box<Snapshot>),
}

/// What a request gives.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(from = "Outcome")]
pub enum Answer {
    /// Nothing but that it was done.
    Done,
    /// To [`Request::Snapshot`](super::Request::Snapshot).
    Snapshot(Box<Snapshot>),
    /// To [`Request::Describe`](super::Request::Describe).
    Description(Box<Description>),
}

/// An answer as it is written.
#[derive(Deserialize)]
struct Outcome {
    snapshot: Option<Box<Snapshot>>,
    description: Option<Box<Description>>,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome { snapshot: Some(snapshot), .. } => Self::Snapshot(snapshot),
            Outcome { description: Some(description), .. } => Self::Description(description),
            Outcome { .. } => Self::Done,
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Done => {}
            Self::Snapshot(snapshot) => map.serialize_entry("snapshot", snapshot)?,
            Self::Description(description) => map.serialize_entry("description", description)?,
        }
        map.end()
    }
}

/// What is emulated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Description {
    /// The version of farcast.
    pub version: String,
    /// The emulation's process.
    pub pid: u32,
    /// The link or scenario: a path, or the name of one that ships with farcast.
    pub link: String,
    /// The seed of its random streams.
    pub seed: u64,
    /// The stages of the link, in the order in which the way forward passes them, then those of the way back alone.
    pub stages: Vec<StageDescription>,
    /// The changes of settings since the start, of each way and stage together; of two that name the same setting the later
    /// one holds. Outages pass, and are not among them.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The hosts, the hub first.
    pub hosts: Vec<HostDescription>,
}

/// A stage of the link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageDescription {
    /// The name by which [`Change`](super::Change) reaches it; one of `link.forward` and `link.return` may have none.
    pub name: Option<String>,
    /// Its kind, as in a link's file.
    pub kind: String,
    /// The way that passes it; both without one.
    pub way: Option<Way>,
    /// Its settings at the start, as in a link's file.
    pub settings: BTreeMap<String, String>,
}

/// A host behind the link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostDescription {
    /// Its name: `near`, `far`, `hub`, `terminal 2`.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The terminal's number, from 0; the hub has none.
    pub terminal: Option<u32>,
}
