//! Traffic over a link that is described alone.

use std::fmt::Write as _;

use farcast_scenario::document::{Document, DocumentError};
use farcast_scenario::links::Links;

/// Reason for which flows cannot be added.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// The document is a scenario.
    #[error("flows are for links alone: this scenario says itself what is sent")]
    Scenario,
    /// The document is a link, and no flows were given.
    #[error("this is a link, and nothing is sent over it")]
    Nothing,
    /// A flow is not valid.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Makes a scenario of a document that is a link alone, by adding `flows`. A flow is a protocol and its keys, as in
/// `tcp, size = 10 MB`. A scenario without `flows` is left as it is.
///
/// # Errors
/// Flows were given for a scenario, a link has none, or a flow is not valid.
pub fn send_over(document: &mut Document, flows: &[String]) -> Result<(), TrafficError> {
    match (Links::are_all_of(document), flows.is_empty()) {
        (false, true) => return Ok(()),
        (false, false) => return Err(TrafficError::Scenario),
        (true, true) => return Err(TrafficError::Nothing),
        (true, false) => {}
    }
    let flows: Vec<String> = (1..).zip(flows).map(|(number, flow)| table(number, flow)).collect();
    Ok(document.set(&format!("traffic=[{}]", flows.join(", ")))?)
}

/// Returns a flow as an inline table of TOML. A value that is not TOML is taken as text, as with `--set`.
fn table(number: u32, flow: &str) -> String {
    let mut parts = flow.split(',').map(str::trim);
    let protocol = parts.next().unwrap_or_default();
    let mut named = false;
    let mut keys = format!("protocol = {}", text(protocol));
    for part in parts {
        let (key, value) = part.split_once('=').map_or((part, ""), |(key, value)| (key.trim(), value.trim()));
        named |= key == "name";
        let is_toml =
            value.parse::<f64>().is_ok() || ["true", "false"].contains(&value) || value.starts_with('"');
        let value = if is_toml { value.to_owned() } else { text(value) };
        // Writing to a String cannot fail.
        let _ = write!(keys, ", {key} = {value}");
    }
    if !named {
        let _ = write!(keys, ", name = {}", text(&format!("{protocol}-{number}")));
    }
    format!("{{{keys}}}")
}

/// Returns text in quotes, as a TOML string.
fn text(value: &str) -> String {
    format!("\"{}\"", value.escape_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_get_names_and_quotes() {
        assert_eq!(
            table(1, "tcp, size = 10 MB, sack = false"),
            r#"{protocol = "tcp", size = "10 MB", sack = false, name = "tcp-1"}"#
        );
        assert_eq!(
            table(2, "cbr,rate=1 Mbit/s,name=voice"),
            r#"{protocol = "cbr", rate = "1 Mbit/s", name = "voice"}"#
        );
    }
}
