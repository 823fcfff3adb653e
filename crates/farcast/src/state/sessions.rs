//! Which sealed sessions a receiver has heard, so that what was recorded of them is no news to it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_seal::{Fingerprint, History};

/// The time of a session that begins now, in milliseconds since 1970: later than that of every session before, though the
/// clock was set back.
pub(crate) fn session_ms() -> u64 {
    let path = super::directory().map(|directory| directory.join("sealed").join("last-session"));
    let last = path.as_ref().and_then(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    let began = last.map_or(0, |last: u64| last.saturating_add(1)).max(wall_ms());
    if let Some(path) = path {
        // Where it cannot be kept, the clock has to do.
        let _ = replace(&path, began.to_string().as_bytes());
    }
    began
}

#[expect(clippy::disallowed_methods, reason = "sessions are told apart over restarts by the time of day")]
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The memory of one key.
#[derive(Debug)]
pub(crate) struct Sessions {
    path: Option<PathBuf>,
}

impl Sessions {
    /// That of the key with this fingerprint.
    pub(crate) fn of(fingerprint: &Fingerprint) -> Self {
        Self {
            path: super::directory().map(|directory| directory.join("sealed").join(fingerprint.to_string())),
        }
    }

    /// What is remembered; nothing where that is not legible.
    pub(crate) fn load(&self) -> History {
        let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| History::from_text(&text)).unwrap_or_default()
    }

    /// Remembers `history`. Where it cannot be kept, a session that was recorded could be played back after a restart;
    /// that is no reason not to receive.
    pub(crate) fn keep(&self, history: &History) {
        let _ = self.path.as_ref().map(|path| replace(path, history.to_text().as_bytes()));
    }
}

/// Writes `bytes` to the file at `path`, which is there as a whole or as it was.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    fs::rename(&fresh, path)
}
