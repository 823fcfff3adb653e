//! List of trusted keys: a file of lines that people may edit. A change keeps the order of the lines and the comments.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use farcast_seal::{Fingerprint, Listed};

use super::file::{self, Care};
use super::lock::Lock;
use crate::Error;

mod change;
mod read;

pub use change::Added;
pub use read::listed;

/// Environment variable that names the file of the list.
const TRUST_FILE: &str = "FARCAST_TRUST_FILE";
/// Name of the list's file in the user's directory.
const FILE: &str = "trust";
/// Comment at the beginning of a new file.
const HEADING: &str = "\
# Whom farcast trusts. Each line: sender, receiver or both; a name; a key. Or: revoked; a name; a fingerprint.
# `farcast key trust` and `farcast key revoke` change it, and so may you.
";

/// Role in which a key is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Role {
    /// We take what it sends.
    Sender,
    /// It gets what we send.
    Receiver,
    /// Both of these.
    Both,
}

impl Role {
    /// Returns the word for the file and for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Both => "both",
        }
    }

    /// Returns the words for people.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Both => "sender and receiver",
            one => one.word(),
        }
    }
}

/// Host whom we trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trusted {
    /// Role in which it is trusted.
    pub role: Role,
    /// Its name and key.
    pub listed: Listed,
}

/// Host whom we trust no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Revoked {
    /// Name that the host had, if it had one.
    pub name: Option<String>,
    /// Fingerprint of its key.
    pub fingerprint: Fingerprint,
}

/// Content of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Item {
    Trusted(Trusted),
    Revoked(Revoked),
    /// Empty line, or a comment.
    Comment,
}

/// Line with its text as written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    text: String,
    item: Item,
}

impl Line {
    fn new(item: Item) -> Self {
        let text = match &item {
            Item::Trusted(Trusted { role, listed }) => {
                format!("{} {} {}", role.word(), listed.name, listed.key)
            }
            Item::Revoked(Revoked { name, fingerprint }) => {
                format!("revoked {} {fingerprint}", name.as_deref().unwrap_or("-"))
            }
            Item::Comment => String::new(),
        };
        Self { text, item }
    }
}

/// Metadata of a file, which change when the file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp([i64; 6]);

/// All trusted and all revoked hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    lines: Vec<Line>,
}

impl Trust {
    /// Loads the list from the file that the environment names, or else from the one in the user's directory. Nobody is
    /// trusted if the user's directory has no such file.
    ///
    /// # Errors
    /// A file that was named is missing, or a file is no such list or can be written by others.
    pub fn load() -> Result<Self, Error> {
        match place()? {
            Some((path, named)) => Self::load_from(&path, named),
            None => Ok(Self::default()),
        }
    }

    /// Returns the path of the list, or `None` if there is no list.
    ///
    /// # Errors
    /// The same errors as those of [`Self::load`].
    pub fn file() -> Result<Option<PathBuf>, Error> {
        let Some((path, named)) = place()? else { return Ok(None) };
        let is_there = named || file::read(&path, Care::List)?.is_some();
        Self::load_from(&path, named)?;
        Ok(is_there.then_some(path))
    }

    /// Returns metadata that show a change of the file, at less cost than reading it. Returns `None` if there is no
    /// file.
    pub fn stamp() -> Option<Stamp> {
        let (path, _) = place().ok()??;
        let about = std::fs::metadata(path).ok()?;
        Some(Stamp([
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
            about.size().cast_signed(),
            about.ino().cast_signed(),
        ]))
    }

    /// Returns `true` if the list names nobody, trusted or revoked.
    pub fn is_empty(&self) -> bool {
        self.trusted().next().is_none() && self.revoked().next().is_none()
    }

    /// Returns the hosts that we send to.
    pub fn receivers(&self) -> impl Iterator<Item = &Listed> {
        self.trusted().filter(|one| one.role != Role::Sender).map(|one| &one.listed)
    }

    /// Returns the hosts whose data we take.
    pub fn senders(&self) -> impl Iterator<Item = &Listed> {
        self.trusted().filter(|one| one.role != Role::Receiver).map(|one| &one.listed)
    }

    /// Returns all trusted hosts, in the order of the file.
    pub fn trusted(&self) -> impl Iterator<Item = &Trusted> {
        self.lines.iter().filter_map(|line| match &line.item {
            Item::Trusted(trusted) => Some(trusted),
            _ => None,
        })
    }

    /// Returns the hosts that are trusted no more.
    pub fn revoked(&self) -> impl Iterator<Item = &Revoked> {
        self.lines.iter().filter_map(|line| match &line.item {
            Item::Revoked(revoked) => Some(revoked),
            _ => None,
        })
    }

    /// Returns `true` if a host of this name is trusted no more.
    pub fn has_revoked(&self, name: &str) -> bool {
        self.revoked().any(|one| one.name.as_deref() == Some(name))
    }

    /// Changes the list while no other process does. The file is written only if the list has changed.
    ///
    /// # Errors
    /// `change` has failed, or the file cannot be read or written.
    pub fn change<T>(change: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let (path, _) = place()?.ok_or_else(super::nowhere)?;
        file::make_directory(&path)?;
        let _lock = Lock::wait(&path)?;
        let before = Self::load_from(&path, false)?;
        let mut trust = before.clone();
        let told = change(&mut trust)?;
        if trust != before {
            let heading = if before.lines.is_empty() { HEADING } else { "" };
            let text = format!("{heading}{}", trust.to_text());
            file::replace(&path, text.as_bytes(), Some(file::mode(&path)))?;
        }
        Ok(told)
    }

    fn load_from(path: &Path, needed: bool) -> Result<Self, Error> {
        match file::read(path, Care::List)? {
            Some(octets) => Self::parse(&octets, &path.display().to_string()),
            None if needed => Err(Error::usage(format!(
                "there is no list of whom to trust in {}: no such file",
                path.display()
            ))),
            None => Ok(Self::default()),
        }
    }

    fn to_text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect()
    }
}

/// Returns the path of the list, and `true` if the environment names it.
fn place() -> Result<Option<(PathBuf, bool)>, Error> {
    if let Some(path) = file::variable(TRUST_FILE)? {
        return Ok(Some((path.into(), true)));
    }
    Ok(file::directory().map(|directory| (directory.join(FILE), false)))
}

#[cfg(test)]
mod tests;
