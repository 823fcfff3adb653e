//! Any sequence of datagrams, timers and answers of the owner: source and receiver of PGM never panic, always drain,
//! and a file is complete only with all its segments.
#![no_main]

use farcast_fuzz::engines::{Exchange, group, rate, source};
use farcast_pgm::{
    Codec, Gsi, NodeId, Object, Pgm, Receiver, ReceiverConfig, Sender, SenderConfig, Sending, Tsi,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, input @ ..] = input else { return };
    let tsi = Tsi { gsi: Gsi([1, 2, 3, 4, 5, 6]), port: 4000 };
    let file = |size| Object { size, name: b"name".to_vec(), vouched: None };
    let sending = Sending::Files(vec![file(1999), file(0)]);
    let mut config = SenderConfig::new(tsi, sending, source(), group(), rate());
    config.tsdu = 100;
    if choice & 1 != 0 {
        config.named = vec![NodeId(2)];
    }
    let sender = Sender::new(config).expect("valid");
    let receiver = Receiver::new(ReceiverConfig::new(NodeId(2), group())).expect("valid");
    Exchange::<Pgm>::new(Codec { raw: false }, sender, receiver).run(input);
});
