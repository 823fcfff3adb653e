//! A session between two hosts, as in the report of 2003 on a space link.

use farcast_mdp::{ReceiverConfig, SenderConfig};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, ms, object, receiver, receiver_address, sender};

/// Returns the report's 100 KB at its rate, with blocks of 20 segments and 20 parity symbols.
fn config() -> SenderConfig {
    SenderConfig {
        group: receiver_address(0),
        objects: vec![object(71)],
        block_len: 20,
        parity: 20,
        unicast: true,
        ..sender(71, 0)
    }
}

#[test]
fn a_file_arrives_whatever_is_lost() {
    for (seed, loss) in (0..10).zip([0.0, 0.01, 0.02, 0.05, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3]) {
        let mut session = Session::empty("alone", Setup::plain(seed), config(), Link::lossy(ms(100), loss));
        session.add(0, ReceiverConfig { unicast: true, ..receiver(0) });
        session.run().assert_received(1);
    }
}
