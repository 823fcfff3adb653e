use super::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 1024) as u8).collect()
}

#[test]
fn parts_merge_to_the_digest_of_the_file() {
    for len in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, (3 << 20) + 5, (7 << 20) - 1, 8 << 20] {
        let bytes = pattern(len);
        for step in [1 << 20, 700_001, 4 << 20] {
            let mut hasher = PartHasher::new(len as u64);
            bytes.chunks(step).for_each(|chunk| hasher.update(chunk));
            let (digest, values) = hasher.finish();
            assert_eq!(digest, *blake3::hash(&bytes).as_bytes(), "{len} bytes by {step}");
            let parts = if len > 1 << 20 { len.div_ceil(1 << 20) } else { 0 };
            assert_eq!(values.len(), parts, "{len} bytes by {step}");
        }
    }
}

#[test]
fn files_of_any_size_have_few_parts() {
    for size in [0, 1, 1 << 20, 256 << 20, (256 << 20) + 1, 1 << 40, i64::MAX as u64, u64::MAX] {
        assert!((1..=MAX_PARTS).contains(&part_count(size)), "{size} bytes");
        assert!(part_len(size).is_power_of_two());
    }
    assert_eq!((part_count(1 << 20), part_count((1 << 20) + 1)), (1, 2));
    assert_eq!((part_len(256 << 20), part_len((256 << 20) + 1)), (1 << 20, 2 << 20));
}

#[test]
fn one_value_is_no_tree() {
    assert_eq!((digest_of(&[]), digest_of(&[[1; 32]])), (None, None));
}
