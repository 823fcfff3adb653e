use std::vec::Vec;

use proptest::collection::vec as list;
use proptest::prelude::*;

use super::*;

fn relative(first: u16, words: &[u8]) -> RelativeList {
    RelativeList { first: SequenceNumber::new(first), words: words.iter().copied().collect() }
}

fn runs(list: &RelativeList) -> Vec<(u16, u16)> {
    list.missing().map(|(first, count)| (first.get(), count)).collect()
}

/// Numbers by hand, in octal: 2; a burst of 3; 442; 7777.
#[test]
fn code_words_have_the_last_digit_first() {
    assert_eq!(runs(&relative(5, &[])), [(5, 1)]);
    assert_eq!(runs(&relative(5, &[0b0101])), [(5, 1), (7, 1)]);
    assert_eq!(runs(&relative(5, &[0b0001, 0b0111])), [(5, 4)]);
    assert_eq!(runs(&relative(10, &[0b0100, 0b1000, 0b1001])), [(10, 1), (300, 1)]);
    assert_eq!(runs(&relative(1, &[0b1110, 0b1110, 0b1110, 0b1111])), [(1, 1), (0, 1)]);
    // Distances of 1 continue a run.
    assert_eq!(runs(&relative(4094, &[0b0011, 0b0011, 0b0101])), [(4094, 3), (2, 1)]);
    // Digits of 0 before the last one.
    assert_eq!(runs(&relative(0, &[0b0000, 0b0011])), [(0, 1), (8, 1)]);
}

#[test]
fn lengths_by_the_tables() {
    let sn = SequenceNumber::new(0);
    let fields = [
        (SuperField::Window(1), 16),
        (SuperField::Ack(sn), 16),
        (SuperField::List([(sn, 0), (sn, 1)].into_iter().collect()), 40),
        (SuperField::Bitmap(StatusBitmap { first: sn, octets: [0, 0, 0].into_iter().collect() }), 44),
        (SuperField::RelativeList(relative(0, &[3, 3])), 28),
        (SuperField::MoveWindowAck { sn, n: 1 }, 20),
        (SuperField::Poll(sn), 16),
    ];
    for (field, bits) in &fields {
        assert_eq!(field.bits(), *bits, "{field:?}");
    }
    let all = Status { fields: fields.iter().map(|(field, _)| field.clone()).collect() };
    assert_eq!((all.bits(), all.octets()), (4 + 180, 23));
}

proptest! {
    /// The list names at most as many PDUs as there are numbers, whatever the words are.
    #[test]
    fn a_relative_list_never_names_more_than_all_numbers(first in 0..4096u16, words in list(any::<u8>(), 0..40)) {
        let named: u32 = runs(&relative(first, &words)).iter().map(|&(_, count)| u32::from(count)).sum();
        prop_assert!((1..=4096).contains(&named));
    }
}
