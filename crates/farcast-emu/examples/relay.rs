//! Throughput of the emulator's relay and of a bare one, which only reads and writes, in the same run (root).
//!
//! `relay [ROUNDS] [SECONDS]` prints a JSON line for each measurement: packets and bits per second that arrive, of UDP
//! datagrams of 1472 octets sent as fast as they go, or of one TCP connection (reno).
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark of real time, with threads and sockets"
)]

use std::error::Error;
use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use farcast_emu::emulation::{Emulation, Plan};
use farcast_emu::namespace::Namespace;
use farcast_emu::network::Network;
use farcast_emu::tun::{Tun, TunConfig};
use farcast_scenario::{Document, Links};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_tcp_congestion};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The links that are measured: a name, and TOML.
const LINKS: [(&str, &str); 3] = [
    ("farcast, nothing set", "[link.forward]\n"),
    (
        "farcast, 10 Gbit/s, 1 ms",
        "[link.forward]\nrate = \"10 Gbit/s\"\ndelay = \"1 ms\"\nqueue = \"2.5 MB\"\n[link.return]\nrate = \"10 Gbit/s\"\ndelay = \"1 ms\"\nqueue = \"2.5 MB\"\n",
    ),
    (
        "farcast, 10 Gbit/s, 10 ms",
        "[link.forward]\nrate = \"10 Gbit/s\"\ndelay = \"10 ms\"\nqueue = \"25 MB\"\n[link.return]\nrate = \"10 Gbit/s\"\ndelay = \"10 ms\"\nqueue = \"25 MB\"\n",
    ),
];

/// Traffic of a measurement.
#[derive(Clone, Copy)]
enum Load {
    Udp,
    Tcp,
}

/// Packets that arrived in the time of a measurement.
struct Arrived {
    packets: u64,
    octets: u64,
    seconds: f64,
}

const PAYLOAD: usize = 1472;
const PORT: u16 = 9000;
/// Receive buffer in octets. It covers pauses of the receiver: the relay is measured, not the scheduler.
const RECEIVE_BUFFER: usize = 4 << 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds);
    for round in 0..rounds {
        for (name, load) in [("udp", Load::Udp), ("tcp", Load::Tcp)] {
            report(round, name, "bare", &bare(load, time)?, "");
            for (link, text) in LINKS {
                let (arrived, more) = emulated(text, load, time)?;
                report(round, name, link, &arrived, &more);
            }
        }
    }
    Ok(())
}

fn report(round: u32, load: &str, relay: &str, arrived: &Arrived, more: &str) {
    let (packets, octets) =
        (arrived.packets as f64 / arrived.seconds, arrived.octets as f64 / arrived.seconds);
    let gbit = octets * 8.0 / 1e9;
    println!(
        r#"{{"round":{round},"load":"{load}","relay":"{relay}","packets_per_s":{packets:.0},"gbit_per_s":{gbit:.4}{more}}}"#
    );
}

/// Through the emulator.
fn emulated(text: &str, load: Load, time: Duration) -> Result<(Arrived, String)> {
    let document = Document::parse("bench", text)?;
    let plan = Plan::between_two(Links::read(&mut document.root())?, 1);
    let emulation = Emulation::start(plan, None)?;
    let terminal = &emulation.terminals()[0];
    let arrived = measure(emulation.hub().namespace(), terminal.namespace(), terminal.address(), load, time)?;
    let report = emulation.finish()?;
    let late = &report.lateness;
    let micro = |seconds: f64| 1e6 * seconds;
    let more = format!(
        r#","late_p50_us":{:.1},"late_p99_us":{:.1},"late_p999_us":{:.1},"late_max_us":{:.1},"dropped_by_devices":{}"#,
        micro(late.p50_s),
        micro(late.p99_s),
        micro(late.p999_s),
        micro(late.max_s),
        report.dropped_by_devices,
    );
    Ok((arrived, more))
}

/// Through a thread that reads and writes.
fn bare(load: Load, time: Duration) -> Result<Arrived> {
    let addresses = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 64, 0, 1)];
    let spaces = [Namespace::create()?, Namespace::create()?];
    let mut devices = Vec::new();
    for (space, address) in spaces.iter().zip(addresses) {
        devices.push(space.run(|| -> std::result::Result<Tun, farcast_emu::EmuError> {
            let tun = Tun::open(&TunConfig::new("bare0"))?;
            let mut network = Network::open()?;
            network.set_up("lo")?;
            network.add_address("bare0", IpAddr::V4(address), 32)?;
            network.set_up("bare0")?;
            network.add_route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, "bare0")?;
            Ok(tun)
        })??);
    }
    let over = Arc::new(AtomicBool::new(false));
    let relay = {
        let over = Arc::clone(&over);
        thread::spawn(move || relay(&devices, &over))
    };
    let arrived = measure(&spaces[0], &spaces[1], addresses[1], load, time);
    over.store(true, Ordering::Relaxed);
    relay.join().expect("the relay does not panic")?;
    arrived
}

fn relay(devices: &[Tun], over: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0; 65_535];
    let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !over.load(Ordering::Relaxed) {
        let mut sources: Vec<_> =
            devices.iter().map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN)).collect();
        poll(&mut sources, Some(&pause))?;
        for (from, to) in [(0, 1), (1, 0)] {
            for _ in 0..64 {
                let Some(len) = devices[from].read(&mut buffer)? else { break };
                devices[to].write(&[IoSlice::new(&buffer[..len])])?;
            }
        }
    }
    Ok(())
}

fn measure(
    hub: &Namespace,
    terminal: &Namespace,
    to: Ipv4Addr,
    load: Load,
    time: Duration,
) -> Result<Arrived> {
    match load {
        Load::Udp => udp(hub, terminal, to, time),
        Load::Tcp => tcp(hub, terminal, to, time),
    }
}

fn udp(hub: &Namespace, terminal: &Namespace, to: Ipv4Addr, time: Duration) -> Result<Arrived> {
    let receiver = terminal.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
    set_socket_recv_buffer_size(&receiver, RECEIVE_BUFFER)?;
    receiver.set_read_timeout(Some(Duration::from_millis(200)))?;
    let sender = hub.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
    sender.connect(SocketAddr::from((to, PORT)))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let payload = [0; PAYLOAD];
            while !over.load(Ordering::Relaxed) {
                // A queue that is full for a moment is part of the measurement.
                let _ = sender.send(&payload);
            }
        });
        let mut buffer = [0; 2048];
        // Until the first one is there nothing counts.
        let first = receiver.recv(&mut buffer);
        let begin = Instant::now();
        let mut packets = 0;
        while first.is_ok() && begin.elapsed() < time {
            packets += u64::from(receiver.recv(&mut buffer).is_ok());
        }
        let seconds = begin.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        // IP counts, as on a link.
        Ok(Arrived { packets, octets: packets * (PAYLOAD as u64 + 28), seconds })
    })
}

fn tcp(hub: &Namespace, terminal: &Namespace, to: Ipv4Addr, time: Duration) -> Result<Arrived> {
    let listener = terminal.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || -> Result<()> {
            let mut stream = hub.run(|| TcpStream::connect((to, PORT)))??;
            set_tcp_congestion(&stream, "reno")?;
            let payload = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                stream.write_all(&payload)?;
            }
            Ok(())
        });
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; 1 << 18];
        // Slow start is not part of the measurement.
        let begin = Instant::now();
        while begin.elapsed() < time / 4 {
            let _ = stream.read(&mut buffer)?;
        }
        let (begin, mut octets) = (Instant::now(), 0);
        while begin.elapsed() < time {
            octets += stream.read(&mut buffer)? as u64;
        }
        let seconds = begin.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        drop(stream);
        // With the headers of full segments, as on a link.
        let packets = octets.div_ceil(1448);
        Ok(Arrived { packets, octets: octets + packets * 52, seconds })
    })
}
