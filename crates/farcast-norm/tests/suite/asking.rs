//! Requests of a single receiver and their times, message by message.

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{KeyNumber, ObjectId, Proved, ReceiverEngine as _};
use farcast_norm::message::{Answer, Form, FromReceiver, FromSender, Level, Point, Request, Symbol};
use farcast_norm::{Body, Fec, Message, NodeId, Receiver, ReceiverEvent, Sender};

use crate::common::{group, ms, receiver, receiver_address, said, sender, server};

/// Returns everything that a sender of four blocks of ten sends up to its first flush, datagram by datagram.
fn words() -> Vec<Message> {
    let mut engine = Sender::new(sender(40, 0)).expect("valid");
    engine.open(Time::ZERO);
    let (mut words, mut now) = (Vec::new(), Time::ZERO);
    loop {
        engine.handle_timeout(now);
        while let Some(transmit) = engine.poll_transmit(now, now + Span::from_nanos(1)) {
            let flush = matches!(said(&transmit.message), Some(FromSender::Flush { .. }));
            words.push(transmit.message);
            if flush {
                return words;
            }
        }
        now = engine.poll_timeout().expect("it goes on").at;
    }
}

/// Receiver with its clock.
struct Station {
    engine: Receiver,
    now: Time,
    /// Segments that the owner reports as damaged when the object is first complete.
    damage: Option<Run>,
    /// Segments that the owner has, and `true` if it answers only on demand.
    held: Option<Bitmap>,
    slow: bool,
    offered: Option<ObjectId>,
    /// First object that was offered.
    first: Option<ObjectId>,
}

impl Station {
    fn new() -> Self {
        let engine = Receiver::new(receiver(0)).expect("valid");
        Self { engine, now: Time::ZERO, damage: None, held: None, slow: false, offered: None, first: None }
    }

    /// Answers the offer, as the owner, with the segments that it has.
    fn answer(&mut self) {
        if let Some(object) = self.offered.take() {
            let held = self.held.take().unwrap_or_else(|| Bitmap::new(0));
            self.engine.accept(self.now, object, &held);
        }
    }

    /// Delivers a message, from the sender unless it is a receiver's.
    fn hear(&mut self, message: &Message) {
        self.now += ms(1);
        let source = if said(message).is_some() { server() } else { receiver_address(7) };
        let _ = self.engine.handle(self.now, &Arrival::new(source, group()), message);
        while let Some(event) = self.engine.poll_event() {
            match event {
                ReceiverEvent::Offered(offer) => {
                    self.offered = Some(offer.object);
                    self.first = self.first.or(Some(offer.object));
                    if !self.slow {
                        self.answer();
                    }
                }
                ReceiverEvent::Decode { object, block } => self.engine.decoded(object, block, true),
                ReceiverEvent::Complete(object) => match self.damage.take() {
                    Some(run) => self.engine.lost(object, run),
                    None => self.engine.verified(self.now, object),
                },
                _ => {}
            }
        }
    }

    /// Lets time pass, and returns the requests of that time.
    fn wait(&mut self, span: Span) -> Vec<Request> {
        self.asked(span).into_iter().flatten().collect()
    }

    /// Lets time pass, and returns the requested blocks and symbols, message by message.
    fn messages(&mut self, span: Span) -> Vec<Vec<(u32, u16)>> {
        let symbol = |point: &Point| (point.symbol.block, point.symbol.symbol);
        let points =
            |requests: Vec<Request>| requests.iter().flat_map(|one| one.points.iter().map(symbol)).collect();
        self.asked(span).into_iter().map(points).collect()
    }

    fn asked(&mut self, span: Span) -> Vec<Vec<Request>> {
        self.now += span;
        let mut asked = Vec::new();
        while self.engine.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            self.engine.handle_timeout(self.now);
        }
        while let Some(transmit) = self.engine.poll_transmit(self.now, self.now) {
            if let Body::Receiver(FromReceiver { answer: Answer::Nack(requests), .. }) = transmit.message.body
            {
                asked.push(requests);
            }
        }
        asked
    }
}

fn is(message: &Message, block: u32, symbols: core::ops::Range<u32>) -> bool {
    message.data().is_some_and(|data| data.block == block && symbols.contains(&data.symbols.first()))
}

/// Returns a request of node 9 for symbols of block 1.
fn other(symbols: &[u16], level: Level) -> Message {
    let point = |&symbol| Point {
        fec: Fec::ReedSolomon8,
        object: 0,
        symbol: Symbol { block: 1, block_len: None, symbol },
    };
    let points = symbols.iter().map(point).collect();
    let answer = Answer::Nack(vec![Request { form: Form::Items, level, points }]);
    let (sender, instance) = (NodeId(1), 1);
    let body = Body::Receiver(FromReceiver { sender, instance, response: None, feedback: None, answer });
    Message { source: NodeId(9), sequence: 0, body }
}

/// Returns a station that has heard all but two symbols of block 1.
fn lacks_two() -> Station {
    let mut station = Station::new();
    for message in words().iter().filter(|message| !is(message, 1, 3..5)) {
        station.hear(message);
    }
    station
}

#[test]
fn it_asks_for_the_first_parity_that_does() {
    let asked = lacks_two().wait(ms(3000));
    assert_eq!(asked.len(), 1);
    let symbols: Vec<(u32, u16)> =
        asked[0].points.iter().map(|point| (point.symbol.block, point.symbol.symbol)).collect();
    assert_eq!(symbols, [(1, 10), (1, 11)]);
    assert_eq!(asked[0].level, Level::SEGMENT);
}

#[test]
fn it_does_not_ask_where_others_have_asked_for_as_much() {
    for (symbols, level, asks) in [
        (&[10, 11][..], Level::SEGMENT, false),
        (&[3, 4], Level::SEGMENT, false),
        (&[0], Level::BLOCK, false),
        (&[0], Level::OBJECT, false),
        (&[10], Level::SEGMENT, true),
        // Symbols that the receiver has already do not help.
        (&[0, 1, 2], Level::SEGMENT, true),
        (&[14, 15], Level::SEGMENT, true),
        (&[0], Level::INFO, true),
    ] {
        let mut station = lacks_two();
        station.hear(&other(symbols, level));
        assert_eq!(!station.wait(ms(3000)).is_empty(), asks, "{symbols:?} {level:?}");
    }
}

#[test]
fn it_does_not_ask_while_the_sender_is_before_what_it_lacks() {
    let mut station = lacks_two();
    let words = words();
    // The sender has returned to the first block, so it may come to the lacking symbols.
    station.hear(words.iter().find(|message| is(message, 0, 0..1)).expect("sent"));
    assert_eq!(station.wait(ms(3000)), []);
    // The sender has passed them, so the receiver asks again.
    station.hear(words.iter().find(|message| is(message, 2, 0..1)).expect("sent"));
    assert_eq!(station.wait(ms(3000)).len(), 1);
}

#[test]
fn it_asks_again_only_after_its_hold_off() {
    let mut station = lacks_two();
    assert_eq!(station.wait(ms(3000)).len(), 1);
    let flush = words().pop().expect("a flush");
    station.hear(&flush);
    assert_eq!(station.wait(ms(1)), [], "it has just asked");
    station.wait(ms(4000));
    station.hear(&flush);
    assert_eq!(station.wait(ms(3000)).len(), 1);
}

#[test]
fn its_hold_off_ends_when_the_sender_has_gone_back() {
    let words = words();
    let first = |block| words.iter().find(|message| is(message, block, 0..1)).expect("sent");
    let flush = words.last().expect("a flush");
    for (block, asks) in [(1, true), (0, true), (2, false)] {
        let mut station = lacks_two();
        assert_eq!(station.wait(ms(3000)).len(), 1);
        // A later block does not show that the sender has returned.
        station.hear(first(block));
        station.hear(flush);
        assert_eq!(!station.wait(ms(2500)).is_empty(), asks, "back to block {block}");
    }
}

#[test]
fn of_parity_it_asks_for_what_nobody_has_yet() {
    let mut station = lacks_two();
    assert_eq!(station.wait(ms(3000)).len(), 1);
    // The receiver loses the first of the two parity symbols.
    let mut repair = words().into_iter().find(|message| is(message, 1, 0..1)).expect("sent");
    if let Body::Sender(_, FromSender::Data(data)) = &mut repair.body {
        data.symbols = Run::one(11);
    }
    station.hear(&repair);
    station.hear(&words().pop().expect("a flush"));
    let asked = station.wait(ms(3000));
    let symbols: Vec<u16> =
        asked.iter().flat_map(|request| request.points.iter().map(|point| point.symbol.symbol)).collect();
    assert_eq!(symbols, [12]);
}

/// Returns the requests, message by message, of a receiver that has heard every `nth` of `segments` segments, without
/// parity.
fn asks(segments: u32, nth: u32) -> Vec<Vec<(u32, u16)>> {
    let mut config = sender(segments, 0);
    (config.parity, config.block_len) = (0, 100);
    let (mut station, mut engine) = (Station::new(), Sender::new(config).expect("valid"));
    engine.open(Time::ZERO);
    let (mut now, mut heard) = (Time::ZERO, 0);
    loop {
        engine.handle_timeout(now);
        while let Some(transmit) = engine.poll_transmit(now, now + Span::from_nanos(1)) {
            heard += u32::from(transmit.message.data().is_some());
            if transmit.message.data().is_none() || heard % nth == 0 {
                station.hear(&transmit.message);
            }
            if matches!(said(&transmit.message), Some(FromSender::Flush { .. })) {
                return station.messages(ms(3000));
            }
        }
        now = engine.poll_timeout().expect("it goes on").at;
    }
}

#[test]
fn what_does_not_fit_one_message_is_asked_for_in_several_and_no_more_than_eight() {
    // Half of the segments are lacking, and each takes a point of eight octets; a message has room for a segment.
    let most = 1000 / 8;
    for (segments, messages) in [(200, 1), (600, 3), (1800, 8), (4000, 8)] {
        let asked = asks(segments, 2);
        assert_eq!(asked.len(), messages, "{segments}");
        assert!(asked.iter().all(|points| (1..=most).contains(&points.len())), "{segments}");
        let mut all: Vec<_> = asked.concat();
        // A block that a message requests in part is requested fully in the next one.
        all.sort_unstable();
        all.dedup();
        let lacking = (0..segments).filter(|segment| segment % 2 == 0);
        let lacking: Vec<_> = lacking.map(|segment| (segment / 100, (segment % 100) as u16)).collect();
        assert_eq!(all[..], lacking[..all.len()], "the lowest first");
        assert!(all.len() == lacking.len() || all.len() > most * 6, "{segments}: {}", all.len());
    }
}

#[test]
fn what_is_damaged_is_asked_for_again() {
    let mut station = Station::new();
    station.damage = Run::new(2, 1);
    for message in words() {
        station.hear(&message);
    }
    let asked = station.wait(ms(3000));
    assert_eq!((asked.len(), asked[0].points[0].symbol.block), (1, 0));
    assert_eq!(asked[0].points[0].symbol.symbol, 10);
}

#[test]
fn what_is_lost_of_info_is_asked_for_first() {
    let mut station = Station::new();
    for message in words().iter().filter(|message| message.data().is_some()) {
        station.hear(message);
    }
    let asked = station.wait(ms(3000));
    assert_eq!(asked.iter().map(|request| request.level).collect::<Vec<_>>(), [Level::INFO]);
}

#[test]
fn what_the_owner_may_have_is_not_asked_for_before_it_has_answered() {
    // The first block has passed when the receiver begins to listen, and without a back-off it asks at once.
    let mut words = words();
    for message in &mut words {
        if let Body::Sender(terms, _) = &mut message.body {
            terms.backoff = 0;
        }
    }
    let second: Vec<&Message> = words.iter().filter(|message| is(message, 1, 0..10)).collect();
    let third = words.iter().find(|message| is(message, 2, 0..1)).expect("sent");
    let opened = |station: &mut Station, held: &[Run]| {
        let mut map = Bitmap::new(40);
        for &run in held {
            map.insert_run(run);
        }
        station.held = Some(map);
        station.answer();
    };
    let late = || {
        let mut station = Station::new();
        station.slow = true;
        for message in &second[..4] {
            station.hear(message);
        }
        assert_eq!(station.wait(ms(500)), [], "the owner looks what is there");
        station
    };
    // The owner has all of the first block but two segments, and the object's name is still lacking.
    let mut station = late();
    opened(&mut station, &[Run::new(0, 8).expect("a run")]);
    let asked = station.wait(ms(0));
    let levels: Vec<Level> = asked.iter().map(|request| request.level).collect();
    assert_eq!(levels, [Level::INFO, Level::SEGMENT]);
    let symbols: Vec<_> =
        asked[1].points.iter().map(|point| (point.symbol.block, point.symbol.symbol)).collect();
    assert_eq!(symbols, [(0, 10), (0, 11)]);
    // An owner that has the whole block asks for the name alone.
    let mut station = late();
    opened(&mut station, &[Run::new(0, 10).expect("a run")]);
    assert_eq!(station.wait(ms(0)).iter().map(|request| request.level).collect::<Vec<_>>(), [Level::INFO]);
    // An owner that finds no room for long does not prevent requests.
    let mut station = late();
    station.wait(ms(600));
    station.hear(third);
    let levels: Vec<Level> = station.wait(ms(0)).iter().map(|request| request.level).collect();
    assert_eq!(levels[..3], [Level::INFO, Level::BLOCK, Level::SEGMENT]);
}

/// A sender that is proved to have begun another session repeats its messages, from the same address: everything is
/// new.
#[test]
fn what_a_sender_says_that_has_begun_anew_goes_on_with_nothing() {
    let who = |number| Proved { name: "ann", number: KeyNumber(number) };
    let (words, mut station) = (words(), Station::new());
    for word in &words[..20] {
        station.hear(word);
    }
    let first = station.first.take().expect("it was offered");
    station.engine.begins_anew(station.now, &who(7));
    assert!(station.engine.is_busy() && station.engine.poll_event().is_none(), "that is another");
    station.engine.begins_anew(station.now, &who(1));
    let lost = ReceiverEvent::Ended(first, Outcome::Lost);
    assert_eq!((station.engine.poll_event(), station.engine.is_busy()), (Some(lost), false));
    assert_eq!(station.wait(Span::from_secs(60)), [], "nothing is said to it");
    for word in &words[20..] {
        station.hear(word);
    }
    let second = station.first.expect("it is offered again");
    assert_ne!(first, second);
    let come: u32 = words[20..]
        .iter()
        .filter_map(|word| word.data())
        .filter(|data| data.symbols.first() < 10)
        .map(|data| data.symbols.count())
        .sum();
    assert_eq!(station.engine.have(second).map(Bitmap::count), Some(come));
}
