//! A source as a receiver knows it.

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;

use farcast_core::{Span, Time, Timers, timers};
use farcast_delivery::Passage;

use super::congestion::{Listener, Losses};
use super::files::{Files, Object, State};
use super::messages::Messages;
use super::window::Window;
use crate::message::{Data, DataKind, Sqn, Tsi};
use crate::sqn::Place;

timers! {
    /// A receiver's timers, for each source, besides those of each missing number.
    pub(super) enum Timer {
        /// An SPM is to be asked for.
        Spmr = "SPMR",
        /// What is lost is said to who seeks an acker.
        Elect = "elect",
        /// An acknowledgement.
        Ack = "acknowledge",
        /// An answer to a poll.
        Poll = "poll",
        /// Nothing was heard of the source for long.
        Expiry = "expiry",
    }
}

/// What what comes is made into.
#[derive(Clone, Debug)]
pub(super) enum Goods {
    Files(Files),
    Messages(Messages),
}

/// Where requests for repair go, as the last SPM said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) spm: Sqn,
    /// The next PGM hop.
    pub(super) upstream: SocketAddr,
    /// The source, and the group.
    pub(super) source: IpAddr,
    pub(super) group: IpAddr,
}

/// The last poll that was heard (RFC 3208 §14).
#[derive(Clone, Copy, Debug)]
pub(super) struct Polled {
    pub(super) sqn: Sqn,
    pub(super) round: u16,
}

/// A repairer that requests go to instead of the next hop (RFC 3208 §9.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirection {
    pub(super) to: SocketAddr,
    /// When the oldest request went there that nobody has confirmed.
    pub(super) asked: Option<Time>,
}

/// What is known once it is known where to begin.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub(super) window: Window,
    pub(super) goods: Goods,
}

impl Reception {
    /// When something that is missing is due.
    pub(super) fn next(&self) -> Option<Time> {
        let of_files = match &self.goods {
            Goods::Files(files) => files.next_due(),
            Goods::Messages(_) => None,
        };
        self.window.next().into_iter().chain(of_files).min()
    }
}

/// Transmission groups as a source's SPMs first told of them (`OPT_PARITY_PRM`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grouped {
    pub(super) size: u32,
    pub(super) on_demand: bool,
}

/// A source that is heard for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) tsi: Tsi,
    pub(super) port: u16,
    pub(super) source: SocketAddr,
    pub(super) group: SocketAddr,
    pub(super) now: Time,
}

/// After so long without new content, the place of a source goes to one that sends.
const STALE: Span = Span::from_secs(1);

/// Reasons that the place of a source may go to another, the readiest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Yields {
    /// Nothing of what it speaks of has come.
    Empty,
    /// Everything of it is over.
    Over,
    /// No content comes any more.
    Stale,
}

#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) tsi: Tsi,
    pub(super) port: u16,
    /// Where it was heard from, and where to.
    pub(super) source: SocketAddr,
    pub(super) group: SocketAddr,
    pub(super) path: Option<Path>,
    pub(super) redirection: Option<Redirection>,
    pub(super) polled: Option<Polled>,
    /// Which fields of `OPT_CR` it asks for.
    pub(super) wanted: u8,
    /// What was lost of what it sent, while it asks for that.
    pub(super) losses: Option<Losses>,
    pub(super) reception: Option<Reception>,
    /// What came of what it sent for the first time, and what is missing between.
    pub(super) passage: Passage,
    /// What is known of congestion on the way, if it asks.
    pub(super) listener: Option<Listener>,
    /// What it makes parity of, if it does: said before anything of it was heard, or never.
    pub(super) grouped: Option<Grouped>,
    /// Requests for parity since anything showed that such are understood.
    pub(super) unheard: u32,
    /// Over how long requests are spread.
    pub(super) backoff: Span,
    /// Requests for repair are not heard.
    pub(super) is_deaf: bool,
    /// It says that its session is over, and up to which place.
    pub(super) finished: Option<Place>,
    /// That was told.
    pub(super) is_through: bool,
    /// Up to which number, and which place, it asks for acknowledgement.
    pub(super) owed: Option<(Sqn, Place)>,
    /// It may be waiting for our acknowledgement.
    pub(super) is_asked: bool,
    /// When it was heard last.
    pub(super) last_heard: Time,
    /// When content of it was stored last; `None` while nothing stands behind what it says.
    pub(super) fed: Option<Time>,
    /// Octets that may be said because of what it has said.
    pub(super) credit: u64,
    pub(super) timers: Timers<Timer>,
}

impl Remote {
    pub(super) fn new(met: Met, backoff: Span) -> Self {
        Self {
            tsi: met.tsi,
            port: met.port,
            source: met.source,
            group: met.group,
            path: None,
            redirection: None,
            polled: None,
            wanted: 0,
            losses: None,
            reception: None,
            passage: Passage::default(),
            listener: None,
            grouped: None,
            unheard: 0,
            backoff,
            is_deaf: false,
            finished: None,
            is_through: false,
            owed: None,
            is_asked: false,
            last_heard: met.now,
            fed: None,
            credit: 0,
            timers: Timers::default(),
        }
    }

    /// The files that are under way.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Object> {
        let files = match self.reception.as_ref().map(|reception| &reception.goods) {
            Some(Goods::Files(files)) => Some(files),
            _ => None,
        };
        files.into_iter().flat_map(|files| files.objects.values())
    }

    /// Notes what came and what is missing, by numbers of what is sent for the first time.
    pub(super) fn note_passage(&mut self, data: &Data) {
        let Some(Reception { window, goods }) = &self.reception else { return };
        if data.kind != DataKind::Original || data.parity.is_some() {
            return;
        }
        let first = window.lead().near(data.sqn);
        if let (Some(next), Goods::Files(files)) = (self.passage.next(), goods) {
            self.passage.pass_over(files.nobodys(&(Place(next)..first)));
        }
        self.passage.came(first.0, data.count.get());
    }

    pub(super) fn files(&mut self) -> Option<&mut Files> {
        match &mut self.reception.as_mut()?.goods {
            Goods::Files(files) => Some(files),
            Goods::Messages(_) => None,
        }
    }

    /// How readily its place goes to another source, the least first; `None` if it keeps it. `sends` says whether the
    /// other one has sent content.
    pub(super) fn yields(&self, now: Time, sends: bool) -> Option<(Yields, Time)> {
        let verifies = |object: &Object| object.state == State::Verifying;
        if self.objects().any(verifies) {
            return None;
        }
        let Some(fed) = self.fed else { return Some((Yields::Empty, self.last_heard)) };
        if !self.is_busy() {
            return Some((Yields::Over, fed));
        }
        (sends && now.since(fed) >= STALE).then_some((Yields::Stale, fed))
    }

    /// Whether anything is under way. A source that only speaks of files keeps nobody waiting.
    pub(super) fn is_busy(&self) -> bool {
        self.fed.is_some() && self.is_unfinished()
    }

    pub(super) fn is_unfinished(&self) -> bool {
        let Some(Reception { window, goods }) = &self.reception else { return false };
        let under_way = matches!(goods, Goods::Files(files) if !files.objects.is_empty());
        under_way || !window.is_whole() || !self.is_through || self.is_asked || self.owed.is_some()
    }

    /// How many datagrams of `data` may come at once: those that follow in their turn, of one file.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let Some(Reception { window, goods: Goods::Files(files) }) = &self.reception else {
            return NonZeroU32::MIN;
        };
        if data.options.cc.is_some() {
            return NonZeroU32::MIN;
        }
        let place = window.lead().near(data.sqn);
        let object = files.objects.range(..=place).next_back().map(|(_, object)| object);
        let room = object.filter(|_| place == window.lead()).and_then(|object| {
            let segment = object.segment(place)?;
            Some(object.geometry.segments() - segment)
        });
        NonZeroU32::new(room.unwrap_or(1).min(data.count.get())).unwrap_or(NonZeroU32::MIN)
    }
}
