//! The thread that carries packets between devices and the link: the only one that reads and writes them.
//!
//! The thread waits for devices, for the link's next instant (a timerfd in the same set) and for orders (an eventfd).
//! It asks for a real-time priority, which keeps it on time on a busy machine. If that is refused, it asks for the best
//! nice value; if that is refused too, it runs at its priority.

mod orders;
mod pace;
mod poller;

use std::sync::mpsc::{self, Receiver};
use std::thread;

use farcast_capture::lateness::Lateness;
use farcast_capture::pcapng::Direction;
use farcast_capture::recorder::Recorder;
use farcast_core::stage::Figure;
use farcast_core::{Span, Time};
use farcast_link::End;
use serde::Serialize;

use orders::Order;
pub use orders::{RelayHandle, RelayView, WayView};
use pace::RelayPace;
use poller::{Poller, Ready};

use crate::clock::sharpen_timers;
use crate::host::HostPosition;
use crate::link::{Departure, Link};
use crate::route::{self, Route};
use crate::tun::Tun;
use crate::{Clock, EmuError};

/// Most packets read from a device before the others are checked.
const BATCH: usize = 64;

/// Interval at which the relay wakes to measure its own lateness.
pub const BEAT: Span = Span::from_millis(10);

/// Interval at which files are brought up to date.
const FLUSH: Span = Span::from_millis(500);

/// Scheduling of the relay's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// Real-time scheduling (`SCHED_FIFO`).
    Fifo,
    /// Scheduling like that of every other thread.
    #[default]
    Normal,
}

/// Counts of packets of hosts that the link does not carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Strays {
    /// Reports of group membership.
    pub membership: u64,
    /// Packets that are not IPv4.
    pub foreign: u64,
    /// Packets to an address that no host has.
    pub unroutable: u64,
}

/// State of the relay, without its link.
#[derive(Clone, Debug)]
pub struct RelayState {
    /// Lateness of packets written.
    pub lateness: Lateness,
    /// Time for which arriving packets would have waited at a device beyond the allowed lateness, because the relay
    /// woke too late. No packet shows this, so the relay wakes every [`BEAT`] to measure it.
    pub stalled: Span,
    /// Packets that were not carried.
    pub strays: Strays,
    /// Scheduling of the relay's thread.
    pub scheduling: Scheduling,
    /// Time of this state.
    pub now: Time,
}

/// Remains of a relay that has ended.
pub struct RelayEnd {
    /// The link.
    pub link: Link,
    /// Figures that the stages reported, with the stages' names.
    pub figures: Vec<(String, Vec<Figure>)>,
    /// State of the relay.
    pub state: RelayState,
    /// The recorder, to be finished.
    pub recorder: Option<Recorder>,
}

/// A relay that is about to start.
pub(crate) struct Relay {
    clock: Clock,
    link: Link,
    /// Longest lateness that is allowed.
    latest: Span,
    /// Devices: the hub's first, then the terminals'.
    devices: Vec<Tun>,
    poller: Poller,
    orders: Receiver<Order>,
    state: RelayState,
    ending: bool,
    buffer: Vec<u8>,
}

/// A relay that runs on its thread. If dropped, it ends at once.
pub(crate) struct Running {
    pub(crate) handle: RelayHandle,
    thread: Option<thread::JoinHandle<Result<RelayEnd, EmuError>>>,
}

impl Running {
    /// Returns `true` if the relay has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(thread::JoinHandle::is_finished)
    }

    /// Ends the relay.
    pub(crate) fn end(mut self) -> Result<RelayEnd, EmuError> {
        self.handle.end();
        let Some(thread) = self.thread.take() else { return Err(EmuError::Ended) };
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.handle.end();
            // Nobody needs the result any more.
            let _ = thread.join();
        }
    }
}

impl Relay {
    /// Starts to carry packets between the hub's device, which is the first, and the terminals' devices. Link time
    /// starts with `clock`. Packets may be late by `latest`.
    pub(crate) fn start(
        link: Link,
        devices: Vec<Tun>,
        clock: Clock,
        latest: Span,
    ) -> Result<Running, EmuError> {
        let poller = Poller::new(&devices)?;
        let (sender, orders) = mpsc::channel();
        let handle = RelayHandle::new(sender, poller.bell());
        let state = RelayState {
            lateness: Lateness::new(),
            stalled: Span::ZERO,
            strays: Strays::default(),
            scheduling: Scheduling::Normal,
            now: Time::ZERO,
        };
        let buffer = vec![0; usize::from(u16::MAX)];
        let relay = Self { clock, link, latest, devices, poller, orders, state, ending: false, buffer };
        let started = thread::Builder::new().name("relay".into()).spawn(move || relay.run());
        let thread = started.map_err(EmuError::when("start a thread"))?;
        Ok(Running { handle, thread: Some(thread) })
    }

    fn run(mut self) -> Result<RelayEnd, EmuError> {
        sharpen_timers();
        self.state.scheduling = raise_priority();
        let mut ready = Vec::new();
        let mut pace = RelayPace::default();
        let mut beat = self.clock.now() + BEAT;
        while !self.ending {
            let only_look = pace.is_fast(self.clock.now());
            self.poller.wait(self.clock, self.link.next_at().min(beat), only_look, &mut ready)?;
            let now = self.clock.now();
            if now >= beat {
                let late = now.since(beat).saturating_sub(self.latest);
                self.state.stalled = self.state.stalled + late;
                beat = now + BEAT;
            }
            if ready.is_empty() && self.link.next_at() > now {
                continue;
            }
            pace.begin(now);
            self.advance()?;
            for &source in &ready {
                match source {
                    Ready::Device(number) => self.read(number)?,
                    Ready::Orders => self.obey()?,
                }
            }
            self.advance()?;
            pace.end(self.clock.now());
        }
        self.state.now = self.clock.now();
        // The end of the link destroys the stages.
        let figures = self.link.figures();
        let recorder = self.link.end();
        Ok(RelayEnd { link: self.link, figures, state: self.state, recorder })
    }

    /// Reads packets that wait at a device, and lets them enter the link.
    fn read(&mut self, number: usize) -> Result<(), EmuError> {
        for _ in 0..BATCH {
            let Some(len) = self.devices[number].read(&mut self.buffer)? else { break };
            let now = self.clock.now();
            // Packets that leave before this packet enters do so at their own time.
            if self.link.next_at() <= now {
                self.advance()?;
            }
            self.enter(now, number, len);
        }
        Ok(())
    }

    fn enter(&mut self, now: Time, number: usize, len: usize) {
        let packet = &self.buffer[..len];
        let terminals = self.devices.len() as u32 - 1;
        let from = (number as u32).checked_sub(1);
        let route =
            if from.is_none() { route::from_hub(packet, terminals) } else { route::from_terminal(packet) };
        // A capture declares all its packets to be IPv4.
        if let Some(recorder) = self.link.recorder().filter(|_| route != Route::Foreign) {
            recorder.capture(number as u32, now, Direction::Outbound, packet);
        }
        match route {
            Route::Terminal(terminal) => self.link.enter(now, End::Terminal, Some(terminal), packet),
            Route::All => self.link.enter(now, End::Terminal, None, packet),
            Route::Hub => self.link.enter(now, End::Hub, from, packet),
            Route::Membership => self.state.strays.membership += 1,
            Route::Foreign => self.state.strays.foreign += 1,
            Route::Unroutable => self.state.strays.unroutable += 1,
        }
    }

    /// Advances the link to now, and writes the packets that leave it.
    fn advance(&mut self) -> Result<(), EmuError> {
        let now = self.clock.now();
        let Self { link, devices, clock, state, .. } = self;
        let mut failure = None;
        link.advance(now, |link, departure| {
            if let Err(error) = write(link, devices, *clock, state, departure) {
                failure.get_or_insert(error);
            }
        });
        if let Some(recorder) = link.recorder() {
            recorder.flush_if_older(now, FLUSH);
        }
        failure.map_or(Ok(()), Err)
    }
}

/// Writes a packet to its device.
fn write(
    link: &mut Link,
    devices: &[Tun],
    clock: Clock,
    state: &mut RelayState,
    departure: Departure,
) -> Result<(), EmuError> {
    let number = match departure.to {
        HostPosition::Hub => 0,
        HostPosition::Terminal(terminal) => 1 + terminal as usize,
    };
    let taken = devices[number].write(&[std::io::IoSlice::new(departure.packet.octets())])?;
    let left = clock.now();
    state.lateness.record(left.since(departure.at));
    if let Some(recorder) = link.recorder() {
        recorder.capture(number as u32, left, Direction::Inbound, departure.packet.octets());
    }
    link.delivered(departure, taken.then_some(left));
    Ok(())
}

/// Asks for a real-time priority in the middle of the range. Returns the resulting scheduling.
fn raise_priority() -> Scheduling {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };
    const MIDDLE: u8 = 50;
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(MIDDLE).map(ThreadPriority::Crossplatform);
    let raised = priority
        .is_ok_and(|priority| set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok());
    if raised {
        return Scheduling::Fifo;
    }
    // The next best; if it is refused, the priority stays.
    let _ = rustix::process::nice(-20);
    Scheduling::Normal
}
