//! Memory of the sealed sessions that a receiver has heard, so that it takes no recorded session for a new one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farcast_core::Span;
use farcast_net::{HistoryState, Memory};
use farcast_seal::{Fingerprint, History};

use crate::Error;
use crate::keys::Lock;
use crate::keys::file::replace;

const NOWHERE: &str = "neither HOME nor XDG_STATE_HOME says where it is remembered which sealed transfers are over: set one of them";
/// Longest time that the end of a program waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the time of a session that begins now, in milliseconds since 1970. It is later than that of every session
/// before, even if the clock was set back.
///
/// # Errors
/// The time cannot be read or written. The error has the time by the clock alone, and the reason.
pub fn session_ms() -> Result<u64, (u64, String)> {
    let Some(path) = directory().map(|directory| directory.join("last-session")) else {
        return Err((wall_ms(), NOWHERE.into()));
    };
    // Transfers that begin at once get a time each.
    let lock = make_room(&path).and_then(|()| Lock::wait(&path));
    let _lock = lock.map_err(|failure| (wall_ms(), failure.sentence))?;
    let began = last_session(&path)?.map_or(0, |last| last.saturating_add(1)).max(wall_ms());
    let written = replace(&path, began.to_string().as_bytes(), None);
    written.map(|()| began).map_err(|failure| (began, failure.sentence))
}

/// Time at which the last session of this host began.
fn last_session(path: &Path) -> Result<Option<u64>, (u64, String)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err((wall_ms(), format!("cannot read {}: {error}", path.display()))),
    };
    let last = text.trim().parse();
    last.map(Some).map_err(|_| (wall_ms(), format!("{} holds no time: remove it", path.display())))
}

#[expect(clippy::disallowed_methods, reason = "sessions are told apart over restarts by the time of day")]
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn directory() -> Option<PathBuf> {
    super::directory().map(|directory| directory.join("sealed"))
}

fn make_room(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent() else { return Ok(()) };
    fs::create_dir_all(directory)
        .map_err(|error| Error::failed(format!("cannot make {}: {error}", directory.display())))
}

/// Memory of one key. A thread of its own writes it: a disk may be slow, and received data does not wait for it.
#[derive(Debug)]
pub struct Sessions {
    histories: Option<Sender<(u64, History)>>,
    written: Arc<Written>,
    /// Path of the file.
    path: PathBuf,
    /// History that was handed over last, and its number.
    last: History,
    number: u64,
}

/// State of the histories that were handed over.
#[derive(Debug, Default)]
struct Written {
    state: Mutex<State>,
    changed: Condvar,
}

/// Numbers of the last history that was tried, and of the last that is safe.
#[derive(Debug, Default)]
struct State {
    tried: u64,
    safe: u64,
    /// Reason that the last one could not be written.
    why: Option<String>,
}

impl Written {
    fn note(&self, number: u64, result: Result<(), Error>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tried = number;
        match result {
            Ok(()) => (state.safe, state.why) = (number, None),
            Err(failure) => state.why = Some(failure.sentence),
        }
        self.changed.notify_all();
    }

    fn of(&self, number: u64, patience: Duration) -> HistoryState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, patience, |state| state.tried < number);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.why {
            _ if state.safe >= number => HistoryState::Safe,
            Some(why) if state.tried >= number => HistoryState::Lost(why.clone()),
            _ => HistoryState::Pending,
        }
    }
}

impl Sessions {
    /// Returns the memory of the key with this fingerprint, and the history in it.
    ///
    /// # Errors
    /// There is no place for the file, or it is illegible: without it, a recorded session could be replayed.
    pub fn of(fingerprint: &Fingerprint) -> Result<(Self, History), Error> {
        let directory = directory().ok_or_else(|| Error::usage(NOWHERE))?;
        let path = directory.join(fingerprint.to_string());
        let history = read(&path)?;
        let (histories, fresh) = channel::<(u64, History)>();
        let written = Arc::new(Written::default());
        let (result, kept_at) = (Arc::clone(&written), path.clone());
        #[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
        thread::spawn(move || {
            while let Ok((mut number, mut history)) = fresh.recv() {
                // Only the latest history counts.
                while let Ok(later) = fresh.try_recv() {
                    (number, history) = later;
                }
                result.note(number, write(&kept_at, &history));
            }
        });
        let last = history.clone();
        Ok((Self { histories: Some(histories), written, path, last, number: 0 }, history))
    }
}

impl Memory for Sessions {
    fn keep(&mut self, history: &History) -> u64 {
        let is_safe = self.written.of(self.number, Duration::ZERO) == HistoryState::Safe;
        if (*history != self.last || !is_safe)
            && let Some(histories) = &self.histories
        {
            self.last.clone_from(history);
            self.number += 1;
            // The thread listens as long as this sender exists.
            let _ = histories.send((self.number, history.clone()));
        }
        self.number
    }

    fn kept(&mut self, number: u64, patience: Span) -> HistoryState {
        self.written.of(number, Duration::from_nanos(patience.as_nanos()))
    }

    fn recall(&mut self) -> Result<History, String> {
        read(&self.path).map_err(|failure| failure.sentence)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.histories = None;
        self.written.of(self.number, PATIENCE);
    }
}

fn read(path: &Path) -> Result<History, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(History::default()),
        Err(error) => return Err(Error::usage(format!("cannot read {}: {error}", path.display()))),
    };
    History::from_text(&text).ok_or_else(|| {
        Error::usage(format!(
            "{} is damaged, and says which recorded transfers must not be received again: remove it if none can come back",
            path.display()
        ))
    })
}

/// Adds `history` to the file. Other processes may use the same key, so their history there is kept.
fn write(path: &Path, history: &History) -> Result<(), Error> {
    make_room(path)?;
    let _lock = Lock::wait(path)?;
    let mut all = read(path)?;
    all.merge(history);
    replace(path, all.to_text().as_bytes(), None)
}
