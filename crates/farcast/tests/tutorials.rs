//! The tutorials do what they say: the commands of a page are run in its order, and what it quotes of their output comes.
//!
//! | in a page | what is done |
//! |---|---|
//! | a fence `toml` whose first line is `# NAME` | is written to the file NAME |
//! | in a fence `console`: `TERMINAL$ COMMAND` | is run by `sh`, once what ran in that terminal before has ended, with success |
//! | `TERMINAL$` | goes on with what runs there |
//! | `^C` | interrupts it, a second later |
//! | `$ echo $?`, and a number behind it | the code of the command before |
//! | `...`, an empty line, a rule of a table | anything |
//! | another line | must be among the lines that the command prints; one that ends in ` ...` must begin one of them |
//!
//! Spaces do not count, numbers may differ by a tenth. In a fence `console,live` words with digits may be any such words: they
//! depend on the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, wait, and open its own files"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Hosts, Place, need_root};
use rustix::process::{Pid, Signal, kill_process_group};

/// What is quoted comes within this time.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a page says to do.
#[derive(PartialEq, Eq, Debug)]
enum Step {
    Write {
        name: String,
        text: String,
    },
    /// Without a command: go on with what runs.
    Run {
        terminal: String,
        command: Option<String>,
        quoted: Vec<String>,
        live: bool,
        interrupt: bool,
    },
}

#[test]
fn sending() {
    let place = Place::new();
    Page::new("sending", &place, None).follow();
}

#[test]
fn emulating() {
    need_root("network namespaces");
    // A host of its own, where nobody else emulates.
    let (place, hosts) = (Place::new(), Hosts::new(1));
    Page::new("emulating", &place, Some(&hosts)).follow();
}

#[test]
fn studying() {
    let place = Place::new();
    Page::new("studying", &place, None).follow();
}

#[test]
fn steps_are_read_as_they_are_meant() {
    let page = "text\n```toml\n# a.toml\nb = 1\n```\n```console,live\n$ one \\\n  two\nout\n...\nhost$ three\n```\n\
                ```console\nhost$\nmore\n^C\n```\n```text\n$ not this\n```\n";
    let run = |terminal: &str, command: Option<&str>, quoted: &[&str], live, interrupt| Step::Run {
        terminal: terminal.into(),
        command: command.map(Into::into),
        quoted: quoted.iter().map(ToString::to_string).collect(),
        live,
        interrupt,
    };
    let expected = [
        Step::Write { name: "a.toml".into(), text: "# a.toml\nb = 1\n".into() },
        run("", Some("one two"), &["out"], true, false),
        run("host", Some("three"), &[], true, false),
        run("host", None, &["more"], false, true),
    ];
    assert_eq!(steps(page), expected);
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

/// The steps of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        match fence {
            "toml" => {
                if let Some(name) = body.first().and_then(|first| first.strip_prefix("# ")) {
                    steps.push(Step::Write { name: name.to_owned(), text: body.join("\n") + "\n" });
                }
            }
            "console" | "console,live" => console(&body, fence.ends_with("live"), &mut steps),
            _ => {}
        }
    }
    steps
}

fn console(body: &[&str], is_live: bool, steps: &mut Vec<Step>) {
    let mut lines = body.iter();
    while let Some(line) = lines.next() {
        if let Some((terminal, said)) = prompt(line) {
            let mut command = said.to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                command = begun.to_owned() + lines.next().unwrap().trim_start();
            }
            steps.push(Step::Run {
                terminal: terminal.to_owned(),
                command: (!command.is_empty()).then_some(command),
                quoted: Vec::new(),
                live: is_live,
                interrupt: false,
            });
            continue;
        }
        let Some(Step::Run { quoted, interrupt, .. }) = steps.last_mut() else {
            panic!("no command before {line}")
        };
        match *line {
            "^C" => *interrupt = true,
            line if line.trim_start_matches('-').is_empty() || line == "..." => {}
            line => quoted.push(line.to_owned()),
        }
    }
}

/// The terminal and the command of a line with a prompt.
fn prompt(line: &str) -> Option<(&str, &str)> {
    let (terminal, rest) = line.split_once('$')?;
    let is_name = terminal.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_name && (rest.is_empty() || rest.starts_with(' '))).then_some((terminal, rest.trim_start()))
}

/// Whether a line of output is what is quoted.
fn is_like(quoted: &str, line: &str, is_live: bool) -> bool {
    let begin = quoted.strip_suffix(" ...");
    let mut words = line.split_whitespace();
    let alike = begin.unwrap_or(quoted).split_whitespace().all(|word| {
        let Some(other) = words.next() else { return false };
        let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
        word == other || is_live && has_digit(word) && has_digit(other) || !is_live && is_near(word, other)
    });
    alike && (begin.is_some() || words.next().is_none())
}

fn is_near(a: &str, b: &str) -> bool {
    let number = |word: &str| word.trim_matches(|c: char| "(),;:%".contains(c)).parse::<f64>().ok();
    let (Some(a), Some(b)) = (number(a), number(b)) else { return false };
    (a - b).abs() <= 0.1 * a.abs().max(b.abs())
}

/// A page that is followed in a place.
struct Page<'a> {
    name: &'static str,
    place: &'a Place,
    hosts: Option<&'a Hosts>,
    terminals: BTreeMap<String, Terminal>,
}

/// What runs in a terminal, or ran last.
struct Terminal {
    command: String,
    child: Child,
    output: PathBuf,
    interrupted: bool,
    code: Option<i32>,
}

impl<'a> Page<'a> {
    fn new(name: &'static str, place: &'a Place, hosts: Option<&'a Hosts>) -> Self {
        Self { name, place, hosts, terminals: BTreeMap::new() }
    }

    fn follow(mut self) {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/src/tutorials/{}.md", self.name));
        // A group that no other test has.
        let page = fs::read_to_string(path).unwrap();
        let page = page.replace("239.255.1.1:5402", "GROUP").replace("239.255.1.1", "GROUP");
        let steps = steps(&page.replace("GROUP", &self.place.group));
        assert!(steps.len() > 5, "{steps:?}");
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write { name, text } => fs::write(self.place.path(&name), text).unwrap(),
                Step::Run { terminal, command, quoted, live, interrupt } => {
                    match command.as_deref() {
                        Some("echo $?") => {
                            let code = self.end(&terminal);
                            assert_eq!(quoted, [code.unwrap().to_string()], "{terminal}");
                            continue;
                        }
                        Some(command) => self.start(at, &terminal, command),
                        None => {}
                    }
                    let running = self.terminals.get_mut(&terminal).unwrap();
                    // What comes when it is interrupted is quoted, too.
                    if interrupt {
                        sleep(Duration::from_secs(1));
                        running.interrupt();
                    }
                    running.wait_for(&quoted, live);
                }
            }
        }
        for terminal in self.terminals.values_mut() {
            terminal.succeed();
        }
    }

    fn start(&mut self, at: usize, terminal: &str, command: &str) {
        if let Some(mut before) = self.terminals.remove(terminal) {
            before.succeed();
        }
        let output = self.place.path(&format!(".output-{at}"));
        let file = fs::File::create(&output).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_farcast")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        if let Some(hosts) = self.hosts {
            shell = hosts.at(1, &shell);
        }
        shell
            .current_dir(self.place.root())
            .env("PATH", path)
            .env("XDG_STATE_HOME", self.place.path(".state"));
        shell.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        let child = shell.spawn().unwrap();
        let command = format!("{terminal}$ {command}");
        let running = Terminal { command, child, output, interrupted: false, code: None };
        self.terminals.insert(terminal.to_owned(), running);
    }

    /// The code of what ran last in a terminal, which is then no failure.
    fn end(&mut self, terminal: &str) -> Option<i32> {
        let running = self.terminals.get_mut(terminal).unwrap();
        running.wait();
        running.code.replace(0)
    }
}

impl Terminal {
    fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    /// Waits until everything that is quoted was printed.
    fn wait_for(&mut self, quoted: &[String], is_live: bool) {
        let begin = Instant::now();
        loop {
            let has_ended = self.child.try_wait().unwrap().is_some();
            let printed = self.printed();
            let missing =
                quoted.iter().find(|quoted| !printed.lines().any(|line| is_like(quoted, line, is_live)));
            let Some(missing) = missing else { return };
            assert!(
                !has_ended && begin.elapsed() < PATIENCE,
                "{}\nhas not printed:\n{missing}\nbut:\n{printed}",
                self.command
            );
            sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(&mut self) {
        self.interrupted = true;
        kill_process_group(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    fn wait(&mut self) {
        if self.code.is_some() {
            return;
        }
        let begin = Instant::now();
        self.code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status.code().unwrap_or(-1));
            }
            assert!(begin.elapsed() < PATIENCE, "{}\nhas not ended:\n{}", self.command, self.printed());
            sleep(Duration::from_millis(20));
        };
    }

    fn succeed(&mut self) {
        self.wait();
        let code = self.code;
        assert!(
            self.interrupted || code == Some(0),
            "{}\nended with {code:?}:\n{}",
            self.command,
            self.printed()
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.code.is_none() {
            // It has ended by itself where all went well.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
