//! Links, addresses and routes of a namespace, over the kernel's netlink socket (rtnetlink(7)): each call waits for the
//! kernel's answer.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::netdevice::name_to_index;

use crate::EmuError;

/// The network configuration of one namespace.
#[derive(Debug)]
pub struct Network {
    socket: Socket,
    sequence: u32,
}

impl Network {
    /// The configuration of the namespace in which the calling thread is. It stays that one's, whatever thread uses it.
    ///
    /// # Errors
    /// What the system says against it.
    pub fn open() -> Result<Self, EmuError> {
        let action = "open a netlink socket";
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(EmuError::when(action))?;
        socket.bind_auto().map_err(EmuError::when(action))?;
        // Port 0 is the kernel.
        socket.connect(&SocketAddr::new(0, 0)).map_err(EmuError::when(action))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Brings the interface `name` up.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], or what the system says.
    pub fn set_up(&mut self, name: &str) -> Result<(), EmuError> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(link), 0, || format!("bring {name} up"))
    }

    /// Sets the longest packet that leaves by the interface `name`, in octets.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], or what the system says.
    pub fn set_mtu(&mut self, name: &str, mtu: u16) -> Result<(), EmuError> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.attributes.push(LinkAttribute::Mtu(mtu.into()));
        self.ask(RouteNetlinkMessage::SetLink(link), 0, || format!("set the MTU of {name} to {mtu}"))
    }

    /// Gives the interface `name` an address. Once the interface is up, others with the same first `prefix` bits are
    /// reached through it.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], [`EmuError::Prefix`], or what the system says.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix: u8) -> Result<(), EmuError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = checked(address, prefix)?;
        message.header.index = self.index(name)?;
        message.attributes.extend([AddressAttribute::Local(address), AddressAttribute::Address(address)]);
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let action = || format!("give {name} the address {address}/{prefix}");
        self.ask(RouteNetlinkMessage::NewAddress(message), flags, action)
    }

    /// Routes what goes to addresses with the first `prefix` bits of `destination` through the interface `name`, which
    /// must be up; 0 bits are every address. Behind a TUN device nobody is a next hop.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], [`EmuError::Prefix`], or what the system says.
    pub fn add_route(&mut self, destination: IpAddr, prefix: u8, name: &str) -> Result<(), EmuError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(destination);
        message.header.destination_prefix_length = checked(destination, prefix)?;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        let to = match destination {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
        };
        message.attributes.extend([RouteAttribute::Destination(to), RouteAttribute::Oif(self.index(name)?)]);
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let action = || format!("route {destination}/{prefix} through {name}");
        self.ask(RouteNetlinkMessage::NewRoute(message), flags, action)
    }

    fn index(&self, name: &str) -> Result<u32, EmuError> {
        name_to_index(&self.socket, name).map_err(|errno| match errno {
            rustix::io::Errno::NODEV => EmuError::NoInterface(name.into()),
            errno => EmuError::when(format!("find the interface {name}"))(errno),
        })
    }

    /// Sends a request and waits for the answer.
    fn ask(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        action: impl Fn() -> String,
    ) -> Result<(), EmuError> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        self.sequence = self.sequence.wrapping_add(1);
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.socket.send(&octets, 0).map_err(EmuError::when(action()))?;
        self.answer().map_err(EmuError::when(action()))
    }

    /// The kernel's answer to the last request.
    fn answer(&self) -> io::Result<()> {
        loop {
            let (octets, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&octets);
            let answer =
                answer.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            if let NetlinkPayload::Error(error) = answer.payload {
                // An error of 0 is the acknowledgement.
                return error.code.map_or(Ok(()), |_| Err(error.to_io()));
            }
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// `prefix`, if `address` has so many bits.
fn checked(address: IpAddr, prefix: u8) -> Result<u8, EmuError> {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    if prefix <= bits { Ok(prefix) } else { Err(EmuError::Prefix { address, prefix, bits }) }
}
