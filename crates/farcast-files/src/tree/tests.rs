use super::*;
use proptest::prelude::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 1024) as u8).collect()
}

fn digest_of(bytes: &[u8], order: &[u64]) -> [u8; 32] {
    let group = |index: u64| {
        let start = (index * GROUP_LEN) as usize;
        &bytes[start..bytes.len().min(start + GROUP_LEN as usize)]
    };
    let mut tree = Tree::new(bytes.len() as u64);
    for index in order {
        tree.insert(*index, group(*index));
    }
    let read = |index, buffer: &mut Vec<u8>| {
        buffer.clear();
        buffer.extend_from_slice(group(index));
        Ok::<_, ()>(())
    };
    tree.root(&mut Vec::new(), read).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_plain_hashing(
        groups in 0..20_u64,
        around in -1025_i64..1025,
        order in Just((0..21_u64).collect::<Vec<_>>()).prop_shuffle(),
        kept in 0..=21_usize,
    ) {
        let len = (groups * GROUP_LEN).saturating_add_signed(around) as usize;
        let bytes = pattern(len);
        let count = (len as u64).div_ceil(GROUP_LEN).max(1);
        // The groups that are left out are read at the end.
        let order: Vec<u64> = order.into_iter().filter(|index| *index < count).take(kept).collect();
        prop_assert_eq!(digest_of(&bytes, &order), *blake3::hash(&bytes).as_bytes());
    }
}

#[test]
fn keeps_few_nodes_when_groups_come_in_order() {
    let mut tree = Tree::new(100 * GROUP_LEN);
    for group in 0..100 {
        tree.insert(group, &pattern(GROUP_LEN as usize));
        assert!(tree.nodes.len() <= 7);
    }
}
