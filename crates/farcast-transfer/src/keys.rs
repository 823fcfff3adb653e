//! This host's key and the keys that it trusts, in files of the user's configuration.
//!
//! | file | contents |
//! |---|---|
//! | `keys/own.rs` | our own key, from a file or the environment |
//! | `keys/trust.rs` | the list of trusted keys; `read` and `change` |
//! | `keys/file.rs` | places of the files, rights of other users, replacement of files |
//! | `keys/lock.rs` | lock by which one process at a time changes them |
//! | `keys/lines.rs`, `keys/name.rs` | lines of words, and names |

pub mod file;
pub mod lines;
mod lock;
pub mod name;
mod own;
mod trust;

pub use lock::Lock;
pub use own::{KEY, Own, Place, agreement, own, renewed};
pub use trust::{Added, Revoked, Role, Stamp, Trust, Trusted, listed};

use crate::Error;

/// Returns the error for a user without a place for configuration files.
pub fn nowhere() -> Error {
    Error::usage("neither HOME nor XDG_CONFIG_HOME says where keys are: set one, or name a file")
}
