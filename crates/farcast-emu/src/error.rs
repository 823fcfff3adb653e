//! What can go wrong with devices and namespaces.

use std::io;
use std::net::IpAddr;

/// Why the emulator cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmuError {
    /// The kernel has no TUN device.
    #[error(
        "/dev/net/tun is not there: load the kernel's module with `modprobe tun`, or give a container the device"
    )]
    NoTun,
    /// The TUN device is not for us.
    #[error("no right to open /dev/net/tun: run as root, or let root run `chmod 666 /dev/net/tun`")]
    TunDenied,
    /// The caller may not administer the network.
    #[error(
        "no right to {action}: run as root, or as root of a user namespace (`unshare --user --map-root-user --net`)"
    )]
    Denied {
        /// What was refused.
        action: String,
    },
    /// A user namespace cannot be made from a process with threads.
    #[error("a user namespace can only be made before the first thread starts")]
    Threads,
    /// The system does not let ordinary users make user namespaces.
    #[error("no right to make namespaces: run as root, or {advice}")]
    UserNamespaces {
        /// Who can allow it, and how.
        advice: String,
    },
    /// The process is not init of a PID namespace with a lifeline.
    #[error("only farcast starts itself with a lifeline: leave that option out")]
    NotContained,
    /// A program survives SIGKILL, as one may that waits for a device or a file server.
    #[error(
        "the program \"{0}\" is still there 10 s after SIGKILL: see what it waits for with `cat /proc/PID/stack`"
    )]
    Unkillable(String),
    /// The name cannot be an interface's.
    #[error(
        "\"{0}\" is no name for an interface: it must have 1 to 15 bytes without spaces, slashes and colons"
    )]
    Name(String),
    /// The MTU cannot be a TUN device's.
    #[error("an MTU of {0} bytes: it must be 68 to 65535")]
    Mtu(u16),
    /// There is no such interface.
    #[error("there is no interface \"{0}\" in this namespace")]
    NoInterface(String),
    /// The kernel goes on looking for duplicates of an address.
    #[error(
        "an address of \"{0}\" is still tentative after 10 s: see `ip -6 address show dev {0}`, or set \
         net.ipv6.conf.{0}.accept_dad to 0"
    )]
    Tentative(String),
    /// More bits than an address has.
    #[error("{address}/{prefix}: an address of this family has only {bits} bits")]
    Prefix {
        /// The address.
        address: IpAddr,
        /// The length of its prefix.
        prefix: u8,
        /// The bits that there are.
        bits: u8,
    },
    /// The relay is no more.
    #[error("the emulation has ended")]
    Ended,
    /// So many hosts cannot be made.
    #[error("{count} terminals: each is a host, of which there can be 1 to {most}")]
    Terminals {
        /// How many were asked for.
        count: u32,
        /// How many there can be.
        most: u32,
    },
    /// The system refused.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

impl EmuError {
    /// Makes an error of what the system said when it was to do `action`.
    pub(crate) fn when<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| {
            let (action, source) = (action.into(), error.into());
            match source.kind() {
                io::ErrorKind::PermissionDenied => Self::Denied { action },
                _ => Self::System { action, source },
            }
        }
    }
}
