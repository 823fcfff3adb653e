//! Any bytes as a manifest: decoding never panics, and what decodes has one encoding, only safe paths, and of files no more than they
//! have.
#![no_main]

use farcast_files::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert_eq!(manifest.encode(), bytes);
    assert!(manifest.content_len() <= manifest.files_len() && i64::try_from(manifest.files_len()).is_ok());
    for entry in manifest.entries() {
        assert!(!entry.path.starts_with(b"/"));
        assert_eq!(entry.stored() < entry.size(), entry.is_compressed());
        assert!(entry.path.split(|&byte| byte == b'/').all(|part| !part.is_empty() && part != b"." && part != b".."));
    }
});
