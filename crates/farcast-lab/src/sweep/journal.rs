//! Journal of a sweep: the results of points, one after the other.
//!
//! The file has a first line and then records. A record is its length and its CRC-32C (both of 32 bits,
//! little-endian, as all numbers here), followed by:
//!
//! * the key of the point (32 octets),
//! * the time that cores spent (a double),
//! * the number of rows and the number of columns (32 bits each),
//! * for each column, the length of its name (16 bits) and the name,
//! * column by column, the values as doubles.
//!
//! Each record is written by one call at the end of the file. A process that is killed therefore leaves complete
//! records and perhaps a part of one. This part is cut off when the journal is opened again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc};
use rustix::fs::FlockOperation;

use super::{EarlierResults, Point, PointKey, Store, SweepError};
use crate::figures::Figures;
use crate::points::PointResult;

const HEADER: &[u8] = b"farcast sweep journal 1\n";
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Octets of a record's length and checksum.
const FRAME: usize = 8;

/// A journal open for writing.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Opens a journal, or creates it. Returns its results, and the number of octets at its end that were not a
    /// complete record and are cut off.
    ///
    /// # Errors
    /// Another process writes it, it is not a journal, or the system refused it.
    pub fn open(path: &Path) -> Result<(Self, EarlierResults, u64), SweepError> {
        let error = |source| SweepError::File { path: path.to_path_buf(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(error)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(SweepError::InUse(directory(path))),
            Err(refused) => return Err(error(refused.into())),
        }
        let mut octets = Vec::new();
        file.read_to_end(&mut octets).map_err(error)?;
        if octets.is_empty() {
            file.write_all(HEADER).map_err(error)?;
            return Ok((Self { file }, EarlierResults::new(), 0));
        }
        let Some(records) = octets.strip_prefix(HEADER) else {
            if HEADER.starts_with(&octets) {
                file.set_len(0).map_err(error)?;
                file.write_all(HEADER).map_err(error)?;
                return Ok((Self { file }, EarlierResults::new(), octets.len() as u64));
            }
            let what = "this is no journal of a sweep: name another directory";
            return Err(SweepError::Foreign { path: path.to_path_buf(), what });
        };
        let (found, whole) = read(records);
        let lost = (records.len() - whole) as u64;
        if lost > 0 {
            file.set_len((HEADER.len() + whole) as u64).map_err(error)?;
            file.seek(SeekFrom::End(0)).map_err(error)?;
        }
        Ok((Self { file }, found, lost))
    }
}

fn directory(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| path.to_path_buf(), Path::to_path_buf)
}

impl Store for Journal {
    fn keep(&mut self, key: &PointKey, done: &PointResult) -> io::Result<()> {
        self.file.write_all(&record(key, &done.figures, done.cpu_s)?)
    }
}

/// Encodes a point's result for another process: its key and its figures.
///
/// # Errors
/// The result has more figures than a record holds.
pub fn encode(key: &PointKey, done: &PointResult) -> io::Result<Vec<u8>> {
    record(key, &done.figures, done.cpu_s)
}

/// Decodes the [encoding](encode) of another process; `None` if it is incomplete.
pub fn decode(octets: &[u8]) -> Option<(PointKey, Point)> {
    let (key, point, rest) = next(octets)?;
    rest.is_empty().then_some((key, point))
}

/// Returns a record with its frame.
fn record(key: &PointKey, figures: &Figures, cpu_s: f64) -> io::Result<Vec<u8>> {
    let columns: Vec<_> = figures.columns().collect();
    let count = |n: usize| u32::try_from(n).map(u32::to_le_bytes).map_err(|_| too_much());
    let mut out = vec![0; FRAME];
    out.extend_from_slice(key);
    out.extend_from_slice(&cpu_s.to_le_bytes());
    out.extend_from_slice(&count(figures.len())?);
    out.extend_from_slice(&count(columns.len())?);
    for (name, _) in &columns {
        let length = u16::try_from(name.len()).map_err(|_| too_much())?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
    }
    for value in columns.iter().flat_map(|(_, values)| values.iter()) {
        out.extend_from_slice(&value.to_le_bytes());
    }
    let length = count(out.len() - FRAME)?;
    let check = CRC.checksum(&out[FRAME..]).to_le_bytes();
    out[..4].copy_from_slice(&length);
    out[4..FRAME].copy_from_slice(&check);
    Ok(out)
}

fn too_much() -> io::Error {
    io::Error::other("a point has more figures than a journal can hold")
}

/// Returns the results of the complete records at the beginning, and the octets of these. Of two records with one key
/// the later counts.
fn read(octets: &[u8]) -> (EarlierResults, usize) {
    let (mut found, mut rest) = (EarlierResults::new(), octets);
    while let Some((key, point, left)) = next(rest) {
        found.insert(key, point);
        rest = left;
    }
    (found, octets.len() - rest.len())
}

/// Returns the first record, and the octets behind it; `None` if it is incomplete.
fn next(octets: &[u8]) -> Option<(PointKey, Point, &[u8])> {
    let (length, rest) = octets.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    if CRC.checksum(body) != u32::from_le_bytes(*check) {
        return None;
    }
    let (key, point) = point(body)?;
    Some((key, point, rest))
}

fn point(body: &[u8]) -> Option<(PointKey, Point)> {
    let (key, body) = body.split_first_chunk::<32>()?;
    let (cpu_s, body) = body.split_first_chunk::<8>()?;
    let (rows, body) = body.split_first_chunk::<4>()?;
    let (columns, mut body) = body.split_first_chunk::<4>()?;
    let (rows, columns) = (u32::from_le_bytes(*rows) as usize, u32::from_le_bytes(*columns) as usize);
    let mut names = Vec::new();
    for _ in 0..columns {
        let (length, rest) = body.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        names.push(std::str::from_utf8(name).ok()?.to_owned());
        body = rest;
    }
    if body.len() != rows.checked_mul(columns)?.checked_mul(8)? {
        return None;
    }
    let (values, _) = body.as_chunks::<8>();
    let column = |place: usize| {
        values[place * rows..(place + 1) * rows].iter().map(|value| f64::from_le_bytes(*value))
    };
    let figures =
        Figures::of(names.into_iter().enumerate().map(|(place, name)| (name, column(place).collect())))?;
    Some((*key, Point { figures, cpu_s: f64::from_le_bytes(*cpu_s) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(point: usize, values: &[f64]) -> PointResult {
        let figures = Figures::of([
            ("completion_time_s".to_owned(), values.to_vec()),
            ("naks".to_owned(), values.iter().map(|value| value * 2.0).collect()),
        ]);
        PointResult { point, figures: figures.unwrap(), cpu_s: 0.25 }
    }

    fn key(number: u8) -> PointKey {
        [number; 32]
    }

    #[test]
    fn wherever_it_is_cut_whole_records_stay_and_more_can_follow() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, found, _) = Journal::open(&path).unwrap();
        assert!(found.is_empty());
        let mut ends = vec![HEADER.len()];
        for number in 0..3 {
            journal.keep(&key(number), &done(0, &[f64::from(number), f64::NAN])).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, found, lost) = Journal::open(&path).unwrap();
            let records = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
            assert_eq!(found.len(), records, "cut at {cut}");
            let kept = ends[records.min(2)..].iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
            assert_eq!(lost as usize, cut - kept, "cut at {cut}");
            journal.keep(&key(9), &done(0, &[9.0])).unwrap();
            drop(journal);
            let (_, found, lost) = Journal::open(&path).unwrap();
            assert_eq!((found.len(), lost), (records + 1, 0), "after a cut at {cut}");
            assert_eq!(found[&key(9)].figures.column("naks"), Some(&[18.0][..]));
        }
    }

    #[test]
    fn an_octet_that_changed_ends_what_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, ..) = Journal::open(&path).unwrap();
        for number in 0..2 {
            journal.keep(&key(number), &done(0, &[1.5])).unwrap();
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for at in HEADER.len()..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            let (_, found, lost) = Journal::open(&path).unwrap();
            assert!(found.len() < 2 && lost > 0, "octet {at}");
        }
    }

    #[test]
    fn one_process_writes_it_and_other_files_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (journal, ..) = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(SweepError::InUse(_))));
        drop(journal);
        std::fs::write(&path, "notes of mine").unwrap();
        assert!(matches!(Journal::open(&path), Err(SweepError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"notes of mine");
    }

    #[test]
    fn lengths_that_are_claimed_take_no_memory() {
        let mut body = key(1).to_vec();
        body.extend_from_slice(&0.0f64.to_le_bytes());
        body.extend_from_slice(&u32::MAX.to_le_bytes());
        body.extend_from_slice(&u32::MAX.to_le_bytes());
        assert!(point(&body).is_none());
    }
}
