//! The store thread's front: hands received buffers and orders to the thread that writes files, and takes its replies.
//!
//! Buffers travel to the thread and back by ownership, so the payload is copied once, from the kernel's buffer into
//! ours. While all buffers are on their way, the receiving thread leaves data to the kernel's buffer for a moment. That
//! buffer fills, and a sender that listens for acknowledgements slows down. If the disk does not answer at all, the
//! receiving thread drops data, so that it still reads other datagrams.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use farcast_core::{Bitmap, Run, Span};
use farcast_delivery::{ErasureCode, ObjectId, Offer};
use farcast_files::partials::Partial;
use farcast_files::{Options, Quota, Refusal};
use rustix::event::{EventfdFlags, eventfd};

use crate::error::NetError;

mod decoding;
mod product;
mod room;
mod worker;

pub(crate) use worker::is_final;
use worker::{AnswerChannel, Worker, WorkerChannels};

/// Datagram slots in an empty arena: the most that one system call fills.
pub(crate) const SLOTS: usize = 16;
/// Bytes of a slot: the most that one coalesced receive brings.
pub(crate) const SLOT_LEN: usize = 1 << 16;
/// Bytes of an arena.
pub(crate) const ARENA_LEN: usize = SLOTS * SLOT_LEN;
/// Number of arenas; if all of them are full, 16 MiB wait to be written.
const ARENAS: usize = 16;
/// Interval at which [`Store::end`] checks whether it must wait longer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A receive buffer and the steps to take with its content, in order.
pub(crate) struct Arena {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) steps: Vec<ArenaStep>,
    /// Object of the last step.
    of: Option<ObjectId>,
}

/// Step to take with an arena's content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArenaStep {
    /// Names the object of the steps that follow. The first step of an arena is such a one.
    Of(ObjectId),
    /// Stores a segment; its payload of `len` bytes lies at `at`.
    Store { segment: u32, at: u32, len: u16 },
    /// Keeps a parity symbol.
    Parity { block: u32, symbol: u32, at: u32, len: u16 },
    /// Rebuilds a block from its parity.
    Decode { block: u32 },
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; ARENA_LEN].into_boxed_slice(), steps: Vec::new(), of: None }
    }

    /// Makes `object` the one that the next steps are for.
    pub(crate) fn turn_to(&mut self, object: ObjectId) {
        if self.of != Some(object) {
            self.of = Some(object);
            self.steps.push(ArenaStep::Of(object));
        }
    }

    /// Removes all steps.
    pub(crate) fn clear(&mut self) {
        self.of = None;
        self.steps.clear();
    }
}

/// Free buffers. The latest one to come back is filled next, since it is still in the processor's caches.
#[derive(Clone, Default)]
struct Pool(Arc<Mutex<Vec<Arena>>>);

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Vec<Arena>> {
        // No holder of the lock leaves the list half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Order for the store thread.
enum StoreJob {
    Open { reception: u64, opening: Opening },
    Rename(Box<Offer>),
    Steps(Arena),
    Compare(ObjectId),
    Release { object: ObjectId, count: usize },
    Finish(ObjectId),
    Close(ObjectId),
    Discard(ObjectId),
    Tidy { dir: PathBuf, quota: Quota },
}

/// An object to be opened, and how to open it.
pub(crate) struct Opening {
    pub(crate) offer: Box<Offer>,
    /// Code of its parity.
    pub(crate) code: ErasureCode,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// Parity is kept on disk.
    pub(crate) keeps_parity: bool,
}

/// A file of the product that is being received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Path below the receiving directory.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Offset at which the file begins in the product, bytes.
    pub start: u64,
    /// Size of the file in the product, bytes: smaller if it is compressed.
    pub stored: u64,
}

/// Reason for which an incomplete product was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removed {
    /// The product was kept for the maximum time.
    TooOld,
    /// Its list of files never came, so nothing of the product can be used.
    Useless,
    /// Its place was needed.
    MakesRoom,
}

/// A file that was received without a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainFile {
    /// Name below the receiving directory.
    pub path: String,
    /// BLAKE3 digest of the written content. If nothing vouches for the content, the user can compare it with the
    /// sender's digest.
    pub digest: [u8; 32],
    /// The sender vouches for the content.
    pub vouched: bool,
}

/// Reply of the store thread.
pub(crate) enum Reply {
    /// The product is open.
    Opened {
        /// Segments that are held already.
        held: Bitmap,
        /// Something else with this name is there, which may be an older version.
        earlier: bool,
        /// The list of files is known from an earlier run.
        listed: bool,
    },
    /// Number of segments that the list of files takes.
    ListLength(u32),
    /// Older versions were compared with the list of files. Holds the segments that are held now.
    Compared(Bitmap),
    /// The list of files is known.
    Manifest { newly_held: Vec<Run>, files: Arc<[FileInfo]> },
    /// An object without a manifest is complete and has its final name.
    Plain(PlainFile),
    /// Parity symbols were kept by an earlier run. Holds them by block.
    Kept(Vec<(u32, Bitmap)>),
    /// Files of the list, by index, have their final names.
    FilesDone(Vec<usize>),
    /// Number of files that have all their content and wait for their names.
    Waiting(usize),
    /// Part of this file, or of the list of files, was wrong, so these segments are not held after all.
    Damaged { path: Option<String>, lost: Run },
    /// Segments are not held after all, since there was no room for them.
    Lost(Vec<Run>),
    /// The disk is full; data is dropped until there is room.
    NoRoom(NetError),
    /// There is room again.
    Room,
    /// A block was rebuilt, or could not be.
    Decoded { block: u32, rebuilt: bool },
    /// A file or directory cannot have its name here, and is not delivered.
    Withheld { path: String, why: String },
    /// The file system refuses something besides the content.
    Refused(Refusal),
    /// Another product was removed: it is too old, or its place was needed.
    Removed { partial: Box<Partial>, why: Removed },
    /// Everything is verified and has its final name.
    Finished,
    /// The product cannot be stored.
    Failed {
        error: NetError,
        /// The list of files has come, has the announced digest, and is not malformed.
        vouched: bool,
    },
}

/// The receiving thread's end of the store thread.
pub(crate) struct Store {
    /// Sender of orders; `None` once the thread is to end.
    jobs: Option<Sender<StoreJob>>,
    worker: Thread,
    replies: Receiver<(u64, Reply)>,
    /// Number of receptions so far. It tells late replies about an earlier reception from present ones.
    receptions: u64,
    free: Pool,
    spare: Option<Arena>,
    wake: Arc<OwnedFd>,
    /// A wake-up may be pending.
    signalled: bool,
    /// The receiving thread waits for a free buffer.
    wanted: Arc<AtomicBool>,
    /// Channel without messages; it is closed when the thread has ended.
    ended: Receiver<()>,
}

impl Store {
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(crate) fn start(discard: bool, wait_for_room: Span) -> Result<Self, NetError> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let wake = Arc::new(
            wake.map_err(|errno| NetError::Socket { action: "make an event", source: errno.into() })?,
        );
        let (jobs, job_queue) = unbounded();
        let (reply_queue, replies) = unbounded();
        let free = Pool::default();
        free.lock().extend(std::iter::repeat_with(Arena::new).take(ARENAS));
        let wanted = Arc::new(AtomicBool::new(false));
        let answer = AnswerChannel { replies: reply_queue, wake: Arc::clone(&wake), reception: 0 };
        let channels =
            WorkerChannels { jobs: job_queue, free: free.clone(), wanted: Arc::clone(&wanted), answer };
        let mut worker = Worker::new(channels, discard, wait_for_room);
        let (alive, ended) = bounded(0);
        let thread = std::thread::spawn(move || {
            worker.run();
            drop(alive);
        });
        let worker = thread.thread().clone();
        let jobs = Some(jobs);
        Ok(Self {
            jobs,
            worker,
            replies,
            receptions: 0,
            free,
            spare: None,
            wake,
            signalled: false,
            wanted,
            ended,
        })
    }

    /// Returns a buffer to receive into; `None` while all of them are on their way. Then the store's descriptor becomes
    /// readable when one comes back.
    pub(crate) fn arena(&mut self) -> Option<Arena> {
        let free = |store: &mut Self| store.spare.take().or_else(|| store.free.lock().pop());
        free(self).or_else(|| {
            self.wanted.store(true, Ordering::SeqCst);
            // A buffer may have come back just before the thread could see that.
            free(self)
        })
    }

    /// Hands over a buffer, or keeps it if there are no steps to take.
    pub(crate) fn submit(&mut self, arena: Arena) {
        if arena.steps.is_empty() {
            self.spare = Some(arena);
        } else {
            self.send(StoreJob::Steps(arena));
        }
    }

    fn send(&self, job: StoreJob) {
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
        self.worker.unpark();
    }

    /// Returns a number for a new reception, by which replies about it are known.
    pub(crate) fn number(&mut self) -> u64 {
        self.receptions += 1;
        self.receptions
    }

    pub(crate) fn open(&self, reception: u64, opening: Opening) {
        self.send(StoreJob::Open { reception, opening });
    }

    pub(crate) fn rename(&self, offer: Box<Offer>) {
        self.send(StoreJob::Rename(offer));
    }

    pub(crate) fn compare(&self, object: ObjectId) {
        self.send(StoreJob::Compare(object));
    }

    /// Lets the first `count` waiting files of `object` get their names.
    pub(crate) fn release(&self, object: ObjectId, count: usize) {
        self.send(StoreJob::Release { object, count });
    }

    pub(crate) fn finish(&self, object: ObjectId) {
        self.send(StoreJob::Finish(object));
    }

    pub(crate) fn close(&self, object: ObjectId) {
        self.send(StoreJob::Close(object));
    }

    pub(crate) fn discard(&self, object: ObjectId) {
        self.send(StoreJob::Discard(object));
    }

    /// Removes incomplete products of `dir` that are too old, or that nothing vouches for; now and from time to time.
    pub(crate) fn tidy(&self, dir: PathBuf, quota: Quota) {
        self.send(StoreJob::Tidy { dir, quota });
    }

    /// Returns the next reply, and the number of its reception.
    pub(crate) fn reply(&mut self) -> Option<(u64, Reply)> {
        let reply = self.replies.try_recv().ok();
        if reply.is_none() && std::mem::take(&mut self.signalled) {
            // No reply is left: clear the wake-ups, then look once more for a reply that came in between.
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.wake, &mut count);
            return self.replies.try_recv().ok();
        }
        reply
    }

    /// Lets the thread end, and waits for that as long as `patient` returns `true`. Returns `true` if it has ended. If
    /// it has not, the disk holds it up, and the end of the process ends it.
    pub(crate) fn end(&mut self, mut patient: impl FnMut() -> bool) -> bool {
        self.jobs = None;
        self.worker.unpark();
        loop {
            match self.ended.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) if patient() => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Notes that the descriptor was readable: there is a reply, or a buffer has come back.
    pub(crate) fn woken(&mut self) {
        self.signalled = true;
    }
}

impl AsFd for Store {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Makes the receiving directory if it is missing.
pub(crate) fn make_directory(path: &Path) -> Result<(), NetError> {
    std::fs::create_dir_all(path).map_err(|source| {
        match (std::fs::metadata(path), std::fs::read_link(path)) {
            (Ok(there), _) if !there.is_dir() => NetError::NotADirectory(path.into()),
            (Err(_), Ok(target)) => NetError::DanglingDirectory { path: path.into(), target },
            _ if source.kind() == std::io::ErrorKind::NotADirectory => {
                let is_there = |path: &&Path| std::fs::metadata(path).is_ok();
                NetError::NotADirectory(path.ancestors().find(is_there).unwrap_or(path).into())
            }
            _ => NetError::Directory { path: path.into(), source },
        }
    })
}
