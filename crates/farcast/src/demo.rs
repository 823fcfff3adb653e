//! `farcast demo`: a sender and its receivers on this machine.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farcast_core::random::RandomStream;
use farcast_core::units::Bytes;
use farcast_delivery::settings::SendRate;

use crate::args::DemoArgs;
use crate::output::{Output, error};
use crate::{Exit, Failure};

const GROUP: &str = "239.255.54.77:54020";

pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let output = Output::for_people();
    let place = tempfile::tempdir()?;
    let file = place.path().join("demo.bin");
    let digest = make_file(&file, args.size)?;
    output.line(&format!(
        "demo: a file of {} to {} on this machine, each losing {} of what arrives",
        args.size,
        if args.receivers == 1 { "1 receiver".to_owned() } else { format!("{} receivers", args.receivers) },
        crate::progress::percent((args.loss.get() * 1e6) as u64, 1_000_000),
    ));
    let stop = crate::interrupt::interrupted()?;
    let names: Vec<String> = (1..=args.receivers).map(|n| format!("station-{n}")).collect();
    let mut receivers = Vec::new();
    for name in &names {
        receivers.push(Ours(receiver(place.path(), name, args)?));
    }
    let rate = match args.rate {
        SendRate::Max => "max".to_owned(),
        SendRate::Limit(rate) => rate.to_string(),
    };
    let mut sender = Command::new(std::env::current_exe()?);
    sender
        .arg("send")
        .arg(&file)
        .args([
            "--to",
            GROUP,
            "--interface",
            "127.0.0.1",
            "--rate",
            &rate,
            "--start-after",
            "20 s",
            "--unsealed",
            "--receivers",
        ])
        .arg(names.join(","))
        .env("XDG_STATE_HOME", place.path());
    if !end_of(Ours(sender.spawn()?), &stop)? {
        return Err(Failure { sentence: "the demo's sender failed; see above".into(), exit: Exit::Failed });
    }
    let mut exit = Exit::Done;
    for (name, receiver) in names.iter().zip(&mut receivers) {
        let ended = receiver.0.wait()?;
        let got = blake3::hash(&fs::read(place.path().join(name).join("demo.bin"))?);
        if ended.success() && got == digest {
            output.line(&format!("{name}: digest equal ({})", &got.to_hex()[..16]));
        } else {
            error(&format!("{name}: the received file differs, or the receiver failed ({ended})"));
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Waits until `child` ends or `stop` is set. Returns `true` if the child succeeded.
#[expect(clippy::disallowed_methods, reason = "the command line owns its threads")]
fn end_of(mut child: Ours, stop: &AtomicBool) -> Result<bool, Failure> {
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(status.success());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure { sentence: "the demo was stopped".into(), exit: Exit::Failed });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A process that does not outlive the demo.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        // Where all went well, the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn receiver(place: &Path, name: &str, args: &DemoArgs) -> Result<Child, Failure> {
    let child = Command::new(std::env::current_exe()?)
        .args(["receive", "--from", GROUP, "--interface", "127.0.0.1", "--once", "--quiet", "--unsealed"])
        .args(["--name", name])
        .arg("--into")
        .arg(place.join(name))
        .args(["--simulate-loss", &args.loss.get().to_string()])
        .stdin(Stdio::null())
        .spawn()?;
    Ok(child)
}

/// Writes a file that does not compress, and returns its digest.
fn make_file(path: &Path, size: Bytes) -> Result<blake3::Hash, Failure> {
    let mut stream = RandomStream::derive(1, &[]);
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    let mut hasher = blake3::Hasher::new();
    let mut left = size.0;
    while left > 0 {
        let word = stream.bits().to_le_bytes();
        let part = &word[..left.min(8) as usize];
        file.write_all(part)?;
        hasher.update(part);
        left -= part.len() as u64;
    }
    file.flush()?;
    Ok(hasher.finalize())
}
