//! What `send --plan` takes of a scenario.

use std::fmt::Write as _;

use farcast_scenario::document::{Document, DocumentError, Origin};

/// Keys that only a scenario has: what is sent, to whom, what receivers do, and how a simulation counts and begins.
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

/// The settings of the protocol of `document` with `assignments` laid over it, as a TOML document that `send --plan`
/// takes: every key that the scenario says or that is laid over it, without those that only a scenario has. Each line of
/// `about` is a comment. `None` if the scenario has no transfer.
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
        // A String takes all that is written.
        let _ = writeln!(text, "# {line}");
    }
    text.push_str("\n[protocol]\n");
    let mut any = false;
    for (key, value, origin) in document.keys_read() {
        let Some(key) = key.strip_prefix("protocol.").filter(|_| origin != Origin::Default) else { continue };
        // A table of such a key is one as well.
        let first = key.split('.').next().unwrap_or(key);
        if !OF_SCENARIOS.contains(&first) {
            // Keys with dots are tables within, as TOML has them.
            let _ = writeln!(text, "{key} = {value}");
            any = true;
        }
    }
    Ok(any.then_some(text))
}
