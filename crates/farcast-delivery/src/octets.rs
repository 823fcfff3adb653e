//! Integers in a sequence of octets, the high octet first.

use alloc::vec::Vec;

/// Destination of encoders: octets, or only their number.
pub trait Sink {
    /// Appends octets.
    fn put(&mut self, octets: &[u8]);

    /// Returns the number of octets so far.
    fn at(&self) -> usize;

    /// Appends an octet.
    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends an integer of two octets.
    fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an integer of four octets.
    fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    fn at(&self) -> usize {
        self.len()
    }
}

/// Sink that counts octets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter(pub usize);

impl Sink for Counter {
    fn put(&mut self, octets: &[u8]) {
        self.0 += octets.len();
    }

    fn at(&self) -> usize {
        self.0
    }
}

/// End of the octets within a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncated;

/// Reader of integers, one after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Makes a reader of `octets`.
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Returns the number of octets that were read.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns the octets that were not read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.octets[self.at..]
    }

    /// Reads `len` octets.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let taken = self.rest().get(..len).ok_or(Truncated)?;
        self.at += len;
        Ok(taken)
    }

    /// Reads `N` octets.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let taken = self.rest().first_chunk().ok_or(Truncated)?;
        self.at += N;
        Ok(*taken)
    }

    /// Reads an octet.
    ///
    /// # Errors
    /// [`Truncated`] if there is none.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array::<1>().map(|[octet]| octet)
    }

    /// Reads an integer of two octets.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads an integer of four octets.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }
}
