//! The program that runs OpenPGM.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Returns the octets of the peer's message `n`.
pub(crate) fn length(n: u32) -> usize {
    200 + (n.wrapping_mul(997) % 1200) as usize
}

/// Returns message `n` of `len` octets.
pub(crate) fn octets(n: u32, len: usize) -> Vec<u8> {
    let octet = |i: usize| match i {
        0..4 => n.to_be_bytes()[i],
        _ => n.wrapping_mul(31).wrapping_add(7 * i as u32) as u8,
    };
    (0..len).map(octet).collect()
}

/// Returns the checksum that the peer prints of a message.
pub(crate) fn sum(octets: &[u8]) -> u32 {
    octets.iter().fold(0, |sum: u32, &octet| sum.wrapping_mul(31).wrapping_add(octet.into()))
}

/// Returns the path of the program, which is compiled once for all tests of this process.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(compile)
}

fn compile() -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openpgm/peer.c");
    let headers = "/usr/include/pgm-5.3";
    assert!(Path::new(headers).exists(), "this test needs the Debian package libpgm-dev; run scripts/setup");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (program, fresh) =
        (dir.join("openpgm_peer"), dir.join(format!("openpgm_peer-{}", std::process::id())));
    let mut command = Command::new("cc");
    command.args(["-O1", "-I", headers, "-o"]).arg(&fresh).args([source, "-lpgm", "-lpthread", "-lm"]);
    let compiled = command.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // Another run of the tests may use the one that is there.
    std::fs::rename(fresh, &program).unwrap();
    program
}

/// A running program, which ends with the test.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut command = Command::new(program());
        let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Returns the next line of the program's output that is not a warning; empty if it has ended.
    pub(crate) fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            if !line.starts_with("Warn") {
                return line.trim().into();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
