//! Safety: no write goes outside the receiving directory, and no file is destroyed by accident.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use common::{SEGMENT, fill, listing, noise, open, plant, scan, segments, try_open};
use farcast_files::{
    Happening, Incoming, ManifestError, Options, Outgoing, Overwrite, ProductId, Quota, StoreError,
    UnsafeReason,
};

/// Receives the whole product below `dir`.
fn receive(
    dir: &Path,
    outgoing: &Outgoing,
    all: &[Vec<u8>],
    options: Options,
) -> Result<Vec<Happening>, StoreError> {
    let mut incoming = try_open(dir, outgoing, SEGMENT, options)?;
    let happenings = fill(&mut incoming, all)?;
    incoming.finish()?;
    Ok(happenings)
}

fn refused(dir: &Path, outgoing: &Outgoing, all: &[Vec<u8>]) -> UnsafeReason {
    match receive(dir, outgoing, all, Options::default()) {
        Err(StoreError::UnsafePath { reason, .. }) => reason,
        Err(StoreError::Withheld { first, .. }) => match *first {
            StoreError::UnsafePath { reason, .. } => reason,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_stands_in_the_way_of_one_file_costs_that_file() {
    let from = tempfile::tempdir().unwrap();
    let top = from.path().join("d");
    fs::create_dir_all(top.join("sub")).unwrap();
    for name in ["a", "b", "c", "sub/e"] {
        fs::write(top.join(name), noise(u64::from(name.as_bytes()[0]), 4000).repeat(20)).unwrap();
    }
    let scanning = farcast_files::Scanning { compress: Some(from.path().into()), ..Default::default() };
    let compressed = Outgoing::scan_by(&scanning, &[&top], |_| {}).unwrap();
    for mut outgoing in [scan(&top), compressed] {
        let all = segments(&mut outgoing, SEGMENT);
        for (at, obstacle) in ["directory", "link", "way", "meanwhile"].into_iter().enumerate() {
            let to = tempfile::tempdir().unwrap();
            let inbox = to.path().join("d");
            fs::create_dir(&inbox).unwrap();
            let mut incoming = open(to.path(), &outgoing, SEGMENT);
            match obstacle {
                "directory" => fs::create_dir(inbox.join("b")).unwrap(),
                "link" => symlink("/nowhere", inbox.join("b")).unwrap(),
                "way" => symlink(from.path(), inbox.join("sub")).unwrap(),
                _ => {
                    incoming.store(0, &[&all[0]]).unwrap();
                    fs::create_dir(inbox.join("b")).unwrap();
                }
            }
            fill(&mut incoming, &all).unwrap();
            let lost = if obstacle == "way" { "sub/e" } else { "b" };
            let error = incoming.finish().unwrap_err();
            assert!(
                matches!(&error, StoreError::Withheld { others, .. } if *others == usize::from(at == 2)),
                "{obstacle}: {error}"
            );
            for name in ["a", "b", "c", "sub/e"].into_iter().filter(|name| *name != lost) {
                assert!(
                    fs::read(inbox.join(name)).unwrap() == fs::read(top.join(name)).unwrap(),
                    "{obstacle}: {name}"
                );
            }
            assert!(!inbox.join(lost).is_file() && !to.path().join(".farcast").exists(), "{obstacle}");
            assert!(!from.path().join("e").exists());
        }
    }
}

#[test]
fn a_symbolic_link_anywhere_is_refused() {
    let from = tempfile::tempdir().unwrap();
    let mut outgoing = scan(&plant(from.path()));
    let all = segments(&mut outgoing, SEGMENT);
    let id = outgoing.id().to_string();
    let partial = format!("tree/deep/.big.{}.farcast-part", &id[..8]);
    let state = format!(".farcast/{id}");
    let in_state = ["spool", "journal", "lock"].map(|name| format!("{state}/{name}"));
    let places =
        [".farcast", &state, "tree", "tree/deep", "tree/empty", "tree/deep/big", "tree/f1432", &partial];
    for place in places.into_iter().chain(in_state.iter().map(String::as_str)) {
        let (to, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("victim"), b"untouched").unwrap();
        let at = to.path().join(place);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        let leads_to =
            if at.extension().is_some() { outside.path().join("victim") } else { outside.path().into() };
        symlink(leads_to, &at).unwrap();
        assert_eq!(refused(to.path(), &outgoing, &all), UnsafeReason::SymbolicLink, "{place}");
        assert_eq!(listing(outside.path()).len(), 2, "{place}");
        assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"untouched");
    }
}

#[test]
fn a_link_that_replaces_a_directory_meanwhile_leads_nowhere() {
    let (from, to, outside) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut outgoing = scan(&plant(from.path()));
    let all = segments(&mut outgoing, SEGMENT);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    for (at, segment) in all[..20].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    fs::rename(to.path().join("tree/deep"), to.path().join("tree/moved")).unwrap();
    symlink(outside.path(), to.path().join("tree/deep")).unwrap();
    let found = fill(&mut incoming, &all);
    assert!(
        matches!(found, Err(StoreError::UnsafePath { reason: UnsafeReason::SymbolicLink, .. })),
        "{found:?}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn only_regular_files_are_replaced() {
    let from = tempfile::tempdir().unwrap();
    let mut outgoing = scan(&plant(from.path()));
    let all = segments(&mut outgoing, SEGMENT);
    let fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    let directory = |path: &Path| fs::create_dir(path).unwrap();
    // A file in the way works for the superuser too, who ignores modes.
    let file = |path: &Path| fs::write(path, b"a file where a directory should be").unwrap();
    let obstacles = [
        ("tree/f1432", &fifo as &dyn Fn(&Path), UnsafeReason::NotARegularFile),
        ("tree/f1432", &directory, UnsafeReason::NotARegularFile),
        ("tree/deep", &file, UnsafeReason::NotADirectory),
    ];
    for (name, make, reason) in obstacles {
        let to = tempfile::tempdir().unwrap();
        let target = to.path().join(name);
        fs::create_dir(to.path().join("tree")).unwrap();
        make(&target);
        let before = fs::symlink_metadata(&target).unwrap();
        assert_eq!(refused(to.path(), &outgoing, &all), reason);
        assert_eq!(fs::symlink_metadata(&target).unwrap().ino(), before.ino());
        if before.is_dir() {
            fs::remove_dir(&target).unwrap();
        } else {
            fs::remove_file(&target).unwrap();
        }
        receive(to.path(), &outgoing, &all, Options::default()).unwrap();
    }
}

#[test]
fn a_leftover_partial_is_not_written_to() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, noise(1, 5000)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    // A hard link to a file that belongs to someone else.
    fs::write(to.path().join("precious"), noise(2, 5000)).unwrap();
    let partial = format!(".file.{}.farcast-part", &outgoing.id().to_string()[..8]);
    fs::hard_link(to.path().join("precious"), to.path().join(partial)).unwrap();
    receive(to.path(), &outgoing, &all, Options::default()).unwrap();
    assert_eq!(fs::read(to.path().join("precious")).unwrap(), noise(2, 5000));
}

#[test]
fn existing_files_are_kept_or_replaced() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, noise(1, 5000)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    let keep = Options { overwrite: Overwrite::Keep, ..Options::default() };
    let target = to.path().join("file");
    for old in [noise(2, 5000), noise(2, 1)] {
        fs::write(&target, &old).unwrap();
        let found = receive(to.path(), &outgoing, &all, keep);
        assert!(matches!(found, Err(StoreError::AlreadyExists { .. })), "{found:?}");
        assert_eq!(fs::read(&target).unwrap(), old);
    }
    receive(to.path(), &outgoing, &all, Options::default()).unwrap();
    assert_eq!(fs::read(&target).unwrap(), noise(1, 5000));
    // The right content is no conflict.
    receive(to.path(), &outgoing, &all, keep).unwrap();
    fs::remove_file(&target).unwrap();
    // The conflicting file appears while the product arrives.
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, keep).unwrap();
    incoming.store(0, &[&all[0]]).unwrap();
    fs::write(&target, b"new").unwrap();
    assert!(matches!(fill(&mut incoming, &all), Err(StoreError::AlreadyExists { .. })));
    assert_eq!(fs::read(&target).unwrap(), b"new");
    // Finishing works once the conflicting file is gone.
    fs::remove_file(&target).unwrap();
    incoming.finish().unwrap();
    assert_eq!(fs::read(&target).unwrap(), noise(1, 5000));
}

#[test]
fn a_head_that_leads_out_is_refused() {
    let to = tempfile::tempdir().unwrap();
    let path = b"../evil";
    let mut manifest = vec![0, 0, 0, 1, 0, 1, 0o355];
    manifest.extend_from_slice(&[0; 8]);
    manifest.extend_from_slice(&(path.len() as u16).to_be_bytes());
    manifest.extend_from_slice(path);
    let mut head = b"FCM1".to_vec();
    head.extend_from_slice(&(manifest.len() as u32).to_be_bytes());
    head.extend_from_slice(&manifest);
    let id = ProductId::of_head(&head);
    let mut incoming = Incoming::open(to.path(), id, head.len() as u64, SEGMENT, Options::default()).unwrap();
    let found = incoming.store(0, &[&head]);
    assert!(matches!(found, Err(StoreError::BadManifest(ManifestError::BadPath { .. }))), "{found:?}");
}

#[test]
fn sizes_that_make_no_sense() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("file");
    fs::write(&path, noise(1, 5000)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    for (size, len) in [(100, 0), (u64::MAX, 1432), (1 << 40, 1)] {
        let found = Incoming::open(to.path(), outgoing.id(), size, len, Options::default());
        assert!(matches!(found, Err(StoreError::BadGeometry { .. })));
    }
    let mut longer =
        Incoming::open(to.path(), outgoing.id(), outgoing.size() + 1, SEGMENT, Options::default()).unwrap();
    assert!(matches!(longer.store(0, &[&all[0]]), Err(StoreError::WrongSize { .. })));
}

#[test]
fn too_little_space_is_told_before_anything_is_written() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut outgoing = scan(&plant(from.path()));
    let all = segments(&mut outgoing, SEGMENT);
    let needs = outgoing.size();
    let options = |limit| {
        let quota = Quota { octets: Some(limit), ..Quota::default() };
        Options { quota, ..Options::default() }
    };
    let found = receive(to.path(), &outgoing, &all, options(needs - 1));
    let told = StoreError::OverQuota { path: to.path().to_owned(), needed: needs, available: needs - 1 };
    assert!(matches!(found, Err(StoreError::OverQuota { .. })), "{found:?}");
    assert_eq!(found.unwrap_err().to_string(), told.to_string());
    assert!(!to.path().join("tree").exists());
    receive(to.path(), &outgoing, &all, options(needs)).unwrap();
}

#[test]
fn a_disk_that_fills_up_is_told() {
    const MARK: &str = "FARCAST_TEST_SMALL_DISK";
    if let Some(dir) = std::env::var_os(MARK) {
        return fill_up(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    // A small file system that only a copy of this test sees.
    let script =
        "mount -t tmpfs -o size=2m tmpfs \"$0\" || exit 77; exec \"$1\" --exact a_disk_that_fills_up_is_told";
    let exe = std::env::current_exe().unwrap();
    let mut run = Command::new("unshare");
    let output = run.args(["-m", "sh", "-c", script]).arg(dir.path()).arg(exe).env(MARK, dir.path()).output();
    let output = output.expect("`unshare` of util-linux is needed");
    // An ordinary user needs a user namespace to mount. The test then fails instead of passing without a check.
    let told = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run it as root, or allow mounting in a namespace: {why}\n{told}");
}

fn fill_up(dir: &Path) {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("file");
    fs::write(&path, noise(1, 1_000_000)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    let to = dir.join("to");
    fs::create_dir(&to).unwrap();
    let mut incoming = open(&to, &outgoing, SEGMENT);
    incoming.store(0, &[&all[0]]).unwrap();
    let hog = dir.join("hog");
    fs::write(&hog, noise(3, 1_500_000)).unwrap();
    let found = fill(&mut incoming, &all);
    assert!(matches!(found, Err(StoreError::DiskFull { .. })), "{found:?}");
    let before = incoming.held().count();
    assert!(before > 100 && !incoming.held().is_full());
    drop(incoming);
    // There is no room for the missing data, which is reported at once.
    let found = receive(&to, &outgoing, &all, Options::default());
    assert!(matches!(found, Err(StoreError::TooLarge { .. })), "{found:?}");
    fs::remove_file(&hog).unwrap();
    receive(&to, &outgoing, &all, Options::default()).unwrap();
    assert_eq!(fs::read(to.join("file")).unwrap(), noise(1, 1_000_000));
}

#[test]
fn a_sparse_file_stays_sparse() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("sparse");
    let file = fs::File::create_new(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    for at in [0, 300_000_001, (1 << 30) - 5] {
        std::os::unix::fs::FileExt::write_all_at(&file, b"data!", at).unwrap();
    }
    let mut outgoing = scan(&path);
    let mut incoming = open(to.path(), &outgoing, 60_000);
    let mut buffers = vec![vec![0; 60_000]; 17];
    let mut first = 0;
    let mut offset = 0;
    while offset < outgoing.size() {
        let mut slots: Vec<_> = buffers.iter_mut().map(|slot| std::io::IoSliceMut::new(slot)).collect();
        let read = outgoing.read_segments(offset, &mut slots).unwrap();
        let payloads: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
        let count = read.div_ceil(60_000) as usize;
        let mut payloads = payloads[..count].to_vec();
        payloads[count - 1] = &payloads[count - 1][..(read - 60_000 * (count as u64 - 1)) as usize];
        incoming.store(first, &payloads).unwrap();
        // The reception is abandoned and continued in the middle. Later data must leave holes too.
        if offset < 500_000_000 && offset + read >= 500_000_000 {
            incoming.abandon().unwrap();
            incoming = open(to.path(), &outgoing, 60_000);
        }
        first += count as u32;
        offset += read;
    }
    incoming.finish().unwrap();
    let received = fs::metadata(to.path().join("sparse")).unwrap();
    assert_eq!(received.len(), 1 << 30);
    assert!(received.blocks() * 512 < 2_000_000, "{} bytes on disk", received.blocks() * 512);
}
