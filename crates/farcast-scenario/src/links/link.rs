//! A link, and a stage of `link.stages`.

use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::stage::End;
use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span, Time};
use farcast_link::bgan::{Forward, Return};
use farcast_link::outage::{Hold, Schedule, Window};
use farcast_link::pipe::{Jitter, JitterShape, Pipe, PipeConfig};
use farcast_link::trace::{TimelinePipe, TracePipe};

use super::bearer::{BearerKind, BearerSpec};
use super::bgan::{self, BganForwardSpec, BganReturnSpec};
use super::queues::{Queue, queue};
use super::recorded::{TimelineSpec, TraceSpec};
use crate::document::{DocumentError, Reader};
use farcast_link::{BoxedStage, Chains};

/// Words for `direction`, and the end of the link to which each leads.
const DIRECTIONS: [(&str, End); 2] = [("forward", End::Terminal), ("return", End::Hub)];

/// Effect of a link on frames, apart from losses.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkSpec {
    /// Rate, queue and delay.
    Pipe(PipeSpec),
    /// Outages in which frames wait.
    Hold(Schedule),
    /// The moments at which a rate trace delivers.
    Trace(TraceSpec),
    /// Rate and delay by time.
    Timeline(TimelineSpec),
    /// The shared channel of a BGAN bearer.
    BganForward(BganForwardSpec),
    /// The return path of a BGAN bearer.
    BganReturn(BganReturnSpec),
}

/// A pipe as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeSpec {
    /// Settings of the pipe.
    pub config: PipeConfig,
    /// True if the limit of the queue was given.
    pub limit_said: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Hold,
    Trace,
    Timeline,
    Bgan,
}

impl Kind {
    const CHOICES: [(&'static str, Self); 5] = [
        ("pipe", Self::Pipe),
        ("hold", Self::Hold),
        ("trace", Self::Trace),
        ("timeline", Self::Timeline),
        ("bgan", Self::Bgan),
    ];
}

impl LinkSpec {
    /// Reads `kind` and the keys that go with it.
    pub fn read(table: &mut Reader<'_>, to: End) -> Result<Self, DocumentError> {
        let kind = table.choice_or("kind", &Kind::CHOICES, Kind::Pipe)?;
        Self::read_kind(table, kind, to)
    }

    /// Reads the keys that go with `kind`.
    fn read_kind(table: &mut Reader<'_>, kind: Kind, to: End) -> Result<Self, DocumentError> {
        match (kind, to) {
            (Kind::Pipe, _) => pipe(table).map(Self::Pipe),
            (Kind::Hold, _) => hold(table).map(Self::Hold),
            (Kind::Trace, _) => TraceSpec::read(table).map(Self::Trace),
            (Kind::Timeline, _) => TimelineSpec::read(table).map(Self::Timeline),
            (Kind::Bgan, End::Terminal) => bgan::forward(table).map(Self::BganForward),
            (Kind::Bgan, End::Hub) => bgan::back(table).map(Self::BganReturn),
        }
    }

    /// Builds the stage for `terminals` receivers.
    pub(super) fn stage<M: Message + Send + 'static>(
        &self,
        to: End,
        terminals: u32,
        stream: RandomStream,
    ) -> BoxedStage<M> {
        // The settings were checked when they were read.
        const CHECKED: &str = "checked when read";
        match self {
            Self::Pipe(pipe) => Box::new(Pipe::new(pipe.config, to.port(), stream).expect(CHECKED)),
            Self::Hold(schedule) => Box::new(Hold::new(schedule.clone(), to.port())),
            Self::Trace(trace) => Box::new(TracePipe::new(trace.config.clone(), to.port()).expect(CHECKED)),
            Self::Timeline(timeline) => {
                Box::new(TimelinePipe::new(timeline.config.clone(), to.port()).expect(CHECKED))
            }
            Self::BganForward(spec) => Box::new(Forward::new(spec.config.clone()).expect(CHECKED)),
            Self::BganReturn(spec) => {
                Box::new(Return::new(spec.config.clone(), terminals, stream).expect(CHECKED))
            }
        }
    }

    /// Returns `true` if everything passes at once.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.config == PipeConfig::default())
    }

    /// Returns the delay, if it is the same for every frame whatever else is on the link.
    pub fn constant_delay(&self) -> Option<Span> {
        match self {
            Self::Pipe(PipeSpec { config, .. }) => {
                (config.rate.is_none() && config.jitter.is_none()).then_some(config.delay)
            }
            _ => None,
        }
    }

    /// Returns `true` if a frame usually takes time.
    pub fn takes_time(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.config.rate.is_some() || !pipe.config.delay.is_zero(),
            Self::Hold(_) => false,
            Self::Timeline(spec) => spec.timeline().has_rate() || spec.timeline().has_delay(),
            Self::Trace(_) | Self::BganForward(_) | Self::BganReturn(_) => true,
        }
    }

    /// Returns the rate at which the link carries frames; `None` if it has no limit.
    pub fn rate(&self) -> Option<BitRate> {
        match self {
            Self::Pipe(spec) => spec.config.rate,
            Self::Hold(_) => None,
            Self::Trace(spec) => spec.rate(),
            Self::Timeline(spec) => spec.timeline().highest_rate(),
            Self::BganForward(spec) => spec.config.capacity(),
            Self::BganReturn(spec) => spec.config.capacity(),
        }
    }

    /// Returns the queue, if the link has one.
    pub(super) fn queue(&mut self) -> Option<Queue<'_>> {
        let rate = self.rate();
        let (limit, said) = match self {
            Self::Pipe(PipeSpec { config, limit_said }) => (&mut config.queue, limit_said),
            Self::Trace(spec) => (&mut spec.config.queue, &mut spec.limit_said),
            Self::Timeline(spec) => (&mut spec.config.queue, &mut spec.limit_said),
            Self::BganForward(BganForwardSpec { config, limit_said }) => (&mut config.queue, limit_said),
            Self::BganReturn(BganReturnSpec { config, limit_said }) => (&mut config.queue, limit_said),
            Self::Hold(_) => return None,
        };
        Some(Queue { rate, limit, said })
    }

    /// Returns the time that a frame of no length takes without load and jitter.
    pub fn nominal_delay(&self) -> Span {
        match self {
            Self::Pipe(pipe) => pipe.config.delay,
            other => other.least_delay(),
        }
    }

    /// Returns the shortest time that a frame takes.
    pub fn least_delay(&self) -> Span {
        match self {
            Self::Pipe(PipeSpec { config: PipeConfig { delay, jitter: None, .. }, .. }) => *delay,
            Self::Pipe(_) | Self::Hold(_) => Span::ZERO,
            Self::Trace(spec) => spec.config.delay,
            Self::Timeline(spec) => spec.timeline().shortest_delay(),
            Self::BganForward(spec) => spec.config.propagation,
            Self::BganReturn(spec) => spec.config.propagation,
        }
    }
}

/// A member of `link.stages`.
#[derive(Clone, PartialEq, Debug)]
pub enum StageSpec {
    /// A stage that carries one way, towards this end.
    One(End, LinkSpec),
    /// A stage that carries both ways.
    Both(BearerSpec),
}

impl StageSpec {
    /// Reads `kind`, `direction` if the stage carries one way, and the keys that go with them.
    pub fn read(table: &mut Reader<'_>) -> Result<Self, DocumentError> {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Either {
            One(Kind),
            Both(BearerKind),
        }
        let one = Kind::CHOICES.map(|(word, kind)| (word, Either::One(kind)));
        let both = BearerKind::CHOICES.map(|(word, kind)| (word, Either::Both(kind)));
        let kinds: Vec<_> = one.into_iter().chain(both).collect();
        match table.choice_or("kind", &kinds, Either::One(Kind::Pipe))? {
            Either::Both(kind) => BearerSpec::read(table, kind).map(Self::Both),
            Either::One(kind) => {
                let to = table.choice("direction", &DIRECTIONS)?;
                let link = LinkSpec::read_kind(table, kind, to)?;
                if matches!(&link, LinkSpec::Timeline(spec) if spec.timeline().has_loss()) {
                    let wrong = "it has a column per, but a stage of link.stages loses nothing";
                    let allowed = "such a timeline in link.forward or link.return";
                    return Err(table.refuse("timeline", wrong, allowed));
                }
                Ok(Self::One(to, link))
            }
        }
    }

    /// Returns the end to which the stage carries; `None` if both ways.
    pub fn direction(&self) -> Option<End> {
        match self {
            Self::One(to, _) => Some(*to),
            Self::Both(_) => None,
        }
    }

    /// Returns `true` if a frame usually takes time.
    pub fn takes_time(&self) -> bool {
        match self {
            Self::One(_, link) => link.takes_time(),
            Self::Both(_) => true,
        }
    }

    /// Returns the time that a frame of no length takes there and back without load and jitter, in the directions
    /// that the stage carries.
    pub fn round_trip(&self) -> Span {
        match self {
            Self::One(_, link) => link.nominal_delay(),
            Self::Both(bearer) => bearer.least_round_trip(),
        }
    }

    /// Adds the stage to the chains of its direction or directions.
    pub(super) fn push<M: Message + Send + 'static>(
        &self,
        chains: &mut Chains<M>,
        name: &str,
        terminals: u32,
        stream: RandomStream,
    ) {
        match self {
            Self::Both(bearer) => chains.push_both(name, bearer.stage(stream)),
            Self::One(_, link) if link.is_nothing() => {}
            Self::One(End::Terminal, link) => {
                chains.push_forward(name, link.stage(End::Terminal, terminals, stream));
            }
            Self::One(End::Hub, link) => {
                chains.push_return(name, link.stage(End::Hub, terminals, stream));
            }
        }
    }
}

fn pipe(table: &mut Reader<'_>) -> Result<PipeSpec, DocumentError> {
    let rate = table.optional_rate("rate")?;
    let delay = table.span_or("delay", Span::ZERO)?;
    let limit = queue(table)?;
    let jitter = jitter(table)?;
    let overhead = overhead(table)?;
    let config = PipeConfig { rate, queue: limit.unwrap_or_default(), delay, jitter, overhead };
    let allowed = "jitter from its deviation to the delay";
    config.check().map_err(|error| table.refuse("jitter", error.to_string(), allowed))?;
    Ok(PipeSpec { config, limit_said: limit.is_some() })
}

/// Reads `frame_overhead`: octets that the link adds to each frame.
pub(super) fn overhead(table: &mut Reader<'_>) -> Result<u16, DocumentError> {
    let Bytes(overhead) = table.bytes_or("frame_overhead", Bytes(0))?;
    let allowed = "at most 65535 B";
    u16::try_from(overhead)
        .map_err(|_| table.refuse("frame_overhead", "it is larger than any frame", allowed))
}

fn jitter(table: &mut Reader<'_>) -> Result<Option<Jitter>, DocumentError> {
    let half_width = table.optional_span("jitter")?;
    let deviation = table.optional_span("jitter_deviation")?;
    let reorder = table.flag_or("reorder", false)?;
    let shape = match (half_width, deviation) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return Err(table.refuse(
                "jitter_deviation",
                "normal jitter needs a limit",
                "jitter = \"30 ms\" as well",
            ));
        }
        (Some(half_width), None) => JitterShape::Uniform { half_width },
        (Some(limit), Some(deviation)) => JitterShape::Normal { deviation, limit },
    };
    Ok(Some(Jitter { shape, reorder }))
}

/// Reads the keys of scheduled outages.
pub(super) fn schedule(table: &mut Reader<'_>) -> Result<Option<Schedule>, DocumentError> {
    let Some(start) = table.optional_span("start")? else { return Ok(None) };
    let length = table.span("length")?;
    let period = table.optional_span("period")?;
    let window = Window { start: Time::ZERO + start, length };
    let schedule = Schedule::new(&[window], period);
    schedule.map(Some).map_err(|error| table.refuse("length", error.to_string(), "a length below the period"))
}

fn hold(table: &mut Reader<'_>) -> Result<Schedule, DocumentError> {
    schedule(table)?.ok_or_else(|| table.refuse("start", "an outage needs a beginning", "start = \"60 s\""))
}
