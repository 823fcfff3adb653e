//! Names for people and programs: any octets as text.

use core::fmt::Write;

use crate::manifest::{PARTIAL_SUFFIX, check_path};

/// Returns `name` as text from which the octets can be recovered. Each octet that is not UTF-8 becomes `\xHH`, and a
/// backslash that would look like the start of such an escape becomes `\x5C`. Every other name stays as it is.
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
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{octet:02X}");
        }
    }
    text
}

/// The largest number of octets in a name.
const LONGEST: usize = 255;

/// Returns a safe file name made of `name`, which may be any octets: one component of at most 255 octets. `/` and
/// control characters become `_`. So do leading dots unless `hidden` names are allowed; those of `.`, `..` and of names
/// that receptions reserve always do, as does the dot of the suffix of partial files. A name that is too long is cut
/// and gets a mark made of its digest. An empty name becomes `unnamed-` and `tag`. Octets that are not UTF-8 stay:
/// Linux accepts them.
fn safe_name(name: &[u8], hidden: bool, tag: &str) -> Vec<u8> {
    let plain = |octet: &u8| if matches!(*octet, b'/' | 0..0x20 | 0x7f) { b'_' } else { *octet };
    let mut safe: Vec<u8> = name.iter().map(plain).collect();
    if safe.len() > LONGEST {
        let mark = format!("~{}", &blake3::hash(name).to_hex()[..8]);
        let mut end = LONGEST - mark.len();
        // Not in the middle of a character.
        while end > LONGEST - mark.len() - 4 && safe[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        safe.truncate(end);
        safe.extend(mark.bytes());
    }
    let reserved = check_path(&safe).is_err() || !safe.iter().any(|octet| *octet != b'.');
    if !hidden || reserved {
        safe.iter_mut().take_while(|octet| **octet == b'.').for_each(|octet| *octet = b'_');
    }
    if safe.ends_with(PARTIAL_SUFFIX) {
        let at = safe.len() - PARTIAL_SUFFIX.len();
        safe[at] = b'_';
    }
    if safe.is_empty() { format!("unnamed-{tag}").into_bytes() } else { safe }
}

/// Most directories of a safe path. They cost a receiver far more than a sender.
const MOST_DIRECTORIES: usize = 32;

/// Returns a safe path made of `name`, which may be any octets. Its components are separated by `/` and made safe as by
/// `safe_name`; empty ones are left out. A path has at most 32 directories: further `/` become `_`.
pub fn safe_path(name: &[u8], hidden: bool, tag: &str) -> Vec<u8> {
    let mut components = Vec::new();
    let mut rest = name;
    while let Some(at) =
        rest.iter().position(|octet| *octet == b'/').filter(|_| components.len() < MOST_DIRECTORIES)
    {
        if at > 0 {
            components.push(safe_name(&rest[..at], hidden, tag));
        }
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() || components.is_empty() {
        components.push(safe_name(rest, hidden, tag));
    }
    components.join(&b'/')
}

/// Returns `true` if `text` begins with the escape `\xHH`.
fn is_sign(text: &str) -> bool {
    let octets = text.as_bytes();
    octets.len() >= 4
        && octets[1] == b'x'
        && octets[2..4].iter().all(|octet| octet.is_ascii_digit() || (b'A'..=b'F').contains(octet))
}

#[cfg(test)]
mod tests {
    use super::shown_name;

    /// Recovers the octets of a name from its text, as a program would.
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
    fn a_path_keeps_its_directories_and_leads_nowhere_else() {
        let deep = [b"a/".repeat(40), b"f".to_vec()].concat();
        let cut = [b"a/".repeat(32), [b"a_".repeat(8), b"f".to_vec()].concat()].concat();
        for (name, path) in [
            (&b"d/x/y"[..], &b"d/x/y"[..]),
            (b"/etc/passwd", b"etc/passwd"),
            (b"../../x", b"__/__/x"),
            (b"a//b/./c/..", b"a/b/_/c/__"),
            (b"d/", b"d"),
            (b"/", b"unnamed-tag"),
            (b"", b"unnamed-tag"),
            (b".ssh/.farcast/x.farcast-part", b"_ssh/_farcast/x_farcast-part"),
            (b"a\n/b", b"a_/b"),
            (&deep, &cut),
        ] {
            assert_eq!(super::safe_path(name, false, "tag"), path, "{name:?}");
        }
        assert_eq!(super::safe_path(b".config/x", true, ""), b".config/x");
        assert_eq!(super::safe_path(b".farcast/x", true, ""), b"_farcast/x");
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
