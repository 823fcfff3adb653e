//! Rights of an ordinary user, and the text of refusals. This program starts itself as such a user; it has no harness
//! because a user namespace can only be made by a process with one thread.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may panic, start threads, and says what it has done"
)]

use std::fmt::Display;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use farcast_emu::namespace::{Namespace, become_root_of_a_user_namespace};
use farcast_emu::network::Network;
use farcast_emu::tun::{Tun, TunConfig};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("without") => without(),
        Some("with") => with(),
        Some("thread") => with_a_thread(),
        _ => parent(),
    }
}

fn parent() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root to become somebody else; run `sudo -E cargo test`"
    );
    let denied = "no right to make a network namespace: run as root, or as root of a user namespace \
                  (`unshare --user --map-root-user --net`)";
    assert_eq!(said("without"), denied);
    assert_eq!(said("thread"), "a user namespace can only be made before the first thread starts");
    // Some systems let no user make user namespaces; util-linux knows.
    let unshare = as_nobody(Command::new("unshare").args(["--user", "--map-root-user", "true"]));
    let expected = if !unshare.status.success() {
        "no right to make a user namespace: run as root, or as root of a user namespace \
         (`unshare --user --map-root-user --net`)"
    } else if std::fs::metadata("/dev/net/tun").unwrap().permissions().mode() & 0o006 == 0o006 {
        "a namespace, addresses, a device"
    } else {
        "a namespace, addresses, no right to open /dev/net/tun: run as root, or let root run `chmod 666 /dev/net/tun`"
    };
    assert_eq!(said("with"), expected);
    println!("test result: ok. 3 passed; 0 failed; 0 ignored");
}

/// Returns the output of this program as nobody in the part of `role`.
fn said(role: &str) -> String {
    let output = as_nobody(Command::new("/proc/self/exe").arg(role));
    assert!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn as_nobody(command: &mut Command) -> std::process::Output {
    command.uid(NOBODY).gid(NOBODY).output().unwrap()
}

/// Tells a result as the text of its error, or as `good`.
fn tell<T, E: Display>(result: Result<T, E>, good: &str) -> Option<T> {
    match result {
        Ok(value) => {
            print!("{good}");
            Some(value)
        }
        Err(error) => {
            print!("{error}");
            None
        }
    }
}

fn without() {
    tell(Namespace::create(), "a namespace");
}

fn with() {
    if tell(become_root_of_a_user_namespace(), "").is_none() {
        return;
    }
    let Some(namespace) = tell(Namespace::create(), "a namespace, ") else { return };
    let addressed = || Network::open()?.add_address("lo", "10.0.0.1".parse().unwrap(), 32);
    tell(namespace.run(addressed).unwrap(), "addresses, ");
    tell(namespace.run(|| Tun::open(&TunConfig::new("tun0"))).unwrap(), "a device");
}

fn with_a_thread() {
    thread::spawn(|| thread::sleep(Duration::from_mins(1)));
    tell(become_root_of_a_user_namespace(), "a user namespace");
}
