//! Any text as an identity, a fingerprint or a history: reading never panics, and what was read is written and read again.
#![no_main]

use farcast_seal::{Fingerprint, History, PublicIdentity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(key) = text.parse::<PublicIdentity>() {
        assert_eq!(key.to_string().parse().as_ref(), Ok(&key));
        assert!(
            key.to_string().eq_ignore_ascii_case(text.trim())
                || text.to_ascii_uppercase().contains(['O', 'I', 'L'])
        );
    }
    if let Ok(fingerprint) = text.parse::<Fingerprint>() {
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    }
    if let Some(history) = History::from_text(text) {
        assert_eq!(History::from_text(&history.to_text()), Some(history));
    }
});
