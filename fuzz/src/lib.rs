//! Helpers for several fuzz targets.

pub mod engines;
pub mod seal;

/// Makes bytes more likely to be a datagram: version, length, no checksum, and with `transmission` the number 1 of a
/// transmission.
pub fn repair(bytes: &mut [u8], transmission: bool) {
    let len = bytes.len() as u16;
    if bytes.len() >= 12 {
        bytes[..2].copy_from_slice(&1u16.to_be_bytes());
        bytes[4..6].copy_from_slice(&len.to_be_bytes());
        bytes[6..8].fill(0);
        if transmission {
            bytes[8..12].copy_from_slice(&1u32.to_be_bytes());
        }
    }
}
