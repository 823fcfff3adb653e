use farcast_delivery::Transport;
use std::net::SocketAddr;

use farcast_core::engine::Transmit;
use socket2::SockRef;

use super::*;
use crate::socket::{Endpoint, SocketOptions};
use crate::ssm::headers;

/// Sends three datagrams as `ask` says, from a socket bound to no address. Returns the header that arrives at `at`.
fn arrives(at: &str, ask: impl FnOnce(&mut Transmit<()>)) -> headers::PacketHeader {
    let options = SocketOptions::default();
    let at: SocketAddr = at.parse().expect("an address");
    let to = Endpoint::listener(at, None, &options, Transport::Udp).expect("loopback is there");
    let from = Endpoint::answers(at, &options, Transport::Udp).expect("loopback is there");
    headers::ask_for(&SockRef::from(&to)).expect("Linux tells them");
    let mut transmit = Transmit::new((), to.local());
    ask(&mut transmit);
    from.send(&Envelope::of(&transmit), &[7; 2500], 1000).expect("loopback carries it");
    headers::next(&SockRef::from(&to)).expect("it has come")
}

#[test]
fn what_an_engine_asks_for_is_in_the_header() {
    let plain = arrives("127.0.0.1:0", |_| {});
    assert_eq!((plain.source.ip(), plain.options.as_slice()), ([127, 0, 0, 1].into(), &[][..]));
    let asked = arrives("127.0.0.1:0", |transmit| {
        transmit.source = Some("127.0.0.2:0".parse().expect("an address"));
        transmit.ttl = Some(7);
        transmit.router_alert = true;
    });
    assert_eq!(
        (asked.source.ip(), asked.ttl, asked.options),
        ([127, 0, 0, 2].into(), 7, ROUTER_ALERT.into())
    );
    let six = arrives("[::1]:0", |transmit| {
        transmit.source = Some("[::1]:0".parse().expect("an address"));
        (transmit.ttl, transmit.interface) = (Some(9), loopback());
    });
    assert_eq!((six.source.ip(), six.ttl), ("::1".parse().expect("an address"), 9));
}

#[test]
fn the_interface_is_the_one_that_is_asked_for() {
    let sent = |interface: u32| {
        let options = SocketOptions::default();
        let any = "127.0.0.1:0".parse().expect("an address");
        let (to, from) = (
            Endpoint::listener(any, None, &options, Transport::Udp),
            Endpoint::sender(any, &options, Transport::Udp),
        );
        let (to, from) = (to.expect("bound"), from.expect("bound"));
        let transmit = Transmit { interface, ..Transmit::new((), to.local()) };
        from.send(&Envelope::of(&transmit), &[7; 1000], 1000)
    };
    sent(loopback()).expect("it is the way");
    assert!(sent(u32::MAX >> 1).is_err(), "there is none with this number");
}

#[test]
fn what_a_socket_cannot_do_is_refused() {
    let own: SocketAddr = "192.0.2.1:5402".parse().expect("an address");
    let check = |to: &str, source: Option<&str>, router_alert| {
        let source = source.map(|source| source.parse().expect("an address"));
        let transmit = Transmit::new((), to.parse().expect("an address"));
        Envelope::of(&Transmit { source, router_alert, ..transmit }).check(own).is_ok()
    };
    assert!(check("239.255.1.1:5402", None, true));
    assert!(check("239.255.1.1:5402", Some("192.0.2.1:5402"), false));
    assert!(check("239.255.1.1:5402", Some("192.0.2.9:0"), false));
    assert!(!check("239.255.1.1:5402", Some("192.0.2.1:5403"), false), "a socket has one port");
    assert!(!check("[ff15::1]:5402", None, true), "IPv6's alert has a number");
}

fn loopback() -> u32 {
    std::fs::read_to_string("/sys/class/net/lo/ifindex")
        .expect("Linux has it")
        .trim()
        .parse()
        .expect("a number")
}
