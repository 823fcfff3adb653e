//! A bundle of links as a stage: packets are cut, sent over several lines, and put together at the other end.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use farcast_core::random::RandomStream;
use farcast_core::stage::{End, Figure, Frame, NotSettable, Output, Port, Setting, Settings, Stage, Totals};
use farcast_core::{BitRate, Deadline, Message, Span, Time};
use farcast_ppp::lcp::Code;
use farcast_ppp::multilink::ReassemblyCounters;

use super::error::MultilinkError;

mod calls;
mod codec;
mod config;
mod direction;
mod line;
mod packets;

pub use calls::CallCounters;
use calls::{Act, Call};
pub use config::{Calls, Detection, LinkConfig, MultilinkConfig};
use direction::BundleDirection;
pub use direction::WayCounters;
pub use line::LineCounters;
use line::{LinkLine, Load};

/// Limit of the drops whose times a [`Multilink`] keeps.
pub const MOST_DROPS: usize = 1 << 16;

/// A call that dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallDrop {
    /// Time of the drop.
    pub at: Time,
    /// Number of the link, from 0.
    pub link: usize,
}

/// Purpose of a link's random stream.
#[derive(Clone, Copy)]
enum Purpose {
    Drops,
    Escapes,
    Errors,
    Damage,
}

/// A multilink bundle, both ways: frames that enter at the hub leave at [`Port::Terminals`], frames that enter at any
/// terminal leave at the hub. A frame is an IP packet of its octets.
///
/// 1. Packets wait in one queue for the bundle. The [policy](farcast_ppp::multilink::Policy) decides when the first of
///    them is cut, and over which links. Each fragment takes the next sequence number and stays on its link.
/// 2. Each link sends one frame after the other: header, fragment, check sequence, escapes, flags. A frame arrives one
///    delay after its last bit.
/// 3. [Reassembly](farcast_ppp::multilink::reassembly) at the other end releases packets in order.
/// 4. A call that drops loses, both ways, everything that the link has under way, on the line or in its buffer. Until
///    the drop is detected, both ends go on sending into it, and it holds up M. Then both take the link out of the
///    bundle at once. When the call is up again the link joins, and sequence numbers continue.
///
/// All calls are up at time 0. A link's draws depend on the seed and its number alone. While nothing is under way there
/// are no timers: the stage catches up with calls that drop in between when a packet enters, or at a wake-up.
///
/// Rate and delay of all links of a direction, whether they are up or not, can be [set](Stage::set) while it runs. So
/// can the limit of its queue, if there is one. A fragment that is on a line ends at its old time. Fragments that wait
/// for the line begin at the new rate, and a line's later frames arrive behind its earlier ones.
///
/// Runs are taken apart into packets. If the octets of a packet are at hand, its fragments are octets in frames with
/// their check sequences. A frame that is lost to errors has a wrong bit. The packet leaves with the octets that
/// reassembly has put together.
#[derive(Clone, Debug)]
pub struct Multilink<M> {
    calls: Vec<Call>,
    forward: BundleDirection<M>,
    back: BundleDirection<M>,
    /// Time of the next event of each [`EventSource`].
    agenda: Vec<Time>,
    drops: Vec<CallDrop>,
    /// Bounds that echoes set: the lowest rate allowed, and the delay below which delays must be.
    bounds: Option<(BitRate, Span)>,
    /// Time of the last call by the driver; nothing leaves before it.
    now: Time,
    outputs: VecDeque<Output<M>>,
}

/// Parts of the bundle that have events. At one instant they act in the order of their numbers in the agenda: 3 a link,
/// and behind those reassembly at either end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EventSource {
    Line(usize, End),
    Call(usize),
    Reassembly(End),
}

impl EventSource {
    fn of(number: usize, links: usize) -> Self {
        match (number.checked_sub(3 * links), number % 3) {
            (Some(0), _) => Self::Reassembly(End::Terminal),
            (Some(_), _) => Self::Reassembly(End::Hub),
            (None, 0) => Self::Line(number / 3, End::Terminal),
            (None, 1) => Self::Line(number / 3, End::Hub),
            (None, _) => Self::Call(number / 3),
        }
    }

    const fn timer(self) -> &'static str {
        match self {
            Self::Line(..) => "line",
            Self::Call(_) => "call",
            Self::Reassembly(_) => "reassembly",
        }
    }
}

impl<M: Message> Multilink<M> {
    /// Creates a bundle whose links draw from streams below `stream`.
    ///
    /// # Errors
    /// The error of [`MultilinkConfig::check`].
    pub fn new(config: &MultilinkConfig, mut stream: RandomStream) -> Result<Self, MultilinkError> {
        config.check()?;
        let seed = stream.bits();
        let links = config.links.len();
        let draws = |link: usize, purpose: Purpose, to: End| {
            RandomStream::derive(seed, &[link as u64, purpose as u64, to.way() as u64])
        };
        let way = |to: End| {
            let line = |(number, link): (usize, &LinkConfig)| {
                let rate = if to == End::Terminal { link.forward } else { link.back };
                let losses = draws(number, Purpose::Errors, to);
                LinkLine::new(link, rate, config.frame_loss, losses)
            };
            let escapes = (0..links).map(|link| draws(link, Purpose::Escapes, to)).collect();
            let damage = draws(0, Purpose::Damage, to);
            let queue = if to == End::Terminal { config.queue } else { config.back_queue };
            BundleDirection::new(
                config,
                queue,
                config.links.iter().enumerate().map(line).collect(),
                escapes,
                damage,
            )
        };
        let call = |(number, link): (usize, &LinkConfig)| {
            Call::new(link.calls, draws(number, Purpose::Drops, End::Terminal))
        };
        let mut bundle = Self {
            calls: config.links.iter().enumerate().map(call).collect(),
            forward: way(End::Terminal)?,
            back: way(End::Hub)?,
            agenda: alloc::vec![Time::NEVER; 3 * links + 2],
            drops: Vec::new(),
            bounds: tightest(config),
            now: Time::ZERO,
            outputs: VecDeque::new(),
        };
        bundle.plan();
        Ok(bundle)
    }

    /// Returns the counters of the direction to an end.
    pub const fn counters(&self, to: End) -> &WayCounters {
        self.of(to).counters()
    }

    /// Returns the counters of reassembly at an end.
    pub fn reassembly(&self, to: End) -> &ReassemblyCounters {
        self.of(to).reassembly()
    }

    /// Returns the counters of link `link` in the direction to an end; `None` if there is no such link.
    pub fn line(&self, link: usize, to: End) -> Option<&LineCounters> {
        self.of(to).line(link)
    }

    /// Returns the counters of the calls of link `link`; `None` if there is no such link.
    pub fn call(&self, link: usize) -> Option<&CallCounters> {
        self.calls.get(link).map(Call::counters)
    }

    /// Returns the calls that have dropped, in order, up to the time of the driver's last call. Only the first
    /// [`MOST_DROPS`] are kept.
    pub fn drops(&self) -> &[CallDrop] {
        &self.drops
    }

    const fn of(&self, to: End) -> &BundleDirection<M> {
        match to {
            End::Terminal => &self.forward,
            End::Hub => &self.back,
        }
    }

    /// Returns the direction to an end, and the sink for its packets.
    fn way(&mut self, to: End) -> (&mut BundleDirection<M>, PacketSink<'_, M>) {
        let way = match to {
            End::Terminal => &mut self.forward,
            End::Hub => &mut self.back,
        };
        (way, PacketSink { port: to.port(), now: self.now, outputs: &mut self.outputs })
    }

    /// Reads the next time of every slot into the agenda.
    fn plan(&mut self) {
        let links = self.calls.len();
        for (link, slots) in self.agenda.chunks_exact_mut(3).take(links).enumerate() {
            slots[0] = self.forward.next(link);
            slots[1] = self.back.next(link);
            slots[2] = self.calls[link].next();
        }
        self.agenda[3 * links] = self.forward.wake();
        self.agenda[3 * links + 1] = self.back.wake();
    }

    /// Returns the slot that acts next, and its time. A loop without a branch over a few dozen times beats a heap,
    /// which would have to forget the events that a drop has cancelled.
    fn first(&self) -> (Time, EventSource) {
        let mut first = (0, Time::NEVER);
        for (number, &at) in self.agenda.iter().enumerate() {
            first = if at < first.1 { (number, at) } else { first };
        }
        (first.1, EventSource::of(first.0, self.calls.len()))
    }

    /// Handles every event due by `until`. A packet that enters at an instant comes after all other events of it.
    fn advance(&mut self, until: Time) {
        loop {
            let (at, slot) = self.first();
            if at > until || at == Time::NEVER {
                return;
            }
            match slot {
                EventSource::Line(link, to) => self.act(at, link, to),
                EventSource::Call(link) => self.call_acts(at, link),
                EventSource::Reassembly(to) => {
                    let (way, mut sink) = self.way(to);
                    way.act_on_silence(at, |frame| sink.put(at, frame));
                }
            }
            self.plan();
        }
    }

    fn act(&mut self, at: Time, link: usize, to: End) {
        let (way, mut sink) = self.way(to);
        match way.act(at, link, |frame| sink.put(at, frame)) {
            // Only the hub's end sends requests.
            Some(Load::Request(identifier)) => self.back.echo(at, link, Code::EchoReply, identifier),
            Some(Load::Reply(identifier)) => self.calls[link].reply(at, identifier),
            Some(Load::Fragment(..)) | None => {}
        }
    }

    fn call_acts(&mut self, at: Time, link: usize) {
        match self.calls[link].act(at) {
            Some(Act::Drop) => {
                if self.drops.len() < MOST_DROPS {
                    self.drops.push(CallDrop { at, link });
                }
                self.disconnect(link);
            }
            Some(Act::HangUp) => {
                self.disconnect(link);
                self.leave(at, link);
            }
            Some(Act::Leave) => self.leave(at, link),
            Some(Act::Join) => {
                self.forward.join(at, link);
                self.back.join(at, link);
            }
            Some(Act::Ask(identifier)) => self.forward.echo(at, link, Code::EchoRequest, identifier),
            None => {}
        }
    }

    fn disconnect(&mut self, link: usize) {
        self.forward.disconnect(link);
        self.back.disconnect(link);
    }

    fn leave(&mut self, at: Time, link: usize) {
        for to in [End::Terminal, End::Hub] {
            let (way, mut sink) = self.way(to);
            way.leave(at, link, |frame| sink.put(at, frame));
        }
    }
}

/// Returns the tightest bounds that echoes set, over all links.
fn tightest(config: &MultilinkConfig) -> Option<(BitRate, Span)> {
    let bounds = config.links.iter().filter_map(|link| link.bounds(config.framing));
    bounds.reduce(|(rate, delay), other| (rate.max(other.0), delay.min(other.1)))
}

/// Sink for the packets that leave a direction.
struct PacketSink<'a, M> {
    port: Port,
    now: Time,
    outputs: &'a mut VecDeque<Output<M>>,
}

impl<M> PacketSink<'_, M> {
    fn put(&mut self, at: Time, frame: Frame<M>) {
        // A driver that wakes the stage up late may already be later than that.
        self.outputs.push_back(Output { at: at.max(self.now), port: self.port, frame });
    }
}

impl<M: Message> Stage<M> for Multilink<M> {
    fn handle(&mut self, now: Time, port: Port, frame: Frame<M>) {
        self.now = now;
        let to = End::of(port).other();
        let (spacing, mut entry, mut rest) = (frame.spacing, now, Some(frame));
        while let Some(frame) = rest {
            let (mut packet, tail) = frame.split(NonZeroU32::MIN);
            packet.spacing = Span::ZERO;
            self.advance(entry);
            self.way(to).0.enter(entry, packet);
            self.plan();
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
        if !(self.forward.is_busy() || self.back.is_busy()) {
            return None;
        }
        let (at, slot) = self.first();
        (at != Time::NEVER).then_some(Deadline { at, timer: slot.timer() })
    }

    fn totals(&self) -> Totals {
        self.forward.totals()
    }

    fn return_totals(&self) -> Totals {
        self.back.totals()
    }

    fn settings(&self, port: Port) -> Settings {
        self.of(End::of(port).other()).settings()
    }

    fn may_set(&self, port: Port, setting: Setting) -> Result<(), NotSettable> {
        match (setting, self.bounds) {
            (Setting::Rate(rate), Some((least, _))) if rate < least => {
                Err(NotSettable::RateBelowEchoes { least })
            }
            (Setting::Delay(delay), Some((_, below))) if delay >= below => {
                Err(NotSettable::DelayBeyondEchoes { below })
            }
            (Setting::Rate(_) | Setting::Delay(_), _) => Ok(()),
            (Setting::Queue(_), _) if self.of(End::of(port).other()).has_limit() => Ok(()),
            (other, _) => Err(NotSettable::Absent(other.name())),
        }
    }

    fn set(&mut self, now: Time, port: Port, setting: Setting) -> Result<(), NotSettable> {
        self.may_set(port, setting)?;
        self.handle_timeout(now);
        self.way(End::of(port).other()).0.set(setting);
        Ok(())
    }

    fn each_held(&self, each: &mut dyn FnMut(Port, &Frame<M>)) {
        self.forward.held().for_each(|frame| each(Port::Terminals, frame));
        self.back.held().for_each(|frame| each(Port::Hub, frame));
    }

    fn figures(&self) -> Vec<Figure> {
        let calls =
            |counter: fn(&CallCounters) -> u64| self.calls.iter().map(|call| counter(call.counters())).sum();
        let (forward, back) = (self.forward.counters(), self.back.counters());
        Vec::from([
            Figure::count("calls_dropped", calls(|call| call.drops)),
            Figure::count("calls_hung_up", calls(|call| call.hang_ups)),
            Figure::new("links_down_s", Span::from_nanos(calls(|call| call.down.as_nanos())).as_secs_f64()),
            Figure::count("forward_lost_by_drops", forward.lost_by_drops),
            Figure::count("forward_lost_by_errors", forward.lost_by_errors),
            Figure::count("forward_given_up", forward.given_up),
            Figure::count("forward_fragments", self.forward.sum(|line| line.fragments)),
            Figure::count("forward_octets", self.forward.sum(|line| line.octets)),
            Figure::count("forward_escapes", self.forward.sum(|line| line.escapes)),
            Figure::count("return_lost_by_drops", back.lost_by_drops),
            Figure::count("return_lost_by_errors", back.lost_by_errors),
            Figure::count("return_given_up", back.given_up),
            Figure::count("return_fragments", self.back.sum(|line| line.fragments)),
            Figure::count("return_octets", self.back.sum(|line| line.octets)),
            Figure::count("return_escapes", self.back.sum(|line| line.escapes)),
            Figure::count("codec_faults", forward.codec_faults + back.codec_faults),
            Figure::count("fcs_missed", forward.fcs_missed + back.fcs_missed),
        ])
    }
}

#[cfg(test)]
mod tests;
