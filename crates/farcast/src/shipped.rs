//! The scenarios and links inside the binary, and those in files.

use std::path::Path;

use farcast_scenario::document::Document;

use crate::Failure;

/// Name, what it is, and text.
const SCENARIOS: [(&str, &str, &str); 6] = [
    (
        "mftp-bgan",
        "MFTP to 20 receivers over BGAN: the study of Status Retry Timers",
        include_str!("../../../scenarios/mftp-bgan.toml"),
    ),
    (
        "tcp-geo",
        "one TCP connection over a geostationary satellite",
        include_str!("../../../scenarios/tcp-geo.toml"),
    ),
    (
        "sgls",
        "64 files by FTP over serial lines with PPP: the space-to-ground link simulator",
        include_str!("../../../scenarios/sgls.toml"),
    ),
    (
        "iridium",
        "a file by TCP over eight Iridium channels in a multilink bundle, with call drops",
        include_str!("../../../scenarios/iridium.toml"),
    ),
    (
        "inmarsat",
        "100 MB by TCP over four Inmarsat channels in a multilink bundle",
        include_str!("../../../scenarios/inmarsat.toml"),
    ),
    (
        "umts",
        "files by FTP over a UMTS bearer with Radio Link Control",
        include_str!("../../../scenarios/umts.toml"),
    ),
];

/// The shipped scenarios: name and what each is.
pub(crate) fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCENARIOS.iter().map(|&(name, what, _)| (name, what))
}

/// The shipped links: name, what each is, and text.
const LINKS: [(&str, &str); 8] = [
    ("geo", include_str!("../../../scenarios/links/geo.toml")),
    ("meo", include_str!("../../../scenarios/links/meo.toml")),
    ("leo", include_str!("../../../scenarios/links/leo.toml")),
    ("starlink-like", include_str!("../../../scenarios/links/starlink-like.toml")),
    ("bgan", include_str!("../../../scenarios/links/bgan.toml")),
    ("iridium-8", include_str!("../../../scenarios/links/iridium-8.toml")),
    ("umts-384", include_str!("../../../scenarios/links/umts-384.toml")),
    ("sgls-115200", include_str!("../../../scenarios/links/sgls-115200.toml")),
];

/// Files that shipped links name.
const FILES: [(&str, &str); 2] = [
    ("starlink-like-down.csv", include_str!("../../../scenarios/links/starlink-like-down.csv")),
    ("starlink-like-up.csv", include_str!("../../../scenarios/links/starlink-like-up.csv")),
];

/// The shipped links: name, and what each is, which its first line says.
pub(crate) fn links() -> impl Iterator<Item = (&'static str, &'static str)> {
    LINKS.iter().map(|&(name, text)| (name, text.lines().next().unwrap_or_default().trim_start_matches("# ")))
}

/// The document of a scenario or a link: a file, or one that ships.
pub(crate) fn document(name: &str) -> Result<Document, Failure> {
    // A path wins, so that a file beside the user may have a shipped one's name.
    match read(Path::new(name)) {
        Ok(text) => parse(name, &text),
        Err(error) => shipped(name).unwrap_or_else(|| {
            let scenarios: Vec<_> = SCENARIOS.iter().map(|(name, _, _)| *name).collect();
            let links: Vec<_> = LINKS.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(format!(
                "{name}: {error}; it is no file, nor one of the shipped scenarios ({}) or links ({})",
                scenarios.join(", "),
                links.join(", ")
            )))
        }),
    }
}

/// The document in the file at `path`.
pub(crate) fn file(path: &Path) -> Result<Document, Failure> {
    let name = path.display().to_string();
    let text = read(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    parse(&name, &text)
}

/// Octets that a scenario may have.
const MOST_OCTETS: u64 = 16 << 20;

/// The text of a file, if it is not too long: a device may have no end.
#[expect(clippy::disallowed_methods, reason = "it is read whole, as settings are")]
fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MOST_OCTETS + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_OCTETS {
        return Err(std::io::Error::other("it is longer than any scenario, which has 16 MiB at most"));
    }
    Ok(text)
}

/// The document of a scenario that ships, whatever files there are.
pub(crate) fn document_of(name: &str) -> Result<Document, Failure> {
    shipped(name).unwrap_or_else(|| Err(Failure::usage(format!("no scenario {name} ships with farcast"))))
}

/// The document of this name that ships, if one does, with the files that it names.
fn shipped(name: &str) -> Option<Result<Document, Failure>> {
    let scenarios = SCENARIOS.iter().map(|&(name, _, text)| (name, text));
    let (_, text) = scenarios.chain(LINKS).find(|(known, _)| *known == name)?;
    Some(parse(name, text).map(|mut document| {
        for (path, text) in FILES {
            document.attach(path, text);
        }
        document
    }))
}

fn parse(name: &str, text: &str) -> Result<Document, Failure> {
    Document::parse(name, text).map_err(|error| Failure::usage(error.to_string()))
}
