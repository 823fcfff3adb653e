//! `farcast key`: this host's key and the keys that it trusts, in files of the user's configuration.
//!
//! | file | what |
//! |---|---|
//! | `keys/own.rs` | our own key, from a file or the environment |
//! | `keys/trust.rs` | the list of trusted keys; `read` and `change` |
//! | `keys/file.rs` | places of the files, rights of other users, replacement of files |
//! | `keys/lock.rs` | lock by which one process at a time changes them |
//! | `keys/lines.rs`, `keys/name.rs` | lines of words, and names |
//! | `keys/args.rs`, `keys/command.rs`, `keys/list.rs` | the command |

#[expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]
mod args;
mod command;
mod file;
mod lines;
mod list;
mod lock;
mod name;
mod own;
mod trust;

pub(crate) use args::KeyArgs;
pub(crate) use command::run;
pub(crate) use file::replace;
pub(crate) use lock::Lock;
pub(crate) use own::{Own, own};
pub(crate) use trust::{Stamp, Trust};

use crate::Failure;

/// Returns the failure for a user without a place for configuration files.
fn nowhere() -> Failure {
    Failure::usage("neither HOME nor XDG_CONFIG_HOME says where keys are: set one, or name a file")
}
