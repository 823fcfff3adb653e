//! Capture file of a replication's packets, for protocol analysers.
//!
//! A [`Trace`] observes a [`Star`](crate::star::Star) or a [`Tree`](crate::tree::Tree), and writes the packets that the
//! hosts of a real transfer would see. They are IPv4 datagrams with the protocol's messages over UDP, or with the packets of flows, in wire format
//! with correct checksums, in the order of their times to the nanosecond. The file has these interfaces:
//!
//! | interface | captured packets |
//! |---|---|
//! | `sender` | packets that the sender and flows send at the hub, and packets that reach them there |
//! | `receivers` | packets that receivers and the terminals of flows send |
//! | `elements` | packets that elements of a tree send; the interface is there if there are any |
//!
//! An answer has the same IPv4 identification at both interfaces, so an answer that is at `receivers` alone was lost.
//! (Of an answer that was repeated in the same octets, one of the two was lost.) Comments mark the first packet of each
//! round, and each NAK that reaches the sender, with its fate.
//!
//! Payload is a reference in a simulation, so the file has zeros in its place. A traced population sends its NAKs one
//! by one. Merged NAKs, if there are any, are no datagrams and are left out.

mod datagram;
mod matching;

use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV4};

use farcast_capture::pcapng::{Direction, Packet, Writer};
use farcast_core::engine::Message as _;
use farcast_core::stage::Frame;
use farcast_core::{EventQueue, Time};
use farcast_delivery::{Asked, Codec as _, Delivery as _, NakFate, Protocol, Purpose, Routes, Words};

use crate::traffic::End;
use crate::world::{Addresses, FlowPacket, Observer, receiver_address};

use datagram::Header;
use matching::Matching;

/// Interface of packets at the sender.
const SENDER: u32 = 0;
/// Interface of packets at the receivers.
const RECEIVERS: u32 = 1;

/// Settings of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceConfig {
    /// Octets to keep of the payload of each DATA packet and of each packet of a flow. The original length is noted all
    /// the same. `u32::MAX` keeps all.
    pub payload_octets: u32,
    /// Beginning of the file's own comment, such as the scenario and the seed.
    pub comment: String,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { payload_octets: 64, comment: String::new() }
    }
}

/// Reason for which a replication cannot be traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// An address is not IPv4, although the file's packets are.
    #[error("{0} is no IPv4 address; a trace is written of IPv4 sessions only")]
    NotIpv4(SocketAddr),
}

/// Origin and destination of datagrams that leave.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// Interface on which they are captured.
    interface: u32,
    source: SocketAddrV4,
    destination: SocketAddrV4,
}

/// Run whose datagrams from `next` on have yet to leave.
#[derive(Debug)]
struct Rest<M> {
    leg: Leg,
    frame: Frame<M>,
    next: u32,
}

/// NAK that has reached the sender and is written once its fate is known.
#[derive(Debug)]
struct Held {
    at: Time,
    octets: u32,
}

/// Addresses of a transfer.
#[derive(Clone, Copy, Debug)]
struct Session {
    server: SocketAddrV4,
    response: SocketAddrV4,
}

/// Observer that writes the packets of a replication in the pcapng format (draft-ietf-opsawg-pcapng) with link type
/// IPV4.
///
/// `W` is written in small pieces: give a file a [`BufWriter`](io::BufWriter). The same replication gives the same
/// bytes. Time zero is 1970-01-01T00:00:00Z.
pub struct Trace<W, P: Protocol> {
    file: Writer<W>,
    codec: P::Codec,
    payload_octets: u32,
    session: Option<Session>,
    /// Interface of packets that elements send, once there are any.
    elements: Option<u32>,
    runs: EventQueue<Rest<P::Message>>,
    held: Option<Held>,
    answers: Matching,
    /// Last round that has begun.
    round: u32,
    /// Datagram at hand.
    datagram: Vec<u8>,
    sender_id: u16,
    answer_id: u16,
    packets: u64,
}

impl<W: Write, P: Protocol> Trace<W, P> {
    /// Makes a trace of a sender with these `routes`, if there is one, of its receivers' answers, and of flows. `codec`
    /// encodes the sender's messages. The trace begins to write at once.
    ///
    /// # Errors
    /// A route that is not IPv4.
    pub fn new(
        out: W,
        routes: Option<Routes>,
        codec: P::Codec,
        config: &TraceConfig,
    ) -> Result<Self, TraceError> {
        let session = routes.map(session).transpose()?;
        let mut file = Writer::new(out);
        file.section("farcast", &about(config));
        file.interface("sender", "what the hub sends, and what reaches it");
        file.interface("receivers", "what receivers and other terminals send");
        Ok(Self {
            file,
            codec,
            payload_octets: config.payload_octets,
            session,
            elements: None,
            runs: EventQueue::default(),
            held: None,
            answers: Matching::default(),
            round: 0,
            datagram: Vec::new(),
            sender_id: 0,
            answer_id: 0,
            packets: 0,
        })
    }

    /// Returns the number of packets written so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Writes the packets that have yet to leave, and returns `W`.
    ///
    /// # Errors
    /// The first error of `W`, after which nothing more was written; or a message that was too long for a datagram.
    pub fn finish(mut self) -> io::Result<W> {
        self.advance(Time::NEVER);
        self.file.finish()
    }

    /// Writes all packets before or at `at`.
    fn advance(&mut self, at: Time) {
        self.release(None);
        while self.runs.next_at() <= at
            && let Some((due, mut rest)) = self.runs.pop()
        {
            self.leave(due, rest.leg, &rest.frame, rest.next);
            rest.next += 1;
            if rest.next < rest.frame.segments() {
                self.runs.push(due + rest.frame.spacing, rest);
            }
        }
    }

    /// Writes the first datagram of a run, and keeps the others until their times.
    fn leave_all(&mut self, at: Time, leg: Leg, frame: &Frame<P::Message>) {
        self.leave(at, leg, frame, 0);
        if frame.segments() > 1 {
            self.runs.push(at + frame.spacing, Rest { leg, frame: frame.clone(), next: 1 });
        }
    }

    /// Writes a datagram of a run that the sender or an element sends.
    fn leave(&mut self, at: Time, leg: Leg, frame: &Frame<P::Message>, segment: u32) {
        let Leg { interface, source, destination } = leg;
        let by_sender = interface == SENDER;
        let counter = if by_sender { &mut self.sender_id } else { &mut self.answer_id };
        *counter = counter.wrapping_add(1);
        let id = *counter;
        let octets = self.build(Header { source, destination, id }, &frame.message, segment);
        let round = if by_sender { self.new_round(&frame.message) } else { None };
        let begins = |round| format!("{} {round} begins", P::WORDS.round.one);
        let comment = round.map_or(String::new(), begins);
        if !by_sender {
            self.answers.left(source.ip().to_bits(), &self.datagram[datagram::HEADERS_LEN..], id);
        }
        self.write(interface, at, octets, Direction::Outbound, &comment);
    }

    /// Writes a message that a receiver sends.
    fn answer(&mut self, at: Time, terminal: u32, leg: Leg, message: &P::Message) {
        self.answer_id = self.answer_id.wrapping_add(1);
        let header = Header { source: leg.source, destination: leg.destination, id: self.answer_id };
        let octets = self.build(header, message, 0);
        self.answers.left(terminal, &self.datagram[datagram::HEADERS_LEN..], self.answer_id);
        self.write(leg.interface, at, octets, Direction::Outbound, "");
    }

    /// Writes a message from `terminal` that has reached the sender.
    fn arrive(&mut self, at: Time, terminal: u32, leg: Leg, message: &P::Message) {
        let header = Header { source: leg.source, destination: leg.destination, id: 0 };
        let octets = self.build(header, message, 0);
        self.recognise(terminal, datagram::HEADERS_LEN);
        if matches!(message.purpose(), Purpose::Nak { .. }) {
            self.held = Some(Held { at, octets });
        } else {
            self.write(leg.interface, at, octets, Direction::Inbound, "");
        }
    }

    /// Returns the leg of a datagram in a tree. An address that is not IPv4 makes the file fail.
    fn leg(&mut self, interface: u32, addresses: Addresses) -> Option<Leg> {
        match (ipv4(addresses.source), ipv4(addresses.destination)) {
            (Ok(source), Ok(destination)) => Some(Leg { interface, source, destination }),
            (Err(error), _) | (_, Err(error)) => {
                self.file.fail(io::Error::new(io::ErrorKind::InvalidInput, error));
                None
            }
        }
    }

    /// Returns the round that begins with `message`, if one does.
    fn new_round(&mut self, message: &P::Message) -> Option<u32> {
        let Purpose::Content { round } = message.purpose() else { return None };
        let begins = round > self.round;
        self.round = self.round.max(round);
        begins.then_some(round)
    }

    /// Builds the datagram that carries `segment` of `message`. Returns its length before it was cut.
    fn build(&mut self, header: Header, message: &P::Message, segment: u32) -> u32 {
        let (codec, octets) = (&self.codec, message.wire_len(segment));
        let encode = |out: &mut Vec<u8>| codec.encode(message, segment, out);
        let finish = |out: &mut [u8]| codec.finish(out);
        let content = message.content().is_some().then_some(self.payload_octets);
        let built = datagram::build(&mut self.datagram, header, octets, content, encode, finish);
        built.unwrap_or_else(|error| {
            self.file.fail(io::Error::new(io::ErrorKind::InvalidData, error));
            0
        })
    }

    fn write(&mut self, interface: u32, at: Time, octets: u32, direction: Direction, comment: &str) {
        self.file.packet(&Packet { interface, at, octets, direction, captured: &self.datagram, comment });
        self.packets += 1;
    }

    /// Returns the leg of an answer of `receiver` in a star.
    fn leg_of(&self, interface: u32, receiver: u32) -> Option<Leg> {
        let Session { response: destination, .. } = self.session?;
        Some(Leg { interface, source: ipv4(receiver_address(receiver)).ok()?, destination })
    }

    /// Gives the datagram at hand, which has arrived from `terminal`, the identification under which it left. Its
    /// octets from `from` on tell it apart from others.
    fn recognise(&mut self, terminal: u32, from: usize) {
        let known = self.answers.arrived(terminal, &self.datagram[from..]);
        let id = known.unwrap_or_else(|| {
            self.answer_id = self.answer_id.wrapping_add(1);
            self.answer_id
        });
        datagram::set_id(&mut self.datagram, id);
    }

    /// Builds the datagram at hand from a packet of a flow. Returns its length before it was cut.
    fn build_flow(&mut self, packet: &FlowPacket<'_>, id: u16) -> Option<u32> {
        let end = |ip| ipv4(SocketAddr::new(ip, 0)).ok();
        let (source, destination) = (end(packet.source)?, end(packet.destination)?);
        let header = Header { source, destination, id };
        let built = datagram::build_flow(&mut self.datagram, header, packet.message, self.payload_octets);
        built.map_err(|error| self.file.fail(io::Error::new(io::ErrorKind::InvalidData, error))).ok()
    }

    /// Writes the NAK that waits for its fate, if there is one.
    fn release(&mut self, fate: Option<NakFate>) {
        if let Some(held) = self.held.take() {
            let comment = fate.map_or(String::new(), |fate| in_words(fate, &P::WORDS));
            self.write(SENDER, held.at, held.octets, Direction::Inbound, &comment);
        }
    }
}

impl<W: Write, P: Protocol> Observer<P> for Trace<W, P> {
    fn sent(&mut self, at: Time, destination: SocketAddr, frame: &Frame<P::Message>) {
        self.advance(at);
        let Some(Session { server, .. }) = self.session else { return };
        let addresses = Addresses { source: server.into(), destination };
        if let Some(leg) = self.leg(SENDER, addresses) {
            self.leave_all(at, leg, frame);
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<P::Message>) {
        self.advance(at);
        let Some(leg) = self.leg_of(RECEIVERS, receiver) else { return };
        self.answer(at, receiver, leg, &frame.message);
    }

    fn answered_to(&mut self, at: Time, receiver: u32, addresses: Addresses, frame: &Frame<P::Message>) {
        self.advance(at);
        let Some(leg) = self.leg(RECEIVERS, addresses) else { return };
        self.answer(at, receiver, leg, &frame.message);
    }

    fn element_sent(&mut self, at: Time, addresses: Addresses, frame: &Frame<P::Message>) {
        self.advance(at);
        let file = &mut self.file;
        let interface =
            *self.elements.get_or_insert_with(|| file.interface("elements", "what elements send"));
        if let Some(leg) = self.leg(interface, addresses) {
            self.leave_all(at, leg, frame);
        }
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &P::Message) {
        self.advance(at);
        let Some(leg) = self.leg_of(SENDER, receiver) else { return };
        self.arrive(at, receiver, leg, message);
    }

    fn reached_from(&mut self, at: Time, receiver: Option<u32>, addresses: Addresses, message: &P::Message) {
        self.advance(at);
        let Some(leg) = self.leg(SENDER, addresses) else { return };
        let terminal = receiver.unwrap_or_else(|| leg.source.ip().to_bits());
        self.arrive(at, terminal, leg, message);
    }

    fn flow_sent(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        self.advance(at);
        if end == End::Hub {
            self.sender_id = self.sender_id.wrapping_add(1);
            let Some(octets) = self.build_flow(packet, self.sender_id) else { return };
            self.write(SENDER, at, octets, Direction::Outbound, "");
        } else {
            self.answer_id = self.answer_id.wrapping_add(1);
            let Some(octets) = self.build_flow(packet, self.answer_id) else { return };
            self.answers.left(packet.terminal, &self.datagram[datagram::IPV4_LEN..], self.answer_id);
            self.write(RECEIVERS, at, octets, Direction::Outbound, "");
        }
    }

    fn flow_reached(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        if end == End::Terminal {
            return;
        }
        self.advance(at);
        let Some(octets) = self.build_flow(packet, 0) else { return };
        self.recognise(packet.terminal, datagram::IPV4_LEN);
        self.write(SENDER, at, octets, Direction::Inbound, "");
    }

    fn nak(&mut self, _at: Time, asked: &Asked) {
        // Merged NAKs come without a message, so none is held.
        self.release(Some(asked.fate));
    }
}

/// Returns the addresses of a transfer with these routes, all of which must be IPv4.
fn session(routes: Routes) -> Result<Session, TraceError> {
    for address in [routes.announcements, routes.content] {
        ipv4(address)?;
    }
    Ok(Session { server: ipv4(routes.source)?, response: ipv4(routes.answers)? })
}

fn ipv4(address: SocketAddr) -> Result<SocketAddrV4, TraceError> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(TraceError::NotIpv4(address)),
    }
}

fn in_words(fate: NakFate, words: &Words) -> String {
    match fate {
        NakFate::Used => format!("used: the sender has scheduled {} for it", words.segment.many),
        NakFate::Known => "known: all that it asks for was scheduled or sent already".to_owned(),
        NakFate::Late => format!("late: a later {} than the one that it answers has begun", words.round.one),
    }
}

fn about(config: &TraceConfig) -> String {
    let first = if config.comment.is_empty() { "" } else { "\n" };
    let kept = match config.payload_octets {
        u32::MAX => String::new(),
        octets => format!(" Of each payload {octets} octets are captured."),
    };
    format!(
        "{}{first}Simulated: time zero is 1970-01-01T00:00:00Z, and payloads are zeros, for a simulation has no \
         file contents.{kept}",
        config.comment
    )
}

#[cfg(test)]
mod tests;
