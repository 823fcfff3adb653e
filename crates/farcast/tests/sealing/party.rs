//! Hosts with keys, and an enemy on their network.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use farcast_seal::{Identity, Kind};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::{Place, Running, forged, need_root, run, wait_until};

/// Hosts on one network, each with a key of its own. The host `ann` sends.
pub(crate) struct Parties {
    pub(crate) place: Place,
}

impl Parties {
    /// Makes `ann` and these receivers, which have each other's keys.
    pub(crate) fn new(receivers: &[&str]) -> Self {
        Self::in_place(Place::new(), receivers)
    }

    pub(crate) fn in_place(place: Place, receivers: &[&str]) -> Self {
        let parties = Self { place };
        parties.make("ann");
        for name in receivers {
            parties.make(name);
            parties.trust("ann", name, "receiver");
            parties.trust(name, "ann", "sender");
        }
        parties
    }

    /// Makes a key for `name`.
    pub(crate) fn make(&self, name: &str) {
        run(&mut self.at(name, &["key", "new", name]));
    }

    /// Returns the secrets of `name`.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        let path = self.place.path(&format!("config-{name}")).join("farcast/key");
        let text = std::fs::read_to_string(path).unwrap();
        let secret = text.split_whitespace().find(|word| word.starts_with("farcast-secret-1:")).unwrap();
        Identity::from_secret_text(secret).unwrap()
    }

    /// Makes `name` trust `other`.
    pub(crate) fn trust(&self, name: &str, other: &str, role: &str) {
        let shown = self.at(other, &["key", "show"]).output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        let line = text.lines().find(|line| !line.starts_with('#')).unwrap();
        run(&mut self.at(name, &["key", "trust", line, "--as", role]));
    }

    /// Returns the command `farcast` at the host `name`.
    pub(crate) fn at(&self, name: &str, args: &[&str]) -> Command {
        self.own(name, self.place.farcast(args))
    }

    pub(crate) fn own(&self, name: &str, mut command: Command) -> Command {
        command
            .env("XDG_CONFIG_HOME", self.place.path(&format!("config-{name}")))
            .env("XDG_STATE_HOME", self.place.path(&format!("state-{name}")));
        command
    }

    /// Starts a receiver.
    pub(crate) fn receive(&self, name: &str, args: &[&str]) -> Running {
        let mut command = self.own(name, self.place.receive_command(name, args));
        command.arg("--json");
        let running = self.place.start(name, command);
        running.until("listening");
        running
    }

    /// Starts `ann`'s sender.
    pub(crate) fn send(&self, file: &Path, args: &[&str]) -> Running {
        let mut command = self.own("ann", self.place.send_command(&[file], args));
        command.arg("--json");
        self.place.start("ann", command)
    }
}

/// Returns the number of datagrams that were refused for `reason`, by a summary.
pub(crate) fn refused(summary: &Value, reason: &str) -> u64 {
    let all = summary["seal"]["refused"].as_array().unwrap_or_else(|| panic!("sealed: {summary}"));
    all.iter().filter(|one| one["reason"] == reason).map(|one| one["count"].as_u64().unwrap()).sum()
}

/// Datagrams with their source addresses.
pub(crate) type Record = Vec<(SocketAddr, Vec<u8>)>;

/// Enemy on the network, who hears multicast and may claim any address.
pub(crate) struct Enemy {
    group: SocketAddr,
    heard: Arc<Mutex<Record>>,
    stop: Arc<AtomicBool>,
    hearing: Option<JoinHandle<()>>,
}

impl Enemy {
    /// Starts to record all datagrams to the group.
    pub(crate) fn new(place: &Place) -> Self {
        let group: SocketAddr = place.group.parse().unwrap();
        let SocketAddr::V4(v4) = group else { unreachable!() };
        let ears = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        ears.set_reuse_address(true).unwrap();
        ears.set_recv_buffer_size(8 << 20).unwrap();
        ears.bind(&group.into()).unwrap();
        ears.join_multicast_v4(v4.ip(), &Ipv4Addr::LOCALHOST).unwrap();
        let ears = UdpSocket::from(ears);
        ears.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (heard, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (into, until) = (Arc::clone(&heard), Arc::clone(&stop));
        let hearing = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while !until.load(Ordering::Relaxed) {
                if let Ok((len, from)) = ears.recv_from(&mut buffer) {
                    into.lock().unwrap().push((from, buffer[..len].to_vec()));
                }
            }
        });
        Self { group, heard, stop, hearing: Some(hearing) }
    }

    /// Returns the record so far.
    pub(crate) fn record(&self) -> Record {
        self.heard.lock().unwrap().clone()
    }

    /// Waits for the first datagram of which `find` returns something, and returns that.
    pub(crate) fn await_first<T>(&self, what: &str, find: impl Fn(&SocketAddr, &[u8]) -> Option<T>) -> T {
        let mut found = None;
        wait_until(what, || {
            found = self.heard.lock().unwrap().iter().find_map(|(from, datagram)| find(from, datagram));
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for the first keys that were sent, and returns them with their source address.
    pub(crate) fn keys(&self) -> (SocketAddr, Vec<u8>) {
        let is_keys = |datagram: &[u8]| Kind::of(datagram) == Some(Kind::Keys);
        self.await_first("keys", |from, datagram| is_keys(datagram).then(|| (*from, datagram.to_vec())))
    }

    /// Waits for the first datagram, and returns its source address.
    pub(crate) fn server(&self) -> SocketAddr {
        self.await_first("a datagram", |from, _| Some(*from))
    }

    /// Multicasts `datagram` to the group with the forged source address `source`.
    pub(crate) fn claim(&self, datagram: &[u8], source: SocketAddr) {
        say(datagram, source, self.group);
    }
}

/// Sends `datagram` to `to` with the forged source address `source`.
pub(crate) fn say(datagram: &[u8], source: SocketAddr, to: SocketAddr) {
    need_root("datagrams in another's name");
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (source, to) else { unreachable!() };
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
    raw.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    raw.send_to(&forged::packet(from, to, datagram), &SocketAddr::V4(to).into()).unwrap();
}

impl Drop for Enemy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(hearing) = self.hearing.take() {
            let _ = hearing.join();
        }
    }
}
