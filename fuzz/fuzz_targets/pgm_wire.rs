//! Arbitrary datagrams: decoding never panics, and a decoded message encodes to octets that decode to the same message.
#![no_main]

use farcast_pgm::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut datagram = input.to_vec();
    // Random octets have a wrong checksum, so decode them as they are and then with the right checksum.
    for _ in 0..2 {
        if let Ok(packet) = wire::decode(&datagram) {
            let mut again = Vec::new();
            wire::encode(&packet.message, 0, &mut again);
            again.extend_from_slice(&datagram[packet.payload.clone()]);
            assert_eq!(again.len(), wire::encoded_len(&packet.message, 0));
            wire::finish(&mut again);
            let second = wire::decode(&again).expect("what was decoded can be encoded and decoded");
            assert_eq!(second.message, packet.message);
            assert_eq!(again[second.payload], datagram[packet.payload]);
        }
        wire::finish(&mut datagram);
    }
});
