//! What the command line prints: lines for people, or JSON lines for programs, and the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_report::text::visible_json;
use serde_json::{Map, Value, json};

use crate::args::OutputArgs;
use crate::text::Text;
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
            open_log(path)
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
            serde_json::to_writer_pretty(Visible(out), object)?;
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
            stdio::say(text);
        }
    }

    /// The result, for people.
    pub(crate) fn result(&self, text: &Text) {
        if self.is_for_people() {
            stdio::print(|out| writeln!(out, "{text}"));
        }
    }

    /// The event `event` whose field `key` is a list, which may be long: no more than one of its items is in memory at
    /// once.
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

    /// What came of writing to the log.
    fn logged(&mut self, written: Option<io::Result<()>>) {
        if let (Some(Err(error)), Some((path, _))) = (written, &self.log) {
            stdio::lose(&format!("cannot write the log {}: {error}; it ends here", path.display()));
            self.log = None;
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
        let line = visible_json(&format!("{}\n", Value::Object(object))).into_owned();
        if self.json {
            stdio::print(|out| out.write_all(line.as_bytes()));
        }
        self.follow_log();
        let written = self.log.as_mut().map(|(_, log)| log.write_all(line.as_bytes()));
        self.logged(written);
    }

    /// Opens the log anew where SIGHUP asked for that: the old one may have another name by now.
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

/// The log at `path`, to be written on at its end.
fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// JSON on its way to where `self.0` writes, with what terminals obey as escapes.
struct Visible<'a>(&'a mut dyn Write);

impl Write for Visible<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        // What is written is whole characters: serde cuts strings only where it escapes.
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

/// An error, in one sentence.
pub(crate) fn error(sentence: &str) {
    stdio::say(&format!("farcast: {sentence}"));
}

/// Seconds since 1970, for logs.
#[expect(clippy::disallowed_methods, reason = "a log says when, and the command line is no engine")]
fn unix_time() -> f64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (elapsed.as_secs_f64() * 1000.0).round() / 1000.0
}
