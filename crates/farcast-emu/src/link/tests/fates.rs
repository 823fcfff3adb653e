//! Causes of lost packets in the log, and a balance of all packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use farcast_capture::packets::{PacketLog, PacketRecord, Verdict};
use farcast_capture::recorder::{Recorder, RecorderConfig};

use super::*;

/// A record: number, when it should have left in milliseconds, verdict and cause.
type Row = (u64, Option<u64>, Verdict, String);

/// A log in memory.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<Vec<Row>>>);

impl PacketLog for Rows {
    fn record(&mut self, record: &PacketRecord<&str>) {
        let planned = record.planned.map(|at| at.as_nanos() / 1_000_000);
        self.0.lock().unwrap().push((record.number, planned, record.verdict, record.cause.into()));
    }

    fn finish(self: Box<Self>) -> std::io::Result<()> {
        Ok(())
    }
}

/// A link whose log is kept.
struct Run {
    link: Link,
    rows: Rows,
}

impl Run {
    fn new(text: &str, terminals: u32) -> Self {
        let rows = Rows::default();
        let config = RecorderConfig::default();
        let recorder = Recorder::start(&config, Some(Box::new(rows.clone())), None).unwrap();
        let link = Link::new(link(text, terminals, 1).config, Some(recorder));
        Self { link, rows }
    }

    /// `count` packets of `octets` enter, the first at `from` and the others every `gap` ms; those to a terminal at the
    /// hub.
    fn send(&mut self, to: End, terminal: u32, from: u64, count: u64, gap: u64, octets: usize) {
        for n in 0..count {
            let now = at(from + n * gap);
            let _ = leave(&mut self.link, now);
            self.link.enter(now, to, Some(terminal), &vec![n as u8; octets]);
        }
    }

    /// Ends it at `end`; how many packets have which verdict and cause. Checks that records and counts agree, and that
    /// every packet to or from one terminal is counted once.
    fn finish(mut self, end: u64) -> (BTreeMap<(&'static str, String), u64>, Link, Vec<Row>) {
        let _ = leave(&mut self.link, at(end));
        let recorder = self.link.end().unwrap();
        assert_eq!(recorder.finish().unwrap().missed, 0);
        let rows = self.rows.0.lock().unwrap().clone();
        let mut fates = BTreeMap::new();
        for (_, _, verdict, cause) in &rows {
            *fates.entry((verdict.name(), cause.clone())).or_insert(0) += 1;
        }
        let sum = |of: fn(&Counts) -> Sum| of(self.link.forward()).packets + of(self.link.back()).packets;
        let logged = |verdict: Verdict| rows.iter().filter(|row| row.2 == verdict).count() as u64;
        assert_eq!(sum(|counts| counts.entered), rows.len() as u64);
        assert_eq!(sum(|counts| counts.delivered), logged(Verdict::Delivered));
        assert_eq!(sum(|counts| counts.lost), logged(Verdict::Lost));
        assert_eq!(sum(|counts| counts.dropped), logged(Verdict::Dropped));
        assert_eq!(sum(|counts| counts.held), logged(Verdict::Held));
        for counts in [self.link.forward(), self.link.back()] {
            let Counts { entered, delivered, lost, dropped, held, .. } = *counts;
            assert_eq!(entered.packets, delivered.packets + lost.packets + dropped.packets + held.packets);
            assert_eq!(entered.octets, delivered.octets + lost.octets + dropped.octets + held.octets);
        }
        (fates, self.link, rows)
    }
}

fn fate(verdict: &'static str, cause: &str, count: u64) -> ((&'static str, String), u64) {
    ((verdict, cause.into()), count)
}

/// Half of 200 SDUs of one interval each are erased; none is sent again.
#[test]
fn what_rlc_does_not_repeat_is_given_up() {
    let text = "[[link.stages]]\nname = \"bearer\"\nkind = \"umts\"\nmax_transmissions = 1\n\
                [link.stages.poll]\ntimer = \"100 ms\"\n[link.stages.status]\nmissing_pdu = true\n\
                [link.stages.forward]\nrate = \"384 kbit/s\"\nerasures = 0.5\n\
                [link.stages.return]\nrate = \"384 kbit/s\"\n";
    let mut run = Run::new(text, 1);
    run.send(End::Terminal, 0, 0, 200, 50, 300);
    let (fates, link, _) = run.finish(100_000);
    let given_up = fates[&("lost", "bearer: given up".into())];
    // 100, with a standard deviation of 7.
    assert!((65..=135).contains(&given_up), "{fates:?}");
    let expected = [fate("delivered", "", 200 - given_up), fate("lost", "bearer: given up", given_up)];
    assert_eq!(fates, BTreeMap::from(expected));
    assert_eq!(link.forward().given_up, link.forward().lost);
    assert_eq!(link.forward().given_up.packets, given_up);
}

/// The buffer of one bearer is full, and the bearer gives up SDUs that it has begun: each with its own cause.
#[test]
fn a_full_buffer_is_told_from_what_is_given_up() {
    let text = "[[link.stages]]\nname = \"bearer\"\nkind = \"umts\"\nmax_transmissions = 1\n\
                [link.stages.poll]\ntimer = \"100 ms\"\n[link.stages.status]\nmissing_pdu = true\n\
                [link.stages.forward]\nrate = \"64 kbit/s\"\nerasures = 0.2\nqueue = \"2 kB\"\n\
                [link.stages.return]\nrate = \"64 kbit/s\"\n";
    let mut run = Run::new(text, 1);
    // 120 kbit/s into 64.
    run.send(End::Terminal, 0, 0, 500, 20, 300);
    let (fates, link, _) = run.finish(100_000);
    let of = |verdict, cause: &str| fates.get(&(verdict, String::from(cause))).copied().unwrap_or(0);
    let [delivered, given_up, full] =
        [of("delivered", ""), of("lost", "bearer: given up"), of("dropped", "bearer: queue full")];
    assert_eq!(delivered + given_up + full, 500, "{fates:?}");
    assert!(given_up > 20 && full > 150, "{fates:?}");
    assert_eq!((link.forward().given_up.packets, link.forward().dropped.packets), (given_up, full));
}

#[test]
fn limits_have_their_names() {
    let mut run = Run::new(SLOW, 1);
    run.send(End::Terminal, 0, 0, 5, 0, 1000);
    run.send(End::Terminal, 0, 100, 1, 0, 1501);
    let (fates, ..) = run.finish(1000);
    let expected =
        [fate("delivered", "", 3), fate("dropped", "forward: queue full", 2), fate("dropped", "mtu", 1)];
    assert_eq!(fates, BTreeMap::from(expected));

    let serial = "[[link.stages]]\nname = \"serial\"\nkind = \"ppp\"\nmtu = \"600 B\"\n\
                  [link.stages.forward]\nrate = \"9600 bit/s\"\nqueue_packets = 2\n\
                  [link.stages.return]\nrate = \"9600 bit/s\"\n";
    let mut run = Run::new(serial, 1);
    run.send(End::Terminal, 0, 0, 4, 0, 600);
    run.send(End::Terminal, 0, 0, 1, 0, 601);
    run.send(End::Hub, 0, 0, 1, 0, 601);
    let (fates, ..) = run.finish(10_000);
    let expected = [
        fate("delivered", "", 2),
        fate("dropped", "serial: queue full", 2),
        fate("dropped", "serial: too long", 2),
    ];
    assert_eq!(fates, BTreeMap::from(expected));
}

/// Both ends ask every second from the first packet on; the line to the terminal is cut off from 9.5 s on. Of the
/// requests the hub's of 10, 11 and 12 s get lost, and the terminal's are answered in vain: at 13 s the link is dead.
#[test]
fn a_dead_link_is_told_from_a_full_queue() {
    let text = "[[link.stages]]\nname = \"serial\"\nkind = \"ppp\"\necho_interval = \"1 s\"\necho_failures = 3\n\
                [link.stages.forward]\nrate = \"115200 bit/s\"\nqueue_packets = 2\nstart = \"9.5 s\"\nlength = \"1000 s\"\n\
                [link.stages.return]\nrate = \"115200 bit/s\"\n";
    let mut run = Run::new(text, 1);
    // The first waits for the hub's first request. Then three at a time, of which two find room.
    run.send(End::Terminal, 0, 0, 1, 0, 100);
    for second in 0..20 {
        run.send(End::Terminal, 0, second * 1000 + 250, 3, 0, 100);
    }
    let (fates, ..) = run.finish(30_000);
    let expected = [
        fate("delivered", "", 1 + 10 * 2),
        fate("lost", "serial: errors", 3 * 2),
        fate("dropped", "serial: queue full", 13),
        fate("dropped", "serial: link down", 7 * 3),
    ];
    assert_eq!(fates, BTreeMap::from(expected));
}

/// Terminals that meet in the only contention slot give up at once.
#[test]
fn a_request_without_an_answer_is_given_up() {
    let text = "[link.return]\nkind = \"bgan\"\nc_slots = 1\ngive_up_after = 1\n";
    let mut run = Run::new(text, 3);
    for terminal in 0..2 {
        run.send(End::Hub, terminal, 10, 1, 0, 100);
    }
    run.send(End::Hub, 2, 5000, 1, 0, 100);
    let (fates, link, _) = run.finish(20_000);
    let expected = [fate("delivered", "", 1), fate("lost", "return: given up", 2)];
    assert_eq!(fates, BTreeMap::from(expected));
    assert_eq!((link.back().given_up.packets, link.back().dropped.packets), (2, 0));
}

const OUTAGES: &str = "[link.forward]\nper = 0.3\noutages = { start = \"1 s\", length = \"500 ms\" }\n";

/// Packets at 0, 10, 20, ... ms; all that leave from 1 s to 1.5 s meet the outage.
#[test]
fn outages_of_the_link_are_outages() {
    let mut run = Run::new(OUTAGES, 1);
    run.send(End::Terminal, 0, 0, 300, 10, 100);
    let _ = leave(&mut run.link, at(2995));
    run.link.change(at(2995), &Change { outage: Some(Span::from_secs(9)), ..Change::default() }).unwrap();
    run.send(End::Terminal, 0, 3000, 7, 10, 100);
    let (fates, link, rows) = run.finish(10_000);
    assert_eq!(fates[&("lost", "outage".into())], 50 + 7);
    let out: Vec<u64> =
        rows.iter().filter(|row| row.3 == "outage").filter_map(|row| row.1).filter(|&at| at < 3000).collect();
    assert_eq!(out, (100..150).map(|n| n * 10).collect::<Vec<_>>());
    // The fates are those of all processes as one, with the same stream.
    let stream = Streams::of_emulation(1).of(0, Purpose::Losses);
    let mut whole = link.config.links.losses.make(0, 1, stream);
    let mut lost = Vec::new();
    let expected: Vec<bool> = (0..300)
        .map(|n| {
            lost.clear();
            whole.draw(at(n * 10), 100, Among::All, &mut lost);
            !lost.is_empty()
        })
        .collect();
    let logged: Vec<bool> = rows.iter().take(300).map(|row| row.2 == Verdict::Lost).collect();
    assert_eq!(logged, expected);
    // 250 packets outside, of which 30 % are lost: 75, with a standard deviation of 7.
    let losses = fates[&("lost", "losses".into())];
    assert!((40..=110).contains(&losses), "{fates:?}");
}

/// Fragments are lost and packets turned away in one bundle. What is turned away is what finds the queue full as it
/// enters, so each such packet entered when at least three were inside.
#[test]
fn each_packet_has_its_own_cause() {
    let text = "[[link.stages]]\nname = \"bundle\"\nkind = \"multilink\"\nlinks = 2\nrate = \"9600 bit/s\"\n\
                per = 0.1\nqueue_packets = 1\n";
    let mut run = Run::new(text, 1);
    let mut full = Vec::new();
    for n in 0..400_u64 {
        let now = at(n * 71);
        let _ = leave(&mut run.link, now);
        let before = run.link.forward().dropped.packets;
        run.link.enter(now, End::Terminal, Some(0), &[n as u8; 200]);
        if run.link.forward().dropped.packets > before {
            full.push(n);
        }
    }
    let (fates, _, rows) = run.finish(1_000_000);
    let named = |cause: &str| {
        let mut numbers: Vec<u64> = rows.iter().filter(|row| row.3 == cause).map(|row| row.0).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(named("bundle: queue full"), full);
    let lost = named("bundle: errors").len();
    assert!(lost > 20 && full.len() > 20, "{fates:?}");
}
