//! Proven origin of a sealed message.

/// Host that sealed a message, as the list of trusted keys describes it.
#[derive(Clone, Copy, Debug)]
pub struct Proved<'a> {
    /// Name in the list.
    pub name: &'a str,
    /// Number derived from its key.
    pub number: KeyNumber,
}

/// First 64 bits of a key's digest. The identifiers that protocols use for the key's owner are derived from them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyNumber(pub u64);

impl KeyNumber {
    /// Returns the receiver identifier: 1 to 2^32 - 2. The other values mean nobody.
    pub const fn receiver(self) -> u32 {
        somebody(self.0 >> 32)
    }

    /// Returns the sender identifier: 1 to 2^32 - 2. It differs from the same key's receiver identifier.
    pub const fn sender(self) -> u32 {
        somebody(self.0 & 0xFFFF_FFFF)
    }

    /// Returns the sender identifier of 48 bits.
    pub const fn source(self) -> [u8; 6] {
        let [_, _, octets @ ..] = self.0.to_be_bytes();
        octets
    }
}

const fn somebody(number: u64) -> u32 {
    (number % 0xFFFF_FFFE) as u32 + if number.is_multiple_of(0xFFFF_FFFE) { 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_somebody() {
        for half in [0, 1, 7, 0xFFFF_FFFD, 0xFFFF_FFFE, 0xFFFF_FFFF] {
            let number = KeyNumber(half << 32 | half);
            assert!((1..u32::MAX).contains(&number.receiver()), "{half:#x}");
            assert_eq!(number.receiver(), number.sender());
        }
        let number = KeyNumber(0x0102_0304_0506_0708);
        assert_eq!((number.receiver(), number.sender()), (0x0102_0304, 0x0506_0708));
        assert_eq!(number.source(), [3, 4, 5, 6, 7, 8]);
    }
}
