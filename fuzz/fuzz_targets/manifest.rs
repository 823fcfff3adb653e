//! Any bytes as a manifest: decoding never panics, and what decodes has one encoding and only safe paths.
#![no_main]

use farcast_files::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert_eq!(manifest.encode(), bytes);
    for entry in manifest.entries() {
        assert!(!entry.path.starts_with(b"/"));
        assert!(entry.path.split(|&byte| byte == b'/').all(|part| !part.is_empty() && part != b"." && part != b".."));
    }
});
