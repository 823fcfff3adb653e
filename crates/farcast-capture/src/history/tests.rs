//! Against a naive recomputation from the list of records.

use std::collections::BTreeSet;

use farcast_core::random::RandomStream;

use super::*;

type Record = PacketRecord<&'static str>;

const CAUSES: [(Verdict, &str); 4] = [
    (Verdict::Lost, "losses"),
    (Verdict::Lost, "outage"),
    (Verdict::Dropped, "forward: dropped"),
    (Verdict::Dropped, "mtu"),
];

/// Records as a link with three terminals makes them, over `length`: packets to one and to all, lost before and behind
/// their copying, and held.
fn records(seed: u64, count: u64, length: u64) -> Vec<Record> {
    let mut stream = RandomStream::derive(seed, &[1]);
    let mut records = Vec::new();
    for number in 0..count {
        let way = if stream.chance(0.5) { PacketDirection::Forward } else { PacketDirection::Return };
        let to_all = way == PacketDirection::Forward && stream.chance(0.5);
        let entered = Time::from_nanos(stream.below(length));
        let octets = 20 + stream.below(1481) as u32;
        let delay = Span::from_nanos(stream.below(length / 10));
        let copies: Vec<Option<u32>> =
            if to_all { (0..3).map(Some).collect() } else { vec![Some(stream.below(3) as u32)] };
        let (stopped, held) = (stream.chance(0.1), stream.chance(0.02));
        let base = PacketRecord {
            number,
            way,
            terminal: copies[0].filter(|_| !to_all),
            entered,
            planned: None,
            left: None,
            octets,
            verdict: Verdict::Held,
            cause: "",
        };
        if held {
            records.push(base);
        } else if stopped {
            let (verdict, cause) = CAUSES[stream.below(4) as usize];
            records.push(PacketRecord { verdict, cause, ..base });
        } else {
            for terminal in copies {
                let planned = Some(entered + delay);
                let lost =
                    PacketRecord { terminal, planned, verdict: Verdict::Lost, cause: "losses", ..base };
                let left = Some(entered + delay + Span::from_nanos(stream.below(1_000_000)));
                let delivered = PacketRecord { left, verdict: Verdict::Delivered, cause: "", ..lost };
                records.push(if stream.chance(0.3) { lost } else { delivered });
            }
        }
    }
    records
}

fn filled(mut history: History, records: &[Record]) -> History {
    for record in records {
        history.record(record);
    }
    history
}

/// Computes the contents of a bin besides its delays, from the whole list.
fn naive(
    records: &[Record],
    way: PacketDirection,
    width: u64,
    index: u64,
) -> (PacketTotals, PacketTotals, PacketTotals, PacketTotals, u64, Vec<u64>) {
    let of_way = || records.iter().filter(|record| record.way == way);
    let at = |record: &Record| record.planned.unwrap_or(record.entered);
    let within = |time: Time| time.as_nanos() / width == index;
    let sum = |records: Vec<&Record>| PacketTotals {
        packets: records.len() as u64,
        octets: records.iter().map(|record| u64::from(record.octets)).sum(),
    };
    // The first record of each packet, and the first of each that was delivered.
    let firsts = |keep: &dyn Fn(&Record) -> bool| -> Vec<&Record> {
        let mut seen = BTreeSet::new();
        of_way().filter(|record| keep(record) && seen.insert(record.number)).collect()
    };
    let first = firsts(&|_| true);
    let entered = first.iter().copied().filter(|record| within(record.entered)).collect();
    let ended = first.iter().copied().filter(|r| r.verdict != Verdict::Held && within(at(r))).collect();
    let is_delivered = |record: &Record| record.verdict == Verdict::Delivered;
    let carried = firsts(&is_delivered).into_iter().filter(|record| within(at(record))).collect();
    let delivered: Vec<&Record> = of_way().filter(|r| is_delivered(r) && within(at(r))).collect();
    let delays = delivered.iter().map(|r| at(r).as_nanos() - r.entered.as_nanos()).collect();
    let failed = [Verdict::Lost, Verdict::Dropped];
    let failed = of_way().filter(|r| failed.contains(&r.verdict) && within(at(r))).count() as u64;
    (sum(entered), sum(delivered), sum(carried), sum(ended), failed, delays)
}

#[test]
fn bins_are_those_of_a_naive_count() {
    for (seed, length) in [(1, 700_000_000), (2, 30_000_000_000), (3, 100_000_000_000_000)] {
        let records = records(seed, 400, length);
        let history = filled(History::with_bins(FIRST_WIDTH, 40), &records);
        let width = history.width().as_nanos();
        for way in [PacketDirection::Forward, PacketDirection::Return] {
            let bins = &history.way(way).bins;
            assert!(bins.len() <= 40);
            for (index, bin) in (0..40).zip(bins.iter().cloned().chain(std::iter::repeat(Bin::default()))) {
                let (entered, delivered, carried, ended, failed, delays) = naive(&records, way, width, index);
                let found = (bin.entered, bin.delivered, bin.carried, bin.ended, bin.failed.values().sum());
                assert_eq!(found, (entered, delivered, carried, ended, failed), "bin {index} of {width} ns");
                let (min, max) = (delays.iter().min(), delays.iter().max());
                let told = (bin.delays.min().as_nanos(), bin.delays.max().as_nanos());
                assert_eq!(told, (min.copied().unwrap_or(0), max.copied().unwrap_or(0)));
            }
        }
    }
}

#[test]
fn doubling_is_as_binning_at_the_final_width_at_once() {
    for seed in 0..20 {
        let records = records(seed, 1000, 1_000_000 << (2 * seed));
        let doubled = filled(History::with_bins(Span::from_millis(1), 50), &records);
        let at_once = filled(History::with_bins(doubled.width(), usize::MAX), &records);
        assert_eq!(doubled.width().as_nanos() % 1_000_000, 0);
        assert!((doubled.width().as_nanos() / 1_000_000).is_power_of_two());
        assert_eq!(doubled.ways, at_once.ways);
        assert_eq!(doubled.terminals, at_once.terminals);
    }
}

#[test]
fn totals_are_those_of_the_records() {
    let records = records(5, 3000, 60_000_000_000);
    let history = filled(History::with_bins(FIRST_WIDTH, 7), &records);
    for way in [PacketDirection::Forward, PacketDirection::Return] {
        let told = history.way(way);
        let count = |verdict| records.iter().filter(|r| r.way == way && r.verdict == verdict).count() as u64;
        let numbers: BTreeSet<u64> = records.iter().filter(|r| r.way == way).map(|r| r.number).collect();
        let found = [told.entered, told.delivered, told.lost, told.dropped, told.held].map(|sum| sum.packets);
        let verdicts = [Verdict::Delivered, Verdict::Lost, Verdict::Dropped, Verdict::Held].map(count);
        assert_eq!((found[0], &found[1..]), (numbers.len() as u64, &verdicts[..]));
        // The bins hold all of it.
        let of_bins =
            |pick: fn(&Bin) -> PacketTotals| told.bins.iter().map(|bin| pick(bin).octets).sum::<u64>();
        assert_eq!(of_bins(|bin| bin.entered), told.entered.octets);
        assert_eq!(of_bins(|bin| bin.delivered), told.delivered.octets);
        assert_eq!(of_bins(|bin| bin.entered) - of_bins(|bin| bin.ended), told.held.octets);
        for (number, terminal) in history.terminals() {
            let index = way_index(way);
            let of = |verdict| {
                let of = |r: &&Record| r.way == way && r.terminal == Some(*number) && r.verdict == verdict;
                records.iter().filter(of).count() as u64
            };
            let found = [terminal.delivered, terminal.lost, terminal.dropped].map(|sums| sums[index].packets);
            assert_eq!(found, [Verdict::Delivered, Verdict::Lost, Verdict::Dropped].map(of));
        }
        for (index, cause) in (0..).zip(&told.causes) {
            let verdict = if cause.dropped { Verdict::Dropped } else { Verdict::Lost };
            let of = |r: &&Record| r.way == way && r.verdict == verdict && r.cause == cause.name;
            let counted: u64 = told.bins.iter().filter_map(|bin| bin.failed.get(&index)).sum();
            assert_eq!(counted, records.iter().filter(of).count() as u64, "{cause:?}");
        }
    }
    let late = records.iter().filter_map(|r| Some(r.left?.since(r.planned?))).max().unwrap();
    assert_eq!(history.lateness().max(), late);
    let latest = [PacketDirection::Forward, PacketDirection::Return]
        .iter()
        .flat_map(|way| &history.way(*way).bins)
        .map(|bin| bin.latest);
    assert_eq!(latest.max(), Some(late));
}

#[test]
fn causes_and_terminals_are_bounded_and_no_time_is_too_late() {
    let mut history = History::new();
    let names: Vec<String> = (0..100).map(|number| format!("cause {number}")).collect();
    for (number, name) in (0..).zip(&names) {
        for (verdict, terminal) in
            [(Verdict::Lost, number as u32), (Verdict::Dropped, u32::MAX - number as u32)]
        {
            history.record(&PacketRecord {
                number,
                way: PacketDirection::Return,
                terminal: Some(terminal),
                entered: Time::NEVER,
                planned: None,
                left: None,
                octets: u32::MAX,
                verdict,
                cause: name,
            });
        }
    }
    let way = history.way(PacketDirection::Return);
    assert!(way.causes.len() <= MOST_CAUSES + 2 && way.bins.len() <= MOST_BINS);
    let failed: u64 = way.bins.iter().flat_map(|bin| bin.failed.values()).sum();
    assert_eq!((failed, way.lost.packets, way.dropped.packets), (200, 100, 100));
    let others = way.causes.iter().filter(|cause| cause.name == "other");
    assert_eq!(others.map(|cause| cause.dropped).collect::<Vec<_>>(), [false, true]);
    for cause in way.causes.iter().filter(|cause| cause.name != "other") {
        assert!(names.contains(&cause.name));
    }
    for terminal in 0..2 * MOST_TERMINALS as u32 {
        let lost =
            PacketRecord { terminal: Some(terminal), verdict: Verdict::Lost, ..records(1, 1, 1000)[0] };
        history.record(&lost);
    }
    assert_eq!(history.terminals().len(), MOST_TERMINALS);
}
