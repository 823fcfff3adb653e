//! The commit that is checked out, for people who read `--version`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A commit.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Its short hash and its date, as in `c887755, 2026-11-23`; `c887755-dirty` where what is built differs from it.
    pub(crate) name: String,
    /// The files and directories that say when this is no longer so, all of which exist: for what does not, cargo would
    /// look anew at every build.
    pub(crate) watched: Vec<PathBuf>,
}

/// What the program is built from.
pub(crate) fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = root.join("crates").read_dir().into_iter().flatten().flatten();
    let of_crate = |path: PathBuf| [path.join("src"), path.join("Cargo.toml")];
    let own = [root.join("Cargo.toml"), root.join("Cargo.lock")];
    let mut all: Vec<PathBuf> =
        crates.flat_map(|entry| of_crate(entry.path())).chain(own).filter(|path| path.exists()).collect();
    all.sort();
    all
}

/// The commit of the work tree whose root is `root`; `None` where there is none, or no git to ask. A directory inside
/// the work tree of something else has no commit of its own.
pub(crate) fn of(root: &Path, sources: &[PathBuf]) -> Option<Commit> {
    let root = root.canonicalize().ok()?;
    let top = line(git(&root, ["rev-parse", "--show-toplevel"]))?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let name = line(git(&root, ["log", "-1", "--no-show-signature", "--no-color", "--format=%h %cs"]))?;
    let (hash, date) = name.split_once(' ')?;
    let mut difference: Vec<&OsStr> =
        ["diff", "--quiet", "--no-ext-diff", "HEAD", "--"].map(OsStr::new).into();
    difference.extend(sources.iter().map(|path| path.as_os_str()));
    let changed = git(&root, difference).is_none_or(|output| !output.status.success());
    let mark = if changed { "-dirty" } else { "" };
    let mut watched = positions(&root);
    watched.extend_from_slice(sources);
    Some(Commit { name: format!("{hash}{mark}, {date}"), watched })
}

/// The files that change when another commit is checked out or made: HEAD, and the branch that it names.
fn positions(root: &Path) -> Vec<PathBuf> {
    let file = |name: &str| {
        let path = root.join(line(git(root, ["rev-parse", "--git-path", name]))?);
        path.exists().then_some(path)
    };
    let branch = line(git(root, ["symbolic-ref", "--quiet", "HEAD"]));
    let own = branch.as_deref().and_then(file);
    // A branch without a file of its own is among the packed ones until a commit gives it one, which the log of HEAD
    // has.
    let packed = [branch.is_some() && own.is_none()].into_iter().filter(|packed| *packed);
    let packed = packed.flat_map(|_| ["packed-refs", "logs/HEAD"]).filter_map(file);
    file("HEAD").into_iter().chain(own).chain(packed).collect()
}

/// Asks git about the work tree at `root`, and about no other that the environment may name.
fn git<S: AsRef<OsStr>>(root: &Path, args: impl IntoIterator<Item = S>) -> Option<Output> {
    let mut command = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command.env("GIT_OPTIONAL_LOCKS", "0").arg("-C").arg(root).args(args).output().ok()
}

/// The line that git answered, where it could.
fn line(output: Option<Output>) -> Option<String> {
    let output = output.filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}
