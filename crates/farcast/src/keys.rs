//! `farcast key`: this host's key and the keys that it trusts.

#[expect(clippy::doc_markdown, reason = "doc comments are what --help prints")]
mod args;
mod command;
mod list;

pub(crate) use args::KeyArgs;
pub(crate) use command::run;
