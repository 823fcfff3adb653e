//! farcast's own TCP behind a TUN device, in wall time: to the kernel it is a host on the network.
//!
//! A [`Driver`] has no thread. Its owner calls [turn](Driver::turn), receives events, and gives the host orders:
//!
//! ```no_run
//! use std::net::{IpAddr, SocketAddr};
//!
//! use farcast_core::Span;
//! use farcast_emu::driver::Driver;
//! use farcast_emu::tun::Tun;
//! use farcast_tcp::endpoint::{Carries, Endpoint, EndpointConfig, EndpointEvent};
//! use farcast_tcp::{Config, Event};
//!
//! fn fetch(tun: Tun, ours: IpAddr, server: SocketAddr) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//!     let config = EndpointConfig { address: ours, tcp: Config::modern(), most_connections: 10, seed: 1 };
//!     let mut driver = Driver::new(tun, Endpoint::new(config)?);
//!     let now = driver.now();
//!     let id = driver.host_mut().connect(now, None, server, Carries::Octets)?;
//!     driver.host_mut().send(id, b"GET /file HTTP/1.0\r\n\r\n");
//!     let (mut answer, mut over) = (Vec::new(), false);
//!     while !over {
//!         driver.turn(Span::from_secs(1), |host, _, event| {
//!             let readable = host.readable(id);
//!             answer.extend_from_slice(readable);
//!             let octets = readable.len() as u64;
//!             host.consume(id, octets);
//!             match event {
//!                 EndpointEvent::Of(_, Event::PeerClosed) => host.close(id),
//!                 EndpointEvent::Of(_, Event::Closed | Event::Failed(_)) => over = true,
//!                 _ => {}
//!             }
//!         })?;
//!     }
//!     Ok(answer)
//! }
//! ```
//!
//! Every TCP packet of the device goes to the host. Other protocols are counted and dropped: a ping gets no answer.

mod carrier;

use std::net::IpAddr;

use farcast_core::engine::{Reject, Transmit};
use farcast_core::{Arrival, Engine, Losses, Span, Time};
use farcast_tcp::Segment;
use farcast_tcp::endpoint::Endpoint;
use farcast_tcp::wire::Addresses;

use crate::clock::sharpen_timers;
use crate::tun::Tun;
use crate::{Clock, EmuError};
use carrier::Carrier;
pub use carrier::Counts;

/// Most packets read before timers are checked again.
const BATCH: usize = 64;

/// Engine that speaks TCP, with the octets of its segments.
pub trait Host: Engine<Message = Segment> {
    /// Takes a segment that arrived at `now` with its data. The data stay valid only during this call.
    ///
    /// # Errors
    /// Like [`Engine::handle`].
    fn handle_octets(
        &mut self,
        now: Time,
        from: &Arrival,
        segment: &Segment,
        octets: &[u8],
    ) -> Result<(), Reject>;

    /// Returns the data of a segment that is about to leave from `source` to `destination`, as many octets as its
    /// payload has; `None` if the segment need not leave any more.
    fn octets(&mut self, segment: &Segment, source: IpAddr, destination: IpAddr) -> Option<&[u8]>;
}

/// Endpoint whose connections carry octets. For connections that carry ranges, the owner of the files wraps the
/// endpoint.
impl Host for Endpoint {
    fn handle_octets(
        &mut self,
        now: Time,
        from: &Arrival,
        segment: &Segment,
        octets: &[u8],
    ) -> Result<(), Reject> {
        Self::handle_octets(self, now, from, segment, octets)
    }

    fn octets(&mut self, segment: &Segment, _source: IpAddr, destination: IpAddr) -> Option<&[u8]> {
        Self::octets(self, segment, destination)
    }
}

/// A host behind a TUN device.
#[derive(Debug)]
pub struct Driver<H> {
    clock: Clock,
    carrier: Carrier,
    host: H,
    /// The current packet.
    buffer: Vec<u8>,
}

impl<H: Host> Driver<H> {
    /// Puts `host` behind `tun`, in the calling thread. Time begins now.
    pub fn new(tun: Tun, host: H) -> Self {
        sharpen_timers();
        let buffer = vec![0; usize::from(u16::MAX)];
        Self { clock: Clock::start(), carrier: Carrier::new(tun), host, buffer }
    }

    /// Sets loss processes for packets of the kernel (`incoming`) and of the host (`outgoing`). A packet is lost if
    /// receiver 0 of its process loses it; its octets include the IP header.
    pub fn lose(&mut self, incoming: Box<dyn Losses>, outgoing: Box<dyn Losses>) {
        self.carrier.lose(incoming, outgoing);
    }

    /// Sends the host's packets, waits for packets and timers for at most `limit`, and hands them to the host. Calls
    /// `owner` at once for each event. Returns once something was handled.
    ///
    /// # Errors
    /// The system's error of the device.
    pub fn turn(
        &mut self,
        limit: Span,
        mut owner: impl FnMut(&mut H, Time, H::Event),
    ) -> Result<(), EmuError> {
        let now = self.clock.now();
        self.settle(now, &mut owner)?;
        let deadline = self.host.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        if self.clock.wait(&self.carrier, deadline.min(now + limit))? {
            self.receive(&mut owner)?;
        }
        let now = self.clock.now();
        self.host.handle_timeout(now);
        self.settle(now, &mut owner)
    }

    /// Returns the time of the host's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// Returns the host, for orders to it. Its packets leave with the next turn.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Returns counts of packets received, sent, lost and dropped so far.
    pub fn counts(&self) -> &Counts {
        self.carrier.counts()
    }

    /// Reads packets and hands them to the host.
    fn receive(&mut self, owner: &mut impl FnMut(&mut H, Time, H::Event)) -> Result<(), EmuError> {
        for _ in 0..BATCH {
            let Some(len) = self.carrier.read(&mut self.buffer)? else { break };
            let now = self.clock.now();
            if let Some((arrival, segment, octets)) = self.carrier.parse(&self.buffer[..len], now) {
                // The host counts the segments that it turns down, and answers them if TCP requires that.
                let _ = self.host.handle_octets(now, &arrival, &segment, octets);
                self.settle(now, owner)?;
            }
        }
        Ok(())
    }

    /// Reports events to the owner and sends packets, until there are no more.
    fn settle(&mut self, now: Time, owner: &mut impl FnMut(&mut H, Time, H::Event)) -> Result<(), EmuError> {
        loop {
            while let Some(event) = self.host.poll_event() {
                owner(&mut self.host, now, event);
            }
            if let Some(transmit) = self.host.poll_transmit(now, now) {
                self.send(now, &transmit)?;
                continue;
            }
            // The poll for a packet may have caused an event.
            let Some(event) = self.host.poll_event() else { return Ok(()) };
            owner(&mut self.host, now, event);
        }
    }

    fn send(&mut self, now: Time, transmit: &Transmit<Segment>) -> Result<(), EmuError> {
        let (segment, destination) = (&transmit.message, transmit.destination.ip());
        // A connection knows both its addresses, and they are of one family.
        let Some(source) = transmit.source.map(|source| source.ip()) else { return Ok(()) };
        let Some(addresses) = Addresses::new(source, destination) else { return Ok(()) };
        match self.host.octets(segment, source, destination) {
            Some(octets) => self.carrier.write(segment, addresses, octets, now),
            None => Ok(()),
        }
    }
}
