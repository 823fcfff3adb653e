use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::collection::vec as list;
use proptest::prelude::*;

use super::*;
use crate::format::Format;
use crate::pdu::Pdu;
use crate::wire::{decode, encode};

const FORMS: [ReportForm; 3] = [ReportForm::List, ReportForm::Bitmap, ReportForm::RelativeList];

fn sn(number: u16) -> SequenceNumber {
    SequenceNumber::new(number)
}

/// Reports of runs that are given by offsets from `vr_r`.
fn reports(
    form: ReportForm,
    vr_r: u16,
    span: u16,
    window: u16,
    runs: &[(u16, u16)],
    room: usize,
) -> Vec<Status> {
    let missing = runs.iter().map(|&(start, count)| (sn(vr_r).plus(start), count));
    report(form, sn(vr_r), sn(vr_r).plus(span), window, missing, room).into_vec()
}

/// One report of 42 octets.
fn one(form: ReportForm, vr_r: u16, span: u16, window: u16, runs: &[(u16, u16)]) -> Vec<SuperField> {
    let mut all = reports(form, vr_r, span, window, runs, 336);
    assert_eq!(all.len(), 1);
    all.remove(0).fields.into_vec()
}

fn bitmap(first: u16, octets: &[u8]) -> SuperField {
    SuperField::Bitmap(StatusBitmap { first: sn(first), octets: octets.iter().copied().collect() })
}

fn pairs(pairs: &[(u16, u8)]) -> SuperField {
    SuperField::List(pairs.iter().map(|&(first, more)| (sn(first), more)).collect())
}

fn ack(number: u16) -> SuperField {
    SuperField::Ack(sn(number))
}

/// 1, 2, 4 and 6 have arrived: VR(R) 3, VR(H) 7. And figure 2(c) of the study: 3 and 4 are lost, 5 and 6 have arrived.
#[test]
fn the_examples_of_the_study() {
    let runs = [(0, 1), (2, 1)];
    assert_eq!(one(ReportForm::List, 3, 4, 2047, &runs), [pairs(&[(3, 0), (5, 0)]), ack(7)]);
    assert_eq!(one(ReportForm::Bitmap, 3, 4, 2047, &runs), [bitmap(4095, &[0b1111_0101]), ack(7)]);
    let words = [0b0101].into_iter().collect();
    let relative = SuperField::RelativeList(RelativeList { first: sn(3), words });
    assert_eq!(one(ReportForm::RelativeList, 3, 4, 2047, &runs), [relative, ack(7)]);
    assert_eq!(one(ReportForm::Bitmap, 3, 4, 2047, &[(0, 2)]), [bitmap(4095, &[0b1111_0011]), ack(7)]);
}

#[test]
fn nothing_is_missing() {
    for form in FORMS {
        assert_eq!(one(form, 9, 0, 512, &[]), [ack(9)]);
    }
}

/// A bitmap may not begin before VR(R) in a window of half the numbers or more, and never speaks of VR(H).
#[test]
fn bitmaps_in_a_wide_window() {
    assert_eq!(one(ReportForm::Bitmap, 3, 4, 2048, &[(0, 1), (2, 1)]), [pairs(&[(3, 0), (5, 0)]), ack(7)]);
    // 12 numbers: an octet, and the last four in a list.
    let fields = one(ReportForm::Bitmap, 100, 12, 4095, &[(0, 1), (9, 2)]);
    assert_eq!(fields, [bitmap(100, &[0b0111_1111]), bitmap(104, &[0b1111_1001]), ack(112)]);
    // Two octets from where they would still fit.
    let fields = one(ReportForm::Bitmap, 100, 16, 4095, &[(2, 1), (13, 2)]);
    assert_eq!(fields, [bitmap(100, &[0b1101_1111, 0b1111_1001]), ack(116)]);
}

/// A bitmap ends where the next missing PDU is 28 numbers on or more: from there a new one costs no more.
#[test]
fn a_gap_ends_a_bitmap() {
    let fields = one(ReportForm::Bitmap, 0, 200, 512, &[(0, 1), (28, 1), (57, 1)]);
    let within = bitmap(0, &[0x7F, 0xFF, 0xFF, 0xF7]);
    assert_eq!(fields, [within, bitmap(57, &[0x7F]), ack(200)]);
}

/// 5, 7 to 10 and 300, as the vector has it.
#[test]
fn relative_lists_count_bursts() {
    let words = [0b0101, 0b0001, 0b0111, 0b0100, 0b1000, 0b1001].into_iter().collect();
    let expected = SuperField::RelativeList(RelativeList { first: sn(5), words });
    let fields = one(ReportForm::RelativeList, 5, 296, 512, &[(0, 1), (2, 4), (295, 1)]);
    assert_eq!(fields, [expected, ack(301)]);
}

/// One that follows takes a word for its distance, two take two; only from three on a burst, of two words, is shorter.
#[test]
fn relative_lists_are_short() {
    let words = |run| match &one(ReportForm::RelativeList, 5, 300, 512, &[(0, run)])[0] {
        SuperField::RelativeList(list) => list.words.to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(words(1), []);
    assert_eq!(words(2), [0b0011]);
    assert_eq!(words(3), [0b0011, 0b0011]);
    assert_eq!(words(4), [0b0001, 0b0111]);
    assert_eq!(words(9), [0b0001, 0b0000, 0b0011]);
}

/// 336 bits: the type, 15 runs in 248 bits, 3 more in 56, and an ACK; with a 19th run two reports, and LSN is VR(R).
#[test]
fn lists_fill_a_report() {
    let runs: Vec<_> = (0..19).map(|index| (index * 20, 16)).collect();
    let all = reports(ReportForm::List, 7, 400, 512, &runs[..18], 336);
    assert_eq!((all.len(), all[0].bits(), all[0].ack()), (1, 4 + 248 + 56 + 16, Some(sn(407))));
    assert_eq!(reports(ReportForm::List, 7, 400, 512, &runs[..15], 336)[0].bits(), 268);
    let all = reports(ReportForm::List, 7, 400, 512, &runs, 336);
    assert_eq!(all.iter().map(Status::ack).collect::<Vec<_>>(), [Some(sn(7)), Some(sn(7))]);
}

/// Too little room to name anything: the report acknowledges what is in order, and no more.
#[test]
fn too_little_room_says_nothing_false() {
    for (form, least) in [(ReportForm::List, 44), (ReportForm::Bitmap, 48), (ReportForm::RelativeList, 40)] {
        for room in [0, 20, least - 1] {
            let all = reports(form, 50, 30, 512, &[(0, 1)], room);
            assert_eq!(all, [Status { fields: smallvec![ack(50)] }], "{form:?} {room}");
        }
        let all = reports(form, 50, 30, 512, &[(0, 1)], least);
        assert_eq!((all.len(), all[0].ack(), all[0].missing().count()), (1, Some(sn(80)), 1), "{form:?}");
    }
}

/// A receiver: VR(R), where VR(H) lies, its window, and the runs that it lacks.
fn receiver() -> impl Strategy<Value = (u16, u16, u16, Vec<(u16, u16)>)> {
    let window = prop_oneof![1..40u16, 40..2048u16, 2048..4096u16];
    let lens = prop_oneof![Just(1u16), 1..5u16, 1..40u16, 100..600u16];
    let gaps = prop_oneof![1..4u16, 1..60u16, 100..900u16];
    (0..4096u16, window, list((lens, gaps), 0..60)).prop_map(|(vr_r, window, parts)| {
        let (mut span, mut runs) = (0, Vec::new());
        for (len, gap) in parts {
            if span + len + gap <= window {
                runs.push((span, len));
                span += len + gap;
            }
        }
        (vr_r, span, window, runs)
    })
}

fn numbers(status: &Status) -> impl Iterator<Item = SequenceNumber> + '_ {
    status.missing().flat_map(|(first, count)| (0..count).map(move |step| first.plus(step)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn reports_say_what_is_missing_and_nothing_else(
        (vr_r, span, window, runs) in receiver(),
        room in prop_oneof![48..400usize, Just(336), Just(12_040)],
    ) {
        let lacks: BTreeSet<u16> = runs.iter().flat_map(|&(start, len)| start..start + len).collect();
        for form in FORMS {
            let all = reports(form, vr_r, span, window, &runs, room);
            let mut named = Vec::new();
            for status in &all {
                prop_assert!(status.bits() <= room);
                prop_assert!(matches!(status.fields.last(), Some(SuperField::Ack(_))));
                named.extend(numbers(status).map(|number| number.since(sn(vr_r))));
                for field in &status.fields {
                    if let SuperField::Bitmap(bitmap) = field {
                        judge_bitmap(bitmap, vr_r, span, window, &lacks)?;
                    }
                }
            }
            // Bitmaps may overlap; otherwise each is named once, in order.
            let in_order: Vec<u16> = lacks.iter().copied().collect();
            named.dedup();
            if form == ReportForm::Bitmap {
                named.sort_unstable();
                named.dedup();
            }
            prop_assert_eq!(&named, &in_order);
            let lsn = sn(vr_r).plus(if all.len() == 1 { span } else { 0 });
            prop_assert!(all.iter().all(|status| status.ack() == Some(lsn)));
        }
    }

    #[test]
    fn reports_survive_the_wire((vr_r, span, window, runs) in receiver(), octets in 6..200u16) {
        let format = Format::new(octets);
        for form in FORMS {
            for status in reports(form, vr_r, span, window, &runs, format.status_bits()) {
                let mut out = vec![0; usize::from(octets)];
                let pdu: Pdu<Vec<u8>> = Pdu::Status(status.clone());
                encode(&pdu, format, &mut out).unwrap();
                prop_assert_eq!(decode(&out, format), Ok(Pdu::Status(status)));
            }
        }
    }

    /// The number of reports is the least possible: runs of up to 16, 15 of them for 248 bits, and the rest of the room
    /// for 8 bits and 16 each.
    #[test]
    fn lists_waste_no_room((vr_r, span, window, runs) in receiver(), room in 48..800usize) {
        let needed: usize = runs.iter().map(|&(_, len)| usize::from(len).div_ceil(16)).sum();
        let fields = room - 20;
        let held = 15 * (fields / 248) + (fields % 248).saturating_sub(8) / 16;
        let all = reports(ReportForm::List, vr_r, span, window, &runs, room);
        prop_assert_eq!(all.len(), needed.div_ceil(held).max(1));
    }

    #[test]
    fn nonsense_is_reported_within_bounds(
        vr_r in 0..4096u16,
        span in 0..4096u16,
        window in any::<u16>(),
        runs in list((0..4096u16, any::<u16>()), 0..20),
        room in 0..2_000usize,
    ) {
        for form in FORMS {
            let missing = runs.iter().map(|&(first, count)| (sn(first), count));
            let all = report(form, sn(vr_r), sn(vr_r).plus(span), window, missing, room);
            prop_assert!(all.iter().all(|status| status.bits() <= room.max(20)));
            let within = |number: SequenceNumber| number.since(sn(vr_r)) < span;
            prop_assert!(all.iter().flat_map(numbers).all(within));
        }
    }
}

/// A bitmap has the right bit for every number, none from VR(H) on, and begins where it may.
fn judge_bitmap(
    bitmap: &StatusBitmap,
    vr_r: u16,
    span: u16,
    window: u16,
    lacks: &BTreeSet<u16>,
) -> Result<(), TestCaseError> {
    let early = sn(vr_r).since(bitmap.first);
    let back = if early < 8 { early } else { 0 };
    prop_assert!(back == 0 || window < 2048);
    prop_assert!(bitmap.first.plus(back).since(sn(vr_r)) + bitmap.len() - back <= span);
    for offset in 0..bitmap.len() {
        let number = bitmap.first.plus(offset).since(sn(vr_r));
        prop_assert_eq!(bitmap.is_missing(offset), lacks.contains(&number));
    }
    Ok(())
}
