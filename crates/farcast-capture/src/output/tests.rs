use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// The names in a directory, hidden ones too.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn written(path: &Path, text: &str) -> Box<dyn Output> {
    let mut file = StagedFile::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.flush().unwrap();
    Box::new(file)
}

#[test]
fn the_name_comes_with_the_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.csv");
    let file = written(&path, "all");
    // The temporary directory of a Linux machine is on a file system that has nameless files.
    assert_eq!(names(directory.path()), Vec::<String>::new());
    file.commit().unwrap();
    assert_eq!(names(directory.path()), ["log.csv"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "all");
}

#[test]
fn what_is_dropped_leaves_nothing_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.csv");
    fs::write(&path, "old").unwrap();
    drop(written(&path, "new"));
    assert_eq!(names(directory.path()), ["log.csv"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    written(&path, "new").commit().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_link_stays_and_its_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.csv"), directory.path().join("link.csv"));
    fs::write(&real, "old").unwrap();
    symlink(&real, &link).unwrap();
    written(&link, "new").commit().unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "new");
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/dev/null"), Path::new("/"), Path::new("")] {
        let error = StagedFile::create(path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
    }
    let nowhere = directory.path().join("no/such/log.csv");
    assert_eq!(StagedFile::create(&nowhere).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn rights_are_those_of_any_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, other) = (directory.path().join("ours"), directory.path().join("other"));
    written(&ours, "").commit().unwrap();
    fs::write(&other, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&other));
}
