//! Owner files: they hold the id of the owning process where the file system has no locks.

use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result as SystemResult};

use crate::beneath::Root;
use crate::process::{is_running, this_process};
use crate::transfer::{read_at, write_at};

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
/// The length of the longest owner file, in bytes.
const MOST: usize = 128;
/// Number of attempts, each of which another process may disturb.
const TRIES: usize = 8;

/// Owner file of this process; dropping it removes the file.
#[derive(Debug)]
pub(super) struct OwnerFile {
    root: Arc<Root>,
    path: Vec<u8>,
}

impl OwnerFile {
    /// Makes the file in the state directory `state`; `None` if another running process of this host has one there.
    pub(super) fn take(root: &Arc<Root>, state: &[u8]) -> SystemResult<Option<Self>> {
        let path = path_in(state);
        let own = this_process();
        let fresh = [&path, format!(".{}", std::process::id()).as_bytes()].concat();
        for _ in 0..TRIES {
            root.remove_file(&fresh)?;
            let fd = root.open_at(&fresh, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, OWNER_ONLY)?;
            write_at(&fd, own.as_bytes(), 0)?;
            drop(fd);
            // The file gets its name with its content in it, so that nobody reads half of it.
            match root.rename_beside(&fresh, &path, false) {
                Ok(()) => return Ok(Some(Self { root: Arc::clone(root), path })),
                Err(Errno::EXIST) => root.remove_file(&fresh)?,
                Err(errno) => return Err(errno),
            }
            if is_owned(root, state)? {
                return Ok(None);
            }
            root.remove_file(&path)?;
        }
        Ok(None)
    }
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        // If the file stays, its process is found not to run any more.
        let _ = self.root.remove_file(&self.path);
    }
}

/// Returns `true` if a running process of this host has its owner file in the state directory `state`.
pub(crate) fn is_owned(root: &Root, state: &[u8]) -> SystemResult<bool> {
    let path = path_in(state);
    let fd = match root.open_at(&path, OFlags::RDONLY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(false),
        fd => fd?,
    };
    let mut bytes = [0; MOST];
    let read = read_at(&fd, &mut bytes, 0)?;
    Ok(str::from_utf8(&bytes[..read]).is_ok_and(is_running))
}

fn path_in(state: &[u8]) -> Vec<u8> {
    [state, b"/owner"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::boot;

    #[test]
    fn only_a_process_that_runs_owns_what_its_file_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(dir.path()).unwrap());
        root.make_directory(b"state", Mode::RWXU).unwrap();
        let owner = OwnerFile::take(&root, b"state").unwrap().unwrap();
        assert!(is_owned(&root, b"state").unwrap());
        assert!(OwnerFile::take(&root, b"state").unwrap().is_none());
        drop(owner);
        assert!(!is_owned(&root, b"state").unwrap());
        assert_eq!(std::fs::read_dir(dir.path().join("state")).unwrap().count(), 0);
        for left in ["", "x", &format!("{} 4194305 1", boot()), &format!("{} 1 0", boot()), "other 1 1"] {
            std::fs::write(dir.path().join("state/owner"), left).unwrap();
            assert!(!is_owned(&root, b"state").unwrap(), "{left}");
            assert!(OwnerFile::take(&root, b"state").unwrap().is_some(), "{left}");
        }
    }
}
