//! Link stages: what lies between engines, as state machines of the same kind.
//!
//! A stage has one port at the hub and one or many at terminals. Frames that enter at the hub leave at terminals
//! (the *forward* direction), frames that enter at a terminal leave at the hub (*return*). Like an
//! [`Engine`](crate::Engine) a stage owns no clock: it is told the time, and asked what leaves and when to wake it. A
//! stage carries one way, or both where they depend on each other.
//!
//! # How a driver treats a stage
//!
//! After each [`handle`](Stage::handle) or [`handle_timeout`](Stage::handle_timeout) it drains
//! [`poll_output`](Stage::poll_output) and then reads [`poll_timeout`](Stage::poll_timeout). Time never goes back over
//! all calls to one stage. An output may lie ahead of now: a stage that knows at once when a frame will leave says so
//! at once, and the driver keeps it until then.
//!
//! # Runs
//!
//! A frame may hold a run: `segments` datagrams, the first of which enters at `now` and each
//! [`spacing`](Frame::spacing) after the one before. A stage whose outcome depends on what else enters meanwhile
//! cannot know it ahead: the driver hands it only the part of a run that enters before anything else does. Cutting a
//! run anywhere changes nothing.

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
    /// Every terminal at once: what leaves here is a shared channel's, and who loses it is the fan-out's business.
    Terminals,
}

/// An end of a link. Directions are named by the end that they lead to: forward is to [`Terminal`](Self::Terminal),
/// return is to [`Hub`](Self::Hub).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum End {
    /// The one at the hub.
    Hub,
    /// The one at a terminal.
    Terminal,
}

impl End {
    /// The end that hears this one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Hub => Self::Terminal,
            Self::Terminal => Self::Hub,
        }
    }

    /// The end at which what leaves a stage at `port` arrives.
    pub const fn of(port: Port) -> Self {
        match port {
            Port::Hub => Self::Hub,
            Port::Terminal(_) | Port::Terminals => Self::Terminal,
        }
    }

    /// The port at which a stage that carries to this end lets frames out.
    pub const fn port(self) -> Port {
        match self {
            Self::Hub => Port::Hub,
            Self::Terminal => Port::Terminals,
        }
    }

    /// The place in arrays of the direction that leads here: forward comes first.
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
    /// What it carries; `wire_len` of the message and [`overhead`](Self::overhead) make its length.
    pub message: M,
    /// Octets of the layers above this link that `wire_len` does not count (UDP and IP).
    pub overhead: u16,
    /// The time between the segments of its run.
    pub spacing: Span,
}

impl<M: Message> Frame<M> {
    /// A frame of one datagram or of a run without spacing.
    pub const fn new(message: M, overhead: u16) -> Self {
        Self { message, overhead, spacing: Span::ZERO }
    }

    /// The length of datagram `segment` in octets, as the link sees it.
    pub fn octets(&self, segment: u32) -> u64 {
        self.message.wire_len(segment) as u64 + u64::from(self.overhead)
    }

    /// How many datagrams.
    pub fn segments(&self) -> u32 {
        self.message.segments().get()
    }

    /// The time between the first and the last of its datagrams.
    pub fn extent(&self) -> Span {
        self.spacing * u64::from(self.segments() - 1)
    }

    /// How many of its datagrams, of which the first enters at `now`, do so before `before`; at least 1.
    pub fn due_before(&self, now: Time, before: Time) -> NonZeroU32 {
        let segments = self.message.segments();
        if self.spacing.is_zero() {
            return segments;
        }
        let room = before.since(now).as_nanos().div_ceil(self.spacing.as_nanos());
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        NonZeroU32::new(room.min(segments.get())).unwrap_or(NonZeroU32::MIN)
    }

    /// Cuts after `count` datagrams; the tail, if there is one, begins `count` spacings later.
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
    /// When its first datagram leaves; not before the call that made it.
    pub at: Time,
    /// Where.
    pub port: Port,
    /// What.
    pub frame: Frame<M>,
}

/// What becomes of a single datagram, where that is known when it enters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It leaves at this time.
    Leaves(Time),
    /// It does not.
    Dropped,
}

/// What a stage has done, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Datagrams that it has sent on.
    pub sent: u64,
    /// Datagrams that it has dropped because of a limit, at their entry: its queue was full, or what the next two
    /// count.
    pub dropped: u64,
    /// Of these, how many were longer than it takes.
    pub too_long: u64,
    /// Of these, how many found the link down: an end had found the other dead, or had given up for good.
    pub down: u64,
    /// Datagrams that it took and gave up, because they, or the requests for them, had been repeated as often or for as
    /// long as its settings allow. They count as lost, not as dropped.
    pub given_up: u64,
    /// The time for which its channel was in use: what the transfer costs of it.
    pub airtime: Span,
    /// Requests for capacity.
    pub requests: u64,
    /// Of these, how many met another and were lost.
    pub collided: u64,
}

/// A number of its own that a stage reports in the end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// What it is, with the unit: `calls_dropped`, `sdu_delay_s`.
    pub name: &'static str,
    /// The number; absent if nothing happened of which it could tell, as a mean of nothing.
    pub value: Option<f64>,
}

impl Figure {
    /// A number that is there.
    pub const fn new(name: &'static str, value: f64) -> Self {
        Self { name, value: Some(value) }
    }

    /// A count.
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
    /// What may wait, in octets; it takes the place of a limit that there was, in octets or packets.
    Queue(NonZeroU64),
}

impl Setting {
    /// What it is called in a link's description.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Delay(_) => "delay",
            Self::Queue(_) => "queue",
        }
    }
}

/// The settings that a stage has now, of those that may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The rate; of a bundle, that of a link.
    pub rate: Option<BitRate>,
    /// The one-way delay behind the sending.
    pub delay: Option<Span>,
    /// What may wait, in octets; absent where there is no limit, or one in packets.
    pub queue: Option<u64>,
}

/// Why a stage keeps a setting as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettable {
    /// It has none, or one that cannot change.
    #[error("this stage has no {0} that can change while it runs; name a stage that has one")]
    Absent(&'static str),
    /// A frame would leave before it was sent.
    #[error("the delay is less than the jitter around it; it must be at least {:.9} s", least.as_secs_f64())]
    DelayBelowJitter {
        /// How far the jitter goes.
        least: Span,
    },
    /// Echoes would take longer than the time between them.
    #[error("the echoes of this stage need more of the line than that; the rate must be at least {}", exact(*least))]
    RateBelowEchoes {
        /// The lowest rate that is enough for them.
        least: BitRate,
    },
    /// A link would be given up before an echo can come back.
    #[error("no echo would come back before the link is given up; the delay must be below {:.9} s", below.as_secs_f64())]
    DelayBeyondEchoes {
        /// Half of the time after which it is given up.
        below: Span,
    },
    /// The channel carries a whole number of units in each interval, and this rate is none of these.
    #[error("{}", whole_units(*below, *above))]
    NotWholeUnits {
        /// The next possible rate below, if there is one.
        below: Option<BitRate>,
        /// The next possible rate above, if there is one.
        above: Option<BitRate>,
    },
}

/// A rate as a text that is read as that rate.
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

/// What waits in a stage or is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Datagrams.
    pub frames: u64,
    /// Their octets, with what the link adds to each; saturates.
    pub octets: u64,
}

/// A link stage. The [module](self) states how a driver treats it.
pub trait Stage<M: Message> {
    /// Takes a frame whose first datagram enters at `now` at `port`.
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>);

    /// Takes a single datagram of so many octets whose contents the driver keeps: a stage that knows at once what
    /// becomes of it, whatever is in it, says so, and it is as if it had been [handled](Self::handle) and its output
    /// polled. Others have `None`, and nothing has happened. Outputs have been polled, the datagram leaves at the other
    /// end, and timers stay as they are.
    fn pass(&mut self, _now: Time, _port: Port, _octets: u64) -> Option<Fate> {
        None
    }

    /// Acts on every timer that is due at `now`. Called early, it does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Whether a datagram of so many octets would find room, if it entered at `now` at `port`, in the queue of the
    /// host there: so that this host can know what its own device drops. Outputs have been polled. Where nobody asks
    /// what is in front of the link, there always is.
    fn has_room(&mut self, _now: Time, _port: Port, _octets: u64) -> bool {
        true
    }

    /// The next frame that leaves, in the order in which that became known; `at` never lies before the last call's
    /// time.
    fn poll_output(&mut self) -> Option<Output<M>>;

    /// When the stage wants to be woken.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// What it has done so far; of a stage that carries both ways, on the way forward. Complete once its outputs have
    /// been polled.
    fn totals(&self) -> Totals;

    /// What a stage that carries both ways has done so far on the way back; one that carries one way has nothing else
    /// to say.
    fn return_totals(&self) -> Totals {
        self.totals()
    }

    /// Calls `each` for every frame that is inside and may still leave, with the port at which it would. A stage whose
    /// frames leave its hands at once has none.
    fn each_held(&self, _each: &mut dyn FnMut(Port, &Frame<M>)) {}

    /// Whether its timers go on for ever, even where nothing enters any more.
    fn never_rests(&self) -> bool {
        false
    }

    /// What else it has to report, always the same figures in the same order.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// The settings for what enters at `port`, of those that may be changed.
    fn settings(&self, _port: Port) -> Settings {
        Settings::default()
    }

    /// Whether [`set`](Self::set) would take a setting for what enters at `port`.
    ///
    /// # Errors
    /// [`NotSettable`], as `set` would.
    fn may_set(&self, _port: Port, setting: Setting) -> Result<(), NotSettable> {
        Err(NotSettable::Absent(setting.name()))
    }

    /// Changes a setting for what enters at `port`; a stage that carries one way has only that. What is due at `now`
    /// happens before. A run that is entering must have been cut at `now`, and outputs have been polled.
    ///
    /// It holds from `now` on, for all whose departure is not yet certain: what a stage has said to leave, or has begun
    /// to send, keeps its time. Nothing is lost, doubled or overtaken by a change, unless reordering was asked for:
    /// behind a delay that has become shorter, what would overtake leaves together with what was sent before. A queue
    /// that holds more than a new limit keeps what it has, and takes nothing until there is room. A rate changes no
    /// limit.
    ///
    /// # Errors
    /// [`NotSettable`], and then nothing changes.
    fn set(&mut self, _now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)
    }

    /// What waits at `now` or is being sent, for a view of a link that runs; `None` if the stage cannot tell. A frame
    /// counts with all its octets until its last has been sent.
    fn backlog(&self, _now: Time) -> Option<Backlog> {
        None
    }
}
