//! Arbitrary octets as the compressed content of a file whose digest they cannot have: the content is refused, no file
//! is delivered, and nothing of the product is left.
#![no_main]

use farcast_files::chunks::Chunks;
use farcast_files::{Durability, Entry, EntryKind, Incoming, Manifest, Options, StoreError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first two octets are the listed size.
    let Some((&[high, low], stored)) = bytes.split_first_chunk() else { return };
    let size = u64::from(u16::from_be_bytes([high, low]));
    let (digest, stored_digest) = ([7; 32], *blake3::hash(stored).as_bytes());
    let entry = Entry {
        path: b"file".to_vec(),
        mode: 0o644,
        mtime_ns: 0,
        kind: EntryKind::Compressed { size, digest, stored: stored.len() as u64, stored_digest },
        parts: Box::default(),
        chunks: Chunks::default(),
    };
    let Ok(manifest) = Manifest::new(vec![entry]) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let product = [manifest.head().as_slice(), stored].concat();
    let options = Options { durability: Durability::NoSync, ..Options::default() };
    let opened = Incoming::open(dir.path(), manifest.id(), product.len() as u64, product.len() as u32, options);
    let mut incoming = opened.expect("an empty directory");
    // No content has this digest.
    assert!(matches!(incoming.store(0, &[&product]), Err(StoreError::BadCompression { .. })));
    assert!(!dir.path().join("file").exists());
    incoming.discard().expect("removed");
    assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
});
