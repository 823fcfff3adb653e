//! Packets that an element gets, and destinations of its messages.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::{Delivery as _, ElementEngine, ElementRequest, Figure, Protocol};
use farcast_link::pipe::{Pipe, PipeConfig};
use farcast_mftp::Message;
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{BackLosses, Chains, Cut, GroupConfig, Receivers};
use farcast_sim::traffic::End;
use farcast_sim::tree::{EdgeConfig, EdgeShape, FarEnd, NodeConfig, OnTree, Role, Shape, Tree, TreeConfig};

use crate::worlds::{PIPE, scenario};

/// MFTP with elements that count packets.
#[derive(Debug)]
struct Counted;

impl Protocol for Counted {
    type Message = <Mftp as Protocol>::Message;
    type Sender = <Mftp as Protocol>::Sender;
    type Receiver = <Mftp as Protocol>::Receiver;
    type Population = <Mftp as Protocol>::Population;
    type Codec = <Mftp as Protocol>::Codec;
}

impl OnTree for Counted {
    type Element = Counter;
}

/// Element that counts its packets, and sends the first content that it hears to other addresses once more.
#[derive(Debug, Default)]
struct Counter {
    overhears: bool,
    /// Destinations, with the router alert and the interface of each.
    says: Vec<(SocketAddr, bool, u32)>,
    queue: Vec<Transmit<Message>>,
    /// Counters by interface and destination.
    handed: BTreeMap<(u32, SocketAddr), u64>,
    rejects: RejectCounts,
}

impl Engine for Counter {
    type Message = Message;
    type Event = ();

    fn handle(&mut self, _now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        assert_eq!(farcast_core::Message::segments(message).get(), 1, "one by one");
        *self.handed.entry((from.interface, from.destination)).or_default() += 1;
        if message.content().is_some() {
            for (to, router_alert, interface) in std::mem::take(&mut self.says) {
                let transmit = Transmit::new(message.clone(), to);
                self.queue.push(Transmit { router_alert, interface, source: Some(from.source), ..transmit });
            }
        }
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.queue.pop()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }
}

impl ElementEngine for Counter {
    fn request(_event: &()) -> Option<ElementRequest> {
        None
    }

    fn overhears(&self) -> bool {
        self.overhears
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::count("handed", self.handed.values().sum())]
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}

/// Hub, two elements in a row behind it, and three receivers behind each.
const EDGES: [(u32, u32); 4] = [(0, 1), (1, 2), (1, 3), (2, 4)];

/// Returns a tree with these elements.
fn tree(first: Counter, second: Counter, cut: Cut) -> Tree<'static, Counted> {
    let star = scenario(PIPE, &[]).with_engines().star(1, 0).unwrap();
    let mut groups = star.groups.into_iter();
    let GroupConfig { kind, .. } = groups.next().unwrap();
    let Receivers::Engines(make) = kind else { panic!("engines were asked for") };
    let make = std::rc::Rc::new(make);
    let group = || {
        let make = std::rc::Rc::clone(&make);
        Role::Receivers(GroupConfig {
            receivers: 3,
            kind: Receivers::Engines(Box::new(move |n| make(n))),
            losses: Box::new(farcast_link::losses::NoLoss),
            delay: Span::ZERO,
            data_only: false,
        })
    };
    let node = |name: &str, role| NodeConfig { name: name.into(), role };
    let nodes = vec![
        node("hub", Role::Plain),
        node("first", Role::Element(Box::new(first))),
        node("second", Role::Element(Box::new(second))),
        node("near", group()),
        node("far", group()),
    ];
    let stage = |to: End| {
        let config = PipeConfig {
            rate: Some(BitRate::from_bps(2_000_000).unwrap()),
            delay: Span::from_millis(10),
            ..PipeConfig::default()
        };
        Box::new(Pipe::new(config, to.port(), farcast_core::random::RandomStream::derive(0, &[])).unwrap())
    };
    let edges = EDGES.map(|(near, far)| {
        let mut chains = Chains::new();
        chains.push_forward("forward", stage(End::Terminal));
        chains.push_return("return", stage(End::Hub));
        EdgeConfig {
            name: format!("{near}-{far}"),
            near,
            far: vec![FarEnd { node: far, losses: None, return_losses: None }],
            chains,
            delays: [None; 2],
            return_losses: BackLosses::Shared(Box::new(farcast_link::losses::NoLoss)),
            relayed: false,
        }
    });
    let config = TreeConfig {
        sender: star.sender.map(|sender| (0, sender)),
        nodes,
        edges: edges.into(),
        flows: Vec::new(),
        overhead: star.overhead,
        seal: None,
        given: star.given,
        lookahead: Span::from_millis(20),
        limit: star.limit,
        cut,
    };
    Tree::new(config, None).unwrap()
}

fn content(tree: &Tree<'_, Counted>, edge: usize) -> u64 {
    tree.edges()[edge].counts(End::Terminal)[1].packets
}

#[test]
fn an_element_that_overhears_is_handed_each_packet_for_everyone_and_it_goes_on() {
    for cut in [Cut::Whole, Cut::One, Cut::Random(3)] {
        let overhears = Counter { overhears: true, ..Counter::default() };
        let mut world = tree(overhears, Counter::default(), cut);
        world.run();
        assert!(world.groups().iter().all(|group| group.incomplete() == 0));
        let sent: u64 = world.edges()[0].counts(End::Terminal).iter().map(|count| count.packets).sum();
        let handed: u64 = world.element(1).unwrap().handed.values().sum();
        assert!(content(&world, 0) == 60 && handed == sent, "{handed} of {sent}");
        assert!((1..4).all(|edge| content(&world, edge) == 60), "it goes on");
        assert_eq!(world.element(2).unwrap().figures(), [Figure::count("handed", 0)]);
    }
}

#[test]
fn what_bears_the_router_alert_or_a_nodes_own_address_is_handed_over_and_goes_no_further() {
    let between: Vec<_> = EDGES
        .iter()
        .map(|(near, far)| EdgeShape { near: *near, far: std::slice::from_ref(far), relayed: false })
        .collect();
    let shape = Shape::new(5, &between, 0).unwrap();
    let own = SocketAddr::new(shape.addresses(2).nth(1).unwrap().into(), 7);
    let nobody = "192.0.2.1:7".parse().unwrap();
    let group: SocketAddr = "239.1.1.1:7".parse().unwrap();
    let says =
        vec![(own, false, 0), (group, true, 2), (group, true, 3), (group, false, 2), (nobody, false, 0)];
    let mut world =
        tree(Counter { overhears: true, says, ..Counter::default() }, Counter::default(), Cut::Whole);
    world.run();
    assert!(world.groups().iter().all(|group| group.incomplete() == 0));
    let handed = &world.element(2).unwrap().handed;
    assert_eq!(handed, &BTreeMap::from([((1, own), 1), ((1, group), 1)]));
    // Three more packets cross the second edge, one the third, to receivers, and behind the second element only the one
    // without the alert.
    let more = |edge: usize| content(&world, edge) - 60;
    assert_eq!((more(0), more(1), more(2), more(3)), (0, 3, 1, 1));
    assert_eq!(world.tally().unheard, 1);
}
