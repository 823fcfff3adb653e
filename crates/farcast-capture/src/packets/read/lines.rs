//! Reading of a log in CSV.

use std::io::{BufRead, BufReader, Read};
use std::str::FromStr;

use farcast_core::Time;

use super::super::{COLUMNS, PacketRecord};
use super::{Wrong, time, verdict, way};

/// Most octets of a record. A cause is the name of a stage and a word.
const LONGEST: u64 = 1 << 20;

/// Calls `each` for each record of a CSV file.
pub(super) fn read(file: impl Read, each: &mut impl FnMut(&PacketRecord<&str>)) -> Result<(), Wrong> {
    let mut lines = Lines { file: BufReader::new(file), text: Vec::new(), number: 1, behind: 1 };
    let header = COLUMNS.join(",");
    if !lines.next()? || lines.text.strip_suffix(b"\n") != Some(header.as_bytes()) {
        return Err(Wrong::Content(format!("its first line is not \"{header}\"")));
    }
    while lines.next()? {
        let number = lines.number;
        let at = |what: &str| Wrong::Content(format!("line {number}: {what}"));
        let text = std::str::from_utf8(&lines.text).map_err(|_| at("it is not UTF-8"))?;
        let fields = fields(text).ok_or_else(|| at("it does not have nine columns"))?;
        let record = record(&fields).map_err(|column| at(&format!("{column} cannot be read")))?;
        each(&record.with_cause(&*fields[COLUMNS.len() - 1]));
    }
    Ok(())
}

/// Reader of a file, record by record.
struct Lines<R> {
    file: BufReader<R>,
    text: Vec<u8>,
    /// Line on which the record begins, from 1; a record may have several.
    number: u64,
    /// Number of the line behind the record.
    behind: u64,
}

impl<R: Read> Lines<R> {
    /// Reads the next record. Returns `true` if there is one.
    fn next(&mut self) -> Result<bool, Wrong> {
        self.number = self.behind;
        self.text.clear();
        // Within quotes a record continues behind the line's end (RFC 4180 section 2, rule 6).
        let mut quoted = false;
        loop {
            let before = self.text.len();
            self.file.by_ref().take(LONGEST - before as u64).read_until(b'\n', &mut self.text)?;
            let line = &self.text[before..];
            if !line.ends_with(b"\n") {
                return self.at_the_end();
            }
            self.behind += 1;
            quoted = line.iter().fold(quoted, |quoted, octet| quoted ^ (*octet == b'"'));
            if !quoted {
                return Ok(true);
            }
        }
    }

    /// Checks the end of the file, which is valid only between two records.
    fn at_the_end(&self) -> Result<bool, Wrong> {
        let what = match self.text.len() as u64 {
            0 => return Ok(false),
            LONGEST => "it is too long",
            _ => "it has no end",
        };
        Err(Wrong::Content(format!("line {}: {what}", self.number)))
    }
}

/// Splits a record into its columns, without quotes.
fn fields(text: &str) -> Option<[String; COLUMNS.len()]> {
    let mut fields: [String; COLUMNS.len()] = Default::default();
    let (mut index, mut quoted) = (0, false);
    let mut letters = text.strip_suffix('\n')?.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => fields.get_mut(index)?.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => index += 1,
            letter => fields.get_mut(index)?.push(letter),
        }
    }
    (index + 1 == COLUMNS.len()).then_some(fields)
}

/// Returns the record of these columns without its cause, or the name of the first column that is not valid.
fn record(fields: &[String; COLUMNS.len()]) -> Result<PacketRecord<()>, &'static str> {
    let [number_, way_, terminal, entered, planned, left, octets, verdict_, _] = fields;
    Ok(PacketRecord {
        number: number(number_).ok_or("number")?,
        way: way(way_).ok_or("way")?,
        terminal: optional(terminal, "terminal", number)?,
        entered: instant(entered).ok_or("entered_ns")?,
        planned: optional(planned, "planned_ns", instant)?,
        left: optional(left, "left_ns", instant)?,
        octets: number(octets).ok_or("octets")?,
        verdict: verdict(verdict_).ok_or("verdict")?,
        cause: (),
    })
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn instant(text: &str) -> Option<Time> {
    number(text).and_then(time)
}

/// Reads a column that may be absent: an empty text is absent.
fn optional<T>(
    text: &str,
    column: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, &'static str> {
    if text.is_empty() { Ok(None) } else { read(text).map(Some).ok_or(column) }
}
