use farcast_core::engine::Transmit;

use super::*;

#[test]
fn the_mtu_is_what_the_system_says() {
    let said = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("Linux has it");
    let said: u32 = said.trim().parse().expect("a number");
    let to = "127.0.0.1:5402".parse().expect("an address");
    let mtu = path_mtu(to, &SocketOptions::default()).expect("loopback is there");
    // No IPv4 packet is longer than its length field can say.
    assert_eq!(mtu, Some(said.min(65_535)));
}

#[test]
fn a_batch_arrives_as_the_datagrams_that_were_put_in() {
    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let (to, from) = (
        Endpoint::listener(any, None, &options, Transport::Udp),
        Endpoint::sender(any, &options, Transport::Udp),
    );
    let (to, from) = (to.expect("bound"), from.expect("bound"));
    let bytes: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
    from.send(&Envelope::of(&Transmit::new((), to.local())), &bytes, 1000).expect("loopback carries it");
    let mut got = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while got.len() < 3 {
        let mut meta = [RecvMeta::default()];
        let count = to.receive(&mut [IoSliceMut::new(&mut buffer)], &mut meta).expect("bound");
        let chunks = buffer[..if count > 0 { meta[0].len } else { 0 }].chunks(meta[0].stride.max(1));
        got.extend(chunks.map(<[u8]>::to_vec));
    }
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 500]);
    assert_eq!(got.concat(), bytes);
}

/// Returns two datagrams that were sent to a host whose sandbox answers `errno` to the call that fetches several.
fn received_without_recvmmsg(errno: i32) -> Vec<Vec<u8>> {
    let options = SocketOptions::default();
    let any = "127.0.0.1:0".parse().expect("an address");
    let to = Endpoint::listener(any, None, &options, Transport::Udp).expect("bound");
    let from = Endpoint::sender(any, &options, Transport::Udp).expect("bound");
    ssm::sandbox::refuse(libc::SYS_recvmmsg, None, errno).expect("a filter");
    let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let mut hear = |got: &mut Vec<Vec<u8>>| {
        let mut meta = [RecvMeta::default()];
        let count = to.receive(&mut [IoSliceMut::new(&mut buffer)], &mut meta).expect("another call");
        if count > 0 {
            assert_eq!(meta[0].addr, from.local());
            got.extend(buffer[..meta[0].len].chunks(meta[0].stride).map(<[u8]>::to_vec));
        }
    };
    // Before the first call, the kernel may join datagrams.
    hear(&mut got);
    from.send(&Envelope::of(&Transmit::new((), to.local())), &[7; 1500], 1000).expect("loopback carries it");
    while got.len() < 2 {
        hear(&mut got);
    }
    got
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what a sandbox refuses it refuses to a thread")]
fn datagrams_are_fetched_one_by_one_where_several_cannot_be() {
    for errno in [libc::ENOSYS, libc::EPERM, libc::EOPNOTSUPP] {
        let got = std::thread::spawn(move || received_without_recvmmsg(errno)).join().expect("no panic");
        assert_eq!(got, [vec![7; 1000], vec![7; 500]], "errno {errno}");
    }
}

#[test]
fn of_an_ip_packet_only_what_its_header_allows_is_taken() {
    // 24 octets of header, 4 of content, and 2 of padding that a short frame may have.
    let mut packet = [0; 30];
    (packet[0], packet[3], packet[9]) = (0x46, 28, 113);
    assert_eq!(behind_header(&packet, 113), Some(24..28));
    assert_eq!(behind_header(&packet[..28], 113), Some(24..28));
    assert_eq!(behind_header(&packet[..27], 113), None, "cut");
    assert_eq!(behind_header(&packet[..19], 113), None, "no header");
    assert_eq!(behind_header(&packet, 17), None, "another protocol");
    for (at, value) in [(0, 0x66), (0, 0x44), (0, 0x4f), (3, 23), (3, 31), (2, 1)] {
        let mut bad = packet;
        bad[at] = value;
        assert_eq!(behind_header(&bad, 113), None, "{at}: {value}");
    }
}
