//! Outages of the path to one receiver, and of the receiver itself, in real time, with the defaults of `send` and
//! `receive`. The tests of farcast-mftp simulate the same for more times and lengths.

use std::fmt::Write;
use std::time::Duration;

use crate::common::{Hosts, Place, pause};

/// 1 MB, which takes four seconds at 2 Mbit/s.
const LEN: usize = 1_000_000;

/// Beginning of an outage, after data has begun.
#[derive(Clone, Copy)]
struct Begins {
    /// State of the transfer at that time.
    at: &'static str,
    milliseconds: u64,
}

const BEGINS: [Begins; 5] = [
    Begins { at: "data begins", milliseconds: 0 },
    Begins { at: "mid pass 1", milliseconds: 2000 },
    Begins { at: "end of pass 1", milliseconds: 4050 },
    Begins { at: "repairs", milliseconds: 4200 },
    Begins { at: "Done", milliseconds: 4400 },
];

/// Sends to two hosts, of which the second cannot be reached for `seconds`. Returns the time of the transfer, or a
/// description of its failure.
fn survive(begins: Begins, seconds: f64, frozen: bool) -> Result<f64, String> {
    let (place, hosts) = (Place::new(), Hosts::new(3));
    let file = place.file("product.bin", LEN);
    let interface = ["--interface", "eth0"];
    let mut receivers: Vec<_> = [2, 3]
        .map(|n| {
            let mut command = place.farcast(["receive", "--from", &place.group, "--once", "--json"]);
            command.args(["--name", &format!("host{n}")]).args(interface);
            command.arg("--into").arg(place.path(&format!("host{n}")));
            hosts.lose(n, 1);
            place.start(&format!("host{n}"), hosts.at(n, &command))
        })
        .into();
    for receiver in &receivers {
        receiver.until("listening");
    }
    let mut command = place.farcast(["send", "--to", &place.group, "--json", "--rate", "2 Mbit/s"]);
    command.arg(&file).args(interface).args(["--receivers", "host2,host3"]);
    let sender = place.start("sender", hosts.at(1, &command));
    sender.until("started");
    pause(Duration::from_millis(begins.milliseconds));
    let pid = rustix::process::Pid::from_child(&receivers[1].child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    if frozen {
        signal(rustix::process::Signal::STOP);
    } else {
        hosts.cut(3);
    }
    pause(Duration::from_secs_f64(seconds));
    if frozen {
        signal(rustix::process::Signal::CONT);
    } else {
        hosts.mend();
    }
    let sent = sender.wait();
    if sent.code != Some(0) {
        return Err(sent.stderr);
    }
    for receiver in receivers.drain(..) {
        let got = receiver.wait();
        if got.code != Some(0) {
            return Err(got.stderr);
        }
    }
    place.assert_received(&file, &["host2", "host3"]);
    Ok(sent.summary()["time_s"].as_f64().unwrap())
}

#[test]
fn nine_seconds_of_a_receiver_that_stands_still_or_cannot_be_reached() {
    std::thread::scope(|scope| {
        let cells = [true, false].map(|frozen| scope.spawn(move || survive(BEGINS[1], 9.0, frozen)));
        for cell in cells {
            let came = cell.join().unwrap();
            assert!(came.is_ok(), "{came:?}");
        }
    });
}

/// Environment variable that asks for the whole table, which takes two minutes and a half. `scripts/outages` sets it.
const WHOLE: &str = "FARCAST_OUTAGES";

/// Prints the table of `scripts/outages`. By default it has short outages only, with every beginning.
#[test]
fn outages_are_survived_wherever_they_begin() {
    let whole = std::env::var_os(WHOLE).is_some();
    let lengths: &[f64] = if whole { &[1.5, 9.0, 60.0, 100.0] } else { &[1.5] };
    let frozen: &[f64] = if whole { &[60.0] } else { &[] };
    let mut table = String::from("outage begins at");
    for seconds in frozen {
        write!(table, " | frozen for {seconds} s").unwrap();
    }
    for seconds in lengths {
        write!(table, " | {seconds} s").unwrap();
    }
    std::thread::scope(|scope| {
        let rows = BEGINS.map(|begins| {
            let cells = frozen.iter().map(|&seconds| (seconds, true));
            let cells = cells.chain(lengths.iter().map(|&seconds| (seconds, false)));
            let cell = |(seconds, frozen)| scope.spawn(move || survive(begins, seconds, frozen));
            (begins, cells.map(cell).collect::<Vec<_>>())
        });
        for (begins, cells) in rows {
            write!(table, "\n{}", begins.at).unwrap();
            for cell in cells {
                write!(table, " | {}", shown(&cell.join().unwrap())).unwrap();
            }
        }
    });
    println!("{table}");
    assert!(!table.contains("failed"), "not all of them were survived: {table}");
}

fn shown(came: &Result<f64, String>) -> String {
    match came {
        Ok(seconds) => format!("{seconds:.0} s"),
        Err(why) => format!("failed: {}", why.trim()),
    }
}
