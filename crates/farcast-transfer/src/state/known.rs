//! Memory of a sender about a group: the products of which receivers there have an older version, or a part.
//!
//! Data leaves right after the announcement of any other product. Receivers of these products are asked first, so that
//! what they have is left out.

use std::collections::VecDeque;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::directory;

/// Most names that are remembered. The oldest are forgotten first.
const NAMES: usize = 1000;

/// Memory of one group.
#[derive(Debug, Default)]
pub struct Known {
    path: Option<PathBuf>,
    names: VecDeque<String>,
}

impl Known {
    /// Loads the memory of `group`.
    pub fn load(group: SocketAddr) -> Self {
        let name = format!("known-{}.json", group.to_string().replace([':', '[', ']'], "_"));
        let path = directory().map(|directory| directory.join(name));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let value = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
        let entries = value["names"].as_array().cloned().unwrap_or_default();
        let names = entries.iter().filter_map(|entry| entry.as_str().map(Into::into));
        Self { path, names: names.take(NAMES).collect() }
    }

    /// Returns `true` if receivers had an older version at the last transfer of a product called `name`, or if that
    /// transfer did not bring it to all of them.
    pub fn has_some(&self, name: &str) -> bool {
        self.names.iter().any(|one| one == name)
    }

    /// Remembers in `some` if receivers have an older version, or a part, of a product called `name`.
    pub fn add(&mut self, name: &str, some: bool) {
        let before = self.has_some(name);
        self.names.retain(|other| other != name);
        if some {
            self.names.push_back(name.into());
        }
        while self.names.len() > NAMES {
            self.names.pop_front();
        }
        let Some(path) = self.path.as_ref().filter(|_| some != before) else { return };
        let text = json!({ "names": self.names }).to_string();
        // Without this memory the next transfer sends the data of a round trip in vain, and nothing else changes.
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
        assert!(!known.has_some("a"));
        known.add("a", true);
        assert!(known.has_some("a") && !known.has_some("b"));
        let read = || fs::read_to_string(path.as_ref().unwrap()).unwrap();
        assert_eq!(read(), r#"{"names":["a"]}"#);
        known.add("a", false);
        assert!(!known.has_some("a"));
        assert_eq!(read(), r#"{"names":[]}"#);
    }

    #[test]
    fn the_oldest_names_are_forgotten() {
        let mut known = Known::default();
        for name in 0..1500 {
            known.add(&name.to_string(), true);
        }
        assert_eq!(known.names.len(), NAMES);
        assert!(known.has_some("1499") && known.has_some("500") && !known.has_some("499"));
    }
}
