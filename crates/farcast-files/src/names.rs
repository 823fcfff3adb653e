//! Detection of names that become one: by a mapping, or because a file system does not tell them apart.
//!
//! [`first_meeting`] tests a mapping of names before it is used. File systems do not say which names they take for the
//! same. `likeness` therefore finds the names that some file system takes for the same, and only these are tried out on
//! disk.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_normalization::UnicodeNormalization;

/// Two names that a mapping makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The first name.
    pub first: Vec<u8>,
    /// The name that would replace it.
    pub second: Vec<u8>,
    /// The name to which both are mapped.
    pub name: Vec<u8>,
}

/// Returns the first two of `names` that `mapping` makes one, or of which it makes one a directory of the other. The
/// mapping returns paths.
pub fn first_meeting<'a>(
    names: impl IntoIterator<Item = &'a [u8]>,
    mapping: impl Fn(&[u8]) -> Vec<u8>,
) -> Option<Meeting> {
    let mut files: BTreeMap<Vec<u8>, &[u8]> = BTreeMap::new();
    let mut directories: BTreeMap<Vec<u8>, &[u8]> = BTreeMap::new();
    for second in names {
        let path = mapping(second);
        let meets = |first: &[u8], name: &[u8]| {
            Some(Meeting { first: first.to_vec(), second: second.to_vec(), name: name.to_vec() })
        };
        if let Some(first) = files.get(&path).or_else(|| directories.get(&path)) {
            return meets(first, &path);
        }
        for (end, _) in path.iter().enumerate().filter(|(_, octet)| **octet == b'/') {
            if let Some(first) = files.get(&path[..end]) {
                return meets(first, &path[..end]);
            }
            directories.entry(path[..end].to_vec()).or_insert(second);
        }
        files.insert(path, second);
    }
    None
}

/// Returns a number that is equal for names that some file system may take for the same. Such names differ only in
/// case, in the Unicode form of a character, in invisible characters, or in dots and spaces at the end of a component.
pub(crate) fn likeness(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for component in path.split(|octet| *octet == b'/') {
        skeleton(component).hash(&mut hasher);
    }
    hasher.finish()
}

fn skeleton(component: &[u8]) -> String {
    let mut text = if component.is_ascii() {
        String::from_utf8_lossy(component).to_ascii_lowercase()
    } else {
        let text = String::from_utf8_lossy(component);
        // Uppercase first: one capital letter may have two small ones.
        let folded = text.nfkd().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
        folded.nfkd().filter(|one| !is_unseen(*one)).collect()
    };
    text.truncate(text.trim_end_matches(['.', ' ']).len());
    text
}

/// Returns `true` for an invisible character, which HFS+ and other file systems ignore in names.
fn is_unseen(one: char) -> bool {
    matches!(one, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_file_system_folds_are_alike() {
        for (one, other) in [
            ("d/README", "d/readme"),
            ("D/x", "d/X"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("CAF\u{c9}", "cafe\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            ("a.", "a"),
            ("a ", "a"),
            ("\u{3a3}\u{3c2}", "\u{3c3}\u{3c3}"),
            ("a\u{200d}b", "ab"),
            ("\u{212a}", "k"),
            ("d./x", "d/x"),
        ] {
            assert_eq!(likeness(one.as_bytes()), likeness(other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("a", "b"), ("a/b", "ab"), ("a/b", "a_b"), ("a.b", "ab"), ("", "x")] {
            assert_ne!(likeness(one.as_bytes()), likeness(other.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn the_first_two_that_meet_are_named() {
        let flat =
            |name: &[u8]| name.iter().map(|octet| if *octet == b'/' { b'_' } else { *octet }).collect();
        let names = |list: &[&'static str]| list.iter().map(|name| name.as_bytes()).collect::<Vec<_>>();
        assert_eq!(first_meeting(names(&["a/b", "a/c", "ab"]), flat), None);
        let met = first_meeting(names(&["d/x/y", "e", "d/x_y", "d_x_y"]), flat);
        let (first, second, name) = (b"d/x/y".to_vec(), b"d/x_y".to_vec(), b"d_x_y".to_vec());
        assert_eq!(met, Some(Meeting { first, second, name }));
        let as_it_is = |name: &[u8]| name.to_vec();
        assert_eq!(first_meeting(names(&["d/x", "d/y", "e/d"]), as_it_is), None);
        for (one, other) in [("d", "d/x/y"), ("d/x/y", "d")] {
            let met = first_meeting(names(&["d0", one, other]), as_it_is).map(|met| met.name);
            assert_eq!(met, Some(b"d".to_vec()), "{one} {other}");
        }
    }
}
