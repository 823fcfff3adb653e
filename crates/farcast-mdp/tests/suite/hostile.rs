//! Messages of attackers and broken peers.

use farcast_testkit::{Link, Setup, hostile};

use crate::common::{Local, Session, ms, receiver, sender};

fn session(seed: u64) -> Session {
    Session::new("words", Setup::plain(seed), sender(60, 3), 3, Link::lossy(ms(50), 0.1))
}

#[test]
fn messages_that_are_turned_down_leave_no_trace_at_a_sender() {
    let rejected = hostile::sender_rejects_without_trace::<Local>(0..10, session, |_| sender(60, 3));
    assert!(rejected > 500, "{rejected}");
}

#[test]
fn engines_stay_small() {
    hostile::stay_small::<Local>(0..3, session, |_| sender(60, 3), || receiver(0));
}
