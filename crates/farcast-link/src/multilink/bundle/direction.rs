//! One direction of a bundle: its queue, its lines, and reassembly at the other end.

use alloc::vec::Vec;
use core::ops::Range;

use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Setting, Settings, Totals};
use farcast_core::{Message, Payload, Piece, Span, Time};
use farcast_ppp::Framing;
use farcast_ppp::framing::{PROTOCOL_IPV4, PROTOCOL_LCP, PROTOCOL_MP};
use farcast_ppp::lcp::{self, Code, ECHO_OCTETS};
use farcast_ppp::multilink::fragment::{Candidate, PacketPart};
use farcast_ppp::multilink::{Format, Header, Policy, Reassembler, ReassemblyCounters};
use smallvec::SmallVec;

use super::codec::{Codec, FragmentOctets};
use super::config::MultilinkConfig;
use super::line::{LineCounters, LinkLine, Load, LoadFate, Ready};
use super::packets::{Packets, WaitingPackets};
use crate::multilink::error::MultilinkError;
use crate::pipe::QueueLimit;

/// Counters of one direction of a bundle. Complete once its outputs have been polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WayCounters {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that were longer than the MRRU allows.
    pub too_long: u64,
    /// Packets that found the queue full.
    pub queue_dropped: u64,
    /// Packets that were cut and handed to links.
    pub cut: u64,
    /// Packets that left at the other end.
    pub delivered: u64,
    /// Packets lost by drops: a dropped call lost a fragment, or a fragment was sent into it.
    pub lost_by_drops: u64,
    /// Packets with a fragment lost to errors, and with no earlier one lost by a drop.
    pub lost_by_errors: u64,
    /// Packets without a lost fragment that reassembly gave up, because of its bounds or because a link was left out
    /// too soon.
    pub given_up: u64,
    /// Fragments with octets that arrived undamaged and were refused, and packets that were put together wrongly. There
    /// should be none. They are lost.
    pub codec_faults: u64,
    /// Fragments with octets that were lost to errors although the check sequence let them through. They are lost all
    /// the same.
    pub fcs_missed: u64,
}

/// One direction of a bundle.
#[derive(Clone, Debug)]
pub(super) struct BundleDirection<M> {
    format: Format,
    policy: Policy,
    framing: Framing,
    /// The protocol field of the packets that are carried.
    protocol: SmallVec<[u8; 4]>,
    link_buffer: u16,
    mrru: u16,
    lines: Vec<LinkLine>,
    escapes: Vec<RandomStream>,
    /// Marks of the links that are in the bundle.
    up: Vec<bool>,
    waiting: WaitingPackets<M>,
    packets: Packets<M>,
    reassembler: Reassembler<FragmentOctets>,
    codec: Codec,
    /// The next sequence number, counted from the start.
    sequence: u64,
    /// The link whose turn it is.
    turn: usize,
    candidates: Vec<Candidate>,
    parts: Vec<PacketPart>,
    counters: WayCounters,
}

impl<M: Message> BundleDirection<M> {
    /// Creates a direction over `lines`, all of them up, with a queue of the limit `queue` before it. Escapes are drawn
    /// from `escapes`, one stream a line. The damaged bits of frames whose octets are at hand are drawn from `damage`.
    pub(super) fn new(
        config: &MultilinkConfig,
        queue: QueueLimit,
        lines: Vec<LinkLine>,
        escapes: Vec<RandomStream>,
        damage: RandomStream,
    ) -> Result<Self, MultilinkError> {
        let mut reassembler = Reassembler::new(config.reassembly, config.header)?;
        (0..lines.len()).for_each(|link| reassembler.join(Time::ZERO, link));
        // A packet is carried without address and control (RFC 1990 §3). IPv6 has a field of the same length.
        let protocol = Framing { acfc: true, ..config.framing }.header(PROTOCOL_IPV4);
        let longest = protocol.len() + usize::from(config.reassembly.mrru);
        Ok(Self {
            format: config.header,
            policy: config.policy,
            framing: config.framing,
            codec: Codec::new(config.framing, config.header, longest, damage),
            protocol,
            link_buffer: config.link_buffer,
            mrru: config.reassembly.mrru,
            up: alloc::vec![true; lines.len()],
            lines,
            escapes,
            waiting: WaitingPackets::new(queue),
            packets: Packets::new(),
            reassembler,
            sequence: 0,
            turn: 0,
            candidates: Vec::new(),
            parts: Vec::new(),
            counters: WayCounters::default(),
        })
    }

    pub(super) const fn counters(&self) -> &WayCounters {
        &self.counters
    }

    pub(super) fn reassembly(&self) -> &ReassemblyCounters {
        self.reassembler.counters()
    }

    pub(super) fn line(&self, link: usize) -> Option<&LineCounters> {
        self.lines.get(link).map(LinkLine::counters)
    }

    /// Returns the sum of one counter over all lines.
    pub(super) fn sum(&self, counter: fn(&LineCounters) -> u64) -> u64 {
        self.lines.iter().map(|line| counter(line.counters())).sum()
    }

    /// Returns the packets that are inside and may still arrive.
    pub(super) fn held(&self) -> impl Iterator<Item = &Frame<M>> {
        self.packets.iter().chain(self.waiting.iter())
    }

    pub(super) fn totals(&self) -> Totals {
        let WayCounters { delivered, queue_dropped, too_long, .. } = self.counters;
        let airtime = self.lines.iter().fold(Span::ZERO, |sum, line| sum + line.counters().busy);
        Totals { sent: delivered, dropped: queue_dropped + too_long, too_long, airtime, ..Totals::default() }
    }

    /// Returns the settings of the direction; rate and delay are those of the first link.
    pub(super) fn settings(&self) -> Settings {
        let link = self.lines.first();
        let (rate, delay) = (link.map(LinkLine::rate), link.map(LinkLine::delay));
        Settings { rate, delay, queue: self.waiting.limit().octets() }
    }

    /// Returns `true` if the queue has a limit.
    pub(super) fn has_limit(&self) -> bool {
        self.waiting.limit().is_limit()
    }

    /// Changes a setting, on every link, whether it is up or not.
    pub(super) fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Rate(rate) => self.lines.iter_mut().for_each(|line| line.set_rate(rate)),
            Setting::Delay(delay) => self.lines.iter_mut().for_each(|line| line.set_delay(delay)),
            Setting::Queue(octets) => self.waiting.set_limit(QueueLimit::Octets(octets.get())),
            _ => {}
        }
    }

    /// Returns the time of the next event on `link`.
    pub(super) fn next(&self, link: usize) -> Time {
        self.lines[link].next()
    }

    /// Returns the time at which reassembly wants to be woken.
    pub(super) fn wake(&self) -> Time {
        self.reassembler.poll_timeout().unwrap_or(Time::NEVER)
    }

    /// Returns `true` if a packet may still leave.
    pub(super) fn is_busy(&self) -> bool {
        self.packets.alive() > 0 || !self.waiting.is_empty()
    }

    #[cfg(test)]
    pub(super) const fn packets_alive(&self) -> u64 {
        self.packets.alive() as u64
    }

    /// Takes a packet, or drops it if it is too long or the queue is full.
    pub(super) fn enter(&mut self, now: Time, frame: Frame<M>) {
        self.counters.entered += 1;
        if frame.octets(0) > u64::from(self.mrru) {
            self.counters.too_long += 1;
        } else if self.waiting.push(frame) {
            self.dispatch(now);
        } else {
            self.counters.queue_dropped += 1;
        }
    }

    /// Cuts the packets that wait, as far as the policy and the links allow.
    pub(super) fn dispatch(&mut self, now: Time) {
        while let Some(frame) = self.waiting.front() {
            let information = frame.octets(0) as u32;
            let octets = information + self.protocol.len() as u32;
            let (buffer, up) = (self.link_buffer, &self.up);
            self.candidates.clear();
            self.candidates.extend(self.lines.iter().zip(up).map(|(line, &up)| Candidate {
                up,
                room: line.has_room(buffer),
                rate: line.rate(),
            }));
            self.policy.cut(octets, &self.candidates, self.turn, &mut self.parts);
            let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return };
            // If all links are used, the links that get one of the octets left over take turns, too.
            let again = usize::from((last.link + 1) % self.lines.len() == first.link);
            self.turn = (last.link + 1 + again) % self.lines.len();
            if let Some(frame) = self.waiting.pop() {
                self.counters.cut += 1;
                self.hand_over(now, frame, octets);
            }
        }
    }

    /// Gives the parts of a packet to their links.
    fn hand_over(&mut self, now: Time, frame: Frame<M>, octets: u32) {
        let number = self.packets.next();
        let parts = core::mem::take(&mut self.parts);
        let mut rest = Piece::whole(number, octets);
        let mut cut_off = false;
        for (index, part) in parts.iter().enumerate() {
            let sequence = self.format.wrap(self.sequence);
            let header = Header { begins: index == 0, ends: index + 1 == parts.len(), sequence };
            let piece = rest.split_to(part.octets as usize);
            let ready = self.frame(part.link, header, piece, &frame);
            let line = &mut self.lines[part.link];
            cut_off |= !line.is_connected();
            line.push(now, ready);
            self.sequence += 1;
        }
        self.parts = parts;
        self.packets.push(frame, self.sequence);
        if cut_off {
            self.lose(number, true);
        }
    }

    /// Returns the frame of a fragment. It is encoded if the octets of the packet are at hand. Otherwise it is only a
    /// length, with the escapes of as many random octets.
    fn frame(&mut self, link: usize, header: Header, piece: Piece, frame: &Frame<M>) -> Ready {
        let framing = &self.framing;
        let lower = framing.header(PROTOCOL_MP);
        let upper = header.encode(self.format);
        let overhead = (lower.len() + upper.len()) as u64 + framing.fcs.octets() + 1;
        let len = piece.len() as u64;
        let (Range { start, end }, field) = (piece.range(), self.protocol.len());
        let (start, end) = (*start as usize, *end as usize);
        let (encoded, octets) = if let Some(octets) = octets_of(frame) {
            let encoded = self.codec.encode(header, start..end, &self.protocol, octets);
            let octets = encoded.len() as u64;
            (encoded, octets)
        } else {
            // The packet begins with its protocol field, which is known, and then has the octets of the frame.
            let protocol = &self.protocol[start.min(field)..end.min(field)];
            let unknown = (end.saturating_sub(field) - start.saturating_sub(field)) as u64;
            let known: u64 =
                [&lower, &upper, protocol].map(|octets| framing.count_escapes(octets)).iter().sum();
            let drawn = framing.escapes(unknown + framing.fcs.octets(), &mut self.escapes[link]);
            (Vec::new(), overhead + len + known + drawn)
        };
        let load = Load::Fragment(header, FragmentOctets { piece, octets: encoded });
        Ready { load, overhead, escapes: octets - overhead - len, octets }
    }

    /// Sends an Echo-Request or an Echo-Reply on `link`.
    pub(super) fn echo(&mut self, now: Time, link: usize, code: Code, identifier: u8) {
        let framing = &self.framing;
        let information = lcp::echo(code, identifier, 0);
        let header = framing.header(PROTOCOL_LCP);
        let overhead = framing.frame_octets(PROTOCOL_LCP, ECHO_OCTETS as u64) + 1;
        let known = framing.count_escapes(&header) + framing.count_escapes(&information);
        let escapes = known + framing.escapes(framing.fcs.octets(), &mut self.escapes[link]);
        let load =
            if code == Code::EchoRequest { Load::Request(identifier) } else { Load::Reply(identifier) };
        self.lines[link].push(now, Ready { load, overhead, escapes, octets: overhead + escapes });
    }

    /// Handles the event that is due on `link`. Gives packets that leave to `out`. Returns the echo that arrived, if
    /// one did.
    pub(super) fn act(&mut self, now: Time, link: usize, mut out: impl FnMut(Frame<M>)) -> Option<Load> {
        match self.lines[link].arrive(now) {
            Some(Load::Fragment(header, carried)) => {
                self.receive(now, link, header, carried);
                self.release(&mut out);
                return None;
            }
            Some(echo) => return Some(echo),
            None => {}
        }
        match self.lines[link].end(now)? {
            LoadFate::Sent => {}
            LoadFate::Damaged(carried) => {
                self.lose(carried.piece.packet(), false);
                let missed = carried.has_octets() && self.codec.misses(carried.octets);
                self.counters.fcs_missed += u64::from(missed);
            }
        }
        self.dispatch(now);
        None
    }

    /// Takes a fragment that has arrived, with the header that it was sent with.
    fn receive(&mut self, now: Time, link: usize, mut header: Header, mut carried: FragmentOctets) {
        if carried.has_octets() {
            let Some(decoded) = self.codec.decode(&mut carried) else {
                self.counters.codec_faults += 1;
                self.lose(carried.piece.packet(), false);
                return;
            };
            header = decoded;
        }
        // Reassembly counts the fragments that it refuses.
        let _refused = self.reassembler.receive(now, link, header, carried);
    }

    /// Acts on the timer of reassembly.
    pub(super) fn act_on_silence(&mut self, now: Time, out: impl FnMut(Frame<M>)) {
        self.reassembler.handle_timeout(now);
        self.release(out);
    }

    /// Counts a packet as lost: it can no longer arrive.
    fn lose(&mut self, number: u64, by_drop: bool) {
        let lost = u64::from(self.packets.take(number).is_some());
        let counter =
            if by_drop { &mut self.counters.lost_by_drops } else { &mut self.counters.lost_by_errors };
        *counter += lost;
    }

    /// Gives the packets that reassembly has released to `out`.
    fn release(&mut self, mut out: impl FnMut(Frame<M>)) {
        while let Some(packet) = self.reassembler.poll_packet() {
            let taken = self.packets.take(packet.piece.packet()).filter(|_| packet.is_whole());
            let Some(mut frame) = taken else { continue };
            if packet.has_octets() {
                let Some(octets) = packet.octets.strip_prefix(&self.protocol[..]) else {
                    self.counters.codec_faults += 1;
                    continue;
                };
                frame.message.put_octets(0, octets);
            }
            self.counters.delivered += 1;
            out(frame);
        }
        self.counters.given_up += self.packets.settle(self.reassembler.decided());
    }

    /// Disconnects `link`, whose call has dropped, and counts the packets that this loses.
    pub(super) fn disconnect(&mut self, link: usize) {
        let (packets, counters) = (&mut self.packets, &mut self.counters);
        self.lines[link].disconnect(|piece| {
            counters.lost_by_drops += u64::from(packets.take(piece.packet()).is_some());
        });
    }

    /// Takes `link` out of the bundle.
    pub(super) fn leave(&mut self, now: Time, link: usize, out: impl FnMut(Frame<M>)) {
        self.lines[link].hang_up(now);
        self.up[link] = false;
        self.reassembler.leave(now, link);
        self.release(out);
        // The policy may go on without the link.
        self.dispatch(now);
    }

    /// Takes `link` into the bundle.
    pub(super) fn join(&mut self, now: Time, link: usize) {
        self.lines[link].connect();
        self.up[link] = true;
        self.reassembler.join(now, link);
        self.dispatch(now);
    }
}

/// Returns the octets of a packet, if all are at hand.
fn octets_of<M: Message>(frame: &Frame<M>) -> Option<&[u8]> {
    frame.message.octets(0).filter(|octets| octets.len() as u64 == frame.octets(0))
}
