//! Checks of the files that a command is to write, against each other and against other paths.

use std::path::{Path, PathBuf};

use crate::Failure;

/// Refuses two of `files` that are one file, however their paths are written: the later would replace the earlier. Each
/// file comes with the word of the command line that names it.
pub(crate) fn distinct(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (word, path) in files.iter().filter_map(|(word, path)| Some((*word, (*path)?))) {
        let found = place(path);
        if let Some((other, _)) = seen.iter().find(|(_, place)| *place == found) {
            let path = path.display();
            return Err(Failure::usage(format!(
                "{other} and {word} are one file, \"{path}\": give each a file of its own"
            )));
        }
        seen.push((word, found));
    }
    Ok(())
}

/// Refuses one of `files` that is `path` or lies below it. Each file comes with the word of the command line that names
/// it. The text `why` says what would become of the file.
pub(crate) fn outside(files: &[(&str, Option<&Path>)], path: &Path, why: &str) -> Result<(), Failure> {
    for (word, file) in files.iter().filter_map(|(word, file)| Some((*word, (*file)?))) {
        if place(file).starts_with(place(path)) {
            let (file, path) = (file.display(), path.display());
            return Err(Failure::usage(format!(
                "{word} \"{file}\" lies in \"{path}\", {why}: put it elsewhere"
            )));
        }
    }
    Ok(())
}

/// Refuses one of `files` that cannot be a file: it is a directory, or its parent is none. A user should learn that
/// before the results are there. Each file comes with the word of the command line that names it.
pub(crate) fn files(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    for (word, path) in files.iter().filter_map(|(word, path)| Some((*word, (*path)?))) {
        let shown = path.display();
        if path.is_dir() {
            return Err(Failure::usage(format!(
                "{word} \"{shown}\" is a directory: name a file, as in \"{}\"",
                path.join("NAME").display()
            )));
        }
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(Failure::usage(format!(
                "{word} \"{shown}\": there is no directory \"{}\"; make it, or choose another place",
                parent.display()
            )));
        }
    }
    Ok(())
}

/// Refuses a directory for results if it is a file or lies in one.
pub(crate) fn directory(word: &str, path: Option<&Path>) -> Result<(), Failure> {
    let there = path.and_then(|path| path.ancestors().find(|place| place.symlink_metadata().is_ok()));
    match there {
        Some(place) if !place.is_dir() => Err(Failure::usage(format!(
            "{word}: \"{}\" is no directory, and results go into one: name another",
            place.display()
        ))),
        _ => Ok(()),
    }
}

/// Returns the place of `path`, without links and detours. A file that does not exist yet is placed by its directory.
fn place(path: &Path) -> PathBuf {
    let parent = path.parent().map(|parent| if parent == Path::new("") { Path::new(".") } else { parent });
    let in_parent = || Some(parent?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_parent).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_place_under_all_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        std::fs::write(root.join("there"), "").unwrap();
        std::os::unix::fs::symlink("there", root.join("link")).unwrap();
        std::os::unix::fs::symlink("d", root.join("e")).unwrap();
        for (one, other, same) in [
            ("there", "./there", true),
            ("there", "d/../there", true),
            ("there", "link", true),
            ("new", "e/../new", true),
            ("d/new", "e/new", true),
            ("d/new", "new", false),
            ("there", "new", false),
            ("absent/new", "absent/new", true),
            ("absent/new", "new", false),
        ] {
            assert_eq!(place(&root.join(one)) == place(&root.join(other)), same, "{one} and {other}");
        }
        // Tests run in the directory of their crate.
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
        assert_eq!(place(Path::new("new")), here.join("new"));
        assert_eq!(place(Path::new("src/../Cargo.toml")), here.join("Cargo.toml"));
    }
}
