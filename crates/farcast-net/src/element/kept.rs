//! Content of datagrams that an element's engine asks to keep, in memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Contents by key, with a bound on their octets.
#[derive(Debug)]
pub(super) struct Kept {
    contents: BTreeMap<u64, Vec<u8>>,
    octets: u64,
    most: u64,
    /// Buffers of contents that were let go, to be filled again.
    spare: Vec<Vec<u8>>,
}

/// Most buffers that wait to be filled again.
const MOST_SPARE: usize = 1024;

impl Kept {
    /// Returns a store for at most `most` octets.
    pub(super) fn new(most: u64) -> Self {
        Self { contents: BTreeMap::new(), octets: 0, most, spare: Vec::new() }
    }

    /// Keeps `content` under `key`. Returns `false` if there is no room.
    pub(super) fn keep(&mut self, key: u64, content: &[u8]) -> bool {
        self.forget(key..key.saturating_add(1));
        let len = content.len() as u64;
        if self.octets + len > self.most {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(content);
        self.octets += len;
        self.contents.insert(key, buffer);
        true
    }

    /// Drops the contents of these keys.
    pub(super) fn forget(&mut self, keys: Range<u64>) {
        while let Some((&key, _)) = self.contents.range(keys.clone()).next() {
            let Some(buffer) = self.contents.remove(&key) else { return };
            self.octets -= buffer.len() as u64;
            if self.spare.len() < MOST_SPARE {
                self.spare.push(buffer);
            }
        }
    }

    /// Returns the content under `key`.
    pub(super) fn content(&self, key: u64) -> Option<&[u8]> {
        self.contents.get(&key).map(Vec::as_slice)
    }

    /// Returns the number of octets that are kept.
    pub(super) fn octets(&self) -> u64 {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_until_it_is_let_go() {
        let mut kept = Kept::new(10);
        assert!(kept.keep(1, b"abcd") && kept.keep(2, b"efgh"));
        assert!(!kept.keep(3, b"ijk"), "more than it was made for");
        assert_eq!((kept.content(1), kept.content(3), kept.octets()), (Some(&b"abcd"[..]), None, 8));
        assert!(kept.keep(1, b"z"), "in place of what was there");
        assert_eq!((kept.content(1), kept.octets()), (Some(&b"z"[..]), 5));
        kept.forget(0..2);
        assert_eq!((kept.content(1), kept.content(2), kept.octets()), (None, Some(&b"efgh"[..]), 4));
        kept.forget(0..u64::MAX);
        assert_eq!(kept.octets(), 0);
    }
}
