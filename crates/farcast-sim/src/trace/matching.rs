//! Matching of packets that arrive from a terminal with packets that left it.

use std::collections::{BTreeMap, VecDeque};

/// Maximum number of remembered packets of one terminal. If there are more, the oldest counts as lost.
const UNDER_WAY: usize = 2048;

/// Answers under way: the digests of each receiver's answers, with their identifications.
#[derive(Clone, Debug, Default)]
pub(super) struct Matching {
    under_way: BTreeMap<u32, VecDeque<(u64, u16)>>,
}

impl Matching {
    /// Notes that `receiver` has sent `octets` under the identification `id`.
    pub(super) fn left(&mut self, receiver: u32, octets: &[u8], id: u16) {
        let answers = self.under_way.entry(receiver).or_default();
        if answers.len() == UNDER_WAY {
            answers.pop_front();
        }
        answers.push_back((digest(octets), id));
    }

    /// Returns the identification of the first of `receiver`'s answers under way with these `octets`. If an answer was
    /// lost and then repeated in the same octets, the two cannot be told apart.
    pub(super) fn arrived(&mut self, receiver: u32, octets: &[u8]) -> Option<u16> {
        let answers = self.under_way.get_mut(&receiver)?;
        let digest = digest(octets);
        let index = answers.iter().position(|&(other, _)| other == digest)?;
        answers.remove(index).map(|(_, id)| id)
    }
}

/// Returns the 64-bit FNV-1a hash of `octets`.
fn digest(octets: &[u8]) -> u64 {
    octets.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_fnv_1a() {
        // Values published with the function.
        for (text, expected) in
            [("", 0xCBF2_9CE4_8422_2325), ("a", 0xAF63_DC4C_8601_EC8C), ("foobar", 0x8594_4171_F739_67E8)]
        {
            assert_eq!(digest(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn alike_answers_arrive_in_their_order_and_old_ones_are_forgotten() {
        let mut matching = Matching::default();
        for id in 0..2092 {
            matching.left(4, b"nak", id);
        }
        // The last 2048 are remembered.
        assert_eq!((matching.arrived(4, b"nak"), matching.arrived(4, b"nak")), (Some(44), Some(45)));
        assert_eq!((matching.arrived(4, b"ack"), matching.arrived(5, b"nak")), (None, None));
    }
}
