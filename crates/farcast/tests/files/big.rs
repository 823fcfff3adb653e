//! A file above 4 GiB.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::common::{self, Place};

const LEN: u64 = 9 << 29;
const BLOCK: u64 = 1 << 20;
/// Offsets of bytes that are not zero: at the ends, in the middle, about 4 GiB, and beyond.
const REAL: [u64; 5] = [0, LEN / 2 + 12_345, (1 << 32) - BLOCK / 2, (1 << 32) + 77_777_777, LEN - BLOCK];

fn block(path: &Path, at: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    bytes
}

#[test]
fn a_sparse_file_above_4_gib() {
    let place = Place::new();
    let path = place.path("sparse.bin");
    let file = File::create(&path).unwrap();
    file.set_len(LEN).unwrap();
    for at in REAL {
        file.write_all_at(&common::noise(at, BLOCK as usize), at).unwrap();
    }
    drop(file);
    let receiver = place.receive("ant", &["--no-sync"]);
    let sent = place.send(&[&path], &["--rate", "max", "--receivers", "ant"]).succeed().summary();
    let got = receiver.succeed().summary();
    assert!(sent["size_bytes"].as_u64().unwrap() > LEN, "{sent}");
    assert_eq!(got["complete"], true, "verified against the digest of the whole file: {got}");
    let copy = place.path("ant/sparse.bin");
    let meta = copy.metadata().unwrap();
    assert_eq!(meta.len(), LEN);
    // The store has verified the digest. The blocks and the holes between them are compared once more here.
    for at in REAL.into_iter().chain([BLOCK * 2, 1 << 31, (1 << 32) + BLOCK]) {
        assert!(block(&path, at) == block(&copy, at), "block at {at} differs");
    }
    assert!(meta.blocks() * 512 < 64 << 20, "{} bytes are on disk: holes were filled", meta.blocks() * 512);
}
