//! Transfers in real time, several at once: each runs `farcast emulate` as a user would, with a server at the far end
//! and a client at the near end.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::STUDY;
use super::cell::LinkCell;
use super::curl::{self, TRACE};
use super::place::{self, Ground, NAME, SETTINGS, failure};
use crate::study::{Runner, StudyError};

/// Most emulations at once: so few hardly disturb each other on two cores.
const AT_ONCE: usize = 4;
/// Attempts at a run that is invalid because the machine was too busy. From the second attempt on, no other run of
/// this study uses the machine.
const ATTEMPTS: u32 = 5;
/// Interval at which a child process is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Command that sets the congestion control of both ends. Some systems give new namespaces another one than the
/// machine's, and allow there only those that every user may choose; Reno always is one of these.
const RENO: &str = "echo reno > /proc/sys/net/ipv4/tcp_congestion_control";

/// Command of curl without the user's settings. It gives up after ten minutes, far above any simulated transfer.
const CLIENT: &str = "curl --disable --silent --show-error --noproxy '*' --max-time 600 --output file \
                      --disable-epsv --ftp-method nocwd --ignore-content-length";
/// Commands that curl then sends.
const COMMANDS: [&str; 6] = ["USER", "PASS", "PWD", "PASV", "TYPE", "RETR"];

/// A transfer to be made.
#[derive(Clone, Copy)]
pub(super) struct TransferJob<'a> {
    pub(super) cell: &'a LinkCell,
    pub(super) seed: u64,
}

/// Returns the time of each transfer in seconds, in order.
pub(super) fn all(
    runner: &Runner<'_>,
    ground: &Ground,
    jobs: &[TransferJob<'_>],
) -> Result<Vec<f64>, StudyError> {
    let executable = runner.executable().ok_or_else(|| failure("there is no program that emulates"))?;
    let crew = Crew {
        executable,
        ground,
        jobs,
        next: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        machine: RwLock::new(()),
        interrupted: runner.interrupted(),
    };
    let (sender, done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(jobs.len()) {
            let (crew, sender) = (&crew, sender.clone());
            scope.spawn(move || crew.work(&sender));
        }
        drop(sender);
        let mut times = vec![None; jobs.len()];
        let total = jobs.len() as u64;
        for (count, (number, time)) in (1..).zip(done) {
            match time {
                Ok(time) => times[number] = Some(time),
                Err(failure) => {
                    crew.over.store(true, Ordering::Relaxed);
                    return Err(failure);
                }
            }
            runner.show_runs(count, total);
        }
        times.into_iter().collect::<Option<_>>().ok_or_else(|| StudyError::Interrupted { study: STUDY.name })
    })
}

/// State that the threads share.
struct Crew<'a> {
    executable: &'a Path,
    ground: &'a Ground,
    jobs: &'a [TransferJob<'a>],
    /// Index of the next job.
    next: AtomicUsize,
    /// Set when a job has failed.
    over: AtomicBool,
    /// Lock that first attempts share and that a repeated attempt holds alone.
    machine: RwLock<()>,
    interrupted: &'a AtomicBool,
}

impl Crew<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    fn work(&self, done: &Sender<(usize, Result<f64, StudyError>)>) {
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(number) else { return };
            // The receiver is gone only after an error.
            if let Some(result) = self.time(job).transpose()
                && done.send((number, result)).is_err()
            {
                return;
            }
        }
    }

    /// Returns the time of a transfer; `None` if it was stopped.
    fn time(&self, job: &TransferJob<'_>) -> Result<Option<f64>, StudyError> {
        for attempt in 0..ATTEMPTS {
            let again = attempt > 0;
            let _alone = again.then(|| self.machine.write().unwrap_or_else(PoisonError::into_inner));
            let _among_others = (!again).then(|| self.machine.read().unwrap_or_else(PoisonError::into_inner));
            let dir = self.ground.for_a_run()?;
            let Some(status) = self.emulate(job, dir.path())? else { return Ok(None) };
            if let Some(time) = judged(self.ground, job, dir.path(), status)? {
                return Ok(Some(time));
            }
        }
        Err(StudyError::Busy(format!(
            "{}: not judged: {} was invalid {ATTEMPTS} times, because this machine was too busy for the link",
            STUDY.name, job.cell.column
        )))
    }

    /// Runs an emulation in `dir`; `None` if it was stopped.
    fn emulate(&self, job: &TransferJob<'_>, dir: &Path) -> Result<Option<ExitStatus>, StudyError> {
        let mut child = command(self.executable, self.ground, job, dir)?.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.is_over() {
                stop(&mut child)?;
                return Ok(None);
            }
            rest();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a child is waited for; there is no engine here")]
fn rest() {
    thread::sleep(LOOK);
}

/// Terminates an emulation, which cleans up its programs and namespaces.
fn stop(child: &mut Child) -> Result<(), StudyError> {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), rustix::process::Signal::TERM)
        .map_err(std::io::Error::from)?;
    child.wait()?;
    Ok(())
}

/// Returns the command `farcast emulate LINK --far vsftpd -- curl`.
fn command(
    executable: &Path,
    ground: &Ground,
    job: &TransferJob<'_>,
    dir: &Path,
) -> Result<Command, StudyError> {
    let mut command = Command::new(executable);
    command.current_dir(dir).env("PATH", place::path()).env("TZ", "UTC0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(dir.join(SAID))?);
    command.arg("emulate").arg(ground.path(job.cell.link.name()));
    for setting in job.cell.settings {
        command.args(["--set", setting]);
    }
    command.args(["--quiet", "--report", REPORT, "--seed", &job.seed.to_string()]);
    command.args(["--far", &format!("{RENO} && exec vsftpd ../{SETTINGS}")]);
    let client = format!("{RENO} && exec {CLIENT} {TRACE} \"ftp://$FARCAST_PEER/{NAME}\"");
    command.args(["--", "sh", "-c", &client]);
    Ok(command)
}

/// File with the output of the programs and the emulator, and below the emulator's report.
const SAID: &str = "said";
const REPORT: &str = "report.json";

/// Returns the time of a transfer; `None` if its run is invalid.
fn judged(
    ground: &Ground,
    job: &TransferJob<'_>,
    dir: &Path,
    status: ExitStatus,
) -> Result<Option<f64>, StudyError> {
    let report = fs::read_to_string(dir.join(REPORT)).ok();
    let report = report.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    if report.as_ref().is_some_and(|report| report["valid"] == false) {
        return Ok(None);
    }
    if report.is_none() || !status.success() {
        let said = fs::read(dir.join(SAID)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().last().unwrap_or("it said nothing");
        return Err(failure(&format!("{}: {status}: {last}", job.cell.column)));
    }
    measured(ground, job, dir).map(Some)
}

/// Returns the time of a transfer that has ended well.
fn measured(ground: &Ground, job: &TransferJob<'_>, dir: &Path) -> Result<f64, StudyError> {
    let column = job.cell.column;
    let trace = fs::read(dir.join("trace"))?;
    let transfer = curl::transfer(&String::from_utf8_lossy(&trace))
        .ok_or_else(|| failure(&format!("{column}: curl's trace has no transfer")))?;
    if !transfer.commands.iter().take(COMMANDS.len()).eq(&COMMANDS) {
        let sent = transfer.commands.join(", ");
        return Err(failure(&format!("{column}: curl sent other commands than are simulated: {sent}")));
    }
    let sent = ground.contents();
    if transfer.octets != sent.len() as u64 || fs::read(dir.join(NAME))? != sent {
        return Err(failure(&format!("{column}: the file that arrived is not the one that was sent")));
    }
    Ok(transfer.seconds)
}
