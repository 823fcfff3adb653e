//! What the command line prints: lines for people, or JSON lines for programs, and the log.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::args::OutputArgs;
use crate::{Failure, stdio};

/// Where events and messages go.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    log: Option<(PathBuf, File)>,
}

impl Output {
    pub(crate) fn new(args: &OutputArgs) -> Result<Self, Failure> {
        let log = args.log.as_ref().map(|path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(|file| (path.clone(), file))
                .map_err(|e| Failure::usage(format!("cannot write the log {}: {e}", path.display())))
        });
        Ok(Self { json: args.json, quiet: args.quiet, log: log.transpose()? })
    }

    /// Lines for people and nothing else.
    pub(crate) fn for_people() -> Self {
        Self { json: false, quiet: false, log: None }
    }

    /// Lines for people, unless one JSON object is the whole result or silence is wished.
    pub(crate) fn of(json: bool, quiet: bool) -> Self {
        Self { json, quiet, log: None }
    }

    /// The one JSON object that is the result.
    #[expect(clippy::unused_self, reason = "what is printed goes through an output")]
    pub(crate) fn object(&self, object: &impl serde::Serialize) {
        stdio::print(|out| {
            serde_json::to_writer_pretty(&mut *out, object)?;
            writeln!(out)
        });
    }

    /// Whether progress is to be shown to a person.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.json && !self.quiet
    }

    /// Whether events go anywhere.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.log.is_some()
    }

    /// A line for people.
    pub(crate) fn line(&self, text: &str) {
        if self.is_for_people() {
            stdio::say(&clean(text));
        }
    }

    /// The result, for people.
    pub(crate) fn result(&self, text: &str) {
        if self.is_for_people() {
            let text = text.split('\n').map(clean).collect::<Vec<_>>().join("\n");
            stdio::print(|out| writeln!(out, "{text}"));
        }
    }

    /// An event for programs: `fields` is an object.
    pub(crate) fn event(&mut self, event: &str, fields: Value) {
        if !self.is_for_programs() {
            return;
        }
        let mut object = Map::new();
        object.insert("time".into(), json!(unix_time()));
        object.insert("event".into(), json!(event));
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        let line = format!("{}\n", Value::Object(object));
        if self.json {
            stdio::print(|out| out.write_all(line.as_bytes()));
        }
        if let Some((path, log)) = &mut self.log
            && let Err(error) = log.write_all(line.as_bytes())
        {
            stdio::lose(&format!("cannot write the log {}: {error}; it ends here", path.display()));
            self.log = None;
        }
    }
}

/// `text` with control characters made visible: names come from the network, and a terminal obeys them.
pub(crate) fn clean(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(shown).collect()
}

/// An error, in one sentence.
pub(crate) fn error(sentence: &str) {
    stdio::say(&format!("farcast: {}", clean(sentence)));
}

/// Seconds since 1970, for logs.
#[expect(clippy::disallowed_methods, reason = "a log says when, and the command line is no engine")]
fn unix_time() -> f64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (elapsed.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{e9}"), "a\\u{1b}[2Jb\\nc\u{e9}");
    }
}
