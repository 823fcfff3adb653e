//! Keys of `[protocol]` that several protocols have, and plans.

use farcast_core::BitRate;
use farcast_core::units::Bytes;
use farcast_scenario::{Document, DocumentError, Reader};

use crate::star::StarError;

/// Reads the rate. A `given` rate wins over that of the table, which must be valid all the same.
pub(super) fn rate(table: &mut Reader<'_>, given: Option<BitRate>) -> Result<BitRate, DocumentError> {
    match given {
        Some(rate) => table.rate_or("rate", rate).map(|_| rate),
        None => table.rate("rate"),
    }
}

/// Reads the octets of a segment, if the table has them.
pub(super) fn segment_size(table: &mut Reader<'_>) -> Result<Option<u16>, DocumentError> {
    match table.optional_bytes("segment_size")?.map(|Bytes(size)| u16::try_from(size)).transpose() {
        Ok(size) => Ok(size),
        Err(_) => Err(table.refuse("segment_size", "it is larger than any packet", "at most 65000 B")),
    }
}

/// Reads the octets that the links add to each datagram.
pub(super) fn overhead(table: &mut Reader<'_>) -> Result<u16, DocumentError> {
    let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(28))?;
    u16::try_from(overhead)
        .map_err(|_| table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"))
}

/// Reads the settings of a plan: a document whose table `protocol` has this `name`, and keys for `read`.
pub(super) fn plan<S>(
    document: &Document,
    name: &'static str,
    read: impl FnOnce(&mut Reader<'_>) -> Result<S, DocumentError>,
) -> Result<S, DocumentError> {
    let mut top = document.root();
    let mut table = top.table("protocol")?;
    table.choice("name", &[(name, ())])?;
    let settings = read(&mut table)?;
    table.finish()?;
    top.finish()?;
    Ok(settings)
}

/// Turns an engine's error into one of the simulator.
pub(super) fn in_words(error: impl std::error::Error) -> StarError {
    StarError::Engine(error.to_string())
}
