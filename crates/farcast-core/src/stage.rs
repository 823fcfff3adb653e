//! Link stages: the parts of a link between engines, as state machines of the same kind.
//!
//! A stage has one port at the hub and one or many at terminals. Frames that enter at the hub leave at terminals (the
//! *forward* direction), frames that enter at a terminal leave at the hub (*return*). Like an [`Engine`](crate::Engine)
//! a stage owns no clock. Its driver tells it the time, and asks it for the frames that leave and for the time to wake
//! it. A stage carries one direction, or both if they depend on each other.
//!
//! # Duties of a driver
//!
//! After each [`handle`](Stage::handle) or [`handle_timeout`](Stage::handle_timeout) it drains
//! [`poll_output`](Stage::poll_output) and then reads [`poll_timeout`](Stage::poll_timeout). Time never goes back over
//! all calls to one stage. An output may lie ahead of now: a stage that knows at once the time at which a frame will
//! leave outputs the frame at once, and the driver keeps it until then.
//!
//! # Runs
//!
//! A frame may hold a run: `segments` datagrams, the first of which enters at `now` and each
//! [`spacing`](Frame::spacing) after the one before. A stage whose outcome depends on other frames that enter meanwhile
//! cannot know it ahead: the driver hands it only the part of a run that enters before any other frame does. A cut
//! anywhere changes nothing.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};

use crate::engine::{Deadline, Message};
use crate::{BitRate, Span, Time};

/// A side of a stage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Port {
    /// The hub, or the far end of a link between two.
    Hub,
    /// One of the terminals, from 0.
    Terminal(u32),
    /// Every terminal at once: frames that leave here are on a shared channel, and the fan-out behind it decides
    /// losses.
    Terminals,
}

/// An end of a link. Directions are named by the end that they lead to: forward is to [`Terminal`](Self::Terminal),
/// return is to [`Hub`](Self::Hub).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum End {
    /// The end at the hub.
    Hub,
    /// The end at a terminal.
    Terminal,
}

impl End {
    /// Returns the opposite end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Hub => Self::Terminal,
            Self::Terminal => Self::Hub,
        }
    }

    /// Returns the end at which frames arrive that leave a stage at `port`.
    pub const fn of(port: Port) -> Self {
        match port {
            Port::Hub => Self::Hub,
            Port::Terminal(_) | Port::Terminals => Self::Terminal,
        }
    }

    /// Returns the port at which a stage that carries to this end outputs frames.
    pub const fn port(self) -> Port {
        match self {
            Self::Hub => Port::Hub,
            Self::Terminal => Port::Terminals,
        }
    }

    /// Returns the array index of the direction that leads to this end: forward is 0, return is 1.
    pub const fn way(self) -> usize {
        match self {
            Self::Terminal => 0,
            Self::Hub => 1,
        }
    }
}

/// A message on a link, or a run of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<M> {
    /// The message; its `wire_len` and [`overhead`](Self::overhead) make the frame's length.
    pub message: M,
    /// Octets of the layers above this link that `wire_len` does not count (UDP and IP).
    pub overhead: u16,
    /// Time between the segments of its run.
    pub spacing: Span,
}

impl<M: Message> Frame<M> {
    /// Creates a frame of one datagram or of a run without spacing.
    pub const fn new(message: M, overhead: u16) -> Self {
        Self { message, overhead, spacing: Span::ZERO }
    }

    /// Returns the length of datagram `segment` in octets, as the link sees it.
    pub fn octets(&self, segment: u32) -> u64 {
        self.message.wire_len(segment) as u64 + u64::from(self.overhead)
    }

    /// Returns the number of datagrams.
    pub fn segments(&self) -> u32 {
        self.message.segments().get()
    }

    /// Returns the time between the first and the last of its datagrams.
    pub fn extent(&self) -> Span {
        self.spacing * u64::from(self.segments() - 1)
    }

    /// Returns the number of its datagrams that enter before `before`, if the first enters at `now`; at least 1.
    pub fn due_before(&self, now: Time, before: Time) -> NonZeroU32 {
        let segments = self.message.segments();
        if self.spacing.is_zero() {
            return segments;
        }
        let room = before.since(now).as_nanos().div_ceil(self.spacing.as_nanos());
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        NonZeroU32::new(room.min(segments.get())).unwrap_or(NonZeroU32::MIN)
    }

    /// Cuts after `count` datagrams. Returns the head, and the tail if anything is left, which begins `count` spacings
    /// later.
    #[inline]
    pub fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        if count >= self.message.segments() {
            return (self, None);
        }
        let (overhead, spacing) = (self.overhead, self.spacing);
        let (head, tail) = self.message.split(count);
        let frame = |message| Self { message, overhead, spacing };
        (frame(head), tail.map(frame))
    }
}

/// A frame that leaves a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output<M> {
    /// Time at which its first datagram leaves; not before the call that made it.
    pub at: Time,
    /// Port at which it leaves.
    pub port: Port,
    /// The frame.
    pub frame: Frame<M>,
}

/// Fate of a single datagram, if it is known at entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The datagram leaves at this time.
    Leaves(Time),
    /// The datagram is dropped.
    Dropped,
}

/// Counters of a stage, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Datagrams sent on.
    pub sent: u64,
    /// Datagrams dropped at their entry because of a limit: the queue was full, or one of the next two reasons.
    pub dropped: u64,
    /// Dropped datagrams that were longer than the stage accepts.
    pub too_long: u64,
    /// Dropped datagrams that found the link down: an end had found the other dead, or had given up for good.
    pub down: u64,
    /// Datagrams accepted and given up, because they, or the requests for them, had been repeated as often or for as
    /// long as the settings allow. They count as lost, not as dropped.
    pub given_up: u64,
    /// Time for which the channel was in use: the transfer's cost on it.
    pub airtime: Span,
    /// Requests for capacity.
    pub requests: u64,
    /// Requests that collided with another and were lost.
    pub collided: u64,
}

/// A figure of its own that a stage reports at the end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Name of the figure, with its unit: `calls_dropped`, `sdu_delay_s`.
    pub name: &'static str,
    /// Value; absent if there was nothing to measure, for example for the mean of no samples.
    pub value: Option<f64>,
}

impl Figure {
    /// Creates a figure with a value.
    pub const fn new(name: &'static str, value: f64) -> Self {
        Self { name, value: Some(value) }
    }

    /// Creates a figure from a count.
    pub const fn count(name: &'static str, count: u64) -> Self {
        Self::new(name, count as f64)
    }
}

/// A setting of a stage that may be changed while it carries traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Setting {
    /// The rate at which frames are sent.
    Rate(BitRate),
    /// The one-way delay behind the sending.
    Delay(Span),
    /// Limit of the queue, in octets; it replaces an earlier limit in octets or packets.
    Queue(NonZeroU64),
}

impl Setting {
    /// Returns the setting's name in a link's description.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Delay(_) => "delay",
            Self::Queue(_) => "queue",
        }
    }
}

/// Present values of the changeable settings of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Rate; for a bundle, that of one link.
    pub rate: Option<BitRate>,
    /// The one-way delay behind the sending.
    pub delay: Option<Span>,
    /// Limit of the queue, in octets; absent if there is no limit, or one in packets.
    pub queue: Option<u64>,
}

/// Reason for which a stage keeps a setting as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettable {
    /// The stage lacks the setting, or cannot change it.
    #[error("this stage has no {0} that can change while it runs; name a stage that has one")]
    Absent(&'static str),
    /// A frame would leave before it was sent.
    #[error("the delay is less than the jitter around it; it must be at least {:.9} s", least.as_secs_f64())]
    DelayBelowJitter {
        /// Amplitude of the jitter.
        least: Span,
    },
    /// Echoes would take longer than the time between them.
    #[error("the echoes of this stage need more of the line than that; the rate must be at least {}", exact(*least))]
    RateBelowEchoes {
        /// Lowest rate that suffices for the echoes.
        least: BitRate,
    },
    /// A link would be given up before an echo can come back.
    #[error("no echo would come back before the link is given up; the delay must be below {:.9} s", below.as_secs_f64())]
    DelayBeyondEchoes {
        /// Half of the time after which the link is given up.
        below: Span,
    },
    /// The channel carries a whole number of units in each interval, which this rate does not give.
    #[error("{}", whole_units(*below, *above))]
    NotWholeUnits {
        /// The next possible rate below, if there is one.
        below: Option<BitRate>,
        /// The next possible rate above, if there is one.
        above: Option<BitRate>,
    },
}

/// Returns a rate as a text that parses to exactly that rate.
fn exact(rate: BitRate) -> String {
    let text = rate.to_string();
    if text.parse() == Ok(rate) { text } else { format!("{} bit/s", rate.as_bps()) }
}

fn whole_units(below: Option<BitRate>, above: Option<BitRate>) -> String {
    let possible = match (below.map(exact), above.map(exact)) {
        (Some(below), Some(above)) => format!("{below} and {above} are the nearest that it can have"),
        (Some(most), None) => format!("{most} is the highest that it can have"),
        (None, Some(least)) => format!("{least} is the lowest that it can have"),
        (None, None) => String::from("its intervals hold none"),
    };
    format!("the rate is no whole number of PDUs in an interval of this channel; {possible}")
}

/// Frames that wait in a stage or are being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Number of datagrams.
    pub frames: u64,
    /// Number of octets, including those that the link adds to each datagram; saturates.
    pub octets: u64,
}

/// A link stage. The [module](self) states the duties of a driver.
pub trait Stage<M: Message> {
    /// Takes a frame whose first datagram enters at `now` at `port`.
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>);

    /// Passes a single datagram of `octets` octets whose contents the driver keeps. A stage that knows its fate at
    /// once, independent of its contents, returns the fate. The effect is then as if the datagram had been
    /// [handled](Self::handle) and its output polled. Other stages return `None` and change nothing. Outputs must have
    /// been polled. The datagram leaves at the other end, and timers stay as they are.
    fn pass(&mut self, _now: Time, _port: Port, _octets: u64) -> Option<Fate> {
        None
    }

    /// Acts on every timer that is due at `now`. Called early, it does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Returns `true` if a datagram of `octets` octets, entering at `now` at `port`, would find room in the queue of
    /// the host there. So the host learns of drops by its own device. Outputs must have been polled. A stage without
    /// such a queue always has room.
    fn has_room(&mut self, _now: Time, _port: Port, _octets: u64) -> bool {
        true
    }

    /// Returns the next frame that leaves, in the order in which departures became known; `at` is never before the time
    /// of the last call.
    fn poll_output(&mut self) -> Option<Output<M>>;

    /// Returns the next deadline of the stage.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// Returns the counters so far; for a stage that carries both directions, those of the forward direction. They are
    /// complete once all outputs have been polled.
    fn totals(&self) -> Totals;

    /// Returns the counters of the return direction so far, for a stage that carries both directions. A stage that
    /// carries one direction returns the same as [`totals`](Self::totals).
    fn return_totals(&self) -> Totals {
        self.totals()
    }

    /// Calls `each` for every frame that is inside and may still leave, with the port at which it would. A stage that
    /// outputs frames at once holds none.
    fn each_held(&self, _each: &mut dyn FnMut(Port, &Frame<M>)) {}

    /// Returns `true` if its timers go on for ever, even if no frame enters any more.
    fn never_rests(&self) -> bool {
        false
    }

    /// Returns further figures to report, always the same ones in the same order.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Returns the changeable settings for frames that enter at `port`.
    fn settings(&self, _port: Port) -> Settings {
        Settings::default()
    }

    /// Checks that [`set`](Self::set) would accept a setting for frames that enter at `port`.
    ///
    /// # Errors
    /// [`NotSettable`], as `set` would.
    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        Err(NotSettable::Absent(setting.name()))
    }

    /// Changes a setting for frames that enter at `port`; a stage that carries one direction has only those. Events
    /// that are due at `now` happen before. A run that is entering must have been cut at `now`, and outputs must have
    /// been polled.
    ///
    /// The setting holds from `now` on, for all frames whose departure is not yet certain. A frame that the stage has
    /// output, or has begun to send, keeps its time. Nothing is lost, doubled or overtaken by a change, unless
    /// reordering was asked for: if the delay becomes shorter, a frame that would overtake leaves together with the
    /// frames before it. A queue that holds more than a new limit keeps its frames, and takes no more until there is
    /// room. A rate changes no limit.
    ///
    /// # Errors
    /// [`NotSettable`], and then nothing changes.
    fn set(&mut self, _now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)
    }

    /// Returns the frames that wait or are being sent at `now`, for a view of a running link; `None` if the stage
    /// cannot tell. A frame counts with all its octets until the last has been sent.
    fn backlog(&self, _now: Time) -> Option<Backlog> {
        None
    }
}
