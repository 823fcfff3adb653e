//! The driver of a network element, a host on the path between sender and receivers.
//!
//! [`serve`] makes the interfaces of this host the ports of an [`ElementEngine`], and does the work of the router that
//! the engine expects around it: forwarding multicast, keeping content and sending by the right port.

mod heir;
mod kept;
mod packet;
mod raw;
mod udp;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::{Arrival, Transmit};
use farcast_core::{Message as _, Span, Time};
use farcast_delivery::{Codec, Content, Delivery, ElementEngine, ElementRequest, Purpose, Transport};

use crate::clock::Clock;
use crate::envelope::Envelope;
use crate::error::NetError;
use crate::interface::{Interface, route_source};
use crate::links::{LOOK_EVERY, Links};
use crate::narrow::Small;
use crate::socket::{SocketOptions, send_error};
use heir::Heir;
use kept::Kept;
use raw::RawPorts;
use udp::UdpPorts;

/// Most datagrams that are received before the engine is asked again what it wants to send.
const MOST_AT_ONCE: usize = 64;
/// Octets of the longest IP packet.
const LONGEST: usize = 1 << 16;
/// Most sources whose routes are remembered, and the time for which each is.
const MOST_SOURCES: usize = 256;
const WAY_KNOWN: Span = Span::from_secs(5);
/// Shortest time between two reports of the counts to the owner.
const TELL_EVERY: Span = Span::from_secs(1);
/// Longest sleep before the loop checks whether it is to stop.
const LONGEST_SLEEP: Span = Span::from_millis(200);
/// Hops of a datagram to one host, and of a datagram to a group if neither the engine nor its source gives any.
const HOPS: u8 = 64;

/// Options of a network element: interfaces, groups and memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementOptions {
    /// Names of its interfaces, at least two; the first is port 1.
    pub interfaces: Vec<String>,
    /// Groups that are joined at each interface. Over UDP the element hears only these groups, at their UDP ports. Over
    /// IP itself it hears all groups that pass, and joining makes switches and routers send these ones.
    pub groups: Vec<SocketAddr>,
    /// Most octets of content that are kept for the engine.
    pub keep: u64,
    /// Kernel buffer wanted for receiving, bytes.
    pub receive_buffer: usize,
    /// Hops of multicast that is sent over UDP.
    pub ttl: u8,
}

/// Interface that serves as a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Number by which the kernel knows the interface.
    index: u32,
}

/// Counts of packets that arrived at a port or left by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounts {
    /// Packets that arrived.
    pub heard: u64,
    /// Octets of these packets, from the protocol's header on.
    pub octets_heard: u64,
    /// Packets that left at the engine's request.
    pub said: u64,
    /// Octets of these packets, from the protocol's header on.
    pub octets_said: u64,
}

/// Counts of an element's packets by their fate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ElementCounts {
    /// Counts by port, in the order of the interfaces.
    pub ports: Vec<PortCounts>,
    /// Packets that this process forwarded, each counted once for all ports.
    pub forwarded: u64,
    /// Packets that are not of the protocol.
    pub malformed: u64,
    /// Multicast packets that did not arrive at the interface that leads to their source.
    pub off_the_tree: u64,
    /// Packets that could not be sent.
    pub unsent: u64,
    /// Contents that were not kept for lack of room.
    pub not_kept: u64,
    /// Octets of content that are kept now.
    pub kept_octets: u64,
}

/// Notice to the owner of an element.
#[derive(Clone, Copy, Debug)]
pub enum ElementNotice<'a> {
    /// The element listens.
    Listening {
        /// Its ports.
        ports: &'a [Port],
        /// `true` if the kernel forwards multicast already, told to by a daemon. Otherwise this process forwards.
        routed: bool,
        /// Name of the nftables table by which the kernel forwards after this process is killed; or the reason why
        /// nothing does.
        outlives: Result<&'a str, &'a str>,
    },
    /// Counts so far, reported every second while packets arrive.
    Going(&'a ElementCounts),
    /// An interface, or something it needs, has gone. Nothing is received until it is back.
    Waiting(&'a NetError),
    /// This host itself refused to send; reported once.
    Refused(&'a NetError),
}

/// Treatment of a packet: for the engine, to be forwarded, or either of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The packet is for the engine.
    Handed,
    /// The packet is forwarded; the engine may overhear it.
    Passes,
    /// The packet is a fragment that is forwarded and cannot be read.
    PassesOnly,
    /// The message decides, since over UDP no packet carries a router alert.
    Either,
}

/// A packet that arrived.
#[derive(Clone, Debug)]
struct Heard {
    /// Number of the port it arrived at, from 0.
    port: usize,
    source: SocketAddr,
    destination: SocketAddr,
    /// Hops that it may still take.
    ttl: u8,
    way: Way,
    /// Range of the protocol's datagram in the buffer.
    content: Range<usize>,
}

/// Sockets of all ports, either raw or UDP.
#[derive(Debug)]
enum Sockets {
    Raw(RawPorts),
    Udp(UdpPorts),
}

impl Sockets {
    fn open(ports: &[Port], options: &ElementOptions, transport: Transport) -> Result<Self, NetError> {
        let ElementOptions { groups, receive_buffer, ttl, .. } = options;
        match transport {
            Transport::Ip(protocol) => {
                RawPorts::open(ports, groups, protocol, *receive_buffer).map(Self::Raw)
            }
            Transport::Udp => UdpPorts::open(ports, groups, (*receive_buffer, *ttl)).map(Self::Udp),
        }
    }

    /// Has the kernel forward once this process is killed.
    ///
    /// # Errors
    /// The reason why the kernel cannot, as a part of a sentence.
    fn heir(&self) -> Result<Heir, String> {
        match self {
            Self::Raw(raw) if raw.is_routed() => Err("forwarding is a daemon's".into()),
            Self::Raw(raw) => Heir::appoint(raw.ports(), raw.protocol()),
            Self::Udp(_) => Err("over UDP receivers take this host for the source".into()),
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Raw(raw) => vec![raw.fd()],
            Self::Udp(udp) => udp.fds().collect(),
        }
    }

    fn hear(&mut self, buffer: &mut [u8]) -> Result<Option<Heard>, NetError> {
        match self {
            Self::Raw(raw) => raw.hear(buffer),
            Self::Udp(udp) => udp.hear(buffer),
        }
    }

    fn forward(&mut self, heard: &Heard, buffer: &mut [u8]) -> Vec<io::Result<usize>> {
        match self {
            Self::Raw(raw) => raw.forward(heard, buffer),
            Self::Udp(udp) => udp.forward(heard, buffer),
        }
    }

    fn say(&mut self, port: usize, envelope: &Envelope, ttl: u8, datagram: &[u8]) -> io::Result<usize> {
        match self {
            Self::Raw(raw) => raw.say(port, envelope, ttl, datagram),
            Self::Udp(udp) => udp.say(port, envelope, datagram),
        }
    }
}

/// Runs a network element until `stop` is set. `make` makes the engine for the ports, which the engine numbers from 1.
///
/// # Errors
/// If an interface cannot be used at the start, if the process may not open the sockets, or if the engine refuses its
/// settings.
pub fn serve<C, E, F>(
    options: &ElementOptions,
    codec: &C,
    make: impl FnOnce(&[Port]) -> Result<E, F>,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Time, &E, ElementNotice<'_>),
) -> Result<(E, ElementCounts), NetError>
where
    C: Codec<Message: Delivery>,
    E: ElementEngine<Message = C::Message>,
    F: std::error::Error + Send + Sync + 'static,
{
    let clock = Clock::start();
    // Absent if the system refuses a watch; then no change of interfaces is followed.
    let mut links = Links::open().ok();
    let ports = find_ports(&options.interfaces)?;
    let sockets = Sockets::open(&ports, options, codec.transport())?;
    let engine = make(&ports).map_err(NetError::config)?;
    let counts = ElementCounts { ports: vec![PortCounts::default(); ports.len()], ..Default::default() };
    let mut element = Element {
        engine,
        codec,
        sockets,
        kept: Kept::new(options.keep),
        counts,
        sources: BTreeMap::new(),
        datagram: Vec::new(),
        refusal: None,
    };
    let mut open = OpenPorts { heir: element.sockets.heir(), ports };
    observer(clock.now(), &element.engine, open.listening(&element.sockets));
    let mut buffer = vec![0; LONGEST];
    let mut reports = Reports { told: element.counts.clone(), at: clock.now(), refused: false };
    let mut look_at = None;
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        element.engine.handle_timeout(now);
        element.drain(now, &[]);
        reports.report(now, &mut element, observer);
        if look_at.take_if(|at| now >= *at).is_some() {
            element.look_again(now, options, &mut open, observer)?;
        }
        let deadline = element.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        let until = deadline.min(now + LONGEST_SLEEP).min(look_at.unwrap_or(Time::NEVER));
        let mut fds = element.sockets.fds();
        let of_links = fds.len();
        fds.extend(links.as_ref().map(AsFd::as_fd));
        let readable = clock.wait(&fds, until).map_err(NetError::socket("wait for packets"))?;
        drop(fds);
        if links.as_mut().is_some_and(|links| readable.has(of_links) && links.changes().any) {
            look_at.get_or_insert(clock.now() + LOOK_EVERY);
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(heard) = element.sockets.hear(&mut buffer)? else { break };
            element.hear(clock.now(), &heard, &mut buffer);
        }
    }
    if let Ok(heir) = open.heir {
        heir.dismiss();
    }
    element.counts.kept_octets = element.kept.octets();
    Ok((element.engine, element.counts))
}

/// Callback that tells the owner of an element what happens.
type ElementObserver<'a, E> = &'a mut dyn FnMut(Time, &E, ElementNotice<'_>);

/// Ports with open sockets, and the kernel's rules that outlive this process.
struct OpenPorts {
    ports: Vec<Port>,
    heir: Result<Heir, String>,
}

impl OpenPorts {
    fn listening(&self, sockets: &Sockets) -> ElementNotice<'_> {
        let routed = matches!(sockets, Sockets::Raw(raw) if raw.is_routed());
        let outlives = self.heir.as_ref().map(Heir::table).map_err(String::as_str);
        ElementNotice::Listening { ports: &self.ports, routed, outlives }
    }
}

/// Reports to the owner of an element.
struct Reports {
    /// Counts that were reported last, and the time of that report.
    told: ElementCounts,
    at: Time,
    /// `true` once the owner knows that this host refused to send.
    refused: bool,
}

impl Reports {
    /// Reports the first refusal to send and, from time to time, counts that have changed.
    fn report<C, E>(&mut self, now: Time, element: &mut Element<'_, C, E>, observer: ElementObserver<'_, E>) {
        if let Some(why) = element.refusal.take()
            && !std::mem::replace(&mut self.refused, true)
        {
            observer(now, &element.engine, ElementNotice::Refused(&why));
        }
        if element.counts != self.told && now >= self.at + TELL_EVERY {
            element.counts.kept_octets = element.kept.octets();
            (self.told, self.at) = (element.counts.clone(), now);
            observer(now, &element.engine, ElementNotice::Going(&self.told));
        }
    }
}

/// Finds the interfaces of these names, all of which must be up and have an IPv4 address.
fn find_ports(names: &[String]) -> Result<Vec<Port>, NetError> {
    // The check is that for a group, since an element is there for multicast.
    let group = IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1));
    let find = |name: &String| {
        let options = SocketOptions { interface: Some(name.clone()), ..SocketOptions::default() };
        let found = Interface::choose(&options, group)?;
        match found {
            Some(Interface { name, index, address: IpAddr::V4(address), .. }) => {
                Ok(Port { name, address, index })
            }
            _ => Err(NetError::NoAddress { name: name.clone(), family: "IPv4" }),
        }
    };
    names.iter().map(find).collect()
}

/// Route to a source of multicast.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// Our own address that faces the source, if there is a route.
    ours: Option<IpAddr>,
    /// End of the time for which this is believed.
    until: Time,
    /// Hops that its multicast may still take.
    ttl: u8,
}

/// A network element: its engine, and the sockets, contents and counts around it.
#[derive(Debug)]
struct Element<'a, C, E> {
    engine: E,
    codec: &'a C,
    sockets: Sockets,
    kept: Kept,
    counts: ElementCounts,
    sources: BTreeMap<IpAddr, Source>,
    datagram: Vec<u8>,
    /// Latest error by which this host itself refused to send, until it is reported.
    refusal: Option<NetError>,
}

impl<C, E> Element<'_, C, E>
where
    C: Codec<Message: Delivery>,
    E: ElementEngine<Message = C::Message>,
{
    /// Looks at the interfaces again, and opens new sockets if they have changed.
    fn look_again(
        &mut self,
        now: Time,
        options: &ElementOptions,
        open: &mut OpenPorts,
        observer: ElementObserver<'_, E>,
    ) -> Result<(), NetError> {
        self.sources.clear();
        let reopen = |found: Vec<Port>| {
            let sockets = Sockets::open(&found, options, self.codec.transport())?;
            Ok((found, sockets))
        };
        let fresh = match find_ports(&options.interfaces) {
            Ok(found) if found == open.ports => return Ok(()),
            found => found.and_then(reopen),
        };
        match fresh {
            Ok((ports, sockets)) => {
                self.sockets = sockets;
                // The rules went with the interface. As long as the old table has an owner, no other can be made.
                *open = OpenPorts { ports, heir: Err(String::new()) };
                open.heir = self.sockets.heir();
                observer(now, &self.engine, open.listening(&self.sockets));
                Ok(())
            }
            Err(error) if error.may_pass() => {
                // No interface that is there now counts as a port; one that comes back is a change.
                open.ports.clear();
                observer(now, &self.engine, ElementNotice::Waiting(&error));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Processes a packet, which anybody may have sent.
    fn hear(&mut self, now: Time, heard: &Heard, buffer: &mut [u8]) {
        let octets = heard.content.len() as u64;
        if let Some(count) = self.counts.ports.get_mut(heard.port) {
            count.heard += 1;
            count.octets_heard += octets;
        }
        if heard.destination.ip().is_multicast() && !self.is_on_the_tree(now, heard) {
            self.counts.off_the_tree += 1;
            return;
        }
        let is_read = match heard.way {
            Way::Handed | Way::Either => true,
            Way::Passes => self.engine.overhears(),
            Way::PassesOnly => false,
        };
        let content = &buffer[heard.content.clone()];
        // Messages between sockets about narrow paths are not the protocol's.
        let is_read = is_read && Small::read(content).is_none();
        let read = is_read.then(|| self.codec.decode(content));
        let read = match read {
            Some(Ok(packet)) => Some(packet),
            Some(Err(_)) => {
                self.counts.malformed += 1;
                None
            }
            None => None,
        };
        let passes = match (heard.way, &read) {
            (Way::Handed, _) | (Way::Either, None) => false,
            (Way::Passes | Way::PassesOnly, _) => true,
            (Way::Either, Some(packet)) => is_first_time(&packet.message),
        };
        if let Some(packet) = read
            && (!passes || self.engine.overhears())
        {
            let payload =
                heard.content.start + packet.payload.start..heard.content.start + packet.payload.end;
            let arrival =
                Arrival { interface: heard.port as u32 + 1, ..Arrival::new(heard.source, heard.destination) };
            // The engine itself counts the reason for which it refuses a message.
            let _ = self.engine.handle(now, &arrival, &packet.message);
            self.drain(now, &buffer[payload]);
        }
        if passes {
            let left = self.sockets.forward(heard, buffer);
            self.counts.forwarded += u64::from(!left.is_empty());
            self.counts.unsent += left.iter().filter(|sent| sent.is_err()).count() as u64;
            for sent in left {
                self.note_refusal(sent.err());
            }
        }
    }

    /// Notes a sending error if this host itself refused.
    fn note_refusal(&mut self, error: Option<io::Error>) {
        let own = error.map(send_error).filter(|error| matches!(error, NetError::Refused(_)));
        self.refusal = own.or(self.refusal.take());
    }

    /// Returns `true` if a packet arrived at the interface that leads to its source. Any other may have gone round in a
    /// circle.
    fn is_on_the_tree(&mut self, now: Time, heard: &Heard) -> bool {
        let source = heard.source.ip();
        let known = self.sources.get(&source).copied().filter(|known| now < known.until);
        let mut known = known.unwrap_or_else(|| {
            if self.sources.len() >= MOST_SOURCES && !self.sources.contains_key(&source) {
                // A source that still sends is soon known again.
                self.sources.clear();
            }
            let to = SocketAddr::new(source, 1);
            Source { ours: route_source(to, None).ok(), until: now + WAY_KNOWN, ttl: heard.ttl }
        });
        known.ttl = heard.ttl;
        self.sources.insert(source, known);
        known.ours.is_some_and(|ours| self.port_of(ours) == Some(heard.port))
    }

    fn port_of(&self, ours: IpAddr) -> Option<usize> {
        let ports = match &self.sockets {
            Sockets::Raw(raw) => raw.ports(),
            Sockets::Udp(udp) => udp.ports(),
        };
        ports.iter().position(|port| IpAddr::V4(port.address) == ours)
    }

    /// Does what the engine asks for; `payload` is the content of the message at hand.
    fn drain(&mut self, now: Time, payload: &[u8]) {
        loop {
            while let Some(event) = self.engine.poll_event() {
                match E::request(&event) {
                    Some(ElementRequest::Keep { keys, .. }) => {
                        // A received message is one datagram, hence one key.
                        let is_kept = self.kept.keep(keys.start, payload);
                        self.counts.not_kept += u64::from(!is_kept);
                    }
                    Some(ElementRequest::Forget { keys }) => self.kept.forget(keys),
                    None => {}
                }
            }
            let Some(transmit) = self.engine.poll_transmit(now, now) else { return };
            self.say(&transmit, payload);
        }
    }

    fn say(&mut self, transmit: &Transmit<C::Message>, payload: &[u8]) {
        let message = &transmit.message;
        for segment in 0..message.segments().get() {
            self.datagram.clear();
            self.codec.encode(message, segment, &mut self.datagram);
            let len = message.payload_len(segment);
            let content = match message.content() {
                Content::None => Some(&[][..]),
                Content::Passing { .. } => Some(payload),
                Content::Kept { key } => self.kept.content(key + u64::from(segment)),
                // An element has no files.
                Content::Source { .. } | Content::Parity { .. } => None,
            };
            let Some(content) = content.filter(|content| content.len() == len) else {
                self.counts.unsent += 1;
                continue;
            };
            self.datagram.extend_from_slice(content);
            self.codec.finish(&mut self.datagram);
            self.leave(transmit);
        }
    }

    /// Sends the datagram in the buffer.
    fn leave(&mut self, transmit: &Transmit<C::Message>) {
        let envelope = Envelope::of(transmit);
        let to = envelope.to.ip();
        let port = match transmit.interface {
            0 => route_source(SocketAddr::new(to, 1), None).ok().and_then(|ours| self.port_of(ours)),
            port => Some(port as usize - 1),
        };
        // A message in a source's place goes as far as the source's own messages.
        let hops = envelope.source.and_then(|source| self.sources.get(&source.ip())).map(|known| known.ttl);
        let ttl = match (transmit.ttl, hops) {
            (Some(ttl), _) => ttl,
            (None, Some(hops)) if to.is_multicast() => hops.saturating_sub(1),
            (None, _) => HOPS,
        };
        let sent = match port {
            Some(port) if ttl > 0 => self.sockets.say(port, &envelope, ttl, &self.datagram),
            _ => Err(io::ErrorKind::HostUnreachable.into()),
        };
        match (sent, port.and_then(|port| self.counts.ports.get_mut(port))) {
            (Ok(_), Some(count)) => {
                count.said += 1;
                count.octets_said += self.datagram.len() as u64;
            }
            (sent, _) => {
                self.counts.unsent += 1;
                self.note_refusal(sent.err());
            }
        }
    }
}

/// Returns `true` if `message` is data on its way from the source, which routers merely forward. Over UDP nothing else
/// tells so.
fn is_first_time(message: &impl Delivery) -> bool {
    matches!(message.purpose(), Purpose::Content { round: 0 | 1 } | Purpose::Announcement)
}
