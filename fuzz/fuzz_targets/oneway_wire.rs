//! Any datagram: decoding never panics, and what decodes encodes to the same octets.
#![no_main]

use farcast_core::engine::Message as _;
use farcast_oneway::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    let Ok(packet) = wire::decode(datagram) else { return };
    let mut again = Vec::new();
    wire::encode(&packet.message, 0, &mut again);
    again.extend_from_slice(&datagram[packet.payload.clone()]);
    assert_eq!(again, datagram);
    assert_eq!(packet.message.wire_len(0), datagram.len());
    assert_eq!(packet.message.segments().get(), 1);
});
