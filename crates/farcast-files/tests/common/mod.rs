//! Helpers for all tests: a tree to send, and functions that transfer it.
#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses its own part; a test may panic")]

use std::fs;
use std::io::IoSliceMut;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use farcast_files::{Happening, Incoming, Options, Outgoing, StoreError};

pub(crate) const SEGMENT: u32 = 1432;

/// Returns pseudorandom bytes, different for each `seed`.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Shuffles `items` in an order that depends on `seed` alone.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let bytes = noise(seed, items.len() * 8);
    for i in (1..items.len()).rev() {
        let draw = u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap());
        items.swap(i, (draw % (i as u64 + 1)) as usize);
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32, mtime: u64) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::File::options().read(true).open(path).unwrap().set_modified(time(mtime)).unwrap();
}

pub(crate) fn time(ns: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(ns)
}

/// Makes a tree with files of awkward sizes, directories, and unusual modes and times.
pub(crate) fn plant(dir: &Path) -> PathBuf {
    let top = dir.join("tree");
    fs::create_dir_all(top.join("deep/er/still")).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    for (i, size) in
        [0, 1, 2, 3, 1431, 1432, 1433, 131_071, 131_072, 131_073, 400_000].into_iter().enumerate()
    {
        let at = if i % 2 == 0 { top.join("deep/er") } else { top.clone() };
        let mode = [0o644, 0o600, 0o751, 0o640, 0o755][i % 5];
        write(
            &at.join(format!("f{size}")),
            &noise(i as u64 + 1, size),
            mode,
            1_000_000_007_123_456_789 + i as u64,
        );
    }
    write(&top.join("deep/big"), &noise(77, 3_000_001), 0o604, 999);
    for (name, mode) in [("deep/er/still", 0o750), ("empty", 0o711), ("deep/er", 0o705)] {
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    top
}

pub(crate) fn scan(path: &Path) -> Outgoing {
    Outgoing::scan(&[path], |_| {}).unwrap()
}

/// Makes one file of `len` bytes and scans it. Also returns its segments.
pub(crate) fn one_file(dir: &Path, len: usize) -> (PathBuf, Outgoing, Vec<Vec<u8>>) {
    let path = dir.join("file");
    fs::write(&path, noise(len as u64, len)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    (path, outgoing, all)
}

/// Returns every segment of a product.
pub(crate) fn segments(outgoing: &mut Outgoing, len: u32) -> Vec<Vec<u8>> {
    let mut all = vec![vec![0; len as usize]; outgoing.segment_count(len).unwrap() as usize];
    let mut offset = 0;
    for batch in all.chunks_mut(44) {
        let mut slots: Vec<_> = batch.iter_mut().map(|slot| IoSliceMut::new(slot)).collect();
        offset += outgoing.read_segments(offset, &mut slots).unwrap();
    }
    assert_eq!(offset, outgoing.size());
    let last = (offset - u64::from(len) * (all.len() as u64 - 1)) as usize;
    all.last_mut().unwrap().truncate(last);
    all
}

pub(crate) fn open(dir: &Path, outgoing: &Outgoing, len: u32) -> Incoming {
    try_open(dir, outgoing, len, Options::default()).unwrap()
}

pub(crate) fn try_open(
    dir: &Path,
    outgoing: &Outgoing,
    len: u32,
    options: Options,
) -> Result<Incoming, StoreError> {
    Incoming::open(dir, outgoing.id(), outgoing.size(), len, options)
}

/// Stores the missing segments in order and in batches.
pub(crate) fn fill(incoming: &mut Incoming, all: &[Vec<u8>]) -> Result<Vec<Happening>, StoreError> {
    let mut happenings = Vec::new();
    while let Some(gap) = incoming.held().next_gap(0) {
        let count = gap.count().min(44);
        let batch: Vec<&[u8]> =
            (gap.first()..gap.first() + count).map(|i| all[i as usize].as_slice()).collect();
        happenings.extend(incoming.store(gap.first(), &batch)?);
    }
    Ok(happenings)
}

/// Stores the missing segments, and asserts that the product is complete and equal to `sent`.
pub(crate) fn completes(mut incoming: Incoming, all: &[Vec<u8>], sent: &Path, received: &Path) {
    fill(&mut incoming, all).unwrap();
    incoming.finish().unwrap();
    assert_same(sent, received);
}

/// Lists everything below `dir`: path, mode, time, content.
pub(crate) fn listing(dir: &Path) -> Vec<(PathBuf, u32, SystemTime, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let relative = path.strip_prefix(dir).unwrap().to_owned();
        found.push((relative, meta.permissions().mode() & 0o777, meta.modified().unwrap(), content));
    }
    found.sort();
    found
}

pub(crate) fn assert_same(sent: &Path, received: &Path) {
    let (a, b) = (listing(sent), listing(received));
    assert_eq!(a.len(), b.len(), "{:?}", b.iter().map(|item| &item.0).collect::<Vec<_>>());
    for (a, b) in a.iter().zip(&b) {
        assert!(
            a == b,
            "{} differs from {}: {:?} {:?}",
            a.0.display(),
            b.0.display(),
            (a.1, a.2),
            (b.1, b.2)
        );
    }
}
