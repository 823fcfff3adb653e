//! README, the book and the examples of `--help` hold: all commands of a page are run in their order, in a directory
//! and on a host of its own, and must print the output that the page quotes.
//!
//! | in a page | what is done |
//! |---|---|
//! | a fence `toml` whose first line is `# NAME` | is written to the file NAME |
//! | a fence `sh` | is run by `sh -e` as a whole |
//! | `<!-- sh` to `-->` | is run, too: what a reader has already |
//! | in a fence `console`: `TERMINAL$ COMMAND` | is run by `sh`, once what ran in that terminal before has ended, with success |
//! | `TERMINAL$` | goes on with what runs there |
//! | `^C` | interrupts it, a second later |
//! | `$ echo $?`, and a number behind it | the code of the command before |
//! | `...`, an empty line, a rule of a table | anything |
//! | another line | must be among the lines that the command prints; one that ends in ` ...` must begin one of them |
//!
//! Spaces do not count, numbers may differ by a tenth. Marks stand behind the language, with commas:
//!
//! | mark | what it says |
//! |---|---|
//! | `live` | words with digits may be any such words: they depend on the machine |
//! | `stays` | runs until the page ends |
//! | `fails` | ends with a code other than 0 |
//! | `skip REASON` | is not run, because it takes over a minute, or needs what a test has not |
//!
//! Code without a fence, a fence without a language and a command in another language are faults: no block escapes.

mod follow;
mod read;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use follow::Follower;
use read::{End, Run, Step, commands, faults, is_like, steps};

use crate::common::{Place, need_root};

/// Number of pages that are followed in parallel: most commands wait for a link.
const BESIDE: usize = 6;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns README, all pages of the book, and the page that runs the examples of `--help`.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = vec![root.join("README.md"), root.join("crates/farcast/tests/commands/pages/help.md")];
    for folder in ["docs/src", "docs/src/tutorials", "docs/src/papers"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let mut all = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        all.extend(faults(&page).into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn pages_do_what_they_say() {
    need_root("network namespaces");
    let only = std::env::var("FARCAST_PAGE").ok();
    let is_asked_for = |path: &PathBuf| only.as_ref().is_none_or(|only| path.ends_with(only));
    let left = Mutex::new(pages().into_iter().filter(is_asked_for).collect::<Vec<_>>());
    let failed = Mutex::new(Vec::new());
    let next = || left.lock().unwrap().pop();
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some(path) = next() {
                    let steps = steps(&fs::read_to_string(&path).unwrap());
                    let has_commands = steps.iter().any(|step| matches!(step, Step::Run(_)));
                    if has_commands && catch_unwind(|| Follower::new().follow(steps)).is_err() {
                        failed.lock().unwrap().push(path);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "these pages do not do what they say (see above): {failed:?}");
}

/// Returns the commands that a screen of help lists.
fn subcommands(shown: &str) -> Vec<String> {
    let Some((_, list)) = shown.split_once("Commands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Collects the examples below `farcast COMMAND --help`, and below the help of its subcommands.
fn examples(place: &Place, command: &[String], all: &mut BTreeSet<String>) {
    let shown = place.run("help", place.farcast([command, &["--help".into()]].concat())).stdout;
    let (_, notes) = shown.split_once("Examples:\n").unwrap_or_default();
    let lines = notes.lines().take_while(|line| line.starts_with("  "));
    // A long one goes on in the next line.
    let text = lines.map(str::trim).collect::<Vec<_>>().join(" ").replace(" farcast ", "\nfarcast ");
    all.extend(text.lines().map(str::to_owned));
    for name in subcommands(&shown).into_iter().filter(|name| name != "help") {
        examples(place, &[command, &[name]].concat(), all);
    }
}

#[test]
fn every_example_of_help_is_run_or_says_why_not() {
    let mut all = BTreeSet::new();
    examples(&Place::new(), &[], &mut all);
    assert!(all.len() > 10, "{all:?}");
    let run: BTreeSet<String> = commands(include_str!("pages/help.md")).into_iter().collect();
    let missing: Vec<&String> = all.difference(&run).collect();
    assert!(missing.is_empty(), "crates/farcast/tests/commands/pages/help.md does not have:\n{missing:#?}");
}

#[test]
fn steps_are_read_as_they_are_meant() {
    let page = "text\n```toml\n# a.toml\nb = 1\n```\n```console,live\n$ one \\\n  two\nout\n...\nhost$ three\n```\n\
                ```console\nhost$\nmore\n^C\n```\n```text\n$ not this\n```\n<!-- sh\nbefore\n-->\n\
                ```sh,stays,skip it is far away\nno\n```\n```sh,fails\nfour \\\n  five\n```\n";
    let run = |terminal: &str, command: Option<&str>, quoted: &[&str]| Run {
        terminal: terminal.into(),
        command: command.map(Into::into),
        quoted: quoted.iter().map(ToString::to_string).collect(),
        ..Run::default()
    };
    let expected = [
        Step::Write { name: "a.toml".into(), text: "# a.toml\nb = 1\n".into() },
        Step::Run(Run { live: true, ..run("", Some("one two"), &["out"]) }),
        Step::Run(Run { live: true, ..run("host", Some("three"), &[]) }),
        Step::Run(Run { interrupt: true, ..run("host", None, &["more"]) }),
        Step::Run(run("", Some("before"), &[])),
        Step::Run(Run { end: End::Fails, ..run("", Some("four \\\n  five"), &[]) }),
    ];
    assert_eq!(steps(page), expected);
}

#[test]
fn no_block_escapes() {
    for (page, fault) in [
        ("```\na\n```\n", "line 1: a block without a language"),
        ("a\n\n    farcast send a\n", "line 3: an indented block"),
        ("a\n\n    b\n", "line 3: an indented block"),
        ("* a\n\n    farcast send a\n", "line 3: an indented block"),
        ("```text\nfarcast send a\n```\n", "line 1: a command in a block that is not run"),
        ("```bash\na\n```\n", "line 1: nobody knows the language"),
        ("```sh,skip\na\n```\n", "line 1: nobody knows the mark"),
        ("```sh,skip slow\na\n```\n", "line 1: skip needs a reason in words"),
        ("```sh,ignore\na\n```\n", "line 1: nobody knows the mark"),
    ] {
        let found = faults(page);
        assert!(found.len() == 1 && found[0].starts_with(fault), "{page}: {found:?}");
    }
    for page in ["```sh,skip it takes an hour\na\n```\n", "* a\n\n    more of it\n", "```text\na\n```\n"] {
        assert_eq!(faults(page), [""; 0], "{page}");
    }
}

#[test]
fn lines_are_compared_by_words() {
    for (quoted, line, live, same) in [
        ("a  1.00 s", "a 1.05 s", false, true),
        ("a 1.00 s", "a 1.20 s", false, false),
        ("a 1.00 s", "a 1.20 s", true, true),
        ("a 1.00 s", "a 1.20 ms", true, false),
        ("(18.4 %)", "(18.5 %)", false, true),
        ("x=1 y", "x=2 y", false, false),
        ("x=1 y", "x=2 y", true, true),
        ("a b", "a b c", false, false),
        ("a b ...", "a b c", false, true),
        ("a b ...", "a c b", false, false),
    ] {
        assert_eq!(is_like(quoted, line, live), same, "{quoted:?} {line:?} {live}");
    }
}
