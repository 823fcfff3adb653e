//! Connections with the kernel that end, stall, and carry data both ways at once.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use farcast_core::Span;
use farcast_emu::namespace::Namespace;
use farcast_tcp::{Config, Event, Failure, ReceiveWindow, Window};
use socket2::{Domain, SockRef, Socket, Type};

use crate::common::{KERNEL, OURS, Ours, at, kernel, octets, patience};

const PORT: u16 = 7;

fn meet(config: Config) -> (Namespace, Ours) {
    let (namespace, tun) = kernel(1500);
    (namespace, Ours::new(tun, OURS, config))
}

/// A listener of the kernel's.
fn listener(namespace: &Namespace) -> TcpListener {
    namespace.run(|| TcpListener::bind(at(KERNEL, PORT)).unwrap()).unwrap()
}

/// A connection from the kernel to us.
fn connect(namespace: &Namespace) -> io::Result<TcpStream> {
    let stream = namespace.run(|| TcpStream::connect(at(OURS, PORT))).unwrap()?;
    stream.set_read_timeout(Some(patience()))?;
    Ok(stream)
}

fn read_all(mut stream: TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    received
}

#[test]
fn the_kernel_refuses_where_nobody_listens() {
    let (_namespace, mut ours) = meet(Config::modern());
    let id = ours.connect(at(KERNEL, 81));
    assert_eq!(ours.ended(id), Err(Failure::Refused));
    assert!(!ours.happened(id, Event::Connected));
}

#[test]
fn the_kernel_resets() {
    let (namespace, mut ours) = meet(Config::modern());
    let listener = listener(&namespace);
    let id = ours.connect(at(KERNEL, PORT));
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        });
        assert_eq!(ours.ended(id), Err(Failure::Reset));
        server.join().unwrap();
    });
    assert!(ours.happened(id, Event::Connected));
}

#[test]
fn we_reset() {
    let (namespace, mut ours) = meet(Config::modern());
    ours.listen(PORT);
    let error = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut stream = connect(&namespace).unwrap();
            stream.write_all(b"!").unwrap();
            stream.read(&mut [0]).unwrap_err()
        });
        let id = ours.accept();
        ours.turn_until(|ours| ours.host().readable(id) == b"!");
        ours.host().abort(id);
        assert_eq!(ours.ended(id), Err(Failure::Aborted));
        ours.joined(client)
    });
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn one_half_closes_and_the_other_goes_on() {
    let (namespace, mut ours) = meet(Config::modern());
    ours.listen(PORT);
    let sent = octets(1_000_000);
    let received = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let stream = connect(&namespace).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            read_all(stream)
        });
        let id = ours.accept();
        ours.turn_until(|ours| ours.happened(id, Event::PeerClosed));
        ours.host().send(id, &sent);
        ours.host().close(id);
        assert_eq!(ours.ended(id), Ok(()));
        ours.joined(client)
    });
    assert!(received == sent, "{} octets", received.len());
}

/// The kernel sends back all that it receives, while we send and receive.
fn echoed(config: Config, loss: f64) {
    let (namespace, mut ours) = meet(config);
    ours.lose(loss);
    let listener = listener(&namespace);
    let id = ours.connect(at(KERNEL, PORT));
    let sent = octets(2_000_000);
    ours.host().send(id, &sent);
    ours.host().close(id);
    let received = thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(patience())).unwrap();
            let mut sink = stream.try_clone().unwrap();
            io::copy(&mut stream, &mut sink).unwrap()
        });
        let received = ours.read_to_end(id).unwrap();
        assert_eq!(server.join().unwrap(), sent.len() as u64);
        received
    });
    assert!(received == sent, "{} octets came back", received.len());
}

#[test]
fn both_ways_at_once() {
    // A send buffer that fills, so that writing stalls too.
    echoed(Config { send_buffer: 100_000, ..Config::modern() }, 0.0);
}

#[test]
fn both_ways_at_once_with_losses() {
    echoed(Config { send_buffer: 100_000, ..Config::modern() }, 0.01);
}

#[test]
fn a_kernel_that_does_not_read_closes_its_window() {
    let (namespace, mut ours) = meet(Config::modern());
    ours.listen(PORT);
    let sent = octets(1_000_000);
    let (id, received) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let socket = namespace.run(|| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()).unwrap();
            socket.set_recv_buffer_size(30_000).unwrap();
            socket.connect(&at(OURS, PORT).into()).unwrap();
            socket.set_read_timeout(Some(patience())).unwrap();
            thread::sleep(Duration::from_millis(1500));
            read_all(socket.into())
        });
        let id = ours.accept();
        ours.host().send(id, &sent);
        ours.host().close(id);
        assert_eq!(ours.ended(id), Ok(()));
        (id, ours.joined(client))
    });
    assert!(received == sent, "{} octets", received.len());
    let stats = ours.connection(id).stats();
    assert!(stats.window_probes > 0, "{stats:?}");
}

#[test]
fn we_who_do_not_read_close_our_window() {
    const WINDOW: usize = 40_000;
    let window = ReceiveWindow { size: Window::Octets(WINDOW as u64), first: None };
    let (namespace, mut ours) = meet(Config { receive_window: window, ..Config::modern() });
    let listener = listener(&namespace);
    let id = ours.connect(at(KERNEL, PORT));
    let sent = octets(1_000_000);
    let received = thread::scope(|scope| {
        let server = scope.spawn(|| listener.accept().unwrap().0.write_all(&sent).unwrap());
        let begin = ours.driver.now() + Span::from_millis(1500);
        ours.turn_until(|ours| ours.driver.now() > begin);
        let held = ours.host().readable(id).len();
        assert!(held > WINDOW / 2 && held <= WINDOW, "{held} octets are held");
        let received = ours.read_to_end(id).unwrap();
        server.join().unwrap();
        received
    });
    assert!(received == sent, "{} octets", received.len());
}

#[test]
fn a_listener_takes_several_until_it_stops() {
    let (namespace, mut ours) = meet(Config::modern());
    ours.listen(PORT);
    let connect = || connect(&namespace);
    let open = |ours: &mut Ours| thread::scope(|scope| ours.joined(scope.spawn(connect)));
    let clients = [0; 3].map(|_| {
        let client = open(&mut ours).unwrap();
        (ours.accept(), client)
    });
    for (id, client) in &clients {
        assert_eq!(ours.connection(*id).remote(), Some(client.local_addr().unwrap()));
    }
    ours.host().stop_listening(PORT);
    assert_eq!(open(&mut ours).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    // Those that are open go on, the last one first.
    for (n, (id, client)) in clients.into_iter().enumerate().rev() {
        let sent = octets(10_000 + n);
        ours.host().send(id, &sent);
        ours.host().close(id);
        let received = thread::scope(|scope| ours.joined(scope.spawn(|| read_all(client))));
        assert!(received == sent, "client {n}");
        assert_eq!(ours.ended(id), Ok(()));
    }
}
