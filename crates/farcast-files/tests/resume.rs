//! Continuation of a reception after the end of the process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{
    SEGMENT, assert_same, completes, fill, noise, one_file, open, plant, scan, segments, shuffle, try_open,
};
use farcast_core::Bitmap;
use farcast_files::{Happening, Options, Outgoing, StoreError};

fn state(dir: &Path, outgoing: &Outgoing, name: &str) -> PathBuf {
    dir.join(".farcast").join(outgoing.id().to_string()).join(name)
}

fn partial(dir: &Path, outgoing: &Outgoing) -> PathBuf {
    dir.join(format!(".file.{}.farcast-part", &outgoing.id().to_string()[..8]))
}

/// Stores half of the segments, takes a checkpoint, stores more and drops the reception. Returns the segments of the
/// checkpoint.
fn killed(dir: &Path, outgoing: &Outgoing, all: &[Vec<u8>], with_head: bool) -> Bitmap {
    let mut order: Vec<_> = (usize::from(!with_head)..all.len() - 1).collect();
    shuffle(&mut order, 3);
    let mut incoming = open(dir, outgoing, SEGMENT);
    if with_head {
        incoming.store(0, &[&all[0]]).unwrap();
    }
    let (before, after) = order.split_at(all.len() / 2);
    for at in before {
        incoming.store(*at as u32, &[&all[*at]]).unwrap();
    }
    let checkpoint = incoming.checkpoint().unwrap();
    let held = checkpoint.held().clone();
    for at in &after[..after.len() / 2] {
        incoming.store(*at as u32, &[&all[*at]]).unwrap();
    }
    std::thread::scope(|scope| scope.spawn(|| checkpoint.run().unwrap()).join().unwrap());
    held
}

#[test]
fn goes_on_from_the_checkpoint() {
    for with_head in [true, false] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, outgoing, all) = one_file(from.path(), 700_000);
        let held = killed(to.path(), &outgoing, &all, with_head);
        let mut incoming = open(to.path(), &outgoing, SEGMENT);
        assert_eq!(incoming.held(), &held);
        assert_eq!(incoming.manifest().is_some(), with_head);
        assert_eq!(incoming.take_happenings().len(), usize::from(with_head));
        completes(incoming, &all, &path, &to.path().join("file"));
    }
}

#[test]
fn a_damaged_journal_is_ignored() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, outgoing, all) = one_file(from.path(), 300_000);
    killed(to.path(), &outgoing, &all, true);
    let journal = state(to.path(), &outgoing, "journal");
    let good = fs::read(&journal).unwrap();
    for len in [0, 3, 60, good.len() - 1] {
        fs::write(&journal, &good[..len]).unwrap();
        assert!(open(to.path(), &outgoing, SEGMENT).held().is_empty());
    }
    open(to.path(), &outgoing, SEGMENT).store(1, &[&all[1]]).unwrap();
    fs::write(&journal, &good).unwrap();
    // The spool was made anew, so this journal vouches for a head that is gone.
    let incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(incoming.held().is_empty());
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn a_journal_without_its_spool_is_forgotten() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, outgoing, all) = one_file(from.path(), 300_000);
    killed(to.path(), &outgoing, &all, false);
    fs::remove_file(state(to.path(), &outgoing, "spool")).unwrap();
    for _ in 0..2 {
        assert!(open(to.path(), &outgoing, SEGMENT).held().is_empty());
    }
    completes(open(to.path(), &outgoing, SEGMENT), &all, &path, &to.path().join("file"));
}

#[test]
fn another_segment_length_keeps_what_is_wholly_covered() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, mut outgoing, all) = one_file(from.path(), 300_000);
    let held = killed(to.path(), &outgoing, &all, true);
    let other = segments(&mut outgoing, 1000);
    let incoming = open(to.path(), &outgoing, 1000);
    let covered = |segment: u64| {
        let end = outgoing.size().min((segment + 1) * 1000);
        (segment * 1000 / 1432..end.div_ceil(1432)).all(|old| held.contains(old as u32))
    };
    for segment in 0..other.len() as u32 {
        assert_eq!(incoming.held().contains(segment), covered(segment.into()), "segment {segment}");
    }
    assert!(incoming.held().count() > 50);
    completes(incoming, &other, &path, &to.path().join("file"));
}

#[test]
fn a_partial_that_is_gone_or_cut_is_not_held() {
    for cut in [true, false] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, outgoing, all) = one_file(from.path(), 300_000);
        killed(to.path(), &outgoing, &all, true);
        let partial = partial(to.path(), &outgoing);
        if cut {
            fs::File::options().write(true).open(&partial).unwrap().set_len(299_999).unwrap();
        } else {
            fs::remove_file(&partial).unwrap();
        }
        let mut incoming = open(to.path(), &outgoing, SEGMENT);
        // The new partial file has the right size, but not the content for which the old journal vouches.
        incoming.store(5, &[&all[5]]).unwrap();
        drop(incoming);
        let incoming = open(to.path(), &outgoing, SEGMENT);
        assert!(incoming.held().is_empty());
        completes(incoming, &all, &path, &to.path().join("file"));
    }
}

#[test]
fn finished_files_are_looked_at_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    incoming.abandon().unwrap();
    assert!(open(to.path(), &outgoing, SEGMENT).is_complete());
    let damaged = to.path().join("tree/deep/big");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(!incoming.is_complete());
    let missing = incoming.held().len() - incoming.held().count();
    assert_eq!(missing, 3_000_001_u32.div_ceil(SEGMENT) + 1);
    assert!(matches!(incoming.take_happenings()[0], Happening::ManifestKnown { .. }));
    let happenings = fill(&mut incoming, &all).unwrap();
    assert!(matches!(happenings[..], [Happening::FileDone { .. }]), "{happenings:?}");
    completes(incoming, &all, &top, &to.path().join("tree"));
}

#[test]
fn a_file_killed_between_its_last_segment_and_its_name() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, outgoing, all) = one_file(from.path(), 300_000);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    incoming.abandon().unwrap();
    // This is the state after a power loss that undid the renaming.
    fs::rename(to.path().join("file"), partial(to.path(), &outgoing)).unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(incoming.is_complete());
    assert!(matches!(
        incoming.take_happenings()[..],
        [Happening::ManifestKnown { .. }, Happening::FileDone { index: 0 }]
    ));
    completes(incoming, &all, &path, &to.path().join("file"));
}

#[test]
fn one_receiver_at_a_time() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, outgoing, all) = one_file(from.path(), 50_000);
    let (mut first, mut second) = (open(to.path(), &outgoing, SEGMENT), open(to.path(), &outgoing, SEGMENT));
    first.store(1, &[&all[1]]).unwrap();
    // The first process to store gets the lock. One that is already open fails when it stores, a later one when it
    // opens.
    assert!(matches!(second.store(1, &[&all[1]]), Err(StoreError::InUse { .. })));
    let third = try_open(to.path(), &outgoing, SEGMENT, Options::default());
    assert!(matches!(third, Err(StoreError::InUse { .. })));
    drop(first);
    second.store(1, &[&all[1]]).unwrap();
}

#[test]
fn the_newest_checkpoint_stays() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, outgoing, all) = one_file(from.path(), 50_000);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(incoming.checkpoint().is_none());
    incoming.store(1, &[&all[1]]).unwrap();
    let old = incoming.checkpoint().unwrap();
    incoming.store(2, &[&all[2]]).unwrap();
    let new = incoming.checkpoint().unwrap();
    new.run().unwrap();
    old.run().unwrap();
    assert!(incoming.checkpoint().is_none());
    // A later checkpoint covers one that was not run.
    incoming.store(3, &[&all[3]]).unwrap();
    drop(incoming.checkpoint().unwrap());
    incoming.checkpoint().unwrap().run().unwrap();
    drop(incoming);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert_eq!(incoming.held().count(), 3);
    // A checkpoint that is run after the end of the reception writes nothing.
    incoming.store(4, &[&all[4]]).unwrap();
    let late = incoming.checkpoint().unwrap();
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    late.run().unwrap();
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
}

#[test]
fn too_early_and_thrown_away() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, outgoing, all) = one_file(from.path(), 50_000);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    incoming.store(0, &[&all[0], &all[1]]).unwrap();
    let missing = all.len() as u32 - 2;
    assert!(matches!(incoming.finish(), Err(StoreError::Incomplete { missing: told }) if told == missing));
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    incoming.store(0, &[&all[0], &all[1]]).unwrap();
    incoming.discard().unwrap();
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

#[test]
fn any_sequence_of_stores_checkpoints_and_kills_completes() {
    let from = tempfile::tempdir().unwrap();
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let lens = [20_000_u32, 33_333, 9_000];
    let all = lens.map(|len| segments(&mut outgoing, len));
    for seed in 1..12_u64 {
        let to = tempfile::tempdir().unwrap();
        let draws = noise(seed, 100_000);
        let mut draws = draws.iter().map(|byte| usize::from(*byte));
        let mut which = 0;
        let mut incoming = open(to.path(), &outgoing, lens[0]);
        while !incoming.is_complete() {
            match draws.next().unwrap() {
                0..8 => {
                    drop(incoming);
                    which = draws.next().unwrap() % 3;
                    incoming = open(to.path(), &outgoing, lens[which]);
                }
                8..24 => {
                    if let Some(checkpoint) = incoming.checkpoint() {
                        checkpoint.run().unwrap();
                    }
                }
                draw => {
                    let segments = &all[which];
                    let first = draw * draws.next().unwrap() % segments.len();
                    let first =
                        incoming.held().next_clear(first as u32).or(incoming.held().next_clear(0)).unwrap();
                    let end = segments.len().min(first as usize + 1 + draw % 7);
                    let batch: Vec<&[u8]> = segments[first as usize..end].iter().map(Vec::as_slice).collect();
                    incoming.store(first, &batch).unwrap();
                }
            }
        }
        incoming.finish().unwrap();
        assert_same(&top, &to.path().join("tree"));
    }
}
