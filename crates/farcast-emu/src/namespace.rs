//! Network namespaces without names. Each lives as long as its handle, a process in it, or a socket or device of it.
//!
//! A namespace belongs to a thread, not to a process. [`Namespace::run`] enters one on a thread of its own, so that the
//! caller stays in its namespace. A TUN device or socket that is opened there stays in that namespace, even if other
//! threads use it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::EmuError;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace with a loopback interface that is down, and nothing else. The calling thread stays in its
    /// namespace.
    ///
    /// # Errors
    /// [`EmuError::Denied`] without the right to do so.
    pub fn create() -> Result<Self, EmuError> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(EmuError::when("make a network namespace"))?;
            Self::current()
        })
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// The system's error.
    pub fn current() -> Result<Self, EmuError> {
        Self::open("/proc/thread-self/ns/net")
    }

    /// Opens the namespace that `path` names, such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EmuError> {
        let path = path.as_ref();
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let action = || format!("open the namespace {}", path.display());
        opened.map(Self).map_err(|errno| EmuError::when(action())(errno))
    }

    /// Moves the calling thread into the namespace, for good. Threads and processes that it starts later begin there.
    ///
    /// # Errors
    /// [`EmuError::Denied`] without the right to do so.
    pub fn enter(&self) -> Result<(), EmuError> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(EmuError::when("enter a network namespace"))
    }

    /// Does `work` in the namespace, on a thread of its own; a panic there is resumed here.
    ///
    /// # Errors
    /// Like [`enter`](Self::enter).
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, EmuError> {
        on_a_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Starts `command` in the namespace. The file system is the caller's, so `/sys/class/net` shows the namespace for
    /// which it was mounted.
    ///
    /// # Errors
    /// Like [`enter`](Self::enter), and the system's error of starting the command.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, EmuError> {
        let action = format!("start {}", command.get_program().display());
        // A refusal here is no matter of network rights: the file may not be a program.
        self.run(|| command.spawn())?.map_err(|source| EmuError::System { action, source })
    }

    /// Sets a kernel parameter of the namespace's network, such as `net.ipv4.tcp_sack`.
    ///
    /// # Errors
    /// [`EmuError::Denied`] without the right to do so; [`EmuError::System`] if the kernel has no such parameter.
    pub fn set_parameter(&self, name: &str, value: &str) -> Result<(), EmuError> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        self.run(|| fs::write(path, value))?.map_err(EmuError::when(format!("set {name} to {value}")))
    }
}

impl AsFd for Namespace {
    /// Returns the descriptor that keeps the namespace alive.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives this process the rights of root over namespaces that it creates later, as root of a user namespace of its own.
/// Files and devices, `/dev/net/tun` among them, still refuse everything that they refused before.
///
/// # Errors
/// [`EmuError::Threads`] once a second thread has been started; [`EmuError::Denied`] if the system does not let users
/// create user namespaces.
pub fn become_root_of_a_user_namespace() -> Result<(), EmuError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| match errno {
        nix::Error::EINVAL => EmuError::Threads,
        errno => EmuError::when("make a user namespace")(errno),
    })?;
    // Mapping a group requires that the process has given up changing its other groups (user_namespaces(7)).
    map("setgroups", "deny")?;
    map("uid_map", &format!("0 {user} 1"))?;
    map("gid_map", &format!("0 {group} 1"))
}

fn map(file: &str, text: &str) -> Result<(), EmuError> {
    fs::write(format!("/proc/self/{file}"), text).map_err(EmuError::when("map this user to root"))
}

/// Does `work` on a thread of its own, because a thread that has changed its namespace must not do other work.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, EmuError> + Send) -> Result<T, EmuError> {
    thread::scope(|scope| {
        let started: io::Result<_> = thread::Builder::new().spawn_scoped(scope, work);
        let thread = started.map_err(EmuError::when("start a thread"))?;
        thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}
