//! Comparison with older versions: content that moved is found and reused, and is always verified.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;

use common::{SEGMENT, completes, noise, open, scan, segments};
use farcast_files::chunks::{Chunk, Chunks};
use farcast_files::{Entry, EntryKind, Happening, Incoming, Manifest, Options, ProductId};

/// Stores the segments of the head only.
fn store_head(incoming: &mut Incoming, head_len: u64, all: &[Vec<u8>]) {
    let count = head_len.div_ceil(SEGMENT.into()) as usize;
    let head: Vec<&[u8]> = all[..count].iter().map(Vec::as_slice).collect();
    incoming.store(0, &head).unwrap();
    assert!(incoming.manifest().is_some());
}

fn missing(incoming: &Incoming) -> u32 {
    incoming.held().len() - incoming.held().count()
}

/// Sends `new` to a directory that has `old` under the same name. Returns the number of segments that are missing after
/// the comparison.
fn sent_over(old: &[u8], new: &[u8]) -> u32 {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, target) = (from.path().join("file"), to.path().join("file"));
    fs::write(&path, new).unwrap();
    fs::write(&target, old).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(
        incoming.has_earlier(b"file")
            && !incoming.has_earlier(b"another")
            && !incoming.has_earlier(b"../file")
    );
    assert_eq!(incoming.compare().unwrap(), [], "nothing is known yet");
    store_head(&mut incoming, outgoing.manifest().head_len(), &all);
    incoming.compare().unwrap();
    let missing = missing(&incoming);
    assert_eq!(
        fs::read(&target).unwrap() == new,
        missing == 0,
        "what is not complete has not its final name"
    );
    completes(incoming, &all, &path, &target);
    missing
}

#[test]
fn what_moved_is_found_where_it_was() {
    let old = noise(1, 8_000_000);
    let segments = |bytes: usize| bytes as u32 / SEGMENT;
    // Insertion at the front, removal from the middle, appended bytes, swapped halves, one changed byte.
    let cases = [
        [noise(2, 100_000), old.clone()].concat(),
        [&old[..3_000_000], &old[3_333_333..]].concat(),
        [old.clone(), noise(3, 50_000)].concat(),
        [&old[4_000_000..], &old[..4_000_000]].concat(),
        [&old[..5_000_000], &[old[5_000_000] ^ 1], &old[5_000_001..]].concat(),
    ];
    for (case, new) in cases.iter().enumerate() {
        let missing = sent_over(&old, new);
        assert!((1..segments(700_000)).contains(&missing), "case {case}: {missing} segments");
    }
    // The older version begins with the whole file.
    assert!(sent_over(&old, &old[..4_000_000]) < segments(300_000));
    let other = noise(4, 2_000_000);
    assert!(sent_over(&old, &other) >= segments(2_000_000), "nothing in common");
}

#[test]
fn a_short_file_is_compared_as_a_whole() {
    assert!(sent_over(&noise(5, 100_000), &[noise(5, 100_000), vec![1]].concat()) >= 100_000 / SEGMENT);
}

#[test]
fn a_far_longer_file_is_not_read() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, target) = (from.path().join("file"), to.path().join("file"));
    let new = noise(8, 1_000_000);
    for (len, read) in [(60 << 20, true), (80 << 20, false)] {
        fs::write(&path, &new).unwrap();
        fs::write(&target, &new).unwrap();
        fs::File::options().write(true).open(&target).unwrap().set_len(len).unwrap();
        let mut outgoing = scan(&path);
        let all = segments(&mut outgoing, SEGMENT);
        let mut incoming = open(to.path(), &outgoing, SEGMENT);
        store_head(&mut incoming, outgoing.manifest().head_len(), &all);
        let before = missing(&incoming);
        incoming.compare().unwrap();
        assert_eq!(missing(&incoming) < before, read, "{len}");
        completes(incoming, &all, &path, &target);
    }
}

/// Makes a product of one file with a forged list: the first chunk is that of `claimed`, the second is true. Also
/// returns its segments.
fn forged(content: &[u8], claimed: &[u8]) -> (Manifest, Vec<Vec<u8>>) {
    let chunk = |bytes: &[u8]| Chunk {
        len: bytes.len() as u32,
        digest: *blake3::hash(bytes).as_bytes().first_chunk().unwrap(),
    };
    let list = Box::new([chunk(claimed), chunk(&content[claimed.len()..])]);
    let entry = Entry {
        path: b"file".to_vec(),
        mode: 0o644,
        mtime_ns: 0,
        kind: EntryKind::File { size: content.len() as u64, digest: *blake3::hash(content).as_bytes() },
        parts: Box::default(),
        chunks: Chunks::new(16, list, content.len() as u64).unwrap(),
    };
    let manifest = Manifest::new(vec![entry]).unwrap();
    let product = [manifest.head(), content.to_vec()].concat();
    (manifest, product.chunks(SEGMENT as usize).map(<[u8]>::to_vec).collect())
}

#[test]
fn a_list_that_lies_costs_what_it_lied_about() {
    let to = tempfile::tempdir().unwrap();
    let target = to.path().join("file");
    // A comparison cuts the older version into a single chunk, and the forged list claims that the new one begins with
    // it.
    let (old, content) = (noise(6, 30_000), noise(7, 270_000));
    fs::write(&target, &old).unwrap();
    let (manifest, all) = forged(&content, &old);
    let id: ProductId = manifest.id();
    let mut incoming =
        Incoming::open(to.path(), id, manifest.product_size(), SEGMENT, Options::default()).unwrap();
    store_head(&mut incoming, manifest.head_len(), &all);
    let before = missing(&incoming);
    incoming.compare().unwrap();
    assert!(before - missing(&incoming) >= 30_000 / SEGMENT - 2, "the lie is believed");
    let happenings = common::fill(&mut incoming, &all).unwrap();
    let damaged = |happening: &Happening| matches!(happening, Happening::Damaged { .. });
    assert!(happenings.iter().any(damaged), "and found out");
    finish(incoming, &all, &target, &content);
}

fn finish(mut incoming: Incoming, all: &[Vec<u8>], target: &Path, content: &[u8]) {
    common::fill(&mut incoming, all).unwrap();
    assert!(incoming.is_complete());
    incoming.finish().unwrap();
    assert!(fs::read(target).unwrap() == content);
}
