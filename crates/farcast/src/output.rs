//! Output of the command line: lines for people or JSON lines for programs, and the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_report::text::visible_json;
use serde_json::{Map, Value, json};

use crate::args::OutputArgs;
use crate::text::Text;
use crate::{Failure, stdio};

/// Destination of events and messages.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    log: Option<(PathBuf, File)>,
}

impl Output {
    pub(crate) fn new(args: &OutputArgs) -> Result<Self, Failure> {
        let log = args.log.as_ref().map(|path| {
            open_log(path)
                .map(|file| (path.clone(), file))
                .map_err(|e| Failure::usage(format!("cannot write the log {}: {e}", path.display())))
        });
        Ok(Self { json: args.json, quiet: args.quiet, log: log.transpose()? })
    }

    /// Makes an output of lines for people, without a log.
    pub(crate) fn for_people() -> Self {
        Self { json: false, quiet: false, log: None }
    }

    /// Makes an output of lines for people, unless the result is one JSON object or the user wants silence.
    pub(crate) fn of(json: bool, quiet: bool) -> Self {
        Self { json, quiet, log: None }
    }

    /// Prints the JSON object that is the whole result.
    #[expect(clippy::unused_self, reason = "what is printed goes through an output")]
    pub(crate) fn object(&self, object: &impl serde::Serialize) {
        stdio::print(|out| {
            serde_json::to_writer_pretty(Visible(out), object)?;
            writeln!(out)
        });
    }

    /// Returns `true` if progress is shown to a person.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.json && !self.quiet
    }

    /// Returns `true` if events go to standard output or to a log.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.log.is_some()
    }

    /// Prints a line for people.
    pub(crate) fn line(&self, text: &str) {
        if self.is_for_people() {
            stdio::say(text);
        }
    }

    /// Prints the result, for people.
    pub(crate) fn result(&self, text: &Text) {
        if self.is_for_people() {
            stdio::print(|out| writeln!(out, "{text}"));
        }
    }

    /// Writes the event `event` whose field `key` is a list. The list may be long, so only one of its items is in
    /// memory at once.
    pub(crate) fn list<T: Iterator<Item = Value>>(&mut self, event: &str, key: &str, items: impl Fn() -> T) {
        let time = unix_time();
        let write = |out: &mut dyn Write| {
            let mut out = Visible(out);
            write!(out, "{{{}:{},{}:[", json!("event"), json!(event), json!(key))?;
            for (n, item) in items().enumerate() {
                write!(out, "{}{item}", if n > 0 { "," } else { "" })?;
            }
            writeln!(out, "],{}:{}}}", json!("time"), json!(time))
        };
        if self.json {
            stdio::print(|out| write(out));
        }
        self.follow_log();
        let written = self.log.as_mut().map(|(_, log)| {
            let mut out = BufWriter::new(log);
            write(&mut out).and_then(|()| out.flush())
        });
        self.logged(written);
    }

    /// Takes the result of writing to the log. After an error the log ends.
    fn logged(&mut self, written: Option<io::Result<()>>) {
        if let (Some(Err(error)), Some((path, _))) = (written, &self.log) {
            stdio::lose(&format!("cannot write the log {}: {error}; it ends here", path.display()));
            self.log = None;
        }
    }

    /// Writes an event for programs. The `fields` are an object.
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
        let line = visible_json(&format!("{}\n", Value::Object(object))).into_owned();
        if self.json {
            stdio::print(|out| out.write_all(line.as_bytes()));
        }
        self.follow_log();
        let written = self.log.as_mut().map(|(_, log)| log.write_all(line.as_bytes()));
        self.logged(written);
    }

    /// Opens the log anew if SIGHUP asked for that: the old file may have another name by now.
    pub(crate) fn follow_log(&mut self) {
        if !crate::interrupt::hung_up() {
            return;
        }
        let Some((path, log)) = &mut self.log else { return };
        match open_log(path) {
            Ok(fresh) => *log = fresh,
            Err(error) => {
                let path = path.display();
                stdio::lose(&format!(
                    "cannot open the log {path} anew: {error}; what was open is written on"
                ));
            }
        }
    }
}

/// Opens the log at `path`, to be continued at its end.
fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Writer of JSON that escapes the characters that terminals obey.
struct Visible<'a>(&'a mut dyn Write);

impl Write for Visible<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        // The octets are whole characters: serde cuts strings only at characters that it escapes.
        match std::str::from_utf8(octets) {
            Ok(json) => self.0.write_all(visible_json(json).as_bytes())?,
            Err(_) => self.0.write_all(octets)?,
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints an error, in one sentence.
pub(crate) fn error(sentence: &str) {
    stdio::say(&format!("farcast: {sentence}"));
}

/// Returns seconds since 1970, rounded to milliseconds, for logs.
#[expect(clippy::disallowed_methods, reason = "a log says when, and the command line is no engine")]
fn unix_time() -> f64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (elapsed.as_secs_f64() * 1000.0).round() / 1000.0
}
