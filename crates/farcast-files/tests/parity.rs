//! Parity symbols that wait on disk for their block.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and opens its own files"
)]

use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use farcast_files::{Coding, Incoming, Options, Outgoing, Quota, StoreError};

const LEN: usize = 100;
const CODING: Coding = Coding { symbol_len: LEN as u16, source: 50, parity: 50 };

/// Makes a product of about 300 segments. Also returns the segments.
fn product(dir: &Path) -> (Outgoing, Vec<Vec<u8>>) {
    let content: Vec<u8> = (0..30_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.join("file"), content).unwrap();
    let mut outgoing = Outgoing::scan(&[dir.join("file")], |_| {}).unwrap();
    let count = outgoing.segment_count(LEN as u32).unwrap();
    let read = |segment| {
        let mut slot = vec![0; LEN];
        let at = u64::from(segment) * LEN as u64;
        let len = outgoing.read_segments(at, &mut [IoSliceMut::new(&mut slot)]).unwrap();
        slot.truncate(len as usize);
        slot
    };
    let segments = (0..count).map(read).collect();
    (outgoing, segments)
}

fn open(dir: &Path, outgoing: &Outgoing) -> Incoming {
    Incoming::open(dir, outgoing.id(), outgoing.size(), LEN as u32, Options::default()).unwrap()
}

/// Begins a reception: stores the list of files, and 10 symbols each of blocks 1 to 3.
fn begun(dir: &Path, (outgoing, segments): &(Outgoing, Vec<Vec<u8>>)) -> Incoming {
    let mut incoming = open(dir, outgoing);
    let head: Vec<&[u8]> = segments[..10].iter().map(Vec::as_slice).collect();
    let _ = incoming.store(0, &head).unwrap();
    assert!(incoming.manifest().is_some());
    for block in 1..4 {
        let symbols: Vec<_> = (0..10).map(|symbol| bytes(block, symbol)).collect();
        let slices: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        assert!(incoming.keep_parity(CODING, block, 5, &slices[..4]).unwrap());
        assert!(incoming.keep_parity(CODING, block, 9, &slices[4..]).unwrap());
    }
    incoming
}

/// Returns the content of a symbol, which is different for each block and number.
fn bytes(block: u32, symbol: u32) -> Vec<u8> {
    (0..LEN as u32).map(|at| (block * 31 + symbol * 7 + at) as u8).collect()
}

fn read(incoming: &Incoming, block: u32) -> Vec<u32> {
    let symbols = incoming.read_parity(block).unwrap();
    assert!(symbols.iter().all(|(symbol, octets)| **octets == bytes(block, symbol - 5)));
    symbols.iter().map(|(symbol, _)| *symbol).collect()
}

fn side_file(dir: &Path, name: &str) -> PathBuf {
    let state = std::fs::read_dir(dir.join(".farcast")).unwrap().next().unwrap().unwrap();
    state.path().join(name)
}

const TEN: std::ops::Range<u32> = 5..15;

#[test]
fn it_is_there_after_a_kill_and_after_a_stop() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let product = product(from.path());
    let incoming = begun(to.path(), &product);
    assert_eq!(read(&incoming, 2), TEN.collect::<Vec<_>>());
    assert_eq!(read(&incoming, 4), []);
    // A kill drops the reception without a checkpoint.
    drop(incoming);
    let mut incoming = open(to.path(), &product.0);
    let kept = incoming.kept_parity(CODING).unwrap();
    assert_eq!(kept, (1..4).map(|block| (block, TEN.collect())).collect::<Vec<_>>());
    assert_eq!(read(&incoming, 3), TEN.collect::<Vec<_>>());
    // Symbols that are erased stay erased.
    incoming.forget_parity(3, true).unwrap();
    incoming.forget_parity(1, false).unwrap();
    assert!(incoming.keep_parity(CODING, 7, 5, &[&bytes(7, 0)]).unwrap());
    drop(incoming);
    let mut incoming = open(to.path(), &product.0);
    let blocks: Vec<_> = incoming.kept_parity(CODING).unwrap().into_iter().map(|(block, _)| block).collect();
    assert_eq!(blocks, [1, 2, 7], "block 1 is left to who knows that it is complete");
    assert_eq!(read(&incoming, 7), [5]);
    assert_eq!(
        std::fs::metadata(side_file(to.path(), "parity")).unwrap().len(),
        30 * LEN as u64,
        "used again"
    );
    // With a list of files, parity alone is worth keeping.
    assert!(incoming.abandon().unwrap() || product.1.len() < 10);
}

#[test]
fn what_is_not_as_it_was_is_not_used() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let product = product(from.path());
    drop(begun(to.path(), &product));
    // A power loss: some slots were never written, and one entry is torn.
    let data = std::fs::File::options().write(true).open(side_file(to.path(), "parity")).unwrap();
    data.write_all_at(&[0; LEN], 12 * LEN as u64).unwrap();
    data.write_all_at(&[1], 13 * LEN as u64).unwrap();
    let index = std::fs::File::options().write(true).open(side_file(to.path(), "parity.index")).unwrap();
    index.write_all_at(&[0xEE; 4], 24 + 14 * 16 + 8).unwrap();
    let mut incoming = open(to.path(), &product.0);
    incoming.kept_parity(CODING).unwrap();
    assert_eq!(read(&incoming, 2), [5, 6, 10, 11, 12, 13, 14]);
    assert_eq!(read(&incoming, 1).len(), 10);
    // Symbols are useless for another coding, which begins anew.
    drop(incoming);
    let other = Coding { parity: 49, ..CODING };
    let mut incoming = open(to.path(), &product.0);
    assert_eq!(incoming.kept_parity(other).unwrap(), []);
    assert!(incoming.keep_parity(other, 2, 5, &[&bytes(2, 0)]).unwrap());
    assert_eq!(read(&incoming, 2), [5]);
}

#[test]
fn it_counts_against_the_quota_and_goes_with_the_product() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let product = product(from.path());
    let quota = Quota { octets: Some(product.0.size() + 2000), ..Quota::default() };
    let options = Options { quota, ..Options::default() };
    let mut incoming =
        Incoming::open(to.path(), product.0.id(), product.0.size(), LEN as u32, options).unwrap();
    let all: Vec<&[u8]> = product.1.iter().map(Vec::as_slice).collect();
    let _ = incoming.store(0, &all[..10]).unwrap();
    let _ = incoming.store(10, &all[10..all.len() - 1]).unwrap();
    let symbol = bytes(1, 0);
    let fit = (0..100).take_while(|&n| incoming.keep_parity(CODING, 1, n, &[&symbol]).is_ok()).count();
    assert!((10..20).contains(&fit), "{fit}");
    let refused = incoming.keep_parity(CODING, 1, 60, &[&symbol]);
    assert!(matches!(refused, Err(StoreError::OverQuota { .. })), "{refused:?}");
    // A free slot is used without asking for room.
    incoming.forget_parity(1, true).unwrap();
    assert!(incoming.keep_parity(CODING, 1, 0, &[&symbol]).unwrap());
    let _ = incoming.store(all.len() as u32 - 1, &all[all.len() - 1..]).unwrap();
    incoming.finish().unwrap();
    assert!(!to.path().join(".farcast").exists());
}

#[test]
fn wrong_lengths_are_refused() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let product = product(from.path());
    let mut incoming = begun(to.path(), &product);
    assert!(matches!(
        incoming.keep_parity(CODING, 1, 0, &[&[0; LEN - 1]]),
        Err(StoreError::BadSegment { .. })
    ));
}
