//! Forwarding that outlives this process: kernel rules (nftables), which a `kill -9` leaves behind.
//!
//! There are two tables. The first one lasts, and forwards multicast of the protocol between two ports, except packets
//! with a mark. The second one marks all of these packets. Its owner is a child process, which ends when its standard
//! input closes.
//!
//! While this process lives, the kernel therefore forwards nothing. When this process dies, in whatever way, the kernel
//! removes the second table and forwards. Some packets are forwarded twice or not at all in these milliseconds; repairs
//! make up for them.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Port;

/// Mark of a packet on its way from one table to the other: "farc".
const MARK: u32 = 0x6661_7263;
/// Longest time that nft may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rules that forward after this process has died, and the child that keeps them from doing so before.
#[derive(Debug)]
pub(super) struct Heir {
    owner: Child,
    table: String,
}

impl Heir {
    /// Has the kernel forward `protocol` between two ports as soon as this process is gone. Rules that an earlier
    /// process has left are replaced.
    ///
    /// # Errors
    /// The reason why it cannot, as a part of a sentence.
    pub(super) fn appoint(ports: &[Port], protocol: u8) -> Result<Self, String> {
        let [one, other] = ports else {
            return Err("the kernel is told to forward between two interfaces only".into());
        };
        for Port { name, .. } in ports {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
                return Err(format!("nft cannot be told of an interface called {name}"));
            }
        }
        let table = format!("farcast/{}/{}", one.name, other.name);
        let alive = format!("{table}/alive");
        // A killed process's owner has just ended and its table goes; a living process's table stays.
        if !within_patience(|| exists(&alive).map(|exists| !exists))? {
            return Err(format!("another process stands between {} and {}", one.name, other.name));
        }
        let mut owner = nft(&["-i"]).spawn().map_err(|error| missing(&error))?;
        let told = owner
            .stdin
            .as_mut()
            .map_or(Ok(()), |stdin| stdin.write_all(marking(&alive, [one, other], protocol).as_bytes()));
        let heir = Self { owner, table };
        told.map_err(|error| missing(&error))?;
        if !within_patience(|| exists(&alive))? {
            return Err("nft or the kernel lacks tables with an owner (Linux 5.12), or CAP_NET_ADMIN".into());
        }
        let said = run(&forwarding(&heir.table, [one, other], protocol))?;
        if !said.status.success() {
            return Err(format!("nft refuses: {}", first_line(&said.stderr)));
        }
        Ok(heir)
    }

    /// Returns the name of the table that lasts.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// Removes the rules: a process that ends in order leaves no forwarding behind.
    pub(super) fn dismiss(self) {
        // If the rules are gone, or nft is, nothing is left to do.
        let _ = run(&format!("delete table netdev {}\n", self.table));
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        drop(self.owner.stdin.take());
        let _ = self.owner.wait();
    }
}

/// Returns the command nft, set up to keep no history in its user's home.
fn nft(args: &[&str]) -> Command {
    let mut nft = Command::new("nft");
    nft.args(args).env("HOME", "/dev/null");
    nft.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    nft
}

fn missing(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "nft (nftables) is not installed".into(),
        _ => format!("nft cannot be run: {error}"),
    }
}

/// Has nft apply all of `rules` or nothing.
fn run(rules: &str) -> Result<Output, String> {
    let mut child = nft(&["-f", "-"]).stderr(Stdio::piped()).spawn().map_err(|error| missing(&error))?;
    let told = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(rules.as_bytes()));
    let said = child.wait_with_output();
    told.and(said).map_err(|error| missing(&error))
}

fn exists(table: &str) -> Result<bool, String> {
    run(&format!("list table netdev {table}\n")).map(|said| said.status.success())
}

/// Returns `true` if `holds` returns `true` before the patience ends.
#[expect(clippy::disallowed_methods, reason = "the driver waits in real time, before it begins")]
fn within_patience(mut holds: impl FnMut() -> Result<bool, String>) -> Result<bool, String> {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        if Instant::now() >= end {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(true)
}

fn first_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().next().unwrap_or("it does not say why").to_owned()
}

/// Returns the rules that keep [`forwarding`] from forwarding, one command a line.
fn marking(alive: &str, ports: [&Port; 2], protocol: u8) -> String {
    let mut rules = format!("add table netdev {alive} {{ flags owner; }}\n");
    for (number, Port { name, .. }) in ports.iter().enumerate() {
        let _ = write!(
            rules,
            "add chain netdev {alive} port{number} {{ type filter hook ingress device \"{name}\" priority 5; }}\n\
             add rule netdev {alive} port{number} ip protocol {protocol} ip daddr 224.0.0.0/4 meta mark set {MARK}\n"
        );
    }
    rules
}

/// Returns the rules that forward as the process does. A packet leaves by the other port with one hop less, if it
/// arrived at the interface that leads to its source. A packet to a group of one link (RFC 5771) is not forwarded.
fn forwarding(table: &str, [one, other]: [&Port; 2], protocol: u8) -> String {
    let mut rules =
        format!("add table netdev {table}\ndelete table netdev {table}\ntable netdev {table} {{\n");
    for (number, from, to) in [(0, one, other), (1, other, one)] {
        let (from, to) = (&from.name, &to.name);
        let _ = write!(
            rules,
            "chain port{number} {{\ntype filter hook ingress device \"{from}\" priority 10\n\
             ip protocol != {protocol} return\nip daddr != 224.0.0.0/4 return\n\
             meta mark {MARK} meta mark set 0 return\nip daddr 224.0.0.0/24 return\n\
             fib saddr oif != \"{from}\" return\n\
             counter fwd ip to ip daddr device \"{to}\"\n}}\n"
        );
    }
    rules + "}\n"
}
