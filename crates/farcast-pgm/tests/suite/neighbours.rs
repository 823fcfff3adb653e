//! Dealings of a receiver with nodes on its path: polls, redirection, parents that cannot be asked, and late joining.

use std::net::{IpAddr, SocketAddr};

use farcast_core::engine::Reject;
use farcast_core::{Arrival, Engine as _, Span, Time};
use farcast_delivery::ReceiverEngine as _;
use farcast_pgm::message::{Cr, Data, DataKind, Feedback, Nak, NakKind, Opt, Poll, Polr, Spm};
use farcast_pgm::{Body, Delivering, Message, MessageEvent, Receiver, ReceiverConfig, ReceiverEvent, Sqn};

use crate::common::{TSI, group, hears_messages, messages, ms, receiver_address, say, source};

const ELEMENT: &str = "10.9.0.1";
const REPAIRER: &str = "10.8.0.1";

fn address(text: &str) -> IpAddr {
    text.parse().expect("address")
}

fn message(body: Body) -> Message {
    Message { tsi: TSI, port: 7500, body }
}

fn spm(sqn: u32, lead: u32, path: &str, options: Vec<Opt>) -> Message {
    let (sqn, trail, lead) = (Sqn(sqn), Sqn(0), Sqn(lead));
    message(Body::Spm(Spm { sqn, trail, lead, path: address(path), options }))
}

fn odata(sqn: u32) -> Message {
    message(Body::Data(Data {
        kind: DataKind::Original,
        sqn: Sqn(sqn),
        count: core::num::NonZeroU32::MIN,
        trail: Sqn(0),
        parity: None,
        options: farcast_pgm::message::DataOptions::default(),
        descriptor: None,
        len: 100,
        last_len: 100,
        origin: farcast_pgm::message::Origin::UNKNOWN,
    }))
}

fn poll(sqn: u32, round: u16, mask: u32) -> Poll {
    let (random, backoff_us) = (0, 100_000);
    let (sqn, subtype, path, options) = (Sqn(sqn), 0, address(ELEMENT), vec![]);
    Poll { sqn, round, subtype, path, backoff_us, random, mask, options }
}

fn confirmation(sqn: u32, options: Vec<Opt>) -> Message {
    let (source, group) = (source().ip(), group().ip());
    let (also, list_octet, parity) = (vec![], 0, false);
    let kind = NakKind::Confirmation;
    message(Body::Nak(Nak { kind, parity, sqn: Sqn(sqn), source, group, also, list_octet, options }))
}

/// A receiver below an element, and its messages.
struct Below {
    engine: Receiver,
    now: Time,
}

impl Below {
    fn new(config: ReceiverConfig) -> Self {
        let mut engine = Receiver::new(config).expect("valid");
        let now = Time::ZERO;
        engine.handle(now, &Arrival::new(source(), group()), &spm(10, 0, ELEMENT, vec![])).expect("an SPM");
        Self { engine, now }
    }

    fn hear(&mut self, message: &Message) -> Result<(), Reject> {
        self.hear_at(group(), message)
    }

    fn hear_at(&mut self, to: SocketAddr, message: &Message) -> Result<(), Reject> {
        self.engine.handle(self.now, &Arrival::new(source(), to), message)
    }

    /// Returns the messages of the receiver up to `span` from now, and their destinations.
    fn says(&mut self, span: Span) -> Vec<(Time, SocketAddr, Body)> {
        let (until, mut said) = (self.now + span, Vec::new());
        loop {
            self.engine.handle_timeout(self.now);
            while let Some(transmit) = self.engine.poll_transmit(self.now, self.now) {
                said.push((self.now, transmit.destination, transmit.message.body));
            }
            let next = self.engine.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
            if next > until {
                self.now = until;
                return said;
            }
            self.now = next;
        }
    }

    fn requests(&mut self, span: Span) -> Vec<(SocketAddr, Nak)> {
        let nak = |(_, to, body)| if let Body::Nak(nak) = body { Some((to, nak)) } else { None };
        self.says(span).into_iter().filter_map(nak).collect()
    }
}

fn below() -> ReceiverConfig {
    let config = hears_messages(0, Delivering::Unordered);
    let address = receiver_address(0).ip();
    ReceiverConfig { address: Some(address), subnet: Some((address, 24)), confirm: ms(200), ..config }
}

fn at(text: &str) -> SocketAddr {
    SocketAddr::new(address(text), source().port())
}

#[test]
fn below_an_element_it_asks_that_and_names_the_source() {
    let mut below = Below::new(below());
    below.hear(&odata(2)).unwrap();
    let asked = below.requests(ms(60));
    assert_eq!((asked.len(), asked[0].0, asked[0].1.source), (1, at(ELEMENT), source().ip()));
}

#[test]
fn a_poll_of_its_parent_is_answered_once_within_its_back_off() {
    let mut below = Below::new(below());
    let begin = below.now;
    below.hear(&message(Body::Poll(poll(7, 0, 0)))).unwrap();
    assert_eq!(below.hear(&message(Body::Poll(poll(7, 0, 0)))), Err(Reject::Duplicate));
    let said = below.says(ms(1000));
    let [(when, to, Body::Polr(polr))] = &said[..] else { panic!("{said:?}") };
    assert!(when.since(begin) <= ms(100), "{when:?}");
    assert_eq!((*to, polr.sqn, polr.round), (at(ELEMENT), Sqn(7), 0));
    // The first round of poll 7 was heard, so its second is answered; that of poll 9 was not.
    below.hear(&message(Body::Poll(poll(7, 1, 0)))).unwrap();
    assert_eq!(below.says(ms(1000)).len(), 1);
    assert_eq!(below.hear(&message(Body::Poll(poll(9, 1, 0)))), Err(Reject::OutOfRange));
    // A poll of another element, and a poll for repairers.
    let other = Poll { path: address(REPAIRER), ..poll(10, 0, 0) };
    assert_eq!(below.hear(&message(Body::Poll(other))), Err(Reject::Unexpected));
    let repairers = Poll { subtype: 1, ..poll(10, 0, 0) };
    assert_eq!(below.hear(&message(Body::Poll(repairers))), Err(Reject::Unexpected));
    assert_eq!(below.says(ms(1000)), []);
}

#[test]
fn another_poll_takes_the_place_of_one_that_is_not_answered_yet() {
    let mut below = Below::new(below());
    below.hear(&message(Body::Poll(poll(7, 0, 0)))).unwrap();
    below.hear(&message(Body::Poll(poll(8, 0, 0)))).unwrap();
    let said = below.says(ms(1000));
    assert!(matches!(&said[..], [(_, _, Body::Polr(polr))] if polr.sqn == Sqn(8)), "{said:?}");
    // The second poll cancels the answer to the first, even if its mask excludes this receiver.
    below.hear(&message(Body::Poll(poll(9, 0, 0)))).unwrap();
    below.hear(&message(Body::Poll(poll(10, 0, u32::MAX)))).unwrap();
    assert_eq!(below.says(ms(1000)), []);
}

/// About 2^-3 of 4,096 receivers answer a mask of three bits.
#[test]
fn as_many_answer_as_the_mask_says() {
    let answers = |n: u32| {
        let mut below = Below::new(hears_messages(n, Delivering::Unordered));
        below.hear(&message(Body::Poll(poll(1, 0, 0b1_0100_0001)))).unwrap();
        below.says(ms(200)).len()
    };
    let count: usize = (0..4096).map(answers).sum();
    assert!((440..585).contains(&count), "{count}, 512 expected with a deviation of 21");
}

#[test]
fn an_interval_that_came_of_a_poll_counts_for_who_heard_that() {
    for (heard, least) in [(false, 0), (true, 60)] {
        let mut late = 0;
        for seed in 0..20 {
            let mut below = Below::new(ReceiverConfig { seed, ..below() });
            if heard {
                below.hear(&message(Body::Poll(poll(7, 0, u32::MAX)))).unwrap();
            }
            let option = Opt::NakBackoff { interval_us: 10_000_000, sqn: Sqn(7) };
            below.hear(&spm(11, 0, ELEMENT, vec![option])).unwrap();
            below.hear(&odata(2)).unwrap();
            late += usize::from(below.requests(ms(60)).is_empty());
        }
        assert_eq!(late > 10, least > 0, "{late}");
    }
}

fn redirecting(to: &str) -> Message {
    let options = vec![Opt::Redirect(address(to))];
    message(Body::Polr(Polr { sqn: Sqn(1), round: 0, parity: false, options }))
}

#[test]
fn a_repairer_is_asked_until_it_does_not_confirm() {
    let mut below = Below::new(below());
    below.hear(&redirecting(REPAIRER)).unwrap();
    assert_eq!(below.hear(&redirecting(REPAIRER)), Err(Reject::Duplicate));
    below.hear(&odata(2)).unwrap();
    let asked = below.requests(ms(60));
    assert_eq!((asked.len(), asked[0].0), (1, at(REPAIRER)));
    below.hear(&confirmation(1, vec![])).unwrap();
    // The repair comes, and all is well.
    below.hear(&odata(1)).unwrap();
    below.hear(&odata(4)).unwrap();
    let asked = below.requests(ms(600));
    assert_eq!(asked[0].0, at(REPAIRER));
    assert!(asked.len() > 1 && asked[1..].iter().all(|(to, _)| *to == at(ELEMENT)), "{asked:?}");
}

#[test]
fn repairers_nearby_or_that_speak_to_one_alone_are_not_asked() {
    let mut below = Below::new(below());
    assert_eq!(below.hear(&redirecting("10.0.0.77")), Err(Reject::OutOfRange), "of the same subnet");
    assert_eq!(below.hear(&redirecting("239.1.1.1")), Err(Reject::OutOfRange));
    assert_eq!(below.hear_at(receiver_address(0), &redirecting(REPAIRER)), Err(Reject::Unexpected));
    below.hear(&odata(2)).unwrap();
    assert_eq!(below.requests(ms(60))[0].0, at(ELEMENT));
    let mut other = Below::new(ReceiverConfig { subnet: None, ..self::below() });
    assert_eq!(other.hear(&redirecting(REPAIRER)), Err(Reject::Unexpected), "who follows none");
}

#[test]
fn a_parent_that_is_not_heard_downstream_is_not_asked() {
    let unreachable = || vec![Opt::Unreachable, Opt::PathNla(address(ELEMENT))];
    for by_spm in [false, true] {
        let mut below = Below::new(below());
        below.hear(&odata(2)).unwrap();
        if by_spm {
            // The SPM has the number of the last regular one, and its window says nothing.
            let body = Spm {
                sqn: Sqn(10),
                trail: Sqn(0),
                lead: Sqn(500),
                path: address(ELEMENT),
                options: vec![Opt::Unreachable],
            };
            let foreign = Spm { path: address(REPAIRER), ..body.clone() };
            assert_eq!(below.hear(&message(Body::Spm(foreign))), Err(Reject::Unexpected));
            below.hear(&message(Body::Spm(body))).unwrap();
        } else {
            let foreign = vec![Opt::Unreachable, Opt::PathNla(address(REPAIRER))];
            below.hear_at(receiver_address(0), &confirmation(1, foreign)).unwrap();
            below.hear_at(receiver_address(0), &confirmation(1, unreachable())).unwrap();
            let said = below.says(Span::ZERO);
            assert!(
                said.iter().all(|(_, to, _)| *to == group()) && said.len() == 2,
                "told the others: {said:?}"
            );
        }
        assert_eq!(below.requests(ms(3000)), [], "by an SPM: {by_spm}");
        below.hear(&spm(11, 2, ELEMENT, vec![])).unwrap();
        let asked = below.requests(ms(3000));
        assert!(!asked.is_empty() && asked[0].1.sqn == Sqn(1) && asked[0].1.also.is_empty(), "{asked:?}");
    }
}

#[test]
fn losses_are_said_where_they_are_asked_for() {
    for wanted in [false, true] {
        let mut below = Below::new(below());
        let options = if wanted { vec![Opt::Crqst(7)] } else { vec![] };
        below.hear(&spm(11, 0, ELEMENT, options)).unwrap();
        for sqn in (1..200).filter(|sqn| sqn % 10 != 0) {
            below.hear(&odata(sqn)).unwrap();
        }
        let asked = below.requests(ms(60));
        let cr = |option: &Opt| if let Opt::Cr(cr) = option { Some(*cr) } else { None };
        let said: Option<Cr> = asked[0].1.options.iter().find_map(cr);
        assert_eq!(said.is_some(), wanted);
        if let Some(cr) = said {
            assert_eq!((cr.fields, cr.reference, cr.node), (1, Sqn(199), receiver_address(0).ip()));
            assert!((2000..12_000).contains(&cr.receiver), "a tenth is 6554: {cr:?}");
        }
    }
}

#[test]
fn who_began_with_data_begins_where_an_spm_says() {
    for (delivering, expected) in [(Delivering::Unordered, 3), (Delivering::Ordered, 0)] {
        let mut engine = Receiver::new(hears_messages(0, delivering)).unwrap();
        let from = Arrival::new(source(), group());
        engine.handle(Time::ZERO, &from, &odata(5)).unwrap();
        engine.handle(Time::ZERO, &from, &spm(1, 5, "192.0.2.1", vec![Opt::Join(Sqn(2))])).unwrap();
        let mut below = Below { engine, now: Time::ZERO };
        let asked = below.requests(ms(100));
        assert_eq!(asked.iter().map(|(_, nak)| nak.sqns().count()).sum::<usize>(), expected);
        // Earlier data cannot be delivered after later data.
        for sqn in 2..5 {
            assert_eq!(below.hear(&odata(sqn)).is_ok(), expected > 0);
        }
        let mut told = 0;
        while let Some(event) = below.engine.poll_event() {
            told += usize::from(matches!(event, ReceiverEvent::Own(MessageEvent::Apdu(_))));
        }
        assert_eq!(told, 1 + expected);
    }
}

#[test]
fn who_acknowledges_says_that_it_leaves() {
    for is_acker in [false, true] {
        let mut below = Below::new(below());
        let mut data = odata(1);
        if let Body::Data(data) = &mut data.body {
            let acker = if is_acker { receiver_address(0).ip() } else { address(REPAIRER) };
            data.options.cc = Some(farcast_pgm::message::CcData { stamp: 5, acker });
        }
        below.hear(&data).unwrap();
        let _ = below.says(Span::ZERO);
        below.engine.stop(below.now);
        let said = below.says(ms(10));
        let leaving = |option: &Opt| matches!(option, Opt::Feedback(Feedback { leaving: true, .. }));
        let leaves =
            said.iter().any(|(_, _, body)| matches!(body, Body::Ack(ack) if ack.options.iter().any(leaving)));
        assert_eq!((leaves, said.len()), (is_acker, usize::from(is_acker)));
    }
}

#[test]
fn the_first_number_says_that_the_session_begins() {
    let mut session = crate::common::Session::empty(
        "syn",
        farcast_testkit::Setup::plain(1),
        messages(),
        farcast_testkit::Link::clean(ms(10)),
    );
    say(&mut session, ms(100), ms(10), &[300; 5]);
    let mut session = session.run();
    let sent = crate::common::data(&session.net.take_log(), DataKind::Original);
    let syn: Vec<bool> = sent.iter().map(|(_, data)| data.options.syn).collect();
    assert_eq!(syn, [true, false, false, false, false]);
}
