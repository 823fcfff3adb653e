//! Names for people and programs: any octets as text.

use core::fmt::Write;

/// `name` as text from which it can be had again: each octet that is no UTF-8 is `\xHH`, and so is a backslash that would
/// else begin such a sign. Every other name is itself.
pub fn shown_name(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\\') {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            text.push_str(if is_sign(from) { r"\x5C" } else { "\\" });
            rest = &from[1..];
        }
        text.push_str(rest);
        for octet in chunk.invalid() {
            // A String takes all that is written.
            let _ = write!(text, "\\x{octet:02X}");
        }
    }
    text
}

/// Whether `text` begins with `\xHH`.
fn is_sign(text: &str) -> bool {
    let octets = text.as_bytes();
    octets.len() >= 4
        && octets[1] == b'x'
        && octets[2..4].iter().all(|octet| octet.is_ascii_digit() || (b'A'..=b'F').contains(octet))
}

#[cfg(test)]
mod tests {
    use super::shown_name;

    /// What a program does that wants the name itself.
    fn octets(shown: &str) -> Vec<u8> {
        let (mut octets, mut rest) = (Vec::new(), shown.as_bytes());
        while let Some((&first, behind)) = rest.split_first() {
            if super::is_sign(core::str::from_utf8(rest).unwrap_or("")) {
                let digits = core::str::from_utf8(&rest[2..4]).expect("ASCII");
                octets.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = &rest[4..];
            } else {
                octets.push(first);
                rest = behind;
            }
        }
        octets
    }

    #[test]
    fn every_name_can_be_had_again_and_is_itself_where_it_can_be() {
        for (name, shown) in [
            (&b"plain"[..], "plain"),
            ("gr\u{fc}n".as_bytes(), "gr\u{fc}n"),
            (b"a\\b\\xg\\x4", "a\\b\\xg\\x4"),
            (b"gr\xFCn", r"gr\xFCn"),
            (b"gr\\xFCn", r"gr\x5CxFCn"),
            (b"\xC3", r"\xC3"),
            (b"\xC3\\xC3", r"\xC3\x5CxC3"),
            (b"", ""),
        ] {
            assert_eq!(shown_name(name), shown);
            assert_eq!(octets(shown), name);
        }
    }
}
