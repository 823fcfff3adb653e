//! Transfers beside absent sources. Each absent source sends one datagram that announces data, and then nothing more;
//! or a little data, as a killed source does. A transfer must arrive beside any number of them as if they were not
//! there.

mod words;

use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{self, Place, Running, pause};

/// Additional time that a transfer may take compared to a transfer alone.
const MORE: Duration = Duration::from_secs(2);
/// Octets of a second of data.
const LEN: usize = 500_000;
const RATE: [&str; 2] = ["--rate", "4 Mbit/s"];
/// Octets per second of the sources that never end.
const TRICKLE: u64 = 1000;

/// Kind of absent sources: their protocol, and whether they send data.
#[derive(Clone, Copy)]
struct Words {
    protocol: &'static str,
    sends: bool,
}

impl Words {
    fn of(self, n: u32, from: SocketAddr) -> Vec<Vec<u8>> {
        match self.protocol {
            "mftp" => words::mftp(n, self.sends, from),
            "norm" => words::norm(n, self.sends),
            "mdp" => words::mdp(n, self.sends),
            "pgm" => words::pgm(n, self.sends),
            _ => words::one_way(n, self.sends),
        }
    }

    fn receive(self, place: &Place) -> Running {
        if self.protocol == "one-way" {
            let mut command = place.receive_command("7", &["--once", "--json", "--one-way"]);
            command.args(["--quota", "1 GB"]);
            let running = place.start("receiver", command);
            running.until("listening");
            return running;
        }
        place.receive("7", &["--protocol", self.protocol])
    }

    fn send(self, place: &Place) -> Running {
        let file = place.file("product.bin", LEN);
        if self.protocol == "one-way" {
            return place.send(&[&file], &[&RATE[..], &["--one-way", "--repeat", "2"]].concat());
        }
        let args = ["--protocol", self.protocol, "--receivers", "7"];
        place.send(&[&file], &[&RATE[..], &args].concat())
    }
}

/// Sockets of sources that are not there.
struct Absent {
    sockets: Vec<UdpSocket>,
    group: SocketAddr,
    words: Words,
}

impl Absent {
    fn new(place: &Place, words: Words) -> Self {
        let sockets = (0..16).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        Self { sockets, group: place.group.parse().unwrap(), words }
    }

    /// Lets source `n` send its datagrams. Returns their octets.
    fn speak(&self, n: u32) -> u64 {
        let socket = &self.sockets[n as usize % self.sockets.len()];
        let said = self.words.of(n, socket.local_addr().unwrap());
        said.iter().map(|datagram| socket.send_to(datagram, self.group).unwrap() as u64).sum()
    }

    /// Lets `count` sources send once, as fast as a socket's buffer can take all.
    fn speak_all(&self, count: u32) {
        for n in 0..count {
            self.speak(n);
            if n % 16 == 15 {
                pause(Duration::from_millis(2));
            }
        }
    }
}

/// Thread in which one source after the other sends, until this is dropped.
struct Trickle {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Trickle {
    fn new(absent: Absent) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let thread = std::thread::spawn(move || {
            let mut n = 100_000;
            while !ends.load(Ordering::Relaxed) {
                let octets = absent.speak(n);
                n += 1;
                pause(Duration::from_micros(octets * 1_000_000 / TRICKLE));
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Trickle {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the time of a transfer that begins after `count` sources have sent, until its receiver has ended. With
/// `trickles`, other sources go on sending meanwhile.
fn time(words: Words, count: u32, trickles: bool) -> Duration {
    let place = Place::new();
    let receiver = words.receive(&place);
    let absent = Absent::new(&place, words);
    absent.speak_all(count);
    if words.sends {
        // The sources that send were killed.
        pause(Duration::from_secs(1));
    }
    let trickle = trickles.then(|| Trickle::new(absent));
    let began = Instant::now();
    let sender = words.send(&place);
    let ended = receiver.wait();
    let time = began.elapsed();
    drop(trickle);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let expected = if words.protocol == "one-way" { 4 } else { 0 };
    let sent = sender.wait();
    assert_eq!(sent.code, Some(expected), "{}", sent.story());
    common::assert_same(&place.path("product.bin"), &place.path("7/product.bin"));
    time
}

/// Asserts that a transfer by `protocol` arrives beside any number of absent sources, and prints its time.
fn arrives(protocol: &'static str) {
    let alone = time(Words { protocol, sends: false }, 0, false);
    let mut row = format!("| {protocol} | {:.2} s |", alone.as_secs_f64());
    for (sends, count, trickles) in [
        (false, 1, false),
        (false, 32, false),
        (false, 100, false),
        (false, 1000, false),
        (false, 32, true),
        (true, 1, false),
        (true, 32, false),
        (true, 100, false),
        (true, 1000, false),
    ] {
        let beside = time(Words { protocol, sends }, count, trickles);
        write!(row, " {:.2} s |", beside.as_secs_f64()).unwrap();
        let way = format!("beside {count} that send: {sends}, and more: {trickles}");
        assert!(beside <= alone + MORE, "{protocol} {way}: {beside:?}, alone {alone:?}");
    }
    println!("{row}");
}

#[test]
fn mftp_arrives_beside_sources_that_are_not_there() {
    arrives("mftp");
}

#[test]
fn norm_arrives_beside_sources_that_are_not_there() {
    arrives("norm");
}

#[test]
fn mdp_arrives_beside_sources_that_are_not_there() {
    arrives("mdp");
}

#[test]
fn pgm_arrives_beside_sources_that_are_not_there() {
    arrives("pgm");
}

#[test]
fn one_way_arrives_beside_sources_that_are_not_there() {
    arrives("one-way");
}
