use std::num::NonZeroU32;

use farcast_core::{Bitmap, Run, Span};
use farcast_delivery::SenderEngine as _;
use farcast_mftp::message::{Completion, Data, DataKind, Nak};
use farcast_mftp::{Body, ClientId, Codec, Message, Mftp, Product, Sender, SenderConfig};

use super::*;

fn routes(server: &str) -> Routes {
    let product = Product { id: [7; 32], size: 100_000, name: "file".into() };
    let config = SenderConfig::new(product, server.parse().unwrap(), "239.255.54.2:5402".parse().unwrap());
    Sender::new(config).unwrap().routes()
}

fn trace<W: Write>(out: W) -> Trace<W, Mftp> {
    Trace::new(out, Some(routes("10.0.0.1:5402")), Codec, &TraceConfig::default()).unwrap()
}

fn group() -> SocketAddr {
    "239.255.54.2:5402".parse().unwrap()
}

fn data(first: u32, count: u32) -> Frame<Message> {
    let dtus = Run::new(first, count).unwrap();
    let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus, len: 500, last_len: 500 };
    let spacing = Span::from_millis(10);
    Frame { message: Message::new(1, Body::Data(data)), overhead: 28, spacing }
}

fn nak() -> Frame<Message> {
    let mut missing = Bitmap::new(16);
    missing.insert(3);
    let nak = Nak {
        server: "10.0.0.1:5402".parse().unwrap(),
        client: ClientId(5),
        pass: 1,
        block: 0,
        missing,
        parity_held: 0,
        unstored: 0,
    };
    Frame::new(Message::new(1, Body::Nak(nak)), 28)
}

fn completion(hosts: u32) -> Frame<Message> {
    let hosts = Some((0..hosts).map(ClientId).collect());
    Frame::new(Message::new(1, Body::Completion(Completion { turn: None, hosts })), 28)
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

/// Returns the times, interfaces and IPv4 identifications of the packets of a file, from the offsets of the format
/// alone.
fn packets(file: &[u8]) -> Vec<(u64, u32, u16)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut offset, mut packets) = (0, Vec::new());
    while offset < file.len() {
        if word(offset) == 6 {
            let nanoseconds = u64::from(word(offset + 12)) << 32 | u64::from(word(offset + 16));
            let id = u16::from_be_bytes([file[offset + 32], file[offset + 33]]);
            packets.push((nanoseconds, word(offset + 8), id));
        }
        offset += word(offset + 4) as usize;
    }
    packets
}

/// Disk that is full after `room` octets.
#[derive(Debug)]
struct Disk {
    room: usize,
    calls_when_full: usize,
}

impl Write for Disk {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            self.calls_when_full += 1;
            assert_eq!(self.calls_when_full, 1, "written to after it was full");
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = octets.len().min(self.room);
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn answers_lie_between_the_datagrams_of_a_run() {
    let mut trace = trace(Vec::new());
    trace.sent(at(100), group(), &data(0, 4));
    trace.answered(at(115), 0, &nak());
    trace.reached(at(120), 0, &nak().message);
    trace.nak(at(120), &Asked { round: 1, count: 1, fate: NakFate::Used });
    let file = trace.finish().unwrap();
    let times: Vec<_> =
        packets(&file).iter().map(|&(at, interface, _)| (at / 1_000_000, interface)).collect();
    assert_eq!(times, [(100, 0), (110, 0), (115, 1), (120, 0), (120, 0), (130, 0)]);
    let text = String::from_utf8_lossy(&file);
    assert_eq!(text.matches("used: ").count(), 1);
}

#[test]
fn an_answer_keeps_its_identification_and_a_lost_one_takes_its_own_away() {
    let mut trace = trace(Vec::new());
    let nak = nak();
    // Two receivers send the same answer, and only the second arrives.
    trace.answered(at(1), 0, &nak);
    trace.answered(at(2), 1, &nak);
    trace.reached(at(3), 1, &nak.message);
    // This answer arrives without having been seen to leave.
    trace.reached(at(4), 2, &nak.message);
    let ids: Vec<_> = packets(&trace.finish().unwrap()).iter().map(|&(_, _, id)| id).collect();
    assert_eq!(ids, [1, 2, 2, 3]);
}

#[test]
fn merged_naks_are_no_packets() {
    let mut trace = trace(Vec::new());
    trace.nak(at(5), &Asked { round: 1, count: 40, fate: NakFate::Known });
    assert_eq!(trace.packets(), 0);
    assert_eq!(packets(&trace.finish().unwrap()), []);
}

#[test]
fn a_full_disk_is_told_at_the_end_and_not_written_to_again() {
    // A little more than the file's head, so that a packet meets the end.
    for room in [0, 10, 800] {
        let mut trace = trace(Disk { room, calls_when_full: 0 });
        trace.sent(at(100), group(), &data(0, 200));
        let error = trace.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn what_no_datagram_holds_is_an_error() {
    for (hosts, fits) in [(16_372, true), (16_373, false), (100_000, false)] {
        let frame = completion(hosts);
        // UDP over IPv4 holds at most 65,507 octets.
        assert_eq!(frame.message.wire_len(0) <= 65_507, fits);
        let mut trace = trace(Vec::new());
        trace.sent(at(1), group(), &frame);
        trace.answered(at(2), 0, &nak());
        let result = trace.finish();
        assert_eq!(result.is_ok(), fits, "{hosts} hosts");
        if let Err(error) = result {
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}

#[test]
fn only_ipv4_is_traced() {
    let config = TraceConfig::default();
    let error =
        Trace::<_, Mftp>::new(Vec::new(), Some(routes("[fd77::1]:5402")), Codec, &config).err().unwrap();
    let told = "[fd77::1]:5402 is no IPv4 address; a trace is written of IPv4 sessions only";
    assert_eq!(error.to_string(), told);
}

#[test]
fn payload_is_cut_to_the_setting() {
    for (payload_octets, captured) in [(0, 68), (64, 132), (500, 568), (u32::MAX, 568)] {
        let config = TraceConfig { payload_octets, comment: "x".repeat(70_000) + "é" };
        let mut trace =
            Trace::<_, Mftp>::new(Vec::new(), Some(routes("10.0.0.1:5402")), Codec, &config).unwrap();
        trace.sent(at(1), group(), &data(0, 1));
        let file = trace.finish().unwrap();
        // The packet's block is the last: header, packet, flags, "pass 1 begins", end of options, length.
        let block = file.len() - (28 + captured + 8 + 20 + 4 + 4);
        let word = |at: usize| u32::from_le_bytes(file[block + at..block + at + 4].try_into().unwrap());
        assert_eq!((word(0), word(20) as usize, word(24)), (6, captured, 568));
    }
}

#[test]
fn saturated_times_come_last_and_end() {
    let mut trace = trace(Vec::new());
    let frame = Frame { spacing: Span::MAX, ..data(0, 3) };
    trace.sent(at(1), group(), &frame);
    trace.sent(at(2), group(), &data(9, 1));
    let times: Vec<_> = packets(&trace.finish().unwrap()).iter().map(|&(at, ..)| at).collect();
    assert_eq!(times, [1_000_000, 2_000_000, u64::MAX, u64::MAX]);
}

#[test]
fn runs_of_one_and_whole_runs_make_the_same_file() {
    let mut whole = trace(Vec::new());
    whole.sent(at(0), group(), &data(0, 30));
    let mut single = trace(Vec::new());
    let mut rest = Some(data(0, 30));
    for n in 0.. {
        let Some(frame) = rest else { break };
        let (head, tail) = frame.split(NonZeroU32::MIN);
        single.sent(at(10 * n), group(), &head);
        rest = tail;
    }
    assert_eq!(whole.finish().unwrap(), single.finish().unwrap());
}
