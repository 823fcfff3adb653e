//! Integers in a sequence of octets.

use alloc::vec::Vec;

use super::DecodeError;

/// Output of encoders: octets, or only their number.
pub(super) trait Sink {
    fn put(&mut self, octets: &[u8]);

    /// Returns the number of octets so far.
    fn at(&self) -> usize;

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

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
pub(super) struct Counter(pub(super) usize);

impl Sink for Counter {
    fn put(&mut self, octets: &[u8]) {
        self.0 += octets.len();
    }

    fn at(&self) -> usize {
        self.0
    }
}

/// Reader of integers, one after the other.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Returns the number of octets that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the octets that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.octets[self.at..]
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.rest().get(..len).ok_or(DecodeError::Truncated)?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let taken = self.rest().first_chunk().ok_or(DecodeError::Truncated)?;
        self.at += N;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }
}
