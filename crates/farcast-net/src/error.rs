//! Errors of network transfers. Each message is one sentence that says what to do.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use farcast_delivery::ObjectId;
use farcast_files::{SourceError, StoreError};

/// Reason for which a transfer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// A key has sealed all that it may.
    #[error("what is to leave cannot be sealed: {0}; begin the transfer again")]
    Seal(farcast_seal::Unsealable),
    /// The interface is not there.
    #[error("there is no interface {0}; `ip address` lists them")]
    NoInterface(String),
    /// The interface has no address of the group's family.
    #[error(
        "interface {name} has no {family} address to send from; give it one or choose another --interface"
    )]
    NoAddress {
        /// The interface.
        name: String,
        /// "IPv4" or "IPv6".
        family: &'static str,
    },
    /// The kernel has no route.
    #[error("{}", no_route(*.to, .interface.as_deref()))]
    NoRoute {
        /// Destination.
        to: IpAddr,
        /// The interface that the user asked for, if any.
        interface: Option<String>,
    },
    /// The interface is down.
    #[error("interface {0} is down; `ip link set {0} up` starts it")]
    Down(String),
    /// The interface is not connected to anything.
    #[error("interface {0} has no carrier; check its cable, or what it is connected to")]
    NoCarrier(String),
    /// The interface is not for multicast.
    #[error(
        "interface {0} does no multicast; choose another --interface (`ip link` shows MULTICAST), or `ip link set {0} multicast on`"
    )]
    NoMulticast(String),
    /// The group cannot be joined on the interface.
    #[error(
        "cannot join {group} on {interface}: {source}; choose an interface with multicast (`ip link` shows MULTICAST)"
    )]
    Join {
        /// The group.
        group: IpAddr,
        /// The interface.
        interface: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The process may not open raw sockets.
    #[error(
        "IP protocol {0} is sent and heard by a raw socket, which takes the capability CAP_NET_RAW: run this as root, or give the program that capability with `setcap cap_net_raw+ep`"
    )]
    NoRawSocket(u8),
    /// Over IPv6 a raw socket is not supported.
    #[error(
        "IP protocol {0} is sent and heard over IPv4 only; choose an IPv4 address, or UDP where the protocol has it"
    )]
    RawOverIpv6(u8),
    /// Another private group is joined.
    #[error(
        "cannot join {group} as long as {joined} is listened to; receive one of them with another process"
    )]
    OtherGroup {
        /// The group.
        group: IpAddr,
        /// The group that is joined already.
        joined: IpAddr,
    },
    /// A group of source-specific multicast without its source.
    #[error(
        "{0} is a group of source-specific multicast, which a network carries from a named sender only; name it with --source"
    )]
    GroupWithoutSource(IpAddr),
    /// A source was named for a group that is not a multicast one.
    #[error("--source needs a multicast group, and {0} is none")]
    SourceWithoutGroup(IpAddr),
    /// The datagrams are too large for the path.
    #[error("datagrams of {size} bytes do not fit the path to {destination}; choose a smaller --dtu-size")]
    TooLarge {
        /// UDP payload in bytes.
        size: usize,
        /// Destination.
        destination: SocketAddr,
    },
    /// The kernel does not let datagrams out.
    #[error("this host refuses to send: {} (a firewall rule of its own?)", plainly(.0))]
    Refused(io::Error),
    /// Notes about sealed transfers that were received cannot be saved; the string says why.
    #[error(
        "{0}; what cannot be remembered could be played back after a restart: make room there, or set XDG_STATE_HOME to another place"
    )]
    Forgetful(String),
    /// Another system call on a socket failed.
    #[error("cannot {action}: {source}")]
    Socket {
        /// The action that failed, as words behind "cannot".
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A file of the sender failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file of the receiver failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting that the protocol's engine turns down.
    #[error(transparent)]
    Config(Box<dyn Error + Send + Sync>),
    /// A parity setting that the code cannot do.
    #[error("blocks of {block} DTUs with {parity} parity symbols: {reason}")]
    Parity {
        /// DTUs in a block.
        block: u32,
        /// Parity symbols.
        parity: u32,
        /// Reason that the code gives.
        reason: String,
    },
    /// Parity cannot be stored while it waits to be sent.
    #[error("cannot keep parity in {}: {source}; set TMPDIR to a directory with room for it", path.display())]
    Scratch {
        /// The directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The engine asks for an object that the sender does not have.
    #[error("{0} is not among those that are sent")]
    UnknownObject(ObjectId),
    /// The disk does not answer, and the receiver was told to end.
    #[error(
        "the disk of {} does not answer; what came since the last checkpoint, a second or so before, will be asked for again",
        .0.display()
    )]
    DiskStalled(PathBuf),
    /// Everything arrived, and was thrown away as asked.
    #[error("everything arrived and was thrown away unverified, as --discard asks")]
    Discarded,
    /// A file that is no directory has the name of the receiving directory.
    #[error("{} is a file, and what is received goes into a directory: name another with --into", .0.display())]
    NotADirectory(PathBuf),
    /// A dangling symbolic link has the name of the receiving directory.
    #[error("{} is a link to {}, which is not there: make that directory, or name another with --into", path.display(), target.display())]
    DanglingDirectory {
        /// The link.
        path: PathBuf,
        /// Target of the link.
        target: PathBuf,
    },
    /// The receiving directory cannot be used.
    #[error("cannot receive into {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Returns the text of an error of the system, without its number.
fn plainly(error: &io::Error) -> String {
    let said = error.to_string();
    said.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Returns a sentence that says that there is no route, and how to get one.
fn no_route(to: IpAddr, interface: Option<&str>) -> String {
    let (on, choose) = match interface {
        Some(name) => (format!(" on interface {name}"), String::new()),
        None => (String::new(), "name an interface with --interface, or ".into()),
    };
    let device = interface.unwrap_or("IFACE");
    let way = match to {
        IpAddr::V4(ip) if ip.is_multicast() => {
            format!("{choose}add a route (`ip route add 224.0.0.0/4 dev {device}`)")
        }
        IpAddr::V6(ip) if ip.is_multicast() => {
            format!("{choose}add a route (`ip -6 route add multicast ff00::/8 dev {device} table local`)")
        }
        _ => "check the address, and what `ip route` lists".into(),
    };
    format!("there is no route to {to}{on}; {way}")
}

impl NetError {
    /// Returns `true` if an interface, an address or a route is missing, which may yet come.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NoInterface(_)
            | Self::NoAddress { .. }
            | Self::NoRoute { .. }
            | Self::Down(_)
            | Self::NoCarrier(_) => true,
            Self::Join { source, .. } | Self::Bind { source, .. } | Self::Socket { source, .. } => {
                matches!(
                    source.raw_os_error(),
                    // A socket whose own address has gone gets EINVAL.
                    Some(
                        libc::EADDRNOTAVAIL
                            | libc::EHOSTUNREACH
                            | libc::EINVAL
                            | libc::ENETDOWN
                            | libc::ENETUNREACH
                            | libc::ENODEV
                            | libc::ENXIO
                    )
                )
            }
            _ => false,
        }
    }

    pub(crate) fn config(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Config(Box::new(error))
    }

    pub(crate) fn socket(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Socket { action, source }
    }
}
