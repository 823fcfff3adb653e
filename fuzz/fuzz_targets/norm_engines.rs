//! Any sequence of datagrams, timers and answers of the owner: sender and receiver of NORM never panic, always drain,
//! and an object is complete only with all its segments.
#![no_main]

use farcast_fuzz::engines::{Exchange, group, rate, source};
use farcast_norm::{Codec, Fec, NodeId, Norm, Receiver, ReceiverConfig, Sender, SenderConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, input @ ..] = input else { return };
    let mut config = SenderConfig::new(NodeId(1), 2000, source(), group(), rate());
    (config.segment_size, config.block_len, config.parity) = (100, 8, u16::from(choice % 5));
    config.objects[0].info = b"name".to_vec();
    if choice & 8 != 0 {
        config.ackers = vec![NodeId(2)];
    }
    let sender = Sender::new(config).expect("valid");
    let receiver = Receiver::new(ReceiverConfig::new(NodeId(2), group())).expect("valid");
    Exchange::<Norm>::new(Codec { fec: Fec::ReedSolomon8 }, sender, receiver).run(input);
});
