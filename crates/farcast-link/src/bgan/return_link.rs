//! The return link: slots on demand, asked for by slotted ALOHA.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, NotSettable, Output, Port, Setting, Settings, Totals};
use farcast_core::{Deadline, Message, Span, Stage, Time};

use crate::bgan::BganError;
use crate::pipe::QueueLimit;

mod config;
mod held;
mod schedule;
mod waiting;

pub use config::{Access, RequestFor, ReturnConfig};
use held::HeldPackets;
use schedule::SlotSchedule;
use waiting::{Packet, Queue, Store};

/// The return link. Packets that enter at a terminal leave at [`Port::Hub`].
///
/// 1. A terminal with something to send and no request under way sends a request in a random contention slot of the
///    first frame that begins at or after now.
/// 2. A request alone in its slot is heard. Others have collided: their terminals know it one
///    [round trip](ReturnConfig::round_trip) after the slot, let a random number of frames go by and try again.
/// 3. The hub gives reservation slots first come first served, the first no earlier than one round trip after the
///    request's slot. Each packet takes whole slots, and arrives one propagation after its last.
///
/// Random numbers are drawn from one stream in the order of frames, within a frame by terminal (slots), then by slot
/// (back-offs). A stream for each terminal would cost more than the draws do, where terminals are many. So one more
/// request changes the later draws of all terminals.
///
/// Runs are taken apart into packets. Frames without requests cost no work.
///
/// The propagation, and the limit of the queues if there is one, can be [set](Stage::set) while it runs; the rate is
/// the schedule's. Packets that already have slots arrive as planned, and no later packet arrives before them. A
/// request whose contention slots have not ended is answered after the new round trip.
#[derive(Clone, Debug)]
pub struct Return<M> {
    config: ReturnConfig,
    round_trip: Span,
    schedule: SlotSchedule,
    stream: RandomStream,
    most_terminals: u32,
    terminals: Vec<Terminal>,
    store: Store<M>,
    contention: BinaryHeap<Reverse<SlotRequest>>,
    rides: BinaryHeap<Reverse<Ride>>,
    /// The first reservation slot that is still free; all later ones are free too.
    next_reserved: u64,
    /// The requests of the frame at hand with their slots; kept to reuse its memory.
    contenders: Vec<(u32, SlotRequest)>,
    /// Packets that each terminal holds; kept only if queues have a limit.
    held: Vec<HeldPackets>,
    /// Arrival of the last packet; no later packet arrives before it.
    latest: Time,
    /// Time of the last call by the driver; nothing leaves before it.
    now: Time,
    outputs: VecDeque<Output<M>>,
    counters: ReturnCounters,
}

/// Counters of a [`Return`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReturnCounters {
    /// Packets that entered and found room.
    pub packets_in: u64,
    /// Packets that found the queue of their terminal full.
    pub queue_dropped: u64,
    /// Packets that were given slots.
    pub packets_out: u64,
    /// Requests sent in contention slots, each attempt counted.
    pub requests: u64,
    /// Requests that collided, each attempt counted.
    pub collided: u64,
    /// The most attempts of a request.
    pub most_attempts: u32,
    /// Requests sent in reserved bursts.
    pub piggybacked: u64,
    /// Reservation slots given.
    pub r_slots: u64,
    /// Packets dropped after too many collisions.
    pub given_up: u64,
    /// Packets that entered at the hub or at a terminal that does not exist; they go nowhere.
    pub misdirected: u64,
    /// Sum of the waits of all packets, from entering to the start of their first reservation slot.
    pub waited: Span,
    /// The longest wait of a packet.
    pub longest_wait: Span,
}

#[derive(Clone, Copy, Debug, Default)]
struct Terminal {
    queue: Queue,
    /// `true` while a request for the queue is under way.
    requesting: bool,
    /// Time at which the terminal learns the result of its last request. It sends no request for the queue before.
    informed: Time,
    /// The last reservation slot given to the terminal.
    last_reserved: Option<u64>,
}

/// A request to be sent in a contention slot. The order of requests is the order of their draws.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SlotRequest {
    frame: u64,
    terminal: u32,
    /// Place in the store of the packet that the request is for; `None` if it is for the terminal's queue.
    packet: Option<u32>,
    /// Earlier attempts, all of which collided.
    collisions: u32,
}

/// A request that rides in a reserved burst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ride {
    reserved: u64,
    terminal: u32,
}

impl<M: Message> Return<M> {
    /// Creates an idle return link of terminals `0..terminals`, which draws from `stream`. Memory grows with the
    /// highest terminal in use.
    ///
    /// # Errors
    /// The first error that [`ReturnConfig::check`] finds.
    pub fn new(config: ReturnConfig, terminals: u32, stream: RandomStream) -> Result<Self, BganError> {
        config.check()?;
        Ok(Self {
            round_trip: config.round_trip(),
            schedule: SlotSchedule::new(&config),
            config,
            stream,
            most_terminals: terminals,
            terminals: Vec::new(),
            store: Store::default(),
            contention: BinaryHeap::new(),
            rides: BinaryHeap::new(),
            next_reserved: 0,
            contenders: Vec::new(),
            held: Vec::new(),
            latest: Time::ZERO,
            now: Time::ZERO,
            outputs: VecDeque::new(),
            counters: ReturnCounters::default(),
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> &ReturnCounters {
        &self.counters
    }

    /// Takes one packet, or drops it if the queue of its terminal is full.
    fn enter(&mut self, now: Time, terminal: u32, frame: Frame<M>) {
        let octets = frame.octets(0);
        if let Some(held) = self.held.get_mut(terminal as usize)
            && !held.admit(now, octets, self.config.queue)
        {
            self.counters.queue_dropped += 1;
            return;
        }
        let r_slots = self.config.r_slots(octets);
        let packet = Packet { entered: now, r_slots, frame };
        let state = &mut self.terminals[terminal as usize];
        self.store.push(&mut state.queue, packet);
        self.counters.packets_in += 1;
        if !state.requesting {
            self.arrange(now, terminal);
        }
    }

    /// Plans the request for a terminal's queue, for which none is under way.
    fn arrange(&mut self, now: Time, terminal: u32) {
        let state = &mut self.terminals[terminal as usize];
        let waits = self.config.request == RequestFor::Queue;
        // A packet with a request of its own contends at once, unless its terminal already knows of a reserved burst.
        // A queue's request waits anyway until the terminal knows the result of the last one.
        let rides = self.config.piggyback && (waits || state.informed <= now);
        let reserved = state.last_reserved.filter(|&slot| self.schedule.reserved_start(slot) >= now);
        if let Some(reserved) = reserved.filter(|_| rides) {
            state.requesting = true;
            self.rides.push(Reverse(Ride { reserved, terminal }));
            return;
        }
        let mut request = SlotRequest { frame: 0, terminal, packet: None, collisions: 0 };
        if waits {
            state.requesting = true;
            request.frame = self.schedule.frame_from(now.max(state.informed));
            self.contention.push(Reverse(request));
            return;
        }
        request.frame = self.schedule.frame_from(now);
        while let Some(packet) = self.store.unchain(&mut state.queue) {
            self.contention.push(Reverse(SlotRequest { packet: Some(packet), ..request }));
        }
    }

    /// Ends the request of a terminal's queue and plans the next if more packets wait.
    fn conclude(&mut self, now: Time, terminal: u32, informed: Time) {
        let state = &mut self.terminals[terminal as usize];
        state.requesting = false;
        state.informed = informed;
        if !state.queue.is_empty() {
            self.arrange(now, terminal);
        }
    }

    /// Lets the requests of `frame` contend; all of its contention slots are over.
    fn contend(&mut self, now: Time, frame: u64) {
        let mut contenders = core::mem::take(&mut self.contenders);
        while let Some(&Reverse(request)) = self.contention.peek().filter(|next| next.0.frame == frame) {
            self.contention.pop();
            let slot = self.stream.below(u64::from(self.schedule.contention_slots())) as u32;
            contenders.push((slot, request));
            self.counters.requests += 1;
            self.counters.most_attempts = self.counters.most_attempts.max(request.collisions + 1);
        }
        contenders.sort_unstable();
        for together in contenders.chunk_by(|a, b| a.0 == b.0) {
            let heard = together.len() == 1 || self.config.access == Access::Ideal;
            for &(slot, request) in together {
                if heard {
                    self.hear(now, slot, request);
                } else {
                    self.collide(now, slot, request);
                }
            }
        }
        contenders.clear();
        self.contenders = contenders;
    }

    /// Gives slots to a request that was alone in contention slot `slot`.
    fn hear(&mut self, now: Time, slot: u32, request: SlotRequest) {
        let granted = self.schedule.contention_end(request.frame, slot) + self.round_trip;
        if let Some(place) = request.packet {
            if let Some(packet) = self.store.take(place) {
                self.grant(request.terminal, granted, packet);
                self.terminals[request.terminal as usize].informed = granted;
            }
            return;
        }
        let sent = self.schedule.contention_start(request.frame, slot);
        self.grant_queue(now, request.terminal, sent, granted);
    }

    /// Gives slots from `granted` on to every packet that waits at the terminal and entered by `sent`.
    fn grant_queue(&mut self, now: Time, terminal: u32, sent: Time, granted: Time) {
        while let Some(packet) = self.pop_entered(terminal, sent) {
            self.grant(terminal, granted, packet);
        }
        self.conclude(now, terminal, granted);
    }

    /// Gives `packet` the next free slots from `granted` on, and sends it.
    fn grant(&mut self, terminal: u32, granted: Time, packet: Packet<M>) {
        let first = self.next_reserved.max(self.schedule.reserved_from(granted));
        let last = first.saturating_add(packet.r_slots - 1);
        self.next_reserved = last.saturating_add(1);
        self.terminals[terminal as usize].last_reserved = Some(last);
        let ends = self.schedule.reserved_end(last);
        if let Some(held) = self.held.get_mut(terminal as usize) {
            held.grant(ends, packet.frame.octets(0));
        }
        self.latest = self.latest.max(ends + self.config.propagation);
        let wait = self.schedule.reserved_start(first).since(packet.entered);
        self.counters.packets_out += 1;
        self.counters.r_slots = self.counters.r_slots.saturating_add(packet.r_slots);
        self.counters.waited = self.counters.waited + wait;
        self.counters.longest_wait = self.counters.longest_wait.max(wait);
        // A driver that wakes this stage up late may already be later than that.
        let at = self.latest.max(self.now);
        self.outputs.push_back(Output { at, port: Port::Hub, frame: packet.frame });
    }

    /// Plans the next attempt of a request that collided in contention slot `slot`, or gives it up.
    fn collide(&mut self, now: Time, slot: u32, request: SlotRequest) {
        self.counters.collided += 1;
        let informed = self.schedule.contention_end(request.frame, slot) + self.round_trip;
        let collisions = request.collisions + 1;
        if self.config.give_up_after.is_some_and(|most| collisions >= most) {
            self.give_up(now, slot, request, informed);
            return;
        }
        let doublings = self.config.backoff_doubling.unwrap_or(0).min(request.collisions);
        let backoff = self.stream.below(u64::from(self.config.backoff_frames) << doublings);
        let frame = self.schedule.frame_from(informed).saturating_add(backoff);
        self.contention.push(Reverse(SlotRequest { frame, collisions, ..request }));
    }

    /// Drops the packets that a request was for.
    fn give_up(&mut self, now: Time, slot: u32, request: SlotRequest, informed: Time) {
        if let Some(place) = request.packet {
            if let Some(packet) = self.store.take(place) {
                self.drop_packet(request.terminal, &packet);
            }
            return;
        }
        let sent = self.schedule.contention_start(request.frame, slot);
        while let Some(packet) = self.pop_entered(request.terminal, sent) {
            self.drop_packet(request.terminal, &packet);
        }
        self.conclude(now, request.terminal, informed);
    }

    /// Counts a packet that is given up.
    fn drop_packet(&mut self, terminal: u32, packet: &Packet<M>) {
        self.counters.given_up += 1;
        if let Some(held) = self.held.get_mut(terminal as usize) {
            held.give_up(packet.frame.octets(0));
        }
    }

    /// Takes the first packet of a terminal's queue if it entered by `by`.
    fn pop_entered(&mut self, terminal: u32, by: Time) -> Option<Packet<M>> {
        self.store.pop_entered(&mut self.terminals[terminal as usize].queue, by)
    }

    /// Hears the request that rode in a reserved burst, which has ended.
    fn hear_ride(&mut self, now: Time, ride: Ride) {
        self.counters.piggybacked += 1;
        let sent = self.schedule.reserved_start(ride.reserved);
        let granted = self.schedule.reserved_end(ride.reserved) + self.round_trip;
        self.grant_queue(now, ride.terminal, sent, granted);
    }

    /// Returns the next event and the time at which the slots that it concerns have ended.
    fn next(&self) -> Option<(Time, ReturnLinkEvent)> {
        let last_slot = self.schedule.contention_slots() - 1;
        let contention = self.contention.peek().map(|Reverse(request)| {
            let over = self.schedule.contention_end(request.frame, last_slot);
            (over, ReturnLinkEvent::Contention(request.frame))
        });
        let ride = self.rides.peek().map(|&Reverse(ride)| {
            let over = self.schedule.reserved_end(ride.reserved);
            (over, ReturnLinkEvent::Ride(ride))
        });
        // An event at the end of time never comes.
        [contention, ride].into_iter().flatten().filter(|&(at, _)| at < Time::NEVER).min_by_key(|&(at, _)| at)
    }

    /// Handles every event due by `until`. A packet that enters at the instant when slots end is too late for the
    /// requests in them, so these requests come first.
    fn advance(&mut self, until: Time) {
        while let Some((at, next)) = self.next().filter(|&(at, _)| at <= until) {
            match next {
                ReturnLinkEvent::Contention(frame) => self.contend(at, frame),
                ReturnLinkEvent::Ride(ride) => {
                    self.rides.pop();
                    self.hear_ride(at, ride);
                }
            }
        }
    }
}

/// Events that a return link waits for.
#[derive(Clone, Copy, Debug)]
enum ReturnLinkEvent {
    /// The end of the contention slots of this frame.
    Contention(u64),
    /// The end of the reserved burst in which a request rides.
    Ride(Ride),
}

impl<M: Message> Stage<M> for Return<M> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        self.now = now;
        let terminal = match port {
            Port::Terminal(terminal) if terminal < self.most_terminals => terminal,
            _ => {
                self.counters.misdirected += u64::from(frame.segments());
                return;
            }
        };
        if self.terminals.len() <= terminal as usize {
            self.terminals.resize(terminal as usize + 1, Terminal::default());
            if self.config.queue != QueueLimit::Unbounded {
                self.held.resize(terminal as usize + 1, HeldPackets::default());
            }
        }
        let (spacing, mut entry, mut rest) = (frame.spacing, now, Some(frame));
        while let Some(frame) = rest {
            let (packet, tail) = frame.split(NonZeroU32::MIN);
            self.advance(entry);
            self.enter(entry, terminal, packet);
            entry += spacing;
            rest = tail;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.advance(now);
    }

    fn poll_output(&mut self) -> Option<Output<M>> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.next().map(|(at, next)| {
            let timer =
                if matches!(next, ReturnLinkEvent::Contention(_)) { "contention" } else { "piggyback" };
            Deadline { at, timer }
        })
    }

    fn totals(&self) -> Totals {
        let ReturnCounters { packets_out, queue_dropped, given_up, requests, collided, r_slots, .. } =
            self.counters;
        let airtime = self.config.reservation_slot * r_slots + self.config.contention_slot * requests;
        let (sent, dropped) = (packets_out, queue_dropped);
        Totals { sent, dropped, given_up, airtime, requests, collided, ..Totals::default() }
    }

    fn settings(&self, _port: Port) -> Settings {
        Settings { rate: None, delay: Some(self.config.propagation), queue: self.config.queue.octets() }
    }

    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        match setting {
            Setting::Delay(_) => Ok(()),
            Setting::Queue(_) if self.config.queue.is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        self.handle_timeout(now);
        match setting {
            Setting::Delay(delay) => {
                self.config.propagation = delay;
                self.round_trip = self.config.round_trip();
            }
            Setting::Queue(octets) => self.config.queue = QueueLimit::Octets(octets.get()),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
