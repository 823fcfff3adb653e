//! Results as files.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::row::Row;
use super::{Results, show};
use crate::Failure;

/// The files of a directory of results.
pub(super) const NAMES: [&str; 3] = ["reproduce.csv", "reproduce.json", "reproduce.md"];

/// Makes the directory.
pub(super) fn make(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))
}

/// Writes all files. Each has its name only when it is whole.
pub(super) fn write(dir: &Path, results: &[Results]) -> Result<(), Failure> {
    let rows: Vec<&Row> = results.iter().flat_map(|results| &results.rows).collect();
    let json = serde_json::to_string_pretty(&rows)? + "\n";
    for (name, text) in NAMES.into_iter().zip([csv(&rows)?, json, show::markdown(results)]) {
        let path = dir.join(name);
        put(dir, &path, &text).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

/// Writes under another name first.
fn put(dir: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    // What the umask leaves, as for any file.
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}", path.display()))
}

/// As RFC 4180 has it, with the keys of the JSON as the header.
fn csv(rows: &[&Row]) -> Result<String, Failure> {
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

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
