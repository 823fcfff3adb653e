//! With writers that stand still, fail, or are never told to end.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use crate::output::StagedFile;
use crate::packets::{self, PacketDirection, Verdict};
use crate::pcapng::Packet;

const SMALL: RecorderConfig = RecorderConfig { batches: 3, entries: 10, octets: 100 };

fn record(number: u64, cause: CauseId) -> PacketRecord<CauseId> {
    PacketRecord {
        number,
        way: PacketDirection::Forward,
        terminal: Some(0),
        entered: Time::from_nanos(number),
        planned: None,
        left: None,
        octets: 40,
        verdict: Verdict::Lost,
        cause,
    }
}

/// Numbers and causes of the logged records, and `true` once the log was finished.
#[derive(Debug, Default)]
struct Logged {
    lines: Vec<(u64, String)>,
    finished: bool,
}

/// A log in memory that says when it has a record and waits for leave to go on.
struct Gate {
    arrived: Sender<()>,
    leave: Receiver<()>,
    logged: Arc<Mutex<Logged>>,
}

/// The test's side of a gate.
struct Keeper {
    arrived: Receiver<()>,
    leave: Sender<()>,
    logged: Arc<Mutex<Logged>>,
}

impl Keeper {
    /// Lets everything pass from here on.
    fn open(self) -> Arc<Mutex<Logged>> {
        self.logged
    }
}

fn gate() -> (Box<Gate>, Keeper) {
    let (arrived, arrivals) = mpsc::channel();
    let (leave, leaves) = mpsc::channel();
    let logged = Arc::new(Mutex::new(Logged::default()));
    let gate = Gate { arrived, leave: leaves, logged: Arc::clone(&logged) };
    (Box::new(gate), Keeper { arrived: arrivals, leave, logged })
}

impl PacketLog for Gate {
    fn record(&mut self, record: &PacketRecord<&str>) {
        // Once the keeper has let go of it, the gate stands open.
        let _ = self.arrived.send(());
        let _ = self.leave.recv();
        self.logged.lock().unwrap().lines.push((record.number, record.cause.to_string()));
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.logged.lock().unwrap().finished = true;
        Ok(())
    }
}

fn numbers(logged: &Mutex<Logged>) -> Vec<u64> {
    logged.lock().unwrap().lines.iter().map(|&(number, _)| number).collect()
}

/// Memory.
impl Output for Vec<u8> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

/// A file on a disk that is full after this many octets.
struct Limited {
    file: StagedFile,
    left: usize,
}

impl Write for Limited {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(self.left);
        self.left -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { self.file.write(&octets[..taken]) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for Limited {
    fn commit(self: Box<Self>) -> io::Result<()> {
        Box::new(self.file).commit()
    }
}

fn limited(path: &Path, left: usize) -> Box<dyn Output> {
    Box::new(Limited { file: StagedFile::create(path).unwrap(), left })
}

/// A capture with its head.
fn headed<W: Write>(out: W) -> pcapng::Writer<W> {
    let mut file = pcapng::Writer::new(out);
    file.section("farcast", "");
    file.interface("near", "");
    file
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn start(config: RecorderConfig, log: Box<dyn PacketLog>) -> Recorder {
    Recorder::start(&config, Some(log), None).unwrap()
}

#[test]
fn a_log_and_a_capture_get_everything_in_order() {
    const CAUSES: [&str; 3] = ["forward: queue", "", "outage"];
    let directory = tempfile::tempdir().unwrap();
    let (log, trace) = (directory.path().join("a.csv"), directory.path().join("a.pcapng"));
    // Room for all of it, should the writer not run meanwhile.
    let config = RecorderConfig { batches: 300, ..SMALL };
    let capture = headed(limited(&trace, usize::MAX));
    let mut recorder =
        Recorder::start(&config, Some(packets::create(&log, &[]).unwrap()), Some(capture)).unwrap();
    // The same without a recorder.
    let (mut direct, mut lines) = (headed(Vec::new()), String::new());
    for number in 0..500 {
        let name = CAUSES[number as usize % 3];
        let cause = recorder.cause(name);
        recorder.packet(&record(number, cause));
        let octets = vec![number as u8; number as usize % 30];
        let (at, direction) = (Time::from_nanos(number), Direction::Inbound);
        recorder.capture(0, at, direction, &octets);
        let (len, captured) = (octets.len() as u32, octets.as_slice());
        direct.packet(&Packet { interface: 0, at, octets: len, direction, captured, comment: "" });
        writeln!(lines, "{number},forward,0,{number},,,40,lost,{name}").unwrap();
    }
    let summary = recorder.finish().unwrap();
    assert_eq!(summary, Summary { records: 500, captured: 500, missed: 0 });
    let logged = fs::read_to_string(&log).unwrap();
    assert_eq!(logged.split_once('\n').unwrap().1, lines);
    assert_eq!(fs::read(&trace).unwrap(), direct.finish().unwrap());
    assert_eq!(names(directory.path()), ["a.csv", "a.pcapng"]);
}

#[test]
fn a_writer_that_stands_still_holds_nobody_up() {
    let (gate, keeper) = gate();
    let mut recorder = start(SMALL, gate);
    // With the eleventh record the first ten go to the writer, which then stands still.
    (0..11).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    keeper.arrived.recv().unwrap();
    // Three batches of ten are all there are.
    (11..50).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    assert_eq!(recorder.missed(), 20);
    // Once the writer has come to the second batch, the first is empty again.
    for _ in 0..10 {
        keeper.leave.send(()).unwrap();
        keeper.arrived.recv().unwrap();
    }
    (50..65).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    assert_eq!(recorder.missed(), 25);
    let logged = keeper.open();
    let summary = recorder.finish().unwrap();
    assert_eq!(summary, Summary { records: 40, captured: 0, missed: 25 });
    assert_eq!(numbers(&logged), (0..30).chain(50..60).collect::<Vec<_>>());
    assert!(logged.lock().unwrap().finished);
}

#[test]
fn names_of_causes_survive_what_is_missed() {
    let (gate, keeper) = gate();
    let mut recorder = start(SMALL, gate);
    (0..11).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    keeper.arrived.recv().unwrap();
    for number in 11..50 {
        // New with each record, those that are missed too.
        let cause = recorder.cause(&format!("cause {number}"));
        recorder.packet(&record(number, cause));
    }
    assert_eq!(recorder.missed(), 20);
    for _ in 0..10 {
        keeper.leave.send(()).unwrap();
        keeper.arrived.recv().unwrap();
    }
    let last = recorder.cause("cause 49");
    recorder.packet(&record(50, last));
    let logged = keeper.open();
    recorder.finish().unwrap();
    let logged = logged.lock().unwrap();
    for (number, cause) in &logged.lines[11..30] {
        assert_eq!(*cause, format!("cause {number}"));
    }
    assert_eq!(logged.lines[30], (50, "cause 49".to_string()));
}

#[test]
fn a_packet_that_no_batch_holds_is_missed() {
    let capture = headed(Box::new(Vec::new()) as Box<dyn Output>);
    let mut recorder = Recorder::start(&SMALL, None, Some(capture)).unwrap();
    for octets in [100, 101, 99] {
        recorder.capture(0, Time::ZERO, Direction::Outbound, &vec![0; octets]);
    }
    // There is no log.
    recorder.packet(&record(0, CauseId::NONE));
    assert_eq!(recorder.finish().unwrap(), Summary { records: 0, captured: 2, missed: 1 });
}

#[test]
fn a_full_disk_is_told_at_the_end_and_the_other_file_is_completed() {
    for log_has_room in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let (log, trace) = (directory.path().join("a.csv"), directory.path().join("a.pcapng"));
        let (room, none) = (usize::MAX, 2000);
        let (log_room, trace_room) = if log_has_room { (room, none) } else { (none, room) };
        let capture = headed(limited(&trace, trace_room));
        let csv = Box::new(packets::CsvLog::new(limited(&log, log_room)));
        let config = RecorderConfig { batches: 100, ..SMALL };
        let mut recorder = Recorder::start(&config, Some(csv), Some(capture)).unwrap();
        for number in 0..300 {
            recorder.packet(&record(number, CauseId::NONE));
            recorder.capture(0, Time::from_nanos(number), Direction::Inbound, &[1, 2, 3]);
        }
        let error = recorder.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(names(directory.path()), [if log_has_room { "a.csv" } else { "a.pcapng" }]);
    }
}

#[test]
fn dropped_it_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for records in [0, 5, 25] {
        let (log, trace) = (directory.path().join("a.parquet"), directory.path().join("a.pcapng"));
        let log = packets::create(&log, &[]).unwrap();
        let capture = headed(limited(&trace, usize::MAX));
        let mut recorder = Recorder::start(&SMALL, Some(log), Some(capture)).unwrap();
        (0..records).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
        drop(recorder);
        assert_eq!(names(directory.path()), [""; 0]);
    }
}

#[test]
fn dropped_it_does_not_finish_the_log() {
    let (gate, keeper) = gate();
    let mut recorder = start(SMALL, gate);
    (0..11).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    keeper.arrived.recv().unwrap();
    let logged = keeper.open();
    drop(recorder);
    assert!(!logged.lock().unwrap().finished);
}

#[test]
fn what_has_waited_is_handed_over() {
    let (gate, keeper) = gate();
    let mut recorder = start(SMALL, gate);
    let (at, age) = (|ms| Time::ZERO + Span::from_millis(ms), Span::from_millis(100));
    recorder.flush_if_older(at(1000), age);
    recorder.packet(&record(0, CauseId::NONE));
    recorder.flush_if_older(at(1099), age);
    assert!(!recorder.batch.is_empty());
    recorder.flush_if_older(at(1100), age);
    assert!(recorder.batch.is_empty());
    // It arrives without anything else.
    keeper.arrived.recv().unwrap();
    let logged = keeper.open();
    recorder.finish().unwrap();
    assert_eq!(numbers(&logged), [0]);
}

/// A log with a bug.
struct Panics;

impl PacketLog for Panics {
    fn record(&mut self, _record: &PacketRecord<&str>) {
        panic!("a bug that a test wants");
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_of_the_writer_is_an_error_and_holds_nobody_up() {
    let mut recorder = start(SMALL, Box::new(Panics));
    (0..100).for_each(|number| recorder.packet(&record(number, CauseId::NONE)));
    // Of three batches none came back.
    assert_eq!(recorder.missed(), 70);
    let told = recorder.finish().unwrap_err().to_string();
    assert_eq!(told, "the thread that writes the log and the capture panicked");
}

#[test]
fn without_files_nothing_is_recorded() {
    let mut recorder = Recorder::start(&SMALL, None, None).unwrap();
    for number in 0..100 {
        recorder.packet(&record(number, CauseId::NONE));
        recorder.capture(0, Time::ZERO, Direction::Inbound, &[0; 10]);
        recorder.flush_if_older(Time::from_nanos(number), Span::ZERO);
    }
    assert_eq!(recorder.finish().unwrap(), Summary::default());
}

#[test]
fn causes_are_numbered_once() {
    let mut recorder = Recorder::start(&SMALL, None, None).unwrap();
    assert_eq!(recorder.cause(""), CauseId::NONE);
    let (queue, errors) = (recorder.cause("queue"), recorder.cause("errors"));
    assert_eq!([recorder.cause("queue"), recorder.cause("errors")], [queue, errors]);
    assert_eq!((queue, errors), (CauseId(1), CauseId(2)));
    // Near the end of the table.
    recorder.causes.extend((2..65_533).map(|number| number.to_string()));
    assert_eq!(recorder.cause("the last of its own"), CauseId(65_534));
    assert_eq!([recorder.cause("one more"), recorder.cause("and another")], [CauseId(u16::MAX); 2]);
    assert_eq!(recorder.causes.last().unwrap(), "other");
    assert_eq!(recorder.causes.len(), 65_535);
}
