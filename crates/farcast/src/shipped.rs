//! The scenarios inside the binary, and those in files.

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

/// The document of a scenario: a file, or one that ships.
pub(crate) fn document(scenario: &str) -> Result<Document, Failure> {
    // A path wins, so that a file beside the user may have a shipped one's name.
    let text = match std::fs::read_to_string(scenario) {
        Ok(text) => text,
        Err(error) => text_of(scenario).ok_or_else(|| {
            let names: Vec<_> = SCENARIOS.iter().map(|(name, _, _)| *name).collect();
            Failure::usage(format!(
                "{scenario}: {error}; it is no file, nor one of the shipped scenarios: {}",
                names.join(", ")
            ))
        })?,
    };
    parse(scenario, &text)
}

/// The document of a scenario that ships, whatever files there are.
pub(crate) fn document_of(name: &str) -> Result<Document, Failure> {
    let text =
        text_of(name).ok_or_else(|| Failure::usage(format!("no scenario {name} ships with farcast")))?;
    parse(name, &text)
}

fn text_of(name: &str) -> Option<String> {
    SCENARIOS.iter().find(|(known, _, _)| *known == name).map(|(_, _, text)| (*text).to_owned())
}

fn parse(name: &str, text: &str) -> Result<Document, Failure> {
    Document::parse(name, text).map_err(|error| Failure::usage(error.to_string()))
}
