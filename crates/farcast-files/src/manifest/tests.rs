use super::*;
use crate::chunks::{Chunk, Chunks};
use crate::parts::{Grain, PartHasher};
use hex_literal::hex;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn directory(path: &[u8]) -> Entry {
    Entry {
        path: path.to_vec(),
        mode: 0o755,
        mtime_ns: 1,
        kind: EntryKind::Directory,
        parts: Box::default(),
        chunks: Chunks::default(),
    }
}

fn file(path: &[u8], size: u64) -> Entry {
    let kind = EntryKind::File { size, digest: [0x11; 32] };
    Entry {
        path: path.to_vec(),
        mode: 0o644,
        mtime_ns: -1,
        kind,
        parts: Box::default(),
        chunks: Chunks::default(),
    }
}

/// Encodes `entries` without checking them.
fn raw(entries: Vec<Entry>) -> Vec<u8> {
    Manifest { entries, ..Manifest::default() }.encode()
}

fn refused(entries: Vec<Entry>) -> ManifestError {
    Manifest::decode(&raw(entries)).unwrap_err()
}

/// Encoding made by hand from the table in the module's documentation.
const VECTOR: [u8; 4 + 14 + 56] = hex!(
    "00000002"
    "00 01ed 0000000000000001 0001 64"
    "01 01a4 ffffffffffffffff 0003 642f61 0000000000000003"
    "1111111111111111111111111111111111111111111111111111111111111111"
);

#[test]
fn hand_worked_vector() {
    let manifest = Manifest::new(vec![file(b"d/a", 3), directory(b"d")]).unwrap();
    assert_eq!(manifest.encode(), VECTOR);
    assert_eq!(Manifest::decode(&VECTOR).unwrap(), manifest);
    assert_eq!(manifest.head()[..8], hex!("46434d31 0000004a"));
    assert_eq!((manifest.head_len(), manifest.content_len(), manifest.product_size()), (82, 3, 85));
    assert_eq!(Manifest::head_len_of(&hex!("46434d31 0000004a")), Ok(82));
}

#[test]
fn every_cut_is_told() {
    for len in 0..VECTOR.len() {
        let found = Manifest::decode(&VECTOR[..len]);
        assert!(matches!(found, Err(ManifestError::Truncated { .. })), "{len}: {found:?}");
    }
    let longer = [VECTOR.as_slice(), &[0; 3]].concat();
    assert_eq!(Manifest::decode(&longer), Err(ManifestError::TrailingBytes { count: 3 }));
}

#[test]
fn claims_are_not_believed() {
    assert_eq!(
        Manifest::decode(&hex!("ffffffff")),
        Err(ManifestError::TooManyEntries { count: 0xffff_ffff })
    );
    assert_eq!(Manifest::decode(&hex!("00100000")), Err(ManifestError::Truncated { offset: 4 }));
    assert_eq!(Manifest::head_len_of(b"FCM2aaaa"), Err(ManifestError::BadMagic));
    assert_eq!(Manifest::head_len_of(b"FCM1aaaa"), Err(ManifestError::TooLong { len: 0x6161_6161 }));
}

#[test]
fn paths_that_are_refused() {
    let long = vec![b'a'; 256];
    let deep = vec![b"ab/".as_slice(); 1366].concat();
    let cases: [(&[u8], PathProblem); 15] = [
        (b"", PathProblem::Empty),
        (b"/etc/passwd", PathProblem::Absolute),
        (b"a//b", PathProblem::EmptyComponent),
        (b"a/", PathProblem::EmptyComponent),
        (b".", PathProblem::Dots),
        (b"..", PathProblem::Dots),
        (b"a/../b", PathProblem::Dots),
        (b"a/.", PathProblem::Dots),
        (b"a\0b", PathProblem::Nul),
        (&long, PathProblem::ComponentTooLong),
        (&deep, PathProblem::TooLong),
        (b".farcast", PathProblem::Reserved),
        (b".farcast/x", PathProblem::Reserved),
        (b"a/.farcast", PathProblem::Reserved),
        (b".a.01234567.farcast-part", PathProblem::Reserved),
    ];
    for (path, expected) in cases {
        let found = refused(vec![file(path, 1)]);
        assert!(
            matches!(found, ManifestError::BadPath { entry: 0, problem, .. } if problem == expected),
            "{}: {found:?}",
            path.escape_ascii()
        );
    }
}

#[test]
fn entries_that_do_not_fit_together() {
    let twice = refused(vec![file(b"a", 1), file(b"a", 1)]);
    assert_eq!(twice, ManifestError::Duplicate { entry: 1, path: b"a".to_vec() });
    let order = refused(vec![file(b"b", 1), file(b"a", 1)]);
    assert_eq!(order, ManifestError::OutOfOrder { entry: 1 });
    // "a-b" would come between "a" and "a/b" if bytes were compared.
    let below = refused(vec![file(b"a", 1), file(b"a/b", 1), file(b"a-b", 1)]);
    assert_eq!(below, ManifestError::BelowFile { entry: 1, path: b"a/b".to_vec() });
    assert!(Manifest::decode(&raw(vec![directory(b"a"), file(b"a/b", 1), file(b"a-b", 1)])).is_ok());
    let half = i64::MAX as u64 / 2 + 1;
    assert_eq!(refused(vec![file(b"a", half), file(b"b", half)]), ManifestError::SizeOverflow { entry: 1 });
    assert_eq!(refused(vec![file(b"a", u64::MAX)]), ManifestError::SizeOverflow { entry: 0 });
    let set_user_id = Entry { mode: 0o4755, ..file(b"a", 1) };
    assert_eq!(refused(vec![set_user_id]), ManifestError::BadMode { entry: 0, mode: 0o4755 });
    let mut bytes = raw(vec![directory(b"a")]);
    bytes[4] = 10;
    assert_eq!(Manifest::decode(&bytes), Err(ManifestError::UnknownKind { entry: 0, kind: 10 }));
}

/// Returns the entry of a file of `size` bytes that is compressed to `stored` bytes.
fn compressed(size: u64, stored: u64) -> Entry {
    let (digest, stored_digest) = ([0x11; 32], [0x22; 32]);
    Entry { kind: EntryKind::Compressed { size, digest, stored, stored_digest }, ..file(b"z", 0) }
}

/// Encoding made by hand from the table in the module's documentation.
const COMPRESSED: [u8; 4 + 14 + 80] = hex!(
    "00000001"
    "07 01a4 ffffffffffffffff 0001 7a 0000000000000300"
    "1111111111111111111111111111111111111111111111111111111111111111"
    "0000000000000201"
    "2222222222222222222222222222222222222222222222222222222222222222"
);

#[test]
fn of_a_compressed_file_both_lengths_are_known() {
    let manifest = Manifest::new(vec![compressed(0x300, 0x201)]).unwrap();
    assert_eq!(manifest.encode(), COMPRESSED);
    assert_eq!(Manifest::decode(&COMPRESSED).unwrap(), manifest);
    assert_eq!((manifest.files_len(), manifest.content_len()), (0x300, 0x201));
    assert_eq!(manifest.product_size(), manifest.head_len() + 0x201);
    assert_eq!(manifest.compressed(), Compressed { files: 1, size: 0x300, stored: 0x201 });
    for len in 0..COMPRESSED.len() {
        let found = Manifest::decode(&COMPRESSED[..len]);
        assert!(matches!(found, Err(ManifestError::Truncated { .. })), "{len}: {found:?}");
    }
    // The parts divide the compressed content.
    for (grain, kind) in [(Grain::Coarse, 8), (Grain::Fine, 9)] {
        let parted = parted(grain);
        let (stored, stored_digest) = (parted.size(), parted.digest().unwrap());
        let kind_of = EntryKind::Compressed { size: 9_000_000, digest: [1; 32], stored, stored_digest };
        let entry = Entry { kind: kind_of, ..parted };
        let bytes = Manifest::new(vec![entry.clone()]).unwrap().encode();
        assert_eq!((bytes[4], bytes.len()), (kind, 4 + 13 + 1 + 80 + entry.parts.len() * 32));
        assert_eq!(Manifest::decode(&bytes).unwrap().entries(), [entry]);
        let mut damaged = bytes;
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(Manifest::decode(&damaged), Err(ManifestError::BadParts { entry: 0 }));
    }
}

#[test]
fn what_is_compressed_is_shorter_and_has_no_chunks() {
    for (size, stored) in [(10, 0), (10, 10), (10, 11), (0, 0), (0, 1), (1, 1)] {
        let bad = ManifestError::BadCompression { entry: 0 };
        assert_eq!(refused(vec![compressed(size, stored)]), bad, "{size} {stored}");
    }
    assert!(Manifest::decode(&raw(vec![compressed(2, 1)])).is_ok());
    // The sum of the sizes is limited even if the product stores few bytes.
    let half = i64::MAX as u64 / 2 + 1;
    let other = Entry { path: b"zz".to_vec(), ..compressed(half, 1) };
    let overflow = ManifestError::SizeOverflow { entry: 1 };
    assert_eq!(refused(vec![compressed(half, 1), other]), overflow);
    assert_eq!(refused(vec![compressed(u64::MAX, 1)]), ManifestError::SizeOverflow { entry: 0 });
    let chunks = Chunks::new(16, vec![Chunk { len: 262_144, digest: [9; 8] }].into(), 262_144).unwrap();
    let chunked = Entry { chunks, ..compressed(262_144, 1000) };
    assert_eq!(Manifest::new(vec![chunked]), Err(ManifestError::BadChunks { entry: 0 }));
}

/// Returns the entry of a file with right part values: two coarse parts, or twelve fine ones.
fn parted(grain: Grain) -> Entry {
    let mut hasher = PartHasher::new(1_500_000, grain);
    hasher.update(&vec![7; 1_500_000]);
    let (digest, parts) = hasher.finish();
    Entry { kind: EntryKind::File { size: 1_500_000, digest }, parts, ..file(b"p", 0) }
}

#[test]
fn fine_parts_are_another_kind() {
    let fine = parted(Grain::Fine);
    let bytes = Manifest::new(vec![fine.clone()]).unwrap().encode();
    assert_eq!((bytes[4], bytes.len()), (5, 4 + 13 + 1 + 40 + 12 * 32));
    assert_eq!(Manifest::decode(&bytes).unwrap().entries(), std::slice::from_ref(&fine));
    let list = vec![Chunk { len: 250_000, digest: [9; 8] }; 6];
    let listed = Entry { chunks: Chunks::new(16, list.into(), 1_500_000).unwrap(), ..fine };
    let bytes = Manifest::new(vec![listed.clone()]).unwrap().encode();
    assert_eq!(bytes[4], 6);
    assert_eq!(Manifest::decode(&bytes).unwrap().entries(), [listed]);
    // A file of one part must not have a kind with parts.
    let mut bytes = raw(vec![file(b"a", 1000)]);
    bytes[4] = 5;
    assert_eq!(Manifest::decode(&bytes), Err(ManifestError::BadParts { entry: 0 }));
}

#[test]
fn parts_have_to_make_the_digest() {
    let good = parted(Grain::Coarse);
    let bytes = Manifest::new(vec![good.clone()]).unwrap().encode();
    assert_eq!((bytes[4], bytes.len()), (2, 4 + 13 + 1 + 40 + 2 * 32));
    assert_eq!(Manifest::decode(&bytes).unwrap().entries(), std::slice::from_ref(&good));
    // A larger file may come without part values.
    let plain = Entry { parts: Box::default(), ..good.clone() };
    assert_eq!(Manifest::decode(&raw(vec![plain])).unwrap().entries()[0].kind, good.kind);
    let bad = ManifestError::BadParts { entry: 0 };
    for at in [bytes.len() - 1, bytes.len() - 40, bytes.len() - 70] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert_eq!(Manifest::decode(&damaged), Err(bad.clone()), "byte {at}");
    }
    let swapped: Box<[_]> = good.parts.iter().rev().copied().collect();
    assert_eq!(refused(vec![Entry { parts: swapped, ..good.clone() }]), bad);
    assert_eq!(refused(vec![Entry { kind: file(b"p", 1 << 20).kind, ..good.clone() }]), bad);
    assert_eq!(Manifest::new(vec![Entry { parts: Box::new([[1; 32]]), ..good }]), Err(bad));
}

#[test]
fn chunks_have_to_make_the_size() {
    let chunk = |len| Chunk { len, digest: [9; 8] };
    let list = |lens: &[u32]| {
        let sum = lens.iter().map(|&len| u64::from(len)).sum();
        Chunks::new(16, lens.iter().map(|&len| chunk(len)).collect(), sum).unwrap()
    };
    let good = Entry { chunks: list(&[65_536, 200_000, 5]), ..file(b"c", 265_541) };
    let bytes = Manifest::new(vec![good.clone()]).unwrap().encode();
    assert_eq!((bytes[4], bytes.len()), (3, 4 + 13 + 1 + 40 + 5 + 3 * 12));
    assert_eq!(Manifest::decode(&bytes).unwrap().entries(), std::slice::from_ref(&good));
    let both = Entry { chunks: list(&[250_000; 6]), ..parted(Grain::Coarse) };
    let encoded = Manifest::new(vec![both.clone()]).unwrap().encode();
    assert_eq!((encoded[4], Manifest::decode(&encoded).unwrap().entries()), (4, &[both][..]));
    let bad = ManifestError::BadChunks { entry: 0 };
    // The average, how many there are, and each length.
    for (at, to) in [(58, 15), (58, 23), (62, 2), (63, 1), (66, 1), (78, 99), (90, 6)] {
        let mut damaged = bytes.clone();
        damaged[at] = to;
        let refused = Manifest::decode(&damaged);
        let cut = matches!(refused, Err(ManifestError::TrailingBytes { .. }));
        assert!(refused == Err(bad.clone()) || cut, "byte {at}: {refused:?}");
    }
    let mut endless = bytes.clone();
    endless[59] = 0xFF;
    assert!(matches!(Manifest::decode(&endless), Err(ManifestError::Truncated { .. })));
    assert_eq!(
        Manifest::new(vec![Entry { chunks: list(&[262_144, 5]), ..file(b"c", 265_541) }]),
        Err(bad.clone())
    );
    assert_eq!(Manifest::new(vec![Entry { chunks: list(&[262_144]), ..directory(b"c") }]), Err(bad));
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let kind = prop_oneof![
        Just(EntryKind::Directory),
        (0..1_u64 << 40, any::<[u8; 32]>()).prop_map(|(size, digest)| EntryKind::File { size, digest }),
        (2..1_u64 << 40, any::<[u8; 32]>(), any::<u64>(), any::<[u8; 32]>()).prop_map(
            |(size, digest, stored, stored_digest)| EntryKind::Compressed {
                size,
                digest,
                stored: 1 + stored % (size - 1),
                stored_digest,
            }
        ),
    ];
    // Each name is one component; no name is below another.
    let name = vec(1..=255_u8, 1..40).prop_map(|mut name| {
        name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'_');
        name.push(b'x');
        name
    });
    btree_map(name, (0..=0o777_u16, any::<i64>(), kind), 0..20).prop_map(|map| {
        let entry = |(path, (mode, mtime_ns, kind))| Entry {
            path,
            mode,
            mtime_ns,
            kind,
            parts: Box::default(),
            chunks: Chunks::default(),
        };
        map.into_iter().map(entry).collect()
    })
}

proptest! {
    #[test]
    fn encoding_and_decoding_agree(entries in entries()) {
        let manifest = Manifest::new(entries).unwrap();
        let bytes = manifest.encode();
        prop_assert_eq!(manifest.head_len(), bytes.len() as u64 + 8);
        prop_assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(manifest) = Manifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }

    #[test]
    fn any_change_is_survived(entries in entries(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = Manifest::new(entries).unwrap().encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(manifest) = Manifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }
}
