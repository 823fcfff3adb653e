//! Two serial lines with PPP over them, as a link stage.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Deadline, Message};
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals};
use farcast_ppp::VjConfig;
use farcast_ppp::echo::{EchoConfig, EchoMonitor, Reply};
use farcast_ppp::framing::{PROTOCOL_IPV4, PROTOCOL_LCP};
use farcast_ppp::lcp::{self, Code};

use super::carrier::Carrier;
use super::error::PppError;
use super::line::{Information, LineConfig, LineCounters, PacketFate, SerialLine};
use super::vj::{Vj, VjCounters};
use crate::pipe::{Inbox, QueueLimit};

/// The smallest MTU that IPv4 works with (RFC 791 §3.2).
const LEAST_MTU: u16 = 68;

/// The settings of a [`Ppp`] stage.
#[derive(Clone, PartialEq, Debug)]
pub struct PppConfig {
    /// The line from the hub to the terminals.
    pub forward: LineConfig,
    /// The line from the terminals to the hub.
    pub back: LineConfig,
    /// The longest packet in octets, IP header included, at least 68; a longer one is dropped.
    pub mtu: u16,
    /// The echoes by which both ends probe the link. Without them neither end probes.
    pub echo: Option<EchoConfig>,
    /// The compression of TCP over IPv4 headers at both ends. Without it neither end compresses.
    pub vj: Option<VjConfig>,
}

impl PppConfig {
    /// Creates the settings of two lines with the usual MTU of 1500 octets, no echo and no compression.
    pub const fn new(forward: LineConfig, back: LineConfig) -> Self {
        Self { forward, back, mtu: 1500, echo: None, vj: None }
    }

    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// The errors of [`LineConfig::check`] and [`EchoConfig::check`], [`PppError::Mtu`], and [`PppError::EchoLoad`] if
    /// a request and a reply occupy a direction for longer than the time between requests.
    pub fn check(&self) -> Result<(), PppError> {
        self.forward.check()?;
        self.back.check()?;
        if self.mtu < LEAST_MTU {
            return Err(PppError::Mtu(self.mtu));
        }
        let Some(echo) = self.echo else { return Ok(()) };
        echo.check()?;
        let needed = [&self.forward, &self.back].map(LineConfig::echo_time);
        let needed = needed[0].max(needed[1]);
        if echo.interval < needed { Err(PppError::EchoLoad { needed }) } else { Ok(()) }
    }
}

/// Counters of one end of a [`Ppp`] link, beside its [`LineCounters`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndCounters {
    /// Packets that arrive at the other end.
    pub delivered: u64,
    /// Packets longer than the MTU.
    pub too_long: u64,
    /// Packets that found the queue full.
    pub queue_dropped: u64,
    /// Packets that entered while this end held the link for dead.
    pub dead_dropped: u64,
    /// Packets that were sent and lost, or not restored after compression.
    pub lost: u64,
    /// Echo-Requests that this end has sent.
    pub echo_requests: u64,
    /// Echo-Replies that answered these requests.
    pub echo_replies: u64,
    /// Number of times that this end has found the link dead.
    pub deaths: u64,
    /// Counters of the header compression of these packets.
    pub vj: VjCounters,
    /// Frames with octets that arrived undamaged and were refused: there should be none.
    pub codec_faults: u64,
    /// Frames with octets that arrived damaged and were let through by the check sequence. They are lost all the same.
    pub fcs_missed: u64,
}

/// A link of two serial lines with PPP: frames that enter at the hub leave at all terminals, frames that enter at a
/// terminal leave at the hub. Lost frames do not leave.
///
/// If the octets of a message are at hand, its escapes are counted, else they are drawn. Such octets are framed,
/// damaged where the line reports damage, and deframed; the message leaves with the result. The line alone decides a
/// frame's fate, and the fate is known when the frame enters. So without echoes there are no timers.
///
/// # Echoes
///
/// With [`PppConfig::echo`] both ends run an [`EchoMonitor`] from the entry of the first packet on. Requests and
/// replies are LCP frames of 8 octets, stand in line with the packets, and are lost like them. While an end holds the
/// link for dead it drops packets that enter there. It goes on sending requests, and the first answer revives the link.
/// Packets that arrive at a dead end still leave.
///
/// # Header compression
///
/// With [`PppConfig::vj`] the headers of TCP over IPv4 are compressed. They are octets, if a message has them at hand,
/// else the [headers](Message::headers) that it gives. A packet that the far end does not restore exactly does not
/// leave: TCP's checksum would refuse it. A packet that waits in the queue is not yet compressed, and counts with all
/// its octets.
///
/// # Settings
///
/// Rate, delay and the limit of the queue, if there is one, of each line can be [set](Stage::set) while it runs. They
/// hold for frames that enter from then on, echoes among them. Frames that wait keep their times, as in a
/// [`Pipe`](crate::Pipe).
#[derive(Clone, Debug)]
pub struct Ppp<M> {
    mtu: u16,
    /// Settings of the echoes.
    echo: Option<EchoConfig>,
    /// `true` once echoes have begun: a packet has entered.
    begun: bool,
    /// The ends: the hub's, the terminals'.
    ends: [LineEnd; 2],
    /// Frames that have entered at each end and have no fate yet.
    inboxes: [Inbox<M>; 2],
}

/// One end: the line that it sends on, and its knowledge of the link.
#[derive(Clone, Debug)]
struct LineEnd {
    line: SerialLine,
    magic: u32,
    monitor: Option<EchoMonitor>,
    /// Echoes on their way to this end, with their arrivals.
    coming: VecDeque<(Time, Echo)>,
    /// Present from the first packet whose octets are at hand.
    carrier: Option<Box<Carrier>>,
    /// Present if headers are compressed.
    vj: Option<Box<Vj>>,
    counters: EndCounters,
}

/// An LCP echo on a line.
#[derive(Clone, Copy, Debug)]
struct Echo {
    code: Code,
    identifier: u8,
    magic: u32,
}

impl Echo {
    /// Reads an echo from the information of a frame.
    fn parse(information: &[u8]) -> Option<Self> {
        let packet = lcp::Packet::parse(information).ok()?;
        let magic = packet.magic_number()?;
        Some(Self { code: packet.code, identifier: packet.identifier, magic })
    }
}

impl LineEnd {
    fn new(config: LineConfig, vj: Option<VjConfig>, stream: &mut RandomStream) -> Result<Self, PppError> {
        let line = SerialLine::new(config, RandomStream::derive(stream.bits(), &[]))?;
        let magic = stream.below(u32::MAX.into()) as u32 + 1;
        let (coming, counters) = (VecDeque::new(), EndCounters::default());
        let vj = vj.map(|vj| Box::new(Vj::new(vj)));
        Ok(Self { line, magic, monitor: None, coming, carrier: None, vj, counters })
    }

    fn is_dead(&self) -> bool {
        self.monitor.as_ref().is_some_and(EchoMonitor::is_dead)
    }

    /// Returns the next event at this end that no packet causes.
    fn due(&self) -> Option<Deadline> {
        let arrival = self.coming.front().map(|&(at, _)| Deadline { at, timer: "lcp echo arrives" });
        let probe = self.monitor.as_ref().and_then(EchoMonitor::poll_timeout);
        arrival.into_iter().chain(probe).filter(|due| due.at != Time::NEVER).min_by_key(|due| due.at)
    }

    /// Handles the event that is due at `now`. Returns the echo that leaves, with its arrival at the other end.
    fn act(&mut self, now: Time) -> Option<(Time, Echo)> {
        if let Some(&(_, echo)) = self.coming.front().filter(|&&(at, _)| at <= now) {
            self.coming.pop_front();
            return self.receive(now, echo);
        }
        let monitor = self.monitor.as_mut()?;
        let was_dead = monitor.is_dead();
        monitor.handle_timeout(now);
        self.counters.deaths += u64::from(monitor.is_dead() && !was_dead);
        let identifier = monitor.poll_request()?;
        self.counters.echo_requests += 1;
        self.send_echo(now, Code::EchoRequest, identifier)
    }

    /// Takes an echo. Returns the reply that leaves, with its arrival.
    fn receive(&mut self, now: Time, echo: Echo) -> Option<(Time, Echo)> {
        if echo.code == Code::EchoRequest {
            return self.send_echo(now, Code::EchoReply, echo.identifier);
        }
        let reply = self.monitor.as_mut()?.reply_with(now, echo.identifier, echo.magic);
        self.counters.echo_replies += u64::from(reply == Reply::Answer);
        None
    }

    fn send_echo(&mut self, now: Time, code: Code, identifier: u8) -> Option<(Time, Echo)> {
        let echo = Echo { code, identifier, magic: self.magic };
        let octets = lcp::echo(code, identifier, self.magic);
        let information = Information::Octets(&octets);
        if !self.line.admits(now, information.len()) {
            return None;
        }
        match self.transmit(now, PROTOCOL_LCP, information, information.len()) {
            PacketFate::Frame { arrives, intact: true, .. } => {
                let echo = self.carrier.as_ref().map_or(Some(echo), |carrier| Echo::parse(carrier.packet()));
                echo.map(|echo| (arrives, echo))
            }
            _ => None,
        }
    }

    /// Sends a packet that the line has admitted and that waits as one of `waiting` octets. Sends its octets too, if
    /// the carrier is present.
    fn transmit(
        &mut self,
        now: Time,
        protocol: u16,
        information: Information<'_>,
        waiting: u64,
    ) -> PacketFate {
        let sent = self.line.transmit(now, protocol, information, waiting);
        let (Some(carrier), PacketFate::Frame { departs, arrives, intact }) = (&mut self.carrier, sent)
        else {
            return sent;
        };
        let (Information::Octets(octets), Some(damage)) = (information, self.line.damage()) else {
            carrier.restart(self.line.is_aligned());
            return sent;
        };
        let intact = carrier.carry(protocol, octets, damage, intact);
        let counters = carrier.counters();
        (self.counters.codec_faults, self.counters.fcs_missed) = (counters.faults, counters.missed);
        PacketFate::Frame { departs, arrives, intact }
    }

    /// Begins to carry the octets of packets of up to `mtu` octets.
    fn carry(&mut self, mtu: u16) {
        if self.carrier.is_none() {
            self.line.note_damage();
            let carrier = Carrier::new(self.line.framing(), mtu, self.line.is_aligned());
            self.carrier = Some(Box::new(carrier));
        }
    }

    /// Sends a packet. If it has no octets, compression already knows its headers. Returns its arrival, if it arrives.
    fn send(&mut self, now: Time, mtu: u16, packet: Information<'_>) -> Option<Time> {
        if packet.len() > mtu.into() {
            self.counters.too_long += 1;
            return None;
        }
        if self.is_dead() {
            self.counters.dead_dropped += 1;
            return None;
        }
        if !self.line.admits(now, packet.len()) {
            self.counters.queue_dropped += 1;
            return None;
        }
        let sent = match self.vj.take() {
            Some(vj) => self.send_compressed(now, packet, vj),
            None => self.transmit(now, PROTOCOL_IPV4, packet, packet.len()),
        };
        if let PacketFate::Frame { arrives, intact: true, .. } = sent {
            self.counters.delivered += 1;
            return Some(arrives);
        }
        self.counters.lost += 1;
        None
    }

    /// Sends a packet through both ends of its compression, which is put back. The packet is intact if it is restored.
    fn send_compressed(&mut self, now: Time, packet: Information<'_>, mut vj: Box<Vj>) -> PacketFate {
        let (protocol, information) = vj.compress(packet);
        let mut sent = self.transmit(now, protocol, information, packet.len());
        if self.line.take_heard_damage() {
            vj.hear_of_damage();
        }
        if let PacketFate::Frame { intact: intact @ true, .. } = &mut sent {
            let has_octets = matches!(packet, Information::Octets(_));
            let octets = self.carrier.as_ref().filter(|_| has_octets).map(|carrier| carrier.packet());
            *intact = vj.restore(packet, octets);
        }
        self.counters.vj = *vj.counters();
        self.vj = Some(vj);
        sent
    }

    /// Returns the octets with which the last packet with octets leaves.
    fn packet(&self) -> Option<&[u8]> {
        let carrier = self.carrier.as_ref()?;
        Some(self.vj.as_ref().map_or(carrier.packet(), |vj| vj.packet()))
    }

    fn totals(&self) -> Totals {
        let EndCounters { delivered, too_long, queue_dropped, dead_dropped, .. } = self.counters;
        let dropped = too_long + queue_dropped + dead_dropped;
        let airtime = self.line.counters().busy;
        Totals { sent: delivered, dropped, too_long, down: dead_dropped, airtime, ..Totals::default() }
    }
}

impl<M: Message> Ppp<M> {
    /// Creates a link with these settings. The draws of its lines and the magic numbers of its ends come from `stream`.
    ///
    /// # Errors
    /// The error of [`PppConfig::check`].
    pub fn new(config: PppConfig, mut stream: RandomStream) -> Result<Self, PppError> {
        config.check()?;
        let PppConfig { forward, back, mtu, echo, vj } = config;
        let ends = [LineEnd::new(forward, vj, &mut stream)?, LineEnd::new(back, vj, &mut stream)?];
        Ok(Self { mtu, echo, begun: false, ends, inboxes: [Inbox::new(), Inbox::new()] })
    }

    /// Returns the counters of packets that entered at the hub, or else at terminals.
    pub const fn counters(&self, entered: Port) -> &EndCounters {
        &self.ends[side(entered)].counters
    }

    /// Returns the counters of the line that the hub sends on, or else the terminals; echoes count.
    pub const fn line_counters(&self, entered: Port) -> &LineCounters {
        self.ends[side(entered)].line.counters()
    }

    /// Handles every event due up to `now`, each at its time: a wake-up that comes late changes nothing.
    fn advance(&mut self, now: Time) {
        loop {
            let [hub, terminals] =
                self.ends.each_ref().map(|end| end.due().map_or(Time::NEVER, |due| due.at));
            let (side, at) = if terminals < hub { (1, terminals) } else { (0, hub) };
            if at > now || at == Time::NEVER {
                return;
            }
            let leaves = self.ends[side].act(at);
            self.ends[1 - side].coming.extend(leaves);
        }
    }

    /// Returns the end whose next packet enters first, and the time of that entry.
    fn entering(&self) -> Option<(usize, Time)> {
        let entry = |side: usize| self.inboxes[side].front().map(|(at, _)| (side, at));
        [entry(0), entry(1)].into_iter().flatten().min_by_key(|&(_, at)| at)
    }

    /// Decides the fate of the packet that enters first.
    fn judge(&mut self, side: usize, now: Time) -> Option<Output<M>> {
        if let Some(echo) = self.echo.filter(|_| !core::mem::replace(&mut self.begun, true)) {
            for end in &mut self.ends {
                end.monitor = Some(EchoMonitor::new(echo, now).with_magic_number(end.magic));
            }
        }
        self.advance(now);
        let (_, frame) = self.inboxes[side].front()?;
        let end = &mut self.ends[side];
        let octets = frame.message.octets(0);
        let arrival = if let Some(octets) = octets {
            end.carry(self.mtu);
            end.send(now, self.mtu, Information::Octets(octets))
        } else {
            if let Some(vj) = &mut end.vj {
                frame.message.headers(0, vj.headers());
            }
            end.send(now, self.mtu, Information::Length(frame.octets(0)))
        };
        let has_octets = octets.is_some();
        let mut frame = self.inboxes[side].take(NonZeroU32::MIN)?;
        let at = arrival?;
        if let Some(octets) = end.packet().filter(|_| has_octets) {
            frame.message.put_octets(0, octets);
        }
        Some(Output { at, port: [Port::Terminals, Port::Hub][side], frame })
    }
}

/// Returns the end that a port is at.
const fn side(port: Port) -> usize {
    match port {
        Port::Hub => 0,
        Port::Terminal(_) | Port::Terminals => 1,
    }
}

impl<M: Message> Stage<M> for Ppp<M> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        self.inboxes[side(port)].push(now, frame);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn has_room(&mut self, now: Time, port: Port, octets: u64) -> bool {
        self.advance(now);
        self.ends[side(port)].line.has_room(now, octets)
    }

    fn poll_output(&mut self) -> Option<Output<M>> {
        loop {
            let (side, now) = self.entering()?;
            if let Some(output) = self.judge(side, now) {
                return Some(output);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.ends.iter().filter_map(LineEnd::due).min_by_key(|due| due.at)
    }

    fn totals(&self) -> Totals {
        self.ends[0].totals()
    }

    fn return_totals(&self) -> Totals {
        self.ends[1].totals()
    }

    fn never_rests(&self) -> bool {
        self.echo.is_some()
    }

    fn settings(&self, port: Port) -> Settings {
        let LineConfig { rate, delay, queue, .. } = *self.ends[side(port)].line.config();
        Settings { rate: Some(rate), delay: Some(delay), queue: queue.octets() }
    }

    fn may_set(&self, port: Port, setting: Setting) -> Result<(), NotSettable> {
        let least = || self.echo.and_then(|echo| self.ends[side(port)].line.config().least_rate(echo));
        match setting {
            Setting::Rate(rate) => match least().filter(|least| rate < *least) {
                Some(least) => Err(NotSettable::RateBelowEchoes { least }),
                None => Ok(()),
            },
            Setting::Delay(_) => Ok(()),
            Setting::Queue(_) if self.ends[side(port)].line.config().queue.is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        self.advance(now);
        let line = &mut self.ends[side(port)].line;
        match setting {
            Setting::Rate(rate) => line.set_rate(rate),
            Setting::Delay(delay) => line.set_delay(delay),
            Setting::Queue(octets) => line.set_queue(QueueLimit::Octets(octets.get())),
            _ => {}
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        let [hub, terminals] = &self.ends;
        let [forward, back] = [hub, terminals].map(|end| end.line.counters());
        let mut figures = Vec::from([
            Figure::count("forward_octets", forward.octets),
            Figure::count("forward_escapes", forward.escapes),
            Figure::count("forward_corrupted", forward.corrupted),
            Figure::count("forward_cut_off", forward.cut_off),
            Figure::count("return_octets", back.octets),
            Figure::count("return_escapes", back.escapes),
            Figure::count("return_corrupted", back.corrupted),
            Figure::count("return_cut_off", back.cut_off),
            Figure::count("link_deaths", hub.counters.deaths + terminals.counters.deaths),
            Figure::count("codec_faults", hub.counters.codec_faults + terminals.counters.codec_faults),
            Figure::count("fcs_missed", hub.counters.fcs_missed + terminals.counters.fcs_missed),
        ]);
        if hub.vj.is_some() {
            let [forward, back] = [&hub.counters.vj, &terminals.counters.vj];
            figures.extend([
                Figure::count("forward_vj_uncompressed", forward.uncompressed),
                Figure::count("forward_vj_compressed", forward.compressed),
                Figure::count("forward_vj_tossed", forward.tossed),
                Figure::count("forward_vj_out_of_step", forward.out_of_step),
                Figure::count("return_vj_uncompressed", back.uncompressed),
                Figure::count("return_vj_compressed", back.compressed),
                Figure::count("return_vj_tossed", back.tossed),
                Figure::count("return_vj_out_of_step", back.out_of_step),
            ]);
        }
        figures
    }
}
