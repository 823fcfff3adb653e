//! Where the sockets of running emulations are.

use std::fs;

/// What the name of every control socket begins with; the process id follows.
const PREFIX: &str = "farcast/emulate/";

/// The flag of a socket that listens in /proc/net/unix (`__SO_ACCEPTCON`).
const LISTENS: u32 = 0x0001_0000;

/// The name of the abstract socket at which the emulation of process `pid` listens, without the octet 0 before it.
pub fn socket_name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// The processes that run an emulation in the network namespace of this thread, in ascending order, whoever's they are.
/// Empty where /proc does not say.
pub fn running() -> Vec<u32> {
    let table = fs::read("/proc/thread-self/net/unix").unwrap_or_default();
    listed(&String::from_utf8_lossy(&table))
}

/// The emulations among the sockets of a table as in /proc/net/unix (proc(5)): `Num RefCount Protocol Flags Type St
/// Inode Path`, the first octet of an abstract path shown as `@`.
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
    // Only the way in which we write it: no sign, no zeros before it.
    let number: u32 = pid.parse().ok().filter(|number: &u32| number.to_string() == pid)?;
    (flags & LISTENS != 0).then_some(number)
}
