//! The store thread: writes what was received, away from the thread that hears the network.
//!
//! Buffers travel to it and back by ownership, so payload is copied once, from the kernel's buffer into ours.
//! While all buffers are on their way, the receiving thread waits: the kernel's buffer fills, and a sender that
//! listens for acknowledgements slows down.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, unbounded};
use farcast_core::{Bitmap, Run};
use farcast_files::{Checkpoint, EntryKind, Happening, Incoming, Options, ProductId};
use farcast_mftp::Offer;
use rustix::event::{EventfdFlags, eventfd};

use crate::error::NetError;
use crate::parity::ParityDecoder;

/// Datagram slots in an arena: the most that one system call fills.
pub(crate) const SLOTS: usize = 16;
/// Bytes of a slot: the most that one coalesced receive brings.
pub(crate) const SLOT_LEN: usize = 1 << 16;
/// Arenas; with all of them full, 16 MiB wait to be written.
const ARENAS: usize = 16;
/// Between checkpoints of what is safely on disk.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// A receive buffer and what is to be done with its content, in order.
pub(crate) struct Arena {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) steps: Vec<Step>,
}

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Store a segment, whose payload lies at `at`.
    Store { segment: u32, at: u32, len: u16 },
    /// Keep a parity symbol.
    Parity { block: u32, symbol: u32, at: u32, len: u16 },
    /// Rebuild a block from its parity.
    Decode { block: u32 },
}

enum Job {
    Open { session: u64, offer: Box<Offer>, dir: PathBuf, options: Options },
    Steps(Arena),
    Finish,
    Close,
    Discard,
}

/// A file of the product that is being received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Its path below the receiving directory.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Where it begins in the product, bytes.
    pub start: u64,
}

/// What the store answers.
pub(crate) enum Reply {
    /// The product is open; these segments are there already.
    Opened(Bitmap),
    /// The list of files is known.
    Manifest { newly_held: Vec<Run>, files: Vec<FileInfo> },
    /// This file has its final name.
    FileDone { path: String },
    /// A block was rebuilt, or could not be.
    Decoded { block: u32, rebuilt: bool },
    /// Everything is verified and has its final name.
    Finished,
    /// The product cannot be stored.
    Failed(NetError),
}

/// The receiving thread's end of the store thread.
pub(crate) struct Store {
    jobs: Sender<Job>,
    replies: Receiver<(u64, Reply)>,
    /// Counts products; what the thread still says of an earlier one is passed over.
    session: u64,
    free: Receiver<Arena>,
    spare: Option<Arena>,
    wake: Arc<OwnedFd>,
    /// Whether a wake-up may be pending.
    signalled: bool,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    pub(crate) fn start(discard: bool) -> Result<Self, NetError> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let wake = Arc::new(
            wake.map_err(|errno| NetError::Socket { action: "make an event", source: errno.into() })?,
        );
        let (jobs, job_queue) = unbounded();
        let (reply_queue, replies) = unbounded();
        let (give_back, free) = bounded(ARENAS);
        for _ in 0..ARENAS {
            let arena = Arena { buffer: vec![0; SLOTS * SLOT_LEN].into_boxed_slice(), steps: Vec::new() };
            // The channel has room for all of them.
            let _ = give_back.send(arena);
        }
        let answer = Answer { replies: reply_queue, wake: Arc::clone(&wake), session: 0 };
        let mut worker = Worker {
            jobs: job_queue,
            free: give_back,
            answer,
            product: None,
            checkpoint: None,
            failed: false,
            discard,
        };
        let thread = std::thread::spawn(move || worker.run());
        Ok(Self {
            jobs,
            replies,
            session: 0,
            free,
            spare: None,
            wake,
            signalled: false,
            thread: Some(thread),
        })
    }

    /// A buffer to receive into; waits while all of them are on their way.
    pub(crate) fn arena(&mut self) -> Option<Arena> {
        self.spare.take().or_else(|| self.free.recv().ok())
    }

    /// Hands over what was received, or keeps the buffer if nothing in it is to be done.
    pub(crate) fn submit(&mut self, arena: Arena) {
        if arena.steps.is_empty() {
            self.spare = Some(arena);
        } else {
            let _ = self.jobs.send(Job::Steps(arena));
        }
    }

    pub(crate) fn open(&mut self, offer: Offer, dir: PathBuf, options: Options) {
        self.session += 1;
        let _ = self.jobs.send(Job::Open { session: self.session, offer: Box::new(offer), dir, options });
    }

    pub(crate) fn finish(&self) {
        let _ = self.jobs.send(Job::Finish);
    }

    pub(crate) fn close(&self) {
        let _ = self.jobs.send(Job::Close);
    }

    pub(crate) fn discard(&self) {
        let _ = self.jobs.send(Job::Discard);
    }

    pub(crate) fn reply(&mut self) -> Option<Reply> {
        let reply = self.current_reply();
        if reply.is_none() && std::mem::take(&mut self.signalled) {
            // Nothing left: forget the wake-ups, then look once more for what came in between.
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.wake, &mut count);
            return self.current_reply();
        }
        reply
    }

    fn current_reply(&self) -> Option<Reply> {
        let current = |(session, reply): (u64, Reply)| (session == self.session).then_some(reply);
        self.replies.try_iter().find_map(current)
    }

    /// Notes that waiting is over, perhaps because of a reply.
    pub(crate) fn woken(&mut self) {
        self.signalled = true;
    }
}

impl AsFd for Store {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let (closed, _) = bounded(0);
        self.jobs = closed;
        if let Some(thread) = self.thread.take() {
            // What the thread had to say about its end it has said in replies.
            let _ = thread.join();
        }
    }
}

struct Answer {
    replies: Sender<(u64, Reply)>,
    session: u64,
    wake: Arc<OwnedFd>,
}

impl Answer {
    fn send(&self, reply: Reply) {
        let _ = self.replies.send((self.session, reply));
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

struct Product {
    incoming: Incoming,
    parity: Option<ParityDecoder>,
}

struct Worker {
    jobs: Receiver<Job>,
    free: Sender<Arena>,
    answer: Answer,
    product: Option<Product>,
    /// The checkpoint that is being written.
    checkpoint: Option<JoinHandle<()>>,
    failed: bool,
    /// Store nothing: to measure what the network alone can do.
    discard: bool,
}

impl Worker {
    fn run(&mut self) {
        let mut due = crossbeam_channel::tick(CHECKPOINT_EVERY);
        loop {
            match self.jobs.recv_timeout(CHECKPOINT_EVERY) {
                Ok(job) => self.job(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            match due.try_recv() {
                Ok(_) => self.write_checkpoint(),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => due = crossbeam_channel::tick(CHECKPOINT_EVERY),
            }
        }
        self.close();
    }

    fn job(&mut self, job: Job) {
        match job {
            Job::Open { session, offer, dir, options } => {
                self.answer.session = session;
                self.close();
                self.failed = false;
                if self.discard {
                    return self.answer.send(Reply::Opened(Bitmap::new(0)));
                }
                match open(&offer, &dir, options) {
                    Ok(mut product) => {
                        let early = product.incoming.take_happenings();
                        let held = product.incoming.held().clone();
                        self.product = Some(product);
                        self.answer.send(Reply::Opened(held));
                        self.tell(early);
                    }
                    Err(error) => self.fail(error),
                }
            }
            Job::Steps(mut arena) => {
                if !self.failed {
                    self.steps(&arena);
                }
                arena.steps.clear();
                // There is room: the channel holds all arenas.
                let _ = self.free.send(arena);
            }
            Job::Finish => self.finish(),
            Job::Close => self.close(),
            Job::Discard => self.discard(),
        }
    }

    fn steps(&mut self, arena: &Arena) {
        let mut payloads: Vec<&[u8]> = Vec::with_capacity(arena.steps.len());
        let mut steps: VecDeque<Step> = arena.steps.iter().copied().collect();
        while let Some(step) = steps.pop_front() {
            let Some(product) = &mut self.product else { return };
            let result = match step {
                Step::Store { segment, at, len } => {
                    payloads.clear();
                    payloads.push(slice(&arena.buffer, at, len));
                    // Consecutive segments are written by one call.
                    while let Some(&Step::Store { segment: next, at, len }) = steps.front()
                        && next as usize == segment as usize + payloads.len()
                    {
                        payloads.push(slice(&arena.buffer, at, len));
                        steps.pop_front();
                    }
                    let stored = product.incoming.store(segment, &payloads);
                    stored.map_err(NetError::from).map(|happenings| self.tell(happenings))
                }
                Step::Parity { block, symbol, at, len } => {
                    if let Some(parity) = &mut product.parity {
                        parity.keep(&product.incoming, block, symbol, slice(&arena.buffer, at, len));
                    }
                    Ok(())
                }
                Step::Decode { block } => self.decode(block),
            };
            if let Err(error) = result {
                return self.fail(error);
            }
        }
    }

    fn decode(&mut self, block: u32) -> Result<(), NetError> {
        let Some(Product { incoming, parity: Some(parity) }) = &mut self.product else { return Ok(()) };
        let mut happenings = Vec::new();
        let rebuilt = parity.rebuild(incoming, block, &mut happenings)?;
        self.tell(happenings);
        self.answer.send(Reply::Decoded { block, rebuilt });
        Ok(())
    }

    fn tell(&mut self, happenings: Vec<Happening>) {
        let Some(manifest) = self.product.as_ref().and_then(|product| product.incoming.manifest()) else {
            return;
        };
        for happening in happenings {
            match happening {
                Happening::ManifestKnown { newly_held } => {
                    let mut start = manifest.head_len();
                    let mut files = Vec::new();
                    for entry in manifest.entries() {
                        if let EntryKind::File { size, .. } = entry.kind {
                            files.push(FileInfo { path: text(&entry.path), size, start });
                            start += size;
                        }
                    }
                    self.answer.send(Reply::Manifest { newly_held, files });
                }
                Happening::FileDone { index } => {
                    let path = manifest.entries().get(index).map_or(String::new(), |entry| text(&entry.path));
                    self.answer.send(Reply::FileDone { path });
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self) {
        self.join_checkpoint();
        if self.discard {
            return self.fail(NetError::Discarded);
        }
        let Some(product) = self.product.take() else { return };
        match product.incoming.finish() {
            Ok(()) => self.answer.send(Reply::Finished),
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&mut self, error: NetError) {
        self.failed = true;
        self.close();
        self.answer.send(Reply::Failed(error));
    }

    /// Keeps what is there for a later run.
    fn close(&mut self) {
        self.join_checkpoint();
        if let Some(product) = self.product.take() {
            // The journal of the last checkpoint stays valid if this one cannot be written.
            let _ = product.incoming.abandon();
        }
    }

    /// Removes what is there: it can never be completed.
    fn discard(&mut self) {
        self.join_checkpoint();
        if let Some(product) = self.product.take() {
            // What cannot be removed is only litter.
            let _ = product.incoming.discard();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the driver owns its threads")]
    fn write_checkpoint(&mut self) {
        if self.checkpoint.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let checkpoint = self.product.as_mut().and_then(|product| product.incoming.checkpoint());
        // A journal that could not be written leaves the last one in force.
        self.checkpoint =
            checkpoint.map(|checkpoint: Checkpoint| std::thread::spawn(|| drop(checkpoint.run())));
    }

    fn join_checkpoint(&mut self) {
        if let Some(thread) = self.checkpoint.take() {
            let _ = thread.join();
        }
    }
}

fn open(offer: &Offer, dir: &Path, options: Options) -> Result<Product, NetError> {
    std::fs::create_dir_all(dir).map_err(|source| NetError::Directory { path: dir.into(), source })?;
    let id = ProductId::from_bytes(offer.id.unwrap_or_default());
    let geometry = offer.geometry;
    let incoming = Incoming::open(dir, id, geometry.size(), u32::from(geometry.dtu_size()), options)?;
    // Where the announced numbers are beyond our code, it is better to say so than to lose the repairs.
    let parity =
        (offer.parity_symbols > 0).then(|| ParityDecoder::new(geometry, offer.parity_symbols)).transpose()?;
    Ok(Product { incoming, parity })
}

fn slice(buffer: &[u8], at: u32, len: u16) -> &[u8] {
    &buffer[at as usize..at as usize + usize::from(len)]
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
