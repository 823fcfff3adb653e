//! Any sequence of datagrams, timers and answers of the owner: sender and receiver of MDP never panic, always drain,
//! and an object is complete only with all its segments.
#![no_main]

use farcast_fuzz::engines::{Exchange, group, rate, source};
use farcast_mdp::{Codec, Mdp, NodeId, Object, Receiver, ReceiverConfig, Sender, SenderConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, input @ ..] = input else { return };
    let object = |size| Object { size, info: b"name".to_vec(), vouched: None };
    let mut config = SenderConfig::new(NodeId(1), vec![object(1999), object(1)], source(), group(), rate());
    (config.segment_size, config.block_len, config.parity) = (100, 8, (choice % 5).into());
    if choice & 8 != 0 {
        config.ackers = vec![NodeId(2)];
    }
    let sender = Sender::new(config).expect("valid");
    let receiver = Receiver::new(ReceiverConfig::new(NodeId(2), group())).expect("valid");
    Exchange::<Mdp>::new(Codec, sender, receiver).run(input);
});
