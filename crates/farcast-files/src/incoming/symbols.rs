//! Parity symbols on disk. They wait there until their block can be rebuilt, even across a restart.
//!
//! Two files exist beside the journal. `parity` has a slot for each symbol. `parity.index` describes the content of
//! each slot, and begins with the division and coding of the object:
//!
//! | octets | of the head of the index |
//! |---|---|
//! | 8 | `FCPARITY` |
//! | 4 | octets of a symbol |
//! | 4 | segments of the largest block |
//! | 4 | parity symbols of a block |
//! | 4 | 0 |
//!
//! | octets | of each slot |
//! |---|---|
//! | 4 | the block |
//! | 4 | the symbol |
//! | 8 | first 8 octets of BLAKE3 of the block, the symbol and the symbol's octets, with the lowest bit set; 0 for a
//! free slot |
//!
//! The kernel keeps written data when the process is killed. After a power loss the check shows which slots have the
//! content that the index describes, so nothing here is synced. A slot is used again once its block is complete.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Result as SystemResult;

use super::Incoming;
use crate::beneath::{Root, size_of};
use crate::transfer::{read_at, write_all, write_at};
use crate::{StoreError, system};

const MAGIC: &[u8; 8] = b"FCPARITY";
const HEAD_LEN: usize = 24;
const ENTRY_LEN: usize = 16;
/// Number of index entries that are read at once.
const AT_ONCE: usize = 4096;
/// Number of files that are made.
const INODES: u64 = 2;

/// Parity symbol: its number in the block, and its octets.
pub type ParitySymbol = (u32, Box<[u8]>);

/// Parameters of an erasure code; symbols of another code are useless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coding {
    /// Length of a symbol in octets.
    pub symbol_len: u16,
    /// Number of source symbols in the largest block.
    pub source: u32,
    /// Number of parity symbols in a block.
    pub parity: u32,
}

impl Coding {
    fn head(self) -> [u8; HEAD_LEN] {
        let mut head = [0; HEAD_LEN];
        let numbers = [u32::from(self.symbol_len), self.source, self.parity, 0].map(u32::to_be_bytes);
        head[..8].copy_from_slice(MAGIC);
        head[8..].copy_from_slice(numbers.as_flattened());
        head
    }
}

/// A symbol on disk, and its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct StoredSymbol {
    symbol: u32,
    slot: u32,
}

/// All symbols on disk. Memory is 8 octets for each.
#[derive(Debug)]
pub(super) struct Symbols {
    coding: Coding,
    data: OwnedFd,
    index: OwnedFd,
    kept: BTreeMap<u32, Vec<StoredSymbol>>,
    /// Slots that are free below `slots`.
    free: Vec<u32>,
    slots: u32,
    scratch: Vec<u8>,
}

impl Symbols {
    fn paths(dir: &[u8]) -> [Vec<u8>; 2] {
        [[dir, b"/parity".as_slice()].concat(), [dir, b"/parity.index".as_slice()].concat()]
    }

    /// Creates both files, empty.
    fn create(root: &Root, dir: &[u8], coding: Coding) -> SystemResult<Self> {
        let [data, index] = Self::paths(dir);
        let make = |path: &[u8]| {
            root.regular(path)?;
            root.fresh(path)
        };
        // Without an index nothing vouches for the data, so the index goes first.
        root.void(&index)?;
        let (data, index) = (make(&data)?, make(&index)?);
        write_at(&index, &coding.head(), 0)?;
        Ok(Self {
            coding,
            data,
            index,
            kept: BTreeMap::new(),
            free: Vec::new(),
            slots: 0,
            scratch: Vec::new(),
        })
    }

    /// Opens the files of an earlier run, if they are of this coding.
    fn find(root: &Root, dir: &[u8], coding: Coding) -> SystemResult<Option<Self>> {
        let [data, index] = Self::paths(dir);
        let (Some(_), Some(stat)) = (root.regular(&data)?, root.regular(&index)?) else { return Ok(None) };
        let open = |path: &[u8]| root.open_at(path, OFlags::RDWR, Mode::empty());
        let (data, index) = (open(&data)?, open(&index)?);
        let mut head = [0; HEAD_LEN];
        if read_at(&index, &mut head, 0)? < HEAD_LEN || head != coding.head() {
            return Ok(None);
        }
        let most = size_of(&system::fstat(&data)?) / u64::from(coding.symbol_len);
        let entries = (size_of(&stat).saturating_sub(HEAD_LEN as u64) / ENTRY_LEN as u64).min(most);
        let Ok(slots) = u32::try_from(entries) else { return Ok(None) };
        let kept = BTreeMap::new();
        let mut symbols = Self { coding, data, index, kept, free: Vec::new(), slots, scratch: Vec::new() };
        symbols.load()?;
        Ok(Some(symbols))
    }

    fn load(&mut self) -> SystemResult<()> {
        let mut buffer = vec![0; AT_ONCE * ENTRY_LEN];
        let mut slot = 0;
        while slot < self.slots {
            let read = read_at(&self.index, &mut buffer, entry_at(slot))?;
            let (entries, _) = buffer[..read].as_chunks::<ENTRY_LEN>();
            let before = slot;
            for entry in entries.iter().take((self.slots - slot) as usize) {
                let (block, symbol, check) = parsed(entry);
                if check == 0 || symbol >= self.coding.parity {
                    self.free.push(slot);
                } else {
                    self.kept.entry(block).or_default().push(StoredSymbol { symbol, slot });
                }
                slot += 1;
            }
            if slot == before {
                break;
            }
        }
        self.slots = slot;
        Ok(())
    }

    /// Allocates slots for `count` symbols: free ones first, then consecutive new ones.
    fn take_slots(&mut self, count: u32) -> Vec<u32> {
        let again = self.free.len().min(count as usize);
        let mut slots = self.free.split_off(self.free.len() - again);
        slots.sort_unstable();
        let fresh = count - again as u32;
        slots.extend(self.slots..self.slots + fresh);
        self.slots += fresh;
        slots
    }

    /// Writes consecutive symbols of `block` from number `first` on.
    fn keep(&mut self, block: u32, first: u32, payloads: &[&[u8]]) -> SystemResult<()> {
        let slots = self.take_slots(payloads.len() as u32);
        let written = self.write(block, first, payloads, &slots);
        let symbols = (first..).zip(&slots).map(|(symbol, &slot)| StoredSymbol { symbol, slot });
        match written {
            Ok(()) => self.kept.entry(block).or_default().extend(symbols),
            Err(_) => self.free.extend(&slots),
        }
        written
    }

    fn write(&mut self, block: u32, first: u32, payloads: &[&[u8]], slots: &[u32]) -> SystemResult<()> {
        let mut at = 0;
        while let Some(&slot) = slots.get(at) {
            // Consecutive slots are written by one call.
            let row = (slot..).zip(&slots[at..]).take_while(|(expected, slot)| expected == *slot).count();
            let payloads = &payloads[at..at + row];
            let mut slices: Vec<IoSlice<'_>> = payloads.iter().map(|bytes| IoSlice::new(bytes)).collect();
            write_all(self.data.as_fd(), &mut slices, self.data_at(slot))?;
            self.scratch.clear();
            for (symbol, payload) in (first + at as u32..).zip(payloads) {
                self.scratch.extend(block.to_be_bytes());
                self.scratch.extend(symbol.to_be_bytes());
                self.scratch.extend(check(block, symbol, payload).to_be_bytes());
            }
            // The index is written after the data, so that a killed process leaves no entry without data.
            write_at(&self.index, &self.scratch, entry_at(slot))?;
            at += row;
        }
        Ok(())
    }

    /// Reads the symbols of `block` that are intact.
    fn read(&self, block: u32) -> SystemResult<Vec<ParitySymbol>> {
        let mut symbols = Vec::new();
        for kept in self.kept.get(&block).into_iter().flatten() {
            let mut bytes = vec![0; usize::from(self.coding.symbol_len)].into_boxed_slice();
            let mut entry = [0; ENTRY_LEN];
            let whole = read_at(&self.data, &mut bytes, self.data_at(kept.slot))? == bytes.len();
            read_at(&self.index, &mut entry, entry_at(kept.slot))?;
            if whole && parsed(&entry) == (block, kept.symbol, check(block, kept.symbol, &bytes)) {
                symbols.push((kept.symbol, bytes));
            }
        }
        Ok(symbols)
    }

    /// Frees the slots of `block`. With `erase` they are free on disk too; without it, all segments of the block must
    /// be held.
    fn forget(&mut self, block: u32, erase: bool) -> SystemResult<()> {
        let Some(kept) = self.kept.remove(&block) else { return Ok(()) };
        self.free.extend(kept.iter().map(|kept| kept.slot));
        let mut erased = kept.iter().filter(|_| erase);
        erased.try_for_each(|kept| write_at(&self.index, &[0; ENTRY_LEN], entry_at(kept.slot)))
    }

    fn data_at(&self, slot: u32) -> u64 {
        u64::from(slot) * u64::from(self.coding.symbol_len)
    }
}

fn entry_at(slot: u32) -> u64 {
    HEAD_LEN as u64 + u64::from(slot) * ENTRY_LEN as u64
}

/// Returns block, symbol and check of an entry.
fn parsed(entry: &[u8; ENTRY_LEN]) -> (u32, u32, u64) {
    let value = u128::from_be_bytes(*entry);
    ((value >> 96) as u32, (value >> 64) as u32, value as u64)
}

fn check(block: u32, symbol: u32, bytes: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&block.to_be_bytes()).update(&symbol.to_be_bytes()).update(bytes);
    let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(first) | 1
}

impl Incoming {
    /// Returns the parity symbols that an earlier run with the same coding has kept for incomplete blocks: for each
    /// block the numbers of its symbols, without duplicates.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn kept_parity(&mut self, coding: Coding) -> Result<Vec<(u32, Vec<u32>)>, StoreError> {
        if self.symbols.is_none() && self.state.is_made() {
            let found = Symbols::find(&self.root, self.state.path(), coding);
            self.symbols = found.map_err(|errno| self.symbols_error("read", errno, 0))?;
        }
        let Some(symbols) = &mut self.symbols else { return Ok(Vec::new()) };
        self.room.resume_aside(u64::from(symbols.slots) * u64::from(coding.symbol_len));
        let mut list = Vec::new();
        for (&block, kept) in &mut symbols.kept {
            kept.sort_unstable_by_key(|kept| kept.symbol);
            kept.dedup_by_key(|kept| kept.symbol);
            list.push((block, kept.iter().map(|kept| kept.symbol).collect()));
        }
        Ok(list)
    }

    /// Keeps consecutive parity symbols of `block` from number `first` on, none of which is kept yet. Each has the
    /// length in `coding`. Returns `false` if there is no room for them while the list of files is not known; then no
    /// symbol of the block is kept any more.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and [`StoreError::OverQuota`], after which the same call may succeed later; other
    /// errors of the file system. After an error none of the symbols is kept.
    pub fn keep_parity(
        &mut self,
        coding: Coding,
        block: u32,
        first: u32,
        payloads: &[&[u8]],
    ) -> Result<bool, StoreError> {
        let len = u64::from(coding.symbol_len);
        if let Some(wrong) = payloads.iter().find(|payload| payload.len() as u64 != len) {
            let actual = wrong.len() as u64;
            return Err(StoreError::BadSegment { segment: first.into(), expected: len, actual });
        }
        self.begin()?;
        let size = self.geometry.size;
        if self.delivery.is_none() && !self.may_spool(&(size..size + len * payloads.len() as u64))? {
            return self.forget_parity(block, true).map(|()| false);
        }
        let free = self.symbols.as_ref().map_or(0, |symbols| symbols.free.len() as u64);
        let fresh = (payloads.len() as u64).saturating_sub(free);
        self.make_aside((len + ENTRY_LEN as u64) * fresh)?;
        let symbols = if let Some(symbols) = &mut self.symbols {
            symbols
        } else {
            let made = Symbols::create(&self.root, self.state.path(), coding);
            let made = made.map_err(|errno| self.symbols_error("create", errno, len))?;
            self.room.count_made(INODES);
            self.symbols.insert(made)
        };
        let kept = symbols.keep(block, first, payloads);
        kept.map_err(|errno| self.symbols_error("write", errno, len * payloads.len() as u64))?;
        Ok(true)
    }

    /// Reads the parity symbols of `block` that are kept and intact.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn read_parity(&self, block: u32) -> Result<Vec<ParitySymbol>, StoreError> {
        let read = self.symbols.as_ref().map_or_else(|| Ok(Vec::new()), |symbols| symbols.read(block));
        read.map_err(|errno| self.symbols_error("read", errno, 0))
    }

    /// Frees the space of the symbols of `block`. Set `erase` unless all its segments are held, so that the next run
    /// does not find the symbols either.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn forget_parity(&mut self, block: u32, erase: bool) -> Result<(), StoreError> {
        let forgotten = self.symbols.as_mut().map_or(Ok(()), |symbols| symbols.forget(block, erase));
        forgotten.map_err(|errno| self.symbols_error("write", errno, 0))
    }

    /// Returns `true` if any parity symbol is kept.
    pub(super) fn keeps_parity(&self) -> bool {
        self.symbols.as_ref().is_some_and(|symbols| !symbols.kept.is_empty())
    }

    fn symbols_error(&self, action: &'static str, errno: rustix::io::Errno, len: u64) -> StoreError {
        self.root.error(&[self.state.path(), b"/parity".as_slice()].concat(), action, errno, len)
    }
}
