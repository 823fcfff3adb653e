//! Tests of details that are not visible from outside; the rest is in `tests/control.rs`.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process;
use std::time::Duration;

use farcast_core::Span;

use super::names::listed;
use super::snapshot::Marks;
use super::*;

#[test]
fn lists_only_emulations_that_listen() {
    let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31337 @farcast/emulate/4711\n\
        0000000000000000: 00000003 00000000 00000000 0001 03 31338 @farcast/emulate/4712\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31339 @farcast/emulate/12\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31340 /farcast/emulate/13\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31341 @farcast/emulate/014\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31342 @farcast/emulate/+15\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31343 @farcast/emulate/99999999999\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31344 @farcast/emulate/\n\
        0000000000000000: 00000002 00000000 zz 0001 01 31345 @farcast/emulate/16\n\
        0000000000000000: 00000003 00000000 00000000 0001 03 31346\n\
        \n\
        0000000000000000: 00000002 00000000 00010000 0001 01 31347 @farcast/emulate/4711\n";
    assert_eq!(listed(table), [12, 4711]);
    assert!(listed("").is_empty());
}

fn at(time_s: f64, entered: u64, delivered: u64) -> Snapshot {
    let count = |octets| Count { packets: 1, octets };
    let back =
        DirectionState { entered: count(entered), delivered: count(delivered), ..DirectionState::default() };
    Snapshot { time_s, back, ..Snapshot::default() }
}

#[test]
fn rates_are_over_the_time_since_the_last_snapshot() {
    let mut first = at(2.0, 1000, 500);
    first.take_rates(None);
    assert_eq!((first.interval_s, first.back.entered_bps, first.back.delivered_bps), (2.0, 4000.0, 2000.0));
    assert_eq!((first.forward.entered_bps, first.forward.delivered_bps), (0.0, 0.0));
    let mut second = at(2.5, 1250, 1000);
    second.take_rates(Some(&first.marks()));
    assert_eq!(
        (second.interval_s, second.back.entered_bps, second.back.delivered_bps),
        (0.5, 4000.0, 8000.0)
    );
    // Neither at the same instant nor after counts that went back is there anything but nought.
    for mut odd in [at(2.5, 2000, 2000), at(3.5, 0, 0)] {
        odd.take_rates(Some(&second.marks()));
        assert_eq!((odd.back.entered_bps, odd.back.delivered_bps), (0.0, 0.0));
    }
    let mut start = at(0.0, 5, 5);
    start.take_rates(Some(&Marks::default()));
    assert_eq!((start.interval_s, start.back.entered_bps), (0.0, 0.0));
}

/// One whose snapshots no socket's buffer takes.
struct Verbose;

impl Handler for Verbose {
    fn set(&mut self, _: Change) -> Result<(), String> {
        Ok(())
    }
    fn snapshot(&mut self) -> Snapshot {
        Snapshot { terminals: vec![TerminalState::default(); 100_000], ..Snapshot::default() }
    }
    fn describe(&mut self) -> Description {
        Description::default()
    }
    fn stop(&mut self) {}
}

fn client(name: &str) -> UnixStream {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

#[test]
fn a_client_that_does_not_take_its_line_is_dropped_and_others_are_served_meanwhile() {
    let name = format!("farcast/test/{}/slow", process::id());
    let server = ControlServer::start_with(&name, Span::from_millis(300), Verbose).unwrap();
    let mut slow = client(&name);
    slow.write_all(b"{\"watch\": {\"every\": \"100 ms\"}}\n").unwrap();
    let mut stuck = client(&name);
    // The second request is not read before the first one's answer has gone.
    stuck.write_all(b"{\"snapshot\": {}}\n{\"set\": {\"per\": 0}}\n").unwrap();
    let mut brisk = client(&name);
    let mut lines = BufReader::new(brisk.try_clone().unwrap());
    let mut asked = 0;
    while server.counters().slow < 2 {
        brisk.write_all(b"{\"set\": {\"per\": 0}}\n").unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "{\"ok\":{}}\n");
        asked += 1;
        assert!(asked < 10_000_000, "no slow client was dropped");
    }
    let expected =
        ControlCounters { accepted: 3, slow: 2, requests: asked + 2, ..ControlCounters::default() };
    assert_eq!(server.counters(), expected);
    // Lines that were sent can still be read, and then the connection is over.
    let mut lines = BufReader::new(slow).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{\"ok\":{}}");
    let rest: String = lines.map_while(Result::ok).collect();
    assert!(rest.starts_with("{\"snapshot\":{"));
    assert!(
        serde_json::from_str::<AnswerLine>(&rest).is_err(),
        "a line of several MB went into a socket's buffer"
    );
}
