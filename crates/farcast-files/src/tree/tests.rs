use super::*;
use crate::parts::{Grain, PartHasher};
use proptest::prelude::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 1024) as u8).collect()
}

fn group(bytes: &[u8], index: u64) -> &[u8] {
    let start = (index * GROUP_LEN) as usize;
    &bytes[start..bytes.len().min(start + GROUP_LEN as usize)]
}

/// Returns the value of each part of `bytes`. The groups in `order` are inserted; the others are read at the end.
fn values_of(bytes: &[u8], known: usize, order: &[u64]) -> Vec<[u8; 32]> {
    let mut tree = Tree::new(bytes.len() as u64, known);
    for index in order {
        tree.insert(*index, group(bytes, *index));
    }
    let read = |index, buffer: &mut Vec<u8>| {
        buffer.clear();
        buffer.extend_from_slice(group(bytes, index));
        Ok::<_, ()>(())
    };
    (0..tree.parts()).map(|part| tree.value(part, &mut Vec::new(), read).unwrap()).collect()
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
        // Groups that are not inserted are read at the end.
        let order: Vec<u64> = order.into_iter().filter(|index| *index < count).take(kept).collect();
        prop_assert_eq!(values_of(&bytes, 0, &order), vec![*blake3::hash(&bytes).as_bytes()]);
        for grain in [Grain::Coarse, Grain::Fine] {
            let mut hasher = PartHasher::new(len as u64, grain);
            hasher.update(&bytes);
            let (_, parts) = hasher.finish();
            if !parts.is_empty() {
                prop_assert_eq!(values_of(&bytes, parts.len(), &order), parts.to_vec());
            }
        }
    }
}

#[test]
fn keeps_few_nodes_when_groups_come_in_order() {
    let mut tree = Tree::new(100 * GROUP_LEN, 0);
    for group in 0..100 {
        tree.insert(group, &pattern(GROUP_LEN as usize));
        assert!(tree.nodes.len() <= 7);
    }
}

#[test]
fn a_part_is_forgotten_alone() {
    let bytes = pattern(20 * GROUP_LEN as usize);
    let mut tree = Tree::new(bytes.len() as u64, 3);
    (0..20).for_each(|index| tree.insert(index, group(&bytes, index)));
    assert_eq!((tree.parts(), tree.nodes.len()), (3, 3));
    assert_eq!((tree.part_bytes(1), tree.part_bytes(2)), (1 << 20..2 << 20, 2 << 20..20 * GROUP_LEN));
    assert_eq!((tree.part_at((1 << 20) - 1), tree.part_at(1 << 20)), (0, 1));
    tree.set_verified(0);
    tree.clear(1);
    assert_eq!(tree.nodes.keys().copied().collect::<Vec<_>>(), [(2, 4)]);
    assert!(tree.is_verified(0) && !tree.is_verified(1));
    tree.clear(0);
    assert!(!tree.is_verified(0));
}
