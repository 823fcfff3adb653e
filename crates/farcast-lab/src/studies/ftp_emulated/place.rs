//! Requirements of the programs: the right to run them, a file, and the server's settings.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use farcast_core::random::RandomStream;
use rustix::thread::{CapabilitySet, capabilities};
use tempfile::TempDir;

use super::STUDY;
use super::cell::StudyLink;
use crate::study::{Options, StudyError};

/// Size of the file in octets: the 100 `KByte` of both studies.
pub(super) const FILE: usize = 102_400;

/// The programs, and the Debian package of each.
const PROGRAMS: [(&str, &str); 2] = [("vsftpd", "vsftpd"), ("curl", "curl")];

/// Directories of programs, in addition to the user's own path.
const SYSTEM: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Checks that the programs can run here.
///
/// # Errors
/// One sentence about what is missing.
pub(super) fn needs(options: &Options<'_>) -> Result<(), StudyError> {
    let missing = |what: &str| Err(StudyError::Missing(format!("{}: {what}", STUDY.name)));
    let Some(executable) = options.executable else {
        return missing("it needs the program farcast, which emulates the links");
    };
    if !rustix::process::geteuid().is_root() {
        return missing("vsftpd gives up its rights before it serves, so run this as root");
    }
    // Without this right the emulator creates a user namespace, in which vsftpd has no user to switch to.
    if !capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN) {
        return missing(
            "vsftpd gives up its rights before it serves, so run this as root who may make namespaces",
        );
    }
    let path = path();
    for (program, package) in PROGRAMS {
        let is_there = |dir: &Path| dir.join(program).is_file();
        if !std::env::split_paths(&path).any(|dir| is_there(&dir)) {
            return missing(&format!("it needs {program}: install the package {package}"));
        }
    }
    emulates(executable)
}

/// Exit codes of `farcast emulate` whose programs ran: the machine was too busy for valid times, and no packet
/// passed.
const INVALID: i32 = 122;
const NOTHING_PASSED: i32 = 123;

/// Checks that farcast can create hosts here; its own message says what is missing.
fn emulates(executable: &Path) -> Result<(), StudyError> {
    let place = tempfile::tempdir()?;
    let mut command = Command::new(executable);
    command.current_dir(place.path()).args(["emulate", "geo", "--quiet", "--", "true"]);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    if matches!(ended.status.code(), Some(0 | INVALID | NOTHING_PASSED)) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let last = said.lines().last().unwrap_or("it cannot emulate, and does not say why");
    Err(StudyError::Missing(last.strip_prefix("farcast: ").unwrap_or(last).to_owned()))
}

/// Returns the user's path and the system's: daemons are often in no directory of the user's path.
pub(super) fn path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(SYSTEM);
    path
}

/// Returns the error that ends the study.
pub(super) fn failure(sentence: &str) -> StudyError {
    StudyError::Run(format!("{}: {sentence}", STUDY.name))
}

/// Directory with the files that all runs share. Dropping it removes the directory.
pub(super) struct Ground {
    dir: TempDir,
    /// Octets of the file. They are random, because a serial line escapes certain octets.
    contents: Vec<u8>,
}

impl Ground {
    pub(super) fn prepare(seed: u64) -> Result<Self, StudyError> {
        // The server reads the file as a user without rights.
        let open = || Permissions::from_mode(0o755);
        let dir = tempfile::Builder::new().prefix("farcast-ftp-").permissions(open()).tempdir()?;
        let mut stream = RandomStream::derive(seed, &[]);
        let contents: Vec<u8> =
            (0..FILE.div_ceil(8)).flat_map(|_| stream.bits().to_le_bytes()).take(FILE).collect();
        let ground = Self { dir, contents };
        for name in [ROOT, EMPTY] {
            let path = ground.path(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, open())?;
        }
        let file = ground.path(ROOT).join(NAME);
        fs::write(&file, &ground.contents)?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        fs::write(ground.path(SETTINGS), ground.settings())?;
        for link in StudyLink::BOTH {
            fs::write(ground.path(link.name()), link.text())?;
        }
        Ok(ground)
    }

    /// Returns the path of a file in the directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a directory in it, for one run.
    pub(super) fn for_a_run(&self) -> Result<TempDir, StudyError> {
        Ok(tempfile::tempdir_in(self.dir.path())?)
    }

    pub(super) fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Returns the text of vsftpd.conf(5). Everyone may read and nobody write. The sandboxes are off, because they
    /// need more than a namespace offers.
    fn settings(&self) -> String {
        let [root, empty] = [ROOT, EMPTY].map(|name| self.path(name));
        format!(
            "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nwrite_enable=NO\n\
             xferlog_enable=NO\nseccomp_sandbox=NO\nisolate_network=NO\nisolate=NO\n\
             anon_root={}\nsecure_chroot_dir={}\n",
            root.display(),
            empty.display()
        )
    }
}

/// Name of the file, and below the names of the directories and the settings.
pub(super) const NAME: &str = "file";
const ROOT: &str = "root";
const EMPTY: &str = "empty";
pub(super) const SETTINGS: &str = "vsftpd.conf";
