//! The rules of the draft, each by itself.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_core::{Bitmap, Message as _, Run, Span, Time};
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_delivery::nack::Stamp;
use farcast_delivery::nack::quantise::Rtt;
use farcast_mdp::message::{
    About, Answer, Data, Flags, FromReceiver, FromSender, Head, Info, Mask, ObjectNack, Probe, Request,
};
use farcast_mdp::{
    Body, Message, NodeId, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig, wire,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, group, is_nack, ms, object, receiver, said, sender, sent, server};

const HEAD: Head = Head { sequence: 0, grtt: Rtt(0x88) };

pub(crate) fn about(object: u32, flags: Flags) -> About {
    About { object, size: 30_000, ndata: 10, nparity: 4, flags }
}

/// Returns a sender's message with symbols of a block.
pub(crate) fn symbols(about: About, block: u32, run: Run, parity: bool) -> Message {
    let data = Data { about, block, symbols: run, parity, segment_size: 1000, len: 1000, ends_block: false };
    Message { source: NodeId(1), body: Body::Sender(HEAD, FromSender::Data(data)) }
}

pub(crate) fn says(said: FromSender) -> Message {
    Message { source: NodeId(1), body: Body::Sender(HEAD, said) }
}

fn from_sender() -> Arrival {
    Arrival::new(server(), group())
}

/// A receiver without a network, whose owner takes everything.
pub(crate) struct Alone(pub(crate) Receiver, pub(crate) Vec<ReceiverEvent>);

impl Alone {
    pub(crate) fn new() -> Self {
        Self(Receiver::new(receiver(0)).unwrap(), Vec::new())
    }

    /// Hands the receiver an object's INFO, and gives its owner's answer.
    pub(crate) fn opens(&mut self, about: About) {
        let about = About { flags: about.flags.with(Flags::INFO), ..about };
        let info = Info { about, segment_size: 1000, content: b"name".to_vec(), vouched: None };
        self.hears(Time::ZERO, &says(FromSender::Info(info))).unwrap();
    }

    pub(crate) fn hears(&mut self, now: Time, message: &Message) -> Result<(), Reject> {
        let result = self.0.handle(now, &from_sender(), message);
        while let Some(event) = self.0.poll_event() {
            if let ReceiverEvent::Offered(offer) = &event {
                self.0.accept(offer.object, &Bitmap::new(offer.geometry.segments()));
            }
            self.1.push(event);
        }
        result
    }

    /// Returns the requests of the receiver within a minute.
    pub(crate) fn asks(&mut self, mut now: Time) -> Vec<(Time, Vec<ObjectNack>)> {
        let end = now + Span::from_secs(60);
        let mut asked = Vec::new();
        while let Some(deadline) = self.0.poll_timeout().filter(|deadline| deadline.at <= end) {
            now = deadline.at;
            self.0.handle_timeout(now);
            while let Some(transmit) = self.0.poll_transmit(now, now) {
                if let Body::Receiver(FromReceiver { answer: Answer::Nack(nacks), .. }) =
                    transmit.message.body
                {
                    asked.push((now, nacks));
                }
            }
        }
        asked
    }
}

/// Draft §4.2: a receiver does not begin with repairs, parity or a later block.
#[test]
fn a_receiver_begins_with_the_first_block_of_an_object() {
    let mut one = Alone::new();
    let (new, again) = (about(3, Flags::FILE), about(3, Flags::FILE.with(Flags::REPAIR)));
    let not = [
        symbols(new, 1, Run::one(0), false),
        symbols(again, 0, Run::one(0), false),
        symbols(new, 0, Run::one(10), true),
        says(FromSender::Flush { eot: false, object: 3 }),
    ];
    for message in &not {
        assert_eq!(one.hears(Time::ZERO, message), Err(Reject::Unexpected), "{message:?}");
    }
    assert!(!one.0.is_busy());
    // The first message about the object asks the owner, and its content is stored after that.
    one.hears(Time::ZERO, &symbols(new, 0, Run::one(5), false)).unwrap();
    assert!(matches!(one.1[..], [ReceiverEvent::Offered(_), ReceiverEvent::Store { .. }]), "{:?}", one.1);
    let earlier = symbols(about(2, Flags::FILE), 0, Run::one(0), false);
    assert_eq!(
        one.hears(Time::ZERO, &earlier),
        Err(Reject::Unexpected),
        "what lies before that is not its own"
    );
}

/// Draft §4.3: the receiver requests what lacks of the blocks that the sender has passed, parity first, and nothing of
/// the current block. Then it requests nothing for four round trips.
#[test]
fn what_the_sender_has_passed_is_asked_for_once_in_four_round_trips() {
    let about = about(0, Flags::FILE.with(Flags::INFO));
    let begun = || {
        let mut one = Alone::new();
        one.opens(about);
        one.hears(Time::ZERO, &symbols(about, 0, Run::new(0, 4).unwrap(), false)).unwrap();
        one
    };
    assert_eq!(begun().asks(Time::ZERO).first(), None, "the first block is still being sent");
    let (mut one, now) = (begun(), Time::ZERO + Span::from_secs(1));
    one.hears(now, &symbols(about, 1, Run::one(0), false)).unwrap();
    let deadline = one.0.poll_timeout().unwrap();
    let grtt = HEAD.grtt.span();
    assert!(deadline.timer == "back-off" && deadline.at.since(now) <= grtt, "{deadline:?}");
    one.0.handle_timeout(deadline.at);
    let said = one.0.poll_transmit(deadline.at, deadline.at).unwrap().message;
    let Body::Receiver(FromReceiver { answer: Answer::Nack(nacks), .. }) = said.body else {
        panic!("{said:?}")
    };
    // Six are missing: four parity symbols, and the last two segments.
    let mut mask = Mask::new(14);
    mask.insert(Run::new(8, 6).unwrap());
    let request = Request::Segments { erasures: 6, offset: 0, mask };
    assert_eq!(nacks, [ObjectNack { object: 0, requests: vec![request] }]);
    let held = one.0.poll_timeout().unwrap();
    assert_eq!((held.timer, held.at), ("hold-off", deadline.at + grtt * 4));
    one.hears(deadline.at, &symbols(about, 2, Run::one(0), false)).unwrap();
    assert_eq!(one.0.poll_timeout().unwrap().timer, "hold-off", "a block more is no reason to ask yet");
}

/// Our choice, as for the draft's other lists.
#[test]
fn a_request_is_no_longer_than_a_segment() {
    let mut one = Alone::new();
    let about = About { size: 4_000_000, ..about(0, Flags::FILE) };
    for block in 0..400 {
        let _ = one.hears(Time::ZERO, &symbols(about, block, Run::one(0), false));
    }
    let deadline = one.0.poll_timeout().unwrap();
    one.0.handle_timeout(deadline.at);
    let said = one.0.poll_transmit(deadline.at, deadline.at).unwrap().message;
    assert!((900..=21 + 1000).contains(&said.wire_len(0)), "{} octets", said.wire_len(0));
    // 6 octets name the object, and 10 each of the blocks.
    let Body::Receiver(FromReceiver { answer: Answer::Nack(nacks), .. }) = &said.body else { panic!() };
    assert_eq!(nacks[0].requests.len(), (1000 - 6) / 10);
    let mut octets = Vec::new();
    wire::encode(&said, 0, &mut octets);
    assert_eq!(wire::decode(&octets).unwrap().message, said);
}

/// Objects between those that were heard of exist, and are requested whole.
#[test]
fn an_object_of_which_nothing_came_is_asked_for() {
    let mut one = Alone::new();
    let now = Time::ZERO;
    one.opens(about(0, Flags::FILE));
    one.opens(about(2, Flags::FILE));
    let asked = one.asks(now);
    let objects: Vec<_> = asked[0].1.iter().map(|nack| nack.object).collect();
    assert_eq!(objects, [0, 1]);
    assert_eq!(asked[0].1[1].requests, [Request::Object]);
    one.hears(now + Span::from_secs(61), &says(FromSender::Squelch { sync: 0, invalid: vec![1] })).unwrap();
    one.hears(now + Span::from_secs(61), &says(FromSender::Flush { eot: false, object: 2 })).unwrap();
    let asked = one.asks(now + Span::from_secs(61));
    assert!(asked[0].1.iter().all(|nack| nack.object != 1), "it cannot be had: {asked:?}");
}

/// A jump beyond the window gives up the objects behind it, and memory stays bounded.
#[test]
fn numbers_that_jump_take_no_memory() {
    let mut one = Alone::new();
    for object in [0, 200, 5000, 4_000_000_000, u32::MAX - 1] {
        one.opens(about(object, Flags::FILE));
    }
    let none = symbols(about(u32::MAX, Flags::FILE), 0, Run::one(0), false);
    assert_eq!(one.hears(Time::ZERO, &none), Err(Reject::OutOfRange), "there is none behind it");
    let lost = one.1.iter().filter(|event| matches!(event, ReceiverEvent::Ended(..))).count();
    assert_eq!(lost, 4, "{:?}", one.1);
}

/// The sender sends its first probe before any message with which a receiver may begin. The first request answers that
/// probe already, so round trips and outdated requests are known from the beginning.
#[test]
fn the_probe_before_all_else_is_answered() {
    let probe = |sequence, seconds| {
        let (sent, hold) = (Stamp { seconds, micros: 0 }, Stamp { seconds: 0, micros: 0 });
        let rtt = Rtt(0x88);
        let nodes = Vec::new();
        let (wildcard, segment_size, rate, loss) = (false, 1000, 0, 0);
        says(FromSender::Probe(Probe {
            wildcard,
            sequence,
            sent,
            hold,
            segment_size,
            rate,
            rtt,
            loss,
            nodes,
        }))
    };
    let about = about(0, Flags::FILE.with(Flags::INFO));
    for stranger in [false, true] {
        let mut one = Alone::new();
        assert_eq!(one.hears(Time::ZERO, &probe(7, 100)), Err(Reject::Unexpected));
        if stranger {
            let other = Message { source: NodeId(99), ..probe(8, 900) };
            assert_eq!(one.hears(Time::ZERO, &other), Err(Reject::Unexpected));
        }
        one.opens(about);
        one.hears(Time::ZERO + ms(250), &symbols(about, 1, Run::one(0), false)).unwrap();
        let deadline = one.0.poll_timeout().unwrap();
        one.0.handle_timeout(deadline.at);
        let said = one.0.poll_transmit(deadline.at, deadline.at).unwrap().message;
        let Body::Receiver(said) = said.body else { panic!() };
        let expected = Stamp { seconds: 100, micros: 0 }.later(deadline.at.since(Time::ZERO));
        let answers = if stranger { (None, 0) } else { (Some(expected), 7) };
        assert_eq!((said.response, said.probe), answers, "another's probe answers for nobody");
    }
}

/// Returns a NACK from `node`.
pub(crate) fn nack(node: u32, nacks: Vec<ObjectNack>) -> Message {
    nack_of(node, nacks, None)
}

/// Returns a NACK from `node`, which has heard everything that left up to `response`.
fn nack_of(node: u32, nacks: Vec<ObjectNack>, response: Option<Stamp>) -> Message {
    let answer = Answer::Nack(nacks);
    let said = FromReceiver { server: NodeId(1), response, loss: 0, probe: 0, answer };
    Message { source: NodeId(node), body: Body::Receiver(said) }
}

/// Returns a sender that has sent everything, and the time.
pub(crate) fn through(config: SenderConfig) -> (Sender, Time) {
    let mut sender = Sender::new(config).unwrap();
    sender.open(Time::ZERO);
    let mut now = Time::ZERO;
    loop {
        while let Some(transmit) = sender.poll_transmit(now, now) {
            if matches!(said(&transmit.message), Some(FromSender::Flush { .. })) {
                return (sender, now);
            }
        }
        now = sender.poll_timeout().unwrap().at;
        sender.handle_timeout(now);
    }
}

/// Returns the messages of a sender in the next `seconds`.
pub(crate) fn next(sender: &mut Sender, mut now: Time, seconds: u64) -> Vec<(Time, FromSender)> {
    let (end, mut heard) = (now + Span::from_secs(seconds), Vec::new());
    loop {
        while let Some(transmit) = sender.poll_transmit(now, now) {
            heard.extend(said(&transmit.message).map(|said| (now, said.clone())));
        }
        match sender.poll_timeout() {
            Some(deadline) if deadline.at <= end => now = deadline.at,
            _ => return heard,
        }
        sender.handle_timeout(now);
    }
}

pub(crate) fn from_receiver() -> Arrival {
    let address: SocketAddr = "10.0.0.1:5555".parse().unwrap();
    Arrival::new(address, server())
}

pub(crate) fn lacks(object: u32, which: u32) -> ObjectNack {
    let mut mask = Mask::new(14);
    mask.insert(Run::one(which));
    ObjectNack { object, requests: vec![Request::Segments { erasures: 1, offset: 0, mask }] }
}

/// Draft §4.4: requests are gathered for two round trips, and the worst need of a block counts.
#[test]
fn requests_are_gathered_for_two_round_trips() {
    let (mut one, now) = through(sender(20, 0));
    for node in 2..9 {
        one.handle(now, &from_receiver(), &nack(node, vec![lacks(0, node % 10)])).unwrap();
    }
    let heard = next(&mut one, now, 2);
    let repairs: Vec<_> = heard.iter().filter(|(_, said)| matches!(said, FromSender::Data(_))).collect();
    assert_eq!(repairs.len(), 1, "each lacks one, and any parity makes up for it: {repairs:?}");
    let gathered = repairs[0].0.since(now);
    let grtt = Rtt::of(ms(300)).span();
    assert!(gathered >= grtt * 2 && gathered < grtt * 2 + ms(20), "{gathered}");
}

/// Symbols that left after a request was made may be those that it asks for. A receiver that does not get them asks
/// again.
#[test]
fn a_request_does_not_count_what_has_left_since() {
    // Stamps of long ago make round trips long, which changes nothing here.
    let (mut one, now) = through(SenderConfig { robust: 1000, ..sender(20, 0) });
    one.handle(now, &from_receiver(), &nack(2, vec![lacks(0, 1)])).unwrap();
    let repairs = |heard: &[(Time, FromSender)]| -> Vec<Time> {
        let data = heard.iter().filter(|(_, said)| matches!(said, FromSender::Data(_)));
        data.map(|&(at, _)| at).collect()
    };
    let left = repairs(&next(&mut one, now, 60));
    assert_eq!(left.len(), 1);
    let mut two = lacks(0, 1);
    two.requests = vec![Request::Segments { erasures: 2, offset: 0, mask: Mask(vec![0, 0x3C]) }];
    let mut now = now + Span::from_secs(60);
    // The request was made before the one repair left, or after it, or by a receiver that has heard no probe.
    for (asked, heard, sent) in [
        (lacks(0, 1), Some(left[0] - ms(1)), 0),
        (two, Some(left[0] - ms(1)), 1),
        (lacks(0, 1), Some(Time::NEVER), 1),
        (lacks(0, 1), None, 1),
    ] {
        one.handle(now, &from_receiver(), &nack_of(3, vec![asked], heard.map(|at| Stamp::of(at.min(now)))))
            .unwrap();
        let repairs = repairs(&next(&mut one, now, 60));
        assert_eq!(repairs.len(), sent, "{heard:?}");
        now += Span::from_secs(60);
    }
}

/// The sender reports that a requested object does not exist, once in two round trips.
#[test]
fn a_request_for_nothing_is_squelched_and_no_flood_makes_it_say_more() {
    let (mut one, now) = through(sender(20, 0));
    for _ in 0..100 {
        one.handle(now, &from_receiver(), &nack(2, vec![lacks(7, 0)])).unwrap();
    }
    let heard = next(&mut one, now, 0);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].1, FromSender::Squelch { sync: 0, invalid: vec![7] });
    for bad in [
        lacks(0, 14),
        ObjectNack { object: 0, requests: vec![Request::Blocks { offset: 7, mask: Mask(vec![0x80]) }] },
    ] {
        assert_eq!(one.handle(now, &from_receiver(), &nack(2, vec![bad])), Err(Reject::OutOfRange));
    }
    assert_eq!(one.handle(now, &from_receiver(), &nack(2, Vec::new())), Err(Reject::Inconsistent));
    assert_eq!(one.handle(now, &from_receiver(), &nack(1, vec![lacks(0, 1)])), Err(Reject::Collision));
}

/// Receivers that answer to the sender alone learn the requests of others from `NACK_ADV`.
#[test]
fn what_is_asked_for_by_unicast_is_told_to_the_group() {
    let mut asked = [0, 0];
    for (told, count) in [(true, 1), (false, 0)] {
        for seed in 0..5 {
            let config = SenderConfig { unicast: told, ..sender(60, 0) };
            let mut session = Session::empty("told", Setup::plain(seed), config, Link::clean(ms(20)));
            for n in 0..12 {
                session.add(n, ReceiverConfig { unicast: true, ..receiver(n) });
            }
            // All receivers lose the same symbols, so one request would suffice.
            session.net.drop_if(|leg| {
                leg.message
                    .data()
                    .is_some_and(|data| !data.parity && data.block % 2 == 0 && data.symbols.first() == 3)
            });
            let mut session = session.run();
            session.assert_received(1);
            let log = session.net.take_log();
            asked[count] += log.departures.iter().filter(|departure| is_nack(&departure.message)).count();
            let told_of =
                |message: &Message| matches!(said(message), Some(FromSender::NackAdv(_))).then_some(());
            assert_eq!(!sent(&log, 0, told_of).is_empty(), told);
        }
    }
    assert!(asked[1] * 4 < asked[0] * 3, "{asked:?}");
}

/// The gap lies between the last segment of an object and the next object.
#[test]
fn objects_keep_their_distance() {
    let config =
        SenderConfig { objects: vec![object(5), object(5)], gap: Span::from_secs(30), ..sender(5, 1) };
    let mut session = Session::new("gap", Setup::plain(1), config, 1, Link::lossy(ms(50), 0.05)).run();
    session.assert_received(2);
    let log = session.net.take_log();
    let of = |object| data(&log).into_iter().filter(move |(_, data)| data.about.object == object);
    let last = of(0).rfind(|(_, data)| !data.about.flags.has(Flags::REPAIR)).unwrap().0;
    let gap = of(1).next().unwrap().0.since(last);
    assert!(gap >= Span::from_secs(30) && gap < Span::from_secs(31), "{gap}");
}
