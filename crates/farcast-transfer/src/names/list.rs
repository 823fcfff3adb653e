//! Lists of receivers in files, which `--receivers @FILE` reads.
//!
//! A file has one receiver in each line, written as on the command line. Text behind `#` at the beginning of a line or
//! after a space is a comment. Empty lines are passed over.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{check, trimmed};
use crate::Error;
use crate::keys::lines;

/// Mark of a file in a list.
const MARK: char = '@';
/// Most lines of a file.
const MOST_LINES: usize = 100_000;
/// Most octets of a file. That is more than as many lines with the longest names need.
const MOST_OCTETS: u64 = 32 << 20;

/// Lines of files that name receivers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins {
    files: Vec<PathBuf>,
    /// File and line of each receiver, by its name.
    lines: HashMap<String, Origin>,
}

/// Line that names a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin {
    /// Index of the file.
    file: usize,
    line: usize,
}

/// Returns the files that `receivers`, as written on a command line, refer to.
pub fn files(receivers: &[String]) -> impl Iterator<Item = &Path> {
    receivers.iter().filter_map(|one| one.strip_prefix(MARK)).map(Path::new)
}

/// Replaces each `@FILE` in `receivers` by the receivers that the file names. Returns their origins.
///
/// # Errors
/// A file cannot be read, a line is no receiver, or a receiver is named twice.
pub fn read(receivers: &mut Vec<String>) -> Result<Origins, Error> {
    let mut origins = Origins::default();
    let (marked, mut all): (Vec<String>, Vec<String>) =
        std::mem::take(receivers).into_iter().partition(|one| one.starts_with(MARK));
    let named: HashSet<String> = all.iter().cloned().collect();
    for path in files(&marked) {
        origins.read(path, &named, &mut all)?;
    }
    *receivers = all;
    Ok(origins)
}

impl Origins {
    /// Returns the line that names `name`, as the beginning of an error, or nothing for a receiver that no file names.
    pub(crate) fn of(&self, name: &str) -> String {
        let place = |origin: &Origin| format!("{}:{}: ", self.files[origin.file].display(), origin.line);
        self.lines.get(name).map_or_else(String::new, place)
    }

    /// Adds the receivers that the file at `path` names to `all`. The command line itself names those of `named`.
    fn read(&mut self, path: &Path, named: &HashSet<String>, all: &mut Vec<String>) -> Result<(), Error> {
        let origin = path.display().to_string();
        let octets = octets(path).map_err(|error| unreadable(path, &error))?;
        let octets = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&octets);
        let file = self.files.len();
        self.files.push(path.to_owned());
        let before = all.len();
        for (line, text) in lines::of(octets, &origin)? {
            let wrong = |what: &dyn Display| Err(lines::wrong(&origin, line, what));
            if line > MOST_LINES {
                return wrong(&format!(
                    "a file names receivers in {MOST_LINES} lines at most: split the list over several transfers"
                ));
            }
            let name = receiver(text);
            if name.is_empty() {
                continue;
            }
            if name.contains(',') {
                return wrong(&format!("{name:?} has a comma: write each receiver in a line of its own"));
            }
            check(&format!("{origin}:{line}: a receiver"), &name)?;
            if named.contains(&name) {
                return wrong(&format!("{name:?} is in --receivers itself, too: remove one of them"));
            }
            if self.lines.contains_key(&name) {
                let first = self.of(&name);
                let first = first.trim_end_matches(": ");
                return wrong(&format!("{name:?} is named twice, first in {first}: remove one of them"));
            }
            self.lines.insert(name.clone(), Origin { file, line });
            all.push(name);
        }
        if all.len() == before {
            return Err(Error::usage(format!(
                "--receivers: \"{origin}\" names no receiver: write one in each line"
            )));
        }
        Ok(())
    }
}

/// Returns the receiver that a line names; empty without one.
fn receiver(line: &str) -> String {
    let comment = line
        .char_indices()
        .find(|&(at, c)| c == '#' && line[..at].chars().next_back().is_none_or(char::is_whitespace));
    let text = comment.map_or(line, |(at, _)| &line[..at]);
    let Ok(name) = trimmed(text);
    name
}

/// Reads the file at `path`.
#[expect(clippy::disallowed_methods, reason = "the list is the user's, and no file of a product")]
fn octets(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path)?.take(MOST_OCTETS + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > MOST_OCTETS {
        return Err(io::Error::other(format!(
            "it is no list of receivers, as it has over {MOST_OCTETS} octets"
        )));
    }
    Ok(octets)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    Error::usage(format!(
        "--receivers: cannot read \"{path}\": {error}; {MARK} stands before the name of a file, and a receiver whose name \
         begins with it can be named in a file"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `values`, in which `%` stands for the file with `text`.
    fn of(text: &[u8], values: &[&str]) -> Result<Vec<String>, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("list");
        std::fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        let mut receivers: Vec<String> = values.iter().map(|one| one.replace('%', &path)).collect();
        let read = read(&mut receivers);
        read.map(|_| receivers).map_err(|error| error.sentence.replace(&path, "%"))
    }

    #[test]
    fn a_line_names_a_receiver_as_the_list_does() {
        let text =
            b"\xEF\xBB\xBF# stations\r\n\r\n r1 \r\n10.0.0.1 # Oslo\nfe80::1%e0\n\t\na b#c\n@home\n  # end";
        let expected = ["7", "r1", "10.0.0.1", "fe80::1", "a b#c", "@home"];
        assert_eq!(of(text, &["@%", "7"]).unwrap(), expected);
        assert_eq!(of(b"r1", &["a", "b"]).unwrap(), ["a", "b"]);
    }

    #[test]
    fn errors_say_the_line_and_the_remedy() {
        let long = "n".repeat(65);
        for (text, values, parts) in [
            (&b"a\n\na\n"[..], &["@%"][..], ["%:3: \"a\" is named twice", "%:1: remove one"]),
            (b"a\nb", &["b", "@%"], ["%:2: \"b\" is in --receivers", "remove one"]),
            (b"a\n", &["@%", "@%"], ["%:1: \"a\" is named twice", "%:1"]),
            (b"a\nb,c", &["@%"], ["%:2: \"b,c\" has a comma", "a line of its own"]),
            (b"#\n a\x07b\n", &["@%"], ["%:2: a receiver", "control character"]),
            (long.as_bytes(), &["@%"], ["%:1: a receiver", "1 to 64 bytes"]),
            (b"a\n\xFF\n", &["@%"], ["%:2:", "UTF-8"]),
            (b"# nobody\n\n", &["x", "@%"], ["\"%\" names no receiver", "one in each line"]),
            (b"", &["@%.absent"], ["cannot read \"%.absent\"", "@ stands before"]),
            (b"", &["@/"], ["cannot read \"/\"", "directory"]),
        ] {
            let said = of(text, values).unwrap_err();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn a_list_has_an_end() {
        let name = |n: usize| format!("station-{n}");
        let lines = |n: usize| (0..n).map(name).collect::<Vec<_>>().join("\n").into_bytes();
        assert_eq!(of(&lines(MOST_LINES), &["@%"]).map(|all| all.len()), Ok(MOST_LINES));
        let said = of(&lines(MOST_LINES + 1), &["@%"]).unwrap_err();
        assert!(said.starts_with("%:100001: a file names receivers in 100000 lines"), "{said}");
        let said = of(&vec![b'\n'; 32 << 20 | 1], &["@%"]).unwrap_err();
        assert!(said.contains("no list of receivers"), "{said}");
    }
}
