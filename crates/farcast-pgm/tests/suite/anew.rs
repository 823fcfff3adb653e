//! A source that is proved to have begun another session.

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine as _};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{KeyNumber, Proved, ReceiverEngine as _};
use farcast_pgm::{Message, Receiver, ReceiverEvent, Sender};

use crate::common::{TSI, files, group, receiver, source};

/// The two sessions have the same number by chance; even so, nothing of the first continues in the second.
#[test]
fn what_a_source_says_that_has_begun_anew_goes_on_with_nothing() {
    let mut sending = Sender::new(files(&[40], 0)).unwrap();
    sending.open(Time::ZERO);
    let (mut words, mut now) = (Vec::new(), Time::ZERO);
    while words.len() < 40 {
        while let Some(transmit) = sending.poll_transmit(now, now) {
            words.push(transmit.message);
        }
        now = sending.poll_timeout().unwrap().at;
        sending.handle_timeout(now);
    }
    let mut engine = Receiver::new(receiver(0)).unwrap();
    let from = Arrival::new(source(), group());
    let hear = |engine: &mut Receiver, words: &[Message]| {
        for word in words {
            let _ = engine.handle(now, &from, word);
        }
        std::iter::from_fn(|| engine.poll_event()).collect::<Vec<_>>()
    };
    let offered = |events: &[ReceiverEvent]| {
        let offer = events.iter().find_map(|event| match event {
            ReceiverEvent::Offered(offer) => Some(offer.object),
            _ => None,
        });
        offer.expect("an offer")
    };
    let first = offered(&hear(&mut engine, &words[..20]));
    let who = |number: u64| Proved { name: "ann", number: KeyNumber(number) };
    engine.begins_anew(now, &who(7));
    assert!(engine.is_busy(), "that is another");
    let mut number = [0; 8];
    number[2..].copy_from_slice(&TSI.gsi.0);
    engine.begins_anew(now, &who(u64::from_be_bytes(number)));
    let told: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    assert!(told.contains(&ReceiverEvent::Ended(first, Outcome::Lost)), "{told:?}");
    assert!(!engine.is_busy());
    assert_ne!(offered(&hear(&mut engine, &words)), first);
}
