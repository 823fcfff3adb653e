//! Detection of files that change while they are sent.
//!
//! Only content matters. A file is sent on if it was merely touched, or has grown behind the bytes that are sent.
//! Compressed files were read before and wait in the spool, where nobody changes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs;
use rustix::io::Result as SystemResult;

use super::{Content, Outgoing, SourceFile, State};
use super::{is_file, open_source};
use crate::EntryKind;
use crate::transfer::read_at;

const READ_LEN: usize = 1 << 20;
/// Resolution of file times, in nanoseconds: they are as coarse as a tick of the kernel's clock.
const COARSE_NS: i64 = 20_000_000;

/// Change of a file while it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The content is different.
    Changed,
    /// The file is gone.
    Removed,
    /// Something that is not a file has its path.
    Replaced,
    /// The file exists, but the system refuses to read it.
    Unreadable,
}

impl Change {
    /// Returns a predicate for a sentence whose subject is the file.
    pub fn words(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "was removed",
            Self::Replaced => "is no file any more",
            Self::Unreadable => "cannot be read any more",
        }
    }

    /// Returns the same predicate, with the words "while it was being sent" if they are needed to be understood.
    pub fn words_while_sent(self) -> &'static str {
        match self {
            Self::Changed => "changed while it was being sent",
            Self::Removed => "was removed while it was being sent",
            Self::Replaced | Self::Unreadable => self.words(),
        }
    }
}

/// A file that has changed since it was scanned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedFile {
    /// Index among the files that are sent, from 0.
    pub file: usize,
    /// Path on the sender's side.
    pub path: PathBuf,
    /// Kind of the change.
    pub change: Change,
    /// `true` if some of it was read after the change, so that receivers may have got the wrong content.
    pub was_sent: bool,
}

/// Knowledge about all files while they are sent.
#[derive(Debug)]
pub(super) struct Fates {
    /// Time of the last read of each file, in nanoseconds since 1970; 0 before the first.
    read_ns: Box<[AtomicI64]>,
    /// Files whose metadata has changed.
    odd: Mutex<BTreeMap<usize, Odd>>,
    changes: AtomicUsize,
}

/// A file whose metadata has changed.
#[derive(Clone, Copy, Debug)]
struct Odd {
    /// Change of the content, and its time in nanoseconds since 1970; `None` while the content is the same.
    change: Option<(Change, i64)>,
    /// Metadata at the time of the last comparison.
    seen: Option<State>,
}

impl Fates {
    pub(super) fn new(files: usize) -> Self {
        let read_ns = (0..files).map(|_| AtomicI64::new(0)).collect();
        Self { read_ns, odd: Mutex::default(), changes: AtomicUsize::new(0) }
    }

    fn odd(&self) -> MutexGuard<'_, BTreeMap<usize, Odd>> {
        self.odd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_read(&self, file: usize) {
        self.read_ns[file].store(now_ns(), Ordering::Relaxed);
    }

    /// Notes that the content of `file` has changed at `changed_ns`.
    pub(super) fn spoil(&self, file: usize, change: Change, changed_ns: i64) {
        let mut odd = self.odd();
        let one = odd.entry(file).or_insert(Odd { change: None, seen: None });
        if one.change.is_none() {
            one.change = Some((change, changed_ns));
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn was_sent(&self, file: usize, changed_ns: i64) -> bool {
        let read = self.read_ns[file].load(Ordering::Relaxed);
        read > 0 && read >= changed_ns.saturating_sub(COARSE_NS)
    }
}

/// Returns the current time in nanoseconds since 1970, for comparison with file times.
#[expect(clippy::disallowed_methods, reason = "it is held against files' times")]
pub(super) fn now_ns() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

impl Outgoing {
    /// Returns the files whose changes are known, from [`watch`](Self::watch) and from reading.
    pub fn changed(&self) -> Vec<ChangedFile> {
        let Content { sources, fates, .. } = &*self.content;
        let odd = fates.odd();
        let changed = odd.iter().filter_map(|(&file, odd)| Some((file, odd.change?)));
        changed
            .map(|(file, (change, changed_ns))| {
                let path = sources[file].path.clone();
                ChangedFile { file, path, change, was_sent: fates.was_sent(file, changed_ns) }
            })
            .collect()
    }

    /// Returns the number of files whose changes are known.
    pub fn changes(&self) -> usize {
        self.content.fates.changes.load(Ordering::Relaxed)
    }

    /// Returns the name of file number `file` at the receivers, as [`shown_name`](crate::shown_name) writes it.
    pub fn name_of(&self, file: usize) -> Option<String> {
        let entry = self.content.layout.spans().get(file)?.entry;
        self.content.manifest.entries().get(entry).map(|entry| crate::shown_name(&entry.path))
    }

    /// Returns the range of bytes that file number `file` has in the product.
    pub fn bytes_of(&self, file: usize) -> Option<core::ops::Range<u64>> {
        self.content.layout.spans().get(file).map(crate::layout::Span::bytes)
    }

    /// Compares the metadata of every file with that of the scan. A file with different metadata is read and compared
    /// with its digest, until a change is known. Stops early when `goes_on` returns `false`. A file that cannot be
    /// examined is passed over; the next read of it reports the error.
    pub fn watch(&self, goes_on: &dyn Fn() -> bool) {
        for file in 0..self.content.sources.len() {
            if !goes_on() {
                break;
            }
            self.watch_file(file, goes_on);
        }
    }

    fn watch_file(&self, file: usize, goes_on: &dyn Fn() -> bool) {
        let Content { sources, fates, .. } = &*self.content;
        let source = &sources[file];
        let known = fates.odd().get(&file).copied();
        if source.spooled.is_some() || known.is_some_and(|odd| odd.change.is_some()) {
            return;
        }
        let Ok(stat) = fs::lstat(&source.path) else { return };
        let state = State::of(&stat);
        if state == known.and_then(|odd| odd.seen).unwrap_or(source.state) {
            return;
        }
        if !is_file(&stat) {
            return fates.spoil(file, Change::Replaced, ctime_of(&stat));
        }
        match self.is_as_it_was(file, source, goes_on) {
            Ok(true) => {
                fates.odd().insert(file, Odd { change: None, seen: Some(state) });
            }
            Ok(false) if goes_on() => fates.spoil(file, Change::Changed, ctime_of(&stat)),
            // A descriptor from before may still read it. If none does, the next read reports the change.
            Ok(false) | Err(_) => {}
        }
    }

    /// Returns `true` if the file still begins with the content that was scanned.
    fn is_as_it_was(
        &self,
        file: usize,
        source: &SourceFile,
        goes_on: &dyn Fn() -> bool,
    ) -> SystemResult<bool> {
        let Some(digest) = self.digest_of(file) else { return Ok(false) };
        let fd = open_source(&source.path)?;
        let (mut hasher, mut buffer, mut at) = (blake3::Hasher::new(), vec![0; READ_LEN], 0);
        while at < source.state.size && goes_on() {
            let wanted = &mut buffer[..(source.state.size - at).min(READ_LEN as u64) as usize];
            let read = read_at(&fd, wanted, at)?;
            if read < wanted.len() {
                return Ok(false);
            }
            hasher.update(wanted);
            at += read as u64;
        }
        Ok(*hasher.finalize().as_bytes() == digest)
    }

    fn digest_of(&self, file: usize) -> Option<[u8; 32]> {
        let entry = self.content.layout.spans().get(file)?.entry;
        match self.content.manifest.entries().get(entry)?.kind {
            EntryKind::File { digest, .. } | EntryKind::Compressed { digest, .. } => Some(digest),
            EntryKind::Directory => None,
        }
    }
}

/// Returns the time of the file's last status change, in nanoseconds since 1970.
pub(super) fn ctime_of(stat: &fs::Stat) -> i64 {
    let nanoseconds = i64::try_from(stat.st_ctime_nsec).unwrap_or(0);
    stat.st_ctime.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
