//! Symbols of each block that receivers lack. A receiver costs its losses, not its packets.

use alloc::vec::Vec;

use farcast_core::Bitmap;
use farcast_delivery::Geometry;

/// Set of receivers.
#[derive(Clone, Debug)]
enum Set {
    /// Ascending list.
    Few(Vec<u32>),
    /// Bits, for more than one receiver in 32: then a bit for each receiver takes less room than a list.
    Many(Bitmap),
}

impl Set {
    /// Returns the set of the receivers in `list`, which is ascending, out of `receivers`.
    fn of(list: &[u32], receivers: u32) -> Self {
        if list.len() <= receivers as usize / 32 {
            return Self::Few(list.to_vec());
        }
        let mut bits = Bitmap::new(receivers);
        for &receiver in list {
            bits.insert(receiver);
        }
        Self::Many(bits)
    }

    fn contains(&self, receiver: u32) -> bool {
        match self {
            Self::Few(list) => list.binary_search(&receiver).is_ok(),
            Self::Many(bits) => bits.contains(receiver),
        }
    }

    fn for_each(&self, each: impl FnMut(u32)) {
        match self {
            Self::Few(list) => list.iter().copied().for_each(each),
            Self::Many(bits) => bits.iter().for_each(each),
        }
    }
}

/// Requests of others for symbols of a block.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// Number of symbols, for each waiting receiver, that the receiver lacks and somebody else has asked for in one
    /// request, at most.
    most: Vec<u16>,
    /// Receivers for which others are not known to have asked for everything that they lack.
    open: Vec<u32>,
}

/// State of a block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Source symbols that were never sent. Every receiver lacks them, in addition to `lacks`.
    unsent: u32,
    /// Receivers that missed each sent encoding symbol and still lack something of the block.
    missed: Vec<Option<Set>>,
    /// Number of symbols that each receiver lacks; empty while no receiver lacks any.
    lacks: Vec<u16>,
    /// Receivers that lack any; ascending once all source symbols were sent.
    who: Vec<u32>,
    /// Requests of others; `None` if none was heard since a receiver lacked something.
    heard: Option<Heard>,
}

impl Block {
    fn lacks(&self, receiver: u32) -> u32 {
        self.unsent + self.lacks.get(receiver as usize).map_or(0, |&lacks| lacks.into())
    }

    /// Returns `true` if every receiver has the block.
    fn is_closed(&self) -> bool {
        self.unsent == 0 && self.who.is_empty()
    }

    /// Adds a missing symbol to each receiver in `losers`, ascending, and calls `first` for receivers that lacked none
    /// before.
    fn lose(&mut self, receivers: u32, losers: &[u32], mut first: impl FnMut(u32)) {
        if self.lacks.is_empty() && !losers.is_empty() {
            self.lacks = alloc::vec![0; receivers as usize];
        }
        for &receiver in losers {
            let lacks = &mut self.lacks[receiver as usize];
            if *lacks == 0 {
                self.who.push(receiver);
                first(receiver);
            }
            *lacks += 1;
        }
    }

    /// Sorts the receivers that lack something.
    fn sort(&mut self) {
        // Where most receivers lack something, a pass over all receivers is faster than sorting.
        if self.who.len() > self.lacks.len() / 16 {
            self.who.clear();
            let all = (0..).zip(&self.lacks);
            self.who.extend(all.filter(|&(_, &lacks)| lacks > 0).map(|(receiver, _)| receiver));
        } else {
            self.who.sort_unstable();
        }
    }
}

/// Blocks of an object, with the symbols that each receiver lacks.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    receivers: u32,
    geometry: Geometry,
    parity: u32,
    list: Vec<Block>,
    /// Number of leading blocks that every receiver has.
    low: u32,
    /// Number of blocks of which each receiver lacks something that was sent.
    open: Vec<u32>,
    /// Segments that were never sent.
    unsent: u32,
    /// Blocks of which others have asked for something.
    asked: Vec<u32>,
    /// Receivers that still miss a symbol (a buffer that is reused).
    left: Vec<u32>,
}

impl Blocks {
    pub(super) fn new(receivers: u32, geometry: Geometry, parity: u32) -> Self {
        let block = |number| Block { unsent: geometry.block_len(number), ..Block::default() };
        Self {
            receivers,
            geometry,
            parity,
            list: (0..geometry.blocks()).map(block).collect(),
            low: 0,
            open: alloc::vec![0; receivers as usize],
            unsent: geometry.segments(),
            asked: Vec::new(),
            left: Vec::new(),
        }
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the number of parity symbols of a block.
    pub(super) fn parity(&self) -> u32 {
        self.parity
    }

    /// Returns the number of encoding symbols of `block`; 0 if there is no such block.
    pub(super) fn symbols_of(&self, block: u32) -> u32 {
        if block < self.geometry.blocks() { self.geometry.block_len(block) + self.parity } else { 0 }
    }

    /// Returns `true` if `receiver` lacks anything that was sent.
    pub(super) fn lacks_any(&self, receiver: u32) -> bool {
        self.open[receiver as usize] > 0
    }

    /// Returns `true` if `receiver` has everything.
    pub(super) fn has_all(&self, receiver: u32) -> bool {
        self.unsent == 0 && !self.lacks_any(receiver)
    }

    /// Returns the number of symbols that `receiver` lacks of all blocks.
    pub(super) fn lacks_in_all(&self, receiver: u32) -> u32 {
        self.list.iter().map(|block| block.lacks(receiver)).sum()
    }

    /// Returns `true` if everything was sent at least once.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    pub(super) fn lacks(&self, block: u32, receiver: u32) -> u32 {
        self.list[block as usize].lacks(receiver)
    }

    /// Returns `true` if `receiver`, which lacks something of `block`, holds this symbol of it.
    pub(super) fn holds(&self, block: u32, symbol: u32, receiver: u32) -> bool {
        let missed = self.list[block as usize].missed.get(symbol as usize);
        missed.and_then(Option::as_ref).is_some_and(|missed| !missed.contains(receiver))
    }

    /// Returns the first block in `from .. end` of which `receiver` lacks something.
    pub(super) fn next_need(&self, receiver: u32, from: u32, end: u32) -> Option<u32> {
        (from.max(self.low)..end.min(self.geometry.blocks())).find(|&block| self.lacks(block, receiver) > 0)
    }

    /// Handles a symbol that reaches the fan-out. Receivers
    /// that come to have the whole block by this symbol are appended to `got`, in no order, except those that never
    /// lacked anything of it.
    pub(super) fn sent(&mut self, block: u32, symbol: u32, lost: &Lost<'_>, got: &mut Vec<u32>) {
        let (receivers, symbols) = (self.receivers, self.symbols_of(block) as usize);
        let source = symbol < self.geometry.block_len(block);
        let state = &mut self.list[block as usize];
        if state.is_closed() {
            return;
        }
        state.missed.resize(symbols, None);
        if !source && state.unsent > 0 {
            self.give_up_unsent(block);
        }
        let state = &mut self.list[block as usize];
        match state.missed[symbol as usize].take() {
            None if source => {
                state.missed[symbol as usize] = Some(Set::of(lost.list, receivers));
                let open = &mut self.open;
                state.lose(receivers, lost.list, |receiver| open[receiver as usize] += 1);
                state.unsent -= 1;
                self.unsent -= 1;
                if state.unsent == 0 {
                    state.sort();
                    self.close(block);
                }
            }
            None => {
                let who = core::mem::take(&mut state.who);
                self.take(block, symbol, lost.set, |each| who.iter().copied().for_each(each), got);
                let Self { list, .. } = self;
                list[block as usize].who = who;
                self.settle(block);
            }
            Some(missed) => {
                self.take(block, symbol, lost.set, |each| missed.for_each(each), got);
                self.settle(block);
            }
        }
    }

    /// Counts all source symbols of `block` that were never sent as lost by every receiver.
    fn give_up_unsent(&mut self, block: u32) {
        let everyone: Vec<u32> = (0..self.receivers).collect();
        let (len, receivers) = (self.geometry.block_len(block) as usize, self.receivers);
        let Self { list, open, unsent, .. } = self;
        let state = &mut list[block as usize];
        for symbol in 0..len {
            if state.missed[symbol].is_none() {
                state.missed[symbol] = Some(Set::of(&everyone, receivers));
                state.lose(receivers, &everyone, |receiver| open[receiver as usize] += 1);
            }
        }
        *unsent -= core::mem::take(&mut state.unsent);
        state.sort();
    }

    /// Gives a symbol to those receivers of `among`, ascending, that lack something of `block` and are not `lost`.
    fn take(
        &mut self,
        block: u32,
        symbol: u32,
        lost: &Bitmap,
        among: impl FnOnce(&mut dyn FnMut(u32)),
        got: &mut Vec<u32>,
    ) {
        let Self { list, open, left, receivers, .. } = self;
        let state = &mut list[block as usize];
        left.clear();
        among(&mut |receiver| {
            let lacks = &mut state.lacks[receiver as usize];
            match *lacks {
                0 => {}
                _ if lost.contains(receiver) => left.push(receiver),
                1 => {
                    *lacks = 0;
                    open[receiver as usize] -= 1;
                    got.push(receiver);
                }
                _ => *lacks -= 1,
            }
        });
        state.missed[symbol as usize] = Some(Set::of(left, *receivers));
    }

    /// Removes receivers that lack nothing of `block` any more from its list.
    fn settle(&mut self, block: u32) {
        let Block { who, lacks, .. } = &mut self.list[block as usize];
        who.retain(|&receiver| lacks[receiver as usize] > 0);
        self.close(block);
    }

    /// Frees the state of `block` if every receiver has it.
    fn close(&mut self, block: u32) {
        let state = &mut self.list[block as usize];
        if state.is_closed() {
            *state = Block::default();
            self.asked.retain(|&asked| asked != block);
            let closed = self.list[self.low as usize..].iter().take_while(|block| block.is_closed());
            self.low += closed.count() as u32;
        }
    }
}

/// Handling of others' requests.
impl Blocks {
    /// Resets the overheard requests for `receiver`, which begins to wait: earlier requests do not count.
    pub(super) fn begin_wait(&mut self, receiver: u32) {
        for &block in &self.asked {
            let block = &mut self.list[block as usize];
            if let Some(heard) = &mut block.heard
                && block.lacks[receiver as usize] > 0
            {
                heard.most[receiver as usize] = 0;
                heard.open.push(receiver);
            }
        }
    }

    /// Notes a request for symbols of `block`. `useful` returns the number of requested symbols that a receiver lacks;
    /// `listens` tells whether a receiver waits and hears the request.
    fn overhear(
        &mut self,
        block: u32,
        useful: impl Fn(&[Option<Set>], u32) -> u32,
        mut listens: impl FnMut(u32) -> Listens,
    ) {
        let Some(state) = self.list.get_mut(block as usize).filter(|state| !state.who.is_empty()) else {
            return;
        };
        let Block { missed, lacks, who, heard, .. } = state;
        if heard.is_none() {
            self.asked.push(block);
        }
        let begin = || Heard { most: alloc::vec![0; lacks.len()], open: who.clone() };
        let Heard { most, open } = heard.get_or_insert_with(begin);
        open.retain(|&receiver| {
            let lacks = lacks[receiver as usize];
            match listens(receiver) {
                Listens::NotAnyMore => false,
                _ if lacks == 0 => false,
                Listens::No => true,
                Listens::Yes => {
                    let count = u16::try_from(useful(missed, receiver)).unwrap_or(u16::MAX);
                    let most = &mut most[receiver as usize];
                    *most = count.max(*most);
                    // A receiver's lack only decreases, so a receiver that is covered stays covered.
                    *most < lacks
                }
            }
        });
    }

    /// Notes a request for these symbols of `block`, in ranges from first to last, and for `any` further symbols.
    pub(super) fn overhear_symbols(
        &mut self,
        block: u32,
        ranges: &[(u32, u32)],
        any: u32,
        listens: impl FnMut(u32) -> Listens,
    ) {
        let end = self.symbols_of(block);
        let asked = || ranges.iter().flat_map(|&(low, high)| low..end.min(high + 1));
        let Some(state) = self.list.get(block as usize) else { return };
        let sent = |symbol: &u32| state.missed.get(*symbol as usize).is_some_and(Option::is_some);
        // A symbol that was never sent is useful to every receiver.
        let known: Vec<u32> = asked().filter(sent).collect();
        let fresh = (asked().count() - known.len()) as u32 + any;
        let useful = |missed: &[Option<Set>], receiver| {
            let of_use = |&&symbol: &&u32| {
                missed[symbol as usize].as_ref().is_some_and(|missed| missed.contains(receiver))
            };
            fresh + known.iter().filter(of_use).count() as u32
        };
        self.overhear(block, useful, listens);
    }

    /// Notes a request for all of `block`.
    pub(super) fn overhear_whole(&mut self, block: u32, listens: impl FnMut(u32) -> Listens) {
        self.overhear(block, |_, _| u32::MAX, listens);
    }

    /// Returns `true` if others have asked for everything that `receiver` lacks of `block`.
    pub(super) fn is_covered(&self, block: u32, receiver: u32) -> bool {
        let state = &self.list[block as usize];
        state
            .heard
            .as_ref()
            .is_some_and(|heard| u32::from(heard.most[receiver as usize]) >= state.lacks(receiver))
    }
}

/// Receivers that do not get a symbol, in ascending order and as a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost<'a> {
    pub(super) list: &'a [u32],
    pub(super) set: &'a Bitmap,
}

/// Relation of a receiver to a request of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listens {
    Yes,
    /// The receiver waits but does not hear this request.
    No,
    /// The receiver does not wait.
    NotAnyMore,
}
