//! Who has sealed a message, where messages are sealed.

/// Who has sealed a message, as lists of keys know it.
#[derive(Clone, Copy, Debug)]
pub struct Proved<'a> {
    /// What the list calls it.
    pub name: &'a str,
    /// What follows from its key.
    pub number: KeyNumber,
}

/// 64 bits of a key's digest, from which follow the numbers by which protocols know who has the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyNumber(pub u64);

impl KeyNumber {
    /// As a receiver: 1 to 2^32 - 2, of which others mean nobody.
    pub const fn receiver(self) -> u32 {
        somebody(self.0 >> 32)
    }

    /// As a sender, which is somebody else than the receiver that has the same key: 1 to 2^32 - 2.
    pub const fn sender(self) -> u32 {
        somebody(self.0 & 0xFFFF_FFFF)
    }

    /// As a sender, in 48 bits.
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
