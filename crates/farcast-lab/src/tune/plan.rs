//! Plans for `send --plan`, from a scenario.

use std::fmt::Write as _;

use farcast_scenario::document::{Document, DocumentError, Origin};

/// Keys that only scenarios have: what is sent and to whom, the behaviour of receivers, and details of a simulation.
const OF_SCENARIOS: [&str; 16] = [
    "file",
    "files",
    "granule",
    "group",
    "group_limit",
    "keep_early_data",
    "naks_per_request",
    "named",
    "packet_overhead",
    "repairer",
    "sealed",
    "setup",
    "source_rate",
    "source_start",
    "to",
    "window",
];

/// Returns the protocol settings of `document` with `assignments` laid over it, as a TOML document for `send --plan`.
///
/// The plan has every key that the scenario or an assignment gives, without those that only scenarios have. Each line
/// of `about` is a comment. The result is `None` if the scenario has no transfer.
///
/// # Errors
/// The scenario is wrong with these assignments.
pub fn plan(
    document: &Document,
    assignments: &[String],
    about: &str,
) -> Result<Option<String>, DocumentError> {
    let mut document = document.clone();
    for assignment in assignments {
        document.set(assignment)?;
    }
    crate::World::read(&document)?;
    let mut text = String::new();
    for line in about.lines() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {line}");
    }
    text.push_str("\n[protocol]\n");
    let mut any = false;
    for (key, value, origin) in document.keys_read() {
        let Some(key) = key.strip_prefix("protocol.").filter(|_| origin != Origin::Default) else { continue };
        // A table of such a key counts as such a key.
        let first = key.split('.').next().unwrap_or(key);
        if !OF_SCENARIOS.contains(&first) {
            // In TOML, keys with dots are keys of inner tables.
            let _ = writeln!(text, "{key} = {value}");
            any = true;
        }
    }
    Ok(any.then_some(text))
}
