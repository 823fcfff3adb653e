//! Remains of a run: there are none, however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::run::{Emulate, Way, link};
use crate::common::{Ended, Place, Running, names, wait_until};

/// Number of `sleep` processes in a run: one at the near end, two at the far end. One of the latter has left its
/// session and ignores the signals that ask it to end.
const SLEEPS: usize = 3;

/// Process with a marker among its arguments.
struct Process {
    pid: Pid,
    arguments: String,
    /// Network namespace, such as `net:[4026532008]`. `None` if the process has just ended.
    network: Option<String>,
}

impl Process {
    /// Returns `true` for a `sleep`. Each argument ends with a NUL.
    fn is_sleep(&self) -> bool {
        self.arguments.starts_with("sleep\0")
    }
}

fn marked(marker: &str) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let entry = entry.unwrap();
        let Ok(number) = entry.file_name().to_string_lossy().parse() else { continue };
        // A process may end while it is looked at.
        let Ok(arguments) = fs::read(entry.path().join("cmdline")) else { continue };
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        if arguments.contains(marker) {
            let network = fs::read_link(entry.path().join("ns/net")).ok();
            let network = network.map(|path| path.to_string_lossy().into_owned());
            found.push(Process { pid: Pid::from_raw(number).unwrap(), arguments, network });
        }
    }
    found
}

/// Run whose programs sleep for an hour. All its processes, farcast's own included, have a word among their arguments
/// that no other process has.
struct Sleepers {
    place: Place,
    running: Running,
    marker: String,
    networks: BTreeSet<String>,
}

impl Sleepers {
    fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // `sleep` takes a fraction.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let marker = format!("3600.{:07}{count:03}", std::process::id());
        let (place, way) = (Place::new(), Way::new(10_000_000, 5, 100_000));
        fs::create_dir(place.path("temporary")).unwrap();
        let mut command = Emulate::toml(&place, "sleepers", &link(way, way))
            .far(&format!("exec sleep {marker}"))
            .far(&format!("setsid sh -c 'trap \"\" INT TERM HUP; sleep {marker}; exec sleep {marker}'"))
            .near(&format!("sleep {marker} & wait"))
            .options(&["--quiet"])
            .command();
        for variable in ["TMPDIR", "XDG_RUNTIME_DIR"] {
            command.env(variable, place.path("temporary"));
        }
        // Like a shell with job control, so that a signal to the group is not one to this test.
        command.process_group(0);
        let running = place.start("sleepers", command);
        let mut networks = BTreeSet::new();
        wait_until("programs at both ends", || {
            let all = marked(&marker);
            let sleeps: Vec<&Process> = all.iter().filter(|process| process.is_sleep()).collect();
            networks = sleeps.iter().filter_map(|process| process.network.clone()).collect();
            assert!(!running.stderr().contains("farcast: "), "{}", running.stderr());
            sleeps.len() == SLEEPS
        });
        assert_eq!(networks.len(), 2, "a namespace at each end: {networks:?}");
        Self { place, running, marker, networks }
    }

    fn farcast(&self) -> Pid {
        Pid::from_child(&self.running.child)
    }

    /// Returns the process that holds the namespaces: farcast's only child.
    fn holder(&self) -> Pid {
        let pid = self.farcast().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    /// Waits until nothing of the run is left. Returns the end of farcast.
    fn gone(self) -> Ended {
        let Self { place, running, marker, networks } = self;
        let ended = running.wait();
        wait_until("the end of all programs", || marked(&marker).is_empty());
        // Without a process, a namespace lives on in a mount only.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!networks.iter().any(|name| mounts.contains(name)), "{networks:?} mounted: {mounts}");
        assert!(!Path::new("/sys/class/net/farcast0").exists(), "a device is left in our namespace");
        assert_eq!(names(&place.path("temporary")), [""; 0], "files are left");
        ended
    }
}

#[test]
fn after_kill_9() {
    let run = Sleepers::start();
    kill_process(run.farcast(), Signal::KILL).unwrap();
    assert_eq!(run.gone().code, None);
}

#[test]
fn after_kill_9_of_the_process_that_holds_the_namespaces() {
    let run = Sleepers::start();
    kill_process(run.holder(), Signal::KILL).unwrap();
    let ended = run.gone();
    ended.assert_failed(125, &["farcast: "]);
}

#[test]
fn after_a_request_to_end() {
    let run = Sleepers::start();
    kill_process(run.farcast(), Signal::TERM).unwrap();
    let ended = run.gone();
    assert_eq!(ended.code, Some(128 + 15), "{}", ended.story());
}

#[test]
fn after_ctrl_c() {
    let run = Sleepers::start();
    kill_process_group(run.farcast(), Signal::INT).unwrap();
    let ended = run.gone();
    assert_eq!(ended.code, Some(128 + 2), "{}", ended.story());
}

#[test]
fn after_the_near_programs_end() {
    let run = Sleepers::start();
    let arguments = format!("sh\0-c\0sleep {} & wait\0", run.marker);
    let all = marked(&run.marker);
    let near = all.iter().find(|process| process.arguments == arguments).unwrap();
    kill_process(near.pid, Signal::KILL).unwrap();
    let ended = run.gone();
    assert_eq!(ended.code, Some(128 + 9), "{}", ended.story());
}
