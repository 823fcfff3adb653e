use farcast_rlc::{Config, Entity};
use proptest::prelude::*;

use super::*;
use crate::tests::packet::Packet;

const FORMAT: Format = Format::new(42);

fn sdu(number: u32, len: usize) -> Octets {
    Octets::of(u64::from(number), &Packet::new(number, len, true).frame(), 65_535)
}

proptest! {
    /// Beside plain octets, which are cut and joined by copying.
    #[test]
    fn cutting_and_joining_is_that_of_plain_octets(
        len in 0..300usize, cuts in prop::collection::vec(0..80usize, 0..12), keep in any::<bool>(),
    ) {
        let mut rest = sdu(1, len);
        let mut plain = rest.as_ref().to_vec();
        let whole = plain.clone();
        let kept = rest.clone();
        let (mut joined, mut plain_joined) = (rest.split_to(0), plain.split_to(0));
        for cut in cuts {
            let (part, plain_part) = (rest.split_to(cut), plain.split_to(cut));
            prop_assert_eq!(part.as_ref(), &plain_part[..]);
            prop_assert_eq!(part.len(), plain_part.len());
            joined.join(part);
            plain_joined.join(plain_part);
            prop_assert_eq!(joined.as_ref(), &plain_joined[..]);
        }
        if !keep {
            drop(kept);
        }
        prop_assert_eq!(joined.is_whole(), joined.len() == len);
        joined.join(rest);
        prop_assert!(joined.is_whole());
        prop_assert_eq!(joined.as_ref(), &whole[..]);
    }
}

#[test]
fn padding_behind_a_piece_is_not_whole_until_it_is_cut_off() {
    let mut whole = sdu(1, 100);
    let padding = Octets { piece: Piece::whole(1, 0), ..sdu(2, 1) };
    let mut padded =
        Octets { buffer: Arc::new([whole.as_ref(), padding.as_ref()].concat()), len: 101, ..whole.clone() };
    assert!(!padded.is_whole());
    let cut = padded.split_to(100);
    assert!(cut.is_whole() && cut.as_ref() == whole.split_to(100).as_ref());
}

/// The PDUs of an SDU of 200 octets, and their octets.
fn coded() -> (Vec<Pdu<Octets>>, Arc<Vec<u8>>) {
    let mut entity = Entity::new(Config::default()).expect("legal");
    let now = farcast_core::Time::ZERO;
    assert!(entity.submit(now, sdu(1, 200)));
    let pdus: Vec<_> = core::iter::from_fn(|| entity.poll_pdu(now)).collect();
    let mut coded = Arc::default();
    assert!(pdus.iter().all(|pdu| Octets::encode(pdu, FORMAT, &mut coded)));
    (pdus, coded)
}

#[test]
fn what_is_decoded_is_the_octets_on_the_channel_and_not_those_that_were_sent() {
    let (pdus, mut coded) = coded();
    assert_eq!(coded.len(), 42 * pdus.len());
    // The last octet of the first PDU, which is the 40th of the SDU.
    Arc::get_mut(&mut coded).expect("nobody else has it")[41] ^= 1;
    let Some(Pdu::Data(data)) = Octets::decode(pdus[0].clone(), FORMAT, &coded, 0) else { panic!("data") };
    let mut expected = sdu(1, 200).split_to(40).as_ref().to_vec();
    expected[39] ^= 1;
    assert_eq!(data.segments[0].data.as_ref(), expected);
    assert_eq!(*data.segments[0].data.piece(), Piece::whole(1, 200).split_to(40));
}

#[test]
fn what_does_not_decode_is_none() {
    let (pdus, coded) = coded();
    let with = |at: usize, octet: u8| {
        let mut changed = coded.as_ref().clone();
        changed[at] = octet;
        Octets::decode(pdus[0].clone(), FORMAT, &Arc::new(changed), 0)
    };
    assert!(with(1, coded[1]).is_some());
    assert!(with(1, coded[1] | 3).is_none(), "a reserved header extension");
    assert!(with(1, coded[1] | 1).is_none(), "indicators that are none, or other segments than were sent");
    assert!(with(0, 0x70).is_none(), "a control PDU of no known type");
    let (number, first) = (pdus.len(), pdus[0].clone());
    assert!(Octets::decode(first.clone(), FORMAT, &coded, number).is_none(), "a PDU that is not there");
    assert!(Octets::decode(first, FORMAT, &coded, usize::MAX / 42).is_none());
}
