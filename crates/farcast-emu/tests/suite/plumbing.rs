//! Devices, namespaces, addresses and routes are as the kernel reports them.

use std::fs;
use std::io::IoSlice;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use farcast_core::Span;
use farcast_emu::namespace::Namespace;
use farcast_emu::network::Network;
use farcast_emu::packet;
use farcast_emu::tun::{Tun, TunConfig};
use farcast_emu::{Clock, EmuError};
use farcast_tcp::Config;

use crate::common::{KERNEL, KERNEL_6, OURS, OURS_6, Ours, PATIENCE, at, ip, kernel};

/// Returns the output of `ip` in `namespace`.
fn shown(namespace: &Namespace, args: &[&str]) -> String {
    let mut command = Command::new("ip");
    let child = namespace.spawn(command.args(args).stdout(Stdio::piped())).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "ip {args:?}; it is in the Debian package iproute2");
    String::from_utf8(output.stdout).unwrap()
}

/// The next packet of IP protocol `protocol`.
fn next_packet(tun: &Tun, protocol: u8) -> Vec<u8> {
    let clock = Clock::start();
    let mut buffer = vec![0; 65_535];
    loop {
        match tun.read(&mut buffer).unwrap() {
            Some(len) if packet::decode(&buffer[..len]).is_ok_and(|p| p.protocol == protocol) => {
                buffer.truncate(len);
                return buffer;
            }
            Some(_) => {}
            None => assert!(clock.wait(tun, clock.now() + PATIENCE).unwrap(), "no packet came"),
        }
    }
}

#[test]
fn a_device_is_as_it_was_asked_for() {
    let namespace = Namespace::create().unwrap();
    let config = TunConfig { mtu: 1234, queue: 777, ..TunConfig::new("emu-test") };
    let tun = namespace.run(|| Tun::open(&config)).unwrap().unwrap();
    let link = shown(&namespace, &["-details", "link", "show", "dev", "emu-test"]);
    for expected in ["mtu 1234", "qlen 777", "type tun", "pi off", "vnet_hdr off", "state DOWN"] {
        assert!(link.contains(expected), "{expected}: {link}");
    }
    drop(tun);
    assert!(!shown(&namespace, &["link", "show"]).contains("emu-test"), "it must be gone");
}

#[test]
fn addresses_and_routes_are_set() {
    let (namespace, _tun) = kernel(1500);
    namespace
        .run(|| {
            let mut network = Network::open().unwrap();
            network.add_route(ip("0.0.0.0"), 0, "tun0").unwrap();
            network.add_route(ip("2001:db8::"), 32, "tun0").unwrap();
            network.set_mtu("tun0", 900).unwrap();
        })
        .unwrap();
    let addresses = shown(&namespace, &["-brief", "address", "show", "dev", "tun0"]);
    assert!(addresses.contains("10.77.0.1/24"), "{addresses}");
    let routes = shown(&namespace, &["route", "show"]);
    assert!(routes.contains("default dev tun0") && routes.contains("10.77.0.0/24 dev tun0"), "{routes}");
    assert!(shown(&namespace, &["link", "show", "dev", "tun0"]).contains("mtu 900"));
    assert!(shown(&namespace, &["link", "show", "dev", "lo"]).contains("UP"));
}

#[test]
fn six_has_addresses_and_routes_too() {
    let (namespace, _tun) = kernel(1500);
    namespace.run(|| Network::open().unwrap().add_route(ip("2001:db8::"), 32, "tun0").unwrap()).unwrap();
    let addresses = shown(&namespace, &["-6", "address", "show", "dev", "tun0"]);
    assert!(addresses.contains("fd77::1/64") && !addresses.contains("tentative"), "{addresses}");
    let routes = shown(&namespace, &["-6", "route", "show"]);
    assert!(routes.contains("2001:db8::/32 dev tun0"), "{routes}");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let (namespace, _tun) = kernel(1500);
    let said = namespace
        .run(|| {
            let mut network = Network::open().unwrap();
            [
                network.set_up("nothing").unwrap_err(),
                network.add_address("tun0", ip(OURS), 33).unwrap_err(),
                network.add_address("tun0", ip(KERNEL), 24).unwrap_err(),
                Tun::open(&TunConfig::new("tun0")).unwrap_err(),
            ]
        })
        .unwrap();
    let said = said.map(|error| error.to_string());
    assert_eq!(said[0], "there is no interface \"nothing\" in this namespace");
    assert_eq!(said[1], "10.77.0.2/33: an address of this family has only 32 bits");
    assert!(said[2].starts_with("cannot give tun0 the address 10.77.0.1/24: "), "{}", said[2]);
    assert!(said[3].starts_with("cannot make the TUN device \"tun0\": "), "{}", said[3]);
    for name in ["", "a name", "sixteen-letters!", "a/b", "a:b", "..", "tun%d"] {
        let error = TunConfig::new(name).check().unwrap_err();
        assert!(matches!(error, EmuError::Name(_)), "{name}");
    }
    assert!(matches!(TunConfig { mtu: 67, ..TunConfig::new("a") }.check(), Err(EmuError::Mtu(67))));
    assert!(namespace.set_parameter("net.ipv4.no_such_thing", "1").is_err());
}

#[test]
fn a_thread_elsewhere_stays_where_it_is() {
    let here = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let namespace = Namespace::create().unwrap();
    let there = namespace.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    assert_ne!(there, here);
    assert_eq!(fs::read_link("/proc/thread-self/ns/net").unwrap(), here);
    let mut sleeper = namespace.spawn(Command::new("sleep").arg("60")).unwrap();
    let child = fs::read_link(format!("/proc/{}/ns/net", sleeper.id())).unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(child, there);
    let again = Namespace::open(format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd())).unwrap();
    assert_eq!(again.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap(), there);
}

#[test]
fn packets_pass_whole_in_both_directions() {
    let (namespace, tun) = kernel(65_535);
    let socket = namespace.run(|| UdpSocket::bind((KERNEL, 9)).unwrap()).unwrap();
    let contents: Vec<u8> = (0..65_507u32).map(|n| ((n * n) >> 7) as u8).collect();
    // The socket is the namespace's, wherever this thread is.
    socket.send_to(&contents, at(OURS, 9)).unwrap();
    let packet = next_packet(&tun, 17);
    assert_eq!(packet.len(), 65_535, "one packet, neither cut nor cut up");
    assert!(packet.ends_with(&contents));

    // Back it goes in two parts, with source and destination exchanged, which no checksum notices.
    let mut back = packet;
    for at in 12..16 {
        back.swap(at, at + 4);
    }
    let (head, tail) = back.split_at(1001);
    assert!(tun.write(&[IoSlice::new(head), IoSlice::new(tail)]).unwrap());
    let mut received = vec![0; 65_535];
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (len, from) = socket.recv_from(&mut received).unwrap();
    assert_eq!((len, from), (65_507, at(OURS, 9)));
    assert_eq!(received[..len], contents);
}

#[test]
fn a_device_that_is_down_takes_nothing() {
    let namespace = Namespace::create().unwrap();
    let tun = namespace.run(|| Tun::open(&TunConfig::new("tun0"))).unwrap().unwrap();
    let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    assert!(!tun.write(&[IoSlice::new(&packet)]).unwrap());
    assert_eq!(tun.read(&mut [0; 100]).unwrap(), None);
}

/// The ones'-complement checksum of ICMP, word by word.
fn icmp_checksum(message: &[u8]) -> u16 {
    let words =
        message.chunks(2).map(|word| u32::from(word[0]) * 256 + u32::from(*word.get(1).unwrap_or(&0)));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

#[test]
fn the_kernels_ping_hears_an_echo_made_by_hand() {
    let (namespace, tun) = kernel(1500);
    let mut ping = Command::new("ping");
    let ping = namespace.spawn(ping.args(["-c", "1", "-W", "10", OURS]).stdout(Stdio::piped())).unwrap();
    let mut packet = next_packet(&tun, 1);
    for at in 12..16 {
        packet.swap(at, at + 4);
    }
    packet[20..24].fill(0); // an echo reply is type 0 (RFC 792)
    let sum = icmp_checksum(&packet[20..]);
    packet[22..24].copy_from_slice(&sum.to_be_bytes());
    assert!(tun.write(&[IoSlice::new(&packet)]).unwrap());
    let output = ping.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 received, 0% packet loss"), "{said}");
}

#[test]
fn the_kernel_is_refused_where_nobody_listens() {
    for address in [OURS, OURS_6] {
        let (namespace, tun) = kernel(1500);
        let mut ours = Ours::new(tun, address, Config::modern());
        let connect = || namespace.run(|| TcpStream::connect(at(address, 80))).unwrap();
        let error = thread::scope(|scope| ours.joined(scope.spawn(connect))).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{address}");
        let counts = *ours.driver.counts();
        // One SYN, one reset; the rest is the kernel looking for IPv6 routers.
        assert_eq!((counts.sent, counts.bad_packet, counts.bad_segment), (1, 0, 0), "{counts:?}");
        assert_eq!(counts.received, 1 + counts.other_protocol, "{counts:?}");
    }
}

#[test]
fn an_address_can_be_used_once_its_interface_is_up() {
    for _ in 0..50 {
        let (namespace, _tun) = kernel(1500);
        let connect = || {
            let socket = UdpSocket::bind("[::]:0")?;
            socket.connect(at(OURS_6, 9))?;
            socket.local_addr()
        };
        let source = namespace.run(connect).unwrap().unwrap();
        assert_eq!(source.ip(), ip(KERNEL_6), "the kernel takes another while this one is tentative");
    }
}

#[test]
fn a_clock_waits_as_long_as_it_is_told() {
    let (_namespace, tun) = kernel(576);
    let clock = Clock::start();
    let until = clock.now() + Span::from_micros(12_345);
    while clock.now() < until {
        assert!(!clock.wait(&tun, until).unwrap(), "nothing comes");
    }
    let late = clock.now().since(until);
    // A busy machine may be late, but not by seconds.
    assert!(late < Span::from_secs(2), "{late}");
}
