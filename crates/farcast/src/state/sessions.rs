//! Which sealed sessions a receiver has heard, so that what was recorded of them is no news to it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farcast_net::Memory;
use farcast_seal::{Fingerprint, History};

use crate::keys::{Lock, replace};
use crate::{Failure, stdio};

/// How long the end of a program waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time of a session that begins now, in milliseconds since 1970: later than that of every session before, though the
/// clock was set back.
pub(crate) fn session_ms() -> u64 {
    let path = directory().map(|directory| directory.join("last-session"));
    let last = path.as_ref().and_then(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    let began = last.map_or(0, |last: u64| last.saturating_add(1)).max(wall_ms());
    if let Some(path) = path {
        // Where it cannot be kept, the clock has to do.
        let _ = make_room(&path).map(|()| replace(&path, began.to_string().as_bytes(), 0o600));
    }
    began
}

#[expect(clippy::disallowed_methods, reason = "sessions are told apart over restarts by the time of day")]
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn directory() -> Option<PathBuf> {
    super::directory().map(|directory| directory.join("sealed"))
}

fn make_room(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// The memory of one key. It is written by a thread of its own: a disk may take its time, and what comes does not wait.
#[derive(Debug)]
pub(crate) struct Sessions {
    histories: Option<Sender<History>>,
    over: Receiver<()>,
    /// Where it is kept.
    path: Option<PathBuf>,
    /// What was handed over last.
    last: History,
}

impl Sessions {
    /// That of the key with this fingerprint, and what it remembers.
    ///
    /// # Errors
    /// What is there is illegible: without it, what was recorded could be played back.
    pub(crate) fn of(fingerprint: &Fingerprint) -> Result<(Self, History), Failure> {
        let path = directory().map(|directory| directory.join(fingerprint.to_string()));
        let history = path.as_deref().map_or(Ok(History::default()), read)?;
        let (histories, fresh) = channel::<History>();
        let (end, over) = channel();
        let kept_at = path.clone();
        #[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
        thread::spawn(move || {
            let mut told = false;
            while let Ok(mut history) = fresh.recv() {
                // Only the latest counts.
                while let Ok(later) = fresh.try_recv() {
                    history = later;
                }
                let kept = kept_at.as_deref().map(|path| write(path, &history));
                if let Some(Err(failure)) = kept
                    && !std::mem::replace(&mut told, true)
                {
                    stdio::lose(&format!("what was recorded could be played back: {}", failure.sentence));
                }
            }
            let _ = end.send(());
        });
        let sessions = Self { histories: Some(histories), over, path, last: history.clone() };
        Ok((sessions, history))
    }
}

impl Memory for Sessions {
    fn keep(&mut self, history: &History) {
        if *history != self.last
            && let Some(histories) = &self.histories
        {
            self.last.clone_from(history);
            // It listens as long as this is here.
            let _ = histories.send(history.clone());
        }
    }

    fn recall(&mut self) -> Option<History> {
        self.path.as_deref().map_or(Some(History::default()), |path| read(path).ok())
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.histories = None;
        let _ = self.over.recv_timeout(PATIENCE);
    }
}

fn read(path: &Path) -> Result<History, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(History::default()),
        Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
    };
    History::from_text(&text).ok_or_else(|| {
        Failure::usage(format!(
            "{} is damaged, and says which recorded transfers must not be received again: remove it if none can come back",
            path.display()
        ))
    })
}

/// Adds `history` to what is remembered: others may have the same key.
fn write(path: &Path, history: &History) -> Result<(), Failure> {
    make_room(path)?;
    let _lock = Lock::wait(path)?;
    let mut all = read(path)?;
    all.merge(history);
    replace(path, all.to_text().as_bytes(), 0o600)
}
