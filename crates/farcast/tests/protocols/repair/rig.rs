//! A source behind a satellite, and an island behind a router, as network namespaces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Namespaces that are removed when this is dropped.
pub(crate) struct Rig {
    prefix: String,
    names: Vec<String>,
    sky: Option<Process>,
    counts: PathBuf,
}

/// Process that is killed when its test ends.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Where all went well, the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// PGM packets by direction and type.
pub(crate) type Carried = BTreeMap<String, BTreeMap<String, u64>>;

impl Rig {
    /// Makes the namespaces. The router has `sat0`, 10.78.1.2, towards the source, 10.78.1.1. It has `isle0`,
    /// 10.78.2.1, towards the receivers, 10.78.2.11 and so on. The link to the source takes `one_way_ms` in each
    /// direction.
    pub(crate) fn new(receivers: usize, one_way_ms: u32, place: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        assert!(
            rustix::process::geteuid().is_root(),
            "this test needs root for network namespaces; run `sudo -E cargo test`, or inside `unshare -Urn`"
        );
        let prefix = format!("fr{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut rig = Self { prefix, names: Vec::new(), sky: None, counts: place.join("carried.json") };
        let hosts = (1..=receivers).map(host);
        for name in ["source", "sky", "router"].map(String::from).into_iter().chain(hosts) {
            let full = rig.full(&name);
            run("ip", &["netns", "add", &full]);
            rig.names.push(full);
            rig.ip(&name, &["link", "set", "lo", "up"]);
        }
        rig.wire(("sky", "south"), ("source", "eth0"));
        rig.wire(("sky", "north"), ("router", "sat0"));
        rig.ip("source", &["address", "add", "10.78.1.1/24", "dev", "eth0"]);
        rig.ip("router", &["address", "add", "10.78.1.2/24", "dev", "sat0"]);
        rig.ip("router", &["link", "add", "isle0", "type", "bridge", "mcast_snooping", "0"]);
        rig.ip("router", &["address", "add", "10.78.2.1/24", "dev", "isle0"]);
        rig.ip("router", &["link", "set", "isle0", "up"]);
        run("ip", &["netns", "exec", &rig.full("router"), "sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        rig.ip("source", &["route", "add", "default", "via", "10.78.1.2"]);
        for n in 1..=receivers {
            let name = host(n);
            rig.wire(("router", &format!("port{n}")), (&name, "eth0"));
            rig.ip("router", &["link", "set", &format!("port{n}"), "master", "isle0"]);
            rig.ip(&name, &["address", "add", &format!("10.78.2.{}/24", 10 + n), "dev", "eth0"]);
            rig.ip(&name, &["route", "add", "default", "via", "10.78.2.1"]);
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocols/repair/sky.py");
        let mut sky = rig.at("sky", "python3");
        let seconds = f64::from(one_way_ms) / 1000.0;
        sky.args([script, "south", "north", &seconds.to_string()]).arg(&rig.counts);
        rig.sky = Some(Process(sky.spawn().unwrap()));
        // It writes them before it carries anything.
        let end = Instant::now() + Duration::from_mins(1);
        while !rig.counts.exists() {
            assert!(Instant::now() < end, "the satellite does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        rig
    }

    fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn wire(&self, (a, a_name): (&str, &str), (b, b_name): (&str, &str)) {
        let (near, far) = (self.full(a), self.full(b));
        run(
            "ip",
            &["-n", &near, "link", "add", a_name, "type", "veth", "peer", "name", b_name, "netns", &far],
        );
        self.ip(a, &["link", "set", a_name, "up"]);
        self.ip(b, &["link", "set", b_name, "up"]);
        // A packet socket would carry checksums that are left to hardware that is not there.
        for (host, name) in [(near, a_name), (far, b_name)] {
            run(
                "ip",
                &["netns", "exec", &host, "ethtool", "-K", name, "tx", "off", "gso", "off", "gro", "off"],
            );
        }
    }

    fn ip(&self, name: &str, args: &[&str]) {
        run("ip", &[&["-n", self.full(name).as_str()], args].concat());
    }

    /// Makes receiver `n` lose `percent` of its incoming PGM packets, independently.
    pub(crate) fn lose(&self, n: usize, percent: u32) {
        let rule = format!(
            "table netdev lossy {{\nchain in {{\ntype filter hook ingress device \"eth0\" priority 0;\n\
             ip protocol {{ 17, 113 }} numgen random mod 100 < {percent} counter drop\n}}\n}}\n"
        );
        run("ip", &["netns", "exec", &self.full(&host(n)), "nft", &rule]);
    }

    /// Returns `program` for running at host `name`.
    pub(crate) fn at(&self, name: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.full(name), program]);
        command.stdin(Stdio::null());
        command
    }

    /// Returns the packets that the satellite has carried.
    pub(crate) fn carried(&self) -> Carried {
        // It writes them each tenth of a second.
        std::thread::sleep(Duration::from_millis(300));
        std::fs::read_to_string(&self.counts)
            .map_or_else(|_| Carried::new(), |said| serde_json::from_str(&said).unwrap())
    }
}

/// Returns the name of receiver `n`.
pub(crate) fn host(n: usize) -> String {
    format!("r{n}")
}

fn run(program: &str, args: &[&str]) {
    let out = Command::new(program).args(args).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.sky.take());
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
        }
    }
}
