//! Which receivers lack how much of which blocks: a receiver costs its losses, not its packets.

use alloc::vec::Vec;

use farcast_core::Bitmap;
use farcast_delivery::Geometry;

/// Some receivers.
#[derive(Clone, Debug)]
enum Set {
    /// These, ascending.
    Few(Vec<u32>),
    /// These: more than one in 32, so that a bit for each receiver is shorter than their list.
    Many(Bitmap),
}

impl Set {
    /// Those in `list`, which is ascending, of so many.
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

/// What others have asked for of a block.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// Of each receiver that waits, how many symbols that it lacks somebody else has asked for in one request, at most.
    most: Vec<u16>,
    /// Those of whom it is not known that others have asked for all that they lack.
    open: Vec<u32>,
}

/// A block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Source symbols that were never sent: everyone lacks them, beside what `lacks` says.
    unsent: u32,
    /// Of each encoding symbol that was sent, who missed it and still lacks something of the block.
    missed: Vec<Option<Set>>,
    /// How many symbols each receiver lacks; empty while nobody lacks any.
    lacks: Vec<u16>,
    /// Those who lack some; ascending once all source symbols were sent.
    who: Vec<u32>,
    /// `None` where nothing was heard since somebody lacked something.
    heard: Option<Heard>,
}

impl Block {
    fn lacks(&self, receiver: u32) -> u32 {
        self.unsent + self.lacks.get(receiver as usize).map_or(0, |&lacks| lacks.into())
    }

    /// Whether everyone has it.
    fn is_closed(&self) -> bool {
        self.unsent == 0 && self.who.is_empty()
    }

    /// Those in `losers`, ascending, lack one symbol more. Whose first one it is, comes into `first`.
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

    /// Brings those who lack something into their order.
    fn sort(&mut self) {
        // Where most have lost something, looking at everyone beats sorting.
        if self.who.len() > self.lacks.len() / 16 {
            self.who.clear();
            let all = (0..).zip(&self.lacks);
            self.who.extend(all.filter(|&(_, &lacks)| lacks > 0).map(|(receiver, _)| receiver));
        } else {
            self.who.sort_unstable();
        }
    }
}

/// The blocks of an object, and what each receiver lacks of them.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    receivers: u32,
    geometry: Geometry,
    parity: u32,
    list: Vec<Block>,
    /// Everyone has all blocks before this one.
    low: u32,
    /// Of how many blocks each receiver lacks something that was sent.
    open: Vec<u32>,
    /// Segments that were never sent.
    unsent: u32,
    /// The blocks of which others have asked for something.
    asked: Vec<u32>,
    /// Reused.
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

    /// Parity symbols of a block.
    pub(super) fn parity(&self) -> u32 {
        self.parity
    }

    /// Encoding symbols of `block`; none where there is no such block.
    pub(super) fn symbols_of(&self, block: u32) -> u32 {
        if block < self.geometry.blocks() { self.geometry.block_len(block) + self.parity } else { 0 }
    }

    /// Whether `receiver` lacks anything that was sent.
    pub(super) fn lacks_any(&self, receiver: u32) -> bool {
        self.open[receiver as usize] > 0
    }

    /// Whether `receiver` has everything.
    pub(super) fn has_all(&self, receiver: u32) -> bool {
        self.unsent == 0 && !self.lacks_any(receiver)
    }

    /// How many symbols `receiver` lacks of all blocks.
    pub(super) fn lacks_in_all(&self, receiver: u32) -> u32 {
        self.list.iter().map(|block| block.lacks(receiver)).sum()
    }

    /// Whether everything was sent at least once.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    pub(super) fn lacks(&self, block: u32, receiver: u32) -> u32 {
        self.list[block as usize].lacks(receiver)
    }

    /// Whether `receiver`, which lacks something of `block`, holds this symbol of it.
    pub(super) fn holds(&self, block: u32, symbol: u32, receiver: u32) -> bool {
        let missed = self.list[block as usize].missed.get(symbol as usize);
        missed.and_then(Option::as_ref).is_some_and(|missed| !missed.contains(receiver))
    }

    /// The first block in `from .. end` of which `receiver` lacks something.
    pub(super) fn next_need(&self, receiver: u32, from: u32, end: u32) -> Option<u32> {
        (from.max(self.low)..end.min(self.geometry.blocks())).find(|&block| self.lacks(block, receiver) > 0)
    }

    /// A symbol that exists reaches the fan-out: `lost` do not get it, ascending and as bits. Those who have the
    /// whole block then, and had not before, come into `got`, in no order; but not those who never lacked anything of
    /// it.
    pub(super) fn sent(&mut self, block: u32, symbol: u32, lost: (&[u32], &Bitmap), got: &mut Vec<u32>) {
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
                state.missed[symbol as usize] = Some(Set::of(lost.0, receivers));
                let open = &mut self.open;
                state.lose(receivers, lost.0, |receiver| open[receiver as usize] += 1);
                state.unsent -= 1;
                self.unsent -= 1;
                if state.unsent == 0 {
                    state.sort();
                    self.close(block);
                }
            }
            None => {
                let who = core::mem::take(&mut state.who);
                self.take(block, symbol, lost.1, |each| who.iter().copied().for_each(each), got);
                let Self { list, .. } = self;
                list[block as usize].who = who;
                self.settle(block);
            }
            Some(missed) => {
                self.take(block, symbol, lost.1, |each| missed.for_each(each), got);
                self.settle(block);
            }
        }
    }

    /// What was never sent of `block` counts as lost by everyone from here on.
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

    /// Of those that `among` names, ascending, who lack something of `block`, those who are not `lost` get a symbol of
    /// it.
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

    /// Takes those who lack nothing of `block` any more off its list.
    fn settle(&mut self, block: u32) {
        let Block { who, lacks, .. } = &mut self.list[block as usize];
        who.retain(|&receiver| lacks[receiver as usize] > 0);
        self.close(block);
    }

    /// Forgets all about `block` if everyone has it.
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

/// What others ask for.
impl Blocks {
    /// `receiver` begins to wait: what was heard before does not count.
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

    /// Somebody asks for so many symbols of `block`, which `useful` says are of use to a receiver; those hear it who
    /// wait, which `hears` says.
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
                    // What lacks only becomes less: who is covered once stays so.
                    *most < lacks
                }
            }
        });
    }

    /// Somebody asks for these symbols of `block`, from each first to the last, and for `any` more of them.
    pub(super) fn overhear_symbols(
        &mut self,
        block: u32,
        (ranges, any): (&[(u32, u32)], u32),
        listens: impl FnMut(u32) -> Listens,
    ) {
        let end = self.symbols_of(block);
        let asked = || ranges.iter().flat_map(|&(low, high)| low..end.min(high + 1));
        let Some(state) = self.list.get(block as usize) else { return };
        let sent = |symbol: &u32| state.missed.get(*symbol as usize).is_some_and(Option::is_some);
        // What was never sent is of use to everyone.
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

    /// Somebody asks for all of `block`.
    pub(super) fn overhear_whole(&mut self, block: u32, listens: impl FnMut(u32) -> Listens) {
        self.overhear(block, |_, _| u32::MAX, listens);
    }

    /// Whether others have asked for all that `receiver` lacks of `block`.
    pub(super) fn is_covered(&self, block: u32, receiver: u32) -> bool {
        let state = &self.list[block as usize];
        state
            .heard
            .as_ref()
            .is_some_and(|heard| u32::from(heard.most[receiver as usize]) >= state.lacks(receiver))
    }
}

/// Whether a receiver listens to what others ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listens {
    Yes,
    /// Not to this.
    No,
    /// It does not wait.
    NotAnyMore,
}
