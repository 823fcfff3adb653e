//! Arbitrary damage to the files of an incomplete product. Continuing the product never panics, parity that is read is
//! what was written, and a file that gets its final name is what was sent.
#![no_main]

use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arbitrary::{Arbitrary, Unstructured};
use farcast_files::{Coding, Durability, Incoming, Options, Outgoing, ProductId, Scanning};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const LEN: usize = 64;
const CODING: Coding = Coding { symbol_len: LEN as u16, source: 16, parity: 16 };
/// Number of attempts to store damaged data again; the receiver gives up at the tenth damage.
const TRIES: u32 = 12;

#[derive(Arbitrary, Debug)]
enum Damage {
    /// Overwrites some octets.
    Write { file: u8, at: u16, bytes: [u8; 8] },
    /// Shortens or extends a file.
    Resize { file: u8, len: u16 },
    /// Copies the content of another file.
    Copy { from: u8, to: u8 },
    /// Removes a file.
    Remove { file: u8 },
    /// Replaces the content of a file.
    Replace { file: u8, bytes: Vec<u8> },
}

#[derive(Arbitrary, Debug)]
struct Case {
    /// Segments that were stored, as bits; `parity` holds block and number of the stored parity symbols.
    came: u64,
    parity: Vec<(u8, u8)>,
    /// `true` if the first run was killed; otherwise it was abandoned.
    killed: bool,
    damages: Vec<Damage>,
}

/// Product of a sender, made once.
struct Sent {
    id: ProductId,
    size: u64,
    segments: Vec<Vec<u8>>,
    files: Vec<(&'static str, Vec<u8>)>,
}

fn sent() -> &'static Sent {
    static SENT: OnceLock<Sent> = OnceLock::new();
    SENT.get_or_init(|| {
        let dir = scratch();
        // A file that is compressed, one that is not, and an empty one.
        let mixed: Vec<u8> = (0..1500_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let long: Vec<u8> = (0..2500_u32).flat_map(|at| [at as u8 ^ (at >> 6) as u8, 7, 7]).collect();
        let files = vec![("a", long), ("b", mixed), ("empty", Vec::new())];
        let root = dir.path().join("tree");
        std::fs::create_dir(&root).expect("made");
        for (name, content) in &files {
            std::fs::write(root.join(name), content).expect("written");
        }
        let scanning = Scanning { compress: Some(dir.path().into()), ..Scanning::default() };
        let mut outgoing = Outgoing::scan_by(&scanning, &[root], |_| {}).expect("scanned");
        assert_eq!(outgoing.manifest().compressed().files, 1);
        let count = outgoing.segment_count(LEN as u32).expect("countable");
        let read = |segment: u32| {
            let mut slot = vec![0; LEN];
            let at = u64::from(segment) * LEN as u64;
            let len = outgoing.read_segments(at, &mut [IoSliceMut::new(&mut slot)]).expect("read");
            slot.truncate(len as usize);
            slot
        };
        let segments = (0..count).map(read).collect();
        Sent { id: outgoing.id(), size: outgoing.size(), segments, files }
    })
}

/// Creates a temporary directory, in memory if /dev/shm exists.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}

fn open(dir: &Path) -> Option<Incoming> {
    let options = Options { durability: Durability::NoSync, ..Options::default() };
    Incoming::open(dir, sent().id, sent().size, LEN as u32, options).ok()
}

/// Returns the content of a symbol, which is different for each block and number.
fn symbol(block: u32, symbol: u32) -> Vec<u8> {
    (0..LEN as u32).map(|at| (block * 31 + symbol * 7 + at) as u8).collect()
}

/// Lists all files below `dir` in sorted order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(files(&entry.path())),
            Ok(_) => all.push(entry.path()),
            Err(_) => {}
        }
    }
    all.sort();
    all
}

fn damage(dir: &Path, damage: Damage) {
    let all = files(dir);
    let Some(last) = all.len().checked_sub(1) else { return };
    let of = |n: u8| &all[usize::from(n) % (last + 1)];
    // A failure of the damage itself is ignored.
    let _ = match damage {
        Damage::Write { file, at, bytes } => std::fs::File::options()
            .write(true)
            .open(of(file))
            .and_then(|file| file.write_all_at(&bytes, u64::from(at % 4096))),
        Damage::Resize { file, len } => {
            std::fs::File::options().write(true).open(of(file)).and_then(|file| file.set_len(len.into()))
        }
        Damage::Copy { from, to } => std::fs::copy(of(from), of(to)).map(drop),
        Damage::Remove { file } => std::fs::remove_file(of(file)),
        Damage::Replace { file, bytes } => std::fs::write(of(file), bytes),
    };
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(case) = Case::arbitrary(&mut input) else { return };
    let (sent, dir) = (sent(), scratch());
    // The first run.
    let mut incoming = open(dir.path()).expect("an empty directory");
    for (segment, payload) in (0..).zip(&sent.segments) {
        // The first segments are those of the list of files.
        if segment < 8 || case.came >> (segment % 64) & 1 == 1 {
            incoming.store(segment, &[payload]).expect("right");
        }
    }
    let mut kept = std::collections::BTreeSet::new();
    for (block, number) in case.parity.iter().map(|&(block, n)| (u32::from(block % 4), u32::from(n % 16))) {
        if !incoming.is_complete() && kept.insert((block, number)) {
            let _ = incoming.keep_parity(CODING, block, number, &[&symbol(block, number)]);
        }
    }
    if case.killed {
        drop(incoming);
    } else {
        let _ = incoming.abandon();
    }
    for one in case.damages {
        damage(dir.path(), one);
    }
    // The next one.
    let Some(mut incoming) = open(dir.path()) else { return };
    if let Ok(known) = incoming.kept_parity(CODING) {
        for (block, _) in known {
            let symbols = incoming.read_parity(block).unwrap_or_default();
            assert!(symbols.is_sorted_by_key(|(number, _)| *number));
            for (number, bytes) in symbols {
                assert!(kept.contains(&(block, number)), "nobody wrote {number} of {block}");
                assert_eq!(*bytes, *symbol(block, number));
            }
        }
    }
    for _ in 0..TRIES {
        // Rebuilding a block reads like this; segments that are no longer available are stored again below.
        if incoming.read(0, &mut vec![0; sent.size as usize]).is_err() {
            return;
        }
        let gaps: Vec<u32> = (0..sent.segments.len() as u32).filter(|&n| !incoming.held().contains(n)).collect();
        for segment in gaps {
            if incoming.store(segment, &[&sent.segments[segment as usize]]).is_err() {
                return;
            }
        }
        if incoming.retry().is_err() {
            return;
        }
        if incoming.is_complete() {
            break;
        }
    }
    assert!(incoming.is_complete(), "it is all there, and nothing was wrong");
    if incoming.finish().is_ok() {
        for (name, content) in &sent.files {
            assert_eq!(std::fs::read(dir.path().join("tree").join(name)).expect("its final name"), *content);
        }
    }
});
