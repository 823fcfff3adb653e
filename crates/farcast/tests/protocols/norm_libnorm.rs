//! Transfers between farcast and NRL's libnorm, on separate hosts that lose some of their incoming datagrams. They run
//! in both directions, to one receiver and to three, with and without parity, with requests to the group and to the
//! sender alone.
//!
//! Each run of the tests makes a selection of transfers. With `FARCAST_INTEROP` set (`scripts/interop`), it makes all
//! transfers whose line in the table contains that text, and prints the table.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::common::{self, Hosts, Place, Running};

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    ToLibnorm,
    FromLibnorm,
}

/// A transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Case {
    way: Way,
    size: usize,
    /// Percentage of its incoming datagrams that each host loses.
    loss: u32,
    receivers: usize,
    parity: bool,
    /// Set if receivers answer the sender alone.
    unicast: bool,
}

const CASE: Case =
    Case { way: Way::ToLibnorm, size: 1_000_000, loss: 0, receivers: 1, parity: true, unicast: false };

const SIZES: [usize; 4] = [0, 1, 1_000_000, 100_000_000];

impl Case {
    /// Rate in bit/s. A lost datagram costs round trips, and a large file costs time.
    fn rate(self) -> u32 {
        if self.size > 10_000_000 { 300_000_000 } else { 40_000_000 }
    }

    fn nodes(self) -> std::ops::RangeInclusive<usize> {
        2..=self.receivers + 1
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, size, loss, receivers, parity, unicast } = *self;
        let way = if way == Way::ToLibnorm { "farcast to libnorm" } else { "libnorm to farcast" };
        let parity = if parity { "parity" } else { "no parity" };
        let answers = if unicast { "to the sender" } else { "to the group" };
        write!(f, "{way}|{size}|{loss} %|{receivers}|{parity}|{answers}")
    }
}

/// Compiles a program with the library, in `dir`.
fn peer(dir: &Path) -> PathBuf {
    let header = Path::new("/usr/include/normApi.h");
    assert!(header.exists(), "this test needs the Debian package libnorm-dev; run scripts/setup");
    let program = dir.join("norm_peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/norm_peer.c");
    let mut compile = Command::new("c++");
    common::run(compile.args(["-x", "c++", "-O2", "-o"]).arg(&program).args([source, "-lnorm"]));
    program
}

/// Waits until `running` has printed `text`.
fn wait_for(running: &Running, text: &str) {
    common::wait_until(text, || running.stdout().contains(text));
}

/// Stage of a transfer of `file`: host 1 sends, the others receive.
struct Stage {
    case: Case,
    place: Place,
    hosts: Hosts,
    file: PathBuf,
    peer: PathBuf,
}

impl Stage {
    fn new(case: Case) -> Self {
        let (place, hosts) = (Place::new(), Hosts::new(case.receivers + 1));
        for n in 1..=case.receivers + 1 {
            hosts.ip(n, &["route", "add", "224.0.0.0/4", "dev", "eth0"]);
            if case.loss > 0 {
                hosts.lose(n, case.loss);
            }
        }
        let (file, peer) = (place.file("sent.bin", case.size), peer(place.root()));
        for n in case.nodes() {
            std::fs::create_dir(place.path(&format!("host{n}"))).unwrap();
        }
        Self { case, place, hosts, file, peer }
    }

    /// Starts `norm_peer WAY GROUP PORT eth0 ARGS` at host `n`.
    fn libnorm(&self, n: usize, way: &str, args: &[&str]) -> Running {
        let (address, port) = self.place.group.split_once(':').unwrap();
        let mut command = Command::new(&self.peer);
        command.args([way, address, port, "eth0"]).args(args);
        self.place.start(&format!("libnorm{n}"), self.hosts.at(n, &command))
    }

    fn into(&self, n: usize) -> PathBuf {
        self.place.path(&format!("host{n}"))
    }

    fn farcast_sends(&self) {
        let Case { receivers, parity, unicast, .. } = self.case;
        let peers: Vec<Running> = (self.case.nodes())
            .map(|n| {
                let (node, into) = (n.to_string(), self.into(n));
                let unicast = format!("unicast={}", u8::from(unicast));
                let running =
                    self.libnorm(n, "receive", &[&node, into.to_str().unwrap(), "sent.bin", &unicast]);
                wait_for(&running, "listening");
                running
            })
            .collect();
        let names: Vec<String> = (2..receivers + 2).map(|n| n.to_string()).collect();
        let rate = format!("{} bit/s", self.case.rate());
        let mut command = self.place.farcast(["send", "--protocol", "norm", "--to", &self.place.group]);
        command.arg(&self.file).args(["--interface", "eth0", "--json", "--rate", &rate]);
        command.args(["--receivers", &names.join(","), "--node", "1", "--rtt", "20 ms"]);
        if !parity {
            command.args(["--parity", "0"]);
        }
        self.place.start("sender", self.hosts.at(1, &command)).succeed();
        for peer in peers {
            wait_for(&peer, "complete");
        }
    }

    fn libnorm_sends(&self) {
        let Case { size, receivers, parity, unicast, .. } = self.case;
        let running: Vec<Running> = (self.case.nodes())
            .map(|n| {
                let mut command = self.place.farcast(["receive", "--protocol", "norm"]);
                command.args(["--from", &self.place.group, "--interface", "eth0", "--once", "--json"]);
                command.args(["--name", &n.to_string(), "--into"]).arg(self.into(n));
                if unicast {
                    command.args(["--answers", "sender"]);
                }
                let running = self.place.start(&format!("host{n}"), self.hosts.at(n, &command));
                running.until("listening");
                running
            })
            .collect();
        let (rate, parity) = (self.case.rate().to_string(), if parity { "parity=16" } else { "parity=0" });
        let (file, receivers) = (self.file.to_str().unwrap(), receivers.to_string());
        let mut args = vec![rate.as_str(), file, &receivers, parity, "grtt=0.02"];
        if size == 0 {
            // The last block of nothing is number -1 to the library, which does not know it again cut to the 24 bits
            // of scheme 5: not even its own receivers can acknowledge an empty file by that scheme.
            args.push("fec=129");
        }
        self.libnorm(1, "send", &args).succeed();
        for receiver in running {
            receiver.succeed();
        }
    }

    /// Runs the transfer, after which every receiver must have the file. Returns its seconds.
    fn run(&self) -> f64 {
        let began = Instant::now();
        match self.case.way {
            Way::ToLibnorm => self.farcast_sends(),
            Way::FromLibnorm => self.libnorm_sends(),
        }
        let seconds = began.elapsed().as_secs_f64();
        for n in self.case.nodes() {
            let got = std::fs::read(self.into(n).join("sent.bin")).unwrap();
            assert!(got == std::fs::read(&self.file).unwrap(), "host {n} has other octets");
        }
        seconds
    }
}

#[test]
fn nothing_and_one_octet_both_ways() {
    for way in [Way::ToLibnorm, Way::FromLibnorm] {
        for size in [0, 1] {
            Stage::new(Case { way, size, ..CASE }).run();
        }
    }
}

#[test]
fn three_lossy_receivers_of_libnorm_that_answer_the_sender_alone() {
    Stage::new(Case { loss: 5, receivers: 3, unicast: true, ..CASE }).run();
}

#[test]
fn three_lossy_receivers_of_a_libnorm_sender() {
    Stage::new(Case { way: Way::FromLibnorm, loss: 5, receivers: 3, ..CASE }).run();
}

#[test]
fn a_fifth_lost_both_ways_without_parity() {
    for way in [Way::ToLibnorm, Way::FromLibnorm] {
        Stage::new(Case { way, loss: 20, parity: false, ..CASE }).run();
    }
}

#[test]
fn a_hundred_megabytes_both_ways() {
    for way in [Way::ToLibnorm, Way::FromLibnorm] {
        Stage::new(Case { way, size: 100_000_000, ..CASE }).run();
    }
}

#[test]
fn a_hundred_megabytes_to_three_that_lose_a_twentieth() {
    for way in [Way::ToLibnorm, Way::FromLibnorm] {
        Stage::new(Case { way, size: 100_000_000, loss: 5, receivers: 3, ..CASE }).run();
    }
}

#[test]
fn a_file_waits_for_a_name_that_was_lost() {
    for size in [1, 100_000] {
        let stage = Stage::new(Case { way: Way::FromLibnorm, size, ..CASE });
        // Every other message of NORM's type 1, and so the first.
        let rule = "table netdev info {\nchain in {\ntype filter hook ingress device \"eth0\" priority 0;\n\
                    meta l4proto udp @th,64,8 0x11 numgen inc mod 2 < 1 drop\n}\n}\n";
        let mut nft = Command::new("nft");
        nft.arg(rule);
        common::run(&mut stage.hosts.at(2, &nft));
        stage.run();
    }
}

/// Runs every combination.
#[test]
fn all_of_it() {
    let Ok(part) = std::env::var("FARCAST_INTEROP") else { return };
    println!("|octets|lost|receivers|code|requests|s|");
    for way in [Way::ToLibnorm, Way::FromLibnorm] {
        for (size, loss) in SIZES.into_iter().flat_map(|size| [0, 5, 20].map(|loss| (size, loss))) {
            for (receivers, parity, unicast) in
                [(1, true, false), (1, false, true), (3, true, true), (3, true, false), (3, false, false)]
            {
                let case = Case { way, size, loss, receivers, parity, unicast };
                if !case.to_string().contains(&part) {
                    continue;
                }
                let seconds = std::panic::catch_unwind(|| Stage::new(case).run());
                let seconds = seconds.map_or_else(|_| "FAILED".to_owned(), |seconds| format!("{seconds:.2}"));
                println!("{case}|{seconds}|");
            }
        }
    }
}
