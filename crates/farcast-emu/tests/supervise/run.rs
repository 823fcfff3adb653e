//! A run of the stand-in, and a check that it left nothing behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait of any test.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until `done` says so.
pub(crate) fn within(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The stand-in while it runs.
pub(crate) struct ProgramCommand {
    child: Child,
    /// In the environment of all of its processes that did not clear it.
    marker: String,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Octets of its standard error, and the thread that collects them.
    stderr: Arc<Mutex<Vec<u8>>>,
    collects: JoinHandle<()>,
}

/// Result of a run.
pub(crate) struct Over {
    pub(crate) status: ExitStatus,
    /// The lines of its output that were not asked for before.
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

/// This program as the outer process, with arguments to come.
pub(crate) fn outer(mode: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["outer", mode]);
    command
}

impl ProgramCommand {
    /// Starts the stand-in with a grace of `grace` milliseconds and these programs, the near one first.
    pub(crate) fn start(grace: &str, programs: &[&str]) -> Self {
        Self::of(outer(grace).args(programs))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let marker = format!("FARCAST_MARKER={}.{number}", std::process::id());
        let (name, value) = marker.split_once('=').unwrap();
        command.env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut stderr = child.stderr.take().unwrap();
        let collected = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&collected);
        let collects = thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { stdin: child.stdin.take(), child, marker, lines, stderr: collected, collects }
    }

    /// The next line of its output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line of output")
    }

    /// Waits for this line of its output.
    pub(crate) fn until(&self, line: &str) {
        while self.line() != line {}
    }

    /// Returns the standard error so far.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// Waits for this line on its standard error.
    pub(crate) fn until_error(&self, line: &str) {
        within("a line on its standard error does not come", || self.errors().lines().any(|had| had == line));
    }

    pub(crate) fn outer(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The process whose parent is the outer one.
    pub(crate) fn inner(&self) -> Pid {
        let outer = self.outer().as_raw_pid().to_string();
        let found = processes().into_iter().find(|process| parent(*process) == Some(outer.clone()));
        Pid::from_raw(found.expect("an inner process").cast_signed()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended already.
        let _ = kill_process(self.outer(), signal);
    }

    /// Returns the number of its running processes that did not clear their environment.
    pub(crate) fn processes(&self) -> usize {
        marked(&self.marker).len()
    }

    /// Returns `true` if one of its processes runs this command: program and arguments, each ended by NUL.
    pub(crate) fn runs(&self, command: &[u8]) -> bool {
        let mut commands = marked(&self.marker).into_iter().map(|process| format!("/proc/{process}/cmdline"));
        commands.any(|path| fs::read(path).is_ok_and(|found| found == command))
    }

    /// The namespaces of its processes, held.
    pub(crate) fn traces(&self) -> Traces {
        let ours = namespaces("self");
        let mut traces = Traces { marker: self.marker.clone(), names: BTreeSet::new(), files: Vec::new() };
        for process in marked(&self.marker) {
            for (path, name) in namespaces(&process.to_string()) {
                if !ours.iter().any(|(_, ours)| *ours == name) && traces.names.insert(name) {
                    traces.files.extend(File::open(path));
                }
            }
        }
        traces
    }

    /// Waits for its end.
    pub(crate) fn over(mut self) -> Over {
        let mut status = None;
        within("the run is not over", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        // A process that still ran would hold the output open.
        within("somebody holds its standard error", || self.collects.is_finished());
        let stdout = self.lines.iter().collect();
        let over = Over { status: status.unwrap(), stdout, stderr: self.errors() };
        within("processes are left behind", || marked(&self.marker).is_empty());
        over
    }
}

/// A case that fails leaves nothing behind either.
impl Drop for ProgramCommand {
    fn drop(&mut self) {
        // Once it has been waited for, both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Over {
    /// The exit code, where 128 and more stands for a signal.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap())
    }

    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code(), code, "{}\n{}", self.stdout.join("\n"), self.stderr);
    }
}

/// The namespaces of a run, held so that the kernel gives their numbers to no other.
pub(crate) struct Traces {
    marker: String,
    names: BTreeSet<PathBuf>,
    files: Vec<File>,
}

impl Traces {
    /// Checks that it has `kinds` of namespaces beside ours: `net:`, `mnt:` and the like.
    pub(crate) fn assert_kinds(&self, kinds: &[(&str, usize)]) {
        for (kind, count) in kinds {
            let found = self.names.iter().filter(|name| name.to_str().unwrap().starts_with(kind)).count();
            assert_eq!(found, *count, "{kind} of {:?}", self.names);
        }
    }

    /// Checks that no process of the run is left, that no process is in one of its namespaces, and that nothing else
    /// holds one: no descriptor and no mount.
    pub(crate) fn assert_gone(self) {
        within("processes are left behind", || marked(&self.marker).is_empty());
        let held = |process: &u32| {
            let mine = *process == std::process::id();
            let inside = namespaces(&process.to_string()).iter().any(|(_, name)| self.names.contains(name));
            let links = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
            let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            inside || !mine && links.into_iter().any(|link| self.names.contains(&link))
        };
        within("somebody is in its namespaces", || !processes().iter().any(held));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!self.names.iter().any(|name| mounts.contains(name.to_str().unwrap())), "{mounts}");
        drop(self.files);
    }
}

/// The numbers of all processes.
fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The processes with `marker` in their environment.
fn marked(marker: &str) -> Vec<u32> {
    let has = |process: &u32| {
        // The kernel shows nothing of a process that is no more.
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|octet| *octet == 0).any(|variable| variable == marker.as_bytes())
    };
    processes().into_iter().filter(has).collect()
}

/// The namespaces of a process: where to open them, and their names.
fn namespaces(process: &str) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{process}/ns")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).filter_map(named).collect()
}

fn named(path: PathBuf) -> Option<(PathBuf, PathBuf)> {
    let name = fs::read_link(&path).ok()?;
    Some((path, name))
}

fn parent(process: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(|parent| parent.trim().into())
}

/// Makes a command run as the user `nobody`.
pub(crate) fn as_nobody(command: &mut Command) -> &mut Command {
    command.uid(65_534).gid(65_534)
}
