//! Runs of `farcast emulate`, and their reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::common::{Ended, Place, Running, need_root};

/// Lock of measurements: they do not disturb each other.
static MEASURING: Mutex<()> = Mutex::new(());

/// Most attempts at a measurement, if the machine was too busy for real time.
const ATTEMPTS: u32 = 5;

/// One direction of a link that is a pipe.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) rate_bps: u64,
    pub(crate) delay_ms: u64,
    /// Longest queue in octets.
    pub(crate) queue: u64,
    pub(crate) per: f64,
}

impl Way {
    /// Makes a direction without losses.
    pub(crate) fn new(rate_bps: u64, delay_ms: u64, queue: u64) -> Self {
        Self { rate_bps, delay_ms, queue, per: 0.0 }
    }

    fn toml(&self, name: &str) -> String {
        let Self { rate_bps, delay_ms, queue, per } = self;
        format!(
            "[link.{name}]\nrate = \"{rate_bps} bit/s\"\ndelay = \"{delay_ms} ms\"\n\
             queue = \"{queue} B\"\nper = {per}\n"
        )
    }
}

/// Returns a link as TOML.
pub(crate) fn link(forward: Way, back: Way) -> String {
    forward.toml("forward") + &back.toml("return")
}

/// Builder of a command line of `farcast emulate`.
pub(crate) struct Emulate<'a> {
    place: &'a Place,
    label: String,
    link: String,
    options: Vec<String>,
    near: Option<String>,
}

impl<'a> Emulate<'a> {
    /// Begins with a shipped link or a file. The label names the files of this run, so each run needs its own.
    pub(crate) fn named(place: &'a Place, label: &str, link: &str) -> Self {
        Self { place, label: label.to_owned(), link: link.to_owned(), options: Vec::new(), near: None }
    }

    /// Begins with a link or a scenario as TOML.
    pub(crate) fn toml(place: &'a Place, label: &str, text: &str) -> Self {
        let path = place.path(&format!("{label}.toml"));
        fs::write(&path, text).unwrap();
        Self::named(place, label, path.to_str().unwrap())
    }

    pub(crate) fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(ToString::to_string));
        self
    }

    pub(crate) fn far(self, command: &str) -> Self {
        self.options(&["--far", command])
    }

    /// Sets a script for `sh` at the near end.
    pub(crate) fn near(mut self, script: &str) -> Self {
        self.near = Some(script.to_owned());
        self
    }

    /// Returns the command line itself, without a report.
    pub(crate) fn command(&self) -> Command {
        need_root("network namespaces and TUN devices");
        let mut command = self.place.farcast(["emulate", &self.link]);
        command.args(&self.options);
        if let Some(script) = &self.near {
            command.args(["--", "sh", "-c", script]);
        }
        command
    }

    pub(crate) fn start(self) -> Emulation {
        let report = self.place.path(&format!("{}-report.json", self.label));
        let with_report = self.options(&["--report", report.to_str().unwrap()]);
        let running = with_report.place.start(&with_report.label, with_report.command());
        Emulation { running, report }
    }
}

/// Running `farcast emulate`.
pub(crate) struct Emulation {
    running: Running,
    report: PathBuf,
}

impl Emulation {
    /// Waits for the end of the run.
    pub(crate) fn wait(self) -> Emulated {
        let ended = self.running.wait();
        let report = fs::read_to_string(&self.report).unwrap_or_else(|error| {
            panic!("{}: {error}; {}", self.report.display(), ended.story());
        });
        Emulated { report: serde_json::from_str(&report).unwrap(), ended }
    }

    /// Waits for the end of the run. Its programs must have succeeded, whatever farcast's verdict is.
    pub(crate) fn succeed(self) -> Emulated {
        let emulated = self.wait();
        assert_eq!(emulated.report["programs_exit"], 0, "{}", emulated.ended.story());
        emulated
    }
}

/// End and report of a run.
pub(crate) struct Emulated {
    pub(crate) ended: Ended,
    pub(crate) report: Value,
}

impl Emulated {
    /// Returns `true` if the emulator was punctual enough by its own report.
    pub(crate) fn is_valid(&self) -> bool {
        self.report["valid"].as_bool().unwrap_or_else(|| panic!("no verdict in {}", self.report))
    }

    /// Returns the near program's output, which is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.ended.story()))
    }
}

/// Runs one emulation for each of `cases`, all at the same time. Runs that did not keep time are repeated, one by one.
/// `start` gets a case and a suffix for its label. The results are in the order of the cases.
pub(crate) fn judged<C>(what: &str, cases: &[C], start: impl Fn(&C, &str) -> Emulation) -> Vec<Emulated> {
    let mut results: Vec<Option<Emulated>> = cases.iter().map(|_| None).collect();
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    for attempt in 1..=ATTEMPTS {
        let open = (0..cases.len()).filter(|&n| results[n].is_none());
        let open: Vec<_> = open.collect();
        for together in open.chunks(if attempt == 1 { cases.len() } else { 1 }) {
            let start = |&n: &usize| (n, start(&cases[n], &format!("-{attempt}")));
            let running: Vec<_> = together.iter().map(start).collect();
            for (n, one) in running {
                results[n] = Some(one.succeed()).filter(Emulated::is_valid);
            }
        }
        if results.iter().all(Option::is_some) {
            return results.into_iter().flatten().collect();
        }
    }
    panic!("{what}: not judged, because this machine was too busy for real time in {ATTEMPTS} runs");
}

/// Returns the path of a program that a Debian package provides.
pub(crate) fn need(program: &str, package: &str) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = path.split(':').map(|dir| Path::new(dir).join(program)).find(|file| file.is_file());
    let found = found.unwrap_or_else(|| {
        panic!("this test needs {program}, which the Debian package {package} brings; run scripts/setup")
    });
    found.to_str().unwrap().to_owned()
}

/// Returns the median: the middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of nothing");
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}
