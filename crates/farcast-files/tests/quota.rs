//! Quota for incomplete products in a receiving directory, and release of their space.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic, and knows the time")]

mod common;

use farcast_files::chunks::Chunks;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::{SEGMENT, assert_same, fill, listing, noise, open, scan, segments, try_open};
use farcast_files::{
    Durability, Entry, EntryKind, Happening, Incoming, Manifest, Options, Outgoing, Quota, StoreError,
    partials,
};
use tempfile::TempDir;

/// Makes a product of one file `name` of `len` bytes.
fn one_file(dir: &Path, name: &str, len: usize) -> (PathBuf, Outgoing, Vec<Vec<u8>>) {
    let path = dir.join(name);
    fs::write(&path, noise(len as u64 + name.len() as u64, len)).unwrap();
    let mut outgoing = scan(&path);
    let all = segments(&mut outgoing, SEGMENT);
    (path, outgoing, all)
}

fn dirs() -> (TempDir, TempDir) {
    (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
}

fn with(quota: Quota) -> Options {
    Options { quota, ..Options::default() }
}

/// Stores the first `count` segments and abandons the reception. Returns `true` if it was kept.
fn begin(dir: &Path, (outgoing, all): (&Outgoing, &[Vec<u8>]), count: usize, options: Options) -> bool {
    let mut incoming = try_open(dir, outgoing, SEGMENT, options).unwrap();
    for (at, segment) in all[..count].iter().enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    incoming.abandon().unwrap()
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Returns the bytes and the number of entries that are on disk below `dir`.
fn on_disk(dir: &Path) -> (u64, u64) {
    let mut sum = (0, 0);
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stat = fs::symlink_metadata(&path).unwrap();
        sum = (sum.0 + stat.blocks() * 512, sum.1 + 1);
        if stat.is_dir() {
            let below = on_disk(&path);
            sum = (sum.0 + below.0, sum.1 + below.1);
        }
    }
    sum
}

#[test]
fn nothing_is_made_before_something_came() {
    let (from, to) = dirs();
    let (_, outgoing, all) = one_file(from.path(), "file", 50_000);
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(incoming.checkpoint().is_none());
    assert!(is_empty(to.path()));
    assert!(!incoming.abandon().unwrap());
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(incoming.store(0, &[b"short"]).is_err());
    assert!(is_empty(to.path()), "a segment that is none is none");
    incoming.store(1, &[&all[1]]).unwrap();
    assert!(to.path().join(".farcast").join(outgoing.id().to_string()).join("spool").exists());
}

#[test]
fn what_nothing_vouches_for_is_given_back() {
    let (from, to) = dirs();
    let (_, outgoing, all) = one_file(from.path(), "file", 50_000);
    // Without the head; data without a head is not worth keeping.
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    for at in 1..20 {
        incoming.store(at, &[&all[at as usize]]).unwrap();
    }
    assert!(!incoming.abandon().unwrap());
    assert!(is_empty(to.path()));
    // With the head and some of the file.
    assert!(begin(to.path(), (&outgoing, &all), 20, Options::default()));
    assert_eq!(open(to.path(), &outgoing, SEGMENT).held().count(), 20);
}

#[test]
fn directories_are_made_when_something_goes_into_them_and_go_with_it() {
    let (from, to) = dirs();
    let top = from.path().join("top");
    fs::create_dir_all(top.join("own/a/b")).unwrap();
    fs::create_dir_all(top.join("own/empty")).unwrap();
    fs::write(top.join("own/a/b/first"), noise(1, 10_000)).unwrap();
    fs::write(top.join("own/last"), noise(2, 10_000)).unwrap();
    let mut outgoing = scan(&top);
    let all = segments(&mut outgoing, SEGMENT);
    // The user's own directory, which is empty.
    fs::create_dir_all(to.path().join("top/own")).unwrap();
    let exists = |name: &str| to.path().join("top/own").join(name).exists();
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    let last = all.len() - 2;
    incoming.store(last as u32, &[&all[last]]).unwrap();
    // The first segment holds the head and the beginning of the first file.
    let head_len = outgoing.size() - 20_000;
    assert!(head_len < 1000);
    assert!(!exists("a") && !exists("empty"));
    incoming.store(0, &[&all[0]]).unwrap();
    assert!(exists("a/b") && !exists("empty"));
    drop(incoming);
    // Another run than the one that made the directories removes them.
    open(to.path(), &outgoing, SEGMENT).discard().unwrap();
    assert!(!exists("a") && exists(""));
    assert_eq!(on_disk(to.path()).1, 2, "{:?}", listing(to.path()));
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    assert!(!exists("empty"), "it is made when all is there");
    incoming.finish().unwrap();
    assert_same(&top, &to.path().join("top"));
}

/// Returns the head of a product with these entries, and its manifest.
fn claims(entries: Vec<Entry>) -> (Vec<u8>, Manifest) {
    let manifest = Manifest::new(entries).unwrap();
    (manifest.head(), manifest)
}

fn claimed(path: Vec<u8>, size: u64) -> Entry {
    Entry {
        path,
        mode: 0o644,
        mtime_ns: 0,
        kind: EntryKind::File { size, digest: [1; 32] },
        parts: Box::default(),
        chunks: Chunks::default(),
    }
}

fn store_head(dir: &Path, (head, manifest): &(Vec<u8>, Manifest)) -> Result<Vec<Happening>, StoreError> {
    let size = manifest.product_size();
    let len = u32::try_from(head.len()).unwrap();
    let mut incoming = Incoming::open(dir, manifest.id(), size, len, Options::default()).unwrap();
    let stored = incoming.store(0, &[head]);
    assert!(on_disk(dir).1 <= 8, "{:?}", on_disk(dir));
    incoming.abandon().unwrap();
    assert!(is_empty(dir));
    stored
}

#[test]
fn a_short_list_of_deep_paths_makes_no_directories() {
    let to = tempfile::tempdir().unwrap();
    let deep = |n: u8| [&[b'a' + n, b'/'], b"x/".repeat(2045).as_slice(), b"x"].concat();
    let product = claims((0..24).map(|n| claimed(deep(n), 1000)).collect());
    assert!((98_000..101_000).contains(&product.0.len()));
    let found = store_head(to.path(), &product);
    assert!(
        matches!(found, Err(StoreError::UnlistedDirectories { unlisted: 49_104, allowed: 160 })),
        "{found:?}"
    );
    // Listed directories are not made until all files of the product are complete.
    let listed = (0..5000).map(|n| Entry {
        kind: EntryKind::Directory,
        mode: 0o755,
        ..claimed(format!("d{n:04}").into_bytes(), 0)
    });
    store_head(to.path(), &claims(listed.chain([claimed(b"file".to_vec(), 1000)]).collect())).unwrap();
}

#[test]
fn what_could_never_be_stored_is_refused_at_once() {
    let to = tempfile::tempdir().unwrap();
    let found = store_head(to.path(), &claims(vec![claimed(b"file".to_vec(), 1 << 37)]));
    assert!(matches!(found, Err(StoreError::TooLarge { needed, .. }) if needed > 1 << 37), "{found:?}");
    let (head, manifest) = claims((0..100).map(|n| claimed(vec![b'a', b'0' + n], 1)).collect());
    let options = with(Quota { inodes: 99, ..Quota::default() });
    let size = manifest.product_size();
    let mut incoming = Incoming::open(to.path(), manifest.id(), size, head.len() as u32, options).unwrap();
    let found = incoming.store(0, &[&head]);
    assert!(matches!(found, Err(StoreError::TooManyFiles { needed: 100, available: 99, .. })), "{found:?}");
}

#[test]
fn what_cannot_be_known_yet_takes_little_room() {
    let (from, to) = dirs();
    let (path, outgoing, all) = one_file(from.path(), "file", 500_000);
    let options = with(Quota { octets: Some(600_000), ..Quota::default() });
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, options).unwrap();
    let mut lost = Vec::new();
    for (at, segment) in all.iter().enumerate().skip(1) {
        lost.extend(incoming.store(at as u32, &[segment]).unwrap());
    }
    let spooled = incoming.held().count() as usize;
    // A quarter of the room; the last segment is short and fits too.
    assert_eq!(spooled, 150_000 / SEGMENT as usize + 1);
    assert_eq!(lost.len(), all.len() - 1 - spooled);
    assert!(lost.iter().all(|one| matches!(one, Happening::Dropped { lost } if lost.count() == 1)));
    assert!(on_disk(to.path()).0 < 200_000, "{:?}", on_disk(to.path()));
    // The head always has room, and after it everything else.
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
}

#[test]
fn the_oldest_product_makes_room() {
    let (from, to) = dirs();
    let products: Vec<_> = (0..4).map(|n| one_file(from.path(), &format!("file{n}"), 200_000)).collect();
    let options = with(Quota { octets: Some(500_000), ..Quota::default() });
    for (_, outgoing, all) in &products[..3] {
        // Modification times must differ.
        std::thread::sleep(Duration::from_millis(20));
        assert!(begin(to.path(), (outgoing, all), 100, options));
    }
    let left = || partials::list(to.path()).unwrap().iter().map(|one| one.id).collect::<Vec<_>>();
    let ids: Vec<_> = products.iter().map(|(_, outgoing, _)| outgoing.id()).collect();
    assert_eq!(left(), ids[..3], "oldest first");
    // The oldest product is in use, so the next one is removed when there is no room left. Opening a product does not
    // make it younger.
    let in_use = try_open(to.path(), &products[0].1, SEGMENT, options).unwrap();
    assert_eq!(in_use.held().count(), 100);
    let (path, outgoing, all) = &products[3];
    let mut incoming = try_open(to.path(), outgoing, SEGMENT, options).unwrap();
    fill(&mut incoming, all).unwrap();
    assert_eq!(left(), [ids[0], ids[2], ids[3]]);
    incoming.finish().unwrap();
    assert_same(path, &to.path().join("file3"));
    drop(in_use);
    assert_eq!(left(), [ids[0], ids[2]]);
}

#[test]
fn the_least_of_too_many_products_goes() {
    let (from, to) = dirs();
    let products: Vec<_> = (0..4).map(|n| one_file(from.path(), &format!("file{n}"), 200_000)).collect();
    let options = with(Quota { products: 3, ..Quota::default() });
    for (at, (_, outgoing, all)) in products.iter().enumerate() {
        assert!(begin(to.path(), (outgoing, all), [60, 4, 80, 4][at], options));
    }
    let mut left: Vec<_> = partials::list(to.path()).unwrap().iter().map(|one| one.held / 1432).collect();
    left.sort_unstable();
    assert_eq!(left, [4, 60, 80]);
    let held: Vec<_> = products[..3].iter().map(|one| open(to.path(), &one.1, SEGMENT)).collect();
    assert!(held[1].held().is_empty(), "it went, and is not made again by looking at it");
    let third = open(to.path(), &products[3].1, SEGMENT);
    let (_, another, all) = one_file(from.path(), "another", 10_000);
    let mut incoming = try_open(to.path(), &another, SEGMENT, options).unwrap();
    let found = incoming.store(0, &[&all[0]]);
    assert!(matches!(found, Err(StoreError::TooManyProducts { allowed: 3, .. })), "{found:?}");
    drop(third);
    incoming.store(0, &[&all[0]]).unwrap();
}

#[test]
fn a_list_tells_what_is_really_there() {
    let (from, to) = dirs();
    assert!(partials::list(to.path()).unwrap().is_empty());
    let (path, outgoing, all) = one_file(from.path(), "file", 2_000_000);
    assert!(begin(to.path(), (&outgoing, &all), 300, Options::default()));
    let found = partials::list(to.path()).unwrap();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((one.id, one.name.as_deref()), (outgoing.id(), Some(b"file".as_slice())));
    assert_eq!((one.size, one.held), (Some(outgoing.size()), 300 * u64::from(SEGMENT)));
    assert!(one.verified && !one.in_use);
    let real = on_disk(to.path());
    // The directory `.farcast` itself belongs to no product.
    let shared = fs::metadata(to.path().join(".farcast")).unwrap().blocks() * 512;
    assert_eq!((one.usage.octets, one.usage.inodes), (real.0 - shared, real.1 - 1));
    assert!(one.usage.octets < 700_000, "the partial is as large as the file, but not on disk: {one:?}");
    let age = SystemTime::now().duration_since(one.last).unwrap();
    assert!(age < Duration::from_mins(10), "{age:?}");
    let (used, limit) = partials::usage(to.path(), &found, &Quota::default()).unwrap();
    assert!(used == one.usage && limit.octets > used.octets, "{limit:?}");
    let incoming = open(to.path(), &outgoing, SEGMENT);
    assert!(partials::list(to.path()).unwrap()[0].in_use);
    assert!(matches!(partials::remove(to.path(), outgoing.id()), Err(StoreError::InUse { .. })));
    drop(incoming);
    partials::remove(to.path(), outgoing.id()).unwrap();
    assert!(is_empty(to.path()));
    let mut incoming = open(to.path(), &outgoing, SEGMENT);
    fill(&mut incoming, &all).unwrap();
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
}

#[test]
fn what_is_too_old_or_unknown_is_tidied_away() {
    let (from, to) = dirs();
    let products: Vec<_> = (0..4).map(|n| one_file(from.path(), &format!("file{n}"), 50_000)).collect();
    let quota = Quota { age: Duration::from_hours(24), ..Quota::default() };
    // A product worth keeping, one without a head, one in use, and one of a killed process.
    assert!(begin(to.path(), (&products[0].1, &products[0].2), 9, Options::default()));
    open(to.path(), &products[1].1, SEGMENT).store(3, &[&products[1].2[3]]).unwrap();
    let mut in_use = open(to.path(), &products[2].1, SEGMENT);
    in_use.store(3, &[&products[2].2[3]]).unwrap();
    let mut killed = open(to.path(), &products[3].1, SEGMENT);
    killed.store(0, &[&products[3].2[0], &products[3].2[1]]).unwrap();
    drop(killed);
    let left = || {
        let mut ids: Vec<_> = partials::list(to.path()).unwrap().iter().map(|one| one.id).collect();
        ids.sort_unstable();
        ids
    };
    let ids = |which: &[usize]| {
        let mut ids: Vec<_> = which.iter().map(|&at| products[at].1.id()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(left(), ids(&[0, 1, 2, 3]));
    assert_eq!(partials::tidy(to.path(), &quota, SystemTime::now(), Duration::ZERO).unwrap().len(), 1);
    assert_eq!(left(), ids(&[0, 2, 3]));
    let later = SystemTime::now() + Duration::from_hours(25);
    assert_eq!(partials::tidy(to.path(), &quota, later, Duration::from_hours(25)).unwrap().len(), 2);
    assert_eq!(left(), ids(&[2]));
    drop(in_use);
    assert_eq!(partials::tidy(to.path(), &quota, SystemTime::now(), Duration::ZERO).unwrap().len(), 1);
    assert!(is_empty(to.path()), "{:?}", listing(to.path()));
}

#[test]
fn what_a_killed_process_took_is_known() {
    let (from, to) = dirs();
    let (_, first, some) = one_file(from.path(), "first", 400_000);
    let (_, second, all) = one_file(from.path(), "second", 400_000);
    let options = with(Quota { octets: Some(500_000), ..Quota::default() });
    let mut killed = try_open(to.path(), &first, SEGMENT, options).unwrap();
    for (at, segment) in some[..250].iter().enumerate() {
        killed.store(at as u32, &[segment]).unwrap();
    }
    drop(killed);
    // The killed process made no checkpoint, but its space counts.
    let mut incoming = try_open(to.path(), &second, SEGMENT, options).unwrap();
    fill(&mut incoming, &all).unwrap();
    assert!(!to.path().join(".farcast").join(first.id().to_string()).exists());
}

#[test]
fn what_is_sent_again_because_it_was_damaged_takes_its_place_once() {
    let (from, to) = dirs();
    let (path, outgoing, all) = one_file(from.path(), "file", 400_000);
    let options = with(Quota { octets: Some(450_000), ..Quota::default() });
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, options).unwrap();
    let mut bad = all.clone();
    bad[100][0] ^= 1;
    for _ in 0..3 {
        let _ = fill(&mut incoming, &bad);
    }
    while !incoming.is_complete() {
        let _ = fill(&mut incoming, &all);
    }
    incoming.finish().unwrap();
    assert_same(&path, &to.path().join("file"));
}

#[test]
fn scattered_segments_are_not_drowned_by_their_journal() {
    const LEN: u32 = 44;
    // 1 kB/s for ten minutes, scattered over 1.4 GB.
    const SECONDS: u64 = 600;
    const A_SECOND: u64 = 23;
    let to = tempfile::tempdir().unwrap();
    let (head, manifest) = claims(vec![claimed(b"file".to_vec(), u64::from(LEN) << 25)]);
    let options = Options { durability: Durability::NoSync, ..Options::default() };
    let size = manifest.product_size();
    let mut incoming = Incoming::open(to.path(), manifest.id(), size, LEN, options).unwrap();
    let mut padded = head.clone();
    padded.resize(head.len().next_multiple_of(LEN as usize), 0);
    for (at, segment) in padded.chunks(LEN as usize).enumerate() {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    let journal = to.path().join(".farcast").join(manifest.id().to_string()).join("journal");
    let (mut stored, mut written, mut since) = (0, 0, 0);
    let (mut most_at_risk, mut unsaved) = (0, 0);
    for second in 0..SECONDS {
        for n in 0..A_SECOND {
            let at = (second * A_SECOND + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 39;
            incoming.store(at as u32 + 2, &[&[1; LEN as usize]]).unwrap();
            stored += u64::from(LEN);
            unsaved += u64::from(LEN);
        }
        since += 1;
        most_at_risk = most_at_risk.max(unsaved);
        if let Some(checkpoint) = incoming.checkpoint_if_worth(Duration::from_secs(since)) {
            checkpoint.run().unwrap();
            written += fs::metadata(&journal).unwrap().len();
            (since, unsaved) = (0, 0);
        }
    }
    assert!(written < 8 * stored, "{written} bytes of journals for {stored} bytes stored");
    assert!(most_at_risk <= 31_000, "{most_at_risk}");
}

#[test]
fn what_could_not_be_placed_is_given_back() {
    let (from, to) = dirs();
    let (_, large, some) = one_file(from.path(), "large", 3_200_000);
    let (_, outgoing, all) = one_file(from.path(), "file", 900_000);
    let options = with(Quota { octets: Some(4_000_000), ..Quota::default() });
    let mut other = try_open(to.path(), &large, SEGMENT, options).unwrap();
    other.store(0, &[&some[0]]).unwrap();
    let mut incoming = try_open(to.path(), &outgoing, SEGMENT, options).unwrap();
    for (at, segment) in all.iter().enumerate().skip(1) {
        incoming.store(at as u32, &[segment]).unwrap();
    }
    // There is room for the product now, but not for its spooled bytes twice.
    let before = listing(to.path()).len();
    for (at, segment) in some[..1800].iter().enumerate() {
        other.store(at as u32, &[segment]).unwrap();
    }
    let found = incoming.store(0, &[&all[0]]);
    assert!(matches!(found, Err(StoreError::OverQuota { .. })), "{found:?}");
    assert!(listing(to.path()).len() > before, "a partial was made");
    assert!(!incoming.abandon().unwrap());
    assert!(listing(to.path()).len() < before, "{:?}", listing(to.path()).len());
    let left: Vec<_> = listing(to.path()).into_iter().map(|(path, ..)| path).collect();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains(".file.")), "{left:?}");
}

#[test]
fn an_age_is_what_has_passed_whatever_clocks_say() {
    let (from, to) = dirs();
    let (_, outgoing, all) = one_file(from.path(), "file", 400_000);
    assert!(begin(to.path(), (&outgoing, &all), 9, Options::default()));
    let quota = Quota { age: Duration::from_hours(14 * 24), ..Quota::default() };
    let tidy = |now: SystemTime, passed: Duration| {
        partials::tidy(to.path(), &quota, now, passed).unwrap().iter().map(|one| one.held).collect::<Vec<_>>()
    };
    // A host without a clock has written the files in 1970. It learns the time only after its next start.
    for entry in listing(to.path()) {
        let path = to.path().join(&entry.0);
        if path.is_file() {
            fs::File::options().write(true).open(path).unwrap().set_modified(common::time(1)).unwrap();
        }
    }
    let now = SystemTime::now();
    let days = |days: u64| Duration::from_hours(24 * days);
    assert_eq!(tidy(common::time(2), Duration::ZERO), [0; 0]);
    // A jump of the clock in either direction adds at most a day, and never takes any away.
    assert_eq!(tidy(now, Duration::ZERO), [0; 0]);
    assert_eq!(tidy(now + days(10_000), Duration::ZERO), [0; 0]);
    assert_eq!(tidy(common::time(0), days(1)), [0; 0]);
    let partial = partials::list(to.path()).unwrap().remove(0);
    assert_eq!(partial.age, days(3));
    assert_eq!(partial.left(&quota), days(11));
    // Time that the process has seen pass counts, whatever the clock says.
    assert_eq!(tidy(common::time(0), days(10)), [0; 0]);
    let removed = tidy(common::time(0), days(1));
    assert!(removed[0] > 0, "{removed:?} bytes were here");
    assert!(is_empty(to.path()));
}

#[test]
fn what_comes_makes_it_young_again() {
    let (from, to) = dirs();
    let (_, outgoing, all) = one_file(from.path(), "file", 400_000);
    let quota = Quota { age: Duration::from_hours(24), ..Quota::default() };
    assert!(begin(to.path(), (&outgoing, &all), 9, Options::default()));
    let look = |passed| {
        partials::tidy(to.path(), &quota, SystemTime::now(), Duration::from_hours(passed)).unwrap().len()
    };
    assert_eq!((look(0), look(20)), (0, 0));
    assert!(begin(to.path(), (&outgoing, &all), 20, Options::default()));
    assert_eq!((look(0), look(20)), (0, 0));
    assert_eq!(look(5), 1);
}
