//! Any bytes as a journal: decoding never panics, and what decodes has one encoding.
#![no_main]

use farcast_files::journal::Journal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(journal) = Journal::decode(bytes) {
        assert_eq!(journal.encode(), bytes);
    }
});
