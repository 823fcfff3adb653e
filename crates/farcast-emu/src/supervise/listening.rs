//! Readiness of the servers in a namespace: the ports on which they listen, from the tables in `/proc/net`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use farcast_core::{Span, Time};

use crate::namespace::Namespace;
use crate::{Clock, EmuError};

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// States of sockets in `/proc/net` (the kernel's `tcp_states.h`): a TCP socket that listens, and a UDP socket that is
/// not connected.
const LISTEN: u8 = 0x0A;
const CLOSE: u8 = 0x07;

/// A transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Transport {
    Tcp,
    Udp,
}

/// Returns the number of ports on which servers listen in `namespace`: TCP ports, and UDP ports of sockets that are not
/// connected. A port counts once, even if several sockets, addresses and versions of IP share it.
///
/// # Errors
/// The system's error of reading the tables.
pub fn listening(namespace: &Namespace) -> Result<usize, EmuError> {
    namespace.run(ports)?.map(|ports| ports.len())
}

/// Waits until servers listen on `ports` ports in `namespace`, for `limit` at most. Returns the number of ports; it may
/// be lower after `limit`, or higher.
///
/// # Errors
/// Like [`listening`].
#[expect(clippy::disallowed_methods, reason = "nothing tells when a socket listens; there is no engine here")]
pub fn wait_until_listening(namespace: &Namespace, ports: usize, limit: Span) -> Result<usize, EmuError> {
    let (clock, until) = (Clock::start(), Time::ZERO + limit);
    namespace.run(|| {
        loop {
            let there = self::ports()?.len();
            if there >= ports || clock.now() >= until {
                return Ok(there);
            }
            thread::sleep(PAUSE);
        }
    })?
}

/// Returns the ports on which servers listen in the calling thread's namespace.
fn ports() -> Result<BTreeSet<(Transport, u16)>, EmuError> {
    let mut ports = BTreeSet::new();
    for (file, transport, state) in [
        ("tcp", Transport::Tcp, LISTEN),
        ("tcp6", Transport::Tcp, LISTEN),
        ("udp", Transport::Udp, CLOSE),
        ("udp6", Transport::Udp, CLOSE),
    ] {
        let table = match fs::read_to_string(format!("/proc/thread-self/net/{file}")) {
            Ok(table) => table,
            // A kernel without IPv6 has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(EmuError::when(format!("read /proc/net/{file}"))(error)),
        };
        let rows = table.lines().filter_map(row).filter(|(_, found)| *found == state);
        ports.extend(rows.map(|(port, _)| (transport, port)));
    }
    Ok(ports)
}

/// Returns the local port, which is not 0, and the state of a socket: `sl: ADDRESS:PORT ADDRESS:PORT STATE ...` in
/// hexadecimal (`proc_pid_net(5)`).
fn row(line: &str) -> Option<(u16, u8)> {
    let mut fields = line.split_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let port = u16::from_str_radix(port, 16).ok().filter(|port| *port != 0)?;
    Some((port, u8::from_str_radix(state, 16).ok()?))
}

#[cfg(test)]
mod tests;
