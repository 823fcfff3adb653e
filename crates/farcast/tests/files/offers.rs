//! `receive --once` beside offers with nothing behind them: a mere offer is not the one transmission that the receiver
//! waits for.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use farcast_core::Run;
use farcast_mftp::message::{Abort, Announce, Data, DataKind, End, cancel};
use farcast_mftp::{Body, Message, wire};

use crate::common::{self, Place, forged, pause, wait_until};

/// Product bytes of an offer, in one DTU.
const LEN: u16 = 1000;

/// Attacker on the same host who sends any message.
struct Forger {
    socket: UdpSocket,
    group: SocketAddr,
}

impl Forger {
    fn new(place: &Place) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        Self { socket: socket.into(), group: place.group.parse().unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn say(&self, transmission: u32, body: Body, payload: &[u8]) {
        let mut datagram = Vec::new();
        wire::encode(&Message::new(transmission, body), 0, &mut datagram);
        datagram.extend_from_slice(payload);
        datagram.resize(datagram.len().next_multiple_of(4), 0);
        self.socket.send_to(&datagram, self.group).unwrap();
    }

    fn announce(&self) -> Announce {
        Announce {
            announce_duration_s: 0,
            block_size: 16,
            product_name: "bogus".into(),
            transfer_duration_s: 10,
            dtu_size: LEN.into(),
            product_size: LEN.into(),
            ..forged::announcement(self.address(), self.group.ip())
        }
    }
}

/// Makes an offer by a new forger. The receiver that waits for one product must go on waiting, and take the product
/// that comes in the end. Most of the time is the receiver's patience with the offer.
fn offered(offer: impl FnOnce(&Forger) -> (Announce, Option<(Body, Vec<u8>)>), ends: usize) {
    let place = Place::new();
    let receiver = place.receive("ant", &[]);
    let forger = Forger::new(&place);
    let (announce, then) = offer(&forger);
    forger.say(1, Body::Announce(Box::new(announce)), &[]);
    if let Some((body, payload)) = then {
        receiver.until("joined");
        forger.say(1, body, &payload);
    }
    if ends > 0 {
        receiver.until_nth("summary", ends);
    }
    // Nobody waits longer than that for what nobody says.
    pause(Duration::from_millis(300));
    let bogus = receiver.events().iter().filter(|event| event["event"] == "summary").count();
    assert_eq!(bogus, ends, "{}", receiver.stdout());

    let file = place.file("product.bin", 50_000);
    place.send(&[&file], &["--rate", "20 Mbit/s", "--receivers", "ant"]).succeed();
    let ended = receiver.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    common::assert_same(&file, &place.path("ant/product.bin"));
}

#[test]
fn what_was_only_an_offer_does_not_end_it() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let abort = Abort { reason: cancel::ABORT_APPLICATION, hosts: None, text: Some("bogus".into()) };
            offered(|forger| (forger.announce(), Some((Body::Abort(abort), Vec::new()))), 1);
        });
        scope.spawn(|| {
            let end = |forger: &Forger| End { server: forger.address(), response: forger.address() };
            offered(|forger| (forger.announce(), Some((Body::End(end(forger)), Vec::new()))), 1);
        });
        scope.spawn(|| {
            let dtus = Run::new(0, 1).unwrap();
            let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus, len: LEN, last_len: LEN };
            offered(|forger| (forger.announce(), Some((Body::Data(data), vec![0x55; LEN.into()]))), 1);
        });
        // A group that cannot be joined, and nothing that could be verified.
        scope.spawn(|| {
            let private = "ff15::7".parse().unwrap();
            offered(|forger| (Announce { private, ..forger.announce() }, None), 1);
        });
        scope.spawn(|| offered(|forger| (Announce { product_id: None, ..forger.announce() }, None), 0));
    });
}

#[test]
fn a_transmission_that_brought_its_list_of_files_ends_it() {
    let place = Place::new();
    let file = place.file("product.bin", 1_500_000);
    let receiver = place.receive("ant", &[]);
    let sender = place.send(&[&file], &["--rate", "2 Mbit/s", "--receivers", "ant"]);
    wait_until("data", || receiver.has("files"));
    sender.terminate();
    receiver.wait().assert_failed(1, &["kept"]);
}
