//! Errors of devices and namespaces.

use std::io;
use std::net::IpAddr;

/// Reason for which the emulator cannot do an action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmuError {
    /// The kernel has no TUN device.
    #[error(
        "/dev/net/tun is not there: load the kernel's module with `modprobe tun`, or give a container the device"
    )]
    NoTun,
    /// The user has no right to the TUN device.
    #[error("no right to open /dev/net/tun: run as root, or let root run `chmod 666 /dev/net/tun`")]
    TunDenied,
    /// The caller has no right to administer the network.
    #[error(
        "no right to {action}: run as root, or as root of a user namespace (`unshare --user --map-root-user --net`)"
    )]
    Denied {
        /// Action that was refused.
        action: String,
    },
    /// A user namespace cannot be made from a process with threads.
    #[error("a user namespace can only be made before the first thread starts")]
    Threads,
    /// The system does not let ordinary users make user namespaces.
    #[error("no right to make namespaces: run as root, or {advice}")]
    UserNamespaces {
        /// Way to get the right, and the person that can grant it.
        advice: String,
    },
    /// The process is not init of a PID namespace with a lifeline.
    #[error("only farcast starts itself with a lifeline: leave that option out")]
    NotContained,
    /// A program survives SIGKILL, for example while it waits for a device or a file server.
    #[error(
        "the program \"{0}\" is still there 10 s after SIGKILL: see what it waits for with `cat /proc/PID/stack`"
    )]
    Unkillable(String),
    /// The name is not valid for an interface.
    #[error(
        "\"{0}\" is no name for an interface: it must have 1 to 15 bytes without spaces, slashes and colons"
    )]
    Name(String),
    /// The MTU is not valid for a TUN device.
    #[error("an MTU of {0} bytes: it must be 68 to 65535")]
    Mtu(u16),
    /// The interface does not exist.
    #[error("there is no interface \"{0}\" in this namespace")]
    NoInterface(String),
    /// The kernel still looks for duplicates of an address.
    #[error(
        "an address of \"{0}\" is still tentative after 10 s: see `ip -6 address show dev {0}`, or set \
         net.ipv6.conf.{0}.accept_dad to 0"
    )]
    Tentative(String),
    /// The prefix has more bits than the address.
    #[error("{address}/{prefix}: an address of this family has only {bits} bits")]
    Prefix {
        /// The address.
        address: IpAddr,
        /// Length of the prefix in bits.
        prefix: u8,
        /// Length of the address in bits.
        bits: u8,
    },
    /// The relay has ended.
    #[error("the emulation has ended")]
    Ended,
    /// The number of hosts is out of range.
    #[error("{count} terminals: each is a host, of which there can be 1 to {most}")]
    Terminals {
        /// Number asked for.
        count: u32,
        /// Largest number allowed.
        most: u32,
    },
    /// The system refused.
    #[error("cannot {action}: {source}")]
    System {
        /// Action that was tried.
        action: String,
        /// The system's error.
        source: io::Error,
    },
}

impl EmuError {
    /// Returns a function that makes an error of the system's error during `action`.
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
