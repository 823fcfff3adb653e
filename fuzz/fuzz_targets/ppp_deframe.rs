//! Arbitrary octets on a PPP line, valid frames among them. The deframer never panics, holds no more than its MRU, and
//! gives the same packets whatever the pieces. Packets that are encoded again decode to the same. Link control does not
//! panic on any packet either.
#![no_main]

use arbitrary::Arbitrary;
use farcast_ppp::framing::PROTOCOL_LCP;
use farcast_ppp::{Deframer, Fcs, Framing, lcp};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    long: bool,
    accm: u32,
    acfc: bool,
    pfc: bool,
    mru: u16,
    parts: Vec<Part>,
    piece: u8,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Octets(Vec<u8>),
    Frame { protocol: u16, information: Vec<u8>, flag: bool },
    LinkControl(Vec<u8>),
}

fn read(framing: Framing, mru: u16, line: &[u8], piece: usize) -> (Deframer, Vec<(u16, Vec<u8>)>) {
    let mut deframer = Deframer::new(framing, mru);
    let mut packets = Vec::new();
    for mut octets in line.chunks(piece.max(1)) {
        while let Some(packet) = deframer.next(&mut octets) {
            assert!(packet.information.len() <= mru.into());
            packets.push((packet.protocol, packet.information.to_vec()));
        }
        assert!(octets.is_empty());
    }
    (deframer, packets)
}

fuzz_target!(|input: Input| {
    let fcs = if input.long { Fcs::Fcs32 } else { Fcs::Fcs16 };
    let framing = Framing { fcs, accm: input.accm, acfc: input.acfc, pfc: input.pfc };
    let mut line = Vec::new();
    for part in &input.parts {
        match part {
            Part::Octets(octets) => line.extend(octets),
            Part::Frame { protocol, information, flag } => {
                framing.encode(*protocol, information, *flag, &mut line);
            }
            Part::LinkControl(information) => framing.encode(PROTOCOL_LCP, information, true, &mut line),
        }
    }
    let (whole, packets) = read(framing, input.mru, &line, line.len());
    let (pieces, same) = read(framing, input.mru, &line, input.piece.into());
    assert_eq!((pieces.counters(), same), (whole.counters(), packets.clone()));
    assert_eq!(whole.counters().good, packets.len() as u64);
    for (protocol, information) in packets {
        if protocol == PROTOCOL_LCP
            && let Ok(packet) = lcp::Packet::parse(&information)
        {
            let mut again = Vec::new();
            packet.emit(&mut again);
            assert_eq!(lcp::Packet::parse(&again), Ok(packet));
            packet.options().for_each(|option| {
                let _ = option.expect("checked");
            });
        }
        let mut again = Vec::new();
        framing.encode(protocol, &information, true, &mut again);
        let (_, read_again) = read(framing, input.mru, &again, again.len());
        // Without information, a header that can be shortened leaves less than a frame.
        if !information.is_empty() {
            assert_eq!(read_again, [(protocol, information)]);
        }
    }
});
