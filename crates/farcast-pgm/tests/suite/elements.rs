//! Network elements and repairers on a tree.

use std::collections::BTreeSet;

use farcast_core::Span;
use farcast_core::engine::{Arrival, Engine as _};
use farcast_pgm::message::{DataKind, NakKind, Opt, Poll, Spm};
use farcast_pgm::{Body, Element, ElementConfig, Message, SenderConfig, Sqn, StoreConfig};

use crate::common::{TSI, files, group, ms, receiver, source};
use crate::tree::{Hop, Tree};

fn config(named: u32) -> SenderConfig {
    SenderConfig { router_alert: true, ..files(&[300], named) }
}

/// Returns `true` if the message is the first transmission of every tenth number.
fn tenth(hop: &Hop) -> bool {
    hop.sqn(DataKind::Original).is_some_and(|sqn| sqn % 10 == 3)
}

pub(crate) fn between(hop: &Hop, from: usize, to: usize) -> bool {
    (hop.from, hop.to) == (from, to)
}

fn sorted(mut list: Vec<u32>) -> Vec<u32> {
    list.sort_unstable();
    list
}

/// Creates source 0, element 1 below it, elements 2 and 3 below that, and `each` receivers below each of the two.
fn three(each: u32, lose: impl FnMut(&Hop) -> bool + 'static) -> (Tree, Vec<usize>) {
    let mut tree = Tree::new(config(2 * each), lose);
    let top = tree.router(0, ms(20));
    let arms = [tree.router(top, ms(10)), tree.router(top, ms(10))];
    let mut receivers = Vec::new();
    for n in 0..2 * each {
        let below = arms[(n / each) as usize];
        receivers.push(tree.receiver(below, ms(2), receiver(n)));
    }
    for node in [top, arms[0], arms[1]] {
        tree.element(node, |config| config.unknown = Some(ms(200)));
    }
    (tree, receivers)
}

pub(crate) fn all_complete(tree: &Tree, receivers: &[usize]) {
    for &receiver in receivers {
        assert_eq!(tree.complete(receiver), 1, "receiver at node {receiver}");
    }
}

#[test]
fn repairs_go_where_something_was_lost_and_nowhere_else() {
    let (tree, receivers) = three(3, |hop| tenth(hop) && between(hop, 1, 2));
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    let lost: Vec<u32> = (0..=300).filter(|sqn| sqn % 10 == 3).collect();
    // Each repair passes once on the arm that lost it and on each edge below, and never on the other arm.
    for (from, to) in [(0, 1), (1, 2), (2, receivers[0]), (2, receivers[2])] {
        assert_eq!(sorted(tree.repairs(from, to)), lost, "from {from} to {to}");
    }
    assert_eq!(tree.repairs(1, 3), []);
    assert_eq!(tree.named(1, 3, NakKind::Confirmation), [], "nor is it confirmed there");
    assert_eq!(tree.engine(1).states(), 0);
}

#[test]
fn naks_of_many_reach_the_source_once() {
    // Confirmation takes longer than the back-off, so that all ask.
    let (tree, receivers) = three(10, |hop| tenth(hop) && hop.from == 0);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    let lost: Vec<u32> = (0..=300).filter(|sqn| sqn % 10 == 3).collect();
    let asked: usize = receivers[..10].iter().map(|&at| tree.named(at, 2, NakKind::Nak).len()).sum();
    assert!(asked > 2 * lost.len(), "{asked}");
    assert_eq!(sorted(tree.named(1, 0, NakKind::Nak)), lost);
    assert!(tree.engine(2).counts().naks > tree.engine(2).counts().forwarded);
    // On each arm each is confirmed to those below before its repair comes.
    let confirmed: BTreeSet<u32> = tree.named(2, receivers[0], NakKind::Confirmation).into_iter().collect();
    assert_eq!(confirmed.into_iter().collect::<Vec<_>>(), lost);
}

#[test]
fn what_is_confirmed_to_another_is_anticipated() {
    // A router that knows nothing of PGM joins two elements: both hear what the source confirms.
    let mut tree = Tree::new(config(2), |hop| tenth(hop) && hop.from == 0);
    let joint = tree.router(0, ms(50));
    let arms = [tree.router(joint, ms(5)), tree.router(joint, ms(5))];
    let near = tree.receiver(arms[0], ms(1), receiver(0));
    // This receiver hears of the loss so late that the source's confirmation reaches its element before its request.
    let far = tree.receiver(arms[1], ms(150), receiver(1));
    for arm in arms {
        tree.element(arm, |_| {});
    }
    let tree = tree.run(100);
    all_complete(&tree, &[near, far]);
    let counts = tree.engine(arms[1]).counts();
    assert!(counts.anticipated > 0, "{counts:?}");
    assert_eq!(tree.named(arms[0], joint, NakKind::Nak).len(), 30);
    // A repair that came back before the request had no port to go to, so the number is asked for again.
    assert!(tree.named(arms[1], joint, NakKind::Nak).len() <= 30);
}

#[test]
fn a_nak_is_repeated_until_it_is_confirmed() {
    // The source's confirmations and repairs are lost for a while.
    let (mut tree, receivers) = three(1, |hop| {
        let early = hop.at < farcast_core::Time::ZERO + ms(900);
        let back = hop.is(DataKind::Repair) || !hop.named(NakKind::Confirmation).is_empty();
        (tenth(hop) && between(hop, 1, 2)) || (early && back && hop.from == 0)
    });
    tree.element(1, |config| config.unknown = None);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    let first: Vec<_> = tree.passed(1, 0, |hop| hop.named(NakKind::Nak).contains(&3).then_some(hop.at));
    assert!(first.len() > 5, "{first:?}");
    for pair in first.windows(2).take(5) {
        assert_eq!(pair[1].since(pair[0]), ms(50));
    }
}

/// Creates source 0, element 1, a repairer 2 below it with `count` receivers, and one receiver at the element.
pub(crate) fn island(
    count: u32,
    store: StoreConfig,
    lose: impl FnMut(&Hop) -> bool + 'static,
) -> (Tree, Vec<usize>, usize) {
    let mut tree = Tree::new(config(count + 1), lose);
    let top = tree.router(0, ms(250));
    let repairer = tree.router(top, ms(1));
    let mut receivers: Vec<usize> = (0..count).map(|n| tree.receiver(repairer, ms(1), receiver(n))).collect();
    receivers.push(tree.receiver(top, ms(1), receiver(count)));
    tree.element(top, |_| {});
    tree.element(repairer, |config| config.store = Some(store));
    (tree, receivers, repairer)
}

#[test]
fn a_repairer_serves_its_island() {
    let (tree, receivers, repairer) = island(4, StoreConfig::new(), |hop| {
        hop.from == 2
            && hop.to > 2
            && hop.sqn(DataKind::Original).is_some_and(|sqn| sqn % 7 == hop.to as u32 % 7)
    });
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert_eq!(tree.repairs(0, 1), [], "nothing comes from the source");
    assert_eq!(tree.named(1, 0, NakKind::Nak), []);
    let counts = tree.engine(repairer).counts();
    assert!(counts.served >= 4 * 40 && counts.kept == 301, "{counts:?}");
    // The source is told of each.
    let told: BTreeSet<u32> = tree.named(1, 0, NakKind::NullNak).into_iter().collect();
    assert!(told.len() > 150, "{}", told.len());
    for &receiver in &receivers[..4] {
        let naks: BTreeSet<u32> = tree.named(receiver, repairer, NakKind::Nak).into_iter().collect();
        assert!(naks.is_subset(&told));
    }
    assert_eq!(tree.repairs(1, receivers[4]), []);
}

#[test]
fn a_repairer_asks_for_what_it_lacks_itself() {
    let (tree, receivers, repairer) = island(3, StoreConfig::new(), |hop| tenth(hop) && between(hop, 1, 2));
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    let lost: Vec<u32> = (0..=300).filter(|sqn| sqn % 10 == 3).collect();
    assert_eq!(sorted(tree.repairs(0, 1)), lost);
    assert_eq!(tree.engine(repairer).counts().kept, 301);
}

#[test]
fn a_small_store_keeps_the_newest_and_the_rest_comes_from_the_source() {
    let store = StoreConfig { tpdus: 16, octets: 10_000, ..StoreConfig::new() };
    let (tree, receivers, repairer) = island(2, store, |hop| {
        hop.from == 2 && hop.to > 2 && hop.sqn(DataKind::Original).is_some_and(|sqn| sqn < 200)
    });
    let tree = tree.run(200);
    all_complete(&tree, &receivers);
    let (tpdus, octets) = tree.engine(repairer).held();
    assert!(tpdus <= 16 && octets <= 10_000, "{tpdus} {octets}");
    assert!(!tree.repairs(0, 1).is_empty());
}

#[test]
fn a_repairer_that_dies_is_missed_and_nothing_is_lost() {
    for at in [ms(600), ms(1000), ms(2000), ms(3000)] {
        let (mut tree, receivers, repairer) =
            island(4, StoreConfig::new(), |hop| hop.from == 2 && hop.to > 2 && tenth(hop));
        tree.dies(at, repairer);
        let tree = tree.run(200);
        all_complete(&tree, &receivers);
        assert_eq!(tree.repairs(0, 1).is_empty(), at == ms(3000), "the source takes over at {at}");
    }
}

/// Creates source 0, element 1 that seeks repairers, two receivers 2 and 3, and one repairer 4 beside the tree.
fn beside(lose: impl FnMut(&Hop) -> bool + 'static) -> (Tree, Vec<usize>, usize) {
    let mut tree = Tree::new(SenderConfig { opening: 16, ..config(2) }, lose);
    let top = tree.router(0, ms(250));
    let receivers: Vec<usize> = (0..2).map(|n| tree.receiver(top, ms(1), receiver(n))).collect();
    let repairer = tree.router(top, ms(1));
    tree.element(top, |config| config.polls = Some(Span::from_secs(1)));
    tree.element(repairer, |config| config.store = Some(StoreConfig { beside: true, ..StoreConfig::new() }));
    (tree, receivers, repairer)
}

#[test]
fn a_repairer_beside_the_tree_serves_who_is_on_it() {
    let late = |hop: &Hop| hop.sqn(DataKind::Original).is_some_and(|sqn| sqn > 100 && sqn % 10 == 3);
    let (tree, receivers, repairer) = beside(move |hop| late(hop) && between(hop, 1, 2));
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert_eq!(tree.repairs(0, 1), [], "nothing comes from the source");
    let counts = tree.engine(repairer).counts();
    assert_eq!((counts.served, counts.kept), (20, 301), "{counts:?}");
    assert_eq!(tree.repairs(1, receivers[0]).len(), 20);
    assert_eq!(tree.repairs(1, receivers[1]), []);
    // The source is told, by way of the parent, before the repair.
    assert_eq!(tree.named(1, 0, NakKind::NullNak).len(), 20);
}

#[test]
fn what_a_repairer_beside_the_tree_lacks_comes_from_the_source() {
    let late = |hop: &Hop| hop.sqn(DataKind::Original).is_some_and(|sqn| sqn > 100 && sqn % 10 == 3);
    let (tree, receivers, repairer) = beside(move |hop| late(hop) && hop.from == 0);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert_eq!(tree.engine(repairer).counts().kept, 301);
    assert!(tree.repairs(0, 1).len() >= 20);
    // The repairer returns at once the requests that it cannot serve.
    for sqn in (113..300).step_by(10) {
        let first = |from, to| {
            let asks = |hop: &Hop| hop.named(NakKind::Nak).contains(&sqn).then_some(hop.at);
            tree.passed(from, to, asks).first().copied().expect("it is asked for")
        };
        let below = first(receivers[0], 1).min(first(repairer, 1));
        assert!(first(1, 0).since(below) < ms(10), "{sqn}");
    }
}

#[test]
fn a_repairer_beside_the_tree_is_not_asked_for_what_itself_lost() {
    let late = |hop: &Hop| hop.sqn(DataKind::Original).is_some_and(|sqn| sqn > 100 && sqn % 10 == 3);
    let (tree, receivers, repairer) = beside(move |hop| late(hop) && between(hop, 1, 4));
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    // The session may end before the repairer has received its last missing number.
    assert!(tree.engine(repairer).counts().kept >= 300);
    assert_eq!(tree.named(1, repairer, NakKind::Nak), []);
    assert!(tree.repairs(0, 1).len() >= 19);
}

#[test]
fn a_repairer_beside_the_tree_that_dies_is_forgotten() {
    let late = |hop: &Hop| hop.sqn(DataKind::Original).is_some_and(|sqn| sqn > 100 && sqn % 10 == 3);
    let (mut tree, receivers, repairer) = beside(move |hop| late(hop) && between(hop, 1, 2));
    tree.dies(ms(1500), repairer);
    let tree = tree.run(100);
    all_complete(&tree, &receivers);
    assert!(!tree.repairs(0, 1).is_empty());
    // The repairer is asked until it has not confirmed for a second.
    let asked = tree.passed(1, repairer, |hop| Some(hop.at).filter(|_| !hop.named(NakKind::Nak).is_empty()));
    let late = farcast_core::Time::ZERO + ms(3000);
    assert!(!asked.is_empty() && asked.iter().all(|&at| at < late), "{asked:?}");
}

/// Sends polls from above to an element whose first port has the address `own`. Returns its answers within 200 ms.
fn answers(own: &str, polls: &[Poll]) -> Vec<(farcast_core::Time, u32, u16, Vec<Opt>)> {
    let ports = vec![own.parse().unwrap(), "10.9.1.1".parse().unwrap()];
    let mut element = Element::new(ElementConfig::new(ports)).unwrap();
    let above = Arrival { interface: 1, ..Arrival::new(source(), group()) };
    let now = farcast_core::Time::ZERO;
    let spm = Spm { sqn: Sqn(1), trail: Sqn(0), lead: Sqn(9), path: source().ip(), options: vec![] };
    let message = |body| Message { tsi: TSI, port: group().port(), body };
    element.handle(now, &above, &message(Body::Spm(spm))).unwrap();
    for poll in polls {
        let _ = element.handle(now, &above, &message(Body::Poll(poll.clone())));
    }
    let mut said = Vec::new();
    while let Some(due) = element.poll_timeout().filter(|due| due.at <= now + ms(200)) {
        element.handle_timeout(due.at);
        while let Some(transmit) = element.poll_transmit(due.at, due.at) {
            if let Body::Polr(polr) = transmit.message.body {
                assert_eq!((transmit.destination, transmit.interface), (source(), 1));
                said.push((due.at, polr.sqn.0, polr.round, polr.options));
            }
        }
    }
    said
}

fn poll(sqn: u32, round: u16, mask: u32) -> Poll {
    let (subtype, path, backoff_us, random) = (0, source().ip(), 100_000, 0);
    Poll { sqn: Sqn(sqn), round, subtype, path, backoff_us, random, mask, options: vec![] }
}

#[test]
fn an_element_is_counted_by_the_one_above() {
    let said = answers("10.9.0.1", &[poll(7, 0, 0), poll(7, 0, 0)]);
    assert_eq!(said.len(), 1);
    assert!(said[0].0 <= farcast_core::Time::ZERO + ms(101));
    assert_eq!((said[0].1, said[0].2, &said[0].3), (7, 0, &vec![]), "it offers no repair");
    // A new poll replaces one that is not answered yet. A round counts only after the first of its poll.
    let said = answers("10.9.0.1", &[poll(7, 0, 0), poll(8, 0, 0), poll(9, 1, 0)]);
    assert_eq!(said.iter().map(|said| (said.1, said.2)).collect::<Vec<_>>(), [(8, 0)]);
    assert_eq!(answers("10.9.0.1", &[poll(7, 0, 0), poll(7, 1, 0)])[0].2, 1);
    // The mask selects a quarter of the elements, whose addresses all differ.
    let few = (1..=200u8).filter(|n| !answers(&format!("10.9.0.{n}"), &[poll(7, 0, 3)]).is_empty()).count();
    assert_eq!(few, 50);
    // The element does not answer a poll for repairers, nor one from another parent.
    assert_eq!(answers("10.9.0.1", &[Poll { subtype: 1, ..poll(7, 0, 0) }]), []);
    assert_eq!(answers("10.9.0.1", &[Poll { path: "10.9.9.9".parse().unwrap(), ..poll(7, 0, 0) }]), []);
}
