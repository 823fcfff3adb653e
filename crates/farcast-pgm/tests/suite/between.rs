//! The laws for an element and a repairer, and messages of attackers to them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Deadline, Engine, Message as _, Reject, Transmit};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::ElementEngine as _;
use farcast_delivery::Outcome;
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::{Nak, NakKind, Spm};
use farcast_pgm::{
    Asks, Body, Element, ElementConfig, ElementEvent, Gsi, Message, Receiver, ReceiverConfig, ReceiverEvent,
    Sender, SenderConfig, Sqn, StoreConfig, Tsi,
};
use farcast_testkit::{Host, Link, Network, Setup, laws};

use crate::common::{TSI, files, forge, group, ms, receiver, receiver_address, source};

fn above() -> SocketAddr {
    "10.9.0.1:3056".parse().unwrap()
}

/// Returns the group of the nodes below the element. It is another, since the network has hosts only and they would
/// hear the source itself.
fn below() -> SocketAddr {
    "239.192.0.2:3056".parse().unwrap()
}

/// A router with an element: port 1 leads to the source, port 2 to all others.
struct Between {
    element: Element,
    passing: VecDeque<Transmit<Message>>,
    heard: Rc<RefCell<Vec<(Time, Arrival, Message)>>>,
}

impl Engine for Between {
    type Message = Message;
    type Event = ElementEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let is_above = from.source == source();
        let mut message = message.clone();
        if let Body::Nak(nak) = &mut message.body {
            nak.group = group().ip();
        }
        let is_odata =
            message.data().is_some_and(|data| data.kind == farcast_pgm::message::DataKind::Original);
        if is_above && is_odata {
            let through = Transmit::new(message.clone(), below());
            self.passing.push_back(Transmit { source: Some(source()), ..through });
        }
        let from = Arrival { interface: if is_above { 1 } else { 2 }, ..*from };
        self.heard.borrow_mut().push((now, from, message.clone()));
        if is_odata && !self.element.overhears() {
            return Ok(());
        }
        self.element.handle(now, &from, &message)
    }

    fn handle_timeout(&mut self, now: Time) {
        self.element.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Message>> {
        let own = self.passing.pop_front().or_else(|| self.element.poll_transmit(now, until))?;
        let destination = if own.destination == group() { below() } else { own.destination };
        Some(Transmit { destination, ..own })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.element.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<ElementEvent> {
        self.element.poll_event()
    }

    fn settled_until(&self) -> Time {
        self.element.settled_until()
    }

    fn prefix(&self, _message: &Message) -> NonZeroU32 {
        NonZeroU32::MIN
    }
}

fn config(store: Option<StoreConfig>) -> ElementConfig {
    ElementConfig { store, ..ElementConfig::new(vec![above().ip(), above().ip()]) }
}

struct Case {
    net: Network<Message>,
    heard: Rc<RefCell<Vec<(Time, Arrival, Message)>>>,
    complete: Rc<RefCell<u32>>,
}

fn case(setup: Setup, store: Option<StoreConfig>) -> Case {
    let mut net = Network::new(format!("{store:?}"), setup);
    net.links(Link { jitter: ms(2), ..Link::lossy(ms(30), 0.05) });
    net.limit(Span::from_secs(3600));
    let (heard, complete) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(0)));
    let sending = SenderConfig { router_alert: true, ..files(&[40, 20], 3) };
    let sender = net.add(source(), &[], Host::alone(Sender::new(sending).unwrap()));
    net.at(Time::ZERO, sender, |engine: &mut Sender, now| engine.open(now));
    let element = Element::new(config(store)).unwrap();
    let between = Between { element, passing: VecDeque::new(), heard: heard.clone() };
    net.add(above(), &[group().ip()], Host::alone(between).without(|_| true));
    for n in 0..3 {
        let engine = Receiver::new(ReceiverConfig { group: below(), ..receiver(n) }).unwrap();
        let count = complete.clone();
        let owner = move |engine: &mut Receiver, now, event| match event {
            ReceiverEvent::Offered(offer) => engine.accept(now, offer.object, &Bitmap::new(0)),
            ReceiverEvent::Complete(object) => engine.verified(now, object),
            ReceiverEvent::Ended(_, Outcome::Complete(_)) => *count.borrow_mut() += 1,
            _ => {}
        };
        let host = Host::new(engine, owner).without(|event| matches!(event, ReceiverEvent::Store { .. }));
        net.add(receiver_address(n), &[below().ip()], host);
    }
    Case { net, heard, complete }
}

fn stores() -> [Option<StoreConfig>; 4] {
    let slow = farcast_delivery::RatePace {
        rate: farcast_core::BitRate::from_bps(500_000).unwrap(),
        overhead: 28,
        credit: ms(2),
        granule: 1,
    };
    let store = StoreConfig::new();
    [
        None,
        Some(store.clone()),
        Some(StoreConfig { tpdus: 10, pace: Some(slow), ..store.clone() }),
        Some(StoreConfig { asks: Asks::Nothing, feedback: true, tells: Some(ms(500)), ..store }),
    ]
}

#[test]
fn elements_and_repairers_obey() {
    for store in stores() {
        let complete = RefCell::new(Rc::new(RefCell::new(0)));
        let build = |setup| {
            let case = case(setup, store.clone());
            *complete.borrow_mut() = case.complete;
            case.net
        };
        laws::all(0..3, ms(20), build, |_| *complete.borrow().borrow() == 6);
    }
}

/// Returns the messages to an element in a transfer with losses, every other one forged.
fn conversation(seed: u64) -> Vec<(Time, Arrival, Message)> {
    let Case { mut net, heard, .. } = case(Setup::plain(seed), None);
    net.run();
    let mut random = RandomStream::derive(seed, &[1]);
    let mut said = Vec::new();
    for (at, from, message) in heard.take() {
        if random.chance(0.5) {
            for _ in 0..3 {
                let interface = random.below(4) as u32;
                let forged = forge(&message, &mut random);
                said.extend(forged.map(|forged| (at, Arrival { interface, ..from }, forged)));
            }
        }
        said.push((at, from, message));
    }
    said
}

#[test]
fn what_is_turned_down_leaves_no_trace() {
    for seed in 0..10 {
        for store in stores() {
            let mut engine = Element::new(config(store)).unwrap();
            let trace =
                |engine: &Element| format!("{} {} {:?}", engine.sessions(), engine.states(), engine.held());
            let context = format!("[seed {seed}]");
            let words = conversation(seed);
            let looked = laws::rejects_without_trace(&context, &mut engine, words, trace, |_, _| false);
            assert!(looked > 20, "{looked}");
        }
    }
}

fn spm(tsi: Tsi, sqn: u32, trail: u32, lead: u32) -> Message {
    let (sqn, trail, lead) = (Sqn(sqn), Sqn(trail), Sqn(lead));
    let body = Body::Spm(Spm { sqn, trail, lead, path: source().ip(), options: vec![] });
    Message { tsi, port: 7500, body }
}

fn nak(tsi: Tsi, sqn: u32, also: impl IntoIterator<Item = u32>) -> Message {
    let (kind, sqn) = (NakKind::Nak, Sqn(sqn));
    let (source, group, also) = (source().ip(), group().ip(), also.into_iter().map(Sqn).collect());
    let body =
        Body::Nak(Nak { kind, parity: false, sqn, source, group, also, list_octet: 0, options: vec![] });
    Message { tsi, port: 7500, body }
}

fn from_above() -> Arrival {
    Arrival { interface: 1, ..Arrival::new(source(), group()) }
}

fn from_below() -> Arrival {
    Arrival { interface: 2, ..Arrival::new(receiver_address(0), above()) }
}

fn numbered(number: u8) -> Tsi {
    Tsi { gsi: Gsi([9, 9, 9, 9, 9, number]), port: 4000 }
}

const fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

#[test]
fn what_nobody_offers_cannot_be_asked_for() {
    let mut element = Element::new(ElementConfig { ahead: 10, ..config(None) }).unwrap();
    assert_eq!(element.handle(at(0), &from_below(), &nak(TSI, 5, [])), Err(Reject::Stranger));
    element.handle(at(0), &from_above(), &spm(TSI, 1, 100, 199)).unwrap();
    while element.poll_transmit(at(0), at(1)).is_some() {}
    for sqn in [0, 99, 210, u32::MAX] {
        assert_eq!(
            element.handle(at(1), &from_below(), &nak(TSI, sqn, [])),
            Err(Reject::OutOfRange),
            "{sqn}"
        );
    }
    assert_eq!(element.poll_transmit(at(1), at(2)), None);
    assert_eq!((element.rejects().of(Reject::OutOfRange), element.rejects().of(Reject::Stranger)), (4, 1));
    // The numbers within the window are taken from a list that has others, too.
    element.handle(at(1), &from_below(), &nak(TSI, 99, [100, 209, 210])).unwrap();
    let sent: Vec<_> = core::iter::from_fn(|| element.poll_transmit(at(1), at(2))).collect();
    let named: Vec<_> = sent
        .iter()
        .map(|transmit| match &transmit.message.body {
            Body::Nak(nak) => (nak.kind, nak.sqns().map(|sqn| sqn.0).collect::<Vec<_>>()),
            _ => panic!("{transmit:?}"),
        })
        .collect();
    let both = vec![100, 209];
    assert_eq!(named, [(NakKind::Confirmation, both.clone()), (NakKind::Nak, both)]);
    // The confirmation goes to the group with the source's address, by the port of the request. The NAK goes to the
    // neighbour with the element's own address.
    let down = &sent[0];
    assert_eq!((down.destination, down.source, down.interface), (group(), Some(source()), 2));
    assert!(down.router_alert);
    let up = &sent[1];
    assert_eq!((up.destination, up.source, up.interface), (source(), Some(above()), 1));
    assert!(!up.router_alert);
}

#[test]
fn a_path_does_not_move_while_it_is_used() {
    let mut element = Element::new(config(None)).unwrap();
    element.handle(at(0), &from_above(), &spm(TSI, 1, 0, 9)).unwrap();
    let forger = Arrival { interface: 2, ..from_above() };
    assert_eq!(element.handle(at(1000), &forger, &spm(TSI, 2, 0, 9)), Err(Reject::Collision));
    assert_eq!(element.handle(at(1000), &from_above(), &spm(TSI, 1, 0, 9)), Err(Reject::Duplicate));
    element.handle(at(10_000), &forger, &spm(TSI, 2, 0, 9)).unwrap();
}

#[test]
fn duplicates_are_eliminated_and_one_more_goes_on_afterwards() {
    let mut element = Element::new(config(None)).unwrap();
    element.handle(at(0), &from_above(), &spm(TSI, 1, 0, 9)).unwrap();
    let asked = |element: &mut Element, ms, sqn| {
        element.handle(at(ms), &from_below(), &nak(TSI, sqn, [])).unwrap();
        let up = |transmit: &Transmit<Message>| transmit.interface == 1;
        core::iter::from_fn(|| element.poll_transmit(at(ms), at(ms))).filter(up).count()
    };
    assert_eq!(asked(&mut element, 10, 5), 1);
    assert_eq!(asked(&mut element, 20, 5), 0, "it is pending");
    let Body::Nak(mut said) = nak(TSI, 5, []).body else { panic!("a NAK is one") };
    said.kind = NakKind::Confirmation;
    let confirmation = Message { tsi: TSI, port: 7500, body: Body::Nak(said) };
    element.handle(at(30), &from_above(), &confirmation).unwrap();
    assert_eq!(element.poll_timeout().map(|due| due.at), Some(at(10_030)), "it is not repeated");
    assert_eq!(asked(&mut element, 500, 5), 0);
    assert_eq!(asked(&mut element, 1029, 5), 0);
    assert_eq!(asked(&mut element, 1030, 5), 1);
    assert_eq!(asked(&mut element, 1040, 5), 0);
    // Nobody confirms this one: it is repeated for a second.
    assert_eq!(element.counts().cancelled, 0);
    element.handle_timeout(at(2030));
    element.handle_timeout(at(2100));
    assert_eq!((element.counts().cancelled, element.states()), (1, 0));
}

#[test]
fn memory_and_octets_are_bounded() {
    let limits = ElementConfig { sessions: 8, states: 100, ..config(Some(StoreConfig::new())) };
    let mut element = Element::new(limits).unwrap();
    let flood = (0..3000u32).map(|n| {
        let tsi = numbered((n % 20) as u8);
        let (now, which) = (at(u64::from(n) * 5), n % 3);
        let also = (1..62).map(|more| (n * 63 + more) % 1000);
        match which {
            0 => (now, from_above(), spm(tsi, n, 0, 999)),
            _ => (now, from_below(), nak(tsi, n * 63 % 1000, also)),
        }
    });
    let size = |element: &Element| element.states().max(element.sessions() * 12);
    laws::stays_small("flood", &mut element, flood, size, 100);
    assert!(element.counts().crowded > 0);
    // Idle sessions made room.
    assert!(element.handle(at(60_000), &from_above(), &spm(numbered(77), 1, 0, 9)).is_ok());
    element.handle_timeout(at(200_000));
    assert_eq!((element.sessions(), element.poll_timeout()), (0, None));
}

#[test]
fn nobody_makes_it_say_much_more_than_it_hears() {
    for seed in 0..10 {
        let mut element = Element::new(config(None)).unwrap();
        let (mut heard, mut said) = (0, 0);
        for (at, from, message) in conversation(seed) {
            element.handle_timeout(at);
            heard += message.wire_len(0);
            let _ = element.handle(at, &from, &message);
            while let Some(transmit) = element.poll_transmit(at, at) {
                said += transmit.message.wire_len(0);
            }
            assert!(said <= 3 * heard + 64, "{said} octets for {heard}");
        }
        assert!(said > 0);
    }
}
