//! Runs with the kernel's TCP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use farcast_core::Time;
use farcast_emu::EmuError;
use farcast_emu::emulation::Emulation;
use farcast_emu::host::Host;
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_congestion};
use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket};

use super::cases::Protocol;
use super::runs::{AgreementRun, Ending, Outcome, failure, hurry};
use crate::study::StudyError;

const PORT: u16 = 5001;
/// Longest time that a call waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Parameters of the kernel, as in the measurements that our settings follow: default buffers, and nothing remembered
/// from earlier connections.
const PARAMETERS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
];

/// Runs a job, and returns its outcome.
pub(super) fn run(
    job: &AgreementRun<'_>,
    emulation: &Emulation,
    ending: Ending<'_>,
) -> Result<Outcome, StudyError> {
    let Protocol::Tcp { congestion } = job.setting.case.protocol else {
        return Err(failure("the kernel speaks TCP here"));
    };
    let (hub, terminal) = (emulation.hub(), &emulation.terminals()[0]);
    prepare(hub)?;
    prepare(terminal)?;
    let sink = SocketAddrV4::new(terminal.address(), PORT);
    let payload = &*job.size.payload;
    let (listens, listening) = channel();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            terminal.namespace().enter()?;
            receive(sink, congestion, payload, ending, &listens)
        });
        let sender = scope.spawn(move || {
            hub.namespace().enter()?;
            // If the receiver does not listen, its own error says why.
            let _ = listening.recv();
            send(sink, congestion, payload, ending)
        });
        let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let completed = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Outcome { seconds: completed.since(sent?).as_secs_f64(), passes: None, segments: None })
    })
}

fn prepare(host: &Host) -> Result<(), EmuError> {
    PARAMETERS.iter().try_for_each(|(name, value)| host.namespace().set_parameter(name, value))
}

/// Creates a socket with this congestion control.
fn tcp(congestion: &str) -> Result<OwnedFd, StudyError> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_tcp_congestion(&socket, congestion)
        .map_err(|error| failure(&format!("the kernel has no congestion control {congestion}: {error}")))?;
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
    }
    Ok(socket)
}

/// Receives everything and compares it with `payload`. Returns the time of the last octet.
fn receive(
    at: SocketAddrV4,
    congestion: &str,
    payload: &[u8],
    ending: Ending<'_>,
    listens: &Sender<()>,
) -> Result<Time, StudyError> {
    hurry();
    let socket = tcp(congestion)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, at.port()))?;
    listen(&socket, 1)?;
    // The sender waits for this message.
    let _ = listens.send(());
    let (mut stream, _) = TcpListener::from(socket).accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut missing, mut buffer) = (payload, vec![0; 1 << 16]);
    while !missing.is_empty() {
        if ending.is_due() {
            return Err(failure("a connection did not end in its time"));
        }
        let count = stream.read(&mut buffer)?;
        match missing.strip_prefix(&buffer[..count]) {
            Some(rest) if count > 0 => missing = rest,
            _ => return Err(failure("other octets arrived than were sent, or fewer")),
        }
    }
    Ok(ending.clock.now())
}

/// Connects and sends everything. Returns the time at which it began.
fn send(to: SocketAddrV4, congestion: &str, payload: &[u8], ending: Ending<'_>) -> Result<Time, StudyError> {
    hurry();
    let socket = tcp(congestion)?;
    let began = ending.clock.now();
    connect(&socket, &SocketAddr::V4(to))?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(payload)?;
    stream.shutdown(Shutdown::Write)?;
    // This waits until the other end has everything and closes.
    let _ = stream.read(&mut [0; 1])?;
    Ok(began)
}
