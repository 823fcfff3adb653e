//! The two ends of a bearer: an RLC entity at each, and the channels between them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::engine::{Deadline, Message};
use farcast_core::random::RandomStream;
use farcast_core::stage::{Figure, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals};
use farcast_core::{Span, Time};
use farcast_rlc::config::BufferLimit;
use farcast_rlc::{Entity, Event};

use super::{BearerConfig, BearerError, Counters};
use crate::umts::channel::{ChannelConfig, ChannelError, UmtsChannel};
use crate::umts::sdu::Sdu;

/// A frame between entering and leaving.
#[derive(Clone, Debug)]
struct HeldFrame<M> {
    entered: Time,
    frame: Frame<M>,
}

/// One end: its entity, the channel from it, and the frames on their way from it.
#[derive(Clone, Debug)]
struct BearerEnd<M, P: Sdu> {
    entity: Entity<P>,
    channel: UmtsChannel<P>,
    /// Frames by number, from `first` on; `None` for a frame that has left.
    held: VecDeque<Option<HeldFrame<M>>>,
    first: u64,
    /// Frames before this number that have not left were given up.
    given_up: u64,
    /// Frames that its entity did not take or gave up.
    turned_down: TurnedDown,
    /// Completed moves of the peer's window.
    moves: u64,
    submitted: u64,
    delivered: u64,
    delay: Span,
    reports_periodically: bool,
    /// Longest SDU that its entity takes.
    max_sdu_octets: u32,
    /// `true` once its entity has given up for good: the peer did not answer to resets.
    failed: bool,
    /// Start of the interval in which the entity has something to send.
    wants: Time,
    /// Port at which its frames leave.
    out: Port,
}

/// Frames that entered and will not leave, by reason.
#[derive(Clone, Copy, Debug, Default)]
struct TurnedDown {
    /// The buffer was full.
    full: u64,
    /// The frame was longer than an SDU may be.
    too_long: u64,
    /// The entity had given up for good.
    down: u64,
    /// The entity gave the frame up.
    given_up: u64,
}

impl<M: Message, P: Sdu> BearerEnd<M, P> {
    fn new(
        rlc: farcast_rlc::Config,
        channel: ChannelConfig,
        out: Port,
        stream: &mut RandomStream,
    ) -> Result<Self, BearerError> {
        let own = RandomStream::derive(stream.bits(), &[]);
        Ok(Self {
            channel: UmtsChannel::new(channel, rlc.format, own)
                .map_err(|kind| BearerError::Channel(ChannelError { channel: "channel", kind }))?,
            reports_periodically: rlc.status.periodic.is_some(),
            max_sdu_octets: rlc.max_sdu_octets.get(),
            entity: Entity::new(rlc)?,
            held: VecDeque::new(),
            first: 0,
            given_up: 0,
            turned_down: TurnedDown::default(),
            moves: 0,
            submitted: 0,
            delivered: 0,
            delay: Span::ZERO,
            failed: false,
            wants: Time::NEVER,
            out,
        })
    }

    /// Hands a frame that enters to the entity.
    fn submit(&mut self, now: Time, frame: Frame<M>) {
        let number = self.first + self.held.len() as u64;
        self.submitted += 1;
        if self.entity.submit(now, P::of(number, &frame, self.max_sdu_octets)) {
            self.held.push_back(Some(HeldFrame { entered: now, frame }));
            return;
        }
        let TurnedDown { full, too_long, down, .. } = &mut self.turned_down;
        let reason = if self.failed {
            down
        } else if frame.octets(0) > u64::from(self.max_sdu_octets) {
            too_long
        } else {
            full
        };
        *reason += 1;
    }

    /// Takes out a frame that has crossed.
    fn take(&mut self, number: u64) -> Option<HeldFrame<M>> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let held = self.held.get_mut(at)?.take();
        self.forget(0);
        held
    }

    /// Drops the frames before `end`, and the empty places behind them.
    fn forget(&mut self, end: u64) {
        while self.held.front().is_some_and(|held| held.is_none() || self.first < end) {
            let given_up = self.held.pop_front().flatten();
            self.turned_down.given_up += u64::from(given_up.is_some());
            self.first += 1;
        }
    }

    /// Marks the frames before `end` as given up by the entity. The peer may still deliver them until its window has
    /// moved past them, for the last PDU may be under way.
    fn give_up(&mut self, end: u64) {
        self.given_up = end;
        let is_moving = self.entity.counters().window_moves > self.moves;
        // Without a move of the window, no part of them was ever sent.
        if !is_moving {
            self.forget(end);
        }
    }

    /// Forgets the frames that were given up: the peer's window is past them, after `moves` moves in all.
    fn moved(&mut self, moves: u64) {
        self.moves = moves;
        self.forget(self.given_up);
    }

    /// Notes the interval in which the entity wants to send, `from` at the earliest, after any event of the entity.
    fn note(&mut self, now: Time, from: Time) {
        let next = || self.channel.next_interval(from);
        self.wants = if self.entity.has_output(now) { next() } else { Time::NEVER };
    }
}

/// The two ends of a bearer, with the channels between them.
#[derive(Clone, Debug)]
pub(super) struct Pair<M, P: Sdu> {
    /// The network's side, and the terminal's.
    sides: [BearerEnd<M, P>; 2],
    /// Frames of a run that have not entered yet, by time.
    entering: VecDeque<(Time, usize, Frame<M>)>,
    outputs: VecDeque<Output<M>>,
    /// Time of the last call by the driver, which may come late; nothing leaves before it.
    now: Time,
}

/// Events of a bearer, in their order at one instant. An entity's answer to a PDU that arrives at the end of an
/// interval leaves with the next interval. A frame that enters as an interval begins waits for the one after. So the
/// driver may hand a frame over before or after it wakes the stage at that instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BearerEvent {
    Timer(usize),
    Arrival(usize),
    Interval(usize),
    Entry,
}

/// Returns the side at which a port is.
fn side_of(port: Port) -> usize {
    usize::from(port != Port::Hub)
}

impl<M: Message, P: Sdu> Pair<M, P> {
    pub(super) fn new(config: &BearerConfig, mut stream: RandomStream) -> Result<Self, BearerError> {
        config.check()?;
        let [(_, downlink, network), (_, uplink, terminal)] = config.ends();
        let sides = [
            BearerEnd::new(network, downlink, Port::Terminals, &mut stream)?,
            BearerEnd::new(terminal, uplink, Port::Hub, &mut stream)?,
        ];
        Ok(Self { sides, entering: VecDeque::new(), outputs: VecDeque::new(), now: Time::ZERO })
    }

    pub(super) fn counters(&self) -> [Counters; 2] {
        self.sides.each_ref().map(|side| Counters {
            submitted: side.submitted,
            delivered: side.delivered,
            delay: side.delay,
            failed: side.failed,
            channel: *side.channel.counters(),
        })
    }

    pub(super) fn rlc(&self) -> [&farcast_rlc::Counters; 2] {
        self.sides.each_ref().map(|side| side.entity.counters())
    }

    /// Returns the next event and its time.
    fn next(&self) -> (Time, BearerEvent) {
        let entry = (self.entering.front().map_or(Time::NEVER, |&(at, ..)| at), BearerEvent::Entry);
        (0..2).fold(entry, |first, number| {
            let side = &self.sides[number];
            let timer = side.entity.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
            let arrival = side.channel.next_arrival();
            first
                .min((timer, BearerEvent::Timer(number)))
                .min((arrival, BearerEvent::Arrival(number)))
                .min((side.wants, BearerEvent::Interval(number)))
        })
    }

    /// Handles every event due before `limit`.
    fn advance(&mut self, limit: Time) {
        loop {
            let (at, what) = self.next();
            if at >= limit {
                return;
            }
            match what {
                BearerEvent::Timer(number) => self.sides[number].entity.handle_timeout(at),
                BearerEvent::Arrival(number) => self.arrive(number, at),
                BearerEvent::Entry => {
                    if let Some((_, number, frame)) = self.entering.pop_front() {
                        self.sides[number].submit(at, frame);
                    }
                }
                BearerEvent::Interval(number) => {
                    let BearerEnd { entity, channel, .. } = &mut self.sides[number];
                    channel.send(at, || entity.poll_pdu(at));
                }
            }
            // A frame that has entered is too late for the intervals that begin now.
            let from = if what == BearerEvent::Entry { at + Span::from_nanos(1) } else { at };
            self.settle(at, from);
        }
    }

    /// Hands an interval of the channel from side `from`, which has arrived, to the other side.
    fn arrive(&mut self, from: usize, now: Time) {
        let [one, other] = &mut self.sides;
        let (sender, receiver) = if from == 0 { (one, other) } else { (other, one) };
        let Some(interval) = sender.channel.arrive(now) else { return };
        let sent = interval.sent;
        sender.channel.unpack(interval, |pdu| {
            // The entity counts the PDUs that it refuses.
            let _ = receiver.entity.handle(now, pdu);
        });
        if receiver.entity.counts_ttis() {
            receiver.entity.tti(now, sent);
        }
    }

    /// Handles the events of the entities, and notes when these want to send: not before `from`.
    fn settle(&mut self, now: Time, from: Time) {
        for number in 0..2 {
            while let Some(event) = self.sides[number].entity.poll_event() {
                let side = &mut self.sides[number];
                match event {
                    Event::Delivered(sdu) => self.deliver(1 - number, now, &sdu),
                    Event::Discarded { sdus } => side.give_up(sdus.end),
                    Event::WindowMoved => side.moved(side.moves + 1),
                    Event::Reset => side.moved(side.entity.counters().window_moves),
                    Event::Unrecoverable => {
                        side.failed = true;
                        side.moved(side.entity.counters().window_moves);
                    }
                }
            }
        }
        for side in &mut self.sides {
            side.note(now, from);
        }
    }

    /// Lets out a frame that entered at side `from` and has crossed.
    fn deliver(&mut self, from: usize, now: Time, sdu: &P) {
        let side = &mut self.sides[from];
        let Some(HeldFrame { entered, mut frame }) =
            side.take(sdu.piece().packet()).filter(|_| sdu.is_whole())
        else {
            return;
        };
        sdu.put_into(&mut frame);
        side.delivered += 1;
        side.delay = side.delay + now.since(entered);
        self.outputs.push_back(Output { at: now.max(self.now), port: side.out, frame });
    }

    fn totals_of(&self, number: usize) -> Totals {
        let side = &self.sides[number];
        let airtime = side.channel.tti() * side.channel.counters().intervals;
        let TurnedDown { full, too_long, down, given_up } = side.turned_down;
        let dropped = full + too_long + down;
        Totals { sent: side.delivered, dropped, too_long, down, given_up, airtime, ..Totals::default() }
    }
}

impl<M: Message, P: Sdu> Stage<M> for Pair<M, P> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        self.now = now;
        self.advance(now);
        let number = side_of(port);
        let (mut at, spacing) = (now, frame.spacing);
        let mut rest = Some(frame);
        while let Some(frame) = rest {
            let (head, tail) = frame.split(NonZeroU32::MIN);
            // Frames of two runs may enter in turn.
            let place = self.entering.partition_point(|&(other, ..)| other <= at);
            self.entering.insert(place, (at, number, head));
            at += spacing;
            rest = tail;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.advance(now + Span::from_nanos(1));
    }

    fn poll_output(&mut self) -> Option<Output<M>> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let (at, what) = self.next();
        let timer = match what {
            BearerEvent::Timer(_) => "rlc",
            BearerEvent::Arrival(_) => "arrival",
            BearerEvent::Entry => "entry",
            BearerEvent::Interval(_) => "interval",
        };
        (at != Time::NEVER).then_some(Deadline { at, timer })
    }

    fn totals(&self) -> Totals {
        self.totals_of(0)
    }

    fn return_totals(&self) -> Totals {
        self.totals_of(1)
    }

    fn each_held(&self, each: &mut dyn FnMut(Port, &Frame<M>)) {
        for side in &self.sides {
            side.held.iter().flatten().for_each(|held| each(side.out, &held.frame));
        }
        for (_, number, frame) in &self.entering {
            each(self.sides[*number].out, frame);
        }
    }

    fn settings(&self, port: Port) -> Settings {
        self.sides[side_of(port)].channel.settings()
    }

    fn may_set(&self, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.sides[side_of(port)].channel.may_set(setting)
    }

    fn set(&mut self, now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        self.handle_timeout(now);
        let BearerEnd { channel, entity, .. } = &mut self.sides[side_of(port)];
        channel.set(setting);
        if let Setting::Queue(octets) = setting {
            entity.limit_transmission_buffer(BufferLimit::Octets(octets.get()));
        }
        Ok(())
    }

    fn never_rests(&self) -> bool {
        self.sides.iter().any(|side| side.reports_periodically)
    }

    fn figures(&self) -> Vec<Figure> {
        let [downlink, uplink] = self.counters();
        let [network, terminal] = self.rlc();
        let data = network.data_pdus + network.retransmissions;
        let ratio = |value: f64, of: u64| (of > 0).then(|| value / of as f64);
        let mean_delay = |way: &Counters| ratio(way.delay.as_secs_f64(), way.delivered);
        let percent = |count: u64, of: u64| ratio(100.0 * count as f64, of);
        [
            ("forward_sdus", Some(downlink.submitted as f64)),
            ("forward_sdus_delivered", Some(downlink.delivered as f64)),
            ("forward_sdus_discarded", Some(network.sdus_discarded as f64)),
            ("forward_sdu_delay_s", mean_delay(&downlink)),
            ("forward_data_pdus", Some(network.data_pdus as f64)),
            ("forward_retransmissions", Some(network.retransmissions as f64)),
            ("forward_polls", Some(network.polls as f64)),
            ("forward_erased_pdus", Some(downlink.channel.erased_pdus as f64)),
            // Status PDUs of the terminal for each hundred data PDUs that they report on.
            ("status_overhead_percent", percent(terminal.status_pdus, data)),
            ("return_status_pdus", Some(terminal.status_pdus as f64)),
            ("return_sdus", Some(uplink.submitted as f64)),
            ("return_sdus_delivered", Some(uplink.delivered as f64)),
            ("return_sdu_delay_s", mean_delay(&uplink)),
            ("window_moves", Some((network.window_moves + terminal.window_moves) as f64)),
            ("resets", Some((network.resets + terminal.resets) as f64)),
            // Ends that have stopped for good, because resets were not answered.
            ("ends_failed", Some(f64::from(u8::from(downlink.failed) + u8::from(uplink.failed)))),
            ("codec_faults", Some((downlink.channel.codec_faults + uplink.channel.codec_faults) as f64)),
        ]
        .map(|(name, value)| Figure { name, value })
        .to_vec()
    }
}
