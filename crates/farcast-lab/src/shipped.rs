//! Scenarios and links that ship inside the program, and documents in files.

use std::io;
use std::path::{Path, PathBuf};

use farcast_scenario::document::{Document, DocumentError, text_of};
use farcast_scenario::links::Links;

/// A scenario or a link that ships inside the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shipped {
    name: &'static str,
    title: &'static str,
    text: &'static str,
}

impl Shipped {
    /// Returns the name for users.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns a description of a few words, without a full stop.
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Returns the text of the document: TOML.
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the document, with the files that it names.
    ///
    /// # Errors
    /// There are none, unless a shipped document is wrong.
    pub fn document(&self) -> Result<Document, DocumentError> {
        let mut document = Document::parse(self.name, self.text)?;
        for (path, text) in FILES {
            document.attach(path, text);
        }
        Ok(document)
    }
}

/// Error of opening a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No shipped document has this name.
    #[error("no scenario {0} ships with farcast")]
    NotShipped(String),
    /// There is no readable file at this path, and no shipped document of this name.
    #[error(
        "{name}: {source}; it is no file, nor one of the shipped scenarios ({}) or links ({})",
        names(scenarios()),
        names(links())
    )]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// The system's error for a file of this name.
        source: io::Error,
    },
    /// There is no readable file at this path, and no shipped link of this name.
    #[error("{name}: {source}; it is no file, nor one of the shipped links ({})", names(links()))]
    UnknownLink {
        /// Name that was asked for.
        name: String,
        /// The system's error for a file of this name.
        source: io::Error,
    },
    /// A scenario was named instead of a link alone.
    #[error("{name} is a scenario, which says itself what is sent: name a link alone, as {}", names(links()))]
    NoLink {
        /// Name that was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is not a valid document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

fn names(all: impl Iterator<Item = Shipped>) -> String {
    all.map(|one| one.name).collect::<Vec<_>>().join(", ")
}

/// Name, description and text of each scenario.
const SCENARIOS: [(&str, &str, &str); 8] = [
    (
        "mftp-bgan",
        "MFTP to 20 receivers over BGAN: the study of Status Retry Timers",
        include_str!("../scenarios/mftp-bgan.toml"),
    ),
    (
        "tcp-geo",
        "one TCP connection over a geostationary satellite",
        include_str!("../scenarios/tcp-geo.toml"),
    ),
    (
        "sgls",
        "64 files by FTP over serial lines with PPP: the space-to-ground link simulator",
        include_str!("../scenarios/sgls.toml"),
    ),
    ("sgls-mdp", "the same files by MDP over the same lines", include_str!("../scenarios/sgls-mdp.toml")),
    (
        "iridium",
        "a file by TCP over eight Iridium channels in a multilink bundle, with call drops",
        include_str!("../scenarios/iridium.toml"),
    ),
    (
        "inmarsat",
        "100 MB by TCP over four Inmarsat channels in a multilink bundle",
        include_str!("../scenarios/inmarsat.toml"),
    ),
    (
        "umts",
        "files by FTP over a UMTS bearer with Radio Link Control",
        include_str!("../scenarios/umts.toml"),
    ),
    (
        "pgm-satellite",
        "PGM to three networks, two of them behind a satellite, and TCP beside it: a tree",
        include_str!("../scenarios/pgm-satellite.toml"),
    ),
];

/// Returns the shipped scenarios.
pub fn scenarios() -> impl Iterator<Item = Shipped> {
    SCENARIOS.into_iter().map(|(name, title, text)| Shipped { name, title, text })
}

/// Name and text of each link; the first line of the text is its description.
const LINKS: [(&str, &str); 8] = [
    ("geo", include_str!("../scenarios/links/geo.toml")),
    ("meo", include_str!("../scenarios/links/meo.toml")),
    ("leo", include_str!("../scenarios/links/leo.toml")),
    ("starlink-like", include_str!("../scenarios/links/starlink-like.toml")),
    ("bgan", include_str!("../scenarios/links/bgan.toml")),
    ("iridium-8", include_str!("../scenarios/links/iridium-8.toml")),
    ("umts-384", include_str!("../scenarios/links/umts-384.toml")),
    ("sgls-115200", include_str!("../scenarios/links/sgls-115200.toml")),
];

/// Files that shipped links name.
const FILES: [(&str, &str); 2] = [
    ("starlink-like-down.csv", include_str!("../scenarios/links/starlink-like-down.csv")),
    ("starlink-like-up.csv", include_str!("../scenarios/links/starlink-like-up.csv")),
];

/// Returns the shipped links.
pub fn links() -> impl Iterator<Item = Shipped> {
    let title = |text: &'static str| text.lines().next().unwrap_or_default().trim_start_matches("# ");
    LINKS.into_iter().map(move |(name, text)| Shipped { name, title: title(text), text })
}

/// Returns the shipped scenario or link of this name.
pub fn named(name: &str) -> Option<Shipped> {
    scenarios().chain(links()).find(|one| one.name == name)
}

/// Returns the document of the shipped scenario or link of this name, whatever files there are.
///
/// # Errors
/// No shipped document has this name.
pub fn document(name: &str) -> Result<Document, OpenError> {
    let shipped = named(name).ok_or_else(|| OpenError::NotShipped(name.to_owned()))?;
    Ok(shipped.document()?)
}

/// Returns the document of a scenario or a link: the file at the path `name`, or, without a readable file, the
/// shipped document of this name.
///
/// # Errors
/// There is neither, or the file is not a valid document.
pub fn open(name: &str) -> Result<Document, OpenError> {
    // A file takes precedence, so that it may have the name of a shipped document.
    match text_of(Path::new(name)) {
        Ok(text) => Ok(Document::parse(name, &text)?),
        Err(source) => match named(name) {
            Some(shipped) => Ok(shipped.document()?),
            None => Err(OpenError::Unknown { name: name.to_owned(), source }),
        },
    }
}

/// Returns the document of a link alone, as [`open`] finds it.
///
/// # Errors
/// There is none, or it is a scenario, or not a valid document.
pub fn open_link(name: &str) -> Result<Document, OpenError> {
    let document = open(name).map_err(|error| match error {
        OpenError::Unknown { name, source } => OpenError::UnknownLink { name, source },
        error => error,
    })?;
    if Links::says_what_is_sent(&document) {
        Err(OpenError::NoLink { name: name.to_owned() })
    } else {
        Ok(document)
    }
}

/// Returns the document in the file at `path`.
///
/// # Errors
/// The file cannot be read, has more than 16 MiB, or is not a valid document.
pub fn file(path: &Path) -> Result<Document, OpenError> {
    let text = text_of(path).map_err(|source| OpenError::Unreadable { path: path.into(), source })?;
    Ok(Document::parse(&path.display().to_string(), &text)?)
}
