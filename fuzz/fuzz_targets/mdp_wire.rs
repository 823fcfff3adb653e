//! Any datagram: decoding never panics, and what decodes encodes to something that decodes to the same.
#![no_main]

use farcast_mdp::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    let Ok(packet) = wire::decode(datagram) else { return };
    let mut again = Vec::new();
    wire::encode(&packet.message, 0, &mut again);
    again.extend_from_slice(&datagram[packet.payload.clone()]);
    assert_eq!(again.len(), wire::encoded_len(&packet.message, 0));
    let second = wire::decode(&again).expect("what was decoded can be encoded and decoded");
    assert_eq!(second.message, packet.message);
    assert_eq!(again[second.payload], datagram[packet.payload]);
});
