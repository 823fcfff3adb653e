//! Answers of a running emulation.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::request::{Change, LinkDirection};
use super::snapshot::Snapshot;

/// A line from the emulation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerLine {
    /// The request was done.
    Ok(Answer),
    /// The request failed; one sentence gives the reason.
    Error(String),
    /// A snapshot of a watch, which answers no request.
    Snapshot(Box<Snapshot>),
}

/// Result of a request that succeeded.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(from = "Outcome")]
pub enum Answer {
    /// No data: the request was done.
    Done,
    /// Answer to [`Request::Snapshot`](super::Request::Snapshot).
    Snapshot(Box<Snapshot>),
    /// Answer to [`Request::Describe`](super::Request::Describe).
    Description(Box<Description>),
}

/// Wire form of an answer.
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

/// Description of an emulation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Description {
    /// The version of farcast.
    pub version: String,
    /// Process id of the emulation.
    pub pid: u32,
    /// The link or scenario: a path, or the name of one that ships with farcast.
    pub link: String,
    /// Seed of the random streams.
    pub seed: u64,
    /// Stages of the link, in the order in which the forward direction passes them, then those of the return direction
    /// alone.
    pub stages: Vec<StageDescription>,
    /// Changes of settings since the start, joined by direction and stage; the last value of each setting holds.
    /// Outages pass, and are not included.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The hosts, the hub first.
    pub hosts: Vec<HostDescription>,
}

/// A stage of the link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageDescription {
    /// Name by which [`Change`](super::Change) selects the stage; a stage of `link.forward` and `link.return` may have
    /// none.
    pub name: Option<String>,
    /// Kind of the stage, as in a link's file.
    pub kind: String,
    /// Direction that passes the stage; both if absent.
    pub way: Option<LinkDirection>,
    /// Settings of the stage at the start, as in a link's file.
    pub settings: BTreeMap<String, String>,
}

/// A host behind the link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostDescription {
    /// Name of the host: `near`, `far`, `hub`, `terminal 2`.
    pub name: String,
    /// Address of the host.
    pub address: Ipv4Addr,
    /// Number of the terminal, from 0; absent for the hub.
    pub terminal: Option<u32>,
}
