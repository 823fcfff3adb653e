//! Sets of receivers as ascending lists without duplicates.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::Among;

/// Returns the position of the first number in `sorted` that is not below `value`, found by doubling steps from the
/// front.
fn seek(sorted: &[u32], value: u32) -> usize {
    let mut bound = 1;
    while bound < sorted.len() && sorted[bound] < value {
        bound *= 2;
    }
    let low = bound / 2;
    low + sorted[low..bound.min(sorted.len())].partition_point(|&number| number < value)
}

/// Appends to `lost` the receivers that `all` and `among` have in common.
///
/// Each list is searched for the head of the other, so the shorter one sets the cost.
pub(super) fn answer(mut all: &[u32], among: Among<'_>, lost: &mut Vec<u32>) {
    let Among::These(mut asked) = among else {
        lost.extend_from_slice(all);
        return;
    };
    while let (Some(&x), Some(&y)) = (all.first(), asked.first()) {
        match x.cmp(&y) {
            Ordering::Less => all = &all[seek(all, y)..],
            Ordering::Greater => asked = &asked[seek(asked, x)..],
            Ordering::Equal => {
                lost.push(x);
                (all, asked) = (&all[1..], &asked[1..]);
            }
        }
    }
}

/// Removes the members of `other` from `set`.
pub(super) fn subtract(set: &mut Vec<u32>, mut other: &[u32]) {
    if other.is_empty() {
        return;
    }
    set.retain(|&number| {
        other = &other[seek(other, number)..];
        other.first() != Some(&number)
    });
}

/// Appends the union of `a` and `b` to `out`.
pub(super) fn union<T: Ord + Copy>(mut a: &[T], mut b: &[T], out: &mut Vec<T>) {
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        out.push(x.min(y));
        a = &a[usize::from(x <= y)..];
        b = &b[usize::from(y <= x)..];
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
}

/// Adds `other` to `set`; `scratch` is cleared and used.
pub(super) fn add<T: Ord + Copy>(set: &mut Vec<T>, other: &[T], scratch: &mut Vec<T>) {
    if other.is_empty() {
        return;
    }
    scratch.clear();
    union(set, other, scratch);
    core::mem::swap(set, scratch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0u32..300, 0..120)
    }

    fn list(set: &BTreeSet<u32>) -> Vec<u32> {
        set.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn sets_are_sets(a in set(), b in set()) {
            let mut lost = Vec::new();
            answer(&list(&a), Among::These(&list(&b)), &mut lost);
            prop_assert_eq!(&lost, &a.intersection(&b).copied().collect::<Vec<_>>());
            let mut left = list(&a);
            subtract(&mut left, &list(&b));
            prop_assert_eq!(&left, &a.difference(&b).copied().collect::<Vec<_>>());
            let mut both = list(&a);
            add(&mut both, &list(&b), &mut left);
            prop_assert_eq!(&both, &a.union(&b).copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn all_is_everything() {
        let mut lost = alloc::vec![9];
        answer(&[1, 4], Among::All, &mut lost);
        assert_eq!(lost, [9, 1, 4]);
    }
}
