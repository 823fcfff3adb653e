//! A benchmark of the network path alone, to compare a transfer's goodput with. It sends and receives datagrams as fast
//! as segmentation offload allows, and looks at none of them.
//!
//! ```text
//! blaster receive GROUP:PORT INTERFACE-ADDRESS
//! blaster send GROUP:PORT INTERFACE-ADDRESS SECONDS DATAGRAMS-IN-A-BATCH
//! ```
//!
//! The receiver prints one JSON line once half a second has passed without a datagram.
#![expect(clippy::print_stdout, reason = "it prints its result")]
#![expect(clippy::disallowed_methods, reason = "it is a driver: it owns its sockets and the clock")]

use std::error::Error;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

/// UDP payload of a datagram: what an Ethernet frame carries.
const DATAGRAM: usize = 1472;
/// Slots of one receive call; each holds one coalesced receive of at most 64 KiB.
const SLOTS: usize = 16;
const SLOT_LEN: usize = 1 << 16;
const BUFFER: usize = 16 << 20;
/// Pause without a datagram after which the receiver ends.
const SILENCE: Duration = Duration::from_millis(500);
const USAGE: &str = "usage: blaster receive GROUP:PORT INTERFACE-ADDRESS | \
    blaster send GROUP:PORT INTERFACE-ADDRESS SECONDS DATAGRAMS-IN-A-BATCH";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["receive", group, interface] => receive(group.parse()?, interface.parse()?),
        ["send", group, interface, seconds, batch] => send(
            group.parse()?,
            interface.parse()?,
            Duration::from_secs_f64(seconds.parse()?),
            batch.parse()?,
        ),
        _ => Err(USAGE.into()),
    }
}

fn socket(address: SocketAddrV4) -> io::Result<(Socket, UdpSocketState)> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // A buffer beyond the system's limit takes privileges; without them the call fails, which is no matter.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER / 4);
    socket.bind(&SockAddr::from(address))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    Ok((socket, state))
}

fn wait(socket: &Socket, flags: PollFlags, most: Duration) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(socket, flags)], Some(&timeout))? > 0)
}

fn send(
    group: SocketAddrV4,
    interface: Ipv4Addr,
    duration: Duration,
    batch: usize,
) -> Result<(), Box<dyn Error>> {
    let (socket, state) = socket(SocketAddrV4::new(interface, 0))?;
    socket.set_multicast_if_v4(&interface)?;
    let batch = batch.clamp(1, state.max_gso_segments());
    let contents = vec![0x5A; DATAGRAM * batch];
    let transmit = Transmit {
        destination: SocketAddr::V4(group),
        ecn: None,
        contents: &contents,
        segment_size: (batch > 1).then_some(DATAGRAM),
        src_ip: None,
    };
    let mut datagrams = 0;
    let start = Instant::now();
    while start.elapsed() < duration {
        match state.try_send(UdpSockRef::from(&socket), &transmit) {
            Ok(()) => datagrams += batch,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(&socket, PollFlags::OUT, Duration::from_millis(1))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"datagrams\":{datagrams},\"bytes\":{},\"seconds\":{seconds:.6}}}", datagrams * DATAGRAM);
    Ok(())
}

fn receive(group: SocketAddrV4, interface: Ipv4Addr) -> Result<(), Box<dyn Error>> {
    let (socket, state) = socket(group)?;
    socket.join_multicast_v4_n(group.ip(), &InterfaceIndexOrAddress::Address(interface))?;
    let mut buffer = vec![0; SLOTS * SLOT_LEN];
    let (mut bytes, mut calls, mut datagrams) = (0, 0_u64, 0);
    let mut span: Option<(Instant, Instant)> = None;
    let waited_for = Instant::now();
    while waited_for.elapsed() < Duration::from_mins(1) {
        if !wait(&socket, PollFlags::IN, SILENCE)? && span.is_some() {
            break;
        }
        let mut slots: Vec<IoSliceMut<'_>> = buffer.chunks_mut(SLOT_LEN).map(IoSliceMut::new).collect();
        let mut meta = [RecvMeta::default(); SLOTS];
        let count = match state.recv(UdpSockRef::from(&socket), &mut slots, &mut meta) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        };
        calls += 1;
        for meta in &meta[..count] {
            bytes += meta.len;
            datagrams += meta.len.div_ceil(meta.stride.max(1));
        }
        let now = Instant::now();
        span = Some((span.map_or(now, |(first, _)| first), now));
    }
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    println!("{{\"datagrams\":{datagrams},\"bytes\":{bytes},\"calls\":{calls},\"seconds\":{seconds:.6}}}");
    Ok(())
}
