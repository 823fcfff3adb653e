use super::*;
use farcast_core::Run;
use proptest::collection::vec;
use proptest::prelude::*;

fn journal(count: u32, runs: &[(u32, u32)], files: u32) -> Journal {
    let mut held = Bitmap::new(count);
    for run in runs.iter().filter_map(|(first, count)| Run::new(*first, *count)) {
        held.insert_run(run);
    }
    let product_size = u64::from(count) * 100;
    let id = ProductId::from_bytes([7; 32]);
    let stage = if files > 0 { Stage::Placed } else { Stage::Spooling };
    Journal { id, product_size, segment_len: 100, stage, held, finished: Bitmap::full(files) }
}

/// Appends the digest of `body` to it.
fn sealed(body: &[u8]) -> Vec<u8> {
    [body, blake3::hash(body).as_bytes()].concat()
}

#[test]
fn layout_is_as_documented() {
    let bytes = journal(65, &[(0, 2), (5, 60)], 0).encode();
    assert_eq!(bytes.len(), 4 + 32 + 8 + 4 + 1 + (4 + 1 + 4 + 4) + (4 + 1) + 32);
    assert_eq!(bytes[36..49], [0, 0, 0, 0, 0, 0, 0x19, 0x64, 0, 0, 0, 100, 0]);
    assert_eq!(bytes[49..67], [0, 0, 0, 65, RUNS, 0, 0, 0, 4, 0, 2, 3, 60, 0, 0, 0, 0, WORDS]);
    // A bitmap for which runs would be longer.
    let scattered: Vec<_> = (0..32).map(|at| (at * 2, 1)).collect();
    let bytes = journal(65, &scattered, 0).encode();
    assert_eq!(bytes[49..54], [0, 0, 0, 65, WORDS]);
    assert_eq!(bytes[54..70], [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_large_product_that_came_in_order_takes_few_bytes() {
    let lost = [(0, 1_000_000), (1_000_007, 99_000_000)];
    assert!(journal(1 << 27, &lost, 1 << 20).encode().len() < 150);
}

#[test]
fn an_object_without_a_manifest_has_its_name_behind_the_stage() {
    let plain =
        Journal { stage: Stage::Plain { name: b"na".to_vec(), vouched: None }, ..journal(65, &[(3, 60)], 0) };
    let bytes = plain.encode();
    assert_eq!(bytes[48..56], [2, 2, b'n', b'a', 0, 0, 0, 65]);
    assert_eq!(Journal::decode(&bytes), Ok(plain));
    let said = Vouched { digest: [9; 32], mode: 0o640, mtime_ns: -2 };
    let stage = Stage::Plain { name: b"na".to_vec(), vouched: Some(said) };
    let vouched = Journal { stage, ..journal(65, &[(3, 60)], 0) };
    let bytes = vouched.encode();
    assert_eq!(bytes[48..53], [3, 2, b'n', b'a', 9]);
    assert_eq!(bytes[84..98], [1, 0xA0, 255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 65]);
    assert_eq!(Journal::decode(&bytes), Ok(vouched));
}

#[test]
fn damage_is_told() {
    let good = journal(65, &[(3, 60)], 5).encode();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(Journal::decode(&bad).is_err(), "byte {at}");
        assert!(Journal::decode(&good[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn sealed_nonsense_is_told() {
    let good = journal(65, &[(3, 60)], 5).encode();
    let body = &good[..good.len() - DIGEST_LEN];
    let changed = |at: usize, to: u8| {
        let mut body = body.to_vec();
        body[at] = to;
        Journal::decode(&sealed(&body))
    };
    let held = JournalError::BadField { field: "map of segments" };
    assert_eq!(changed(48, 4), Err(JournalError::BadField { field: "stage" }));
    assert_eq!(changed(47, 0), Err(held), "segments of no bytes");
    // Another length, an unknown form, the other form, fewer bytes, no run, a run past the end.
    for (at, to) in [(49, 0xff), (52, 66), (53, 2), (53, WORDS), (57, 1), (59, 0), (59, 63)] {
        assert_eq!(changed(at, to), Err(held), "{at}");
    }
    assert_eq!(changed(54, 0xff), Err(JournalError::Truncated));
    assert_eq!(changed(60, 0xff), Err(JournalError::BadField { field: "map of files" }));
    // A number with more digits than it needs.
    let long = [&body[..57], &[3, 0x83, 0, 60], &body[60..]].concat();
    assert_eq!(Journal::decode(&sealed(&long)), Err(held));
    assert_eq!(Journal::decode(&sealed(&[body, &[0]].concat())), Err(JournalError::TrailingBytes));
    assert_eq!(Journal::decode(&sealed(b"FCJ1")), Err(JournalError::BadMagic));
}

proptest! {
    #[test]
    fn encoding_and_decoding_agree(count in 0..2000_u32, runs in vec((0..2000_u32, 0..90_u32), 0..20), files in 0..200_u32) {
        let journal = journal(count, &runs, files);
        prop_assert_eq!(Journal::decode(&journal.encode()), Ok(journal));
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Journal::decode(&sealed(&[b"FCJ2", bytes.as_slice()].concat()));
        prop_assert!(Journal::decode(&bytes).is_err());
    }
}
