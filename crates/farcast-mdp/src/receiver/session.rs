//! The current sender of a receiver, and its objects.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::nack::quantise::Rtt;
use farcast_delivery::nack::{ContentState, NodeId, ObjectContent, Stamp};
use farcast_delivery::{AT_HAND, ObjectId, Offer, Passage, Received};

use super::runs::Runs;
use crate::message::{About, Data, Flags, FromSender, Info};

/// Identity of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) source: SocketAddr,
    pub(super) sender: NodeId,
}

/// The last probe: its number, its time stamp, and the time at which it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probed {
    pub(super) sequence: u8,
    pub(super) sent: Stamp,
    pub(super) at: Time,
}

/// An object that was begun and is not finished.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) content: ObjectContent,
    /// Description of the object.
    pub(super) about: About,
    /// Number of requests for the INFO.
    pub(super) info_asked: u32,
    /// Block before which the sender has been behind all blocks: their missing symbols are to be requested.
    pub(super) reached: u32,
}

/// A finished object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Done {
    pub(super) object: u32,
    pub(super) id: ObjectId,
    /// Time of completion; `None` if the object was given up.
    pub(super) at: Option<Time>,
    pub(super) received: Received,
}

/// Presence of a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Standing {
    Here,
    /// The sender has said that it leaves, or was silent for too long.
    Left,
    /// The sender has begun another session: messages that come do not belong to this one.
    Past,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: Key,
    pub(super) group: SocketAddr,
    pub(super) grtt: Rtt,
    /// Octets of a segment, from the object that began last; a default before the first.
    pub(super) segment_size: u16,
    /// Objects that were begun and are not finished.
    pub(super) objects: BTreeMap<u32, Incoming>,
    /// Objects of which only the number is known. The receiver asks for them when there is room.
    pub(super) unheard: Runs,
    /// Number of requests for the INFO of such an object.
    pub(super) info_asked: BTreeMap<u32, u32>,
    /// Objects of the last request of which nothing has come since.
    pub(super) asked: BTreeSet<u32>,
    /// Number of objects that were never begun before the sender left.
    pub(super) missed: u32,
    /// Finished objects, and the complete ones among them.
    pub(super) over: Runs,
    pub(super) complete: Runs,
    /// The first object that is wanted, and the number behind the last that is known.
    pub(super) sync: u32,
    pub(super) next: u32,
    /// Position of the sender, an object and a block. The sender has passed everything before it.
    pub(super) position: (u32, u32),
    pub(super) probed: Option<Probed>,
    /// Number of long silences in a row.
    pub(super) silences: u32,
    pub(super) done: VecDeque<Done>,
    pub(super) loss: Loss,
    /// Datagrams that came from the sender, and those that are missing between them.
    pub(super) passage: Passage,
    pub(super) standing: Standing,
    /// The receiver began in the midst of a transmission, so the owner may have kept more than has come.
    pub(super) late: bool,
    /// Requests were put off, because the owner has not told yet what it has kept.
    pub(super) put_off: bool,
    pub(super) begun: Time,
    pub(super) last_heard: Time,
    /// Time at which content was last stored; `None` while the sender has announced but delivered nothing.
    pub(super) fed: Option<Time>,
    /// Octets that may be sent to the sender, earned by its own octets.
    pub(super) credit: u64,
}

/// Time without new content after which a sender is replaced by one that sends. It also applies to silence of a sender
/// with nothing more to send.
const STALE: Span = Span::from_secs(1);
/// Silence after which a sender of which nothing has come is replaced by one that only speaks.
const SPEAKS: Span = Span::from_millis(500);
/// The shortest silence after which a sender of content is replaced. A sender that was heard for longer than this is
/// waited for as long again, up to [`STALE`].
const BRIEF: Span = Span::from_millis(300);

impl Session {
    /// Returns `true` if this session gives way to another sender, which sends `said`.
    ///
    /// A sender chooses its own timing, so the decision does not depend on that. A sender that flushes has sent data,
    /// perhaps during this session: a short transfer is over by then.
    pub(super) fn yields(&self, now: Time, said: &FromSender) -> bool {
        let sends = matches!(said, FromSender::Data(_));
        let has_sent = sends || matches!(said, FromSender::Flush { eot: false, .. });
        let silence = now.since(self.last_heard);
        // Verification by the owner still counts.
        if self.objects.values().any(|one| one.content.state == ContentState::Verifying) {
            return false;
        }
        let Some(fed) = self.fed else { return sends || self.is_idle() || silence >= SPEAKS };
        if self.standing != Standing::Here && self.is_idle() {
            return true;
        }
        if self.is_idle() {
            return sends || silence >= STALE;
        }
        // A sender that was killed soon after it began holds the session no longer than it has used it.
        let patience = self.last_heard.since(self.begun).clamp(BRIEF, STALE);
        (has_sent && silence >= patience) || (sends && !self.is_complete() && now.since(fed) >= STALE)
    }

    /// Returns `true` if no object is being received or wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.objects.is_empty() && self.unheard.is_empty()
    }

    /// Returns `true` if all known objects are complete.
    pub(super) fn is_complete(&self) -> bool {
        self.unheard.is_empty()
            && self.objects.values().all(|one| matches!(one.content.state, ContentState::Complete(_)))
    }

    /// Gives up the objects that were never begun.
    pub(super) fn miss(&mut self) {
        self.missed = self.missed.saturating_add(self.unheard.count());
        self.unheard.clear();
    }

    /// Returns `true` if everything requested has come, and there is room for many objects that were not begun.
    pub(super) fn may_go_on(&self) -> bool {
        let idle = self.asked.is_empty() && !self.objects.values().any(|one| one.content.is_receiving());
        idle && !self.unheard.is_empty() && self.room() >= AT_HAND / 2
    }

    /// Returns `true` if `object` waits only for its owner, and not for the sender.
    pub(super) fn is_to_come(&self, object: u32) -> bool {
        let waits =
            |one: &Incoming| matches!(one.content.state, ContentState::Opening | ContentState::Verifying);
        self.objects.get(&object).map_or_else(|| self.unheard.contains(object), waits)
    }

    /// Returns the number of further objects that the owner can take in hand.
    pub(super) fn room(&self) -> usize {
        AT_HAND.saturating_sub(self.objects.len())
    }
}

/// Share of a sender's packets that is lost, counted from probe to probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    next: Option<u16>,
    came: u32,
    lost: u32,
    pub(super) estimate: u16,
}

impl Loss {
    /// Notes that `count` packets came, from `sequence` on.
    pub(super) fn came(&mut self, sequence: u16, count: u32) {
        let ahead = self.next.map_or(0, |next| sequence.wrapping_sub(next));
        // A late packet was already counted as lost.
        if ahead < 1 << 15 {
            self.lost = self.lost.saturating_add(ahead.into());
            self.next = Some(sequence.wrapping_add(count as u16));
        }
        self.came = self.came.saturating_add(count);
    }

    /// Takes a new estimate when a probe comes.
    pub(super) fn probed(&mut self) {
        let all = u64::from(self.came) + u64::from(self.lost);
        self.estimate = (u64::from(self.lost) * u64::from(u16::MAX)).checked_div(all).unwrap_or(0) as u16;
        (self.came, self.lost) = (0, 0);
    }
}

impl Incoming {
    /// Creates an object that is offered now.
    pub(super) fn new(content: ObjectContent, about: About) -> Self {
        Self { content, about, info_asked: 0, reached: 0 }
    }

    /// Returns the offer of this object for the owner. An object without INFO, or whose INFO has not come, is named by
    /// its numbers.
    pub(super) fn offer(&self, session: &Key, group: SocketAddr, object: u32, info: Option<&Info>) -> Offer {
        let (about, content) = (self.about, &self.content);
        let vouched = info.and_then(|info| info.vouched);
        let unknown = info.is_none() && about.flags.has(Flags::INFO);
        Offer {
            object: content.id,
            sender: session.source,
            session: session.sender.0,
            group: group.ip(),
            name: info.map_or_else(
                || format!("mdp-{}-{object}", session.sender).into_bytes(),
                |info| info.content.clone(),
            ),
            provisional: info.is_none(),
            id: None,
            // Numbers begin anew with each start of a sender. Only a digest shows that an object is the same as before,
            // and INFO that has not come may bring one.
            serial: (vouched.is_some() || unknown)
                .then_some(u64::from(session.sender.0) << 32 | u64::from(object)),
            vouched: vouched.map(Box::new),
            geometry: content.geometry,
            parity_symbols: content.parity,
            overwrite: true,
            rate_bps: u32::MAX,
        }
    }

    /// Checks that `data` belongs to this object and fits its division.
    pub(super) fn check(&self, data: &Data) -> Result<(), Reject> {
        let geometry = &self.content.geometry;
        if !data.about.is_same(&self.about) || data.segment_size != geometry.segment_size() {
            return Err(Reject::Inconsistent);
        }
        let len = geometry.block_len(data.block);
        let (low, high) = if data.parity { (len, len + self.content.parity) } else { (0, len) };
        if len == 0 || data.symbols.first() < low || data.symbols.end() > high {
            return Err(Reject::OutOfRange);
        }
        let full = data.segment_size;
        let len = match geometry.segments_of(data.block, data.symbols).filter(|_| !data.parity) {
            // A short segment is a run by itself.
            Some(segments) if segments.count() == 1 => geometry.payload_len(segments.first()),
            Some(segments) if geometry.payload_len(segments.last()) < full => 0,
            _ => full,
        };
        if data.len == len { Ok(()) } else { Err(Reject::Inconsistent) }
    }
}

impl Session {
    /// Returns the block of `object`, which is `one`, before which missing data may be requested. The sender has passed
    /// the blocks before it, and has not gone back.
    pub(super) fn asked_up_to(&self, object: u32, one: &Incoming) -> u32 {
        match object.cmp(&self.position.0) {
            core::cmp::Ordering::Less => u32::MAX,
            core::cmp::Ordering::Equal => one.reached.min(self.position.1),
            core::cmp::Ordering::Greater => 0,
        }
    }

    /// Returns the number of symbols of `data` that may be handled at once. The first symbol of a new block has effects
    /// of its own, as have symbols that complete or end a block.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let count = data.symbols.count();
        let most = match self.objects.get(&data.about.object) {
            Some(one)
                if one.content.is_receiving()
                    && (data.about.object, data.block) == self.position
                    && one.check(data).is_ok() =>
            {
                let before_end = if data.ends_block { count - 1 } else { count };
                one.content
                    .until_whole(data.block, data.symbols, data.parity_run())
                    .unwrap_or(count)
                    .min(before_end)
            }
            _ => 1,
        };
        NonZeroU32::new(most.min(count)).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the runs of symbols that would supply what `block` of `one` lacks. Parity that has not come is chosen
    /// first, in order; if it does not suffice, the last missing segments are added (draft §4.3).
    pub(super) fn wanted(one: &Incoming, block: u32) -> Vec<Run> {
        let content = &one.content;
        let (len, mut lacks) = (content.geometry.block_len(block), content.lacks(block));
        let none = Bitmap::new(content.parity);
        let held = content.held(block).unwrap_or(&none);
        let mut parity = Vec::new();
        for gap in held.iter_gaps() {
            let Some(run) = Run::new(len + gap.first(), gap.count().min(lacks)) else { break };
            lacks -= run.count();
            parity.push(run);
        }
        let Some(segments) = content.geometry.block_run(block) else { return parity };
        // The receiver skips as many segments as parity replaces.
        let mut spared = content.missing_in(block) - lacks;
        let mut wanted = Vec::new();
        for gap in content.have.gaps_in(segments) {
            let skip = spared.min(gap.count());
            spared -= skip;
            wanted.extend(Run::new(gap.first() + skip - segments.first(), gap.count() - skip));
        }
        wanted.extend(parity);
        wanted
    }
}
