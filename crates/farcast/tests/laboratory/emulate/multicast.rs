//! Multicast losses: each receiver loses its share, independently of the others and of their number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::run::{Emulate, Emulation, Way, link, need};
use crate::common::Place;

const COUNT: usize = 2_000;
const PER: f64 = 0.2;
/// Bound of every statistic, in standard deviations. The seeds below always give the same draws.
const SIGMAS: f64 = 4.0;

/// Datagrams that one receiver lost.
type Missing = BTreeSet<usize>;

/// Starts a run whose receivers write into the directory `label`.
fn start(place: &Place, label: &str, receivers: usize, seed: u32) -> Emulation {
    let (script, dir) = (place.path("datagrams.py"), place.path(label));
    fs::write(&script, include_str!("datagrams.py")).unwrap();
    fs::create_dir(&dir).unwrap();
    let command = |work: &str| format!("exec python3 {} {work} {} {COUNT}", script.display(), dir.display());
    let forward = Way { per: PER, ..Way::new(10_000_000, 20, 1_000_000) };
    let programs = format!(
        "receivers = {receivers}\n\
         [[programs]]\nname = \"sender\"\non = \"hub\"\ncommand = \"{}\"\n\
         [[programs]]\nname = \"receiver\"\non = \"terminals\"\ncommand = \"{}\"\n",
        command("send"),
        command("receive"),
    );
    let text = programs + &link(forward, Way::new(10_000_000, 20, 1_000_000));
    let log = place.path(&format!("{label}.csv"));
    let options = ["--seed", &seed.to_string(), "--log", log.to_str().unwrap()];
    Emulate::toml(place, label, &text).options(&options).start()
}

/// Returns each receiver's losses by the emulator's log. The first packets of the hub are the datagrams in their order.
fn logged(place: &Place, label: &str, receivers: usize) -> Vec<Missing> {
    let text = fs::read_to_string(place.path(&format!("{label}.csv"))).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name| columns.iter().position(|column| *column == name).unwrap();
    let [number, way, terminal, verdict] = ["number", "way", "terminal", "verdict"].map(column);
    let mut copies = vec![BTreeMap::new(); receivers];
    for fields in lines.map(|line| line.split(',').collect::<Vec<_>>()) {
        // Packets that were inside when the run ended, after the datagrams, have no known receiver.
        if fields[way] == "forward" && fields[verdict] != "held" {
            let number: u64 = fields[number].parse().unwrap();
            copies[fields[terminal].parse::<usize>().unwrap()].insert(number, fields[verdict].to_owned());
        }
    }
    let lost = |copies: &BTreeMap<u64, String>| {
        let datagrams = copies.values().take(COUNT).enumerate();
        datagrams.filter(|(_, verdict)| *verdict == "lost").map(|(n, _)| n).collect()
    };
    copies.iter().map(lost).collect()
}

/// Returns each receiver's losses by its own file.
fn missing(place: &Place, label: &str, receivers: usize) -> Vec<Missing> {
    let of = |n| {
        let text = fs::read_to_string(place.path(label).join(format!("missing-{n}"))).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    (0..receivers).map(of).collect()
}

/// Asserts that `count` is a draw of Binomial(COUNT, `probability`) within the bound.
fn assert_binomial(what: &str, count: usize, probability: f64) {
    let n = COUNT as f64;
    let (mean, deviation) = (n * probability, (n * probability * (1.0 - probability)).sqrt());
    let off = (count as f64 - mean) / deviation;
    assert!(off.abs() < SIGMAS, "{what}: {count} are {off:.1} sigma from {mean}");
}

/// Returns the correlation coefficient of the losses at two receivers.
fn correlation(a: &Missing, b: &Missing) -> f64 {
    let share = |n: usize| n as f64 / COUNT as f64;
    let (p, q, both) = (share(a.len()), share(b.len()), share(a.intersection(b).count()));
    (both - p * q) / (p * (1.0 - p) * q * (1.0 - q)).sqrt()
}

fn assert_independent(lost: &[Missing]) {
    for (n, a) in lost.iter().enumerate() {
        assert_binomial(&format!("lost by receiver {n}"), a.len(), PER);
        for (m, b) in lost.iter().enumerate().skip(n + 1) {
            let both = a.intersection(b).count();
            assert_binomial(&format!("lost by receivers {n} and {m}"), both, PER * PER);
            // Of independent draws its standard deviation is the root of 1/COUNT.
            let found = correlation(a, b);
            let bound = SIGMAS / (COUNT as f64).sqrt();
            assert!(found.abs() < bound, "receivers {n} and {m}: correlation {found}, bound {bound}");
        }
    }
}

#[test]
fn each_receiver_loses_by_itself() {
    need("python3", "python3");
    let place = Place::new();
    let cases = [("first", 3, 7), ("again", 3, 7), ("more", 4, 7), ("other", 3, 8)];
    let running: Vec<_> = cases.iter().map(|&(label, n, seed)| start(&place, label, n, seed)).collect();
    for one in running {
        one.succeed();
    }
    let [first, again, more, other] = cases.map(|(label, n, _)| missing(&place, label, n));
    assert!(logged(&place, "more", 4) == more, "the log tells other losses than the receivers");
    assert_independent(&more);
    assert_independent(&other);
    assert!(first == again, "the same seed gave other losses");
    for (n, (a, b)) in first.iter().zip(&other).enumerate() {
        assert!(a != b, "receiver {n} lost the same with another seed");
    }
}
