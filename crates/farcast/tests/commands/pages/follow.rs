//! Follows a page in a directory and on a host of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::read::{End, Run, Step, is_like};
use crate::common::{Hosts, Place};

/// Longest time until quoted output appears, and until a command ends.
const PATIENCE: Duration = Duration::from_mins(3);
/// Time after which a command that stays is taken as ready.
const READY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Exit code of `emulate` on a machine that is too busy for true delays. Its output is still compared with the page.
const INVALID: i32 = 122;

/// Host names on the pages, all of which mean this host.
const HOSTS: &str = "\n10.77.0.1 station-7.example.org head-end.example.org\n";

/// Completes the keys that a page cuts short: the file NAME.line has the key of NAME.
fn with_keys(command: &str) -> String {
    let names = ["station-7", "head-end"];
    names.iter().fold(command.to_owned(), |command, name| {
        command.replace(&format!("{name} farcast-key-1:…"), &format!("$(grep -v '^#' {name}.line)"))
    })
}

/// Reader that follows a page.
pub(crate) struct Follower {
    place: Place,
    /// A network of its own: pages use the same groups, and the links of emulations.
    host: Hosts,
    terminals: BTreeMap<String, Terminal>,
}

/// Command that runs in a terminal, or ran last.
struct Terminal {
    run: Run,
    child: Child,
    output: PathBuf,
    interrupted: bool,
    code: Option<i32>,
}

impl Follower {
    pub(crate) fn new() -> Self {
        let (place, host) = (Place::new(), Hosts::new(1));
        host.ip(1, &["route", "add", "default", "via", "10.77.0.254"]);
        let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default() + HOSTS;
        fs::write(place.path(".hosts"), hosts).unwrap();
        // Readers who are not root say sudo.
        fs::create_dir(place.path(".bin")).unwrap();
        let sudo = place.path(".bin/sudo");
        fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(&sudo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Self { place, host, terminals: BTreeMap::new() }
    }

    /// Follows all steps. Asserts that quoted output was printed and that nothing failed.
    pub(crate) fn follow(mut self, steps: Vec<Step>) {
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Write { name, text } => fs::write(self.place.path(&name), text).unwrap(),
                Step::Run(run) => self.run(at, &run),
            }
        }
        for terminal in self.terminals.values_mut() {
            if terminal.run.end == End::Stays {
                terminal.interrupt();
            }
            terminal.succeed();
        }
    }

    fn run(&mut self, at: usize, run: &Run) {
        if run.command.as_deref() == Some("echo $?") {
            let code = self.end(&run.terminal).unwrap();
            assert_eq!(run.quoted, [code.to_string()], "the code in terminal {:?}", run.terminal);
            return;
        }
        if let Some(command) = &run.command {
            self.start(at, run.clone(), command);
        }
        let running = self.terminals.get_mut(&run.terminal).unwrap();
        // Output after the interrupt is quoted, too.
        if run.interrupt {
            sleep(Duration::from_secs(1));
            running.interrupt();
        }
        running.wait_for(&run.quoted, run.live);
        // Without a name it is the reader's one terminal.
        if run.terminal.is_empty() {
            running.wait();
        }
        if run.end == End::Stays {
            running.wait_until_ready();
        }
    }

    fn start(&mut self, at: usize, run: Run, command: &str) {
        if let Some(mut before) = self.terminals.remove(&run.terminal) {
            before.succeed();
        }
        let output = self.place.path(&format!(".output-{at}"));
        let file = fs::File::create(&output).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_farcast")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let path =
            format!("{}:{}:{path}:/usr/sbin:/sbin", self.place.path(".bin").display(), program.display());
        let mut shell = Command::new("sh");
        let script = format!("mount --bind .hosts /etc/hosts\n{}", with_keys(command));
        shell.args(["-e", "-c", &script]);
        shell = self.host.at(1, &shell);
        for variable in ["FARCAST_KEY", "FARCAST_KEY_FILE", "FARCAST_TRUST_FILE"] {
            shell.env_remove(variable);
        }
        shell
            .current_dir(self.place.root())
            .env("PATH", path)
            .env("XDG_CONFIG_HOME", self.place.path(".config"))
            .env("XDG_STATE_HOME", self.place.path(".state"));
        shell.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        let child = shell.spawn().unwrap();
        let terminal = run.terminal.clone();
        self.terminals.insert(terminal, Terminal { run, child, output, interrupted: false, code: None });
    }

    /// Returns the exit code of the last command in a terminal, which then counts as no failure.
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

    fn command(&self) -> String {
        format!("{}$ {}", self.run.terminal, self.run.command.as_deref().unwrap_or_default())
    }

    /// Waits until all quoted lines were printed.
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
                self.command()
            );
            sleep(LOOK_AGAIN);
        }
    }

    fn wait_until_ready(&mut self) {
        sleep(READY);
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{}\nended with {ended:?}:\n{}", self.command(), self.printed());
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
            assert!(begin.elapsed() < PATIENCE, "{}\nhas not ended:\n{}", self.command(), self.printed());
            sleep(LOOK_AGAIN);
        };
    }

    fn succeed(&mut self) {
        self.wait();
        let (code, fails) = (self.code, self.run.end == End::Fails);
        let succeeded = matches!(code, Some(0 | INVALID));
        assert!(
            self.interrupted || succeeded != fails,
            "{}\nended with {code:?}:\n{}",
            self.command(),
            self.printed()
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.code.is_none() {
            // Where all went well, the command has ended by itself.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
