//! The rate that was asked for is the rate on the wire.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and open its own files"
)]

mod common;

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::Place;
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};

const RATE: u64 = 2_000_000;
const SECOND: Duration = Duration::from_secs(1);
/// These tests measure, so one at a time.
static ALONE: Mutex<()> = Mutex::new(());
/// Of IPv4 and UDP.
const HEADERS: u64 = 28;

/// Joins the group of `place`, and tells the kernel to stamp what comes.
fn tap(place: &Place) -> (UdpSocket, UdpSocketState) {
    let group: SocketAddr = place.group.parse().unwrap();
    // The group's port is shared with receivers; an address to bind to that is the group keeps other traffic away.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&group.into()).unwrap();
    let socket: UdpSocket = socket.into();
    let SocketAddr::V4(v4) = group else { panic!("{group} is no IPv4 address") };
    socket.join_multicast_v4(v4.ip(), &"127.0.0.1".parse().unwrap()).unwrap();
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).unwrap();
    (socket, state)
}

/// When each datagram came, by the kernel's clock, and its bytes with headers; until nothing comes any more.
fn capture(
    (socket, state): &(UdpSocket, UdpSocketState),
    sender: &mut common::Running,
) -> Vec<(Duration, u64)> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    common::wait_until("the sender's end", || {
        let mut meta = [RecvMeta::default()];
        while let Ok(1) = state.recv(UdpSockRef::from(socket), &mut [IoSliceMut::new(&mut buffer)], &mut meta)
        {
            let at = meta[0].timestamp.expect("the kernel stamps datagrams");
            let (mut left, stride) = (meta[0].len, meta[0].stride.max(1));
            while left > 0 {
                let len = left.min(stride);
                all.push((at, len as u64 + HEADERS));
                left -= len;
            }
        }
        !sender.is_running()
    });
    all
}

/// The second, of all that begin with a datagram of the first pass, whose bytes are farthest from the rate.
fn worst_second(datagrams: &[(Duration, u64)]) -> (u64, u64) {
    let data: Vec<_> = datagrams.iter().filter(|(_, len)| *len > 1000).collect();
    let (first, last) = (data[0].0, data[data.len() - 1].0);
    let mut worst = (0, RATE / 8);
    for &&(begin, _) in data.iter().filter(|(at, _)| *at >= first && *at + SECOND <= last) {
        let inside = datagrams.iter().filter(|(at, _)| (begin..begin + SECOND).contains(at));
        let bytes: u64 = inside.map(|(_, len)| len).sum();
        if bytes.abs_diff(RATE / 8) > worst.0 {
            worst = (bytes.abs_diff(RATE / 8), bytes);
        }
    }
    worst
}

#[test]
fn every_second_carries_the_rate_within_one_per_cent() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut said = Vec::new();
    // Where the machine takes the processor away from the sender for longer than it may make up for, that second is
    // too low through no fault of the pacer's: up to three tries.
    for _ in 0..3 {
        let place = Place::new();
        let file = place.file("product.bin", 1_250_000);
        let receiver = place.receive("ant", &[]);
        let tap = tap(&place);
        let mut sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
        let datagrams = capture(&tap, &mut sender);
        let sent = sender.succeed().summary();
        receiver.succeed();
        assert_eq!(sent["passes"], 1, "nothing is lost here: {sent}");
        let longest = datagrams.iter().map(|(_, len)| *len).max().unwrap();
        let (off, bytes) = worst_second(&datagrams);
        if off <= (RATE / 8 / 100).max(longest) {
            return;
        }
        said.push(format!("{bytes} bytes in a second instead of {}", RATE / 8));
    }
    panic!("in each of three tries: {said:?}");
}

#[test]
fn a_burst_is_no_longer_than_asked() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let file = place.file("product.bin", 400_000);
    let receiver = place.receive("ant", &[]);
    let tap = tap(&place);
    let args = ["--rate", "8 Mbit/s", "--burst", "1500 B", "--no-offload", "--receivers", "ant"];
    let mut sender = place.send(&[&file], &args);
    let datagrams = capture(&tap, &mut sender);
    sender.succeed();
    receiver.succeed();
    // 5 ms that a late driver may make up for, a burst, and 10 ms: not more than that within any 10 ms.
    let most = 8_000_000 / 8 * 15 / 1000 + 3 * 1500;
    for &(begin, _) in &datagrams {
        let inside =
            datagrams.iter().filter(|(at, _)| (begin..begin + Duration::from_millis(10)).contains(at));
        let bytes: u64 = inside.map(|(_, len)| len).sum();
        assert!(bytes <= most, "{bytes} bytes within 10 ms");
    }
}
