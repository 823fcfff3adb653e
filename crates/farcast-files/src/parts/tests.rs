use super::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 1024) as u8).collect()
}

#[test]
fn parts_merge_to_the_digest_of_the_file() {
    for (grain, least) in [(Grain::Coarse, 1 << 20), (Grain::Fine, 128 << 10)] {
        merge(grain, least);
    }
}

fn merge(grain: Grain, least: usize) {
    for len in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, (3 << 20) + 5, (7 << 20) - 1, 8 << 20] {
        let bytes = pattern(len);
        for step in [1 << 20, 700_001, 4 << 20] {
            let mut hasher = PartHasher::new(len as u64, grain);
            bytes.chunks(step).for_each(|chunk| hasher.update(chunk));
            let (digest, values) = hasher.finish();
            assert_eq!(digest, *blake3::hash(&bytes).as_bytes(), "{len} bytes by {step}");
            let parts = if len > least { len.div_ceil(least) } else { 0 };
            assert_eq!(values.len(), parts, "{len} bytes by {step}");
        }
    }
}

#[test]
fn files_of_any_size_have_few_parts() {
    let part_of = |size, grain| (part_len(size, grain), part_count(size, grain));
    for size in [0, 1, 1 << 20, 256 << 20, (256 << 20) + 1, 1 << 40, i64::MAX as u64, u64::MAX] {
        for (grain, most) in [(Grain::Coarse, 256), (Grain::Fine, 4096)] {
            let (len, count) = part_of(size, grain);
            assert!((1..=most).contains(&count) && len.is_power_of_two(), "{size} bytes");
            // The number of parts determines their length.
            let known = if count > 1 { Some(grain) } else { None };
            assert_eq!(Grain::of(size, count as usize), known, "{size} bytes");
        }
    }
    let mib = 1 << 20;
    assert_eq!([mib, mib + 1].map(|size| part_of(size, Grain::Coarse)), [(mib, 1), (mib, 2)]);
    assert_eq!([256 * mib, 256 * mib + 1].map(|size| part_of(size, Grain::Coarse).0), [mib, 2 * mib]);
    assert_eq!([mib, mib + 1].map(|size| part_of(size, Grain::Fine)), [(mib / 8, 8), (mib / 8, 9)]);
    assert_eq!([512 * mib, 512 * mib + 1].map(|size| part_of(size, Grain::Fine).0), [mib / 8, mib / 4]);
    assert_eq!((Grain::of(mib, 3), Grain::of(mib, 0), Grain::of(mib, 1)), (None, None, None));
}

#[test]
fn one_value_is_no_tree() {
    assert_eq!((digest_of(&[]), digest_of(&[[1; 32]])), (None, None));
}
