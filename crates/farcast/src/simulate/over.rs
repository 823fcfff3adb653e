//! A link alone, and what is sent over it.

use std::fmt::Write as _;

use farcast_scenario::document::Document;
use farcast_scenario::links::Links;

use crate::Failure;

/// Adds the flows of `--traffic` to a document that is a link alone.
pub(super) fn send_over(document: &mut Document, traffic: &[String]) -> Result<(), Failure> {
    match (Links::are_all_of(document), traffic.is_empty()) {
        (false, true) => return Ok(()),
        (false, false) => {
            return Err(Failure::usage(
                "--traffic is for links alone: this scenario says itself what is sent; set its keys with --set",
            ));
        }
        (true, true) => {
            return Err(Failure::usage(
                "this is a link, and nothing is sent over it: say what with --traffic, as in --traffic \"tcp, size = 10 MB\"",
            ));
        }
        (true, false) => {}
    }
    let flows: Vec<String> = (1..).zip(traffic).map(|(number, flow)| table(number, flow)).collect();
    document
        .set(&format!("traffic=[{}]", flows.join(", ")))
        .map_err(|error| Failure::usage(error.to_string()))
}

/// A flow as an inline table of TOML. What is no TOML value is text, as with --set.
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
        // A String takes all that is written.
        let _ = write!(keys, ", {key} = {value}");
    }
    if !named {
        let _ = write!(keys, ", name = {}", text(&format!("{protocol}-{number}")));
    }
    format!("{{{keys}}}")
}

/// Text in quotes, as TOML has it.
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
