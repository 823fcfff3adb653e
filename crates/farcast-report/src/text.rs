//! Untrusted text: names and sentences that come from the network, a file or the command line.
//!
//! Terminals, pages and logs show such text only by way of this module.

use std::borrow::Cow;

/// Returns `true` for a character that has an effect instead of a shape. These are control characters, line
/// separators, characters that change the display of others (directions, invisible joiners and marks), and
/// noncharacters.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Returns `text` with every character that [is obeyed](is_obeyed) written out, as in `\u{202e}` and `\n`. The result
/// is one line and shows what the text contains.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_obeyed(c) { c.escape_default().collect() } else { String::from(c) };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns `json` with every character that [is obeyed](is_obeyed) inside its strings as an escape, which means the
/// same. Newlines and tabs stay between its parts.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let stays = |c: char| c == '\n' || c == '\t' || !is_obeyed(c);
    if json.chars().all(stays) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if stays(c) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    Cow::Owned(out)
}

/// Makes all strings in `value` [visible].
pub(super) fn visible_strings(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(visible_strings),
        Value::Object(fields) => fields.values_mut().for_each(visible_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jb\nc\u{e9}"), "a\\u{1b}[2Jb\\nc\u{e9}");
    }

    #[test]
    fn a_name_cannot_read_as_another() {
        let directions = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let marks = ['\u{200e}', '\u{200f}', '\u{61c}', '\u{2028}', '\u{2029}', '\u{200b}', '\u{feff}'];
        for hidden in directions.chain(marks) {
            let shown = visible(&format!("a{hidden}b")).into_owned();
            assert!(shown.starts_with("a\\u{") && shown.ends_with("}b"), "{shown}");
        }
        assert_eq!(visible("\u{5d0}\u{4e2d} \u{1f6f0}"), "\u{5d0}\u{4e2d} \u{1f6f0}");
    }

    #[test]
    fn json_means_the_same() {
        let text = "a\u{202e}\u{7f}\u{9b}\u{e0001}\u{1b}\nb\u{5d0}";
        let json = serde_json::to_string_pretty(&[text]).expect("a text");
        let shown = visible_json(&json);
        assert!(!shown.contains(|c| c != '\n' && is_obeyed(c)), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).expect("JSON"), [text]);
    }
}
