//! Requests of a receiver, and those of other receivers (draft §4.3).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use farcast_core::Run;
use farcast_delivery::nack::ContentState;

use super::session::{Incoming, Session};
use crate::config::ROBUST;
use crate::message::{Mask, ObjectNack, Request};
use crate::wire::{NACK_HEADER, request_len};

/// The most blocks, runs of blocks and objects whose requests by others are remembered. Beyond them, the receiver sends
/// its own requests.
const REMEMBERED: usize = 4096;

/// The most requests for the INFO of an object. A receiver that still lacks it goes on without, and acknowledges
/// nothing.
const INFO_ASKED: u32 = ROBUST;

/// Requests for INFO before the request for the object itself, if the receiver began in the midst of a transmission.
/// The INFO lets the owner find the parts that it has kept.
const INFO_FIRST: u32 = 3;

/// Requests of others that were heard during a back-off.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// The most useful symbols in one request of another receiver, by object and block.
    of_block: BTreeMap<(u32, u32), u32>,
    /// Blocks that another receiver requested whole: object, first block and last block.
    whole: Vec<(u32, u32, u32)>,
    info: BTreeSet<u32>,
}

impl Heard {
    /// Returns `true` if others have requested at least `lacks` symbols of `block`.
    fn covers(&self, object: u32, block: u32, lacks: u32) -> bool {
        self.of_block.get(&(object, block)).is_some_and(|&count| count >= lacks)
            || self.whole.iter().any(|&(of, first, last)| of == object && (first..=last).contains(&block))
    }

    /// Returns `true` if others have requested the INFO of `object`.
    pub(super) fn has_info(&self, object: u32) -> bool {
        self.info.contains(&object)
    }

    fn covers_object(&self, object: u32) -> bool {
        self.whole.contains(&(object, 0, u32::MAX))
    }

    fn note_whole(&mut self, object: u32, blocks: RangeInclusive<u32>) {
        if self.whole.len() < REMEMBERED {
            self.whole.push((object, *blocks.start(), *blocks.end()));
        }
    }
}

/// Missing parts of an object.
enum Need {
    Object,
    Parts {
        info: bool,
        /// The first block that lacks symbols, and the end of the search for further ones.
        blocks: Option<Range<u32>>,
    },
}

impl Session {
    /// Returns the needs of each object that the sender has passed, in order. Objects of which nothing has come are
    /// included only as far as there is room. An object that is only now being sent may still come.
    fn needs(&self) -> impl Iterator<Item = (u32, Option<&Incoming>, Need)> {
        let mut unheard = self.unheard.before(self.position.0).take(self.room()).peekable();
        let mut at_hand = self.objects.range(..=self.position.0).peekable();
        core::iter::from_fn(move || {
            loop {
                let next = at_hand.peek().map_or(u32::MAX, |(object, _)| **object);
                if let Some(object) = unheard.next_if(|&object| object < next) {
                    return Some((object, None, self.need_of_unheard(object)));
                }
                let (&object, one) = at_hand.next()?;
                if let Some(need) = self.need_of(object, one) {
                    return Some((object, Some(one), need));
                }
            }
        })
    }

    fn need_of_unheard(&self, object: u32) -> Need {
        let asked = self.info_asked.get(&object).copied().unwrap_or(0);
        let info = self.late && asked < INFO_FIRST;
        if info { Need::Parts { info, blocks: None } } else { Need::Object }
    }

    fn need_of(&self, object: u32, one: &Incoming) -> Option<Need> {
        if !one.content.is_receiving() {
            return None;
        }
        let end = self.asked_up_to(object, one);
        let blocks = one.content.next_need(0, end).map(|first| first..end);
        let info = !one.content.is_named && one.info_asked < INFO_ASKED;
        (info || blocks.is_some()).then_some(Need::Parts { info, blocks })
    }

    /// Returns the needs that may be requested. Before the owner has answered, more of an object may be stored than has
    /// come.
    fn asks(&self) -> impl Iterator<Item = (u32, Option<&Incoming>, Need)> {
        self.needs().filter(|(_, one, _)| one.is_none_or(|one| one.content.state != ContentState::Opening))
    }

    /// Returns `true` if the sender has passed anything that has not come.
    pub(super) fn has_need(&self) -> bool {
        self.needs().next().is_some()
    }

    /// Returns `true` if any of these needs may be requested.
    pub(super) fn may_ask(&self) -> bool {
        self.asks().next().is_some()
    }

    /// Returns `true` if others have requested everything that this receiver would.
    pub(super) fn is_covered(&self, heard: &Heard) -> bool {
        self.asks().all(|(object, one, need)| match need {
            Need::Object => heard.covers_object(object),
            Need::Parts { info, .. } if info && !heard.has_info(object) => false,
            Need::Parts { blocks, .. } => one.is_none_or(|one| {
                let (mut next, end) = blocks.map_or((None, 0), |blocks| (Some(blocks.start), blocks.end));
                while let Some(block) = next {
                    if !heard.covers(object, block, one.content.lacks(block)) {
                        return false;
                    }
                    next = one.content.next_need(block + 1, end);
                }
                true
            }),
        })
    }

    /// Returns requests for the needs, in order, as far as they fit a segment (our choice, as for the draft's other
    /// lists) and `room` octets.
    pub(super) fn requests(&self, room: usize) -> Vec<ObjectNack> {
        let mut list = List { nacks: Vec::new(), room: room.min(self.segment_size.into()) };
        for (object, one, need) in self.asks() {
            let fits = match need {
                Need::Object => list.add(object, Request::Object),
                // The request for INFO comes first.
                Need::Parts { info, blocks } => {
                    (!info || list.add(object, Request::Info))
                        && one.zip(blocks).is_none_or(|(one, blocks)| list.add_blocks(object, one, blocks))
                }
            };
            if !fits {
                break;
            }
        }
        list.nacks
    }

    /// Notes the requests of another receiver.
    pub(super) fn overhear(&self, heard: &mut Heard, nacks: &[ObjectNack]) {
        for ObjectNack { object, requests } in nacks {
            let one = self.objects.get(object);
            if one.is_none() && !self.unheard.contains(*object) {
                continue;
            }
            for request in requests {
                match (request, one) {
                    (Request::Object, _) => {
                        heard.note_whole(*object, 0..=u32::MAX);
                        heard.info.insert(*object);
                    }
                    (Request::Info, _) => _ = heard.info.insert(*object),
                    (_, Some(one)) => overhear_blocks(heard, *object, one, request),
                    (_, None) => {}
                }
            }
        }
    }
}

fn overhear_blocks(heard: &mut Heard, object: u32, one: &Incoming, request: &Request) {
    match request {
        Request::Object | Request::Info => {}
        Request::Blocks { offset, mask } => {
            let Some(first) = block_at(one, *offset) else { return };
            for n in mask.iter().take(REMEMBERED) {
                heard.note_whole(object, first + n..=first + n);
            }
        }
        Request::Segments { erasures, offset, mask } => {
            let Some(block) = block_at(one, *offset) else { return };
            // The sender chooses which symbols it sends, so symbols that this receiver has do not count.
            let useful = mask.iter().filter(|&symbol| is_useful(one, block, symbol)).count() as u32;
            if heard.of_block.len() < REMEMBERED || heard.of_block.contains_key(&(object, block)) {
                let most = heard.of_block.entry((object, block)).or_insert(0);
                *most = (*most).max(useful.min((*erasures).into()));
            }
        }
    }
}

/// Returns the block of `one` that begins at `offset`.
fn block_at(one: &Incoming, offset: u32) -> Option<u32> {
    let geometry = &one.content.geometry;
    let len = geometry.block_size() * u32::from(geometry.segment_size());
    let block = offset / len;
    (offset.is_multiple_of(len) && block < geometry.blocks()).then_some(block)
}

/// Returns `true` if `symbol` of `block` exists and has not come.
fn is_useful(one: &Incoming, block: u32, symbol: u32) -> bool {
    let content = &one.content;
    symbol < content.geometry.block_len(block) + content.parity && !content.holds(block, symbol)
}

/// List of requests that fit a segment.
struct List {
    nacks: Vec<ObjectNack>,
    room: usize,
}

impl List {
    /// Adds a request. Returns `true` if there was room.
    fn add(&mut self, object: u32, request: Request) -> bool {
        let same = self.nacks.last().is_some_and(|last| last.object == object);
        let len = request_len(&request) + if same { 0 } else { NACK_HEADER };
        // A segment may be too small for any request. A list that is too long is better than no request.
        if len > self.room && !self.nacks.is_empty() {
            return false;
        }
        self.room = self.room.saturating_sub(len);
        match self.nacks.last_mut().filter(|_| same) {
            Some(last) => last.requests.push(request),
            None => self.nacks.push(ObjectNack { object, requests: alloc::vec![request] }),
        }
        true
    }

    /// Adds requests for `blocks`, of which the first lacks something. Returns `true` if there was
    /// room.
    fn add_blocks(&mut self, object: u32, one: &Incoming, blocks: Range<u32>) -> bool {
        let Range { start: first, end } = blocks;
        let (about, geometry) = (&one.about, &one.content.geometry);
        let block_octets = geometry.block_size() * u32::from(geometry.segment_size());
        let nothing = |block| {
            one.content.lacks(block) == geometry.block_len(block) && one.content.held(block).is_none()
        };
        let mut next = Some(first);
        while let Some(block) = next {
            let offset = block * block_octets;
            let lacks = one.content.lacks(block);
            let mut last = block;
            let request = if nothing(block) {
                // After an outage, blocks of which nothing has come follow one another.
                let most = block.saturating_add(8 * self.room as u32).min(end.min(geometry.blocks()));
                while last + 1 < most && nothing(last + 1) {
                    last += 1;
                }
                let mut mask = Mask::new(last + 1 - block);
                mask.insert(Run::new(0, last + 1 - block).unwrap_or(Run::one(0)));
                Request::Blocks { offset, mask }
            } else {
                let mut mask = Mask::new(u32::from(about.ndata) + u32::from(about.nparity));
                for run in Session::wanted(one, block) {
                    mask.insert(run);
                }
                // A block has 255 symbols at most.
                Request::Segments { erasures: lacks as u8, offset, mask }
            };
            if !self.add(object, request) {
                return false;
            }
            next = one.content.next_need(last + 1, end);
        }
        true
    }
}
