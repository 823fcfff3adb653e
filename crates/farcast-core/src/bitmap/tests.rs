use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::Bitmap;
use crate::Run;

#[derive(Debug, Clone)]
enum Op {
    Insert(u32),
    Remove(u32),
    InsertRun(u32, u32),
    RemoveRun(u32, u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0u32..300).prop_map(Op::Insert),
        (0u32..300).prop_map(Op::Remove),
        (0u32..300, 1u32..200).prop_map(|(a, b)| Op::InsertRun(a, b)),
        (0u32..300, 1u32..200).prop_map(|(a, b)| Op::RemoveRun(a, b)),
    ]
}

fn apply(map: &mut Bitmap, model: &mut BTreeSet<u32>, op: &Op) {
    let len = map.len();
    match *op {
        Op::Insert(i) => assert_eq!(map.insert(i), i < len && model.insert(i)),
        Op::Remove(i) => assert_eq!(map.remove(i), model.remove(&i)),
        Op::InsertRun(first, count) => {
            let run = Run::new(first, count).expect("in range");
            let new = run.segments().filter(|&i| i < len && model.insert(i)).count();
            assert_eq!(map.insert_run(run) as usize, new);
        }
        Op::RemoveRun(first, count) => {
            let run = Run::new(first, count).expect("in range");
            let gone = run.segments().filter(|i| model.remove(i)).count();
            assert_eq!(map.remove_run(run) as usize, gone);
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_set(len in 0u32..280, ops in prop::collection::vec(op(), 0..60), probe in 0u32..300) {
        let (mut map, mut model) = (Bitmap::new(len), BTreeSet::new());
        for op in &ops {
            apply(&mut map, &mut model, op);
        }
        prop_assert_eq!(map.count() as usize, model.len());
        prop_assert_eq!(map.next_set(probe), model.range(probe..).next().copied());
        prop_assert_eq!(map.next_clear(probe), (probe..len).find(|i| !model.contains(i)));
        let members: Vec<u32> = map.iter_runs().flat_map(Run::segments).collect();
        prop_assert_eq!(&members, &model.iter().copied().collect::<Vec<_>>());
        let gaps: Vec<u32> = map.iter_gaps().flat_map(Run::segments).collect();
        prop_assert_eq!(gaps, (0..len).filter(|i| !model.contains(i)).collect::<Vec<_>>());
        if let Some(run) = Run::new(probe, 70) {
            prop_assert_eq!(map.count_in(run) as usize, model.range(probe..probe + 70).count());
            let gaps: Vec<u32> = map.gaps_in(run).flat_map(Run::segments).collect();
            let expected: Vec<u32> = run.segments().filter(|i| *i < len && !model.contains(i)).collect();
            prop_assert_eq!(gaps, expected);
        }
        prop_assert_eq!(Bitmap::from_words(map.words().to_vec(), len), Some(map));
    }
}

#[test]
fn words_past_the_end_are_refused() {
    assert_eq!(Bitmap::from_words([1 << 10].to_vec(), 10), None);
    assert!(Bitmap::from_words([1 << 9].to_vec(), 10).is_some());
    assert_eq!(Bitmap::from_words([0, 0].to_vec(), 64), None);
    assert_eq!(Bitmap::from_words(Vec::new(), 1), None);
}

#[test]
fn full_at_word_boundaries() {
    for len in [0, 1, 63, 64, 65, 128] {
        let map = Bitmap::full(len);
        assert!(map.is_full());
        assert_eq!(map.next_clear(0), None);
        assert!(!map.contains(len));
    }
}
