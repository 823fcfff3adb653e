//! The log in CSV.

use std::io::{self, Write};

use farcast_core::Time;

use super::{PacketLog, PacketRecord, nanoseconds};
use crate::output::Output;

/// Header line with the columns' names.
const HEADER: &[u8] = b"number,way,terminal,entered_ns,planned_ns,left_ns,octets,verdict,cause\n";

/// A log in CSV (RFC 4180, with lines that end in LF alone).
///
/// `W` is written line by line: it should buffer the lines, as [`StagedFile`](crate::output::StagedFile) does.
#[derive(Debug)]
pub struct CsvLog<W> {
    out: W,
    /// The current line.
    line: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> CsvLog<W> {
    /// Creates a log into `out`, and writes the header at once.
    pub fn new(mut out: W) -> Self {
        let error = out.write_all(HEADER).err();
        Self { out, line: Vec::new(), error }
    }

    /// Writes a line; writes nothing after an error.
    pub fn push(&mut self, record: &PacketRecord<&str>) {
        if self.error.is_some() {
            return;
        }
        self.line.clear();
        self.error = self.write(record).err();
    }

    /// Returns `W`, flushed.
    ///
    /// # Errors
    /// The first error of `W`.
    pub fn into_inner(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn write(&mut self, record: &PacketRecord<&str>) -> io::Result<()> {
        let (line, way, entered) = (&mut self.line, record.way.name(), nanoseconds(record.entered));
        write!(line, "{},{way},", record.number)?;
        if let Some(terminal) = record.terminal {
            write!(line, "{terminal}")?;
        }
        write!(line, ",{entered},")?;
        optional(line, record.planned)?;
        optional(line, record.left)?;
        write!(line, "{},{},", record.octets, record.verdict.name())?;
        text(line, record.cause);
        line.push(b'\n');
        self.out.write_all(line)
    }
}

impl PacketLog for CsvLog<Box<dyn Output>> {
    fn record(&mut self, record: &PacketRecord<&str>) {
        self.push(record);
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.into_inner()?.commit()
    }
}

/// Writes a time and the comma behind it.
fn optional(line: &mut Vec<u8>, at: Option<Time>) -> io::Result<()> {
    match at {
        Some(at) => write!(line, "{},", nanoseconds(at)),
        None => line.write_all(b","),
    }
}

/// Writes a text, in quotes if it needs them (RFC 4180 §2, rules 6 and 7).
fn text(line: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\r', '\n']) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    for octet in text.bytes() {
        line.push(octet);
        if octet == b'"' {
            line.push(octet);
        }
    }
    line.push(b'"');
}
