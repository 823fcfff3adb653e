use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::echo::Reply;

const SECOND: Span = Span::from_secs(1);

fn config(failures: u32) -> EchoConfig {
    EchoConfig { interval: SECOND, failures }
}

/// Wakes the monitor when it wants to be, up to `until`; the requests and when they were made.
fn run(monitor: &mut EchoMonitor, until: Time) -> Vec<(Time, u8)> {
    let mut requests = Vec::new();
    while let Some(due) = monitor.poll_timeout().filter(|due| due.at <= until) {
        monitor.handle_timeout(due.at);
        requests.extend(monitor.poll_request().map(|identifier| (due.at, identifier)));
        assert!(monitor.poll_timeout().is_none_or(|next| next.at > due.at));
    }
    requests
}

#[test]
fn a_silent_link_is_dead_after_interval_times_failures() {
    let mut monitor = EchoMonitor::new(config(3), ms(500));
    assert_eq!(run(&mut monitor, ms(3499)), [(ms(500), 0), (ms(1500), 1), (ms(2500), 2)]);
    assert!(!monitor.is_dead());
    assert_eq!(run(&mut monitor, ms(3500)), [(ms(3500), 3)]);
    assert!(monitor.is_dead());
    // It goes on asking, and an answer to whatever is open revives the link.
    assert_eq!(run(&mut monitor, ms(9000)).len(), 5);
    assert!(monitor.reply(ms(9001), 4) && !monitor.is_dead());
    // From the last answer on the count begins anew: requests 9, 10 and 11 go unanswered.
    run(&mut monitor, ms(11_500));
    assert!(!monitor.is_dead());
    run(&mut monitor, ms(12_500));
    assert!(monitor.is_dead());
}

#[test]
fn a_reply_answers_what_was_asked_before_it_and_nothing_else() {
    let mut monitor = EchoMonitor::new(config(9), Time::ZERO);
    assert!(!monitor.reply(Time::ZERO, 0), "nothing was asked");
    run(&mut monitor, ms(3000));
    assert!(!monitor.reply(ms(3001), 4) && !monitor.reply(ms(3001), 255), "not yet asked");
    assert!(monitor.reply(ms(3001), 1));
    assert!(!monitor.reply(ms(3002), 1) && !monitor.reply(ms(3002), 0), "answered");
    assert!(monitor.reply(ms(3003), 3) && !monitor.reply(ms(3004), 2));
}

#[test]
fn a_reply_that_takes_longer_than_an_interval_keeps_the_link_alive() {
    // The round trip is 2.5 s: three requests are under way when the first answer comes, and never more.
    let mut monitor = EchoMonitor::new(config(3), Time::ZERO);
    let mut under_way = std::collections::VecDeque::new();
    for tick in 0..1000 {
        let now = ms(tick * 500);
        while under_way.front().is_some_and(|&(at, _)| at <= now) {
            let (_, identifier) = under_way.pop_front().expect("just seen");
            assert!(monitor.reply(now, identifier));
        }
        monitor.handle_timeout(now);
        under_way
            .extend(monitor.poll_request().map(|identifier| (now + Span::from_millis(2500), identifier)));
        assert!(!monitor.is_dead(), "at {now:?}");
    }
}

#[test]
fn our_own_magic_number_is_a_loop_and_no_answer() {
    let mut monitor = EchoMonitor::new(config(1), Time::ZERO).with_magic_number(0xABCD);
    run(&mut monitor, Time::ZERO);
    assert_eq!(monitor.reply_with(ms(1), 0, 0xABCD), Reply::Loopback);
    assert!(monitor.is_looped_back());
    run(&mut monitor, ms(1000));
    assert!(monitor.is_dead());
    assert_eq!(monitor.reply_with(ms(1001), 7, 1), Reply::Unexpected);
    assert_eq!(monitor.reply_with(ms(1001), 0, 1), Reply::Answer);
    assert!(!monitor.is_dead());
    // Without a magic number there is nothing to know an echo by.
    let mut plain = EchoMonitor::new(config(1), Time::ZERO);
    run(&mut plain, Time::ZERO);
    assert_eq!((plain.reply_with(ms(1), 0, 0), plain.is_looped_back()), (Reply::Answer, false));
}

#[test]
fn a_restarted_monitor_is_as_new_but_for_its_numbers() {
    let mut monitor = EchoMonitor::new(config(2), Time::ZERO).with_magic_number(5);
    run(&mut monitor, ms(2000));
    monitor.reply_with(ms(2000), 2, 5);
    assert!(monitor.is_dead() && monitor.is_looped_back());
    monitor.restart(ms(2300));
    assert!(!monitor.is_dead() && !monitor.is_looped_back());
    assert!(!monitor.reply(ms(2300), 2), "of the link that was");
    assert_eq!(run(&mut monitor, ms(3300)), [(ms(2300), 3), (ms(3300), 4)]);
    assert!(!monitor.is_dead());
    assert_eq!(run(&mut monitor, ms(4300)), [(ms(4300), 5)]);
    assert!(monitor.is_dead());
}

#[test]
fn settings_without_sense_are_refused_or_raised() {
    assert_eq!(EchoConfig { interval: Span::ZERO, failures: 3 }.check(), Err(ConfigError::EchoInterval));
    assert_eq!(config(0).check(), Err(ConfigError::EchoFailures));
    assert_eq!(config(1).check(), Ok(()));
    let mut monitor = EchoMonitor::new(EchoConfig { interval: Span::ZERO, failures: 0 }, ns(5));
    assert_eq!(run(&mut monitor, ns(7)), [(ns(5), 0), (ns(6), 1), (ns(7), 2)]);
    let mut last = EchoMonitor::new(config(1), Time::NEVER);
    assert_eq!(last.poll_timeout(), None);
    last.handle_timeout(Time::NEVER);
    assert_eq!(last.poll_timeout(), None);
}

proptest! {
    /// The monitor against one that keeps every request: dead if the last `failures` intervals brought no answer.
    #[test]
    fn identifiers_may_wrap_and_replies_may_get_lost(
        failures in 1_u32..5, lost in proptest::collection::vec(any::<bool>(), 1..700),
    ) {
        let mut monitor = EchoMonitor::new(config(failures), Time::ZERO);
        let mut silent = 0;
        for (second, lost) in (0..).zip(lost) {
            let now = ms(second * 1000);
            monitor.handle_timeout(now);
            let identifier = monitor.poll_request().expect("one a second");
            prop_assert_eq!(u64::from(identifier), second % 256);
            prop_assert_eq!(monitor.is_dead(), silent >= failures);
            silent += 1;
            if !lost {
                prop_assert!(monitor.reply(now + Span::from_millis(700), identifier));
                silent = 0;
            }
        }
    }
}
