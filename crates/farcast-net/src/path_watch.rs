//! A sender's path to its destination, which follows changes of the interfaces; and waiting for a path that is not
//! there yet.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::{Span, Time};
use farcast_delivery::Transport;

use crate::clock::Clock;
use crate::error::NetError;
use crate::interface::{self, Interface, source_for};
use crate::links::{Changes, LOOK_EVERY, Links};
use crate::socket::{Endpoint, SocketOptions};

/// Longest time until a request to stop is noticed.
const STOP_LATENCY: Span = Span::from_secs(1);

/// Notice about a sender's path and its sockets.
#[derive(Debug)]
pub enum PathNotice<'a> {
    /// The interface, the address or the route is gone; nothing is sent until it comes back.
    Waiting {
        /// Error that names the missing thing.
        why: &'a NetError,
    },
    /// The interface, the address or the route is there again.
    Back,
    /// Our own address has changed.
    Moved {
        /// New address.
        address: SocketAddr,
    },
    /// The path carries less than the length of our datagrams, so they leave in IP fragments.
    Fragmenting {
        /// Length of the longest IP packet that it carries, as far as this host knows, octets.
        packet: usize,
        /// Segment size that would need no fragments, octets.
        segment: usize,
    },
    /// A receiver gets short datagrams and no long one, so long ones leave in pieces from now on.
    Narrow {
        /// Address of the receiver.
        receiver: SocketAddr,
        /// Length of datagrams that do not arrive there, octets without headers of UDP and IP.
        datagram: usize,
        /// Length of the longest datagram that leaves from now on, octets without headers of UDP and IP.
        limit: usize,
        /// Segment size that would need no pieces, octets; `None` in a stream.
        segment: Option<usize>,
    },
    /// This host itself refused to send; reported once for each reason.
    Refused {
        /// The error of the system.
        why: &'a NetError,
    },
}

/// Change of a sender's path.
#[derive(Debug)]
pub(crate) enum PathChange {
    /// The path is gone.
    Lost(NetError),
    /// The path is there again, as it was before.
    Back,
    /// Our address has gone; the socket sends from this one now.
    Moved(SocketAddr),
}

impl PathChange {
    /// Returns the notice for the owner.
    pub(crate) fn notice(&self) -> PathNotice<'_> {
        match self {
            Self::Lost(why) => PathNotice::Waiting { why },
            Self::Back => PathNotice::Back,
            &Self::Moved(address) => PathNotice::Moved { address },
        }
    }
}

/// Sockets of a sender.
#[derive(Debug)]
pub(crate) struct SendSockets<'a> {
    /// Socket that sends, and gets the answers to it.
    pub(crate) endpoint: &'a mut Endpoint,
    /// Socket that listens to the group, if the sender has to hear it.
    pub(crate) group: &'a mut Option<Endpoint>,
}

/// Watch over the path to one destination.
#[derive(Debug)]
pub(crate) struct PathWatch<'a> {
    destination: SocketAddr,
    options: &'a SocketOptions,
    transport: Transport,
    /// Watch over the interfaces; absent if the system refuses one. Then no change is followed.
    links: Option<Links>,
    changes: Changes,
    lost: bool,
    look: Time,
}

impl<'a> PathWatch<'a> {
    pub(crate) fn new(destination: SocketAddr, options: &'a SocketOptions, transport: Transport) -> Self {
        Self {
            destination,
            options,
            transport,
            links: Links::open().ok(),
            changes: Changes::default(),
            lost: false,
            look: Time::ZERO,
        }
    }

    /// Returns `true` if there is no path, so that datagrams go nowhere.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(crate) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.links.as_ref().map(AsFd::as_fd)
    }

    /// Returns the instant at which [`Self::follow`] is to be called next.
    pub(crate) fn due(&self) -> Time {
        if self.changes.any { self.look } else { Time::NEVER }
    }

    /// Looks at changes of the interfaces, and makes `sockets` use the present interface if needed.
    pub(crate) fn follow(&mut self, now: Time, sockets: SendSockets<'_>) -> Option<PathChange> {
        let SendSockets { endpoint, group } = sockets;
        let links = self.links.as_mut()?;
        self.changes.add(links.changes());
        if !self.changes.any || now < self.look {
            return None;
        }
        self.look = now + LOOK_EVERY;
        self.changes = Changes::default();
        let change = match self.turn(endpoint) {
            Ok(None) => std::mem::take(&mut self.lost).then_some(PathChange::Back)?,
            Ok(Some(fresh)) => {
                self.lost = false;
                if endpoint.is_narrow() {
                    fresh.cut();
                }
                *endpoint = fresh;
                PathChange::Moved(endpoint.local())
            }
            Err(error) => {
                return (!std::mem::replace(&mut self.lost, true)).then_some(PathChange::Lost(error));
            }
        };
        if group.take().is_some() {
            // Without the group, another transmission there may be missed, and answers of the group.
            *group = self.listen().ok();
        }
        Some(change)
    }

    /// Returns a socket that listens to the group.
    pub(crate) fn listen(&self) -> Result<Endpoint, NetError> {
        Endpoint::listener(self.destination, None, self.options, self.transport)
    }

    /// Returns a new endpoint if our address has gone and there is another.
    fn turn(&self, endpoint: &mut Endpoint) -> Result<Option<Endpoint>, NetError> {
        let (interface, address) = source_for(self.destination, self.options)?;
        if let Some(dead) = interface.as_ref().filter(|interface| !interface.running) {
            return Err(NetError::NoCarrier(dead.name.clone()));
        }
        let old = endpoint.local().ip();
        if address != old && !interface::is_ours(old) {
            return Endpoint::sender(self.destination, self.options, self.transport).map(Some);
        }
        let index = |interface: Option<&Interface>| interface.map(|interface| interface.index);
        if index(interface.as_ref()) != index(endpoint.interface()) {
            endpoint.aim(self.destination.ip(), self.options)?;
        }
        Ok(None)
    }
}

/// Waits until datagrams can be sent to `destination`, over UDP as over IP itself. Returns `false` if `stop` was set
/// before. Calls `say` with what is missing, whenever that changes.
///
/// # Errors
/// The missing thing once the `limit` is over, or an error that no waiting mends.
pub fn wait_to_send(
    destination: SocketAddr,
    options: &SocketOptions,
    limit: Span,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&NetError),
) -> Result<bool, NetError> {
    wait_for(|| Endpoint::sender(destination, options, Transport::Udp).map(drop), limit, stop, say)
}

/// Waits until `address` can be listened to: a group (for `source` alone, if that is given) or one of our own
/// addresses. Returns `false` if `stop` was set before. Calls `say` with what is missing, whenever that changes.
///
/// # Errors
/// An error that no waiting mends.
pub fn wait_to_listen(
    address: SocketAddr,
    source: Option<IpAddr>,
    options: &SocketOptions,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&NetError),
) -> Result<bool, NetError> {
    let probe = || {
        Interface::heard_through(options, address)?;
        Endpoint::listener(address, source, options, Transport::Udp).map(drop)
    };
    wait_for(probe, Span::MAX, stop, say)
}

fn wait_for(
    mut probe: impl FnMut() -> Result<(), NetError>,
    limit: Span,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&NetError),
) -> Result<bool, NetError> {
    let clock = Clock::start();
    let end = Time::ZERO + limit;
    // The watch starts before anything is looked at, so that no change is missed.
    let mut links = Links::open().ok();
    let mut said = String::new();
    loop {
        let Err(error) = probe() else { return Ok(true) };
        if !error.may_pass() || clock.now() >= end {
            return Err(error);
        }
        let sentence = error.to_string();
        if sentence != said {
            say(&error);
            said = sentence;
        }
        // If the system refuses a watch, the probe runs again each second.
        let mut looked = false;
        while links.as_mut().map_or(!looked, |links| !links.changes().any) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if clock.now() >= end {
                return Err(error);
            }
            // A signal just before the wait does not end it, so the wait is short.
            let until = end.min(clock.now() + STOP_LATENCY);
            let news: Vec<BorrowedFd<'_>> = links.iter().map(AsFd::as_fd).collect();
            let _ = clock.wait(&news, until).map_err(NetError::socket("wait for the network"))?;
            looked = true;
        }
    }
}
