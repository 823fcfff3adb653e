//! Datagrams of sources that have nothing to send.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use farcast_core::{Message as _, Run};
use farcast_delivery::Vouched;
use farcast_delivery::nack::quantise::{GroupSize, Rtt};
use farcast_mdp::message::{About, Head};
use farcast_mftp::message::{AnnounceOptions, DataKind, GroupModel};
use farcast_mftp::{Proof, message as mftp};
use farcast_norm::message::{FromSender, Fti, Point, Terms};
use farcast_norm::{Fec, NodeId};
use farcast_pgm::message::{Data as PgmData, DataKind as PgmKind, DataOptions, Descriptor, Opt, Origin, Spm};
use farcast_pgm::{Gsi, Sqn, Tsi};

use crate::common::forged;

/// Octets of a segment, and segments of each object that is announced.
const SEGMENT: u16 = 1000;
const SEGMENTS: u32 = 1000;
const SIZE: u64 = SEGMENT as u64 * SEGMENTS as u64;
/// Longest round trip that the protocol can express.
const LONGEST: Rtt = Rtt(255);

fn datagram<M>(message: &M, len: usize, encode: impl Fn(&M, u32, &mut Vec<u8>)) -> Vec<u8> {
    let mut datagram = Vec::new();
    encode(message, 0, &mut datagram);
    datagram.resize(len, 0);
    datagram
}

fn vouched(source: u32) -> Vouched {
    Vouched { digest: [source as u8; 32], mode: 0o644, mtime_ns: i64::from(source) }
}

/// Returns the datagrams of source `n` by NORM: an object's announcement, or only a sign that data was sent. With
/// `sends`, the first segment follows.
pub(crate) fn norm(n: u32, sends: bool) -> Vec<Vec<u8>> {
    let fti = Fti { size: SIZE, segment_size: SEGMENT, max_block_len: 64, last: 8, instance: 0, group: 1 };
    let (fec, object) = (Fec::ReedSolomon8, 0);
    let flags = farcast_norm::message::Flags(0x14);
    let point = |block| Point {
        fec,
        object,
        symbol: farcast_norm::message::Symbol { block, block_len: None, symbol: 0 },
    };
    let info = FromSender::Info(farcast_norm::message::Info {
        flags,
        fec,
        object,
        fti: Some(fti),
        vouched: Some(vouched(n)),
        content: format!("absent-{n}").into_bytes(),
    });
    let said = if n.is_multiple_of(2) || sends {
        info
    } else {
        FromSender::Flush { point: point(9), ackers: vec![] }
    };
    let data = FromSender::Data(farcast_norm::message::Data {
        flags,
        fec,
        object,
        block: 0,
        block_len: None,
        symbols: Run::one(0),
        fti: Some(fti),
        len: SEGMENT,
        last_len: SEGMENT,
    });
    let terms = Terms { instance: n as u16, grtt: LONGEST, backoff: 15, group: GroupSize::of(1_000_000) };
    let all = std::iter::once(said).chain(sends.then_some(data));
    all.map(|said| {
        let message = farcast_norm::Message {
            source: NodeId(0x0b00_0000 + n),
            sequence: 0,
            body: farcast_norm::Body::Sender(terms, said),
        };
        datagram(&message, message.wire_len(0), farcast_norm::wire::encode)
    })
    .collect()
}

/// Returns the datagrams by MDP.
pub(crate) fn mdp(n: u32, sends: bool) -> Vec<Vec<u8>> {
    let flags = farcast_mdp::message::Flags::FILE.with(farcast_mdp::message::Flags::INFO);
    let about = About { object: 0, size: SIZE as u32, ndata: 64, nparity: 0, flags };
    let info = farcast_mdp::message::FromSender::Info(farcast_mdp::message::Info {
        about,
        segment_size: SEGMENT,
        content: format!("absent-{n}").into_bytes(),
        vouched: None,
    });
    let data = farcast_mdp::message::FromSender::Data(farcast_mdp::message::Data {
        about,
        block: 0,
        symbols: Run::one(0),
        parity: false,
        segment_size: SEGMENT,
        len: SEGMENT,
        ends_block: false,
    });
    let all = std::iter::once(info).chain(sends.then_some(data));
    all.enumerate()
        .map(|(at, said)| {
            let head = Head { sequence: at as u16, grtt: LONGEST };
            let message = farcast_mdp::Message {
                source: NodeId(0x0b00_0000 + n),
                body: farcast_mdp::Body::Sender(head, said),
            };
            datagram(&message, message.wire_len(0), farcast_mdp::wire::encode)
        })
        .collect()
}

/// Returns the datagrams by PGM: the position in the stream, and the description of a file.
pub(crate) fn pgm(n: u32, sends: bool) -> Vec<Vec<u8>> {
    let tsi = Tsi { gsi: Gsi([1, 2, (n >> 24) as u8, (n >> 16) as u8, (n >> 8) as u8, n as u8]), port: 9 };
    let spm = Spm {
        sqn: Sqn(1),
        trail: Sqn(1),
        lead: Sqn(100),
        path: "127.0.0.1".parse().unwrap(),
        options: vec![Opt::Join(Sqn(1))],
    };
    let descriptor = Descriptor {
        number: 0,
        behind: 1,
        segment_size: SEGMENT,
        size: SIZE,
        vouched: Some(vouched(n)),
        withdrawn: false,
        name: format!("absent-{n}").into_bytes(),
    };
    let data = |sqn, descriptor: Option<Descriptor>, len| PgmData {
        kind: PgmKind::Original,
        sqn: Sqn(sqn),
        count: NonZeroU32::MIN,
        trail: Sqn(1),
        parity: None,
        options: DataOptions::default(),
        descriptor: descriptor.map(Box::new),
        len,
        last_len: len,
        origin: Origin::UNKNOWN,
    };
    let body = |data| farcast_pgm::Body::Data(data);
    let mut all = vec![farcast_pgm::Body::Spm(spm), body(data(1, Some(descriptor), 0))];
    all.extend(sends.then(|| body(data(2, None, SEGMENT))));
    all.into_iter()
        .map(|body| {
            let message = farcast_pgm::Message { tsi, port: 7500, body };
            let mut datagram = datagram(&message, message.wire_len(0), farcast_pgm::wire::encode);
            farcast_pgm::wire::finish(&mut datagram);
            datagram
        })
        .collect()
}

/// Returns the datagrams by the one-way protocol: a description that is valid for the longest time.
pub(crate) fn one_way(n: u32, sends: bool) -> Vec<Vec<u8>> {
    let mut id = [9; 32];
    id[..4].copy_from_slice(&n.to_be_bytes());
    let description = farcast_oneway::Message::Description(farcast_oneway::Description {
        session: n,
        id,
        size: SIZE,
        segment: SEGMENT,
        block: 1000,
        parity: 100,
        rate_kbps: 1,
        left_ms: u32::MAX,
        overwrite: true,
        over: false,
        name: format!("absent-{n}").into_bytes(),
    });
    let symbols = farcast_oneway::Message::Symbols(farcast_oneway::Symbols {
        session: n,
        round: 1,
        kind: farcast_oneway::Kind::Source,
        block: 0,
        run: Run::one(0),
        len: SEGMENT,
        last: SEGMENT,
    });
    let all = std::iter::once(description).chain(sends.then_some(symbols));
    all.map(|message| datagram(&message, message.wire_len(0), farcast_oneway::wire::encode)).collect()
}

/// Returns the datagrams by MFTP, from `source`. Every other source pretends to grant tokens.
pub(crate) fn mftp(n: u32, sends: bool, source: SocketAddr) -> Vec<Vec<u8>> {
    let grants = n.is_multiple_of(2);
    let (model, commitment) = if grants {
        (GroupModel::OpenLimited, Some(Proof([n as u8; 8])))
    } else {
        (GroupModel::OpenUnlimited, None)
    };
    let mut announce = forged::announcement(source, "239.255.77.77".parse().unwrap());
    announce.options = AnnounceOptions { model, ..announce.options };
    (announce.commitment, announce.product_size) = (commitment, SIZE);
    announce.product_id = Some([n as u8; 32]);
    announce.product_name = format!("absent-{n}");
    let data = mftp::Data {
        kind: DataKind::Source,
        pass: 1,
        block: 0,
        dtus: Run::one(0),
        len: SEGMENT,
        last_len: SEGMENT,
    };
    let bodies = std::iter::once(farcast_mftp::Body::Announce(announce.into()))
        .chain(sends.then_some(farcast_mftp::Body::Data(data)));
    bodies
        .map(|body| {
            let message = farcast_mftp::Message::new(0x0b00_0000 + n, body);
            let len = farcast_mftp::wire::encoded_len(&message, 0);
            datagram(&message, len, farcast_mftp::wire::encode)
        })
        .collect()
}
