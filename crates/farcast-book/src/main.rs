//! `cargo run -p farcast-book` builds the book into `target/book`; with `-- keys` it writes the page of all keys instead.

use std::process::ExitCode;

use farcast_book::{html, keys, links, repository};

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        None => book(),
        Some("keys") => page(),
        Some(other) => Err(format!("{other:?} is not known; `keys`, or nothing, is")),
    };
    match result {
        Ok(said) => {
            say(&said);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// Builds the book and checks its links. Returns the path of its first page, or the errors.
fn book() -> Result<String, String> {
    let root = repository();
    let into = root.join("target/book");
    let mut wrong = html::build(&root, &into)?;
    wrong.extend(links::broken(&root, &into)?);
    if wrong.is_empty() {
        Ok(format!("{}", into.join("index.html").display()))
    } else {
        Err(wrong.join("\n"))
    }
}

/// Writes the page of all keys. Returns its path.
fn page() -> Result<String, String> {
    let path = repository().join("docs/src/scenario-keys.md");
    std::fs::write(&path, keys::page()?).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

#[expect(clippy::print_stderr, reason = "it is what a program says")]
fn say(line: &str) {
    eprintln!("{line}");
}
