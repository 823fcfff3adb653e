//! Session of any protocol behind the seam: a sender, its receivers, and owners that take everything.

use core::cell::RefCell;
use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Engine, Message, Run, Time};
use farcast_delivery::{
    Answer, Codec, Ending, Geometry, ObjectId, Outcome, Protocol, ReceiverEngine, Request, SenderEngine,
};

use crate::{Handle, Host, Link, Network, Setup};

/// Events of an engine, with their times.
pub type Events<E> = Rc<RefCell<Vec<(Time, <E as Engine>::Event)>>>;

/// Protocol as its tests set it up.
pub trait Fixture: 'static {
    /// Protocol.
    type Protocol: Protocol<
            Message: Debug + PartialEq,
            Sender: SenderEngine<Event: Clone + Debug>,
            Receiver: ReceiverEngine<Event: Debug>,
        >;
    /// Configuration of a sender.
    type SenderConfig;
    /// Configuration of a receiver.
    type ReceiverConfig;
    /// Outcome of a sender.
    type SenderOutcome;
    /// Outcome of an object at a receiver.
    type ReceiverOutcome;

    /// Address of the sender.
    fn source() -> SocketAddr;

    /// Group that everyone listens to.
    fn group() -> SocketAddr;

    /// Makes the engine of a sender.
    fn sender(config: Self::SenderConfig) -> SenderOf<Self>;

    /// Makes the engine of a receiver.
    fn receiver(config: Self::ReceiverConfig) -> ReceiverOf<Self>;

    /// Returns the configuration of receiver `n` with default settings.
    fn receiver_config(n: u32) -> Self::ReceiverConfig;

    /// Returns the outcome that a sender's event reports.
    fn ended(event: &<SenderOf<Self> as Engine>::Event) -> Option<Self::SenderOutcome>;

    /// Returns the outcome of an object that a receiver's event reports.
    fn object_ended(event: &<ReceiverOf<Self> as Engine>::Event) -> Option<Self::ReceiverOutcome>;

    /// Damages a message of one segment: encodes it, flips some bits, and decodes the rest.
    fn damage(message: &MessageOf<Self>, random: &mut RandomStream) -> Option<MessageOf<Self>>;
}

/// Sender's engine of a fixture's protocol.
pub type SenderOf<F> = <<F as Fixture>::Protocol as Protocol>::Sender;
/// Receiver's engine of a fixture's protocol.
pub type ReceiverOf<F> = <<F as Fixture>::Protocol as Protocol>::Receiver;
/// Message of a fixture's protocol.
pub type MessageOf<F> = <<F as Fixture>::Protocol as Protocol>::Message;

/// Returns the address of receiver `n`, with the port of `group`.
pub fn receiver_address(n: u32, group: SocketAddr) -> SocketAddr {
    SocketAddr::from(([10, 0, (n / 250) as u8, (n % 250) as u8 + 1], group.port()))
}

/// Encodes a message of one segment, flips some bits, and decodes the rest.
pub fn damage<C: Codec<Message: Message>>(
    codec: &C,
    message: &C::Message,
    random: &mut RandomStream,
) -> Option<C::Message> {
    let mut datagram = Vec::new();
    codec.encode(message, 0, &mut datagram);
    datagram.resize(message.wire_len(0), 0);
    codec.finish(&mut datagram);
    for _ in 0..=random.below(8) {
        let bit = random.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    codec.decode(&datagram).ok().map(|packet| packet.message)
}

/// State of an object at its owner.
struct Owned {
    geometry: Geometry,
    have: Bitmap,
    /// Kept parity symbols, by block and number.
    parity: BTreeSet<(u32, u32)>,
}

/// Owner that accepts every object, stores, decodes and verifies. It checks that the engine asks for possible things
/// only: a block is decoded with enough symbols of it, and an object is verified with all its segments.
#[derive(Default)]
pub struct Owner {
    /// Segments of each object that the owner has beforehand.
    held: Option<Run>,
    objects: BTreeMap<ObjectId, Owned>,
}

impl Owner {
    /// Makes an owner that has these segments of each object.
    pub fn holding(held: Option<Run>) -> Self {
        Self { held, objects: BTreeMap::new() }
    }

    /// Answers the request that an event makes, if it makes one.
    ///
    /// # Panics
    /// If the engine asks for what cannot be done.
    pub fn serve<R: ReceiverEngine>(&mut self, engine: &mut R, now: Time, event: &R::Event) {
        let (object, answer) = match R::request(event) {
            Some(Request::Open(offer)) => {
                let mut have = Bitmap::new(offer.geometry.segments());
                if let Some(run) = self.held.and_then(|held| held.clip(0, have.len())) {
                    have.insert_run(run);
                }
                let answer = Answer::Open(have.clone());
                let (geometry, parity) = (offer.geometry, BTreeSet::new());
                self.objects.insert(offer.object, Owned { geometry, have, parity });
                (offer.object, answer)
            }
            Some(Request::Store { object, segments, .. }) => {
                let owned = self.owned(object);
                assert!(segments.end() <= owned.have.len(), "{segments:?} of {object:?} stored");
                owned.have.insert_run(segments);
                return;
            }
            Some(Request::Parity { object, block, symbols, .. }) => {
                let owned = self.owned(object);
                assert!(block < owned.geometry.blocks(), "parity of block {block} of {object:?}");
                owned.parity.extend(symbols.segments().map(|symbol| (block, symbol)));
                return;
            }
            Some(Request::Decode { object, block }) => {
                self.decode(object, block);
                (object, Answer::Decoded { block, rebuilt: true })
            }
            Some(Request::Verify(object)) => {
                let have = &self.owned(object).have;
                assert!(have.is_full(), "{object:?} is complete with {} of {}", have.count(), have.len());
                (object, Answer::Verified)
            }
            _ => return,
        };
        engine.answer(now, object, answer);
    }

    fn owned(&mut self, object: ObjectId) -> &mut Owned {
        self.objects.get_mut(&object).expect("the object was offered")
    }

    /// Rebuilds a block, which needs as many of its symbols as it has segments.
    fn decode(&mut self, object: ObjectId, block: u32) {
        let owned = self.owned(object);
        let run = owned.geometry.block_run(block).expect("a block of the object");
        let (segments, parity) =
            (owned.have.count_in(run), owned.parity.range((block, 0)..(block + 1, 0)).count() as u32);
        assert!(segments + parity >= run.count(), "block {block} from {segments} and {parity} of {run:?}");
        owned.have.insert_run(run);
    }
}

/// Receiver in a network, with the events that it reported.
pub struct Client<F: Fixture> {
    /// Host of the receiver.
    pub handle: Handle<ReceiverOf<F>>,
    /// Events of the receiver.
    pub told: Events<ReceiverOf<F>>,
}

impl<F: Fixture> Clone for Client<F> {
    fn clone(&self) -> Self {
        Self { handle: self.handle, told: self.told.clone() }
    }
}

impl<F: Fixture> Client<F> {
    /// Returns the values that `pick` takes from the receiver's events.
    pub fn pick<T>(&self, mut pick: impl FnMut(&<ReceiverOf<F> as Engine>::Event) -> Option<T>) -> Vec<T> {
        self.told.borrow().iter().filter_map(|(_, event)| pick(event)).collect()
    }

    /// Returns the outcomes of the objects, in the order in which they ended.
    pub fn outcomes(&self) -> Vec<F::ReceiverOutcome> {
        self.pick(F::object_ended)
    }

    /// Returns the outcome of the first object that ended.
    pub fn outcome(&self) -> Option<F::ReceiverOutcome> {
        self.outcomes().into_iter().next()
    }

    /// Returns the complete objects, in the order of their completion, with their times.
    fn completions(&self) -> Vec<(ObjectId, Time)> {
        self.pick(|event| match ReceiverOf::<F>::request(event) {
            Some(Request::Ended(object, Outcome::Complete(at))) => Some((object, at)),
            _ => None,
        })
    }

    /// Returns the number of complete objects.
    pub fn complete(&self) -> usize {
        self.completions().len()
    }

    /// Returns the time at which the first object was complete.
    pub fn completed(&self) -> Option<Time> {
        self.completions().first().map(|&(_, at)| at)
    }

    /// Returns the names of the complete objects, in the order of their completion.
    pub fn complete_names(&self) -> Vec<String> {
        let mut names = BTreeMap::new();
        self.pick(|event| match ReceiverOf::<F>::request(event) {
            Some(Request::Open(offer) | Request::Rename(offer)) => {
                names.insert(offer.object, String::from_utf8_lossy(&offer.name).into_owned());
                None
            }
            Some(Request::Ended(object, Outcome::Complete(_))) => names.get(&object).cloned(),
            _ => None,
        })
    }

    /// Returns the segments that the owner was to store, by object.
    pub fn stored(&self) -> Vec<(ObjectId, u32)> {
        let runs = self.pick(|event| match ReceiverOf::<F>::request(event) {
            Some(Request::Store { object, segments, .. }) => Some((object, segments)),
            _ => None,
        });
        runs.into_iter()
            .flat_map(|(object, run)| run.segments().map(move |segment| (object, segment)))
            .collect()
    }

    /// Returns the number of segments that the owner was to store.
    pub fn stored_count(&self) -> u32 {
        self.stored().len() as u32
    }
}

/// Sender and its receivers in a network.
pub struct Session<F: Fixture> {
    /// Network.
    pub net: Network<MessageOf<F>>,
    /// Host of the sender.
    pub sender: Handle<SenderOf<F>>,
    /// Events of the sender.
    pub told: Events<SenderOf<F>>,
    /// Receivers, in the order in which they were added.
    pub clients: Vec<Client<F>>,
}

impl<F: Fixture> Session<F> {
    /// Makes a session with a sender that opens at time zero, over `link` in all directions.
    pub fn empty(name: &str, setup: Setup, config: F::SenderConfig, link: Link) -> Self {
        let mut net = Network::new(name, setup);
        net.links(link);
        net.corrupt_with(F::damage);
        let told: Events<SenderOf<F>> = Events::<SenderOf<F>>::default();
        let mine = told.clone();
        let host = Host::new(F::sender(config), move |_: &mut SenderOf<F>, now, event| {
            mine.borrow_mut().push((now, event));
        });
        let sender = net.add(F::source(), &[F::group().ip()], host);
        net.at(Time::ZERO, sender, |engine: &mut SenderOf<F>, now| engine.open(now));
        Self { net, sender, told, clients: Vec::new() }
    }

    /// Makes a session with `receivers` receivers of default settings.
    pub fn new(name: &str, setup: Setup, config: F::SenderConfig, receivers: u32, link: Link) -> Self {
        let mut session = Self::empty(name, setup, config, link);
        for n in 0..receivers {
            session.add(n, F::receiver_config(n));
        }
        session
    }

    /// Adds receiver `n`, whose owner takes everything.
    pub fn add(&mut self, n: u32, config: F::ReceiverConfig) -> Client<F> {
        self.add_holding(n, config, None)
    }

    /// Adds receiver `n`, whose owner has the segments `held` of each object, and takes the rest.
    pub fn add_holding(&mut self, n: u32, config: F::ReceiverConfig, held: Option<Run>) -> Client<F> {
        let mut owner = Owner::holding(held);
        self.add_owned(n, config, move |engine, now, event| owner.serve(engine, now, event))
    }

    /// Adds receiver `n`, whose events `owner` answers.
    pub fn add_owned(
        &mut self,
        n: u32,
        config: F::ReceiverConfig,
        mut owner: impl FnMut(&mut ReceiverOf<F>, Time, &<ReceiverOf<F> as Engine>::Event) + 'static,
    ) -> Client<F> {
        let told: Events<ReceiverOf<F>> = Events::<ReceiverOf<F>>::default();
        let mine = told.clone();
        let host = Host::new(F::receiver(config), move |engine: &mut ReceiverOf<F>, now, event| {
            owner(engine, now, &event);
            mine.borrow_mut().push((now, event));
        });
        let host = host.without(|event| {
            let request = ReceiverOf::<F>::request(event);
            matches!(request, Some(Request::Store { .. } | Request::Parity { .. }))
        });
        let groups: [IpAddr; 1] = [F::group().ip()];
        let handle = self.net.add(receiver_address(n, F::group()), &groups, host);
        let client = Client { handle, told };
        self.clients.push(client.clone());
        client
    }

    /// Runs to the end.
    #[allow(clippy::return_self_not_must_use, reason = "the run itself asserts laws")]
    pub fn run(mut self) -> Self {
        self.net.run();
        self
    }

    /// Returns the outcome of the sender.
    pub fn outcome(&self) -> Option<F::SenderOutcome> {
        self.told.borrow().iter().find_map(|(_, event)| F::ended(event))
    }

    /// Returns the end of the sender in the words of the seam.
    pub fn ending(&self) -> Option<Ending> {
        self.told.borrow().iter().find_map(|(_, event)| SenderOf::<F>::ending(event))
    }

    /// Asserts that each receiver has `objects` objects, and stored no segment twice.
    ///
    /// # Panics
    /// If one does not have them, or stored one twice.
    pub fn assert_received(&self, objects: usize) {
        let context = self.net.context();
        for client in &self.clients {
            let ended = client.pick(|event| match ReceiverOf::<F>::request(event) {
                Some(Request::Ended(object, outcome)) => Some((object, outcome)),
                _ => None,
            });
            assert_eq!(client.complete(), objects, "{context} {:?}: {ended:?}", client.handle);
            let mut stored = client.stored();
            let all = stored.len();
            stored.sort_unstable();
            stored.dedup();
            assert_eq!(stored.len(), all, "{context} {:?}: a segment was stored twice", client.handle);
        }
    }
}
