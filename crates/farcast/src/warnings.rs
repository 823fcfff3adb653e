//! Warnings of the libraries, on standard error.

use log::{LevelFilter, Log, Metadata, Record};

use crate::stdio;

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("farcast")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            stdio::say(&format!("farcast: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

/// Has warnings printed from now on.
pub(crate) fn print() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
