//! Integers and addresses in a row of octets.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::DecodeError;
use crate::message::Sqn;

/// Address families of NLAs.
mod family {
    pub(super) const IPV4: u16 = 1;
    pub(super) const IPV6: u16 = 2;
}

/// Destination of encoders: stores octets, or only counts them.
pub(super) trait Sink {
    fn put(&mut self, octets: &[u8]);

    fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn sqn(&mut self, sqn: Sqn) {
        self.u32(sqn.0);
    }

    /// Writes an address without its family.
    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.put(&address.octets()),
            IpAddr::V6(address) => self.put(&address.octets()),
        }
    }

    /// Writes a family, two octets whose meaning depends on the option, and an address.
    fn nla_with(&mut self, between: u16, address: IpAddr) {
        self.u16(if address.is_ipv4() { family::IPV4 } else { family::IPV6 });
        self.u16(between);
        self.address(address);
    }

    fn nla(&mut self, address: IpAddr) {
        self.nla_with(0, address);
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }
}

/// A sink that counts octets.
pub(super) struct Counter(pub(super) usize);

impl Sink for Counter {
    fn put(&mut self, octets: &[u8]) {
        self.0 += octets.len();
    }
}

/// Returns the octets of an address.
pub(super) const fn address_len(address: IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

/// Reads integers one after the other from octets.
#[derive(Clone)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Returns the octets that were not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
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

    pub(super) fn sqn(&mut self) -> Result<Sqn, DecodeError> {
        self.u32().map(Sqn)
    }

    /// Reads a family, two octets whose meaning depends on the option, and an address.
    pub(super) fn nla_with(&mut self) -> Result<(u16, IpAddr), DecodeError> {
        let (family, between) = (self.u16()?, self.u16()?);
        let address = match family {
            family::IPV4 => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)),
            family::IPV6 => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)),
            other => return Err(DecodeError::Family(other)),
        };
        Ok((between, address))
    }

    pub(super) fn nla(&mut self) -> Result<IpAddr, DecodeError> {
        self.nla_with().map(|(_, address)| address)
    }
}
