//! Runs of MFTP with the drivers of `farcast send` and `farcast receive`: real sockets, a real file, three receivers.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Inbox, Sender as Outbox, channel};
use std::thread;

use farcast_core::random::RandomStream;
use farcast_core::{Probability, Span, Time};
use farcast_emu::emulation::Emulation;
use farcast_emu::host::{DEVICE, Host};
use farcast_files::{Durability, Options, Outgoing};
use farcast_mftp::figures::{DTUS_PER_PASS, PASSES};
use farcast_mftp::{
    ClientId, Codec, Mftp, Pace, Product, Receiver, ReceiverConfig, ReceiverEvent, Sender, SenderConfig,
    SenderEvent,
};
use farcast_net::{
    Changing, ListenNotice, ListenOptions, NetError, ReceiveJob, ReceiveNotice, ReceiveOptions, SendJob,
    SendNotice, SendOptions, SocketOptions,
};
use farcast_sim::outcome::TransferOutcome;

use super::cases::RECEIVERS;
use super::runs::{AgreementRun, Ending, Outcome, failure, hurry};
use crate::study::StudyError;

/// Sending time that is made up for at once after a late wake-up, as in `farcast send` at these rates. Without it a
/// driver in real time falls behind.
const CREDIT: Span = Span::from_millis(20);

/// Data of the sender for the outcome.
struct SentData {
    /// Time at which the first pass began.
    began: Time,
    /// DTUs of each pass.
    dtus_per_pass: Vec<u64>,
}

/// Returns the outcome of a simulated transfer whose data took this many `seconds`.
pub(super) fn simulated(transfer: &TransferOutcome, seconds: f64) -> Option<Outcome> {
    let segments: u64 = transfer.counts(DTUS_PER_PASS)?.iter().sum();
    Some(Outcome { seconds, passes: Some(transfer.count(PASSES)? as f64), segments: Some(segments as f64) })
}

/// Runs a job, and returns its outcome.
pub(super) fn run(
    job: &AgreementRun<'_>,
    emulation: &Emulation,
    ending: Ending<'_>,
) -> Result<Outcome, StudyError> {
    let config = job.size.scenario.sender().cloned();
    let config = config.ok_or_else(|| failure("the scenario has no transfer"))?;
    let place = tempfile::tempdir()?;
    let (stop, ended) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let (ready, listening) = channel();
    thread::scope(|scope| {
        let receiver = |(number, host)| {
            let into = place.path().join(format!("{number}"));
            let seed = RandomStream::derive(job.seed, &[number]).bits();
            let (ready, config) = (ready.clone(), &config);
            scope.spawn(move || {
                let received = {
                    let payload = &job.size.payload;
                    receive(ReceiverRun { host, seed, payload, into: &into, stop, ending }, config, ready)
                };
                ended.fetch_add(1, Ordering::Relaxed);
                received
            })
        };
        let receivers: Vec<_> = (0..).zip(emulation.terminals()).map(receiver).collect();
        drop(ready);
        let (hub, sending) = (emulation.hub(), config.clone());
        let sender = scope.spawn(move || {
            let run = SenderRun { job, hub, ended, ending };
            send(&run, sending, &listening)
        });
        let sent = joined(sender);
        // The sender has ended, so incomplete receivers get nothing more.
        stop.store(true, Ordering::Relaxed);
        let completed = receivers.into_iter().map(joined).collect::<Result<Vec<_>, _>>();
        let SentData { began, dtus_per_pass } = sent?;
        let last = completed?.into_iter().max().unwrap_or(Time::NEVER);
        Ok(Outcome {
            seconds: last.since(began).as_secs_f64(),
            passes: Some(dtus_per_pass.len() as f64),
            segments: Some(dtus_per_pass.iter().sum::<u64>() as f64),
        })
    })
}

/// Returns the result of a thread; its panic continues here.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn socket() -> SocketOptions {
    SocketOptions { interface: Some(DEVICE.into()), ..SocketOptions::default() }
}

/// Run of the sender on `hub`.
struct SenderRun<'a> {
    job: &'a AgreementRun<'a>,
    hub: &'a Host,
    /// Number of receivers that have ended.
    ended: &'a AtomicUsize,
    ending: Ending<'a>,
}

/// Sends the file once all receivers listen, until all have ended.
fn send(run: &SenderRun<'_>, config: SenderConfig, listening: &Inbox<()>) -> Result<SentData, StudyError> {
    let SenderRun { job, hub, ended, ending } = *run;
    hub.namespace().enter()?;
    hurry();
    // Fewer messages come if a receiver could not begin; its own error says why.
    if listening.iter().take(RECEIVERS as usize).count() < RECEIVERS as usize {
        return Err(failure("a receiver does not listen"));
    }
    let outgoing = Outgoing::scan(&[&job.size.file], |_| {})?;
    let options = SendOptions {
        to: config.private,
        socket: socket(),
        burst: Span::ZERO,
        changing: Changing::default(),
        look_again: false,
    };
    let (start, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut began = None;
    let mut observer = |_: Time, _: &Sender, notice: &SendNotice<'_, SenderEvent>| {
        if let SendNotice::Event(SenderEvent::Pass { pass: 1, .. }) = notice {
            began = Some(ending.clock.now());
        }
        // The sender is stopped once no receiver is left to hear it.
        if ending.is_due() || ended.load(Ordering::Relaxed) == RECEIVERS as usize {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let product = Product { id: *outgoing.id().as_bytes(), size: outgoing.size(), name: "file".into() };
    let make = |server: SocketAddr| Sender::new(in_real_time(config, product, server));
    let job = SendJob::<Mftp> {
        objects: vec![outgoing],
        codec: &Codec,
        seal: None,
        options: &options,
        start: &start,
        stop: &stop,
    };
    let report = farcast_net::send(job, make, &mut observer)?;
    report.error.map_or(Ok(()), |error: NetError| Err(StudyError::from(error)))?;
    let dtus_per_pass = report.sender.stats().dtus_per_pass.clone();
    Ok(SentData { began: began.ok_or_else(|| failure("no data was sent"))?, dtus_per_pass })
}

/// Returns the settings of the simulated sender, completed by those that only a driver in real time knows.
fn in_real_time(config: SenderConfig, product: Product, server: SocketAddr) -> SenderConfig {
    let pace = match config.pace {
        Pace::Rate { rate, overhead, granule, .. } => Pace::Rate { rate, overhead, credit: CREDIT, granule },
        window @ Pace::Window { .. } => window,
    };
    SenderConfig { product, server, response: server, pace, ..config }
}

/// Run of a receiver on `host`.
#[derive(Clone, Copy)]
struct ReceiverRun<'a> {
    host: &'a Host,
    seed: u64,
    /// Content of the file.
    payload: &'a [u8],
    /// Directory for the file.
    into: &'a Path,
    stop: &'a AtomicBool,
    ending: Ending<'a>,
}

/// Receives the file and compares it with its content. Returns the time at which the last segment came.
/// Verification is not part of the protocol's time, and takes none in simulation.
fn receive(run: ReceiverRun<'_>, sender: &SenderConfig, ready: Outbox<()>) -> Result<Time, StudyError> {
    let ReceiverRun { host, seed, payload, into, stop, ending } = run;
    host.namespace().enter()?;
    hurry();
    let id = ClientId::from_address(IpAddr::V4(host.address()));
    let config = ReceiverConfig { seed, ..ReceiverConfig::new(id, sender.public.port()) };
    let options = ReceiveOptions {
        listen: ListenOptions {
            from: sender.public,
            source: None,
            accept: Vec::new(),
            socket: socket(),
            silent: false,
            simulate_loss: Probability::ZERO,
            seed,
        },
        into: into.into(),
        files: Options { durability: Durability::NoSync, ..Options::default() },
        plain: false,
        once: true,
        discard: false,
        wait_for_room: Span::ZERO,
    };
    let (mut completed, mut ready) = (None, Some(ready));
    let mut observer = |_: Time, _: &Receiver, notice: &ReceiveNotice<'_, ReceiverEvent>| match notice {
        // The sender waits for this message, or for the end of a receiver that cannot begin.
        ReceiveNotice::Listen(ListenNotice::Listening { .. }) => {
            let _ = ready.take().map(|ready| ready.send(()));
        }
        ReceiveNotice::Event(ReceiverEvent::Complete) => completed = Some(ending.clock.now()),
        _ => {}
    };
    let make = |room: usize| {
        Receiver::new(ReceiverConfig { receive_buffer_bytes: u32::try_from(room).ok(), ..config })
    };
    let job = ReceiveJob::<Mftp> { options: &options, codec: &Codec, seal: None, stop };
    farcast_net::receive(job, make, &mut observer)?;
    if std::fs::read(into.join("file")).is_ok_and(|octets| octets == payload) {
        return completed.ok_or_else(|| failure("the file was there before all of it had come"));
    }
    Err(failure("a receiver has not the file that was sent"))
}
