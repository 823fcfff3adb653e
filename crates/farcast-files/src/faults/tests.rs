//! Fault injection: every call that can fail is made to fail at each place with each of its errnos, in sessions with
//! every kind of end.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic, and knows the time")]
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::IoSliceMut;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as E;
use tempfile::TempDir;

use super::{Call, Fault, Lasting, Made, with};
use crate::beneath::Root;
use crate::{
    Coding, Delivered, Happening, Incoming, Options, Outgoing, PlainObject, Quota, Scanning, StoreError,
    Vouched, partials,
};

const SEGMENT: u32 = 1000;

/// Returns the errnos that a call can have by its manual page, for file systems of all kinds.
fn errnos(call: Call) -> &'static [E] {
    match call {
        Call::Open => &[
            E::ACCESS,
            E::PERM,
            E::IO,
            E::MFILE,
            E::NOSPC,
            E::ROFS,
            E::INVAL,
            E::ILSEQ,
            E::NOENT,
            E::NOSYS,
            E::STALE,
        ],
        Call::Stat => &[E::ACCESS, E::IO, E::NAMETOOLONG, E::INVAL, E::NOENT, E::STALE],
        Call::Statvfs => &[E::IO, E::NOSYS, E::STALE],
        Call::MakeDirectory => {
            &[E::ACCESS, E::PERM, E::IO, E::NOSPC, E::ROFS, E::INVAL, E::NAMETOOLONG, E::NOENT]
        }
        Call::SetMode | Call::SetTime => {
            &[E::PERM, E::ACCESS, E::INVAL, E::OPNOTSUPP, E::NOSYS, E::IO, E::ROFS]
        }
        Call::SyncContent | Call::SyncNames => &[E::INVAL, E::OPNOTSUPP, E::NOSYS, E::IO, E::NOSPC, E::ROFS],
        Call::Unlink => &[E::ACCESS, E::PERM, E::IO, E::ROFS, E::BUSY, E::NOENT],
        Call::Rename => &[E::ACCESS, E::PERM, E::IO, E::NOSPC, E::ROFS, E::INVAL, E::NAMETOOLONG, E::XDEV],
        Call::RenameNew => &[E::ACCESS, E::PERM, E::IO, E::NOSPC, E::INVAL, E::NOSYS, E::OPNOTSUPP, E::EXIST],
        Call::Truncate => &[E::PERM, E::INVAL, E::OPNOTSUPP, E::IO, E::NOSPC, E::FBIG],
        Call::Lock => &[E::NOLCK, E::NOSYS, E::OPNOTSUPP, E::INVAL, E::IO, E::WOULDBLOCK],
        Call::Seek => &[E::INVAL, E::NXIO, E::OPNOTSUPP, E::IO],
        Call::Read => &[E::IO, E::INTR, E::STALE],
        Call::Write => &[E::IO, E::INTR, E::NOSPC, E::DQUOT, E::FBIG],
        Call::List => &[E::IO, E::ACCESS],
    }
}

/// Returns `true` if a session must be complete although `call` has failed with `errno`.
fn is_nicety(call: Call, errno: E) -> bool {
    let absent = matches!(errno, E::INVAL | E::OPNOTSUPP | E::NOSYS);
    match call {
        Call::SetMode | Call::SetTime => absent || matches!(errno, E::PERM | E::ACCESS),
        Call::SyncContent | Call::SyncNames => absent,
        Call::Lock => absent || errno == E::NOLCK,
        Call::Seek => true,
        Call::RenameNew | Call::Truncate => absent || errno == E::PERM,
        Call::Statvfs => errno == E::NOSYS,
        Call::Read | Call::Write => errno == E::INTR,
        _ => false,
    }
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut reader = blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof();
    let mut bytes = vec![0; len];
    reader.fill(&mut bytes);
    bytes
}

/// Product of a sender, made once for all sessions.
struct SentProduct {
    /// Kept so that the directory stays.
    _dir: TempDir,
    outgoing: Outgoing,
    segments: Vec<Vec<u8>>,
    /// Content by path.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

fn sent() -> SentProduct {
    let dir = tempfile::tempdir().unwrap();
    let text = "what is said twice is sent once; ".repeat(400).into_bytes();
    // The zeros become a hole, and lie behind content that is written first.
    let holes = [noise(7, 3000), vec![0; 12_000], noise(8, 900)].concat();
    let files: BTreeMap<PathBuf, Vec<u8>> = [
        ("t/A", noise(3, 1200)),
        ("t/a", noise(1, 5000)),
        ("t/holes", holes),
        ("t/none", Vec::new()),
        ("t/sub/b", noise(2, 2500)),
        ("t/text", text),
    ]
    .into_iter()
    .map(|(path, content)| (path.into(), content))
    .collect();
    for (path, content) in &files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir(dir.path().join("t/empty")).unwrap();
    let scanning = Scanning { compress: Some(dir.path().into()), ..Scanning::default() };
    let mut outgoing = Outgoing::scan_by(&scanning, &[dir.path().join("t")], |_| {}).unwrap();
    let segments = read(&mut outgoing).unwrap();
    SentProduct { _dir: dir, outgoing, segments, files }
}

fn read(outgoing: &mut Outgoing) -> Result<Vec<Vec<u8>>, crate::SourceError> {
    let mut segments = vec![vec![0; SEGMENT as usize]; outgoing.segment_count(SEGMENT).unwrap() as usize];
    let mut slots: Vec<_> = segments.iter_mut().map(|slot| IoSliceMut::new(slot)).collect();
    let read = outgoing.read_segments(0, &mut slots)?;
    let last = read as usize - SEGMENT as usize * (segments.len() - 1);
    segments.last_mut().unwrap().truncate(last);
    Ok(segments)
}

/// Creates a receiving directory for a session, with an older version of one file and the right content of another.
fn receiver(sent: &SentProduct) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    fs::create_dir_all(to.path().join("t/sub")).unwrap();
    fs::write(to.path().join("t/a"), "older").unwrap();
    fs::write(to.path().join("t/sub/b"), &sent.files[Path::new("t/sub/b")]).unwrap();
    to
}

/// Returns `true` if every file and the empty directory are present and right. Panics if a file has wrong content.
fn is_there(to: &Path, sent: &SentProduct, story: &str) -> bool {
    let mut all = to.join("t/empty").is_dir();
    for (path, content) in &sent.files {
        match fs::read(to.join(path)) {
            Ok(found) if found == *content => {}
            Ok(found) => {
                assert!(
                    path == Path::new("t/a") && found == b"older",
                    "wrong content under {}: {story}",
                    path.display()
                );
                all = false;
            }
            Err(_) => all = false,
        }
    }
    all
}

/// Receives a product in several runs: opens it, stores, and drops, abandons or finishes it.
fn product(to: &Path, sent: &SentProduct, delivered: &Arc<Delivered>) -> Result<(), StoreError> {
    let (all, options) = (&sent.segments, Options::default());
    let open = || {
        let mut incoming = Incoming::open(to, sent.outgoing.id(), sent.outgoing.size(), SEGMENT, options)?;
        incoming.beside(Arc::clone(delivered), "here 1".into());
        Ok::<_, StoreError>(incoming)
    };
    let mut told = Vec::new();
    let store = |incoming: &mut Incoming, which: &[u32], told: &mut Vec<Happening>| {
        which.iter().try_for_each(|&at| {
            told.extend(incoming.store(at, &[&all[at as usize]])?);
            Ok::<_, StoreError>(())
        })
    };
    let count = all.len() as u32;
    let mut incoming = open()?;
    // The head comes last, so that the spool has content to move.
    store(&mut incoming, &[5, 6, 7, 9, 10, 11, 2, 1, 0], &mut told)?;
    let coding = Coding { symbol_len: SEGMENT as u16, source: 8, parity: 4 };
    let parity = vec![7; SEGMENT as usize];
    incoming.keep_parity(coding, 0, 0, &[&parity, &parity])?;
    incoming.checkpoint().map_or(Ok(()), |one| one.run().map_err(|error| failed(to, error)))?;
    drop(incoming);
    let mut incoming = open()?;
    incoming.kept_parity(coding)?;
    incoming.read_parity(0)?;
    incoming.forget_parity(0, true)?;
    incoming.compare()?;
    let missing: Vec<u32> =
        (0..count).rev().filter(|at| !incoming.held().contains(*at) && at % 7 != 3).collect();
    store(&mut incoming, &missing, &mut told)?;
    incoming.abandon()?;
    let mut incoming = open()?;
    let missing: Vec<u32> = (0..count).filter(|at| !incoming.held().contains(*at)).collect();
    store(&mut incoming, &missing, &mut told)?;
    let mut all_of_it = vec![0; SEGMENT as usize * count as usize];
    // Segments that can no longer be read are received again below.
    incoming.read(0, &mut all_of_it)?;
    let missing: Vec<u32> = (0..count).filter(|at| !incoming.held().contains(*at)).collect();
    store(&mut incoming, &missing, &mut told)?;
    for happening in told.iter().chain(&incoming.take_happenings()) {
        if let (Happening::FileDone { index }, Some(manifest)) = (happening, incoming.manifest()) {
            let path = Path::new(str::from_utf8(&manifest.entries()[*index].path).unwrap()).to_owned();
            assert_eq!(
                fs::read(to.join(&path)).ok().as_ref(),
                Some(&sent.files[&path]),
                "told done: {}",
                path.display()
            );
        }
    }
    incoming.finish().map(drop)
}

fn failed(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::Io { path: path.into(), action: "checkpoint", source: error }
}

/// Receives an object without a manifest whose sender vouches for it, as NORM, MDP, PGM and one-way delivery do.
fn plain(to: &Path, sent: &SentProduct, delivered: &Arc<Delivered>) -> Result<(), StoreError> {
    let content = &sent.files[Path::new("t/holes")];
    let digest = *blake3::hash(content).as_bytes();
    let object = PlainObject {
        name: b"new/dir/a",
        provisional: true,
        size: content.len() as u64,
        vouched: Some(Vouched { digest, mode: 0o640, mtime_ns: 1_000_000_000 }),
        origin: Some(b"here, 1"),
        since: SystemTime::UNIX_EPOCH,
        overwrite: to.join("new/dir/a").exists(),
    };
    let open = || {
        let mut incoming = Incoming::open_plain(to, &object, SEGMENT, Options::default())?;
        incoming.beside(Arc::clone(delivered), "here 1".into());
        Ok::<_, StoreError>(incoming)
    };
    let segment = |at: u32| content.chunks(SEGMENT as usize).nth(at as usize).unwrap();
    let mut incoming = open()?;
    for at in [3, 1] {
        incoming.store(at, &[segment(at)])?;
    }
    incoming.checkpoint().map_or(Ok(()), |one| one.run().map_err(|error| failed(to, error)))?;
    drop(incoming);
    let mut incoming = open()?;
    let missing: Vec<u32> = (0..16).filter(|at| !incoming.held().contains(*at)).collect();
    for at in missing {
        incoming.store(at, &[segment(at)])?;
    }
    incoming.rename(b"new/dir/a", object.vouched)?;
    incoming.retry()?;
    incoming.finish().map(drop)
}

/// Lists, tidies and sweeps the remains of earlier runs.
fn tidied(to: &Path) -> Result<(), StoreError> {
    let quota = Quota::default();
    let listed = partials::list(to)?;
    partials::usage(to, &listed, &quota)?;
    partials::tidy(to, &quota, SystemTime::now(), Duration::ZERO)?;
    partials::tidy(to, &quota, SystemTime::now(), quota.age)?;
    partials::sweep(to);
    Ok(())
}

/// Result of a session: its directory, its error and the calls that it made.
struct Ran {
    to: TempDir,
    result: Result<(), StoreError>,
    made: Vec<Made>,
}

type Session = fn(&Path, &SentProduct, &Arc<Delivered>) -> Result<(), StoreError>;

fn run(session: Session, sent: &SentProduct, fault: Option<Fault>) -> Ran {
    let to = receiver(sent);
    let (result, made) = with(fault, || session(to.path(), sent, &Arc::default()));
    Ran { to, result, made }
}

/// Returns the faults to inject into a session that makes the calls `made`.
fn faults(made: &[Made]) -> Vec<Fault> {
    let mut seen: BTreeMap<(Call, &str, u32), usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (at, (call, place)) in made.iter().enumerate() {
        let times = seen.entry((*call, place.file(), place.line())).or_default();
        *times += 1;
        for (number, &errno) in errnos(*call).iter().enumerate() {
            // EINTR happens once; the repeated call succeeds.
            let lasting = |lasting| if errno == E::INTR { Lasting::Once } else { lasting };
            let fault = |how| Fault { at, errno, lasting: lasting(how) };
            // At the first call of a place, every errno; at each later call another one.
            if *times == 1 {
                faults.extend([fault(Lasting::Once), fault(Lasting::FromThenOn)]);
            } else if (*times + number).is_multiple_of(errnos(*call).len()) {
                faults.push(fault(if times.is_multiple_of(2) { Lasting::Once } else { Lasting::FromThenOn }));
            }
        }
    }
    faults
}

/// Injects faults into `session` and checks the result with `is_there`. Returns the places of all calls that were made.
fn draw(
    session: Session,
    sent: &SentProduct,
    is_there: fn(&Path, &SentProduct, &str) -> bool,
) -> BTreeSet<(String, u32)> {
    let clean = run(session, sent, None);
    clean.result.unwrap();
    assert!(is_there(clean.to.path(), sent, "no fault"));
    assert!(!clean.to.path().join(".farcast").exists());
    let (mut places, mut wrong) = (BTreeSet::new(), Vec::new());
    for fault in faults(&clean.made) {
        let ran = run(session, sent, Some(fault));
        places.extend(ran.made.iter().map(|(_, place)| (place.file().to_owned(), place.line())));
        let Some(&(call, place)) = ran.made.get(fault.at) else { continue };
        let story = format!(
            "{call:?} at {place}, call {}, {:?}, {:?}: {:?}",
            fault.at, fault.errno, fault.lasting, ran.result
        );
        let there = is_there(ran.to.path(), sent, &story);
        if !there && ran.result.is_ok() {
            wrong.push(format!("success, and not all is there: {story}"));
        }
        if ran.result.is_err() && is_nicety(call, fault.errno) {
            wrong.push(format!("only a nicety failed: {story}"));
        }
        // The remains of the failure must not harm the next run.
        let (again, _) = with(None, || session(ran.to.path(), sent, &Arc::default()));
        if again.is_err() || !is_there(ran.to.path(), sent, &story) {
            wrong.push(format!("{again:?} after {story}"));
        }
    }
    assert!(wrong.is_empty(), "{} sessions went wrong:\n{}", wrong.len(), wrong.join("\n"));
    places
}

fn plain_is_there(to: &Path, sent: &SentProduct, story: &str) -> bool {
    let found = fs::read(to.join("new/dir/a"));
    let right = found.as_ref().is_ok_and(|found| *found == sent.files[Path::new("t/holes")]);
    assert!(right || found.is_err(), "wrong content: {story}");
    right
}

/// Abandons a reception, tidies up, and discards another one.
fn leaving(to: &Path, sent: &SentProduct, _: &Arc<Delivered>) -> Result<(), StoreError> {
    let open = || Incoming::open(to, sent.outgoing.id(), sent.outgoing.size(), SEGMENT, Options::default());
    let mut incoming = open()?;
    for at in 0..3 {
        incoming.store(at, &[&sent.segments[at as usize]])?;
    }
    incoming.abandon()?;
    tidied(to)?;
    // A file stands in the place of a directory.
    let root = Root::open(to).map_err(|errno| failed(to, errno.into()))?;
    assert!(root.open_at(b"t/a/x", OFlags::RDONLY, Mode::empty()).is_err());
    let mut incoming = open()?;
    incoming.store(0, &[&sent.segments[0]])?;
    incoming.discard()
}

/// Checks that existing files are unchanged.
fn nothing_is_lost(to: &Path, sent: &SentProduct, story: &str) -> bool {
    assert_eq!(fs::read(to.join("t/a")).unwrap(), b"older", "{story}");
    assert_eq!(fs::read(to.join("t/sub/b")).unwrap(), sent.files[Path::new("t/sub/b")], "{story}");
    true
}

/// Source files that may call the file system themselves: those of the sender's side, and that of the wrappers.
const OTHERS: [&str; 6] = [
    "system.rs",
    "outgoing.rs",
    "outgoing/scan.rs",
    "outgoing/watch.rs",
    "scratch.rs",
    "compression/spooling.rs",
];

/// Returns `true` if a line calls the file system without a wrapper. Reading `/proc` is permitted.
fn is_own_call(line: &str) -> bool {
    let calls = line.match_indices("fs::").any(|(at, _)| {
        let name = &line[at + 4..];
        let end = name.find(|one: char| !one.is_ascii_lowercase() && one != '_' && !one.is_ascii_digit());
        end.is_some_and(|end| end > 0 && name[end..].starts_with('(') && !name.starts_with("read_to_string"))
    });
    calls || ["io::pread", "io::pwrite", "Dir::new"].iter().any(|call| line.contains(call))
}

/// Returns the file and line of every call to the file system on the receiver's side.
fn places_in_sources() -> BTreeSet<(String, u32)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut places, mut waiting) = (BTreeSet::new(), vec![src.clone()]);
    while let Some(path) = waiting.pop() {
        let name = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if !OTHERS.contains(&name.as_str()) && !name.contains("tests") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for (line, text) in
                code.lines().enumerate().filter(|(_, text)| !text.trim_start().starts_with("//"))
            {
                assert!(!is_own_call(text), "{name}: \"{}\" is no call of system.rs", text.trim());
                // Only a umask that takes bits from the owner leads to chmodat, and a umask is set for the whole
                // process.
                if text.contains("system::")
                    && !text.contains("system::chmodat")
                    && text.contains('(')
                    && !text.starts_with("use ")
                {
                    places.insert((name.clone(), line as u32 + 1));
                }
            }
        }
    }
    places
}

#[test]
fn whatever_fails_no_name_is_on_wrong_content_and_no_nicety_costs_a_file() {
    let sent = sent();
    let mut places = draw(product, &sent, is_there);
    places.extend(draw(plain, &sent, plain_is_there));
    places.extend(draw(leaving, &sent, nothing_is_lost));
    let (segments, made) = with(None, || read(&mut sent.outgoing.clone()));
    assert_eq!(segments.unwrap(), sent.segments);
    places.extend(made.iter().map(|(_, place)| (place.file().to_owned(), place.line())));
    let reached =
        |(file, line): &(String, u32)| places.iter().any(|(path, at)| path.ends_with(file) && at == line);
    assert!(is_own_call("    fs::fsync(fd)?;") && !is_own_call("    system::fsync(fd)?;"));
    let missed: Vec<_> = places_in_sources().into_iter().filter(|place| !reached(place)).collect();
    assert!(missed.is_empty(), "calls that no session makes: {missed:?}");
}
