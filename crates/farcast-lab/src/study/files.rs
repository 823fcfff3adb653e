//! Files of results.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Results, Row, tables};

/// Names of the files in a directory of results: all numbers as CSV (RFC 4180) and as JSON, and the tables as
/// Markdown.
pub const NAMES: [&str; 3] = ["reproduce.csv", "reproduce.json", "reproduce.md"];

/// Error of writing a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl WriteError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { path: path.into(), source }
    }
}

/// Creates the directory, so that a user learns before the run whether results can be written.
///
/// # Errors
/// The system refused it.
pub fn make(dir: &Path) -> Result<(), WriteError> {
    std::fs::create_dir_all(dir).map_err(WriteError::of(dir))
}

/// Writes [`NAMES`] into a directory, and the plots of studies that have some. Each file gets its name only when
/// complete.
///
/// # Errors
/// The system refused it.
pub fn write(dir: &Path, results: &[Results]) -> Result<(), WriteError> {
    let rows: Vec<&Row> = results.iter().flat_map(|results| &results.rows).collect();
    let text = [csv(&rows), json(&rows), Ok(tables::markdown(results))];
    for (name, text) in NAMES.into_iter().zip(text) {
        let path = dir.join(name);
        text.and_then(|text| put(&path, &text)).map_err(WriteError::of(&path))?;
    }
    for plot in results.iter().flat_map(|results| &results.plots) {
        let path = dir.join(&plot.name);
        put(&path, &plot.svg).map_err(WriteError::of(&path))?;
    }
    Ok(())
}

/// Writes a file of text, which gets its name only when complete.
///
/// # Errors
/// The system refused it.
pub fn write_text(path: &Path, text: &str) -> Result<(), WriteError> {
    put(path, text).map_err(WriteError::of(path))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    staged(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a file by `fill` under a temporary name, and then gives it its own.
pub(crate) fn staged(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let dir = path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
    // The umask applies, as for any file.
    let mut named = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .map_err(plain)?;
    fill(named.as_file_mut())?;
    named.as_file().sync_all()?;
    named.persist(path)?;
    Ok(())
}

/// Returns the system's error without the name of the temporary file, which the user does not know.
fn plain(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(std::error::Error::source);
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    inner.and_then(io::Error::raw_os_error).map_or(error, io::Error::from_raw_os_error)
}

fn json(rows: &[&Row]) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(rows)? + "\n")
}

/// Returns the rows as CSV (RFC 4180), with the keys of the JSON as the header.
fn csv(rows: &[&Row]) -> io::Result<String> {
    const HEADER: &str = "paper,item,row,column,published,farcast,ci95_half_width,verdict,rule";
    let mut lines = vec![HEADER.to_owned()];
    for row in rows {
        let fields = serde_json::to_value(row)?;
        let field = |name| match &fields[name] {
            serde_json::Value::String(text) => quoted(text),
            serde_json::Value::Null => String::new(),
            number => number.to_string(),
        };
        lines.push(HEADER.split(',').map(field).collect::<Vec<_>>().join(","));
    }
    Ok(lines.join("\r\n") + "\r\n")
}

/// Returns a field of CSV.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
