//! Whatever arrives, decoding never panics, and what decodes encodes to what decodes to the same.
#![no_main]

use farcast_pgm::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut datagram = input.to_vec();
    // The checksum hides all else: once as it came, once made right.
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
