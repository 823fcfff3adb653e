//! Commit that `--version` names, and the conditions for looking it up again.

#[path = "../../build/commit.rs"]
mod commit;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use commit::Commit;

use crate::common::{Place, run};

/// Runs git in `root`, with a neutral author.
fn git(root: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["-c", "user.name=n", "-c", "user.email=n@example.org"]).args(args);
    git.env("GIT_COMMITTER_DATE", "2026-11-23T03:00:00+0000").env("GIT_CONFIG_GLOBAL", "/dev/null");
    run(&mut git);
}

/// Makes a work tree with one source in one commit.
fn work_tree(root: &Path) -> PathBuf {
    fs::create_dir_all(root.join("crates/one/src")).unwrap();
    let source = root.join("crates/one/src/lib.rs");
    fs::write(&source, "1").unwrap();
    git(root, &["init", "--quiet", "--initial-branch", "main"]);
    git(root, &["add", "."]);
    git(root, &["commit", "--quiet", "-m", "one"]);
    source
}

fn commit_of(root: &Path) -> Option<Commit> {
    let commit = commit::of(root, &commit::sources(root));
    for path in commit.iter().flat_map(|commit| &commit.watched) {
        assert!(path.exists(), "{} is not there, and would be looked for at each build", path.display());
    }
    commit
}

/// Returns the watched paths, each with its content if it is a file.
fn watched(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    commit_of(root).unwrap().watched.into_iter().map(|path| (path.clone(), fs::read(path).ok())).collect()
}

#[test]
fn the_program_names_its_commit() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = place.run("version", place.farcast(["--version"])).stdout;
    let own = format!("farcast {}", env!("CARGO_PKG_VERSION"));
    let expected = commit_of(&root).map_or(own.clone(), |commit| format!("{own} ({})", commit.name));
    assert_eq!(version.trim_end(), expected);
}

#[test]
fn a_commit_has_a_hash_a_date_and_a_mark_where_sources_differ() {
    let place = Place::new();
    let source = work_tree(place.root());
    let name = || commit_of(place.root()).unwrap().name;
    let (hash, date) =
        name().split_once(", ").map(|(hash, date)| (hash.to_owned(), date.to_owned())).unwrap();
    assert!(hash.len() >= 7 && hash.bytes().all(|octet| octet.is_ascii_hexdigit()), "{hash}");
    assert_eq!(date, "2026-11-23");
    fs::create_dir_all(place.path("docs")).unwrap();
    fs::write(place.path("docs/new.md"), "what the program is not built from").unwrap();
    assert_eq!(name(), format!("{hash}, {date}"));
    fs::write(&source, "2").unwrap();
    assert_eq!(name(), format!("{hash}-dirty, {date}"));
    git(place.root(), &["add", "crates"]);
    assert_eq!(name(), format!("{hash}-dirty, {date}"));
    git(place.root(), &["commit", "--quiet", "-m", "two"]);
    assert!(!name().contains("dirty") && !name().contains(&hash), "{}", name());
}

#[test]
fn without_a_work_tree_of_its_own_there_is_no_commit() {
    let place = Place::new();
    fs::create_dir_all(place.path("inner/crates/two/src")).unwrap();
    assert!(commit_of(&place.path("inner")).is_none(), "no git");
    work_tree(place.root());
    assert!(commit_of(&place.path("inner")).is_none(), "unpacked inside something else");
    fs::create_dir_all(place.path("empty")).unwrap();
    git(&place.path("empty"), &["init", "--quiet"]);
    assert!(commit_of(&place.path("empty")).is_none(), "no commit yet");
}

#[test]
fn what_is_watched_changes_with_the_commit_and_else_stays() {
    let place = Place::new();
    let (root, linked) = (place.path("tree"), place.path("linked"));
    work_tree(&root);
    git(&root, &["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    for tree in [&root, &linked] {
        // The branch is in a file of its own, and then packed.
        for packed in [false, true] {
            if packed {
                git(tree, &["pack-refs", "--all"]);
            }
            let before = watched(tree);
            git(tree, &["status"]);
            assert_eq!(watched(tree), before, "nothing has happened");
            git(tree, &["commit", "--quiet", "--allow-empty", "-m", "more"]);
            assert_ne!(watched(tree), before, "packed: {packed}");
        }
        let before = watched(tree);
        git(tree, &["checkout", "--quiet", "--detach"]);
        assert_ne!(watched(tree), before);
        let before = watched(tree);
        git(tree, &["checkout", "--quiet", "HEAD~1"]);
        assert_ne!(watched(tree), before);
    }
}
