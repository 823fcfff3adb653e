//! A sender that is proved to have begun another session: its objects have the numbers of others.

use farcast_core::engine::Engine as _;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Outcome;
use farcast_delivery::{KeyNumber, Proved, ReceiverEngine as _};
use farcast_mdp::ReceiverEvent;
use farcast_mdp::message::{Flags, FromSender};

use crate::common::node;
use crate::rules::{Alone, about, says, symbols};

/// Key of the sender, whose node is 1.
const ANN: Proved<'_> = Proved { name: "ann", number: KeyNumber(1) };
const MAL: Proved<'_> = Proved { name: "mal", number: KeyNumber(2) };

fn ended(one: &mut Alone) -> Vec<Outcome> {
    one.1.extend(std::iter::from_fn(|| one.0.poll_event()));
    let ended = one.1.iter().filter_map(|event| match event {
        ReceiverEvent::Ended(_, outcome) => Some(*outcome),
        _ => None,
    });
    ended.collect()
}

fn offered(one: &Alone) -> usize {
    one.1.iter().filter(|event| matches!(event, ReceiverEvent::Offered(_))).count()
}

#[test]
fn what_had_come_is_no_part_of_what_comes() {
    let mut one = Alone::new();
    let object = about(0, Flags::FILE.with(Flags::INFO));
    one.opens(object);
    one.hears(Time::ZERO, &symbols(object, 0, Run::new(0, 7).unwrap(), false)).unwrap();
    one.0.begins_anew(Time::ZERO, &MAL);
    assert!(ended(&mut one).is_empty() && one.0.is_busy(), "that is another");
    one.0.begins_anew(Time::ZERO, &ANN);
    assert_eq!((ended(&mut one), one.0.is_busy()), (vec![Outcome::Lost], false));
    // From the same address, under the same number.
    one.opens(object);
    one.hears(Time::ZERO, &symbols(object, 0, Run::new(7, 3).unwrap(), false)).unwrap();
    assert_eq!(offered(&one), 2);
    let ReceiverEvent::Offered(offer) =
        one.1.iter().rfind(|event| matches!(event, ReceiverEvent::Offered(_))).unwrap()
    else {
        unreachable!()
    };
    let mut have = Bitmap::new(30);
    have.insert_run(Run::new(7, 3).unwrap());
    assert_eq!(one.0.have(offer.object), Some(&have));
}

/// The receiver is asked for an object that it has from the earlier session; its answer would be taken for the new
/// object.
#[test]
fn what_is_complete_is_acknowledged_to_no_other_session() {
    for verifies in [false, true] {
        let mut one = Alone::new();
        let object = about(0, Flags::FILE.with(Flags::INFO));
        one.opens(object);
        for block in 0..3 {
            one.hears(Time::ZERO, &symbols(object, block, Run::new(0, 10).unwrap(), false)).unwrap();
        }
        let ReceiverEvent::Complete(id) = *one.1.last().unwrap() else { panic!("{:?}", one.1) };
        if !verifies {
            one.0.verified(Time::ZERO, id);
        }
        // The earlier session may ask for acknowledgement of the object just now.
        let _ = one.hears(Time::ZERO, &says(FromSender::AckReq { object: 0, nodes: vec![node(0)] }));
        one.0.begins_anew(Time::ZERO, &ANN);
        if verifies {
            assert!(ended(&mut one).is_empty(), "its owner is still at it");
            one.0.verified(Time::ZERO, id);
        }
        assert_eq!(ended(&mut one), [Outcome::Complete(Time::ZERO)]);
        let asks = says(FromSender::AckReq { object: 0, nodes: vec![node(0)] });
        let _ = one.hears(Time::ZERO, &asks);
        let mut now = Time::ZERO;
        while let Some(deadline) = one.0.poll_timeout() {
            now = deadline.at;
            one.0.handle_timeout(now);
        }
        assert!(one.0.poll_transmit(now, now).is_none());
    }
}

/// Damaged segments of the earlier session cannot come again.
#[test]
fn what_turns_out_to_be_damaged_is_lost() {
    let mut one = Alone::new();
    let object = about(0, Flags::FILE.with(Flags::INFO));
    one.opens(object);
    for block in 0..3 {
        one.hears(Time::ZERO, &symbols(object, block, Run::new(0, 10).unwrap(), false)).unwrap();
    }
    let ReceiverEvent::Complete(id) = *one.1.last().unwrap() else { panic!("{:?}", one.1) };
    one.0.begins_anew(Time::ZERO, &ANN);
    one.0.lost(id, Run::one(7));
    assert_eq!((ended(&mut one), one.0.is_busy()), (vec![Outcome::Lost], false));
}
