//! Memory of a sender about a group: the receivers there, and the products of which they had older versions.
//!
//! Data may leave right after the announcement if two conditions hold. The receivers were there before, so that they
//! are most likely there again. And they did not compare with an older version the last time, so that no data was left
//! out.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::directory;

/// Most receivers and names that are remembered. The oldest names are forgotten first.
const RECEIVERS: usize = 10_000;
const NAMES: usize = 1000;

/// Memory of one group.
#[derive(Debug, Default)]
pub struct Known {
    path: Option<PathBuf>,
    receivers: BTreeSet<String>,
    names: VecDeque<String>,
}

impl Known {
    /// Loads the memory of `group`.
    pub fn load(group: SocketAddr) -> Self {
        let name = format!("known-{}.json", group.to_string().replace([':', '[', ']'], "_"));
        let path = directory().map(|directory| directory.join(name));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let value = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            let entries = value[key].as_array().cloned().unwrap_or_default();
            entries.iter().filter_map(|entry| entry.as_str().map(Into::into)).collect()
        };
        Self {
            path,
            receivers: list("receivers").into_iter().take(RECEIVERS).collect(),
            names: list("names").into_iter().take(NAMES).collect(),
        }
    }

    /// Returns `true` if all of `receivers` have received something from this sender before.
    pub fn has_all(&self, receivers: &[String]) -> bool {
        receivers.iter().all(|receiver| self.receivers.contains(receiver))
    }

    /// Returns `true` if receivers had an older version at the last transfer of a product called `name`.
    pub fn compares(&self, name: &str) -> bool {
        self.names.iter().any(|compared| compared == name)
    }

    /// Remembers that `receivers` have received a product called `name`, and in `compared` whether they had an older
    /// version.
    pub fn add<'a>(&mut self, name: &str, compared: bool, receivers: impl Iterator<Item = &'a str>) {
        let before = (self.receivers.len(), self.compares(name));
        for receiver in receivers.take(RECEIVERS.saturating_sub(self.receivers.len())) {
            self.receivers.insert(receiver.into());
        }
        self.names.retain(|other| other != name);
        if compared {
            self.names.push_back(name.into());
        }
        let more = (self.receivers.len(), compared) != before;
        while self.names.len() > NAMES {
            self.names.pop_front();
        }
        let Some(path) = self.path.as_ref().filter(|_| more) else { return };
        let text = json!({ "receivers": self.receivers, "names": self.names }).to_string();
        // Without this memory the next transfer begins a round trip later, and nothing else changes.
        if let Some(directory) = path.parent()
            && fs::create_dir_all(directory).is_ok()
        {
            let fresh = path.with_extension("new");
            let _ = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = Some(dir.path().join("sub/known.json"));
        let mut known = Known { path: path.clone(), ..Known::default() };
        assert!(!known.compares("a") && !known.has_all(&["x".into()]));
        known.add("a", true, ["x", "y"].into_iter());
        assert!(known.compares("a") && known.has_all(&["x".into(), "y".into()]));
        assert!(!known.compares("b") && !known.has_all(&["x".into(), "z".into()]));
        let read = || fs::read_to_string(path.as_ref().unwrap()).unwrap();
        assert_eq!(read(), r#"{"names":["a"],"receivers":["x","y"]}"#);
        known.add("a", false, ["x"].into_iter());
        assert!(!known.compares("a"));
        assert_eq!(read(), r#"{"names":[],"receivers":["x","y"]}"#);
    }

    #[test]
    fn the_oldest_names_are_forgotten() {
        let mut known = Known::default();
        for name in 0..1500 {
            known.add(&name.to_string(), true, std::iter::empty());
        }
        assert_eq!(known.names.len(), NAMES);
        assert!(known.compares("1499") && known.compares("500") && !known.compares("499"));
    }
}
