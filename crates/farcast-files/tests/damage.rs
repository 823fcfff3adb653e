//! Damage in transit: it is located, and only the damaged parts are received again.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use farcast_files::chunks::Chunks;
use std::fs;

use common::{SEGMENT, completes, noise, one_file, open, plant, scan, segments, shuffle};
use farcast_core::Run;
use farcast_files::{Happening, Incoming, Outgoing, StoreError};

const PART: u64 = 1 << 20;

/// Returns the losses in `happenings` as (file, first segment, number of segments).
fn lost(happenings: &[Happening]) -> Vec<(Option<usize>, u32, u32)> {
    let each = |happening: &Happening| match happening {
        Happening::Damaged { index, lost } => Some((*index, lost.first(), lost.count())),
        _ => None,
    };
    happenings.iter().filter_map(each).collect()
}

/// Returns the segments with at least one byte of `part` of the only file.
fn segments_of(outgoing: &Outgoing, part: u64, size: u64) -> Run {
    let head = outgoing.manifest().head_len();
    let (start, end) = (head + part * PART, head + size.min((part + 1) * PART));
    let first = (start / u64::from(SEGMENT)) as u32;
    Run::new(first, end.div_ceil(SEGMENT.into()) as u32 - first).unwrap()
}

fn altered(segment: &[u8], at: usize) -> Vec<u8> {
    let mut bad = segment.to_vec();
    bad[at] ^= 1;
    bad
}

#[test]
fn only_the_part_that_is_wrong_is_lost_and_at_once() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = 5_000_000;
    let (path, outgoing, all) = one_file(from.path(), size);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let part = segments_of(&outgoing, 2, size as u64);
    let mut found = Vec::new();
    for (at, segment) in (0..).zip(&all) {
        let segment = if at == part.first() + 300 { altered(segment, 7) } else { segment.clone() };
        let happenings = incoming.store(at, &[&segment]).unwrap();
        if !lost(&happenings).is_empty() {
            // Damage is found once the part is complete, before the file is.
            assert_eq!(at, part.last());
            found.extend(lost(&happenings));
        }
    }
    assert_eq!(found, [(Some(0), part.first(), part.count())]);
    assert!(!incoming.is_complete() && !to.path().join("file").exists());
    assert_eq!(incoming.held().iter_gaps().collect::<Vec<_>>(), [part]);
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn what_was_found_right_is_not_written_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = 3_000_000;
    let (path, outgoing, all) = one_file(from.path(), size);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let part = segments_of(&outgoing, 1, size as u64);
    let mut bad = all.clone();
    bad[part.first() as usize + 5] = altered(&all[part.first() as usize + 5], 0);
    let happenings = fill_once(&mut incoming, &bad);
    assert_eq!(lost(&happenings).len(), 1);
    // The first segment of the part also has bytes of the part before. A second altered copy must not change these.
    let shared = part.first();
    assert_ne!((u64::from(shared) * u64::from(SEGMENT) - outgoing.manifest().head_len()) % PART, 0);
    incoming.store(shared, &[&altered(&all[shared as usize], 0)]).unwrap();
    completes(incoming, &all, &path, &to.path().join("file"));
}

/// Stores every segment once, whatever damage is found.
fn fill_once(incoming: &mut Incoming, all: &[Vec<u8>]) -> Vec<Happening> {
    let store = |(at, segment): (u32, &Vec<u8>)| incoming.store(at, &[segment]).unwrap();
    (0..).zip(all).flat_map(store).collect()
}

#[test]
fn a_lie_in_what_a_neighbour_shares_is_found_there() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = 3_000_000;
    let (path, outgoing, all) = one_file(from.path(), size);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let (before, part) = (segments_of(&outgoing, 0, size as u64), segments_of(&outgoing, 1, size as u64));
    assert_eq!(before.last(), part.first());
    // Stores all but one segment of the part before. Its end was hashed already when this part is found damaged.
    let late = before.first() + 300;
    for (at, segment) in (0..).zip(&all) {
        let bad = altered(segment, 0);
        match at {
            _ if at == late => {}
            _ if at == part.first() + 5 => drop(incoming.store(at, &[&bad]).unwrap()),
            _ => drop(incoming.store(at, &[segment]).unwrap()),
        }
    }
    assert!(!incoming.held().contains(part.first()) && incoming.held().contains(part.first() - 1));
    // The first byte of the shared segment belongs to the part before.
    incoming.store(part.first(), &[&altered(&all[part.first() as usize], 0)]).unwrap();
    let happenings: Vec<Happening> = part
        .segments()
        .skip(1)
        .chain([late])
        .flat_map(|at| incoming.store(at, &[&all[at as usize]]).unwrap())
        .collect();
    assert_eq!(lost(&happenings), [(Some(0), before.first(), before.count())]);
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn a_lie_in_a_hole_is_overwritten() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, vec![0; 3_000_000]).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let mut bad = all.clone();
    bad[1000] = altered(&all[1000], 700);
    assert_eq!(lost(&fill_once(&mut incoming, &bad)).len(), 1);
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn a_small_file_is_lost_whole_and_its_neighbours_are_not() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let wrong = outgoing.manifest().entries().iter().position(|e| e.path.ends_with(b"f400000")).unwrap();
    let before: u64 = outgoing.manifest().entries()[..wrong].iter().map(farcast_files::Entry::size).sum();
    let start = outgoing.manifest().head_len() + before;
    let at = ((start + 200_000) / u64::from(SEGMENT)) as usize;
    let mut bad = all.clone();
    bad[at] = altered(&all[at], 9);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let happenings = fill_once(&mut incoming, &bad);
    let first = (start / u64::from(SEGMENT)) as u32;
    let count = (start + 400_000).div_ceil(SEGMENT.into()) as u32 - first;
    assert_eq!(lost(&happenings), [(Some(wrong), first, count)]);
    // The damaged part is also missing after the process has ended.
    drop(incoming);
    let incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(!incoming.is_complete());
    completes(incoming, &all, &top, &to.path().join("tree"));
}

#[test]
fn what_is_right_of_neighbours_is_not_needed_again() {
    let from = tempfile::tempdir().unwrap();
    let top = from.path().join("t");
    fs::create_dir(&top).unwrap();
    for (at, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        fs::write(top.join(name), noise(at as u64 + 1, 20_000)).unwrap();
    }
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let bytes = outgoing.bytes_of(1).unwrap();
    let mut bad = all.concat();
    bad[bytes.start as usize..bytes.end as usize].fill(0);
    let bad: Vec<Vec<u8>> = bad.chunks(SEGMENT as usize).map(<[u8]>::to_vec).collect();
    // Forwards and backwards, so that the neighbour is complete before and after the damaged file.
    for backwards in [false, true] {
        let to = tempfile::tempdir().unwrap();
        let mut incoming = open(to.path(), &outgoing, SEGMENT);
        let head = (outgoing.manifest().head_len() / u64::from(SEGMENT) + 1) as usize;
        let mut order: Vec<usize> = (head..all.len()).collect();
        if backwards {
            order.reverse();
        }
        for at in (0..head).chain(order) {
            incoming.store(at as u32, &[&bad[at]]).unwrap();
        }
        for (name, is_there) in [("a", true), ("b", false), ("c", true), ("d", true)] {
            assert_eq!(to.path().join("t").join(name).exists(), is_there, "{name} {backwards}");
        }
        completes(incoming, &all, &top, &to.path().join("t"));
    }
}

#[test]
fn a_part_that_is_always_wrong_is_given_up() {
    // A part in the middle of the file, and the last part.
    for part in [1, 2] {
        always_wrong(part);
    }
}

fn always_wrong(part: u64) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = 3_000_000;
    let (path, outgoing, all) = one_file(from.path(), size);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let at = segments_of(&outgoing, part, size as u64).first() as usize + 5;
    let mut bad = all.clone();
    bad[at] = altered(&all[at], 0);
    let mut losses = 0;
    let error = loop {
        let gap = incoming.held().next_gap(0).unwrap();
        match incoming.store(gap.first(), &[&bad[gap.first() as usize]]) {
            Ok(happenings) => losses += lost(&happenings).len(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DigestMismatch { .. }), "{error}");
    assert_eq!(losses, 9);
    drop(incoming);
    completes(open(to.path(), &outgoing, SEGMENT), &all, &path, &to.path().join("file"));
}

#[test]
fn damage_before_a_restart_is_found_after_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let size = 3_000_000;
    let (path, outgoing, all) = one_file(from.path(), size);
    let part = segments_of(&outgoing, 1, size as u64);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    for (at, segment) in (0..part.last()).zip(&all) {
        let bad = altered(segment, 3);
        incoming.store(at, &[if at == part.first() + 1 { &bad } else { segment }]).unwrap();
    }
    incoming.abandon().unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let happenings = fill_once(&mut incoming, &all);
    assert_eq!(lost(&happenings), [(Some(0), part.first(), part.count())]);
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn a_damaged_head_is_asked_for_again() {
    for byte in [0, 5, 30] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, outgoing, all) = one_file(from.path(), 50_000);
        let bad = altered(&all[0], byte);
        let mut incoming = open(to.path(), &outgoing, SEGMENT);
        incoming.store(1, &[&all[1]]).unwrap();
        for _ in 0..9 {
            let happenings = incoming.store(0, &[&bad]).unwrap();
            // With a damaged length, the head may seem to take more segments.
            assert!(matches!(lost(&happenings)[..], [(None, 0, _)]), "{happenings:?}");
            assert!(!incoming.held().contains(0) && incoming.manifest().is_none());
            fill_up_to_the_head(&mut incoming, &all);
        }
        let found = incoming.store(0, &[&bad]);
        assert!(matches!(found, Err(StoreError::CorruptHead { .. })), "{found:?}");
        completes(incoming, &all, &path, &to.path().join("file"));
    }
}

/// Stores all but the first segment. The head of any length is then completed by that one.
fn fill_up_to_the_head(incoming: &mut Incoming, all: &[Vec<u8>]) {
    for (at, segment) in (0..).zip(all).skip(1) {
        incoming.store(at, &[segment]).unwrap();
    }
}

#[test]
fn an_empty_file_with_a_wrong_digest_is_the_senders_fault() {
    use farcast_files::{Entry, EntryKind, Manifest, Options};
    let to = tempfile::tempdir().unwrap();
    let kind = EntryKind::File { size: 0, digest: [7; 32] };
    let entry = Entry {
        path: b"empty".to_vec(),
        mode: 0o644,
        mtime_ns: 0,
        kind,
        parts: Box::default(),
        chunks: Chunks::default(),
    };
    let manifest = Manifest::new(vec![entry]).unwrap();
    let head = manifest.head();
    let mut incoming =
        Incoming::open(to.path(), manifest.id(), head.len() as u64, SEGMENT, Options::default()).unwrap();
    let found = incoming.store(0, &[&head]);
    assert!(matches!(found, Err(StoreError::DigestMismatch { .. })), "{found:?}");
}

#[test]
fn any_order_of_lies_and_truth_ends_with_the_truth() {
    let from = tempfile::tempdir().unwrap();
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let lens = [20_000_u32, 33_333, 9_000];
    let all = lens.map(|len| segments(&mut outgoing, len));
    for seed in 1..16_u64 {
        let to = tempfile::tempdir().unwrap();
        let mut which = 0;
        let mut incoming = open(to.path(), &outgoing, lens[0]);
        let (mut lies, mut losses) = (0, 0);
        let draws = noise(seed, 1_000_000);
        let mut draws = draws.iter().map(|byte| usize::from(*byte));
        while !incoming.is_complete() {
            if draws.next().unwrap() < 2 {
                which = draws.next().unwrap() % 3;
                if let Some(checkpoint) = incoming.checkpoint() {
                    checkpoint.run().unwrap();
                }
                drop(incoming);
                incoming = open(to.path(), &outgoing, lens[which]);
                losses += lost(&incoming.take_happenings()).len();
                continue;
            }
            let mut order: Vec<u32> = incoming.held().iter_gaps().flat_map(Run::segments).collect();
            if order.is_empty() {
                break;
            }
            shuffle(&mut order, seed + draws.next().unwrap() as u64);
            for at in order.into_iter().take(40) {
                let good = &all[which][at as usize];
                let lie = lies < 12 && draws.next().unwrap() < 8;
                lies += usize::from(lie);
                let segment = if lie { altered(good, good.len() / 2) } else { good.clone() };
                losses += lost(&incoming.store(at, &[&segment]).unwrap()).len();
            }
        }
        assert!(losses > 0, "seed {seed}: {lies} lies");
        completes(incoming, &all[which], &top, &to.path().join("tree"));
    }
}
