//! Reception of files: one thread reads the network and drives the engine, another one stores.
//!
//! [`receive`] runs the loop in `driver`, which processes datagrams with `hearing` and follows each object with
//! `session`. `early` keeps content whose key is still to come, and `nap` decides how long data may wait in the kernel.
//! `options`, `notice` and `report` have the types that the owner gives and gets.

mod driver;
mod early;
mod hearing;
mod nap;
mod notice;
mod options;
mod report;
mod session;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::Engine;
use farcast_core::{Span, Time};
use farcast_delivery::{Codec, Protocol, ReceiverEngine as _};
use rustix::fs::{Access, access};

use crate::clock::sharpen_timers;
use crate::error::NetError;
use crate::receive_sockets::ReceiveSockets;
use crate::seal::ReceiveSeal;
use crate::store::make_directory;

use driver::Driver;

pub use notice::ReceiveNotice;
pub use options::ReceiveOptions;
pub use report::ReceiveReport;

/// Longest wait for a store that the disk holds up, once the receiver is told to stop.
const DISK_PATIENCE: Span = Span::from_secs(2);

/// Event of `P`'s receiving engine.
type Event<P> = <<P as Protocol>::Receiver as Engine>::Event;

/// Callback that tells the owner of the receiver what happens.
type Observer<'a, P> = &'a mut dyn FnMut(Time, &<P as Protocol>::Receiver, &ReceiveNotice<'_, Event<P>>);

/// Reception by the protocol `P`.
pub struct ReceiveJob<'a, P: Protocol> {
    /// Options of the reception.
    pub options: &'a ReceiveOptions,
    /// Codec of the protocol's messages.
    pub codec: &'a P::Codec,
    /// Seal of all answers. With a seal, only sealed datagrams are accepted.
    pub seal: Option<&'a mut ReceiveSeal>,
    /// Flag that ends the reception.
    pub stop: &'a AtomicBool,
}

/// Receives products until `stop` is set or, with [`ReceiveOptions::once`], one transmission is over. Returns the last
/// report. `make` makes the engine; its argument is the size of the kernel's buffer in octets.
///
/// # Errors
/// If the receiver cannot listen. Errors of one transmission are in its report.
pub fn receive<P: Protocol, E: Error + Send + Sync + 'static>(
    job: ReceiveJob<'_, P>,
    make: impl FnOnce(usize) -> Result<P::Receiver, E>,
    observer: Observer<'_, P>,
) -> Result<Option<ReceiveReport<Event<P>>>, NetError> {
    let ReceiveJob { options, stop, .. } = job;
    sharpen_timers();
    check_directory(&options.into)?;
    let answers = P::Receiver::ANSWERS && !options.listen.silent;
    let sockets = ReceiveSockets::open(&options.listen, job.codec.transport(), answers)?;
    let engine = make(sockets.receive_buffer()).map_err(NetError::config)?;
    let mut driver = Driver::new(job, engine, sockets, observer)?;
    let clock = driver.clock;
    let heard = driver.run(stop);
    let mut until = Time::NEVER;
    let ended = driver.end(|| {
        if until == Time::NEVER && stop.load(Ordering::Relaxed) {
            until = clock.now() + DISK_PATIENCE;
        }
        clock.now() < until
    });
    heard?;
    driver.note_missed();
    if ended { Ok(driver.last) } else { Err(NetError::DiskStalled(options.into.clone())) }
}

/// Checks that the directory can be written. An error now is better than one when the first product comes.
fn check_directory(path: &Path) -> Result<(), NetError> {
    let failed = |source| NetError::Directory { path: path.into(), source };
    make_directory(path)?;
    access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| failed(errno.into()))
}
