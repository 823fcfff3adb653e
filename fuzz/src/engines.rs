//! A sender and a receiver of any protocol behind the seam, between hostile octets and an owner of any mood.
//!
//! Datagrams of the sender and of the receiver arrive as they are, damaged, or not at all; octets of strangers arrive at
//! both. Neither engine may panic, send or report without end, or ask for a wake-up that has passed, and an object is
//! verified only when all its segments are there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::{BitRate, Bitmap, Run, Span, Time};
use farcast_delivery::{
    Answer, Cause, Codec, Decline, Geometry, ObjectId, Protocol, ReceiverEngine, Request, SenderEngine,
};

/// Most transmits or events that an engine may have at one instant.
const MOST: u32 = 10_000;

/// One step of the exchange.
#[derive(Arbitrary, Debug)]
enum Step {
    /// Octets of a stranger, for the sender or for the receiver.
    Stranger { to_sender: bool, bytes: Vec<u8> },
    /// Next datagrams of the sender, which the receiver gets but for the lost ones.
    Send { lost: u64, flips: Vec<u16> },
    /// Next datagram of the receiver.
    Reply { lost: bool, flips: Vec<u16> },
    /// Time passes.
    Wait { micros: u32 },
    /// Next timer of the sender, or of the receiver.
    Timeout { sender: bool },
    /// The owner has lost segments.
    Lose { first: u8, count: u8 },
    /// Both get new addresses.
    Move,
    /// The receiver's user stops it.
    Stop,
    /// The sender's user stops it.
    Abort,
}

/// State of an object at its owner.
struct Owned {
    geometry: Geometry,
    have: Bitmap,
}

/// Engines and their owner.
pub struct Exchange<P: Protocol> {
    codec: P::Codec,
    sender: P::Sender,
    receiver: P::Receiver,
    objects: BTreeMap<ObjectId, Owned>,
    now: Time,
    /// State of the owner's choices.
    choices: u64,
}

/// Address that the sender sends from.
pub fn source() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000))
}

/// Group that both listen to.
pub fn group() -> SocketAddr {
    SocketAddr::from(([239, 255, 1, 1], 5402))
}

/// Rate of the sender.
pub fn rate() -> BitRate {
    BitRate::from_bps(1_000_000).expect("positive")
}

fn answerer() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5402))
}

impl<P: Protocol> Exchange<P> {
    /// Makes an exchange between these engines, which are new.
    pub fn new(codec: P::Codec, sender: P::Sender, receiver: P::Receiver) -> Self {
        Self { codec, sender, receiver, objects: BTreeMap::new(), now: Time::ZERO, choices: 0 }
    }

    /// Opens the sender, and does the steps that `input` holds.
    pub fn run(mut self, input: &[u8]) {
        let mut input = Unstructured::new(input);
        self.choices = u64::arbitrary(&mut input).unwrap_or(0);
        self.sender.open(self.now);
        while !input.is_empty() {
            let Ok(step) = Step::arbitrary(&mut input) else { return };
            self.step(step);
            self.settle();
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Stranger { to_sender, bytes } => {
                if let Ok(packet) = self.codec.decode(&bytes) {
                    self.deliver(to_sender, &packet.message);
                }
            }
            Step::Send { lost, flips } => self.send(lost, &flips),
            Step::Reply { lost, flips } => {
                let transmit = self.receiver.poll_transmit(self.now, self.now);
                if let Some(transmit) = transmit.filter(|_| !lost)
                    && let Some(message) = self.damaged(&transmit.message, 0, &flips)
                {
                    self.deliver(true, &message);
                }
            }
            Step::Wait { micros } => self.now += Span::from_micros(micros.into()),
            Step::Timeout { sender: true } => {
                self.now = self.sender.poll_timeout().map_or(self.now, |deadline| self.now.max(deadline.at));
                self.sender.handle_timeout(self.now);
            }
            Step::Timeout { sender: false } => {
                self.now = self.receiver.poll_timeout().map_or(self.now, |deadline| self.now.max(deadline.at));
                self.receiver.handle_timeout(self.now);
            }
            Step::Lose { first, count } => self.lose(first, count),
            Step::Move => {
                self.sender.moved(self.now, source());
                self.receiver.moved(self.now);
            }
            Step::Stop => self.receiver.stop(self.now),
            Step::Abort => self.sender.abort(self.now, Cause::Application, None),
        }
    }

    /// Delivers the next run of the sender, datagram by datagram. Those whose bit of `lost` is set are lost, and the
    /// first that is not is damaged.
    fn send(&mut self, lost: u64, flips: &[u16]) {
        let Some(transmit) = self.sender.poll_transmit(self.now, self.now + Span::from_millis(10)) else { return };
        let mut flips = flips;
        for segment in (0..transmit.message.segments().get()).filter(|segment| lost >> (segment % 64) & 1 == 0) {
            if let Some(message) = self.damaged(&transmit.message, segment, std::mem::take(&mut flips)) {
                self.deliver(false, &message);
                self.serve();
            }
        }
    }

    /// Returns one datagram of a message, after these bits of it were flipped; `None` if it cannot be read any more.
    fn damaged(&self, message: &P::Message, segment: u32, flips: &[u16]) -> Option<P::Message> {
        let mut datagram = Vec::new();
        self.codec.encode(message, segment, &mut datagram);
        datagram.resize(message.wire_len(segment), 0);
        for flip in flips {
            let bit = usize::from(*flip) % (datagram.len() * 8).max(1);
            if let Some(octet) = datagram.get_mut(bit / 8) {
                *octet ^= 1 << (bit % 8);
            }
        }
        // A forger gets the checksum right.
        self.codec.finish(&mut datagram);
        self.codec.decode(&datagram).ok().map(|packet| packet.message)
    }

    /// Delivers a message. The engines count what they refuse.
    fn deliver(&mut self, to_sender: bool, message: &P::Message) {
        if to_sender {
            let _ = self.sender.handle(self.now, &Arrival::new(answerer(), source()), message);
        } else {
            assert!(self.receiver.prefix(message) <= message.segments());
            let _ = self.receiver.handle(self.now, &Arrival::new(source(), group()), message);
        }
    }

    /// Loses segments of the first object.
    fn lose(&mut self, first: u8, count: u8) {
        let Some((&object, owned)) = self.objects.iter_mut().next() else { return };
        let run = Run::new(first.into(), u32::from(count) + 1).and_then(|run| run.clip(0, owned.have.len()));
        if let Some(run) = run {
            owned.have.remove_run(run);
            self.receiver.answer(self.now, object, Answer::Lost(run));
        }
    }

    /// Serves what both engines ask for, and checks that they come to rest.
    fn settle(&mut self) {
        self.serve();
        let mut events = 0;
        while self.sender.poll_event().is_some() {
            events += 1;
            assert!(events < MOST, "events without end");
        }
        for timer in [self.sender.poll_timeout(), self.receiver.poll_timeout()].into_iter().flatten() {
            assert!(timer.at > Time::ZERO || self.now == Time::ZERO, "{} is due before the beginning", timer.timer);
        }
    }

    fn choose(&mut self) -> u64 {
        self.choices = self.choices.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1;
        self.choices >> 56
    }

    /// Answers the receiver's requests: mostly as they should be, sometimes not.
    fn serve(&mut self) {
        let mut events = 0;
        while let Some(event) = self.receiver.poll_event() {
            events += 1;
            assert!(events < MOST, "events without end");
            if let Some((object, answer)) = self.answer(&event) {
                self.receiver.answer(self.now, object, answer);
            }
        }
    }

    fn answer(&mut self, event: &<P::Receiver as Engine>::Event) -> Option<(ObjectId, Answer)> {
        let choice = self.choose();
        let willing = choice > 16;
        match P::Receiver::request(event)? {
            Request::Open(offer) => {
                if !willing {
                    let why = if choice & 1 == 0 { Decline::Disk } else { Decline::Busy };
                    return Some((offer.object, Answer::Declined(why)));
                }
                let mut have = Bitmap::new(offer.geometry.segments());
                if choice & 3 == 0 && !have.is_full() {
                    have.insert_run(Run::one(choice as u32 % have.len()));
                }
                let answer = Answer::Open(have.clone());
                self.objects.insert(offer.object, Owned { geometry: offer.geometry, have });
                Some((offer.object, answer))
            }
            Request::Store { object, segments, .. } => {
                // What comes before a refusal is lost.
                let owned = self.objects.get_mut(&object)?;
                assert!(segments.end() <= owned.have.len(), "{segments:?} of {}", owned.have.len());
                owned.have.insert_run(segments);
                None
            }
            Request::Parity { object, block, .. } => {
                let owned = self.objects.get(&object)?;
                assert!(block < owned.geometry.blocks(), "parity of block {block}");
                None
            }
            Request::Decode { object, block } => {
                let owned = self.objects.get_mut(&object)?;
                if willing && let Some(run) = owned.geometry.block_run(block) {
                    owned.have.insert_run(run);
                }
                Some((object, Answer::Decoded { block, rebuilt: willing }))
            }
            Request::Compare(object) => {
                let have = self.objects.get(&object)?.have.clone();
                Some((object, Answer::Compared(have)))
            }
            Request::Verify(object) => {
                let owned = self.objects.get_mut(&object)?;
                assert!(owned.have.is_full(), "verified with {} of {}", owned.have.count(), owned.have.len());
                if willing || owned.have.len() == 0 {
                    return Some((object, Answer::Verified));
                }
                owned.have.remove_run(Run::one(0));
                Some((object, Answer::Lost(Run::one(0))))
            }
            Request::Ended(object, _) => {
                self.objects.remove(&object);
                None
            }
            Request::Rename(_) => None,
        }
    }
}
