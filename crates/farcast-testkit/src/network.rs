//! Hosts, the links between them, and virtual time.

mod carry;
mod faults;
mod run;

use core::cmp::Reverse;
use core::fmt::{Debug, Display};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use farcast_core::engine::{Deadline, Engine, Message};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use crate::host::{Handle, Host, Node};
use crate::link::{Link, LinkState, apart};
use crate::log::{Leg, Log};
use faults::{Frozen, Outage};

/// Where the driver cuts runs, on their way out (`until`) and in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Only where it must: a run is as long as the engine lets it be.
    Whole,
    /// Everywhere: each segment is a run of its own.
    One,
    /// Anywhere in between, by this seed.
    Random(u64),
}

/// When the driver serves an engine's deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// On time.
    Prompt,
    /// On time, and at a random moment before, at which nothing may change.
    Early,
    /// Late by a uniform part of this.
    Late(Span),
}

/// How a scenario is run; what it does must depend on nothing but the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The seed of every draw.
    pub seed: u64,
    /// Where runs are cut.
    pub cut: Cut,
    /// When deadlines are served.
    pub wake: Wake,
}

impl Setup {
    /// Runs as long as they can be, deadlines on time.
    pub fn plain(seed: u64) -> Self {
        Self { seed, cut: Cut::Whole, wake: Wake::Prompt }
    }
}

/// The order of what is to happen at one host. It must not depend on when an entry was made, because cutting
/// runs changes that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    at: Time,
    class: Class,
    from: usize,
    number: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Arrival,
    Script,
    Early,
    Wake,
}

/// The order of departures. What was asked for last goes first at one instant: cut into single segments, a run
/// is asked for segment by segment, after what an input of that instant provoked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct DepartureKey {
    at: Time,
    from: usize,
    polled: Reverse<Time>,
    number: u64,
}

struct Departing<M> {
    message: M,
    /// The address that it claims to come from, where that is not the host's own.
    source: Option<SocketAddr>,
    destination: SocketAddr,
    spacing: Span,
}

/// A run on its way in; the key says when its first segment arrives.
struct Incoming<M> {
    message: M,
    source: SocketAddr,
    destination: SocketAddr,
    spacing: Span,
}

type Command<M> = Box<dyn FnOnce(&mut dyn Node<M>, Time)>;
type Damage<M> = Box<dyn FnMut(&M, &mut RandomStream) -> Option<M>>;
type Filter<M> = Box<dyn FnMut(&Leg<M>) -> bool>;

enum Item<M> {
    Arrival(Incoming<M>),
    Command(Command<M>),
    Power(bool),
    Freeze { until: Time, room: u32 },
    Thaw,
    Early,
    Wake,
}

struct Place<M> {
    node: Box<dyn Node<M>>,
    address: SocketAddr,
    groups: Vec<IpAddr>,
    up: bool,
    frozen: Option<Frozen<M>>,
    /// The time of its last change.
    now: Time,
    deadline: Option<Deadline>,
    wake: Option<Key>,
    /// How often it was woken at `now`.
    wakes: u32,
    agenda: BTreeMap<Key, Item<M>>,
    /// Its first entry in the network's index.
    first: Option<Key>,
}

/// Hosts in virtual time. The [crate's page](crate) shows its use.
pub struct Network<M> {
    name: String,
    setup: Setup,
    limit: Time,
    places: Vec<Place<M>>,
    default_link: Link,
    special_links: BTreeMap<(usize, usize), Link>,
    /// The shortest delay of any link.
    shortest: Span,
    outages: Vec<Outage>,
    /// When links stop to lose, double, reorder and damage.
    calm: Time,
    links: BTreeMap<(usize, usize), LinkState>,
    departures: BTreeMap<DepartureKey, Departing<M>>,
    /// The first thing that is to happen at each host.
    index: BTreeSet<(Key, usize)>,
    numbers: u64,
    cuts: RandomStream,
    wakes: RandomStream,
    damage: Option<Damage<M>>,
    filter: Option<Filter<M>>,
    record: bool,
    log: Log<M>,
    steps: u64,
    most_steps: u64,
}

impl<M: Message + Debug + PartialEq + 'static> Network<M> {
    /// An empty network; `name` is what failures call the scenario. It fails if it is not at rest after an hour
    /// of virtual time (see [`limit`](Self::limit)).
    pub fn new(name: impl Display, setup: Setup) -> Self {
        let cut_seed = if let Cut::Random(seed) = setup.cut { seed } else { 0 };
        Self {
            name: name.to_string(),
            setup,
            limit: Time::ZERO + Span::from_secs(3600),
            places: Vec::new(),
            default_link: Link::default(),
            special_links: BTreeMap::new(),
            shortest: Span::ZERO,
            outages: Vec::new(),
            calm: Time::NEVER,
            links: BTreeMap::new(),
            departures: BTreeMap::new(),
            index: BTreeSet::new(),
            numbers: 0,
            cuts: RandomStream::derive(cut_seed, &[1]),
            wakes: RandomStream::derive(setup.seed, &[u64::MAX]),
            damage: None,
            filter: None,
            record: true,
            log: Log::default(),
            steps: 0,
            most_steps: u64::MAX,
        }
    }

    /// Adds a host that listens to `address` and, of multicasts, to `groups`.
    pub fn add<E>(&mut self, address: SocketAddr, groups: &[IpAddr], host: Host<E>) -> Handle<E>
    where
        E: Engine<Message = M> + 'static,
        E::Event: Debug,
    {
        self.places.push(Place {
            node: Box::new(host),
            address,
            groups: groups.to_vec(),
            up: true,
            frozen: None,
            now: Time::ZERO,
            deadline: None,
            wake: None,
            wakes: 0,
            agenda: BTreeMap::new(),
            first: None,
        });
        Handle::new(self.places.len() - 1)
    }

    /// What links do that [`link`](Self::link) says nothing about.
    pub fn links(&mut self, link: Link) {
        self.default_link = link;
        self.note_shortest();
    }

    /// What the link from one host to another does; to be set before anything runs.
    pub fn link<A, B>(&mut self, from: Handle<A>, to: Handle<B>, link: Link) {
        self.special_links.insert((from.index, to.index), link);
        self.note_shortest();
    }

    fn note_shortest(&mut self) {
        let special = self.special_links.values().map(|link| link.delay);
        self.shortest = special.fold(self.default_link.delay, Ord::min);
    }

    /// The delay from one host to another, with the nanoseconds by which pairs differ.
    pub fn delay<A, B>(&self, from: Handle<A>, to: Handle<B>) -> Span {
        self.link_between(from.index, to.index).delay + apart(from.index, to.index)
    }

    /// Damages the segments that a link's corruption picks: typically encodes, flips bits, and decodes; `None`
    /// where nothing that could be decoded is left.
    pub fn corrupt_with(&mut self, damage: impl FnMut(&M, &mut RandomStream) -> Option<M> + 'static) {
        self.damage = Some(Box::new(damage));
    }

    /// Drops the segments for which `filter` says so, besides what links lose. The draws of links do not move.
    pub fn drop_if(&mut self, filter: impl FnMut(&Leg<M>) -> bool + 'static) {
        self.filter = Some(Box::new(filter));
    }

    /// Fails if the network is not at rest by then.
    pub fn limit(&mut self, limit: Span) {
        self.limit = Time::ZERO + limit;
    }

    /// Keeps no log: for runs of which only the end matters.
    pub fn forget(&mut self) {
        self.record = false;
    }

    /// Gives `command` to a host's engine at `at`.
    pub fn at<E: 'static>(
        &mut self,
        at: Time,
        host: Handle<E>,
        command: impl FnOnce(&mut E, Time) + 'static,
    ) {
        let command: Command<M> = Box::new(move |node, now| {
            if let Some(engine) = node.engine_mut().downcast_mut::<E>() {
                command(engine, now);
            }
        });
        self.script(at, host.index, Item::Command(command));
    }

    /// Switches a host off: from `at` on it hears and says nothing.
    pub fn vanish<E>(&mut self, at: Time, host: Handle<E>) {
        self.script(at, host.index, Item::Power(false));
    }

    /// A host that is switched on only at `at`.
    pub fn appear<E>(&mut self, at: Time, host: Handle<E>) {
        self.places[host.index].up = false;
        self.script(at, host.index, Item::Power(true));
    }

    /// A host's engine, to look at.
    ///
    /// # Panics
    /// If `host` is another network's.
    pub fn engine<E: 'static>(&self, host: Handle<E>) -> &E {
        match self.places[host.index].node.engine().downcast_ref::<E>() {
            Some(engine) => engine,
            None => panic!("{}: {host:?} has an engine of another type", self.context()),
        }
    }

    /// What has happened, sorted; it is taken out.
    pub fn take_log(&mut self) -> Log<M> {
        core::mem::take(&mut self.log).sorted()
    }

    /// The time of the last change anywhere.
    pub fn now(&self) -> Time {
        self.places.iter().map(|place| place.now).max().unwrap_or(Time::ZERO)
    }

    /// The scenario's name and how it is run, for the messages of failures.
    pub fn context(&self) -> String {
        format!("[{}, seed {}, {:?}, {:?}]", self.name, self.setup.seed, self.setup.cut, self.setup.wake)
    }

    fn script(&mut self, at: Time, host: usize, item: Item<M>) {
        let number = self.number();
        self.enter(host, Key { at, class: Class::Script, from: 0, number }, item);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn link_between(&self, from: usize, to: usize) -> Link {
        *self.special_links.get(&(from, to)).unwrap_or(&self.default_link)
    }

    /// Puts an entry on a host's agenda.
    fn enter(&mut self, host: usize, key: Key, item: Item<M>) {
        self.places[host].agenda.insert(key, item);
        self.reindex(host);
    }

    fn reindex(&mut self, host: usize) {
        let place = &mut self.places[host];
        let first = place.agenda.keys().next().copied();
        if first != place.first {
            if let Some(old) = core::mem::replace(&mut place.first, first) {
                self.index.remove(&(old, host));
            }
            self.index.extend(first.map(|key| (key, host)));
        }
    }
}
