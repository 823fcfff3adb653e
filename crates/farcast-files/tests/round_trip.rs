//! Round trip: a tree arrives exactly as it was sent.

mod common;

use std::fs;
use std::path::Path;

use common::{SEGMENT, assert_same, fill, noise, open, plant, scan, segments, shuffle};
use farcast_files::{Change, Happening, Incoming, Options, Outgoing, SkipReason, SourceError, StoreError};

#[test]
fn a_tree_arrives_in_order() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let happenings = fill(&mut incoming, &all).unwrap();
    assert!(matches!(&happenings[0], Happening::ListLength { segments: 1.. }));
    assert!(matches!(&happenings[1], Happening::ManifestKnown { newly_held } if newly_held.is_empty()));
    let files = outgoing.manifest().entries().iter().filter(|entry| entry.is_file()).count();
    assert_eq!(happenings.len(), files + 2);
    assert!(incoming.is_complete());
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("tree"));
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "the state was removed");
    outgoing.watch(&|| true);
    assert_eq!(outgoing.changed(), []);
}

#[test]
fn a_tree_arrives_in_any_order_and_any_segment_length() {
    let from = tempfile::tempdir().unwrap();
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    for (seed, len) in [(1, 1432), (2, 64_000), (3, 333), (4, 5_000_000), (5, 4096)] {
        let to = tempfile::tempdir().unwrap();
        let all = segments(&mut outgoing, len);
        let mut order: Vec<_> = (0..all.len()).collect();
        shuffle(&mut order, seed);
        let mut incoming = open(to.path(), &outgoing, len);
        let mut happenings = Vec::new();
        for at in order {
            happenings.extend(incoming.store(at as u32, &[&all[at]]).unwrap());
            // A second copy changes nothing.
            assert!(incoming.store(at as u32, &[&all[at]]).unwrap().is_empty());
        }
        assert!(incoming.is_complete(), "segment length {len}");
        incoming.finish().unwrap();
        assert_same(&top, &to.path().join("tree"));
    }
}

#[test]
fn a_head_that_comes_last_leaves_nothing_behind() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, 333);
    let mut incoming = open(to.path(), &outgoing, 333);
    for at in (0..all.len()).rev() {
        assert!(!incoming.is_complete());
        incoming.store(at as u32, &[&all[at]]).unwrap();
    }
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("tree"));
}

#[test]
fn only_empty_files_and_directories() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(from.path().join("e"), b"").unwrap();
    let mut outgoing = Outgoing::scan(&[from.path().join("e"), from.path().join("d")], |_| {}).unwrap();
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(matches!(incoming.store(0, &[&all[0][1..]]), Err(StoreError::BadSegment { segment: 0, .. })));
    assert!(matches!(incoming.store(1, &[&all[0]]), Err(StoreError::BadSegment { expected: 0, .. })));
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    assert!(to.path().join("d").is_dir() && to.path().join("e").is_file());
}

#[test]
fn a_receiver_that_has_the_files_asks_for_nothing() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = plant(from.path());
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert_eq!(incoming.held().count(), 0);
    let head = outgoing.manifest().head_len().div_ceil(SEGMENT.into()) as usize;
    let first: Vec<&[u8]> = all[..head].iter().map(Vec::as_slice).collect();
    let happenings = incoming.store(0, &first).unwrap();
    let Happening::ManifestKnown { newly_held } = &happenings[1] else { panic!("{happenings:?}") };
    assert_eq!(newly_held.len(), 1);
    assert!(incoming.held().is_full() && incoming.is_complete());
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("tree"));
}

#[test]
fn names_too_long_for_a_partial() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = from.path().join("t");
    fs::create_dir(&top).unwrap();
    for last in ["a", "b"] {
        fs::write(top.join("n".repeat(254) + last), noise(last.len() as u64, 5000)).unwrap();
    }
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("t"));
}

#[test]
fn thousands_of_small_files_share_segments() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = from.path().join("t");
    fs::create_dir(&top).unwrap();
    for i in 0..2000_u64 {
        fs::write(top.join(format!("{i}")), noise(i, (i % 200) as usize)).unwrap();
    }
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    let options = Options { durability: farcast_files::Durability::NoSync, ..Options::default() };
    let mut incoming = Incoming::open(to.path(), outgoing.id(), outgoing.size(), SEGMENT, options).unwrap();
    let mut order: Vec<_> = (0..all.len()).collect();
    shuffle(&mut order, 9);
    for at in order {
        incoming.store(at as u32, &[&all[at]]).unwrap();
    }
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("t"));
}

#[test]
fn what_is_not_sent_is_listed() {
    let from = tempfile::tempdir().unwrap();
    let top = plant(from.path());
    std::os::unix::fs::symlink("f1", top.join("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, top.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    fs::write(top.join(".x.00000000.farcast-part"), b"x").unwrap();
    let outgoing = scan(&top);
    let reasons: Vec<_> = outgoing.skipped().iter().map(|skipped| skipped.reason).collect();
    assert_eq!(
        reasons,
        [SkipReason::Reserved, SkipReason::Fifo, SkipReason::SymbolicLink, SkipReason::Socket]
    );
    fs::create_dir(from.path().join("other")).unwrap();
    fs::write(from.path().join("other/tree"), b"x").unwrap();
    let twice = Outgoing::scan(&[top.clone(), from.path().join("other/tree")], |_| {});
    assert!(matches!(twice, Err(SourceError::DuplicateName { .. })));
    assert!(matches!(Outgoing::scan(&["/"], |_| {}), Err(SourceError::NoName { .. })));
    assert!(matches!(Outgoing::scan(&[top.join("link")], |_| {}), Err(SourceError::Empty)));
    let empty = from.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(Outgoing::each(&[empty], |_| {}), Err(SourceError::OnlyDirectories)));
    assert!(matches!(Outgoing::scan(&[top.join("gone")], |_| {}), Err(SourceError::Io { .. })));
}

#[test]
fn scanning_tells_its_progress() {
    let from = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let outgoing = Outgoing::scan(&[plant(from.path())], |now| seen.push(now)).unwrap();
    let total = outgoing.manifest().content_len();
    assert!(seen.iter().all(|now| now.total == total) && seen.is_sorted_by_key(|now| now.hashed));
    assert_eq!((seen[0].hashed, seen.last().unwrap().hashed), (0, total));
}

#[test]
fn a_file_that_changes_is_not_sent() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("f");
    for (change, is_short) in [(noise(2, 9999), true), (noise(2, 10_001), false), (noise(2, 0), true)] {
        fs::write(&path, noise(1, 10_000)).unwrap();
        let mut outgoing = scan(&path);
        let mut slot = vec![0; 20_000];
        fs::write(&path, change).unwrap();
        let read = outgoing.read_segments(0, &mut [std::io::IoSliceMut::new(&mut slot)]);
        assert_eq!(matches!(read, Err(SourceError::Changed { .. })), is_short, "{read:?}");
        outgoing.watch(&|| true);
        assert_eq!(changes(&outgoing), [(Change::Changed, true)]);
    }
    // The file is shortened while it is open.
    fs::write(&path, noise(1, 10_000)).unwrap();
    let mut outgoing = scan(&path);
    let mut slot = vec![0; 1000];
    outgoing.read_segments(0, &mut [std::io::IoSliceMut::new(&mut slot)]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(500).unwrap();
    let read = outgoing.read_segments(1000, &mut [std::io::IoSliceMut::new(&mut slot)]);
    assert!(matches!(read, Err(SourceError::Changed { .. })));
    // The file is removed before it is opened.
    let mut outgoing = scan(&path);
    fs::remove_file(&path).unwrap();
    outgoing.watch(&|| true);
    assert_eq!(changes(&outgoing), [], "nothing of it is needed yet");
    let read = outgoing.read_segments(0, &mut [std::io::IoSliceMut::new(&mut slot)]);
    assert!(matches!(read, Err(SourceError::Removed { .. })), "{read:?}");
    assert_eq!(changes(&outgoing), [(Change::Removed, true)]);
}

#[test]
fn a_file_that_becomes_something_else_or_cannot_be_read_costs_itself() {
    let directory = |path: &Path| fs::create_dir(path).unwrap();
    let link = |path: &Path| std::os::unix::fs::symlink("/nowhere", path).unwrap();
    let socket = |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    let fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    for become_other in [&directory as &dyn Fn(&Path), &link, &socket, &fifo] {
        for looks in [false, true] {
            let from = tempfile::tempdir().unwrap();
            for name in ["a", "b", "c"] {
                fs::write(from.path().join(name), noise(1, 10_000)).unwrap();
            }
            let paths = ["a", "b", "c"].map(|name| from.path().join(name));
            let outgoing = Outgoing::scan(&paths, |_| {}).unwrap();
            fs::remove_file(&paths[1]).unwrap();
            become_other(&paths[1]);
            if looks {
                outgoing.watch(&|| true);
            } else {
                let mut slot = vec![1; outgoing.size() as usize];
                let mut lenient = outgoing.clone().leniently();
                lenient.read_segments(0, &mut [std::io::IoSliceMut::new(&mut slot)]).unwrap();
                let bytes = outgoing.bytes_of(2).unwrap();
                assert!(slot[bytes.start as usize..bytes.end as usize] == noise(1, 10_000));
            }
            let found: Vec<Change> = outgoing.changed().iter().map(|file| file.change).collect();
            assert_eq!(found, [Change::Replaced]);
            let mut slot = vec![0; outgoing.size() as usize];
            let read = outgoing.clone().read_segments(0, &mut [std::io::IoSliceMut::new(&mut slot)]);
            assert!(matches!(read, Err(SourceError::Replaced { .. })), "{read:?}");
        }
    }
}

fn changes(outgoing: &Outgoing) -> Vec<(Change, bool)> {
    outgoing.changed().iter().map(|file| (file.change, file.was_sent)).collect()
}

#[test]
fn a_file_whose_content_stays_is_sent_on() {
    let from = tempfile::tempdir().unwrap();
    let (path, content) = (from.path().join("f"), noise(1, 3 << 20));
    fs::write(&path, &content).unwrap();
    let mut outgoing = scan(&path);
    let touched =
        || fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let grown = || fs::write(&path, [&content[..], b"more"].concat()).unwrap();
    let moved = || {
        fs::write(from.path().join("g"), &content).unwrap();
        fs::rename(from.path().join("g"), &path).unwrap();
    };
    for change in [&touched as &dyn Fn(), &grown, &moved] {
        change();
        outgoing.watch(&|| true);
        assert_eq!(outgoing.changed(), []);
    }
    let head = outgoing.bytes_of(0).unwrap().start;
    let mut slot = vec![0; content.len()];
    outgoing.read_segments(head, &mut [std::io::IoSliceMut::new(&mut slot)]).unwrap();
    assert!(slot == content);
    // A change after the last read means that the sent content was right.
    std::thread::park_timeout(std::time::Duration::from_millis(50));
    fs::write(&path, noise(2, 3 << 20)).unwrap();
    outgoing.watch(&|| true);
    assert_eq!(changes(&outgoing), [(Change::Changed, false)]);
}

#[test]
fn zeros_take_the_place_of_what_is_gone() {
    let from = tempfile::tempdir().unwrap();
    let tree = from.path().join("t");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), name.repeat(1000)).unwrap();
    }
    let mut outgoing = Outgoing::scan(&[&tree], |_| {}).unwrap().leniently();
    fs::remove_file(tree.join("b")).unwrap();
    let mut slots = vec![0xffu8; outgoing.size() as usize];
    let mut pieces: Vec<_> = slots.chunks_mut(333).map(std::io::IoSliceMut::new).collect();
    outgoing.read_segments(0, &mut pieces).unwrap();
    for (file, byte) in [(0, b'a'), (1, 0), (2, b'c')] {
        let bytes = outgoing.bytes_of(file).unwrap();
        assert!(slots[bytes.start as usize..bytes.end as usize].iter().all(|&found| found == byte), "{file}");
    }
    assert_eq!(changes(&outgoing), [(Change::Removed, true)]);
}
