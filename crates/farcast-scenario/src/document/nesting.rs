//! Depth of nested brackets, checked before anything is built.
//!
//! A recursive parser, and a tree that is dropped recursively, need stack for every level. The limit has to hold for
//! any text, also for text that is not TOML. This check therefore looks only at brackets, and at the strings and
//! comments that hide brackets.

/// Returns the offset of the first bracket that lies more than `limit` deep.
///
/// Brackets that do not match stay open, so in a text that is not TOML the offset may be too early, never too late.
pub(super) fn first_beyond(text: &str, limit: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    // True if the outermost open bracket is that of a table's header, which ends with its line.
    let mut header = false;
    let mut line_begins = true;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let mut next = at + 1;
        match byte {
            b'[' | b'{' => {
                header |= line_begins && open.is_empty() && byte == b'[';
                open.push(byte);
                if open.len() > limit {
                    return Some(at);
                }
            }
            b']' | b'}' => {
                open.pop_if(|last| *last + 2 == byte);
                header &= !open.is_empty();
            }
            b'\n' if header => {
                open.clear();
                header = false;
            }
            b'#' => next = find(bytes, at, b"\r\n"),
            b'"' | b'\'' => next = string_end(bytes, at),
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b'.' | b'=' => {}
            // A quote within a word begins no string.
            _ => next = find(bytes, next, b".=,[]{} \t#\r\n"),
        }
        line_begins = byte == b'\n' || line_begins && matches!(byte, b' ' | b'\t');
        at = next;
    }
    None
}

/// Returns the offset of the first of `any` at or after `from`, or the end.
fn find(bytes: &[u8], from: usize, any: &[u8]) -> usize {
    bytes[from..].iter().position(|byte| any.contains(byte)).map_or(bytes.len(), |distance| from + distance)
}

/// Returns the offset behind the string that begins at `from` with its quote.
pub(super) fn string_end(bytes: &[u8], from: usize) -> usize {
    let quote = bytes[from];
    let long = bytes[from..].starts_with(&[quote; 3]);
    let closing: &[u8] = if long { &[quote; 3] } else { &[quote] };
    let mut at = from + closing.len();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => {
                at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'\\' | b'"')));
            }
            // A string that is not closed ends with its line.
            b'\n' if !long => return at,
            _ if bytes[at..].starts_with(closing) => {
                at += closing.len();
                // A long string may end with up to two quotes of its own.
                let own = if long {
                    bytes[at..].iter().take(2).take_while(|byte| **byte == quote).count()
                } else {
                    0
                };
                return at + own;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}
