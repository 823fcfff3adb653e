use super::*;

/// Returns pseudorandom bytes that depend on `seed` alone.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn list(bytes: &[u8], piece: usize) -> Chunks {
    let mut lister = Lister::new(bytes.len() as u64);
    bytes.chunks(piece).for_each(|piece| lister.update(piece));
    lister.finish()
}

#[test]
fn a_list_does_not_depend_on_how_the_bytes_come() {
    let bytes = noise(3_000_000, 1);
    let whole = list(&bytes, bytes.len());
    assert_eq!(whole.list().iter().map(|chunk| u64::from(chunk.len)).sum::<u64>(), 3_000_000);
    assert!((20..=90).contains(&whole.list().len()), "{}", whole.list().len());
    for piece in [1000, 65_536, 1 << 20] {
        assert_eq!(list(&bytes, piece), whole);
    }
}

#[test]
fn what_is_inserted_changes_few_chunks() {
    let bytes = noise(8_000_000, 2);
    let before = list(&bytes, 1 << 20);
    for at in [0, 4_000_001, 7_999_999] {
        let after = [&bytes[..at], &noise(100_001, 3), &bytes[at..]].concat();
        let after = list(&after, 1 << 20);
        let known = |chunk: &&Chunk| before.list().contains(chunk);
        let kept: u64 = after.list().iter().filter(known).map(|chunk| u64::from(chunk.len)).sum();
        assert!(kept > 8_000_000 - 600_000, "{kept} octets of 8,000,000 with an insertion at {at}");
    }
}

#[test]
fn the_boundaries_are_those_of_every_version() {
    // Sender and receiver cut independently, so other boundaries would need a new kind of manifest entry.
    let list = list(&noise(1_000_000, 4), 1 << 20);
    let lens: Vec<u32> = list.list().iter().map(|chunk| chunk.len).collect();
    assert_eq!((list.exponent(), lens), (16, PINNED.to_vec()));
}

const PINNED: [u32; 14] =
    [67351, 79851, 70911, 86241, 116_256, 80612, 75146, 73654, 68671, 39913, 65783, 58776, 90857, 25978];

#[test]
fn long_files_have_longer_chunks_and_short_ones_no_list() {
    let sizes = [0, LEAST_SIZE - 1, LEAST_SIZE, 4 << 30, (4 << 30) + 65_536, 1 << 40, u64::MAX];
    let exponents = [None, None, Some(16), Some(16), Some(17), Some(22), Some(22)];
    assert_eq!(sizes.map(exponent_for), exponents);
    assert!(list(&noise(1000, 5), 1000).is_empty());
}

#[test]
fn a_list_that_cannot_be_of_the_file_is_refused() {
    let chunk = |len| Chunk { len, digest: [1; 8] };
    let new = |exponent, lens: &[u32], size| {
        Chunks::new(exponent, lens.iter().map(|&len| chunk(len)).collect(), size).is_some()
    };
    assert!(new(16, &[65_536, 262_144, 1], 327_681));
    assert!(!new(16, &[], 0), "nothing");
    assert!(!new(16, &[262_144, 65_536], 327_681), "another sum");
    assert!(!new(16, &[262_145, 65_536], 327_681), "too long a chunk");
    assert!(!new(16, &[16_383, 262_144], 278_527), "too short a chunk in the middle");
    assert!(!new(16, &[262_144, 0], 262_144), "an empty chunk");
    assert!(!new(16, &[65_536, 65_536], 131_072), "of a file that is too short for a list");
    for exponent in [0, 15, 23, 31, 32, 255] {
        assert!(!new(exponent, &[200_000, 200_000], 400_000), "{exponent}");
    }
}
