//! Program with NRL's library.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Returns the path of the program, which is compiled once for all tests of this process.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(compile)
}

fn compile() -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libnorm/peer.c");
    let header = Path::new("/usr/include/normApi.h");
    assert!(header.exists(), "this test needs the Debian package libnorm-dev; run scripts/setup");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (program, fresh) = (dir.join("norm_peer"), dir.join(format!("norm_peer-{}", std::process::id())));
    let compiled = Command::new("c++")
        .args(["-x", "c++", "-O1", "-o"])
        .arg(&fresh)
        .args([source, "-lnorm"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // Another run of the tests may use the program that is there.
    std::fs::rename(fresh, &program).unwrap();
    program
}

/// Running program, which ends with the test.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(words: impl IntoIterator<Item = String>) -> Self {
        let mut command = Command::new(program());
        let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Returns the next line that the program prints; empty if it has ended.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
