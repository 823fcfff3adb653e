//! Niceties: properties and operations that a file system may refuse although the content of a file is present and
//! right.
//!
//! The first refusal of each kind is reported, and none is an error. `EINVAL`, `EOPNOTSUPP` and `ENOSYS` mean that the
//! file system lacks the feature; `EPERM` and `EACCES` mean that this process may not set it. Every other errno is an
//! error as elsewhere.

use core::fmt::{Display, Formatter};
use std::path::PathBuf;

use rustix::io::{Errno, Result};

/// Property or operation, beside the content, that a file system may refuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Nicety {
    /// Permission bits.
    Mode,
    /// Modification time.
    Time,
    /// Syncing of content, so that it survives a power loss.
    DurableContent,
    /// Syncing of a directory, so that its names survive a power loss.
    DurableNames,
    /// Lock of a reception, or of a file of keys, against another process; a file with the owner's process id takes its
    /// place.
    Lock,
    /// Removal of the state of a reception that is complete.
    Removal,
}

impl Nicety {
    /// Returns the identifier that programs read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Time => "time",
            Self::DurableContent => "durable_content",
            Self::DurableNames => "durable_names",
            Self::Lock => "lock",
            Self::Removal => "removal",
        }
    }

    /// Returns `true` if a refusal with `errno` is tolerated.
    fn may_be_refused(self, errno: Errno) -> bool {
        let absent = is_absent(errno);
        match self {
            Self::Mode | Self::Time | Self::DurableNames => {
                absent || matches!(errno, Errno::PERM | Errno::ACCESS)
            }
            Self::DurableContent => absent,
            Self::Lock => absent || errno == Errno::NOLCK,
            // The reception is complete, so a failed removal loses nothing.
            Self::Removal => true,
        }
    }
}

/// Returns `true` if `errno` means that the file system lacks the feature.
pub(crate) fn is_absent(errno: Errno) -> bool {
    // ENOTSUP is the same number as EOPNOTSUPP here.
    matches!(errno, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)
}

/// Refusal of a nicety.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Property or operation that was refused.
    pub nicety: Nicety,
    /// First file or directory for which it was refused.
    pub path: PathBuf,
    /// Error number of the system.
    pub errno: i32,
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        let path = self.path.display();
        let reason = std::io::Error::from_raw_os_error(self.errno);
        match self.nicety {
            Nicety::Mode => write!(f, "the mode of \"{path}\" could not be set here")?,
            Nicety::Time => write!(f, "the modification time of \"{path}\" could not be set here")?,
            Nicety::DurableContent => {
                write!(f, "\"{path}\" could not be synced here, so a power loss may damage it")?;
            }
            Nicety::DurableNames => {
                write!(f, "names in \"{path}\" could not be synced here, so a power loss may undo them")?;
            }
            Nicety::Lock => write!(
                f,
                "\"{path}\" could not be locked here, so a file with the process id keeps other processes of this host away, and nothing those of other hosts"
            )?,
            Nicety::Removal => {
                write!(
                    f,
                    "\"{path}\" could not be removed, and can be by hand: what it was for is complete"
                )?;
            }
        }
        write!(f, " ({reason}); this is said once")
    }
}

/// Refusals met so far, the first of each kind.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Refusals that were not reported yet.
    fresh: Vec<Refusal>,
    /// Kinds of refusals that were reported.
    told: Vec<Nicety>,
}

impl Refusals {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { fresh: Vec::new(), told: Vec::new() }
    }

    /// Tolerates the refusal of a nicety for `path` and keeps the first of each kind for a report.
    ///
    /// # Errors
    /// The errno of `result`, if it means more than that the nicety is not available there.
    pub fn tolerate(&mut self, nicety: Nicety, path: PathBuf, result: Result<()>) -> Result<()> {
        let Err(errno) = result else { return Ok(()) };
        if !nicety.may_be_refused(errno) {
            return Err(errno);
        }
        let met = self.told.contains(&nicety) || self.fresh.iter().any(|one| one.nicety == nicety);
        if !met {
            self.fresh.push(Refusal { nicety, path, errno: errno.raw_os_error() });
        }
        Ok(())
    }

    /// Takes the refusals that were not reported yet.
    pub fn take(&mut self) -> Vec<Refusal> {
        self.told.extend(self.fresh.iter().map(|one| one.nicety));
        core::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_not_here_is_passed_over_and_told_once() {
        let mut refusals = Refusals::default();
        let all = [Nicety::Mode, Nicety::Time, Nicety::DurableContent, Nicety::DurableNames, Nicety::Lock];
        for nicety in all {
            for errno in [Errno::IO, Errno::NOSPC, Errno::ROFS, Errno::DQUOT] {
                assert_eq!(refusals.tolerate(nicety, "f".into(), Err(errno)), Err(errno), "{nicety:?}");
            }
            assert_eq!(refusals.take(), []);
            for errno in [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::NOSYS] {
                assert_eq!(refusals.tolerate(nicety, "f".into(), Err(errno)), Ok(()), "{nicety:?}");
            }
            assert_eq!(refusals.take().len(), 1);
            assert_eq!(refusals.tolerate(nicety, "g".into(), Err(Errno::INVAL)), Ok(()));
            assert_eq!(refusals.take(), []);
        }
        assert_eq!(refusals.tolerate(Nicety::Mode, "f".into(), Err(Errno::PERM)), Ok(()));
        let denied = refusals.tolerate(Nicety::DurableContent, "f".into(), Err(Errno::PERM));
        assert_eq!(denied, Err(Errno::PERM), "the content is not a nicety");
    }
}
