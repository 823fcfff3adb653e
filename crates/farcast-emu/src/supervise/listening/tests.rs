//! Against sockets of this process, whose ports the system tells.
#![allow(clippy::disallowed_methods, reason = "the sockets that are looked for")]

use std::net::{TcpListener, TcpStream, UdpSocket};

use super::*;

#[test]
fn rows_are_read_as_the_manual_shows_them() {
    let listening =
        "   0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0";
    assert_eq!(row(listening), Some((22, LISTEN)));
    let six =
        "  1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 07 0:0 0:0 0 0 0 1";
    assert_eq!(row(six), Some((8080, CLOSE)));
    assert_eq!(
        row("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"),
        None
    );
    assert_eq!(row("0: 0100007F:0000 00000000:0000 07"), None, "bound to no port");
    assert_eq!(row(""), None);
}

#[test]
fn a_port_counts_while_a_socket_listens_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = |address: io::Result<std::net::SocketAddr>| address.unwrap().port();
    let (tcp, udp) = (port(listener.local_addr()), port(server.local_addr()));
    let there = ports().unwrap();
    assert!(there.contains(&(Transport::Tcp, tcp)) && there.contains(&(Transport::Udp, udp)), "{there:?}");
    // A client of a server is not a listener.
    let talking = TcpStream::connect(("127.0.0.1", tcp)).unwrap();
    let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
    asking.connect(("127.0.0.1", udp)).unwrap();
    let there = ports().unwrap();
    assert!(!there.contains(&(Transport::Tcp, port(talking.local_addr()))), "{there:?}");
    assert!(!there.contains(&(Transport::Udp, port(asking.local_addr()))), "{there:?}");
}

#[test]
fn two_sockets_at_one_port_are_one() {
    let six = TcpListener::bind("[::1]:0").unwrap();
    let port = six.local_addr().unwrap().port();
    // Another process may have this port of IPv4, so that binding fails; the port is in use all the same.
    let _four = TcpListener::bind(("127.0.0.1", port));
    let there = ports().unwrap();
    assert_eq!(there.iter().filter(|found| **found == (Transport::Tcp, port)).count(), 1, "{there:?}");
}
