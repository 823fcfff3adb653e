//! Files that change while they are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use farcast_core::Span;
use farcast_files::Outgoing;

use crate::clock::Clock;

/// How often files are looked at, at most.
const LOOK_EVERY: Span = Span::from_secs(1);
/// To read those that were touched takes one part of so many of the time.
const SHARE: u64 = 5;
/// How long it takes to end, at most.
const NAP: Duration = Duration::from_millis(50);

/// What becomes of a transmission of which a file changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Changing {
    /// It goes on without that file.
    #[default]
    Skip,
    /// It is ended, for its owner to send what there is now.
    Again,
    /// It fails.
    Fail,
}

/// Looks at files while they are sent, on a thread of its own: what looks otherwise has to be read.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn start(files: Vec<Outgoing>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("files".into()).spawn(move || watch(&files, &ends));
        Self { over, thread: thread.ok() }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It looks whether it is over after each piece that it reads.
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
