//! Names of the control sockets of running emulations.

use std::fs;

/// Prefix of the name of every control socket; the process id follows.
const PREFIX: &str = "farcast/emulate/";

/// Flag of a listening socket in /proc/net/unix (`__SO_ACCEPTCON`).
const LISTENS: u32 = 0x0001_0000;

/// Returns the name of the abstract socket at which the emulation of process `pid` listens, without the octet 0 before
/// it.
pub fn socket_name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Returns the processes of all users that run an emulation in the network namespace of this thread, in ascending
/// order. Empty if /proc has no such table.
pub fn running() -> Vec<u32> {
    let table = fs::read("/proc/thread-self/net/unix").unwrap_or_default();
    listed(&String::from_utf8_lossy(&table))
}

/// Returns the emulations among the sockets of a table as in /proc/net/unix (proc(5)): `Num RefCount Protocol Flags
/// Type St Inode Path`, with `@` for the first octet of an abstract path.
pub(super) fn listed(table: &str) -> Vec<u32> {
    let mut pids: Vec<u32> = table.lines().filter_map(emulation).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn emulation(line: &str) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let path = fields.nth(3)?;
    let pid = path.strip_prefix('@')?.strip_prefix(PREFIX)?;
    // Only the canonical form counts: no sign, no leading zeros.
    let number: u32 = pid.parse().ok().filter(|number: &u32| number.to_string() == pid)?;
    (flags & LISTENS != 0).then_some(number)
}
