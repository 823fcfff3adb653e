//! Files that change while they are sent: a thread that looks for changes, and what a sender is to do then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use farcast_core::Span;
use farcast_files::Outgoing;

use crate::clock::Clock;

/// Shortest time between two looks at the files.
const LOOK_EVERY: Span = Span::from_secs(1);
/// Shortest rest after a look, as a multiple of the time that the look took: a file that was touched is read again.
const SHARE: u64 = 5;
/// Longest time that the thread sleeps before it checks whether it is to end.
const NAP: Duration = Duration::from_millis(50);

/// Choice of what becomes of a transmission when one of its files changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Changing {
    /// The transmission goes on without that file.
    #[default]
    Skip,
    /// The transmission ends, so that its owner can send the present files.
    Again,
    /// The transmission fails.
    Fail,
}

/// Looks at files while they are sent, on a thread of its own: a file that looks different has to be read.
pub(crate) struct FileWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileWatch {
    pub(crate) fn start(files: Vec<Outgoing>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("files".into()).spawn(move || watch(&files, &ends));
        Self { over, thread: thread.ok() }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // After each piece that it reads, the thread checks whether it is to end.
            let _ = thread.join();
        }
    }
}

fn watch(files: &[Outgoing], over: &AtomicBool) {
    let goes_on = || !over.load(Ordering::Relaxed);
    let clock = Clock::start();
    while goes_on() {
        let began = clock.now();
        for outgoing in files {
            outgoing.watch(&goes_on);
        }
        let over = clock.now();
        let next = over + LOOK_EVERY.max(over.since(began) * SHARE);
        while goes_on() && clock.now() < next {
            std::thread::park_timeout(NAP);
        }
    }
}
