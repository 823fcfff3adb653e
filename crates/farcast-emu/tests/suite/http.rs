//! The part of HTTP/1.0 (RFC 1945) that fetches a file, on both sides, for the kernel's sockets and for ours.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use farcast_tcp::Failure;
use farcast_tcp::endpoint::ConnectionId;
use socket2::{Domain, SockRef, Socket, Type};

use crate::common::{Ours, patience};

const REQUEST: &[u8] = b"GET /file HTTP/1.0\r\n\r\n";

fn head(file: &[u8]) -> Vec<u8> {
    format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len()).into_bytes()
}

/// The file in a complete answer.
pub(crate) fn body(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{head}");
    assert_eq!(length.parse(), Ok(answer.len() - end));
    &answer[end..]
}

/// A listener of this thread's namespace that sends with the congestion control `congestion`.
pub(crate) fn listener(address: SocketAddr, congestion: &str) -> TcpListener {
    let listener = TcpListener::bind(address).unwrap();
    SockRef::from(&listener).set_tcp_congestion(congestion.as_bytes()).unwrap();
    listener
}

/// The kernel's server: gives `file` to the first client. Returns the kernel's report of the connection, once all is
/// written.
pub(crate) fn serve_once(listener: &TcpListener, file: &[u8]) -> io::Result<String> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(patience()))?;
    stream.set_write_timeout(Some(patience()))?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut some = [0; 1000];
        let len = stream.read(&mut some)?;
        assert!(len > 0, "the client went away");
        request.extend_from_slice(&some[..len]);
    }
    assert_eq!(request, REQUEST);
    stream.write_all(&head(file))?;
    stream.write_all(file)?;
    Ok(socket_statistics())
}

/// The kernel's client. Returns the answer of `server`, and the kernel's report of the connection at the end.
pub(crate) fn fetch(server: SocketAddr, congestion: &str) -> io::Result<(Vec<u8>, String)> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    socket.set_tcp_congestion(congestion.as_bytes())?;
    socket.connect_timeout(&server.into(), patience())?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience()))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok((answer, socket_statistics()))
}

/// Returns the output of `ss` about the connections of this thread's namespace.
fn socket_statistics() -> String {
    let output = Command::new("ss").args(["-tinoH"]).output().expect("ss of the Debian package iproute2");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Our client. Returns the answer of `server`.
pub(crate) fn fetch_with(ours: &mut Ours, server: SocketAddr) -> Result<(ConnectionId, Vec<u8>), Failure> {
    let id = ours.connect(server);
    ours.host().send(id, REQUEST);
    ours.read_to_end(id).map(|answer| (id, answer))
}

/// Our server: gives `file` to the first who asks.
pub(crate) fn serve_once_with(ours: &mut Ours, port: u16, file: &[u8]) -> Result<ConnectionId, Failure> {
    ours.listen(port);
    let id = ours.accept();
    let mut request = Vec::new();
    ours.turn_until(|ours| {
        ours.read_to(id, &mut request);
        request.ends_with(b"\r\n\r\n")
    });
    assert_eq!(request, REQUEST);
    ours.host().send(id, &head(file));
    ours.host().send(id, file);
    ours.host().close(id);
    ours.ended(id).map(|()| id)
}
