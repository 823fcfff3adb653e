//! System calls that no library offers, in the only module with unsafe code: source-specific joins for both families,
//! buffers beyond the limit, an interface's flags, the path MTU, and options that let a router see packets that pass
//! it.
#![expect(unsafe_code, reason = "setsockopt and ioctl with structures of the kernel's")]

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketAddrAny};
use socket2::{SockAddr, Socket};

/// `struct group_source_req` of RFC 3678 §5.1.2.
#[repr(C)]
struct GroupSourceReq {
    interface: u32,
    group: libc::sockaddr_storage,
    source: libc::sockaddr_storage,
}

/// Joins `group` for datagrams from `source` alone, on interface `index` (0: the system's choice).
pub(crate) fn join_source(socket: &Socket, group: IpAddr, source: IpAddr, index: u32) -> io::Result<()> {
    let request = GroupSourceReq { interface: index, group: storage(group), source: storage(source) };
    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    set(socket, level, libc::MCAST_JOIN_SOURCE_GROUP, &request)
}

/// Sets a receive buffer of `bytes`, beyond the system's limit if we may, up to it otherwise.
pub(crate) fn force_receive_buffer(socket: &Socket, bytes: usize) {
    let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &wanted).is_err() {
        // A smaller buffer loses more at high rates, and repair makes up for it.
        let _ = socket.set_recv_buffer_size(bytes);
    }
}

/// Turns off coalesced receiving (GRO), which the socket library turns on.
pub(crate) fn disable_gro(socket: &Socket) {
    let off: libc::c_int = 0;
    // If the kernel cannot turn it off, it was not on.
    let _ = set(socket, libc::SOL_UDP, libc::UDP_GRO, &off);
}

/// Lets the kernel fragment long datagrams over IPv6, which the socket library forbids.
pub(crate) fn allow_ipv6_fragments(socket: &Socket) -> io::Result<()> {
    let off: libc::c_int = 0;
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &off)
}

/// Returns the flags (`IFF_UP` and so on) of the interface `name`, if there is one.
pub(crate) fn interface_flags(socket: &Socket, name: &str) -> Option<libc::c_int> {
    // SAFETY: ifreq is plain data for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    let room = request.ifr_name.len() - 1;
    if name.len() > room {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    // SAFETY: `request` lives through the call, which writes nothing but it.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
    // SAFETY: the kernel has written the flags, and any bits are valid ones.
    (status == 0).then(|| unsafe { request.ifr_ifru.ifru_flags }.into())
}

/// Returns the IPv4 addresses of all interfaces that are up, by netdevice(7), with the names of the interfaces.
pub(crate) fn ipv4_addresses(socket: &Socket) -> io::Result<Vec<(String, Ipv4Addr)>> {
    /// Most interfaces that are listed; a host whose netlink is forbidden has fewer.
    const MOST: usize = 1024;
    // SAFETY: ifreq is plain data for which all zeros are valid.
    let mut found: Vec<libc::ifreq> = vec![unsafe { std::mem::zeroed() }; MOST];
    let octets = libc::c_int::try_from(size_of_val(&*found)).map_err(io::Error::other)?;
    // SAFETY: ifconf is plain data for which all zeros are valid.
    let mut list: libc::ifconf = unsafe { std::mem::zeroed() };
    list.ifc_len = octets;
    list.ifc_ifcu.ifcu_req = found.as_mut_ptr();
    // SAFETY: `list` points to `octets` octets that live through the call, and the kernel writes no more than those.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFCONF, &raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    found.truncate(usize::try_from(list.ifc_len).unwrap_or(0) / size_of::<libc::ifreq>());
    Ok(found.iter().filter_map(ipv4_address).collect())
}

/// Returns the name and the address in a record of netdevice(7).
fn ipv4_address(one: &libc::ifreq) -> Option<(String, Ipv4Addr)> {
    let name: Vec<u8> = one.ifr_name.iter().map(|&c| c as u8).take_while(|&octet| octet != 0).collect();
    // SAFETY: the kernel has written an address, and all of its octets are valid.
    let address = unsafe { one.ifr_ifru.ifru_addr };
    let of_ipv4 = i32::from(address.sa_family) == libc::AF_INET;
    // `struct sockaddr_in`: the port, the address.
    let [_, _, a, b, c, d, ..] = address.sa_data.map(|octet| octet as u8);
    of_ipv4.then(|| Some((String::from_utf8(name).ok()?, Ipv4Addr::new(a, b, c, d))))?
}

/// Has the kernel deliver packets with the router alert that are not for this host to the raw socket `socket`, instead
/// of forwarding them (ip(7), `IP_ROUTER_ALERT`).
pub(crate) fn take_router_alerts(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    set(socket, libc::IPPROTO_IP, libc::IP_ROUTER_ALERT, &on)
}

/// `struct packet_mreq` of packet(7).
#[repr(C)]
struct PacketMreq {
    interface: libc::c_int,
    kind: libc::c_ushort,
    address_len: libc::c_ushort,
    address: [u8; 8],
}

/// Makes interface `index` receive frames to all groups, as long as `socket`, one of packet(7), is open.
pub(crate) fn take_all_groups(socket: &Socket, index: u32) -> io::Result<()> {
    /// `PACKET_MR_ALLMULTI` of packet(7).
    const ALL_GROUPS: libc::c_ushort = 2;
    /// `PACKET_ADD_MEMBERSHIP` of packet(7).
    const ADD_MEMBERSHIP: libc::c_int = 1;
    let interface = libc::c_int::try_from(index).map_err(io::Error::other)?;
    let request = PacketMreq { interface, kind: ALL_GROUPS, address_len: 0, address: [0; 8] };
    set(socket, libc::SOL_PACKET, ADD_MEMBERSHIP, &request)
}

/// Origin of a frame by packet(7): `struct sockaddr_ll` as far as the link-layer address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOrigin {
    family: libc::c_ushort,
    protocol: libc::c_ushort,
    /// Number of the interface.
    pub(crate) interface: libc::c_int,
    hardware: libc::c_ushort,
    /// Kind of destination: this host, everybody, a group, another host, or a frame that this host sent.
    pub(crate) kind: u8,
    address_len: u8,
}

/// Returns `address` as one of packet(7); `None` if it is of another family.
pub(crate) fn link(address: &SocketAddrAny) -> Option<LinkOrigin> {
    if address.address_family() != AddressFamily::PACKET
        || (address.addr_len() as usize) < size_of::<LinkOrigin>()
    {
        return None;
    }
    // SAFETY: the kernel has written at least as many octets as a `LinkOrigin` has, and any are a valid one.
    Some(unsafe { address.as_ptr().cast::<LinkOrigin>().read_unaligned() })
}

/// Returns the path MTU in bytes that the kernel knows for a connected socket.
pub(crate) fn connected_mtu(socket: &Socket, ipv6: bool) -> Option<u32> {
    let (level, name) =
        if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let mut mtu: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of_val(&mtu)).ok()?;
    // SAFETY: `mtu` lives through the call and has `len` bytes, which the kernel fills.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(&mut mtu).cast(), &raw mut len)
    };
    (status == 0).then(|| u32::try_from(mtu).ok())?
}

fn storage(address: IpAddr) -> libc::sockaddr_storage {
    let address = SockAddr::from(std::net::SocketAddr::new(address, 0));
    // SAFETY: sockaddr_storage is plain data for which all zeros are valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: both point to socket addresses, `len` bytes of the source are initialised, and sockaddr_storage is the
    // largest of them; they do not overlap.
    unsafe {
        let from = address.as_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(
            from,
            std::ptr::from_mut(&mut storage).cast::<u8>(),
            address.len() as usize,
        );
    }
    storage
}

fn set<T>(socket: &Socket, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: `value` lives through the call and has `len` bytes; the kernel copies them.
    let status =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Headers of received datagrams, which tests look at and the drivers do not need.
#[cfg(test)]
pub(crate) mod headers {
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::AsRawFd;

    use socket2::{SockAddr, SockAddrStorage, Socket};

    /// A part of the header of one datagram, or of several that the kernel has joined.
    #[derive(Debug)]
    pub(crate) struct PacketHeader {
        pub(crate) source: SocketAddr,
        /// Time to live, or hop limit.
        pub(crate) ttl: i32,
        /// The options of IPv4.
        pub(crate) options: Vec<u8>,
    }

    /// Has the kernel deliver the header fields.
    pub(crate) fn ask_for(socket: &Socket) -> io::Result<()> {
        let on: libc::c_int = 1;
        if socket.local_addr()?.is_ipv6() {
            return super::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, &on);
        }
        super::set(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, &on)?;
        super::set(socket, libc::IPPROTO_IP, libc::IP_RECVOPTS, &on)
    }

    /// Receives the next datagram and returns its header.
    pub(crate) fn next(socket: &Socket) -> io::Result<PacketHeader> {
        socket.set_nonblocking(false)?;
        let (mut content, mut control) = (vec![0_u8; 1 << 16], vec![0_u8; 1 << 10]);
        let mut source = SockAddrStorage::zeroed();
        let mut part = libc::iovec { iov_base: content.as_mut_ptr().cast(), iov_len: content.len() };
        // SAFETY: msghdr is plain data for which all zeros are valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut source).cast();
        message.msg_namelen = source.size_of();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), control.len());
        // SAFETY: everything that `message` points to lives through the call and is as long as it says.
        if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has written an address of this length.
        let source = unsafe { SockAddr::new(source, message.msg_namelen) };
        let source = source.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        let mut header = PacketHeader { source, ttl: 0, options: Vec::new() };
        let mut rest = &control[..message.msg_controllen];
        while let Some((fields, behind)) = rest.split_first_chunk::<{ size_of::<libc::cmsghdr>() }>() {
            let (len, kinds) = fields.split_at(size_of::<usize>());
            let len = usize::from_ne_bytes(len.try_into().map_err(io::Error::other)?) - fields.len();
            let [level, kind] =
                [0, 4].map(|at| i32::from_ne_bytes([0, 1, 2, 3].map(|byte| kinds[at + byte])));
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    header.ttl = i32::from_ne_bytes([0, 1, 2, 3].map(|byte| behind[byte]));
                }
                (libc::IPPROTO_IP, libc::IP_RECVOPTS) => header.options = behind[..len].to_vec(),
                _ => {}
            }
            rest = &behind[len.next_multiple_of(size_of::<usize>()).min(behind.len())..];
        }
        Ok(header)
    }
}

/// A sandbox that forbids system calls.
#[cfg(test)]
pub(crate) mod sandbox {
    use std::io;

    /// Makes the kernel answer `errno` to system call `call` of this thread, for ever. If `first` is given, only calls
    /// with that first argument are refused.
    pub(crate) fn refuse(call: libc::c_long, first: Option<u32>, errno: i32) -> io::Result<()> {
        // Instructions of seccomp(2)'s filters: load a word, jump if it is equal, return.
        const LOAD: u16 = 0x20;
        const JUMP: u16 = 0x15;
        const RETURN: u16 = 0x06;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).map_err(io::Error::other)?;
        // Without an argument to look at, the filter looks at the call's number twice.
        let number = u32::try_from(call).map_err(io::Error::other)?;
        let (at, wanted) = first.map_or((0, number), |first| (16, first));
        let mut steps = [
            step(LOAD, 0, 0, 0),
            step(JUMP, 0, 3, number),
            step(LOAD, 0, 0, at),
            step(JUMP, 0, 1, wanted),
            step(RETURN, 0, 0, refused),
            step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: both calls read what lives through them, and change this thread's rights alone.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
