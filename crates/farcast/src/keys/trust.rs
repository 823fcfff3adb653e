//! Whom we trust: a file of lines that people may edit, which keep their order and their comments when it is changed.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use farcast_seal::{Fingerprint, Listed};

use super::file::{self, Care};
use super::lock::Lock;
use crate::Failure;

mod change;
mod read;

pub(super) use change::Added;
pub(super) use read::listed;

/// Names the file.
const TRUST_FILE: &str = "FARCAST_TRUST_FILE";
/// The file in the user's directory.
const FILE: &str = "trust";
/// What a new file begins with.
const HEADING: &str = "\
# Whom farcast trusts. Each line: sender, receiver or both; a name; a key. Or: revoked; a name; a fingerprint.
# `farcast key trust` and `farcast key revoke` change it, and so may you.
";

/// What somebody is trusted as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// We take what it sends.
    Sender,
    /// It gets what we send.
    Receiver,
    /// Both of these.
    Both,
}

impl Role {
    /// As the file and programs have it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Both => "both",
        }
    }

    /// As people are told.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Both => "sender and receiver",
            one => one.word(),
        }
    }
}

/// Somebody whom we trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Trusted {
    pub(super) role: Role,
    pub(super) listed: Listed,
}

/// Somebody whom we trust no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Revoked {
    /// What it was called, if it was.
    pub(super) name: Option<String>,
    pub(super) fingerprint: Fingerprint,
}

/// What a line says.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Item {
    Trusted(Trusted),
    Revoked(Revoked),
    /// Nothing: it is empty, or a comment.
    Comment,
}

/// A line, and how it is written.
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

/// How a file was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp([i64; 6]);

/// Whom we trust, and whom no more.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Trust {
    lines: Vec<Line>,
}

impl Trust {
    /// What the file says that the environment names, or else the one in the user's directory; where there is none there,
    /// nobody is trusted.
    ///
    /// # Errors
    /// A file that was named is not there, or what is there is no such list, or others can write it.
    pub(crate) fn load() -> Result<Self, Failure> {
        match place()? {
            Some((path, named)) => Self::load_from(&path, named),
            None => Ok(Self::default()),
        }
    }

    /// Returns the path of the list; `None` where there is none.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub(crate) fn file() -> Result<Option<PathBuf>, Failure> {
        let Some((path, named)) = place()? else { return Ok(None) };
        let is_there = named || file::read(&path, Care::List)?.is_some();
        Self::load_from(&path, named)?;
        Ok(is_there.then_some(path))
    }

    /// What shows that the file was changed; it costs less than to read it. None where there is no file.
    pub(crate) fn stamp() -> Option<Stamp> {
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

    /// Whether it says nothing of anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.trusted().next().is_none() && self.revoked().next().is_none()
    }

    /// Whom we send to.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = &Listed> {
        self.trusted().filter(|one| one.role != Role::Sender).map(|one| &one.listed)
    }

    /// Whom we hear.
    pub(crate) fn senders(&self) -> impl Iterator<Item = &Listed> {
        self.trusted().filter(|one| one.role != Role::Receiver).map(|one| &one.listed)
    }

    /// All, in the order of the file.
    pub(super) fn trusted(&self) -> impl Iterator<Item = &Trusted> {
        self.lines.iter().filter_map(|line| match &line.item {
            Item::Trusted(trusted) => Some(trusted),
            _ => None,
        })
    }

    /// Those who are trusted no more.
    pub(super) fn revoked(&self) -> impl Iterator<Item = &Revoked> {
        self.lines.iter().filter_map(|line| match &line.item {
            Item::Revoked(revoked) => Some(revoked),
            _ => None,
        })
    }

    /// Whether somebody of this name is trusted no more.
    pub(crate) fn has_revoked(&self, name: &str) -> bool {
        self.revoked().any(|one| one.name.as_deref() == Some(name))
    }

    /// Changes the file while nobody else does; it is written if what it says is then another thing.
    ///
    /// # Errors
    /// As `change` says, or it cannot be read or written.
    pub(super) fn change<T>(change: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
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

    fn load_from(path: &Path, needed: bool) -> Result<Self, Failure> {
        match file::read(path, Care::List)? {
            Some(octets) => Self::parse(&octets, &path.display().to_string()),
            None if needed => Err(Failure::usage(format!(
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

/// Where the list is, and whether somebody named it.
fn place() -> Result<Option<(PathBuf, bool)>, Failure> {
    if let Some(path) = file::variable(TRUST_FILE)? {
        return Ok(Some((path.into(), true)));
    }
    Ok(file::directory().map(|directory| (directory.join(FILE), false)))
}

#[cfg(test)]
mod tests;
