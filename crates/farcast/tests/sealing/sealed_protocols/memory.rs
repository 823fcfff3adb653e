//! Host whose memory of sealed sessions lies on a small file system, which may be full.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::Running;
use crate::party::Parties;

/// Size of the file system: room for a memory of a few sessions.
const ROOM: &str = "64k";

/// Returns `command` of the host `name` with its state on a file system that no other process sees. The file system is
/// full if it `begins_full`.
pub(crate) fn on_small_state(parties: &Parties, name: &str, command: &Command, begins_full: bool) -> Command {
    let state = parties.place.path(&format!("state-{name}"));
    fs::create_dir_all(&state).unwrap();
    let fill = if begins_full { "head -c 1000000 /dev/zero > \"$0/fill\" 2>/dev/null; " } else { "" };
    let script = format!("mount -t tmpfs -o size={ROOM} tmpfs \"$0\" || exit 77; {fill}exec \"$@\"");
    let mut small = Command::new("unshare");
    small.args(["-m", "sh", "-c", &script]).arg(state).arg(command.get_program()).args(command.get_args());
    small.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    small
}

/// Returns the path of the state of the host `name` as `running` sees it.
pub(crate) fn state_of(parties: &Parties, name: &str, running: &Running) -> PathBuf {
    let state = parties.place.path(&format!("state-{name}"));
    PathBuf::from(format!("/proc/{}/root{}", running.child.id(), state.display()))
}

/// Fills the state of the host `name`.
pub(crate) fn fill(parties: &Parties, name: &str, running: &Running) {
    let error = fs::write(state_of(parties, name, running).join("fill"), vec![0; 1 << 20]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

/// Makes room in the state of the host `name`.
pub(crate) fn make_room(parties: &Parties, name: &str, running: &Running) {
    fs::remove_file(state_of(parties, name, running).join("fill")).unwrap();
}
