//! The book as HTML, built by mdBook.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mdbook_driver::MDBook;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Builds the book of the repository at `root` into the folder `into`. Returns the warnings of mdBook.
///
/// # Errors
/// The error at which mdBook stops.
pub fn build(root: &Path, into: &Path) -> Result<Vec<String>, String> {
    let warnings = Warnings::default();
    let said = Arc::clone(&warnings.0);
    let built = tracing::subscriber::with_default(warnings, || {
        let mut book = MDBook::load(root.join("docs"))?;
        into.clone_into(&mut book.config.build.build_dir);
        book.build()
    });
    built.map_err(|error| format!("{error:#}"))?;
    Ok(said.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Subscriber that collects mdBook's warnings and errors.
#[derive(Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Text of all fields of an event, one behind the other.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        // A write to a String cannot fail.
        let _ = write!(self.0, "{value:?} ");
    }
}
