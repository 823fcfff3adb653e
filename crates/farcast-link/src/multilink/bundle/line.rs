//! One direction of one link: a line with a small buffer before it.

use alloc::collections::VecDeque;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Piece, Probability, Span, Time};
use farcast_ppp::multilink::Header;

use super::LinkConfig;
use super::codec::FragmentOctets;

/// Pause after which a frame begins with a flag of its own. After a shorter pause, the flag that ended the frame before
/// serves. Linux's asynchronous PPP does so (`flag_time`).
const FLAG_AFTER: Span = Span::from_secs(1);

/// Limit of waiting echoes; more find the buffer full and are dropped.
const MOST_ECHOES: usize = 8;

/// Load of a frame.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Fragment(Header, FragmentOctets),
    /// An Echo-Request with this identifier.
    Request(u8),
    Reply(u8),
}

/// A frame that is ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) load: Load,
    /// Octets beside the fragment: headers, check sequence, closing flag.
    pub(super) overhead: u64,
    /// Octets that are sent as two.
    pub(super) escapes: u64,
    /// All octets, escapes and the closing flag included.
    pub(super) octets: u64,
}

/// Counters of the frames that one direction of a link has sent. A frame cut off by a hang-up counts with all its
/// octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCounters {
    /// Fragments.
    pub fragments: u64,
    /// Echo-Requests and Echo-Replies.
    pub echoes: u64,
    /// Octets in all.
    pub octets: u64,
    /// Octets of these in headers of PPP and of Multilink, check sequences and flags, and in echoes.
    pub overhead: u64,
    /// Octets of these that escapes have added.
    pub escapes: u64,
    /// Frames lost to errors.
    pub errors: u64,
    /// The time for which the line was in use.
    pub busy: Span,
}

/// The line of a link in one direction.
#[derive(Clone, Debug)]
pub(super) struct LinkLine {
    rate: BitRate,
    octet_bits: u64,
    delay: Span,
    loss: Probability,
    losses: RandomStream,
    /// `true` while sent frames arrive.
    connected: bool,
    /// `true` once the present call has sent a frame.
    begun: bool,
    /// Time at which the line became or becomes idle.
    free: Time,
    sending: Option<Load>,
    echoes: VecDeque<Ready>,
    waiting: VecDeque<Ready>,
    /// Loads on their way, by arrival.
    flying: VecDeque<(Time, Load)>,
    counters: LineCounters,
}

/// Fate of a load whose sending ended.
pub(super) enum LoadFate {
    /// The load is on its way, or was sent into a call that is gone, or is an echo lost to errors.
    Sent,
    /// A fragment that is lost to errors.
    Damaged(FragmentOctets),
}

impl LinkLine {
    /// Creates the line of `link` at `rate`, which loses frames with probability `loss`.
    pub(super) const fn new(
        link: &LinkConfig,
        rate: BitRate,
        loss: Probability,
        losses: RandomStream,
    ) -> Self {
        Self {
            rate,
            octet_bits: link.octet_bits as u64,
            delay: link.delay,
            loss,
            losses,
            connected: true,
            begun: false,
            free: Time::ZERO,
            sending: None,
            echoes: VecDeque::new(),
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            counters: LineCounters {
                fragments: 0,
                echoes: 0,
                octets: 0,
                overhead: 0,
                escapes: 0,
                errors: 0,
                busy: Span::ZERO,
            },
        }
    }

    pub(super) const fn rate(&self) -> BitRate {
        self.rate
    }

    pub(super) const fn delay(&self) -> Span {
        self.delay
    }

    /// Sends at `rate` the frames that begin from now on.
    pub(super) const fn set_rate(&mut self, rate: BitRate) {
        self.rate = rate;
    }

    /// Delays by `delay` the frames whose sending ends from now on. A frame that would overtake an earlier one arrives
    /// together with it.
    pub(super) const fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.connected
    }

    pub(super) const fn counters(&self) -> &LineCounters {
        &self.counters
    }

    /// Returns `true` if the line takes a fragment, where `buffer` fragments may wait.
    pub(super) fn has_room(&self, buffer: u16) -> bool {
        self.sending.is_none() || self.waiting.len() < usize::from(buffer)
    }

    /// Returns the time of the line's next event.
    pub(super) fn next(&self) -> Time {
        let ends = if self.sending.is_some() { self.free } else { Time::NEVER };
        self.flying.front().map_or(ends, |(arrives, _)| ends.min(*arrives))
    }

    /// Takes a frame; echoes go before fragments.
    pub(super) fn push(&mut self, now: Time, ready: Ready) {
        match ready.load {
            Load::Fragment(..) => self.waiting.push_back(ready),
            _ if self.echoes.len() < MOST_ECHOES => self.echoes.push_back(ready),
            _ => return,
        }
        self.begin(now);
    }

    /// Begins to send the next frame, if the line is idle.
    fn begin(&mut self, now: Time) {
        if self.sending.is_some() {
            return;
        }
        let Some(ready) = self.echoes.pop_front().or_else(|| self.waiting.pop_front()) else { return };
        let flag = u64::from(!self.begun || now.since(self.free) >= FLAG_AFTER);
        let octets = ready.octets.saturating_add(flag);
        let time = self.rate.time_of_bits(octets.saturating_mul(self.octet_bits));
        let counters = &mut self.counters;
        match ready.load {
            Load::Fragment(..) => counters.fragments += 1,
            _ => counters.echoes += 1,
        }
        counters.octets += octets;
        counters.overhead += ready.overhead + flag;
        counters.escapes += ready.escapes;
        counters.busy = counters.busy + time;
        self.begun = true;
        self.free = now + time;
        self.sending = Some(ready.load);
    }

    /// Ends the sending that is due at `now`, if one is, and begins the next.
    pub(super) fn end(&mut self, now: Time) -> Option<LoadFate> {
        let load = self.sending.take_if(|_| self.free <= now)?;
        let damaged = self.loss != Probability::ZERO && self.losses.chance(self.loss.get());
        self.counters.errors += u64::from(damaged);
        let ended = match load {
            Load::Fragment(_, carried) if damaged => LoadFate::Damaged(carried),
            load => {
                if self.connected && !damaged {
                    let last = self.flying.back().map_or(Time::ZERO, |(arrives, _)| *arrives);
                    self.flying.push_back((last.max(now + self.delay), load));
                }
                LoadFate::Sent
            }
        };
        self.begin(now);
        Some(ended)
    }

    /// Returns a load that has arrived by `now`, if there is one.
    pub(super) fn arrive(&mut self, now: Time) -> Option<Load> {
        self.flying.pop_front_if(|(arrives, _)| *arrives <= now).map(|(_, load)| load)
    }

    /// Ends the call: no load under way, on the line or in the buffer will arrive, though the line still sends its own.
    /// Calls `lost` for the piece of each such fragment.
    pub(super) fn disconnect(&mut self, mut lost: impl FnMut(&Piece)) {
        self.connected = false;
        let flying = self.flying.iter().map(|(_, load)| load);
        let here = self.sending.iter().chain(self.waiting.iter().map(|ready| &ready.load));
        for load in flying.chain(here) {
            if let Load::Fragment(_, carried) = load {
                lost(&carried.piece);
            }
        }
        self.flying.clear();
    }

    /// Gives up the call at this end: stops sending, and drops the frames that wait.
    pub(super) fn hang_up(&mut self, now: Time) {
        if self.sending.take().is_some() {
            self.counters.busy = self.counters.busy.saturating_sub(self.free.since(now));
            self.free = now;
        }
        self.echoes.clear();
        self.waiting.clear();
    }

    /// Begins a new call.
    pub(super) const fn connect(&mut self) {
        self.connected = true;
        self.begun = false;
    }
}
