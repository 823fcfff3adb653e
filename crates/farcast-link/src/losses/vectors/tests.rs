use super::*;
use crate::losses::Bernoulli;
use crate::losses::tests::losers;
use alloc::string::ToString;
use proptest::prelude::*;

fn vectors(texts: &[&str]) -> Vec<Bitmap> {
    texts.iter().map(|text| parse_error_vector(text).expect("bits")).collect()
}

fn next(process: &mut ErrorVectors, among: Among<'_>) -> Vec<u32> {
    losers(process, Time::ZERO, 1000, among)
}

#[test]
fn three_receivers_by_hand() {
    let vectors = vectors(&["0100", "11 00", "0001"]);
    let expected: [&[u32]; 4] = [&[1], &[0, 1], &[], &[2]];
    let mut repeated = ErrorVectors::new(&vectors, AtEnd::Repeat).expect("one length");
    for round in 0..3 {
        for frame in expected {
            assert_eq!(next(&mut repeated, Among::All), frame, "round {round}");
        }
    }
    let mut kept = ErrorVectors::new(&vectors, AtEnd::Keep).expect("vectors");
    for frame in expected.into_iter().chain([&[][..]; 6]) {
        assert_eq!(next(&mut kept, Among::All), frame);
    }
}

#[test]
fn frames_count_whoever_is_asked_about() {
    let vectors = vectors(&["111000", "000111"]);
    let mut process = ErrorVectors::new(&vectors, AtEnd::Keep).expect("vectors");
    assert!(process.is_memoryless());
    assert_eq!(next(&mut process, Among::These(&[1])), []);
    assert_eq!(next(&mut process, Among::These(&[])), []);
    assert_eq!(next(&mut process, Among::These(&[0])), [0]);
    assert_eq!(next(&mut process, Among::These(&[0, 1, 5])), [1]);
}

#[test]
fn what_is_no_vector_is_refused() {
    assert_eq!(parse_error_vector("0102"), Err(LinkError::VectorSymbol('2')));
    assert_eq!(
        LinkError::VectorSymbol('2').to_string(),
        "an error vector holds '2'; only 0 (kept) and 1 (lost) are allowed, and white space between them"
    );
    let repeat = |texts: &[&str]| ErrorVectors::new(&vectors(texts), AtEnd::Repeat).map(|_| ());
    assert_eq!(repeat(&["01", "010"]), Err(LinkError::VectorLength));
    assert_eq!(repeat(&["", ""]), Err(LinkError::VectorLength));
    assert_eq!(repeat(&[]), Err(LinkError::VectorLength));
    assert_eq!(repeat(&["01", "10"]), Ok(()));
    let mut nothing = ErrorVectors::new(&[], AtEnd::Keep).expect("no vectors");
    assert_eq!(next(&mut nothing, Among::All), []);
}

#[test]
fn a_million_frames_of_drawn_losses_come_back() {
    // A vector that was recorded from another process gives the same losses.
    let p = farcast_core::Probability::new(0.001).expect("probability");
    let mut source = Bernoulli::new(p, 1, farcast_core::random::RandomStream::derive(5, &[]));
    let mut recorded = Bitmap::new(1_000_000);
    for frame in 0..recorded.len() {
        if !losers(&mut source, Time::ZERO, 1, Among::All).is_empty() {
            recorded.insert(frame);
        }
    }
    let mut replay = ErrorVectors::new(core::slice::from_ref(&recorded), AtEnd::Keep).expect("vector");
    let mut count = 0;
    for frame in 0..recorded.len() {
        let lost = !next(&mut replay, Among::All).is_empty();
        assert_eq!(lost, recorded.contains(frame));
        count += u32::from(lost);
    }
    assert_eq!(count, recorded.count());
    assert!(count > 800);
}

proptest! {
    #[test]
    fn each_frame_reads_its_column(
        rows in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 7), 0..9),
        frames in 1usize..30,
    ) {
        let maps: Vec<Bitmap> = rows.iter().map(|row| {
            let text: alloc::string::String = row.iter().map(|&bit| if bit { '1' } else { '0' }).collect();
            parse_error_vector(&text).expect("bits")
        }).collect();
        let mut kept = ErrorVectors::new(&maps, AtEnd::Keep).expect("vectors");
        let mut repeated = ErrorVectors::new(&maps, AtEnd::Repeat).ok();
        for frame in 0..frames {
            let column = |frame: usize| (0u32..).zip(&rows)
                .filter(|(_, row)| row.get(frame).is_some_and(|&bit| bit)).map(|(who, _)| who).collect::<Vec<_>>();
            prop_assert_eq!(next(&mut kept, Among::All), column(frame));
            if let Some(process) = &mut repeated {
                prop_assert_eq!(next(process, Among::All), column(frame % 7));
            }
        }
    }
}
