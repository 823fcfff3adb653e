//! Objects without a manifest: one file each under a safe name.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic, and knows the time")]

mod common;

use std::fs;
use std::io::IoSliceMut;
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::{noise, shuffle};
use farcast_files::{
    Happening, Incoming, Options, Outgoing, Overwrite, PlainObject, Quota, StoreError, Vouched, partials,
    safe_path,
};

const SEGMENT: u32 = 1000;

fn object<'a>(name: &'a [u8], content: &[u8]) -> PlainObject<'a> {
    let since = SystemTime::now() - Duration::from_hours(1);
    PlainObject {
        name,
        provisional: false,
        size: content.len() as u64,
        vouched: None,
        origin: Some(b"here, 7"),
        since,
        overwrite: true,
    }
}

fn try_open(dir: &Path, object: &PlainObject<'_>, options: Options) -> Result<Incoming, StoreError> {
    Incoming::open_plain(dir, object, SEGMENT, options)
}

fn open(dir: &Path, object: &PlainObject<'_>) -> Incoming {
    try_open(dir, object, Options::default()).unwrap()
}

/// Stores the segments `which` of `content`, and returns the events.
fn store(incoming: &mut Incoming, content: &[u8], which: impl IntoIterator<Item = u32>) -> Vec<Happening> {
    try_store(incoming, content, which).unwrap()
}

fn try_store(
    incoming: &mut Incoming,
    content: &[u8],
    which: impl IntoIterator<Item = u32>,
) -> Result<Vec<Happening>, StoreError> {
    let segment = |at: u32| content.chunks(SEGMENT as usize).nth(at as usize).unwrap();
    let stored: Result<Vec<_>, _> = which.into_iter().map(|at| incoming.store(at, &[segment(at)])).collect();
    stored.map(|happenings| happenings.concat())
}

fn count(content: &[u8]) -> u32 {
    content.len().div_ceil(SEGMENT as usize) as u32
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn it_gets_its_name_when_every_segment_is_there_and_its_digest_is_told() {
    // Less than a group of the tree, one exactly, and several with a short end.
    for len in [1, 999, 1000, 128 << 10, (3 << 17) + 12_345] {
        let dir = tempfile::tempdir().unwrap();
        let content = noise(len as u64, len);
        let mut incoming = open(dir.path(), &object(b"some.bin", &content));
        let mut order: Vec<u32> = (0..count(&content)).collect();
        shuffle(&mut order, 3);
        let last = order.pop().unwrap();
        assert_eq!(store(&mut incoming, &content, order), []);
        assert!(!incoming.is_complete() && !dir.path().join("some.bin").exists());
        let digest = *blake3::hash(&content).as_bytes();
        let done = Happening::PlainDone { name: b"some.bin".to_vec(), digest, vouched: false };
        assert_eq!(store(&mut incoming, &content, [last]), [done]);
        assert!(incoming.is_complete());
        incoming.finish().unwrap();
        assert_eq!(fs::read(dir.path().join("some.bin")).unwrap(), content);
        assert_eq!(names(dir.path()), ["some.bin"], "nothing else is left");
    }
}

#[test]
fn names_are_made_safe() {
    let long = [b'x'; 10_000];
    for (name, hidden, safe) in [
        (&b"plain.txt"[..], false, &b"plain.txt"[..]),
        (b"../../etc/passwd", false, b"__/__/etc/passwd"),
        (b"/etc/passwd", false, b"etc/passwd"),
        (b"a/b\0c\nd", false, b"a/b_c_d"),
        (b"..", true, b"__"),
        (b".", true, b"_"),
        (b"...", true, b"___"),
        (b".profile", false, b"_profile"),
        (b".profile", true, b".profile"),
        (b".farcast", true, b"_farcast"),
        (b"x.farcast-part", false, b"x_farcast-part"),
        (b"gr\xFCn", false, b"gr\xFCn"),
        (b"", false, b"unnamed-0123"),
    ] {
        assert_eq!(safe_path(name, hidden, "0123"), safe, "{}", String::from_utf8_lossy(name));
    }
    let (one, other) = (safe_path(&long, false, ""), safe_path(&long[1..], false, ""));
    assert_eq!((one.len(), other.len()), (255, 255));
    assert_ne!(one, other, "what is cut is told apart");
    let cut = safe_path("\u{e4}".repeat(200).as_bytes(), false, "");
    assert!(cut.len() > 240 && String::from_utf8(cut).is_ok());
    assert!(safe_path(&b".".repeat(300), false, "").iter().all(|octet| *octet != b'.'));
}

#[test]
fn whatever_it_is_called_it_stays_below_the_directory() {
    let long = vec![b'n'; 10_000];
    let hostile: [&[u8]; 8] = [b"../up", b"..", b"", b"/tmp/x", b"a\0b", b".farcast", b".farcast/x", &long];
    for (number, name) in hostile.iter().enumerate() {
        let outside = tempfile::tempdir().unwrap();
        let dir = outside.path().join("in");
        fs::create_dir(&dir).unwrap();
        let content = noise(number as u64, 2500);
        let mut incoming = open(&dir, &object(name, &content));
        let done = store(&mut incoming, &content, 0..3);
        let [Happening::PlainDone { name, .. }] = &done[..] else { panic!("{done:?}") };
        incoming.finish().unwrap();
        assert!(name.split(|octet| *octet == b'/').all(|part| !part.starts_with(b".")), "{name:?}");
        let name = std::str::from_utf8(name).unwrap();
        assert_eq!(fs::read(dir.join(name)).unwrap(), content);
        assert_eq!(names(outside.path()), ["in"]);
    }
}

#[test]
fn directories_are_made_and_no_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    let dir = outside.path().join("in");
    fs::create_dir_all(dir.join("there")).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.join("link")).unwrap();
    fs::write(dir.join("file"), "kept").unwrap();
    let content = noise(1, 2500);
    for (name, arrives) in [("a/b/c", true), ("there/x", true), ("link/x", false), ("file/x", false)] {
        let done = try_open(&dir, &object(name.as_bytes(), &content), Options::default())
            .and_then(|mut incoming| try_store(&mut incoming, &content, 0..3));
        assert_eq!(done.is_ok() && dir.join(name).exists(), arrives, "{name}: {done:?}");
        assert!(!arrives || fs::read(dir.join(name)).unwrap() == content, "{name}");
    }
    assert_eq!(names(outside.path()), ["in"]);
    assert_eq!(fs::read(dir.join("file")).unwrap(), b"kept");
}

#[test]
fn a_name_that_cannot_be_given_leaves_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let content = noise(1, 2500);
    let keep = Options { overwrite: Overwrite::Keep, ..Options::default() };
    let mut incoming = try_open(dir.path(), &object(b"a/b/c", &content), keep).unwrap();
    store(&mut incoming, &content, 0..2);
    fs::create_dir_all(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a/b"), "in the way").unwrap();
    assert!(try_store(&mut incoming, &content, 2..3).is_err());
    assert_eq!(names(&dir.path().join("a")), ["b"]);
}

#[test]
fn a_file_of_its_name_is_replaced_only_where_both_sides_allow_it() {
    let content = noise(1, 3000);
    let keep = Options { overwrite: Overwrite::Keep, ..Options::default() };
    for (options, sender, replaced) in
        [(keep, true, false), (Options::default(), false, false), (Options::default(), true, true)]
    {
        let dir = tempfile::tempdir().unwrap();
        let object = PlainObject { overwrite: sender, ..object(b"name", &content) };
        fs::write(dir.path().join("name"), "before").unwrap();
        let opened = try_open(dir.path(), &object, options);
        if replaced {
            let mut incoming = opened.unwrap();
            store(&mut incoming, &content, 0..3);
            assert_eq!(fs::read(dir.path().join("name")).unwrap(), content);
            continue;
        }
        assert!(matches!(opened, Err(StoreError::AlreadyExists { .. })));
        // A file that appears meanwhile is not replaced either.
        fs::remove_file(dir.path().join("name")).unwrap();
        let mut incoming = try_open(dir.path(), &object, options).unwrap();
        store(&mut incoming, &content, 0..2);
        fs::write(dir.path().join("name"), "meanwhile").unwrap();
        let error = incoming.store(2, &[&content[2000..]]).unwrap_err();
        assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error}");
        assert_eq!(fs::read(dir.path().join("name")).unwrap(), b"meanwhile");
    }
}

#[test]
fn links_and_directories_are_refused() {
    let content = noise(1, 3000);
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    for name in [&b"directory"[..], b"link"] {
        let refused = try_open(dir.path(), &object(name, &content), Options::default());
        assert!(matches!(refused, Err(StoreError::UnsafePath { .. })), "{refused:?}");
    }
}

#[test]
fn after_a_crash_the_same_object_goes_on_and_no_other_does() {
    let content = noise(5, 10_000);
    let start = |dir: &Path| {
        let mut incoming = open(dir, &object(b"name", &content));
        store(&mut incoming, &content, 0..4);
        incoming.checkpoint().unwrap().run().unwrap();
        store(&mut incoming, &content, 4..6);
        // Dropping the reception is like a crash.
    };
    let held = |object: PlainObject<'_>| {
        let dir = tempfile::tempdir().unwrap();
        start(dir.path());
        open(dir.path(), &object).held().count()
    };
    let same = object(b"name", &content);
    assert_eq!(held(same), 4);
    assert_eq!(held(PlainObject { size: 9999, ..same }), 0);
    assert_eq!(held(PlainObject { origin: Some(b"here, 8"), ..same }), 0);
    assert_eq!(held(PlainObject { origin: None, ..same }), 0);
    assert_eq!(held(PlainObject { since: SystemTime::now() + Duration::from_mins(1), ..same }), 0, "too old");
    // The object is completed with segments of another length.
    let dir = tempfile::tempdir().unwrap();
    start(dir.path());
    let mut incoming = Incoming::open_plain(dir.path(), &same, 1500, Options::default()).unwrap();
    assert_eq!(incoming.held().count(), 2, "4000 bytes are two whole segments");
    let rest: Vec<&[u8]> = content.chunks(1500).skip(2).collect();
    let done = incoming.store(2, &rest).unwrap();
    let digest = *blake3::hash(&content).as_bytes();
    assert_eq!(done, [Happening::PlainDone { name: b"name".to_vec(), digest, vouched: false }]);
    incoming.finish().unwrap();
    assert_eq!(fs::read(dir.path().join("name")).unwrap(), content);
    assert_eq!(names(dir.path()), ["name"]);
}

#[test]
fn what_can_be_gone_on_with_is_kept_and_listed_and_nothing_else() {
    let content = noise(5, 10_000);
    let dir = tempfile::tempdir().unwrap();
    let same = object(b"na/me", &content);
    let mut incoming = open(dir.path(), &same);
    store(&mut incoming, &content, 0..4);
    assert!(incoming.abandon().unwrap());
    let [one] = &partials::list(dir.path()).unwrap()[..] else { panic!("one partial") };
    let shown = (one.name.as_deref(), one.size, one.held, one.plain, one.verified);
    assert_eq!(shown, (Some(&b"na/me"[..]), Some(10_000), 4000, true, false));
    let quota = Quota::default();
    assert_eq!(partials::tidy(dir.path(), &quota, SystemTime::now(), Duration::ZERO).unwrap().len(), 0);
    assert_eq!(partials::tidy(dir.path(), &quota, SystemTime::now(), quota.age * 2).unwrap().len(), 1);
    assert_eq!(names(dir.path()), [""; 0]);
    // An object without an origin cannot be recognised by a later run.
    let unknown = PlainObject { origin: None, ..same };
    let mut incoming = open(dir.path(), &unknown);
    store(&mut incoming, &content, 0..4);
    assert!(incoming.checkpoint().is_none());
    assert!(!incoming.abandon().unwrap());
    let mut incoming = open(dir.path(), &unknown);
    store(&mut incoming, &content, 0..4);
    drop(incoming);
    assert_eq!(partials::tidy(dir.path(), &quota, SystemTime::now(), Duration::ZERO).unwrap().len(), 1);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn it_is_refused_before_anything_is_made_where_it_has_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let content = noise(5, 10_000);
    let quota = |octets| Quota { octets: Some(octets), ..Quota::default() };
    let options = |octets| Options { quota: quota(octets), ..Options::default() };
    let refused = try_open(dir.path(), &object(b"name", &content), options(9999));
    assert!(matches!(refused, Err(StoreError::OverQuota { needed: 10_000, .. })), "{refused:?}");
    let endless = PlainObject { size: 1 << 45, ..object(b"name", &content) };
    let refused = Incoming::open_plain(dir.path(), &endless, 60_000, Options::default());
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    assert_eq!(names(dir.path()), [""; 0]);
    let mut incoming = try_open(dir.path(), &object(b"name", &content), options(10_000)).unwrap();
    store(&mut incoming, &content, 0..10);
    assert_eq!(fs::read(dir.path().join("name")).unwrap(), content);
}

#[test]
fn the_same_object_is_received_once_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let content = noise(5, 3000);
    let mut incoming = open(dir.path(), &object(b"name", &content));
    store(&mut incoming, &content, 0..1);
    let second = try_open(dir.path(), &object(b"name", &content), Options::default());
    assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
}

#[test]
fn a_sender_can_leave_the_head_out() {
    let dir = tempfile::tempdir().unwrap();
    let content = noise(9, 5000);
    fs::write(dir.path().join("file"), &content).unwrap();
    let mut outgoing = Outgoing::plain(dir.path().join("file"), |_| {}).unwrap();
    assert_eq!((outgoing.size(), outgoing.segment_count(1000)), (5000, Some(5)));
    let mut slots = [[0; 1000]; 3];
    let mut slices = slots.each_mut().map(|slot| IoSliceMut::new(slot));
    assert_eq!(outgoing.read_segments(2000, &mut slices).unwrap(), 3000);
    assert_eq!(slots.concat(), content[2000..]);
}

const ONLY: fn() -> Options = || Options { vouched_only: true, ..Options::default() };

fn vouched(content: &[u8]) -> Vouched {
    let digest = *blake3::hash(content).as_bytes();
    Vouched { digest, mode: 0o751, mtime_ns: -1_500_000_000 }
}

#[test]
fn what_is_vouched_for_has_its_mode_and_time_and_nothing_else_gets_the_name() {
    use std::os::unix::fs::MetadataExt as _;
    let (dir, content) = (tempfile::tempdir().unwrap(), noise(1, 300_000));
    let object = PlainObject { vouched: Some(vouched(&content)), ..object(b"name", &content) };
    let mut incoming = open(dir.path(), &object);
    // Other content arrives twice, and all segments have to be received again.
    let other = noise(2, 300_000);
    for _ in 0..2 {
        let all = store(&mut incoming, &other, 0..count(&other));
        let [Happening::PlainDamaged { name, lost }] = &all[..] else { panic!("{all:?}") };
        assert_eq!((name.as_slice(), lost.first(), lost.count()), (&b"name"[..], 0, 300));
        assert!(incoming.held().is_empty() && !dir.path().join("name").exists());
    }
    let done = store(&mut incoming, &content, 0..count(&content));
    let digest = *blake3::hash(&content).as_bytes();
    assert_eq!(done, [Happening::PlainDone { name: b"name".to_vec(), digest, vouched: true }]);
    incoming.finish().unwrap();
    let stat = fs::metadata(dir.path().join("name")).unwrap();
    assert_eq!((stat.mtime(), stat.mtime_nsec()), (-2, 500_000_000));
    assert_eq!(stat.mode() & 0o700, 0o700);
    assert!(fs::read(dir.path().join("name")).unwrap() == content);
    assert_eq!(names(dir.path()), ["name"]);
}

#[test]
fn what_is_wrong_each_time_is_given_up() {
    let (dir, content) = (tempfile::tempdir().unwrap(), noise(1, 2500));
    let mut incoming =
        open(dir.path(), &PlainObject { vouched: Some(vouched(b"else")), ..object(b"name", &content) });
    for _ in 0..2 {
        store(&mut incoming, &content, 0..3);
    }
    store(&mut incoming, &content, 0..2);
    let last = incoming.store(2, &[&content[2000..]]);
    assert!(matches!(last, Err(StoreError::DigestMismatch { .. })), "{last:?}");
    assert!(!dir.path().join("name").exists());
}

#[test]
fn an_empty_one_is_complete_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let incoming = open(dir.path(), &PlainObject { vouched: Some(vouched(b"")), ..object(b"name", b"") });
    incoming.finish().unwrap();
    assert_eq!(fs::read(dir.path().join("name")).unwrap(), b"");
    assert_eq!(names(dir.path()), ["name"]);
}

#[test]
fn only_what_is_vouched_for_is_kept_and_only_for_the_same_content() {
    let content = noise(1, 10_000);
    let unknown = object(b"name", &content);
    let known = PlainObject { vouched: Some(vouched(&content)), ..unknown };
    let begin = |object: &PlainObject<'_>| {
        let dir = tempfile::tempdir().unwrap();
        let mut incoming = try_open(dir.path(), object, ONLY()).unwrap();
        store(&mut incoming, &content, 0..6);
        (dir, incoming)
    };
    let (dir, incoming) = begin(&unknown);
    assert!(!incoming.is_worth_keeping() && !incoming.abandon().unwrap());
    assert_eq!(try_open(dir.path(), &unknown, ONLY()).unwrap().held().count(), 0);
    // The name and the description become known later.
    let (dir, mut incoming) = begin(&unknown);
    incoming.rename(b"name", Some(vouched(&content))).unwrap();
    assert!(incoming.abandon().unwrap());
    let mut again = try_open(dir.path(), &unknown, ONLY()).unwrap();
    assert_eq!(again.held().count(), 6);
    again.rename(b"name", Some(vouched(&content))).unwrap();
    assert_eq!((again.held().count(), again.take_happenings()), (6, vec![]));
    again.abandon().unwrap();
    // The sender later vouches for something else, or for nothing.
    for other in [Some(vouched(b"else")), None] {
        let mut incoming = try_open(dir.path(), &unknown, ONLY()).unwrap();
        assert_eq!(incoming.held().count(), 6);
        incoming.rename(b"name", other).unwrap();
        assert!(incoming.held().is_empty(), "{other:?}");
        assert!(matches!(incoming.take_happenings()[..], [Happening::Dropped { .. }]));
        drop(incoming);
    }
    let changed = PlainObject { vouched: Some(vouched(b"else")), ..known };
    assert_eq!(try_open(dir.path(), &known, ONLY()).unwrap().held().count(), 6);
    assert_eq!(try_open(dir.path(), &changed, ONLY()).unwrap().held().count(), 0);
}

#[test]
fn what_is_not_yet_known_by_name_waits_for_it() {
    let (content, dir) = (noise(8, 2500), tempfile::tempdir().unwrap());
    let unknown = PlainObject { provisional: true, ..object(b"number-7", &content) };
    let seen = |dir: &Path| names(dir).into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();
    let mut incoming = open(dir.path(), &unknown);
    assert_eq!(store(&mut incoming, &content, 0..3), vec![]);
    assert!(incoming.held().is_full() && seen(dir.path()).is_empty());
    incoming.rename(b"name", Some(vouched(&content))).unwrap();
    assert!(!incoming.retry().unwrap().is_empty());
    assert_eq!(seen(dir.path()), ["name"]);
    incoming.finish().unwrap();
    // The name never becomes known.
    let mut incoming = open(dir.path(), &PlainObject { origin: Some(b"here, 8"), ..unknown });
    store(&mut incoming, &content, 0..3);
    incoming.settle_name();
    incoming.retry().unwrap();
    assert_eq!(seen(dir.path()), ["name", "number-7"]);
    // The content is compared with a description that arrived meanwhile before it gets its name.
    let mut incoming = open(dir.path(), &PlainObject { origin: Some(b"here, 9"), ..unknown });
    store(&mut incoming, &content, 0..3);
    incoming.rename(b"else", Some(vouched(b"else"))).unwrap();
    incoming.retry().unwrap();
    assert!(incoming.held().is_empty() && !seen(dir.path()).contains(&"else".to_owned()));
}
