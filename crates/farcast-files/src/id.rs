//! The identity of a product.

use core::fmt;

/// The identity of a product: BLAKE3 of its whole head (magic, length and manifest).
///
/// The manifest holds the digest of every file, so two products with the same id have the same content. The text form
/// has 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProductId([u8; 32]);

impl ProductId {
    /// Creates an id from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Computes the id of the product whose head is `head`.
    pub fn of_head(head: &[u8]) -> Self {
        Self(*blake3::hash(head).as_bytes())
    }

    /// Parses the 64 lowercase hexadecimal digits of an id.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let mut id = [0; 32];
        if text.len() != 2 * id.len() {
            return None;
        }
        for (byte, digits) in id.iter_mut().zip(text.as_chunks::<2>().0) {
            let digit = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
            *byte = (digit(digits[0])? * 16 + digit(digits[1])?) as u8;
        }
        Some(Self(id))
    }

    /// Returns the first 8 hexadecimal digits, which are part of the names of partial files.
    pub(crate) fn tag(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProductId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::ProductId;

    #[test]
    fn an_id_is_found_again_in_its_digits() {
        let id = ProductId::of_head(b"head");
        let text = id.to_string();
        assert_eq!(ProductId::from_hex(text.as_bytes()), Some(id));
        for bad in [&text[1..], &text.to_uppercase(), &text.replace(&text[..1], "g"), ""] {
            assert_eq!(ProductId::from_hex(bad.as_bytes()), None, "{bad}");
        }
    }
}
