//! Runs of our TCP against itself. Each end is behind a TUN device of its own, and the kernels at both ends of the
//! link forward its packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use farcast_core::{Span, Time};
use farcast_emu::EmuError;
use farcast_emu::driver::Driver;
use farcast_emu::emulation::Emulation;
use farcast_emu::host::Host;
use farcast_emu::network::Network;
use farcast_emu::tun::{Tun, TunConfig};
use farcast_tcp::Event;
use farcast_tcp::endpoint::{Carries, Endpoint, EndpointConfig, EndpointEvent};

use super::cases::{Protocol, config};
use super::runs::{AgreementRun, Ending, Outcome, failure, hurry};
use crate::study::StudyError;

/// Name of the device that leads to an engine.
const DEVICE: &str = "engine0";
/// Networks of the engines: behind the hub, and below behind the terminal. The kernel has the first address, the
/// engine the second.
const SOURCE: [u8; 3] = [10, 1, 0];
const SINK: [u8; 3] = [10, 2, 0];
const PORT: u16 = 5001;
/// Interval at which a driver checks whether it must end.
const LOOK: Span = Span::from_millis(50);

fn address([a, b, c]: [u8; 3], host: u8) -> IpAddr {
    Ipv4Addr::new(a, b, c, host).into()
}

/// Runs a job, and returns its outcome.
pub(super) fn run(
    job: &AgreementRun<'_>,
    emulation: &Emulation,
    ending: Ending<'_>,
) -> Result<Outcome, StudyError> {
    let Protocol::Tcp { congestion } = job.setting.case.protocol else {
        return Err(failure("only TCP goes by TUN devices"));
    };
    let mtu = emulation.plan().link.links.mtu;
    let endpoint = |network, seed| {
        let config = EndpointConfig {
            address: address(network, 2),
            tcp: config(congestion),
            most_connections: 4,
            seed,
        };
        Endpoint::new(config)
    };
    let (source, sink) = (endpoint(SOURCE, job.seed)?, endpoint(SINK, !job.seed)?);
    let source_tun = device(emulation.hub(), SOURCE, mtu)?;
    let sink_tun = device(&emulation.terminals()[0], SINK, mtu)?;
    let payload = &*job.size.payload;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sink = scope.spawn(|| {
            let completed = receive(sink_tun, sink, payload, ending);
            done.store(true, Ordering::Relaxed);
            completed
        });
        let sent = send(source_tun, source, payload, ending, &done);
        let completed = sink.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (began, segments) = sent?;
        Ok(Outcome { seconds: completed.since(began).as_secs_f64(), passes: None, segments: Some(segments) })
    })
}

/// Creates a TUN device with a network of its own, to which the kernel forwards.
fn device(host: &Host, network: [u8; 3], mtu: u16) -> Result<Tun, EmuError> {
    host.namespace().set_parameter("net.ipv4.ip_forward", "1")?;
    host.namespace().run(|| {
        let tun = Tun::open(&TunConfig { mtu, ..TunConfig::new(DEVICE) })?;
        let mut kernel = Network::open()?;
        kernel.add_address(DEVICE, address(network, 1), 24)?;
        kernel.set_up(DEVICE)?;
        Ok(tun)
    })?
}

/// Receives everything and compares it with `payload`. Returns the time of the last octet.
fn receive(tun: Tun, mut endpoint: Endpoint, payload: &[u8], ending: Ending<'_>) -> Result<Time, StudyError> {
    hurry();
    endpoint.listen(Some(PORT), Carries::Octets)?;
    let mut driver = Driver::new(tun, endpoint);
    let (mut missing, mut completed, mut broken) = (payload, None, None);
    while completed.is_none() && broken.is_none() {
        if ending.is_due() {
            return Err(failure("a connection did not end in its time"));
        }
        driver.turn(LOOK, |host, _, event| {
            let EndpointEvent::Of(id, event) = event else { return };
            if let Event::Failed(error) = event {
                broken = Some(error.to_string());
            }
            let octets = host.readable(id);
            let count = octets.len();
            match missing.strip_prefix(octets) {
                Some(rest) => missing = rest,
                None => broken = Some("other octets arrived than were sent".into()),
            }
            host.consume(id, count as u64);
            if missing.is_empty() && completed.is_none() {
                completed = Some(ending.clock.now());
            }
        })?;
    }
    completed.ok_or_else(|| failure(&broken.unwrap_or_default()))
}

/// Connects, sends everything, and runs until the other end is `done`. Returns the time at which it began, and the
/// number of segments sent.
fn send(
    tun: Tun,
    endpoint: Endpoint,
    payload: &[u8],
    ending: Ending<'_>,
    done: &AtomicBool,
) -> Result<(Time, f64), StudyError> {
    hurry();
    let mut driver = Driver::new(tun, endpoint);
    let began = ending.clock.now();
    let now = driver.now();
    let sink = SocketAddr::new(address(SINK, 2), PORT);
    let id = driver.host_mut().connect(now, None, sink, Carries::Octets)?;
    driver.host_mut().send(id, payload);
    driver.host_mut().close(id);
    while !done.load(Ordering::Relaxed) && !ending.is_due() {
        driver.turn(LOOK, |_, _, _| {})?;
    }
    let segments = driver.host().connection(id).map_or(0, |connection| connection.stats().data_segments_sent);
    Ok((began, segments as f64))
}
