//! Emulation by an ordinary user: its refusals, and its success with an open TUN device.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use super::run::{Emulate, Way, link, need};
use crate::common::{Ended, Place, wait_until};

/// Script that runs its arguments as the user nobody, with a device node of this mode as /dev/net/tun. The mounts are
/// visible to this process only, and go with it. The program is mounted too, because its directory may be closed to
/// other users.
const AS_NOBODY: &str = "set -e
    mode=$1 place=$2 program=$3; shift 3
    mount -t tmpfs none $place/mounts
    chmod 755 $place/mounts
    mknod $place/mounts/tun c 10 200
    chmod $mode $place/mounts/tun
    touch $place/mounts/farcast
    mount --bind $program $place/mounts/farcast
    mkdir -p /dev/net
    [ -e /dev/net/tun ] || { mount -t tmpfs none /dev/net; touch /dev/net/tun; }
    mount --bind $place/mounts/tun /dev/net/tun
    cd /
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all $place/mounts/farcast \"$@\"";

/// Returns a place, and the command of an emulation there as nobody, with this script at its near end.
fn as_nobody(mode: u32, near: &str) -> (Place, Command) {
    for (program, package) in [("ping", "iputils-ping"), ("setpriv", "util-linux")] {
        need(program, package);
    }
    let (place, way) = (Place::new(), Way::new(10_000_000, 20, 100_000));
    fs::create_dir(place.path("mounts")).unwrap();
    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755)).unwrap();
    let farcast = Emulate::toml(&place, "nobody", &link(way, way)).near(near).command();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", AS_NOBODY, "sh", &format!("{mode:o}")]);
    command.arg(place.root()).arg(farcast.get_program()).args(farcast.get_args());
    (place, command)
}

/// Runs one `ping` as nobody.
fn ping_as_nobody(mode: u32) -> Ended {
    let (place, command) = as_nobody(mode, "ping -n -c 1 $FARCAST_PEER");
    place.run("nobody", command)
}

/// Returns `true` if this system lets nobody make user namespaces, as util-linux finds out.
fn may_make_user_namespaces() -> bool {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["unshare", "--user", "--map-root-user", "true"]);
    command.output().unwrap().status.success()
}

#[test]
fn without_the_device_an_ordinary_user_is_told_what_to_do() {
    let ended = ping_as_nobody(0o600);
    if may_make_user_namespaces() {
        ended.assert_one_sentence(125, &["/dev/net/tun", "chmod"]);
    } else {
        ended.assert_one_sentence(125, &["user namespace"]);
    }
}

#[test]
fn with_the_device_an_ordinary_user_has_the_link() {
    let ended = ping_as_nobody(0o666);
    if may_make_user_namespaces() {
        assert!(ended.code == Some(0) && ended.stdout.contains(" 0% packet loss"), "{}", ended.story());
    } else {
        ended.assert_one_sentence(125, &["user namespace"]);
    }
}

/// Root can control the emulation, although the emulation's user namespace has no number for root.
#[test]
fn root_controls_the_emulation_of_an_ordinary_user() {
    let (place, command) = as_nobody(0o666, "exec sleep 300");
    if !may_make_user_namespaces() {
        return place.run("nobody", command).assert_one_sentence(125, &["user namespace"]);
    }
    let mut running = place.start("nobody", command);
    let pid = running.child.id().to_string();
    let ask = |request: &str| place.farcast(["emulate", "--control", &pid, request]).output().unwrap();
    wait_until("the emulation answers", || {
        assert!(running.is_running(), "{}", running.stderr());
        ask("{\"describe\":{}}").status.success()
    });
    // The programs' user is root inside, and nobody outside.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("\nUid:\t65534\t65534\t65534\t65534\n"), "{status}");
    let delay = || {
        let output = ask("{\"snapshot\":{}}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["ok"]["snapshot"]["forward"]["delay_s"].as_f64().unwrap()
    };
    assert!((delay() - 0.02).abs() < 1e-9);
    assert!(ask("{\"set\":{\"way\":\"forward\",\"delay\":\"30 ms\"}}").status.success());
    assert!((delay() - 0.03).abs() < 1e-9);
    assert!(ask("{\"stop\":{}}").status.success());
    running.wait();
}
