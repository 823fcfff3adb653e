//! Parts that the tests share: a place with its own group, farcast processes that do not outlive their test, and trees
//! to send and to compare.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test binary uses its own part; tests may panic, wait, and say why they failed"
)]

pub(crate) mod forged;
pub(crate) mod refused;
pub(crate) mod stage;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

/// Time after which a process is taken to hang. No test here measures speed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Directory of one test, with a group of its own on the loopback interface.
pub(crate) struct Place {
    dir: TempDir,
    /// Group that `send` sends to and `receive` listens on.
    pub(crate) group: String,
    /// Port of the group.
    pub(crate) port: u16,
    /// Value of `--interface`.
    pub(crate) interface: &'static str,
}

impl Place {
    pub(crate) fn new() -> Self {
        let (port, x, y) = unique();
        Self {
            dir: tempfile::tempdir().unwrap(),
            group: format!("239.255.{x}.{y}:{port}"),
            port,
            interface: "127.0.0.1",
        }
    }

    /// Makes a place with another group, which `group` makes from a port that no other test has.
    pub(crate) fn with_group(group: impl FnOnce(u16) -> String) -> Self {
        let place = Self::new();
        Self { group: group(place.port), ..place }
    }

    /// Sets another `--interface`.
    pub(crate) fn on(self, interface: &'static str) -> Self {
        Self { interface, ..self }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file of `len` bytes that do not compress.
    pub(crate) fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, noise(len as u64 + u64::from(self.port), len)).unwrap();
        path
    }

    /// Returns the command `farcast`, with its state and configuration in this place.
    pub(crate) fn farcast<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farcast"));
        command
            .args(args)
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"));
        for variable in ["FARCAST_KEY", "FARCAST_KEY_FILE", "FARCAST_TRUST_FILE"] {
            command.env_remove(variable);
        }
        command
    }

    /// Returns the command line `farcast send PATHS --to GROUP --interface lo ARGS`.
    pub(crate) fn send_command(&self, paths: &[&Path], args: &[&str]) -> Command {
        let mut command = self.farcast(["send"]);
        command.args(paths).args(["--to", &self.group, "--interface", self.interface]).args(args);
        command
    }

    /// Returns the command line `farcast receive --from GROUP --interface lo --into NAME --name NAME ARGS`.
    pub(crate) fn receive_command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = self.farcast(["receive", "--from", &self.group, "--interface", self.interface]);
        command.args(["--name", name]).arg("--into").arg(self.path(name)).args(args);
        command
    }

    /// Starts a sender that prints JSON.
    pub(crate) fn send(&self, paths: &[&Path], args: &[&str]) -> Running {
        let mut command = self.send_command(paths, args);
        command.arg("--json");
        self.start("sender", command)
    }

    /// Starts a receiver `name` that prints JSON and ends after one product. Returns once it listens.
    pub(crate) fn receive(&self, name: &str, args: &[&str]) -> Running {
        let mut command = self.receive_command(name, args);
        command.args(["--once", "--json"]);
        let running = self.start(name, command);
        running.until("listening");
        running
    }

    /// Starts `command`, and keeps its output in files of this place.
    pub(crate) fn start(&self, label: &str, mut command: Command) -> Running {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (out, err) =
            (self.path(&format!("{label}-{count}.out")), self.path(&format!("{label}-{count}.err")));
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        if !format!("{command:?}").contains("--start-on-enter") {
            command.stdin(Stdio::null());
        }
        let child = command.spawn().unwrap();
        Running { label: format!("{label}-{count}"), child, out, err }
    }

    /// Runs `command` to its end.
    pub(crate) fn run(&self, label: &str, command: Command) -> Ended {
        self.start(label, command).wait()
    }

    /// Asserts that each of `receivers` has `path` under its base name, byte for byte.
    pub(crate) fn assert_received(&self, path: &Path, receivers: &[&str]) {
        for name in receivers {
            assert_same(path, &self.path(name).join(path.file_name().unwrap()));
            assert_clean(&self.path(name));
        }
    }
}

/// Process that is killed when its test ends.
pub(crate) struct Running {
    label: String,
    pub(crate) child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Returns the JSON lines so far. Each of them must parse.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.stdout())
    }

    /// Returns `true` if this event was printed.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.events().iter().any(|event| event["event"] == kind)
    }

    /// Waits until this event is printed, and returns the first of its kind.
    pub(crate) fn until(&self, kind: &str) -> Value {
        self.until_nth(kind, 1)
    }

    /// Waits until this event is printed the `n`th time.
    pub(crate) fn until_nth(&self, kind: &str, n: usize) -> Value {
        let mut found = None;
        wait_until(&format!("{}: event {kind} number {n}", self.label), || {
            found = self.events().into_iter().filter(|event| event["event"] == kind).nth(n - 1);
            found.is_some() || fs::read_to_string(&self.err).unwrap().contains("farcast: ")
        });
        found.unwrap_or_else(|| panic!("{}: no {kind} event: {}", self.label, self.stderr()))
    }

    /// Sends SIGKILL. The process is gone when this returns.
    pub(crate) fn kill9(mut self) -> Ended {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(mut self) -> Ended {
        let mut status = None;
        wait_until(&format!("the end of {}", self.label), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        Ended {
            label: self.label.clone(),
            code: status.unwrap().code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }

    /// Waits for the end of the process, which must be a success.
    pub(crate) fn succeed(self) -> Ended {
        let ended = self.wait();
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where all went well, the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let out = fs::read_to_string(&self.out).unwrap_or_default();
            let err = fs::read_to_string(&self.err).unwrap_or_default();
            eprintln!("--- {} printed:\n{}\n--- and said:\n{err}", self.label, tail(&out));
        }
    }
}

/// Exit code and output of a process that has ended.
pub(crate) struct Ended {
    label: String,
    /// Exit code, or `None` if a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.stdout)
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// Returns the only summary.
    pub(crate) fn summary(&self) -> Value {
        let mut all = self.all("summary");
        assert_eq!(all.len(), 1, "{}", self.story());
        all.remove(0)
    }

    /// Returns the exit code and all output, for a failing assertion.
    pub(crate) fn story(&self) -> String {
        format!("{} ended with {:?}\n{}\n{}", self.label, self.code, tail(&self.stdout), self.stderr)
    }

    /// Asserts the exit code, and that standard error has these parts.
    pub(crate) fn assert_failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.story());
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in what it said: {}", self.story());
        }
    }

    /// Asserts the exit code, and that standard error is one sentence with these parts.
    pub(crate) fn assert_one_sentence(&self, code: i32, parts: &[&str]) {
        self.assert_failed(code, parts);
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with("farcast: "), "{}", self.story());
    }
}

/// Returns the DTUs of all passes by a sender's summary.
pub(crate) fn dtus_sent(summary: &Value) -> u64 {
    summary["dtus_per_pass"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
}

/// Returns the segments of a sender's product, with the default length of datagrams over IPv4.
pub(crate) fn segments(summary: &Value) -> u64 {
    summary["size_bytes"].as_u64().unwrap().div_ceil(1432)
}

/// Returns the entry for the receiver `name` in a sender's summary.
pub(crate) fn member<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let members = summary["receivers"].as_array().unwrap();
    members.iter().find(|one| one["receiver"] == name).unwrap_or_else(|| panic!("no {name} in {summary}"))
}

/// Waits until `done` returns `true`, for [`PATIENCE`] at most.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited {} s in vain for {what}", PATIENCE.as_secs());
        sleep(LOOK_AGAIN);
    }
}

pub(crate) fn pause(time: Duration) {
    sleep(time);
}

/// Returns bytes that do not compress.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut out);
    out
}

pub(crate) fn digest(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let file = fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    hasher.update_reader(file).unwrap();
    hasher.finalize()
}

/// Asserts that two files or trees are equal. It compares names, bytes, modification times of files, and permission
/// bits as far as the umask allows them.
pub(crate) fn assert_same(sent: &Path, got: &Path) {
    let at = got.display();
    let (a, b) = (fs::symlink_metadata(sent).unwrap(), fs::symlink_metadata(got));
    let b = b.unwrap_or_else(|error| panic!("{at}: {error}"));
    assert_eq!(a.file_type(), b.file_type(), "{at}");
    assert_eq!(received_mode(a.mode()), b.mode() & 0o7777, "mode of {at}");
    if a.is_dir() {
        assert_eq!(names(sent), names(got), "entries of {at}");
        for name in names(sent) {
            assert_same(&sent.join(&name), &got.join(&name));
        }
        return;
    }
    assert_eq!(a.len(), b.len(), "length of {at}");
    assert_eq!((a.mtime(), a.mtime_nsec()), (b.mtime(), b.mtime_nsec()), "modification time of {at}");
    assert!(digest(sent) == digest(got), "content of {at}");
}

/// Returns the permission bits that a receiver gives to a new file. The umask takes none of its owner's bits.
fn received_mode(sent: u32) -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    sent & 0o777 & !(u32::from_str_radix(umask.trim(), 8).unwrap() & 0o077)
}

/// Asserts that no partial file and no journal is left anywhere below `dir`.
pub(crate) fn assert_clean(dir: &Path) {
    for name in names(dir) {
        assert!(!name.starts_with(".farcast"), "{name} is left in {}", dir.display());
        if dir.join(&name).is_dir() {
            assert_clean(&dir.join(&name));
        }
    }
}

/// Returns the sorted names in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut all: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

/// Sets permission bits and a modification time, in ns since 1970.
pub(crate) fn dress(path: &Path, mode: u32, mtime_ns: u64) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(mtime_ns)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the command for a receiver into a file system of its own, which is mounted with `options` where no other
/// process sees it. The file `left` of the place lists what the receiver leaves there.
pub(crate) fn into_mount(place: &Place, options: &str, args: &[&str]) -> Command {
    let (dir, list) = (place.path("ant"), place.path("left"));
    let script = format!("\"$@\"; code=$?; ls -A '{}' > '{}'; exit $code", dir.display(), list.display());
    scripted_into_mount(place, options, args, &script)
}

/// Returns the same command with a `script` that runs the receiver as `"$@"`. No other process can act in that file
/// system.
pub(crate) fn scripted_into_mount(place: &Place, options: &str, args: &[&str], script: &str) -> Command {
    need_root("a mount of its own");
    let dir = place.path("ant");
    fs::create_dir_all(&dir).unwrap();
    let receive = place.receive_command("ant", args);
    let script = format!("mount -t tmpfs -o {options} tmpfs '{}' || exit 77\n{script}", dir.display());
    let mut command = Command::new("unshare");
    // A process namespace too, so that nothing outlives the test.
    command.args(["-m", "-p", "--fork", "--kill-child", "--propagation", "private"]);
    command.args(["sh", "-c", &script, "sh"]).arg(receive.get_program()).args(receive.get_args());
    command.env("XDG_STATE_HOME", place.path("state")).env("XDG_CONFIG_HOME", place.path("config"));
    command
}

/// Waits for the journal of a receiver's first checkpoint, and returns its path.
pub(crate) fn wait_for_journal(dir: &Path) -> PathBuf {
    let mut found = None;
    wait_until(&format!("a journal in {}", dir.display()), || {
        let Ok(products) = fs::read_dir(dir.join(".farcast")) else { return false };
        found = products.map(|entry| entry.unwrap().path().join("journal")).find(|path| path.exists());
        found.is_some()
    });
    found.unwrap()
}

/// Kills the receiver `ant` after its second checkpoint.
pub(crate) fn kill_midway(place: &Place, killed: Running) {
    let journal = wait_for_journal(&place.path("ant"));
    let changed = || fs::metadata(&journal).and_then(|stat| stat.modified()).ok();
    let first = changed();
    wait_until("a second checkpoint", || changed() != first);
    killed.kill9();
    assert!(!place.path("ant").join("product.bin").exists(), "a file that is not complete has no name");
}

/// Returns the segments of all rounds by a summary that counts them by round.
pub(crate) fn rounds_sent(summary: &Value) -> u64 {
    summary["segments_per_round"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
}

/// Panics with a remedy if this process is not root.
pub(crate) fn need_root(what: &str) {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root for {what}; run `sudo -E cargo test`, or inside `unshare -Urnm` with tmpfs on /run"
    );
}

/// Hosts on one bridge, each in its own network namespace. They are removed when this is dropped.
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// Makes `count` hosts with the addresses `10.77.0.1` and `fd77::1`, `10.77.0.2` and `fd77::2`, and so on, on
    /// `eth0`.
    pub(crate) fn new(count: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        need_root("network namespaces");
        let prefix = format!("fc{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut hosts = Self { names: vec![format!("{prefix}-bridge")] };
        let bridge = hosts.names[0].clone();
        ip(&["netns", "add", &bridge]);
        ip(&["-n", &bridge, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"]);
        ip(&["-n", &bridge, "link", "set", "br0", "up"]);
        for n in 1..=count {
            let name = format!("{prefix}-{n}");
            ip(&["netns", "add", &name]);
            hosts.names.push(name.clone());
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            hosts.plug(n);
        }
        hosts
    }

    /// Gives host `n` a new interface `eth0` with its addresses.
    pub(crate) fn plug(&self, n: usize) {
        let (bridge, name, port) = (&self.names[0], &self.names[n], format!("port{n}"));
        // The hardware address is the same each time, as of one card that is plugged again.
        let card = format!("02:77:00:00:00:{n:02x}");
        ip(&[
            "-n", bridge, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "address", &card,
            "netns", name,
        ]);
        ip(&["-n", bridge, "link", "set", &port, "master", "br0", "up"]);
        ip(&["-n", name, "address", "add", &format!("10.77.0.{n}/24"), "dev", "eth0"]);
        ip(&["-n", name, "address", "add", &format!("fd77::{n}/64"), "dev", "eth0", "nodad"]);
        ip(&["-n", name, "link", "set", "eth0", "up"]);
    }

    /// Removes the `eth0` of host `n`, like an unplugged USB adapter.
    pub(crate) fn unplug(&self, n: usize) {
        ip(&["-n", &self.names[n], "link", "delete", "eth0"]);
    }

    /// Returns `command` for running at host `n`.
    pub(crate) fn at(&self, n: usize, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &self.names[n]]).arg(command.get_program()).args(command.get_args());
        let set = command.get_envs().filter_map(|(key, value)| value.map(|value| (key, value)));
        there.envs(set);
        there
    }

    /// Runs `ip ARGS` for host `n`.
    pub(crate) fn ip(&self, n: usize, args: &[&str]) {
        ip(&[&["-n", self.names[n].as_str()], args].concat());
    }

    /// Waits until host `n` has made a link-local IPv6 address that no other host has.
    pub(crate) fn wait_for_link_local(&self, n: usize) {
        wait_until("a link-local address", || {
            let mut show = Command::new("ip");
            show.args(["-n", &self.names[n], "-6", "address", "show", "dev", "eth0", "scope", "link"]);
            let shown = show.arg("-tentative").output().unwrap().stdout;
            String::from_utf8_lossy(&shown).contains("fe80:")
        });
    }

    /// Drops all packets to and from host `n` on their path, until [`mend`](Self::mend).
    pub(crate) fn cut(&self, n: usize) {
        let rule = format!(
            "table bridge cut {{\nchain on_the_way {{\ntype filter hook forward priority 0;\n\
             iifname \"port{n}\" drop\noifname \"port{n}\" drop\n}}\n}}\n"
        );
        self.nft_on_the_way(&[&rule]);
    }

    /// Drops all packets from host `n` on their path. Packets to it pass.
    pub(crate) fn mute(&self, n: usize) {
        let rule = format!(
            "table bridge mute{n} {{\nchain on_the_way {{\ntype filter hook forward priority 0;\n\
             iifname \"port{n}\" drop\n}}\n}}\n"
        );
        self.nft_on_the_way(&[&rule]);
    }

    /// Drops IP packets of more than `octets` to and from host `n`, without any notice.
    pub(crate) fn drop_longer(&self, n: usize, octets: u32) {
        let rule = format!(
            "table bridge narrow{n} {{\nchain on_the_way {{\ntype filter hook forward priority 0;\n\
             iifname \"port{n}\" meta length > {octets} drop\noifname \"port{n}\" meta length > {octets} drop\n}}\n}}\n"
        );
        self.nft_on_the_way(&[&rule]);
    }

    /// Sets the MTU of the bridge's port to host `n`. The port drops longer packets, except batches that no card has
    /// cut yet.
    pub(crate) fn shrink(&self, n: usize, mtu: &str) {
        ip(&["-n", &self.names[0], "link", "set", &format!("port{n}"), "mtu", mtu]);
        ip(&["-n", &self.names[0], "link", "set", "br0", "mtu", "1500"]);
    }

    /// Makes host `router` a router with its own link to host `end`, which carries packets of `mtu` octets. The
    /// addresses there are `10.78.0.N`, and `fd78::N` if the link carries IPv6. With `says`, the router notifies the
    /// senders of packets that are too long.
    pub(crate) fn route(&self, router: usize, end: usize, mtu: &str, says: bool) {
        let far = self.names[end].clone();
        self.ip(router, &["link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", &far]);
        let carries_ipv6 = mtu.parse::<u32>().unwrap() >= 1280;
        for n in [router, end] {
            // The test does not wait for the check that addresses are unique.
            self.sysctl(n, "net.ipv6.conf.eth1.accept_dad=0");
            self.ip(n, &["link", "set", "eth1", "up", "mtu", mtu]);
            self.ip(n, &["address", "add", &format!("10.78.0.{n}/24"), "dev", "eth1"]);
            if carries_ipv6 {
                self.ip(n, &["address", "add", &format!("fd78::{n}/64"), "dev", "eth1", "nodad"]);
            }
        }
        self.ip(end, &["address", "flush", "dev", "eth0"]);
        self.ip(end, &["route", "add", "default", "via", &format!("10.78.0.{router}")]);
        self.ip(1, &["route", "add", "10.78.0.0/24", "via", &format!("10.77.0.{router}")]);
        if carries_ipv6 {
            self.ip(end, &["-6", "route", "add", "default", "via", &format!("fd78::{router}")]);
            self.ip(1, &["-6", "route", "add", "fd78::/64", "via", &format!("fd77::{router}")]);
        }
        self.sysctl(router, "net.ipv4.ip_forward=1");
        self.sysctl(router, "net.ipv6.conf.all.forwarding=1");
        if !says {
            let mut nft = Command::new("nft");
            nft.arg(
                "table inet quiet {\nchain out {\ntype filter hook output priority 0;\n\
                 icmp type destination-unreachable drop\nicmpv6 type packet-too-big drop\n}\n}\n",
            );
            run(&mut self.at(router, &nft));
        }
    }

    /// Sets a kernel setting of host `n`.
    pub(crate) fn sysctl(&self, n: usize, setting: &str) {
        let mut sysctl = Command::new("sysctl");
        sysctl.args(["-qw", setting]);
        run(&mut self.at(n, &sysctl));
    }

    /// Returns the octets that host `n` has sent from its `eth0`, with Ethernet headers.
    pub(crate) fn sent_by(&self, n: usize) -> u64 {
        let mut cat = Command::new("cat");
        cat.arg("/sys/class/net/eth0/statistics/tx_bytes");
        let read = self.at(n, &cat).output().unwrap().stdout;
        String::from_utf8_lossy(&read).trim().parse().unwrap()
    }

    /// Lets all packets pass again.
    pub(crate) fn mend(&self) {
        self.nft_on_the_way(&["delete", "table", "bridge", "cut"]);
    }

    fn nft_on_the_way(&self, args: &[&str]) {
        run(Command::new("ip").args(["netns", "exec", &self.names[0], "nft"]).args(args));
    }

    /// Makes host `n` lose `percent` of its incoming UDP datagrams, independently.
    pub(crate) fn lose(&self, n: usize, percent: u32) {
        let rule = format!(
            "table netdev lossy {{\nchain in {{\ntype filter hook ingress device \"eth0\" priority 0;\n\
             meta l4proto udp numgen random mod 100 < {percent} counter drop\n}}\n}}\n"
        );
        let mut nft = Command::new("nft");
        nft.arg(&rule);
        run(&mut self.at(n, &nft));
    }
}

impl Hosts {
    /// Makes host `n` lose all incoming UDP datagrams for `ms` milliseconds, on average once in `every` datagrams.
    pub(crate) fn burst(&self, n: usize, ms: u32, every: u32) {
        let rule = format!(
            "table netdev bursts {{\nset bad {{ type inet_proto; flags dynamic, timeout; size 16; }}\n\
             chain in {{\ntype filter hook ingress device \"eth0\" priority 0;\nmeta l4proto != udp accept\n\
             ip protocol @bad counter drop\nnumgen random mod {every} < 1 add @bad {{ ip protocol timeout {ms}ms }} drop\n\
             }}\n}}\n"
        );
        let mut nft = Command::new("nft");
        nft.arg(&rule);
        run(&mut self.at(n, &nft));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // If the first name could not be made, there is nothing to delete.
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
        }
    }
}

fn ip(args: &[&str]) {
    run(Command::new("ip").args(args));
}

/// Runs a tool, which must exist and succeed.
pub(crate) fn run(command: &mut Command) {
    let said = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| {
        panic!("{said}: {error}; this test needs the Debian packages iproute2, nftables and util-linux")
    });
    assert!(output.status.success(), "{said}: {}", String::from_utf8_lossy(&output.stderr));
}

fn events(text: &str) -> Vec<Value> {
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text[..end].lines().map(parse).collect()
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Returns a port and two address bytes that no other running test on this machine has.
fn unique() -> (u16, u8, u8) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    // Below the kernel's range for ports of its own choice.
    let port = 10_000 + (pid * 64 + count) % 20_000;
    (port as u16, (pid % 250) as u8 + 1, (count % 250) as u8 + 1)
}
