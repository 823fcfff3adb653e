//! A namespace leaves nothing behind: alone in its process, because the kernel gives a number that is free to the next.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use farcast_emu::namespace::Namespace;
use farcast_emu::tun::{Tun, TunConfig};

/// The links called `tail` below each entry of `dir`.
fn links(dir: &str, tail: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path().join(tail)).ok()).collect()
}

/// Every network namespace that a process, a thread of this one or a descriptor of this one holds.
fn held() -> BTreeSet<PathBuf> {
    [links("/proc", "ns/net"), links("/proc/self/task", "ns/net"), links("/proc/self/fd", "")]
        .concat()
        .into_iter()
        .collect()
}

#[test]
fn a_namespace_leaves_nothing_behind() {
    let namespace = Namespace::create().unwrap();
    let tun = namespace.run(|| Tun::open(&TunConfig::new("tun0"))).unwrap().unwrap();
    let name = namespace.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    let mut sleeper = namespace.spawn(Command::new("sleep").arg("60")).unwrap();
    let process = fs::read_link(format!("/proc/{}/ns/net", sleeper.id())).unwrap();
    assert!(process == name && held().contains(&name), "a process and a descriptor hold it");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    drop((namespace, tun));
    assert!(!held().contains(&name), "nobody holds it");
}
