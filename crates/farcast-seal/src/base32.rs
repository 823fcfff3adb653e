//! Crockford's base 32, whose letters and digits are not easily confused with each other.

use alloc::string::String;
use alloc::vec::Vec;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Encodes `octets`, highest bit first. The missing bits of the last letter are 0.
pub(crate) fn encode(octets: &[u8]) -> String {
    let mut text = String::with_capacity((octets.len() * 8).div_ceil(5));
    let (mut held, mut bits) = (0u32, 0);
    for &octet in octets {
        held = held << 8 | u32::from(octet);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(held >> bits));
        }
    }
    if bits > 0 {
        text.push(letter(held << (5 - bits)));
    }
    text
}

/// Decodes `text`. Returns `None` if it has other letters, or if the bits beyond the last whole octet are 5 or more or
/// not 0. Small letters are accepted, and `O` for 0, `I` and `L` for 1.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len() * 5 / 8);
    decode_into(text, &mut octets).then_some(octets)
}

/// Appends the decoded octets to `octets`, and returns `true` if `text` is valid as in [`decode`]. The caller provides
/// the buffer so that it can wipe a secret.
pub(crate) fn decode_into(text: &str, octets: &mut Vec<u8>) -> bool {
    let (mut held, mut bits) = (0u32, 0);
    for letter in text.chars() {
        let Some(value) = value(letter) else { return false };
        held = held << 5 | value;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            octets.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bits < 5 && held == 0
}

/// Returns `true` if `text` is too short or too long for `octets` whole octets, and has only valid letters.
pub(crate) fn is_cut(text: &str, octets: usize) -> bool {
    text.len() != (octets * 8).div_ceil(5) && text.chars().all(|letter| value(letter).is_some())
}

fn letter(value: u32) -> char {
    char::from(ALPHABET[(value & 31) as usize])
}

/// Returns the value of a letter.
pub(crate) fn value(letter: char) -> Option<u32> {
    let letter = match letter.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    ALPHABET.iter().position(|&of| char::from(of) == letter).map(|at| at as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words() {
        // RFC 4648's examples in Crockford's alphabet.
        for (octets, text) in [
            ("", ""),
            ("f", "CR"),
            ("fo", "CSQG"),
            ("foo", "CSQPY"),
            ("foob", "CSQPYRG"),
            ("fooba", "CSQPYRK1"),
        ] {
            assert_eq!(encode(octets.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(octets.as_bytes()));
        }
        assert_eq!(decode("csqpyrki"), decode("CSQPYRK1"));
        assert_eq!(decode("CU"), None);
        assert_eq!(decode("CS"), None, "bits beyond the last octet");
        assert_eq!(decode("C"), None, "a letter too many");
    }
}
