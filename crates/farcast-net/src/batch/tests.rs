use std::num::NonZeroU32;

use farcast_delivery::{ErasureCode, ObjectId, Packet, Purpose, Transport};
use quinn_udp::RecvMeta;

use super::*;
use crate::socket::SocketOptions;

/// Octets of a segment.
const SEGMENT: u32 = 1001;

/// A message of a protocol whose datagrams carry a sum over all their octets.
#[derive(Clone, PartialEq, Debug)]
struct Piece {
    content: Content,
    /// Octets of its last datagram's content.
    last: usize,
}

impl Piece {
    fn run(&self) -> Run {
        match self.content {
            Content::None | Content::Passing { .. } | Content::Kept { .. } => run(0, 1),
            Content::Source { segments: run, .. } | Content::Parity { symbols: run, .. } => run,
        }
    }
}

impl farcast_core::engine::Message for Piece {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::new(self.run().count()).expect("no run is empty")
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, segment: u32) -> usize {
        Summed.datagram_len(self.payload_len(segment))
    }
}

impl Delivery for Piece {
    fn content(&self) -> Content {
        self.content
    }

    fn purpose(&self) -> Purpose {
        Purpose::Content { round: 1 }
    }

    fn payload_len(&self, segment: u32) -> usize {
        match self.content {
            Content::None => 0,
            _ if segment + 1 == self.run().count() => self.last,
            _ => SEGMENT as usize,
        }
    }

    fn join(&mut self, _next: &Self) -> bool {
        false
    }

    fn is_for_one(&self) -> bool {
        false
    }

    fn is_urgent(&self) -> bool {
        false
    }

    fn is_set_up(&self) -> bool {
        false
    }
}

/// Codec that writes a kind and a number, a sum over everything, and the content padded to a multiple of 4 octets.
#[derive(Debug)]
struct Summed;

impl Codec for Summed {
    type Message = Piece;
    type Error = &'static str;

    fn header_len(&self) -> usize {
        4
    }

    fn datagram_len(&self, payload: usize) -> usize {
        4 + payload.next_multiple_of(4)
    }

    fn encode(&self, message: &Piece, segment: u32, out: &mut Vec<u8>) {
        let kind = match message.content {
            Content::None | Content::Passing { .. } | Content::Kept { .. } => 0,
            Content::Source { .. } => 1,
            Content::Parity { .. } => 2,
        };
        out.extend([kind, 0, 0, (message.run().first() + segment) as u8]);
    }

    fn finish(&self, datagram: &mut [u8]) {
        assert_eq!(datagram[1..3], [0, 0], "it is finished once");
        let sum: u16 = datagram.iter().map(|&octet| u16::from(octet)).fold(1, u16::wrapping_add);
        datagram[1..3].copy_from_slice(&sum.to_ne_bytes());
    }

    fn decode(&self, datagram: &[u8]) -> Result<Packet<Piece>, &'static str> {
        let mut fresh = datagram.to_vec();
        fresh[1..3].fill(0);
        self.finish(&mut fresh);
        if fresh != datagram {
            return Err("the sum is wrong");
        }
        let (object, block, segments) = (ObjectId::FIRST, 0, run(datagram[3].into(), 1));
        let content = match datagram[0] {
            0 => Content::None,
            1 => Content::Source { object, block, segments },
            _ => Content::Parity { object, block, symbols: segments },
        };
        let payload = 4..datagram.len();
        Ok(Packet { message: Piece { content, last: payload.len() }, payload })
    }
}

fn run(first: u32, count: u32) -> Run {
    Run::new(first, count).expect("a run")
}

/// Returns the datagrams that have arrived at `endpoint`, once there are `count`.
fn heard(endpoint: &Endpoint, count: usize) -> Vec<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while all.len() < count {
        let mut meta = [RecvMeta::default()];
        let slots = endpoint.receive(&mut [IoSliceMut::new(&mut buffer)], &mut meta).expect("bound");
        let octets = if slots > 0 { meta[0].len } else { 0 };
        all.extend(buffer[..octets].chunks(meta[0].stride.max(1)).map(<[u8]>::to_vec));
    }
    all
}

#[test]
fn every_datagram_is_finished_with_its_content_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let content: Vec<u8> = (0..9000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.path().join("file"), content).expect("written");
    let mut outgoing = Outgoing::scan(&[dir.path().join("file")], |_| {}).expect("a file");
    let geometry = Geometry::new(outgoing.size(), SEGMENT, 20).expect("it can be cut");
    let (count, last) = (geometry.segments(), geometry.payload_len(geometry.segments() - 1).into());
    let mut parity =
        ParityEncoder::new(geometry, BlockParity { symbols: 4, kind: ErasureCode::BySize }, outgoing.clone())
            .expect("it can be coded");
    let mut truth = vec![0; outgoing.size() as usize];
    outgoing.read_segments(0, &mut [IoSliceMut::new(&mut truth)]).expect("it is there");
    let symbols: Vec<Vec<u8>> =
        (0..2).map(|symbol| parity.symbol(&mut outgoing, 0, symbol).expect("made").to_vec()).collect();

    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Endpoint::listener(any, None, &options, Transport::Udp).expect("loopback is there");
    let endpoint = Endpoint::sender(any, &options, Transport::Udp).expect("loopback is there");
    let code = BlockParity { symbols: 4, kind: ErasureCode::BySize };
    let sources = vec![ObjectSource {
        outgoing,
        code,
        of_all: 0,
        parity: Some(ParitySource::InTurn(parity)),
        geometry,
    }];
    let mut out = Outlet::new(endpoint, sources, listener.local(), None).expect("it can be coded");
    let mut batch = Batch::new(&Summed);
    let mut push = |content, last, ttl| {
        let transmit = Transmit::new(Piece { content, last }, out.group);
        batch.push(&mut out, &Transmit { ttl, ..transmit }).expect("loopback carries it");
        batch.flush(&out.endpoint).expect("loopback carries it");
    };
    push(Content::None, 0, None);
    push(Content::Parity { object: ObjectId::FIRST, block: 0, symbols: run(0, 2) }, SEGMENT as usize, None);
    push(Content::Source { object: ObjectId::FIRST, block: 0, segments: run(0, count) }, last, Some(9));

    let heard = heard(&listener, 3 + count as usize);
    let read: Vec<_> = heard.iter().map(|datagram| Summed.decode(datagram).expect("finished")).collect();
    assert_eq!(read[0].message.content, Content::None);
    let content = |at: usize, len: usize| &heard[at][read[at].payload.clone()][..len];
    for (symbol, truth) in symbols.iter().enumerate() {
        assert_eq!(content(1 + symbol, SEGMENT as usize), truth, "symbol {symbol}");
    }
    for (segment, truth) in truth.chunks(SEGMENT as usize).enumerate() {
        assert_eq!(content(3 + segment, truth.len()), truth, "segment {segment}");
        assert!(heard[3 + segment][4 + truth.len()..].iter().all(|&padding| padding == 0));
    }
}

#[test]
fn what_leaves_otherwise_is_another_batch() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), [7; 9000]).expect("written");
    let outgoing = Outgoing::scan(&[dir.path().join("file")], |_| {}).expect("a file");
    let geometry = Geometry::new(outgoing.size(), SEGMENT, 20).expect("it can be cut");
    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Endpoint::listener(any, None, &options, Transport::Udp).expect("loopback is there");
    let endpoint = Endpoint::sender(any, &options, Transport::Udp).expect("loopback is there");
    let group = listener.local();
    let sources = vec![ObjectSource {
        outgoing,
        code: BlockParity { symbols: 0, kind: ErasureCode::BySize },
        of_all: 0,
        parity: None,
        geometry,
    }];
    let mut out = Outlet::new(endpoint, sources, group, None).expect("nothing is coded");
    let mut batch = Batch::new(&Summed);
    let mut push = |first, ttl| {
        let content = Content::Source { object: ObjectId::FIRST, block: 0, segments: run(first, 2) };
        let transmit = Transmit::new(Piece { content, last: SEGMENT as usize }, group);
        batch.push(&mut out, &Transmit { ttl, ..transmit }).expect("loopback carries it");
        batch.filled / batch.stride
    };
    assert_eq!([push(0, None), push(2, None)], [2, 4], "these leave together");
    assert_eq!([push(4, Some(9)), push(6, Some(9)), push(0, Some(8))], [2, 4, 2]);
    let numbers: Vec<u8> = heard(&listener, 8).iter().map(|datagram| datagram[3]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn objects_that_are_cut_differently_share_no_batch_and_each_gives_its_own_octets() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = |name: &str, octet: u8, segment: u32| {
        std::fs::write(dir.path().join(name), [octet; 3000]).expect("written");
        let outgoing = Outgoing::plain(dir.path().join(name), |_| {}).expect("a file");
        let geometry = Geometry::new(outgoing.size(), segment, 20).expect("it can be cut");
        ObjectSource {
            outgoing,
            code: BlockParity { symbols: 0, kind: ErasureCode::BySize },
            of_all: 0,
            parity: None,
            geometry,
        }
    };
    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Endpoint::listener(any, None, &options, Transport::Udp).expect("loopback is there");
    let endpoint = Endpoint::sender(any, &options, Transport::Udp).expect("loopback is there");
    let group = listener.local();
    let sources = vec![source("a", 1, SEGMENT), source("b", 2, SEGMENT), source("c", 3, SEGMENT / 2)];
    let mut out = Outlet::new(endpoint, sources, group, None).expect("nothing is coded");
    let mut batch = Batch::new(&Summed);
    let mut push = |number, last| {
        let content = Content::Source { object: ObjectId::new(number), block: 0, segments: run(0, 2) };
        batch
            .push(&mut out, &Transmit::new(Piece { content, last }, group))
            .map(|()| batch.filled / batch.stride)
    };
    let whole = SEGMENT as usize;
    let filled: Vec<_> =
        [push(0, whole), push(1, whole)].into_iter().map(|filled| filled.expect("sent")).collect();
    assert_eq!(filled, [2, 4], "what is cut alike leaves together");
    assert!(matches!(push(3, whole), Err(NetError::UnknownObject(object)) if object == ObjectId::new(3)));
    batch.flush(&out.endpoint).expect("loopback carries it");
    let octets: Vec<u8> = heard(&listener, 4).iter().map(|datagram| datagram[4]).collect();
    assert_eq!(octets, [1, 1, 2, 2]);
}

#[test]
fn parity_of_many_objects_is_made_for_a_few_at_once() {
    const OBJECTS: u32 = 7;
    let dir = tempfile::tempdir().expect("a directory");
    let sources = (0..OBJECTS).map(|number| {
        let path = dir.path().join(number.to_string());
        std::fs::write(&path, vec![number as u8 + 1; 20 * SEGMENT as usize]).expect("written");
        let outgoing = Outgoing::plain(path, |_| {}).expect("a file");
        let geometry = Geometry::new(outgoing.size(), SEGMENT, 20).expect("it can be cut");
        ObjectSource {
            outgoing,
            code: BlockParity { symbols: 4, kind: ErasureCode::BySize },
            of_all: 0,
            parity: None,
            geometry,
        }
    });
    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Endpoint::listener(any, None, &options, Transport::Udp).expect("loopback is there");
    let endpoint = Endpoint::sender(any, &options, Transport::Udp).expect("loopback is there");
    let mut out =
        Outlet::new(endpoint, sources.collect(), listener.local(), None).expect("they can be coded");
    let mut batch = Batch::new(&Summed);
    let order: Vec<u32> = (0..OBJECTS).chain((0..OBJECTS).rev()).collect();
    for &number in &order {
        let content = Content::Parity { object: ObjectId::new(number), block: 0, symbols: run(0, 1) };
        let transmit = Transmit::new(Piece { content, last: SEGMENT as usize }, listener.local());
        batch.push(&mut out, &transmit).expect("loopback carries it");
        let coding = out.sources.iter().filter(|source| source.parity.is_some()).count();
        assert!(coding <= MOST_CODING && out.sources[number as usize].parity.is_some(), "{coding} at once");
    }
    batch.flush(&out.endpoint).expect("loopback carries it");
    // The parity of a block whose segments are all alike is alike, too: the sum of a code's row is 1.
    let octets: Vec<u32> = heard(&listener, order.len()).iter().map(|datagram| datagram[4].into()).collect();
    assert_eq!(octets, order.iter().map(|number| number + 1).collect::<Vec<_>>());
}
