//! Hosts, the links between them, and virtual time.

mod carry;
mod faults;
mod run;

use core::cmp::Reverse;
use core::fmt::{Debug, Display};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use farcast_core::engine::{Deadline, Engine, Message};
use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use crate::host::{AnyHost, Handle, Host};
use crate::link::{Link, LinkState, apart};
use crate::log::{Leg, Log};
use faults::{Frozen, Outages};

/// Places where the driver cuts runs, on their way out (`until`) and in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Cuts only where the driver must: a run is as long as the engine allows.
    Whole,
    /// Everywhere: each segment is a run of its own.
    One,
    /// At random places, by this seed.
    Random(u64),
}

/// Time at which the driver serves an engine's deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// On time.
    Prompt,
    /// On time, and also at a random earlier moment, at which nothing may change.
    Early,
    /// Late by a uniform part of this.
    Late(Span),
}

/// Parameters of a scenario's run; the outcome must depend on the seed alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Seed of every draw.
    pub seed: u64,
    /// Places where runs are cut.
    pub cut: Cut,
    /// Time at which deadlines are served.
    pub wake: Wake,
}

impl Setup {
    /// Creates a setup with runs as long as possible, and deadlines on time.
    pub fn plain(seed: u64) -> Self {
        Self { seed, cut: Cut::Whole, wake: Wake::Prompt }
    }
}

/// Order of the agenda of one host. It must not depend on when an entry was made, because cutting runs changes that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct AgendaKey {
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

/// Order of departures. At one instant the departure that was polled last goes first. If runs are cut into single
/// segments, a run is polled segment by segment, after messages that an input of that instant caused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct DepartureKey {
    at: Time,
    from: usize,
    polled: Reverse<Time>,
    number: u64,
}

struct Departing<M> {
    message: M,
    /// Source address that it claims, if that is not the host's own.
    source: Option<SocketAddr>,
    destination: SocketAddr,
    spacing: Span,
}

/// A run that arrives; its key has the arrival time of its first segment.
struct Incoming<M> {
    message: M,
    source: SocketAddr,
    destination: SocketAddr,
    spacing: Span,
}

type HostCommand<M> = Box<dyn FnOnce(&mut dyn AnyHost<M>, Time)>;
type Damage<M> = Box<dyn FnMut(&M, &mut RandomStream) -> Option<M>>;
type Filter<M> = Box<dyn FnMut(&Leg<M>) -> bool>;

enum Item<M> {
    Arrival(Incoming<M>),
    Command(HostCommand<M>),
    Power(bool),
    Freeze { until: Time, room: u32 },
    Thaw,
    Early,
    Wake,
}

struct HostSlot<M> {
    node: Box<dyn AnyHost<M>>,
    address: SocketAddr,
    up: bool,
    frozen: Option<Frozen<M>>,
    /// Time of its last change.
    now: Time,
    deadline: Option<Deadline>,
    wake: Option<AgendaKey>,
    /// Number of wake-ups at `now`.
    wakes: u32,
    agenda: BTreeMap<AgendaKey, Item<M>>,
    /// First entry of its agenda in the network's index.
    first: Option<AgendaKey>,
    /// Time at which the transmitter that links to the host share is free again.
    free: Time,
}

/// Hosts in virtual time. The [crate's page](crate) shows the use.
pub struct Network<M> {
    name: String,
    setup: Setup,
    limit: Time,
    places: Vec<HostSlot<M>>,
    /// Hosts at each address, and in each group.
    addresses: BTreeMap<SocketAddr, Vec<usize>>,
    groups: BTreeMap<IpAddr, Vec<usize>>,
    default_link: Link,
    special_links: BTreeMap<(usize, usize), Link>,
    /// Shortest delay of any link.
    shortest: Span,
    outages: Outages,
    /// Time from which links no longer lose, double, reorder and damage.
    calm: Time,
    links: HashMap<(usize, usize), LinkState>,
    departures: BTreeMap<DepartureKey, Departing<M>>,
    /// First entry of each host's agenda.
    index: BTreeSet<(AgendaKey, usize)>,
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
    /// Creates an empty network; `name` is the scenario's name in failures. A run fails if the network is not at rest
    /// after an hour of virtual time (see [`limit`](Self::limit)).
    pub fn new(name: impl Display, setup: Setup) -> Self {
        let cut_seed = if let Cut::Random(seed) = setup.cut { seed } else { 0 };
        Self {
            name: name.to_string(),
            setup,
            limit: Time::ZERO + Span::from_secs(3600),
            places: Vec::new(),
            addresses: BTreeMap::new(),
            groups: BTreeMap::new(),
            default_link: Link::default(),
            special_links: BTreeMap::new(),
            shortest: Span::ZERO,
            outages: Outages::new(),
            calm: Time::NEVER,
            links: HashMap::new(),
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

    /// Adds a host that receives datagrams to `address` and multicasts to `groups`.
    pub fn add<E>(&mut self, address: SocketAddr, groups: &[IpAddr], host: Host<E>) -> Handle<E>
    where
        E: Engine<Message = M> + 'static,
        E::Event: Debug,
    {
        let index = self.places.len();
        self.addresses.entry(address).or_default().push(index);
        for &group in groups {
            self.groups.entry(group).or_default().push(index);
        }
        self.places.push(HostSlot {
            node: Box::new(host),
            address,
            up: true,
            frozen: None,
            now: Time::ZERO,
            deadline: None,
            wake: None,
            wakes: 0,
            agenda: BTreeMap::new(),
            first: None,
            free: Time::ZERO,
        });
        Handle::new(index)
    }

    /// Sets the link of all pairs for which [`link`](Self::link) sets none.
    pub fn links(&mut self, link: Link) {
        self.default_link = link;
        self.note_shortest();
    }

    /// Sets the link from one host to another; must be called before anything runs.
    pub fn link<A, B>(&mut self, from: Handle<A>, to: Handle<B>, link: Link) {
        match self.special_links.insert((from.index, to.index), link) {
            // The old link may have been the shortest.
            Some(_) => self.note_shortest(),
            None => self.shortest = self.shortest.min(link.delay),
        }
    }

    fn note_shortest(&mut self) {
        let special = self.special_links.values().map(|link| link.delay);
        self.shortest = special.fold(self.default_link.delay, Ord::min);
    }

    /// Returns the delay from one host to another, with the nanoseconds by which pairs differ.
    pub fn delay<A, B>(&self, from: Handle<A>, to: Handle<B>) -> Span {
        self.link_between(from.index, to.index).delay + apart(from.index, to.index)
    }

    /// Sets the function that damages segments that a link's corruption selects. Typically it encodes, flips bits, and
    /// decodes; it returns `None` if the result cannot be decoded.
    pub fn corrupt_with(&mut self, damage: impl FnMut(&M, &mut RandomStream) -> Option<M> + 'static) {
        self.damage = Some(Box::new(damage));
    }

    /// Drops the segments for which `filter` returns `true`, besides those that links lose. The draws of links do not
    /// change.
    pub fn drop_if(&mut self, filter: impl FnMut(&Leg<M>) -> bool + 'static) {
        self.filter = Some(Box::new(filter));
    }

    /// Sets the time at which a run fails if the network is not at rest.
    pub fn limit(&mut self, limit: Span) {
        self.limit = Time::ZERO + limit;
    }

    /// Keeps no log: for runs of which only the end matters.
    pub fn forget(&mut self) {
        self.record = false;
    }

    /// Schedules `command` to a host's engine at `at`.
    pub fn at<E: 'static>(
        &mut self,
        at: Time,
        host: Handle<E>,
        command: impl FnOnce(&mut E, Time) + 'static,
    ) {
        let command: HostCommand<M> = Box::new(move |node, now| {
            if let Some(engine) = node.engine_mut().downcast_mut::<E>() {
                command(engine, now);
            }
        });
        self.script(at, host.index, Item::Command(command));
    }

    /// Switches a host off at `at`: it then receives and sends nothing.
    pub fn vanish<E>(&mut self, at: Time, host: Handle<E>) {
        self.script(at, host.index, Item::Power(false));
    }

    /// Keeps a host switched off until `at`.
    pub fn appear<E>(&mut self, at: Time, host: Handle<E>) {
        self.places[host.index].up = false;
        self.script(at, host.index, Item::Power(true));
    }

    /// Returns a host's engine, for inspection.
    ///
    /// # Panics
    /// If `host` belongs to another network.
    pub fn engine<E: 'static>(&self, host: Handle<E>) -> &E {
        match self.places[host.index].node.engine().downcast_ref::<E>() {
            Some(engine) => engine,
            None => panic!("{}: {host:?} has an engine of another type", self.context()),
        }
    }

    /// Takes the log out, sorted.
    pub fn take_log(&mut self) -> Log<M> {
        core::mem::take(&mut self.log).sorted()
    }

    /// Returns the time of the last change anywhere.
    pub fn now(&self) -> Time {
        self.places.iter().map(|place| place.now).max().unwrap_or(Time::ZERO)
    }

    /// Returns the scenario's name and setup, for the messages of failures.
    pub fn context(&self) -> String {
        format!("[{}, seed {}, {:?}, {:?}]", self.name, self.setup.seed, self.setup.cut, self.setup.wake)
    }

    fn script(&mut self, at: Time, host: usize, item: Item<M>) {
        let number = self.number();
        self.enter(host, AgendaKey { at, class: Class::Script, from: 0, number }, item);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn link_between(&self, from: usize, to: usize) -> Link {
        *self.special_links.get(&(from, to)).unwrap_or(&self.default_link)
    }

    /// Adds an entry to a host's agenda.
    fn enter(&mut self, host: usize, key: AgendaKey, item: Item<M>) {
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
