//! Sessions that are drawn from seeds: draws by distribution, all cores, panics, and questions from outside.

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering};

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

/// Random draws by distribution.
#[derive(Clone, Debug)]
pub struct Draw(pub RandomStream);

impl Draw {
    /// Creates the draws of `seed` for the purpose `path`.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        Self(RandomStream::derive(seed, path))
    }

    /// Returns `true` with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    /// Draws a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// Draws one of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }

    /// Draws a number between two positive ones, uniformly in logarithm.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.0.unit())
    }

    /// Draws a span between two numbers of seconds.
    pub fn span(&mut self, from: f64, to: f64) -> Span {
        Span::from_secs_f64(self.log(from, to))
    }

    /// Draws a time before `end`.
    pub fn time(&mut self, end: Span) -> Time {
        Time::ZERO + Span::from_secs_f64(self.0.unit() * end.as_secs_f64())
    }
}

/// Runs `job` for every number below `count`, on all cores.
pub fn on_all_cores(count: u64, job: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            job(n);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

thread_local! {
    /// Message and place of the last panic in this thread's session.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panic hook of sessions: panics go into their report.
pub fn note_panic(info: &PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or("no words");
    let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
    PANIC.set(format!("{text} at {place}"));
}

/// Returns the message and the place of the last panic that [`note_panic`] noted in this thread.
pub fn last_panic() -> String {
    PANIC.take()
}

/// Returns a number that a script passes in an environment variable.
#[expect(clippy::disallowed_methods, reason = "a test is asked for one seed, or for many, from outside")]
pub fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Prints `text`. A closed output is ignored.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
