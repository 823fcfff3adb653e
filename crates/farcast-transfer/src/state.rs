//! State that is kept between runs: for a sender, the receivers of a transfer that had everything; for a receiver, the
//! secret that identifies it.
//!
//! A sender that was killed and is started again with the same command does not wait for receivers that were done and
//! have gone. Only those receivers themselves can confirm that they still have the product. The file is removed when
//! everyone has everything.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use farcast_files::ProductId;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

mod known;
mod sessions;

pub use known::Known;
pub use sessions::{Sessions, session_ms};

/// Draws a secret of 256 bits that nobody can guess.
pub fn random_secret() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    draw(&mut bytes)?;
    Ok(bytes)
}

/// Fills `bytes` with random octets that nobody can guess.
pub fn draw(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(())
}

/// Returns the secret that identifies the receiver `name` into the directory `into`. It is made at the first start and
/// kept for later ones. If it cannot be kept, each start makes another one, which a sender finds out about by asking.
pub fn identity(into: &Path, name: Option<&str>) -> io::Result<[u8; 32]> {
    match directory() {
        Some(directory) => kept_identity(&directory.join("receivers"), into, name),
        None => random_secret(),
    }
}

/// Returns the secret that is kept in `directory` for the receiver `name` into the directory `into`.
fn kept_identity(directory: &Path, into: &Path, name: Option<&str>) -> io::Result<[u8; 32]> {
    let fresh = random_secret()?;
    let whole = fs::canonicalize(into).or_else(|_| std::path::absolute(into))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(whole.as_os_str().as_bytes()).update(&[0]).update(name.unwrap_or("").as_bytes());
    let path = directory.join(&hasher.finalize().to_hex()[..32]);
    let make = || -> io::Result<[u8; 32]> {
        fs::create_dir_all(directory)?;
        // The file gets its name with its content in it. Of two receivers that start at once, one makes the file and
        // both read it whole.
        let mut staged = NamedTempFile::new_in(directory)?;
        staged.write_all(&fresh)?;
        match staged.persist_noclobber(&path) {
            Err(failure) if failure.error.kind() != io::ErrorKind::AlreadyExists => Err(failure.error),
            _ => read_identity(&path),
        }
    };
    Ok(read_identity(&path).or_else(|_| make()).unwrap_or(fresh))
}

fn read_identity(path: &Path) -> io::Result<[u8; 32]> {
    let bytes = fs::read(path)?;
    bytes.try_into().map_err(|_| io::Error::other("it is not 32 bytes long"))
}

/// Memory of one transfer: a product sent to a group.
#[derive(Debug)]
pub struct State {
    path: Option<PathBuf>,
    /// Identifiers of the receivers that have everything.
    done: Vec<u32>,
}

impl State {
    /// Loads the memory of sending `product` to `group`.
    pub fn load(product: ProductId, group: SocketAddr) -> Self {
        let name = format!(
            "{}-{}.json",
            &product.to_string()[..16],
            group.to_string().replace([':', '[', ']'], "_")
        );
        let path = directory().map(|directory| directory.join(name));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let done =
            text.and_then(|text| serde_json::from_str::<Value>(&text).ok()).map_or_else(Vec::new, |value| {
                let ids = value["done"].as_array().cloned().unwrap_or_default();
                ids.iter().filter_map(Value::as_u64).filter_map(|id| u32::try_from(id).ok()).collect()
            });
        Self { path, done }
    }

    /// Returns the identifiers of the receivers that have everything.
    pub fn done(&self) -> &[u32] {
        &self.done
    }

    /// Remembers that the receiver with this identifier has everything.
    pub fn add(&mut self, receiver: u32) {
        self.done.push(receiver);
        let Some(path) = &self.path else { return };
        // Without this memory a restarted sender still works, but it waits for receivers that have gone.
        if let Some(directory) = path.parent()
            && fs::create_dir_all(directory).is_ok()
        {
            let fresh = path.with_extension("new");
            let _ = fs::write(&fresh, json!({ "done": self.done }).to_string())
                .and_then(|()| fs::rename(&fresh, path));
        }
    }

    /// Removes the memory after the end of the transfer.
    pub fn forget(&self) {
        if let Some(path) = &self.path {
            // The file may never have been written.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the directory of the state: `$XDG_STATE_HOME/farcast`, or `~/.local/state/farcast`.
pub fn directory() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state")
}

/// Returns farcast's directory in the one that `variable` names, or else in `below` under the user's home.
pub fn base(variable: &str, below: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    // Services are started without HOME. The list of users gives their home then.
    let home = || std::env::home_dir().filter(|path| path.is_absolute());
    let base = named.or_else(|| home().map(|home| home.join(below)))?;
    Some(base.join("farcast"))
}

/// Returns a number of a transmission that no earlier one is likely to have had.
#[expect(
    clippy::disallowed_methods,
    reason = "transmissions are told apart by when they are, and a face is no engine"
)]
pub(crate) fn transmission() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mixed =
        (since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn receivers_that_start_at_once_have_a_secret_each_and_keep_it() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("receivers");
        let inboxes: Vec<PathBuf> = (0..16).map(|n| place.path().join(n.to_string())).collect();
        let secrets = || -> Vec<[u8; 32]> {
            thread::scope(|scope| {
                let kept = &kept;
                let start = |into: &PathBuf| kept_identity(kept, into, None).unwrap();
                let started: Vec<_> = inboxes.iter().map(|into| scope.spawn(move || start(into))).collect();
                started.into_iter().map(|one| one.join().unwrap()).collect()
            })
        };
        let first = secrets();
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), inboxes.len());
        assert_eq!(secrets(), first);
        assert_eq!(fs::read_dir(&kept).unwrap().count(), inboxes.len());
    }
}
