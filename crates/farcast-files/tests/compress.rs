//! Transfers of compressed files.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and opens its own files"
)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{SEGMENT, assert_same, completes, fill, listing, noise, open, segments, try_open};
use farcast_files::chunks::Chunks;
use farcast_files::{
    Entry, EntryKind, Grain, Happening, Incoming, Manifest, Options, Outgoing, Overwrite, Quota, Scanning,
    SourceError, StoreError, partials,
};
use tempfile::TempDir;

const GROUP: usize = 4 << 20;

fn dirs() -> (TempDir, TempDir) {
    (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
}

/// Returns compressible bytes.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 32);
    for number in noise(seed, len + 16).chunks(8) {
        text.extend_from_slice(format!("{:?} is at {}\n", &number[..2], text.len()).as_bytes());
        if text.len() >= len {
            break;
        }
    }
    text.truncate(len);
    text
}

fn compress_by(grain: Grain, path: &Path) -> Outgoing {
    let scanning = Scanning { grain, compress: Some(std::env::temp_dir()) };
    Outgoing::scan_by(&scanning, &[path], |_| {}).unwrap()
}

fn compress(path: &Path) -> Outgoing {
    compress_by(Grain::Coarse, path)
}

/// Writes and scans one compressed file with this content. Also returns its segments.
fn one(dir: &Path, content: &[u8]) -> (PathBuf, Outgoing, Vec<Vec<u8>>) {
    let path = dir.join("file");
    fs::write(&path, content).unwrap();
    let mut outgoing = compress(&path);
    let all = segments(&mut outgoing, SEGMENT);
    (path, outgoing, all)
}

/// Makes a product of one file from an arbitrary `kind` and the bytes behind the manifest. Returns its manifest and
/// segments.
fn made_up(kind: EntryKind, stored: &[u8]) -> (Manifest, Vec<Vec<u8>>) {
    let entry = Entry {
        path: b"file".to_vec(),
        mode: 0o644,
        mtime_ns: 0,
        kind,
        parts: Box::default(),
        chunks: Chunks::default(),
    };
    let manifest = Manifest::new(vec![entry]).unwrap();
    let product = [manifest.head(), stored.to_vec()].concat();
    (manifest, product.chunks(SEGMENT as usize).map(<[u8]>::to_vec).collect())
}

/// Returns the kind of a file with this `content` that is compressed to `stored`.
fn claim(content: &[u8], stored: &[u8]) -> EntryKind {
    EntryKind::Compressed {
        size: content.len() as u64,
        digest: *blake3::hash(content).as_bytes(),
        stored: stored.len() as u64,
        stored_digest: *blake3::hash(stored).as_bytes(),
    }
}

fn begin(dir: &Path, manifest: &Manifest, options: Options) -> Incoming {
    Incoming::open(dir, manifest.id(), manifest.product_size(), SEGMENT, options).unwrap()
}

/// Compresses `content` with zstd directly.
fn stored_of(content: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(content, 9).unwrap()
}

#[test]
fn what_becomes_shorter_is_compressed_and_all_arrives() {
    let (from, to) = dirs();
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    let shorter = [("a", 300_000), ("sub/group", GROUP), ("sub/more", GROUP + 1), ("z", 9_000_000)];
    for (at, (name, len)) in shorter.into_iter().enumerate() {
        common::write(&tree.join(name), &text(at as u64, len), 0o640, 1_000_000_007_123_456_789);
    }
    // Noise, a file too short to gain anything, an empty one, and a long one of which only the beginning is text.
    fs::write(tree.join("noise"), noise(1, 7_000_000)).unwrap();
    fs::write(tree.join("short"), b"aaaaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("mixed"), [text(7, 512 << 10), noise(2, 20 << 20)].concat()).unwrap();
    for grain in [Grain::Coarse, Grain::Fine] {
        let mut outgoing = compress_by(grain, &tree);
        outgoing.watch(&|| true);
        assert_eq!(outgoing.changed(), []);
        for entry in outgoing.manifest().entries().iter().filter(|entry| entry.is_file()) {
            let path = String::from_utf8_lossy(&entry.path[5..]).into_owned();
            let expected = shorter.iter().any(|(name, _)| *name == path) || path == "mixed";
            assert_eq!(entry.is_compressed(), expected && path != "mixed", "{path}");
            assert_eq!(entry.stored() < entry.size(), entry.is_compressed(), "{path}");
            assert_eq!(entry.chunks.is_empty(), entry.is_compressed() || entry.size() < 256 << 10, "{path}");
        }
        let compressed = outgoing.manifest().compressed();
        assert_eq!((compressed.files, compressed.size), (4, 9_300_001 + 2 * GROUP as u64));
        let total = outgoing.manifest().files_len() - outgoing.manifest().content_len();
        assert_eq!(total, compressed.size - compressed.stored);
        // A second scan gives the same product, whatever the threads do.
        assert_eq!(compress_by(grain, &tree).id(), outgoing.id());
        let all = segments(&mut outgoing, SEGMENT);
        let to = to.path().join(format!("{grain:?}"));
        fs::create_dir(&to).unwrap();
        let mut incoming = open(&to, &outgoing, SEGMENT);
        let mut order: Vec<usize> = (0..all.len()).collect();
        common::shuffle(&mut order[outgoing.manifest().head_len() as usize / SEGMENT as usize + 1..], 3);
        let mut done = 0;
        for at in order {
            let happened = incoming.store(at as u32, &[&all[at]]).unwrap();
            done += happened.iter().filter(|one| matches!(one, Happening::FileDone { .. })).count();
        }
        assert!(incoming.is_complete() && done == 8, "{done}");
        incoming.finish().unwrap();
        assert_same(&tree, &to.join("tree"));
        assert_eq!(listing(&to).len(), listing(&tree).len() + 1, "nothing else is left");
    }
}

#[test]
fn holes_stay_holes() {
    let (from, to) = dirs();
    let (path, _, all) = one(from.path(), &[text(1, 100_000), vec![0; 8 << 20]].concat());
    let outgoing = compress(&path);
    completes(open(to.path(), &outgoing, SEGMENT), &all, &path, &to.path().join("file"));
    assert!(fs::metadata(to.path().join("file")).unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn what_is_compressed_is_sent_as_it_was_although_its_file_changes() {
    let (from, _) = dirs();
    let (path, outgoing, _) = one(from.path(), &text(1, 100_000));
    assert!(outgoing.manifest().entries()[0].is_compressed());
    fs::write(&path, text(2, 100_000)).unwrap();
    outgoing.watch(&|| true);
    assert_eq!(outgoing.changed(), []);
}

#[test]
fn a_spool_without_a_place_is_told_in_a_sentence() {
    let (from, _) = dirs();
    let path = from.path().join("file");
    fs::write(&path, text(1, 100_000)).unwrap();
    let scanning = Scanning { compress: Some(from.path().join("nowhere")), ..Scanning::default() };
    let refused = Outgoing::scan_by(&scanning, &[&path], |_| {}).unwrap_err();
    assert!(matches!(refused, SourceError::Spool { .. }));
    assert!(refused.to_string().contains("nowhere") && refused.to_string().contains("TMPDIR"), "{refused}");
}

#[test]
fn damage_is_found_by_the_part_and_received_again() {
    let (from, to) = dirs();
    let (path, outgoing, all) = one(from.path(), &text(1, 40_000_000));
    let entry = &outgoing.manifest().entries()[0];
    assert!(entry.is_compressed() && entry.parts.len() > 2, "{} parts", entry.parts.len());
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let hurt = all.len() as u32 / 2;
    let mut wrong = all.clone();
    wrong[hurt as usize][7] ^= 1;
    let happened = fill_once(&mut incoming, &wrong);
    let lost = happened.iter().find_map(|one| match one {
        Happening::Damaged { index: Some(0), lost } => Some(*lost),
        _ => None,
    });
    let lost = lost.expect("it is found");
    assert!(lost.first() <= hurt && hurt < lost.end() && lost.count() < all.len() as u32 / 2, "{lost:?}");
    completes(incoming, &all, &path, &to.path().join("file"));
}

/// Stores every segment once.
fn fill_once(incoming: &mut Incoming, all: &[Vec<u8>]) -> Vec<Happening> {
    let store = |(at, segment): (usize, &Vec<u8>)| incoming.store(at as u32, &[segment]).unwrap();
    all.iter().enumerate().flat_map(store).collect()
}

/// Asserts that the product of `stored` is refused, and that nothing of it is left after it is discarded.
#[track_caller]
fn refused(content: &[u8], stored: &[u8]) {
    let to = tempfile::tempdir().unwrap();
    let (manifest, all) = made_up(claim(content, stored), stored);
    let mut incoming = begin(to.path(), &manifest, Options::default());
    let refused = fill(&mut incoming, &all).unwrap_err();
    assert!(matches!(refused, StoreError::BadCompression { .. }), "{refused}");
    assert!(!to.path().join("file").exists(), "never under its final name");
    let left: Vec<_> = listing(to.path()).into_iter().map(|(path, ..)| path).collect();
    assert!(!left.iter().any(|path| path.to_string_lossy().contains("unpacked")), "{left:?}");
    incoming.discard().unwrap();
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

#[test]
fn what_does_not_become_what_it_should_is_refused() {
    let content = text(1, 100_000);
    let good = stored_of(&content);
    // More bytes than listed, fewer, no frame, part of a frame, and other content of the same length.
    refused(&content, &stored_of(&[content.as_slice(), b"more"].concat()));
    refused(&content, &[good.as_slice(), &stored_of(&vec![0; 100 << 20])].concat());
    refused(&content, &stored_of(&content[..99_999]));
    refused(&content, &noise(1, 5000));
    refused(&content, &good[..good.len() - 1]);
    refused(&content, &stored_of(&text(2, 100_000)));
}

#[test]
fn what_is_claimed_is_held_against_the_quota_before_anything_is_taken() {
    let content = text(1, 3_000_000);
    let stored = stored_of(&content);
    let (manifest, all) = made_up(claim(&content, &stored), &stored);
    let needed = manifest.product_size() + 3_000_000;
    for (octets, fits) in [(needed - 1, false), (needed, true)] {
        let to = tempfile::tempdir().unwrap();
        let quota = Quota { octets: Some(octets), ..Quota::default() };
        let mut incoming = begin(to.path(), &manifest, Options { quota, ..Options::default() });
        match fill(&mut incoming, &all) {
            Ok(_) => assert!(fits && incoming.is_complete()),
            Err(StoreError::OverQuota { needed: told, available, .. }) => {
                assert!(!fits, "{told} of {available}");
                assert_eq!((told, available), (needed, octets));
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(to.path().join("file").exists(), fits);
    }
}

#[test]
fn a_kill_between_decompressing_and_the_name_loses_nothing() {
    let (from, to) = dirs();
    let (path, outgoing, all) = one(from.path(), &text(1, 6_000_000));
    // The last segment is missing.
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let last = all.len() - 1;
    for (at, segment) in all[..last].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    let checkpoint = incoming.checkpoint().unwrap();
    checkpoint.run().unwrap();
    drop(incoming);
    // A killed process leaves some of the content under the name of a file being decompressed.
    let tag = &outgoing.id().to_string()[..8];
    let unpacked = to.path().join(format!(".file.{tag}-unpacked.farcast-part"));
    fs::write(&unpacked, b"half of it").unwrap();
    let listed = partials::list(to.path()).unwrap();
    assert_eq!(listed.len(), 1);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert_eq!(incoming.held().count(), last as u32, "nothing has to come again");
    incoming.store(last as u32, &[&all[last]]).unwrap();
    assert!(incoming.is_complete());
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "{:?}", listing(to.path()));
}

#[test]
fn a_kill_after_the_name_loses_nothing_even_where_nothing_is_overwritten() {
    let options = Options { overwrite: Overwrite::Keep, ..Options::default() };
    let (from, to) = dirs();
    let (path, outgoing, all) = one(from.path(), &text(1, 6_000_000));
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, options).unwrap();
    let last = all.len() - 1;
    for (at, segment) in all[..last].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    incoming.checkpoint().unwrap().run().unwrap();
    incoming.store(last as u32, &[&all[last]]).unwrap();
    assert!(to.path().join("file").exists());
    // The journal was written before the file got its name.
    drop(incoming);
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, options).unwrap();
    incoming.store(last as u32, &[&all[last]]).unwrap();
    assert!(incoming.is_complete());
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
}

#[test]
fn what_is_there_already_is_not_received_again() {
    let (from, to) = dirs();
    let (path, outgoing, all) = one(from.path(), &text(1, 6_000_000));
    fs::copy(&path, to.path().join("file")).unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let happened = incoming.store(0, &[&all[0]]).unwrap();
    assert!(happened.contains(&Happening::FileDone { index: 0 }), "{happened:?}");
    assert!(incoming.is_complete() && incoming.held().is_full());
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
}

/// Makes a product of a compressed file that `to` already has, and noise that it does not have. Also returns its
/// segments.
fn half_there(from: &Path, to: &Path) -> (PathBuf, Outgoing, Vec<Vec<u8>>) {
    let tree = from.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::create_dir(to.join("tree")).unwrap();
    fs::write(tree.join("a"), text(1, 5_000_000)).unwrap();
    fs::write(tree.join("b"), noise(1, 100_000)).unwrap();
    fs::copy(tree.join("a"), to.join("tree/a")).unwrap();
    let mut outgoing = compress(&tree);
    let all = segments(&mut outgoing, SEGMENT);
    (tree, outgoing, all)
}

/// Reads all held segments, as rebuilding from parity does. Returns `false` if some are no longer available.
fn reads_back(incoming: &mut Incoming, all: &[Vec<u8>]) -> bool {
    let held = incoming.held().clone();
    for run in held.iter_runs() {
        let mut buffer = vec![0; run.count() as usize * SEGMENT as usize];
        if !incoming.read(run.first(), &mut buffer).unwrap() {
            return false;
        }
        for (at, slot) in run.segments().zip(buffer.chunks(SEGMENT as usize)) {
            let sent = &all[at as usize];
            assert!(slot[..sent.len()] == sent[..], "segment {at}");
        }
    }
    true
}

#[test]
fn blocks_can_be_rebuilt_beside_what_was_decompressed_or_there_already() {
    // The existing file is compressed again.
    let (from, to) = dirs();
    let (tree, outgoing, all) = half_there(from.path(), to.path());
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    incoming.store(0, &[&all[0]]).unwrap();
    assert!(incoming.held().count() > 100);
    assert!(reads_back(&mut incoming, &all));
    completes(incoming, &all, &tree, &to.path().join("tree"));
    assert_eq!(fs::read_dir(to.path().join("tree")).unwrap().count(), 2);

    // The compressed content stays, even across a restart.
    let to = tempfile::tempdir().unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let stored = outgoing.manifest().entries()[1].stored();
    let end = (outgoing.manifest().head_len() + stored).div_ceil(u64::from(SEGMENT)) as usize;
    for (at, segment) in all[..end].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    assert!(to.path().join("tree/a").exists() && !to.path().join("tree/b").exists());
    assert!(reads_back(&mut incoming, &all));
    assert!(incoming.abandon().unwrap());
    // Only the received content counts as used; the decompressed file is delivered.
    let lock = to.path().join(".farcast").join(outgoing.id().to_string()).join("lock");
    let taken = u64::from_be_bytes(fs::read(lock).unwrap()[..8].try_into().unwrap());
    assert!(taken >= stored && taken <= outgoing.size(), "{taken} of {}", outgoing.size());
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert_eq!(incoming.held().count(), end as u32);
    assert!(reads_back(&mut incoming, &all));
    completes(incoming, &all, &tree, &to.path().join("tree"));
    assert_eq!(fs::read_dir(to.path().join("tree")).unwrap().count(), 2);
}

#[test]
fn what_cannot_be_compressed_alike_is_received() {
    let (from, to) = dirs();
    let content = text(1, 300_000);
    fs::write(from.path().join("file"), &content).unwrap();
    fs::copy(from.path().join("file"), to.path().join("file")).unwrap();
    // Another compression level stands for another version of zstd.
    let stored = zstd::bulk::compress(&content, 1).unwrap();
    let (manifest, all) = made_up(claim(&content, &stored), &stored);
    let options = Options { overwrite: Overwrite::Keep, ..Options::default() };
    let mut incoming = begin(to.path(), &manifest, options);
    incoming.store(0, &[&all[0]]).unwrap();
    assert!(incoming.is_complete());
    assert!(!reads_back(&mut incoming, &all));
    let lost = incoming.take_happenings();
    assert!(matches!(lost[..], [Happening::Dropped { .. }]), "{lost:?}");
    assert!(!incoming.is_complete() && !incoming.held().is_full());
    let happened = fill(&mut incoming, &all).unwrap();
    assert!(happened.is_empty(), "that the file is done was told: {happened:?}");
    assert!(incoming.is_complete() && reads_back(&mut incoming, &all));
    incoming.finish().unwrap();
    assert!(fs::read(to.path().join("file")).unwrap() == content);
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
}

#[test]
fn what_is_not_complete_is_removed_altogether() {
    let (from, to) = dirs();
    let (_, outgoing, all) = half_there(from.path(), tempfile::tempdir().unwrap().path());
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    for (at, segment) in all[..all.len() - 10].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    assert!(incoming.abandon().unwrap());
    assert!(to.path().join("tree/a").exists());
    assert_eq!(fs::read_dir(to.path().join("tree")).unwrap().count(), 3, "what came of it is there, too");
    let [one] = &partials::list(to.path()).unwrap()[..] else { panic!("one") };
    assert!(one.usage.octets >= outgoing.manifest().content_len() - 200_000, "{one:?}");
    partials::remove(to.path(), outgoing.id()).unwrap();
    only_a_is_left(to.path());

    // The receiver itself discards it.
    fs::remove_dir_all(to.path().join("tree")).unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    for (at, segment) in all[..all.len() - 10].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    incoming.discard().unwrap();
    only_a_is_left(to.path());
}

#[track_caller]
fn only_a_is_left(to: &Path) {
    let left: Vec<_> = fs::read_dir(to.join("tree")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["a"], "a file that is complete stays");
    assert!(!to.join(".farcast").exists());
}
