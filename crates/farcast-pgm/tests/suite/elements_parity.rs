//! Requests for parity by count, through network elements (RFC 3208 §11.6).

use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Engine as _, Reject};
use farcast_pgm::message::{Data, DataKind, DataOptions, Nak, NakKind, Opt, Origin, Parity, Spm};
use farcast_pgm::{Body, Element, ElementConfig, Grouping, Message, SenderConfig, Sqn, StoreConfig};

use crate::common::{TSI, files, group, ms, receiver, receiver_address, source};
use crate::elements::{all_complete, between, island};
use crate::tree::{Hop, Tree};

/// Numbers of a group, and data packets of the file: 18 full groups, and one of 12.
const GROUP: u32 = 16;
const SEGMENTS: u32 = 300;
const GROUPS: usize = 19;

fn config(named: u32) -> SenderConfig {
    let parity = Some(Grouping { size: GROUP, ahead: 0, on_demand: true });
    SenderConfig { parity, router_alert: true, ..files(&[SEGMENTS], named) }
}

/// Returns `true` for the first transmission of data at one of these places in its group. The file's descriptor is in
/// no group.
fn places(hop: &Hop, lost: &[u32]) -> bool {
    hop.sqn(DataKind::Original).is_some_and(|sqn| sqn >= GROUP && lost.contains(&(sqn % GROUP)))
}

fn is_parity(hop: &Hop) -> bool {
    hop.message.data().is_some_and(|data| data.parity.is_some())
}

/// Returns the number of parity packets that passed from one node to another.
fn parity(tree: &Tree, from: usize, to: usize) -> usize {
    tree.passed(from, to, |hop| is_parity(hop).then_some(())).len()
}

/// Returns the counts in requests for parity that passed from one node to another.
fn counts(tree: &Tree, from: usize, to: usize, kind: NakKind) -> Vec<u32> {
    let of = |hop: &Hop| match &hop.message.body {
        Body::Nak(nak) if nak.parity && nak.kind == kind => {
            Some(nak.sqns().map(|sqn| sqn.0 % GROUP + 1).collect::<Vec<u32>>())
        }
        _ => None,
    };
    tree.passed(from, to, of).concat()
}

/// Creates source 0, element 1, elements 2 and 3 below it, and two receivers below each: 4 and 5, 6 and 7.
fn two_arms(lose: impl FnMut(&Hop) -> bool + 'static) -> (Tree, [usize; 4]) {
    let mut tree = Tree::new(config(4), lose);
    let top = tree.router(0, ms(20));
    let arms = [tree.router(top, ms(10)), tree.router(top, ms(10))];
    let receivers = [0, 1, 2, 3].map(|n| tree.receiver(arms[n as usize / 2], ms(2), receiver(n)));
    for node in [top, arms[0], arms[1]] {
        tree.element(node, |config| config.unknown = Some(ms(200)));
    }
    (tree, receivers)
}

#[test]
fn each_port_gets_as_many_packets_as_are_lacking_behind_it() {
    // Each group loses two packets on the way to both receivers of an arm, and a third on the way to one of them.
    let (tree, receivers) = two_arms(|hop| {
        (places(hop, &[3, 7]) && between(hop, 1, 2)) || (places(hop, &[9]) && between(hop, 2, 4))
    });
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert_eq!(tree.repairs(0, 1).len(), 3 * GROUPS, "the source sends what lacks most, once");
    for (from, to, each) in [(0, 1, 3), (1, 2, 3), (2, 4, 3), (2, 5, 2), (1, 3, 0), (3, 6, 0)] {
        assert_eq!(parity(&tree, from, to), each * GROUPS, "from {from} to {to}");
    }
}

#[test]
fn a_request_for_more_goes_on_and_one_for_as_many_does_not() {
    let (tree, receivers) = two_arms(|hop| {
        (places(hop, &[3]) && hop.from == 0)
            || (places(hop, &[9]) && (between(hop, 2, 4) || between(hop, 2, 5)))
    });
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    // Behind the two arms, two receivers lack one packet of each group, and two lack two. The packets that the short
    // group does not have count as missing.
    let asked: Vec<u32> = counts(&tree, 1, 0, NakKind::Nak);
    let more = asked.iter().filter(|&&count| count == 2).count();
    assert!((1..=2).contains(&(asked.len() / GROUPS)), "{asked:?}");
    assert_eq!(more, GROUPS - 1, "each but the short group's once: {asked:?}");
    assert!(tree.engine(2).counts().eliminated > 0);
    // The confirmation names at least the count of the request.
    assert!(counts(&tree, 2, 4, NakKind::Confirmation).iter().all(|&count| count >= 2));
    assert_eq!((parity(&tree, 0, 1), parity(&tree, 3, 6)), (2 * GROUPS, GROUPS));
}

#[test]
fn parity_that_is_lost_below_an_element_is_asked_for_again() {
    let mut gone = 0;
    let (tree, receivers) = two_arms(move |hop| {
        let lost = is_parity(hop) && between(hop, 2, 4) && gone < 5;
        gone += u32::from(lost);
        lost || (places(hop, &[3, 7]) && between(hop, 1, 2))
    });
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert!(parity(&tree, 0, 1) > 2 * GROUPS && parity(&tree, 0, 1) <= 2 * GROUPS + 5);
    assert_eq!(tree.engine(2).states(), 0);
}

#[test]
fn a_request_for_parity_is_repeated_until_it_is_confirmed_or_given_up() {
    let early = |hop: &Hop, until| hop.at < Time::ZERO + ms(until) && hop.from == 0;
    let heard = |hop: &Hop| is_parity(hop) || !hop.named(NakKind::Confirmation).is_empty();
    let (mut tree, receivers) =
        two_arms(move |hop| (early(hop, 900) && heard(hop)) || (places(hop, &[3]) && between(hop, 1, 2)));
    tree.element(1, |config| config.unknown = None);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    let asks = |hop: &Hop| hop.named(NakKind::Nak).contains(&GROUP).then_some(hop.at);
    let first = tree.passed(1, 0, asks);
    assert!(first.len() > 5, "{first:?}");
    for pair in first.windows(2).take(5) {
        assert_eq!(pair[1].since(pair[0]), ms(50));
    }

    let (mut tree, receivers) =
        two_arms(move |hop| (early(hop, 4000) && heard(hop)) || (places(hop, &[3]) && between(hop, 1, 2)));
    tree.element(1, |config| config.unknown = None);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert!(tree.engine(1).counts().cancelled > 0, "{:?}", tree.engine(1).counts());
}

/// A store holds the transmitted data and no parity of them.
#[test]
fn below_a_repairer_numbers_are_asked_for_and_repaired_from_its_store() {
    let lose = |hop: &Hop| hop.from == 2 && hop.to > 2 && places(hop, &[3, 7]);
    let (mut tree, receivers, repairer) = island(2, StoreConfig::new(), lose);
    tree.source(config(3));
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert_eq!(tree.repairs(0, 1), [], "nothing comes from the source");
    assert_eq!(counts(&tree, receivers[0], repairer, NakKind::Nak), []);
    assert_eq!(tree.engine(repairer).counts().served, 2 * 2 * GROUPS as u64);
}

fn nak(kind: NakKind, sqns: &[u32]) -> Message {
    let (source, group) = (source().ip(), group().ip());
    let also = sqns[1..].iter().map(|&sqn| Sqn(sqn)).collect();
    let nak = Nak {
        kind,
        parity: true,
        sqn: Sqn(sqns[0]),
        source,
        group,
        also,
        list_octet: 0,
        options: Vec::new(),
    };
    Message { tsi: TSI, port: group_port(), body: Body::Nak(nak) }
}

fn group_port() -> u16 {
    group().port()
}

#[test]
fn what_makes_no_sense_of_parity_is_turned_down() {
    let ports = vec!["10.9.0.1".parse().unwrap(), "10.9.1.1".parse().unwrap()];
    let mut element = Element::new(ElementConfig { states: 3, ..ElementConfig::new(ports) }).unwrap();
    let above = Arrival { interface: 1, ..Arrival::new(source(), group()) };
    let own = "10.9.1.1:7500".parse().unwrap();
    let below = Arrival { interface: 2, ..Arrival::new(receiver_address(0), own) };
    let now = Time::ZERO + ms(10);
    let spm = |sqn, options| {
        let body =
            Body::Spm(Spm { sqn: Sqn(sqn), trail: Sqn(32), lead: Sqn(100), path: source().ip(), options });
        Message { tsi: TSI, port: group_port(), body }
    };
    element.handle(now, &above, &spm(1, vec![])).unwrap();
    let asked = nak(NakKind::Nak, &[33]);
    assert_eq!(element.handle(now, &below, &asked), Err(Reject::Unexpected), "there is no parity");
    let parity = |on_demand| Opt::ParityPrm { on_demand, proactive: true, size: 16, octet: 0 };
    element.handle(now, &above, &spm(2, vec![parity(false)])).unwrap();
    assert_eq!(element.handle(now, &below, &asked), Err(Reject::Unexpected), "nor can it be asked for");
    element.handle(now, &above, &spm(3, vec![parity(true)])).unwrap();
    element.handle(now, &below, &asked).unwrap();
    assert_eq!(element.states(), 1);
    let refused = [
        (&above, NakKind::Nak, 33, Reject::Unexpected),
        (&below, NakKind::Confirmation, 33, Reject::Unexpected),
        (&below, NakKind::NullNak, 33, Reject::Unexpected),
        (&below, NakKind::Nak, 31, Reject::OutOfRange),
        (&below, NakKind::Nak, 100 + (1 << 17), Reject::OutOfRange),
    ];
    for (from, kind, sqn, reason) in refused {
        assert_eq!(element.handle(now, from, &nak(kind, &[sqn])), Err(reason), "{kind:?} {sqn}");
    }
    // The element has room for three states.
    let many: Vec<u32> = (4..40).map(|group| group * 16).collect();
    element.handle(now, &below, &nak(NakKind::Nak, &many)).unwrap();
    assert_eq!((element.states(), element.counts().crowded), (3, 34));
    element.handle(now, &above, &nak(NakKind::Confirmation, &many)).unwrap();
    assert_eq!(element.states(), 3);
    // Groups that nobody has confirmed are given up; confirmed ones wait for repair, up to a limit.
    element.handle_timeout(now + ms(1000));
    assert_eq!((element.states(), element.counts().cancelled), (2, 1));
    let mut waits = element.clone();
    waits.handle_timeout(now + ms(10_000));
    assert_eq!(waits.states(), 0);
    // A change of the group size discards all states.
    element.handle(now, &above, &spm(4, vec![])).unwrap();
    assert_eq!(element.states(), 0);
}

#[test]
fn when_elimination_is_over_the_most_that_was_asked_for_is_asked_for_again() {
    let ports = vec!["10.9.0.1".parse().unwrap(), "10.9.1.1".parse().unwrap()];
    let mut element = Element::new(ElementConfig::new(ports)).unwrap();
    let above = Arrival { interface: 1, ..Arrival::new(source(), group()) };
    let below =
        Arrival { interface: 2, ..Arrival::new(receiver_address(0), "10.9.1.1:7500".parse().unwrap()) };
    let at = |n| Time::ZERO + ms(n);
    let options = vec![Opt::ParityPrm { on_demand: true, proactive: false, size: 16, octet: 0 }];
    let (trail, lead, path) = (Sqn(0), Sqn(100), source().ip());
    let body = Body::Spm(Spm { sqn: Sqn(1), trail, lead, path, options });
    element.handle(at(0), &above, &Message { tsi: TSI, port: group_port(), body }).unwrap();
    // What goes upstream, as counts.
    let mut asked = |now, from: &Arrival, kind, count: u32| {
        element.handle(now, from, &nak(kind, &[15 + count])).unwrap();
        let sent = std::iter::from_fn(|| element.poll_transmit(now, now));
        let up = sent.filter(|transmit| transmit.interface == 1);
        let counts = up.map(|transmit| match transmit.message.body {
            Body::Nak(nak) if nak.parity && nak.kind == NakKind::Nak => nak.sqn.0 - 15,
            _ => 0,
        });
        counts.filter(|&count| count > 0).collect::<Vec<u32>>()
    };
    assert_eq!(asked(at(10), &below, NakKind::Nak, 5), [5]);
    assert_eq!(asked(at(20), &above, NakKind::Confirmation, 5), []);
    assert_eq!(asked(at(1000), &below, NakKind::Nak, 2), []);
    assert_eq!(asked(at(1030), &below, NakKind::Nak, 2), [5]);
    // Of two receivers behind one port the one that lacks more counts, so all five packets go there.
    let (sqn, trail, count) = (Sqn(16), Sqn(0), NonZeroU32::MIN);
    let (kind, parity) = (DataKind::Repair, Some(Parity { group: 0, var_len: false }));
    let (options, origin) = (DataOptions::default(), Origin::UNKNOWN);
    let data =
        Data { kind, sqn, count, trail, parity, options, descriptor: None, len: 9, last_len: 9, origin };
    let repair = Message { tsi: TSI, port: group_port(), body: Body::Data(data) };
    for _ in 0..5 {
        element.handle(at(1040), &above, &repair).unwrap();
        let sent: Vec<u32> = std::iter::from_fn(|| element.poll_transmit(at(1040), at(1040)))
            .map(|transmit| transmit.interface)
            .collect();
        assert_eq!(sent, [2]);
    }
    assert_eq!(element.handle(at(1040), &above, &repair), Err(Reject::Unexpected), "none is lacking");
}
