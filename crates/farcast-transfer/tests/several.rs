//! Several transfers in one process: none disturbs another, and the process stays as it was.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests may panic, and wait")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use farcast_seal::Identity;
use farcast_transfer::{
    ErrorKind, ProtocolName, ReceiveUpdate, Receiver, SendError, SendEvent, SendOutcome, SendSummary,
    SendUpdate, Sender,
};

/// Set for the process in which the transfers run, to its directory.
const PLACE: &str = "FARCAST_TEST_PLACE";
/// Receivers of each transfer.
const RECEIVERS: [&str; 2] = ["bob", "cal"];
/// Longest time that all transfers may take.
const LIMIT: Duration = Duration::from_mins(2);
/// Longest wait for a receiver to listen.
const PATIENCE: Duration = Duration::from_mins(1);

/// Transfer with its receivers.
struct Transfer<'a> {
    place: &'a Path,
    name: &'static str,
    protocol: ProtocolName,
    group: &'static str,
    is_sealed: bool,
    octets: usize,
}

impl Transfer<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.place.join(format!("{}-{name}", self.name))
    }

    /// Returns the file that is sent. Files of different transfers have no octet in common at any place.
    fn content(&self) -> Vec<u8> {
        let first = self.name.as_bytes()[0];
        (0..self.octets).map(|at| (at as u8).wrapping_mul(31).wrapping_add(first)).collect()
    }

    fn receiver(&self, name: &str) -> Receiver {
        let builder = Receiver::builder().from(self.group).into(self.path(name)).name(name).once();
        let builder = builder.protocol(self.protocol).interface("127.0.0.1").simulate_loss(0.02);
        let builder = if self.is_sealed { builder.key(self.place.join(name)) } else { builder.unsealed() };
        builder.build().unwrap()
    }

    /// Starts the receiver `name`. Returns when it listens.
    fn listen<'s>(
        &'s self,
        scope: &'s thread::Scope<'s, '_>,
        name: &'s str,
    ) -> ScopedJoinHandle<'s, Vec<String>> {
        let (listening, listens) = mpsc::channel();
        let run = move || {
            let mut said = Vec::new();
            let result = self.receiver(name).receive_with(&mut |update| match update {
                ReceiveUpdate::Listening { .. } => drop(listening.send(())),
                ReceiveUpdate::Progress { name, .. } | ReceiveUpdate::Joined { name, .. } => said.push(name),
                ReceiveUpdate::Incomplete { reason, .. } => panic!("{reason}"),
                _ => {}
            });
            let products = result.unwrap_or_else(|error| panic!("{} to {name}: {error}", self.name));
            assert_eq!(products.len(), 1, "{} to {name}: {products:?}", self.name);
            said
        };
        let started = scope.spawn(run);
        listens.recv_timeout(PATIENCE).unwrap();
        started
    }

    fn sender(&self) -> Sender {
        let builder = Sender::builder().to(self.group).rate("20 Mbit/s").receivers(RECEIVERS);
        let builder = builder.protocol(self.protocol).interface("127.0.0.1");
        let builder = if self.is_sealed { builder.key(self.place.join("ann")) } else { builder.unsealed() };
        builder.build().unwrap()
    }

    /// Sends the file. Returns the receivers that had everything, as updates named them, and the summary.
    fn send(&self) -> (BTreeSet<String>, Result<SendSummary, SendError>) {
        let (path, mut served) = (self.path("file"), BTreeSet::new());
        fs::write(&path, self.content()).unwrap();
        let summary = self.sender().send_with([path], &mut |update| match update {
            SendUpdate::Event(SendEvent::Has(name)) => drop(served.insert(name)),
            SendUpdate::Began { name, .. } => assert_eq!(name, format!("{}-file", self.name)),
            _ => {}
        });
        (served, summary)
    }

    /// Sends the file to both receivers, and checks what each side has and was told.
    fn run(&self) {
        thread::scope(|scope| {
            let receivers = RECEIVERS.map(|name| (name, self.listen(scope, name)));
            let (served, summary) = self.send();
            let summary = summary.unwrap_or_else(|error| panic!("{}: {error}", self.name));
            assert_eq!(summary.outcome, SendOutcome::Done, "{}: {summary:?}", self.name);
            assert_eq!(summary.octets, self.octets as u64, "{}", self.name);
            assert_eq!(served.iter().map(String::as_str).collect::<Vec<_>>(), RECEIVERS, "{}", self.name);
            for (name, receiver) in receivers {
                let said = receiver.join().unwrap();
                let file = format!("{}-file", self.name);
                assert!(said.iter().all(|name| *name == file), "{} to {name}: {said:?}", self.name);
                self.check(name, &file);
            }
        });
    }

    /// Checks that the directory of a receiver has the file and nothing else.
    fn check(&self, receiver: &str, file: &str) {
        let entries = fs::read_dir(self.path(receiver)).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = entries.filter(|name| !name.as_encoded_bytes().starts_with(b".")).collect();
        assert_eq!(names, [file], "{} to {receiver}", self.name);
        let arrived = fs::read(self.path(receiver).join(file)).unwrap();
        assert!(arrived == self.content(), "{} to {receiver}: other content", self.name);
    }
}

/// Writes a key for each host into `place`, and the list by which all of them trust each other.
fn make_keys(place: &Path) {
    let mut trusted = Vec::new();
    for (number, name) in (1..).zip(["ann", "bob", "cal"]) {
        let identity = Identity::from_seed([number; 32]);
        let key = place.join(name);
        fs::write(&key, format!("{name} {}\n", *identity.to_secret_text())).unwrap();
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        trusted.push(format!("both {name} {}\n", identity.public()));
    }
    fs::write(place.join("trust"), trusted.concat()).unwrap();
}

/// Returns the signals that the process handles, and its working directory and mask of modes.
fn process_state() -> (Vec<String>, PathBuf) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let wanted = ["SigBlk:", "SigIgn:", "SigCgt:", "Umask:"];
    let lines = status.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name)));
    (lines.map(str::to_owned).collect(), std::env::current_dir().unwrap())
}

/// Runs six transfers at once, and a receiver that hears nobody and is cancelled meanwhile.
#[test]
fn transfers_in_this_process() {
    // Only the process that the other test starts has a place for it.
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    thread::spawn(|| {
        thread::sleep(LIMIT);
        // A transfer that does not end fails the test that waits for this process.
        std::process::abort();
    });
    make_keys(&place);
    let transfer = |(name, protocol, group, is_sealed, octets)| Transfer {
        place: &place,
        name,
        protocol,
        group,
        is_sealed,
        octets,
    };
    let transfers = [
        ("a", ProtocolName::Mftp, "239.79.1.1:5601", false, 600_000),
        ("b", ProtocolName::Mftp, "239.79.1.2:5602", true, 500_000),
        ("c", ProtocolName::Norm, "239.79.1.3:5603", false, 400_000),
        ("d", ProtocolName::Norm, "239.79.1.4:5604", true, 300_000),
        ("e", ProtocolName::Mftp, "239.79.1.5:5605", true, 200_000),
        ("f", ProtocolName::Norm, "239.79.1.6:5606", true, 100_000),
    ]
    .map(transfer);
    let before = process_state();
    let idle = transfer(("g", ProtocolName::Mftp, "239.79.1.7:5607", false, 0)).receiver("bob");
    thread::scope(|scope| {
        let cancel = idle.cancel();
        let heard_nobody = scope.spawn(move || idle.receive().unwrap_err());
        let running: Vec<_> = transfers.iter().map(|one| scope.spawn(|| one.run())).collect();
        thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        assert_eq!(heard_nobody.join().unwrap().kind, ErrorKind::Failed);
        for one in running {
            one.join().unwrap();
        }
    });
    assert_eq!(process_state(), before);
}

/// The process of its own has the environment that the keys need, and no output but the harness's.
#[test]
fn several_transfers_in_one_process_do_not_disturb_one_another() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transfers_in_this_process", "--nocapture"])
        .env(PLACE, place.path())
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .env("FARCAST_TRUST_FILE", place.path().join("trust"))
        .output()
        .unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{wrong}");
    assert_eq!(wrong, "", "the library prints nothing");
}
