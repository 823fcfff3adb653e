//! Sequence numbers and addresses in a sequence of octets.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farcast_delivery::octets::{Reader, Sink, Truncated};

use super::DecodeError;
use crate::message::Sqn;

/// Address families of NLAs.
mod family {
    pub(super) const IPV4: u16 = 1;
    pub(super) const IPV6: u16 = 2;
}

/// Encoding of PGM's fields.
pub(super) trait PgmSink: Sink {
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

impl<S: Sink> PgmSink for S {}

/// Returns the octets of an address.
pub(super) const fn address_len(address: IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

/// Decoding of PGM's fields.
pub(super) trait PgmReader {
    fn sqn(&mut self) -> Result<Sqn, Truncated>;

    /// Reads a family, two octets whose meaning depends on the option, and an address.
    fn nla_with(&mut self) -> Result<(u16, IpAddr), DecodeError>;

    fn nla(&mut self) -> Result<IpAddr, DecodeError> {
        self.nla_with().map(|(_, address)| address)
    }
}

impl PgmReader for Reader<'_> {
    fn sqn(&mut self) -> Result<Sqn, Truncated> {
        self.u32().map(Sqn)
    }

    fn nla_with(&mut self) -> Result<(u16, IpAddr), DecodeError> {
        let (family, between) = (self.u16()?, self.u16()?);
        let address = match family {
            family::IPV4 => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)),
            family::IPV6 => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)),
            other => return Err(DecodeError::Family(other)),
        };
        Ok((between, address))
    }
}
