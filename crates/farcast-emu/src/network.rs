//! Links, addresses and routes of a namespace, over the kernel's netlink socket (rtnetlink(7)): each call waits for the
//! kernel's answer.

use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::netdevice::name_to_index;

use crate::EmuError;

/// Interval and number of the checks of [`Network::set_up`] for addresses: 10 s in all. The kernel takes milliseconds
/// without a search for duplicates, and a second or two with one.
const TENTATIVE_PAUSE: Duration = Duration::from_millis(1);
const TENTATIVE_LOOKS: u32 = 10_000;

/// The network configuration of one namespace.
#[derive(Debug)]
pub struct Network {
    socket: Socket,
    sequence: u32,
}

impl Network {
    /// Opens the configuration of the calling thread's namespace. It keeps that namespace, even if other threads use
    /// it.
    ///
    /// # Errors
    /// The system's error.
    pub fn open() -> Result<Self, EmuError> {
        let action = "open a netlink socket";
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(EmuError::when(action))?;
        socket.bind_auto().map_err(EmuError::when(action))?;
        // Port 0 is the kernel.
        socket.connect(&SocketAddr::new(0, 0)).map_err(EmuError::when(action))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Brings the interface `name` up, and waits until its addresses can be used.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], [`EmuError::Tentative`], or the system's error.
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing tells when an address can be used; there is no engine here"
    )]
    pub fn set_up(&mut self, name: &str) -> Result<(), EmuError> {
        let mut link = LinkMessage::default();
        let index = self.index(name)?;
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(link), 0, || format!("bring {name} up"))?;
        // The kernel makes IPv6 addresses usable in a work queue of its own, even if there is no neighbour to ask for
        // duplicates (RFC 4862 section 5.4). A program that connects earlier gets any other source address, even ::1.
        for _ in 0..TENTATIVE_LOOKS {
            if !self.has_tentative_address(index)? {
                return Ok(());
            }
            thread::sleep(TENTATIVE_PAUSE);
        }
        Err(EmuError::Tentative(name.into()))
    }

    /// Sets the MTU of the interface `name`: the longest packet that leaves, in octets.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], or the system's error.
    pub fn set_mtu(&mut self, name: &str, mtu: u16) -> Result<(), EmuError> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.attributes.push(LinkAttribute::Mtu(mtu.into()));
        self.ask(RouteNetlinkMessage::SetLink(link), 0, || format!("set the MTU of {name} to {mtu}"))
    }

    /// Sets the number of packets that may wait to leave by the interface `name`.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], or the system's error.
    pub fn set_queue(&mut self, name: &str, packets: u32) -> Result<(), EmuError> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.attributes.push(LinkAttribute::TxQueueLen(packets));
        let action = || format!("let {packets} packets wait at {name}");
        self.ask(RouteNetlinkMessage::SetLink(link), 0, action)
    }

    /// Gives the interface `name` an address. Once the interface is up, it leads to all addresses with the same first
    /// `prefix` bits.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], [`EmuError::Prefix`], or the system's error.
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

    /// Routes packets to addresses with the first `prefix` bits of `destination` through the interface `name`, which
    /// must be up; 0 bits match every address. The route has no next hop: a TUN device needs none.
    ///
    /// # Errors
    /// [`EmuError::NoInterface`], [`EmuError::Prefix`], or the system's error.
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

    /// Returns `true` if the kernel still looks for duplicates of an address of the interface.
    fn has_tentative_address(&mut self, index: u32) -> Result<bool, EmuError> {
        let action = || "list addresses".into();
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.send(request, NLM_F_DUMP, action)?;
        let mut tentative = false;
        self.hear(|message| {
            if let RouteNetlinkMessage::NewAddress(message) = message {
                let flags = message.header.flags;
                tentative |= message.header.index == index && flags.contains(AddressHeaderFlags::Tentative);
            }
        })
        .map_err(EmuError::when(action()))?;
        Ok(tentative)
    }

    /// Sends a request and waits for the answer.
    fn ask(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        action: impl Fn() -> String,
    ) -> Result<(), EmuError> {
        self.send(request, NLM_F_ACK | flags, &action)?;
        self.hear(|_| {}).map_err(EmuError::when(action()))
    }

    fn send(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        action: impl Fn() -> String,
    ) -> Result<(), EmuError> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        self.sequence = self.sequence.wrapping_add(1);
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.socket.send(&octets, 0).map_err(EmuError::when(action()))?;
        Ok(())
    }

    /// Receives the kernel's answer to the last request, and calls `each` for every message.
    fn hear(&self, mut each: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        loop {
            let (octets, _) = self.socket.recv_from_full()?;
            let mut rest = octets.as_slice();
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
                let message =
                    message.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
                // Messages begin at multiples of four octets (netlink(7)).
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or(&[]);
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    // An error of 0 is the acknowledgement.
                    NetlinkPayload::Error(error) => return error.code.map_or(Ok(()), |_| Err(error.to_io())),
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::InnerMessage(message) => each(message),
                    _ => {}
                }
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

/// Returns `prefix`, if `address` has at least that many bits.
fn checked(address: IpAddr, prefix: u8) -> Result<u8, EmuError> {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    if prefix <= bits { Ok(prefix) } else { Err(EmuError::Prefix { address, prefix, bits }) }
}
