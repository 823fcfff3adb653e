//! State that a receiver keeps of a source.

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
    /// A receiver's timers for each source; those of missing numbers are separate.
    pub(super) enum Timer {
        /// The receiver asks for an SPM.
        Spmr = "SPMR",
        /// The receiver reports its losses to a source that seeks an acker.
        Elect = "elect",
        /// An acknowledgement leaves.
        Ack = "acknowledge",
        /// An answer to a poll leaves.
        Poll = "poll",
        /// Nothing was heard of the source for long.
        Expiry = "expiry",
    }
}

/// Content by kind, with the state of its reception.
#[derive(Clone, Debug)]
pub(super) enum Goods {
    Files(Files),
    Messages(Messages),
}

/// Destination of requests for repair, from the last SPM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) spm: Sqn,
    /// The next PGM hop.
    pub(super) upstream: SocketAddr,
    /// Addresses of the source and the group.
    pub(super) source: IpAddr,
    pub(super) group: IpAddr,
}

/// The last poll that was heard (RFC 3208 §14).
#[derive(Clone, Copy, Debug)]
pub(super) struct Polled {
    pub(super) sqn: Sqn,
    pub(super) round: u16,
}

/// A repairer that receives requests instead of the next hop (RFC 3208 §9.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirection {
    pub(super) to: SocketAddr,
    /// Time of the oldest request to the repairer that nobody has confirmed.
    pub(super) asked: Option<Time>,
}

/// State of reception, once its first place is known.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub(super) window: Window,
    pub(super) goods: Goods,
}

impl Reception {
    /// Returns the time at which a missing number or group is due.
    pub(super) fn next(&self) -> Option<Time> {
        let of_files = match &self.goods {
            Goods::Files(files) => files.next_due(),
            Goods::Messages(_) => None,
        };
        self.window.next().into_iter().chain(of_files).min()
    }
}

/// Transmission groups by the first SPM of a source that announced them (`OPT_PARITY_PRM`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grouped {
    pub(super) size: u32,
    pub(super) on_demand: bool,
}

/// Facts of a source that is heard for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) tsi: Tsi,
    pub(super) port: u16,
    pub(super) source: SocketAddr,
    pub(super) group: SocketAddr,
    pub(super) now: Time,
}

/// Time without new content after which a source may be replaced by one that sends.
const STALE: Span = Span::from_secs(1);

/// Reasons for which a source may be replaced by another, the readiest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Yields {
    /// No content of it has come.
    Empty,
    /// Everything of it is over.
    Over,
    /// No new content comes.
    Stale,
}

#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) tsi: Tsi,
    pub(super) port: u16,
    /// Addresses from which and to which its first message came.
    pub(super) source: SocketAddr,
    pub(super) group: SocketAddr,
    pub(super) path: Option<Path>,
    pub(super) redirection: Option<Redirection>,
    pub(super) polled: Option<Polled>,
    /// Fields of `OPT_CR` for which the source asks.
    pub(super) wanted: u8,
    /// Losses among the source's data, while it asks for them.
    pub(super) losses: Option<Losses>,
    pub(super) reception: Option<Reception>,
    /// Packets that came and that are missing, among those sent for the first time.
    pub(super) passage: Passage,
    /// State of congestion on the path, if the source runs PGMCC.
    pub(super) listener: Option<Listener>,
    /// Transmission groups of its parity, if an SPM announced them before any reception began.
    pub(super) grouped: Option<Grouped>,
    /// Requests for parity since the last sign that the source understands them.
    pub(super) unheard: u32,
    /// Interval over which requests are spread.
    pub(super) backoff: Span,
    /// The next hop does not hear requests for repair.
    pub(super) is_deaf: bool,
    /// Place behind the last number, once the source has ended its session.
    pub(super) finished: Option<Place>,
    /// The end of the session was reported to the owner.
    pub(super) is_through: bool,
    /// Number, and its place, up to which the source asks for acknowledgement.
    pub(super) owed: Option<(Sqn, Place)>,
    /// The source may be waiting for this receiver's acknowledgement.
    pub(super) is_asked: bool,
    /// Time of the last message from the source.
    pub(super) last_heard: Time,
    /// Time at which content was last stored; `None` while the source has announced but delivered nothing.
    pub(super) fed: Option<Time>,
    /// Octets that may be sent, earned by the octets of the source.
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

    /// Returns the files that are being received.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Object> {
        let files = match self.reception.as_ref().map(|reception| &reception.goods) {
            Some(Goods::Files(files)) => Some(files),
            _ => None,
        };
        files.into_iter().flat_map(|files| files.objects.values())
    }

    /// Notes the packets that came and those that are missing, by the numbers of data sent for the first time.
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

    /// Returns the readiness of this source to be replaced, the least first; `None` if it stays. `sends` tells whether
    /// the other source has sent content.
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

    /// Returns `true` if anything is being received. A source that only announces files does not count.
    pub(super) fn is_busy(&self) -> bool {
        self.fed.is_some() && self.is_unfinished()
    }

    pub(super) fn is_unfinished(&self) -> bool {
        let Some(Reception { window, goods }) = &self.reception else { return false };
        let under_way = matches!(goods, Goods::Files(files) if !files.objects.is_empty());
        // A receiver that lacks a file never acknowledges.
        let is_bereft = matches!(goods, Goods::Files(files) if !files.is_sound);
        let owes = !is_bereft && (self.is_asked || self.owed.is_some());
        under_way || !window.is_whole() || !self.is_through || owes
    }

    /// Returns the number of datagrams of `data` that may be handled at once: consecutive segments, in turn, of one
    /// file.
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
