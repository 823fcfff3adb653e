//! Sequence numbers: 32 bits on the wire, 64 bits inside.

/// A sequence number as a segment carries it, modulo 2^32 (RFC 9293 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// Returns the number `octets` further on.
    #[must_use]
    pub const fn plus(self, octets: u32) -> Self {
        Self(self.0.wrapping_add(octets))
    }
}

/// Numbering of one direction. Positions count from the SYN, which has position 0; the first octet of data has
/// position 1. Positions never wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbering {
    initial: u32,
}

impl Numbering {
    pub(crate) const fn new(initial: SequenceNumber) -> Self {
        Self { initial: initial.0 }
    }

    /// Returns the number of position `at` on the wire.
    pub(crate) const fn number(self, at: u64) -> SequenceNumber {
        SequenceNumber(self.initial.wrapping_add(at as u32))
    }

    /// Returns the position of `number` nearest to `near`; `None` if that is before the SYN.
    pub(crate) const fn position(self, number: SequenceNumber, near: u64) -> Option<u64> {
        let ahead = number.0.wrapping_sub(self.initial).wrapping_sub(near as u32).cast_signed();
        near.checked_add_signed(ahead as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_position_within_half_the_space_is_found_again(
            initial: u32, near in 0u64..1 << 50, ahead in -(1i64 << 31)..1i64 << 31,
        ) {
            let numbering = Numbering::new(SequenceNumber(initial));
            if let Some(at) = near.checked_add_signed(ahead) {
                prop_assert_eq!(numbering.position(numbering.number(at), near), Some(at));
            }
        }
    }

    #[test]
    fn what_lies_before_the_syn_has_no_position() {
        let numbering = Numbering::new(SequenceNumber(5));
        assert_eq!(numbering.position(SequenceNumber(4), 1), None);
        assert_eq!(numbering.position(SequenceNumber(5), 1), Some(0));
    }
}
