//! Receiving: one thread hears the network and drives the engine, another stores.

mod driver;
mod hearing;
mod nap;
mod session;

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::engine::{Engine, RejectCounts};
use farcast_core::{Probability, Span, Time};
use farcast_delivery::{Offer, Outcome, Protocol, Received};
use farcast_files::Options;
use ipnet::IpNet;
use rustix::fs::{Access, access};

use crate::clock::{Clock, sharpen_timers};
use crate::ears::Ears;
use crate::error::NetError;
use crate::loss::Loss;
use crate::socket::{SocketOptions, is_source_specific};
use crate::store::{FileInfo, Store};

use driver::Driver;

/// How long a store that the disk holds is waited for once the receiver is told to stop.
const DISK_PATIENCE: Span = Span::from_secs(2);

/// What to receive and where to put it.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// The group (or our own address) and port to listen on.
    pub from: SocketAddr,
    /// The only sender to hear, in a source-specific group.
    pub source: Option<IpAddr>,
    /// The senders to hear, by address or prefix; everybody where there are none.
    pub accept: Vec<IpNet>,
    /// Where files go; made if it is not there.
    pub into: PathBuf,
    /// How files are stored.
    pub files: Options,
    /// How sockets are made.
    pub socket: SocketOptions,
    /// End after the first transmission that [counts](ReceiveReport::counts).
    pub once: bool,
    /// Drop what arrives instead of storing it; the end is [`NetError::Discarded`], never a success.
    pub discard: bool,
    /// Datagrams to lose on purpose.
    pub simulate_loss: Probability,
    /// The seed of those losses.
    pub seed: u64,
    /// How long a full disk is waited for before the transmission is given up.
    pub wait_for_room: Span,
}

/// What happens while receiving; `E` is what the engine tells.
#[derive(Debug)]
pub enum ReceiveNotice<'a, E> {
    /// Ready to hear announcements.
    Listening {
        /// The address listened on.
        address: SocketAddr,
    },
    /// The interface is not there any more, or of no use; it is waited for.
    Waiting {
        /// What is missing.
        why: &'a NetError,
    },
    /// The interface is there again, or another has taken its place, and the group is joined anew.
    Rejoined,
    /// Something came from a sender that is not to be heard; told of once.
    NotAccepted {
        /// Where from.
        source: IpAddr,
    },
    /// A transmission is taken part in.
    Joined {
        /// What is sent.
        offer: &'a Offer,
        /// Segments that are there already.
        held: u32,
    },
    /// What was there already, under the names of files that are sent, was compared with them.
    Compared {
        /// Segments that need not come.
        found: u32,
    },
    /// The list of files is known.
    Files(&'a Arc<[FileInfo]>),
    /// A file is complete, verified, and has its final name.
    FileDone {
        /// Its path below the receiving directory.
        path: &'a str,
    },
    /// Something arrived damaged; it is asked for again.
    Damaged {
        /// The path of the file below the receiving directory; `None` for the list of files.
        path: Option<&'a str>,
        /// How many segments are asked for again.
        segments: u32,
    },
    /// The disk is full; what comes is dropped until there is room.
    NoRoom {
        /// What could not be stored.
        error: &'a NetError,
        /// How long room is waited for.
        wait: Span,
    },
    /// There is room again, and what was dropped is asked for.
    Room,
    /// Something the engine tells.
    Event(&'a E),
    /// A tenth of a second has passed.
    Tick,
    /// The transmission is over.
    Ended(&'a ReceiveReport<E>),
}

/// How a transmission went for this receiver; `E` is what the engine tells.
#[derive(Debug)]
pub struct ReceiveReport<E> {
    /// What was sent.
    pub offer: Offer,
    /// How it ended.
    pub outcome: Outcome,
    /// What the engine told at its end.
    pub end: E,
    /// Why it could not be stored, if that is so.
    pub error: Option<NetError>,
    /// From joining to completion, or to the end.
    pub duration: Span,
    /// Whether its list of files has come and has the digest that was announced.
    pub vouched: bool,
    /// Segments that were there before.
    pub held: u32,
    /// Segments there at the end.
    pub have: u32,
    /// Whether what is there is kept for a next try: some of it is of files that the product's id vouches for.
    pub kept: bool,
    /// What came.
    pub received: Received,
    /// Datagrams that were none of the protocol's.
    pub malformed: u64,
    /// Answers that the system would not send.
    pub unsent: u64,
    /// Datagrams from senders that are not to be heard.
    pub not_accepted: u64,
    /// Datagrams sent to our address that may come to the group only.
    pub misdirected: u64,
    /// Datagrams of data that were dropped because the disk did not answer.
    pub unstored: u64,
    /// Messages turned down, by reason.
    pub rejects: RejectCounts,
}

impl<E> ReceiveReport<E> {
    /// Whether the product is complete and verified.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete(_))
    }

    /// Whether it is the one transmission of [`ReceiveOptions::once`]: it was complete, or brought at least the list of
    /// files that it had announced, or failed by what only our user can change: what is in the way here, or a name that
    /// another receiver has. What never was more than an offer does not count, or anybody's would do; nor does a sender
    /// that fell silent, which may be started again and goes on then.
    pub fn counts(&self) -> bool {
        use farcast_files::StoreError as E;
        match self.outcome {
            Outcome::Lost => return false,
            Outcome::Complete(_) | Outcome::Collision => return true,
            Outcome::SourceChanged | Outcome::Failed => {}
        }
        self.vouched
            || match &self.error {
                Some(NetError::Store(error)) => matches!(
                    error,
                    E::InUse { .. }
                        | E::ReadOnly { .. }
                        | E::PermissionDenied { .. }
                        | E::UnsafePath { .. }
                        | E::AlreadyExists { .. }
                ),
                Some(error) => matches!(error, NetError::Directory { .. } | NetError::Discarded),
                None => false,
            }
    }
}

/// What the receivers of `P` tell.
type Event<P> = <<P as Protocol>::Receiver as Engine>::Event;

/// Tells the owner of the receiver what happens.
type Observer<'a, P> = &'a mut dyn FnMut(Time, &<P as Protocol>::Receiver, &ReceiveNotice<'_, Event<P>>);

/// Receives products by the protocol `P` until `stop` is set or, with [`ReceiveOptions::once`], one transmission is
/// over; the last report. `make` makes the engine for the octets that the kernel buffers.
///
/// # Errors
/// What makes it impossible to listen; what goes wrong with one transmission is in its report.
pub fn receive<P: Protocol, E: Error + Send + Sync + 'static>(
    options: &ReceiveOptions,
    codec: &P::Codec,
    make: impl FnOnce(usize) -> Result<P::Receiver, E>,
    stop: &AtomicBool,
    observer: Observer<'_, P>,
) -> Result<Option<ReceiveReport<Event<P>>>, NetError> {
    sharpen_timers();
    check_directory(&options.into)?;
    if options.source.is_none() && is_source_specific(options.from.ip()) {
        return Err(NetError::GroupWithoutSource(options.from.ip()));
    }
    let ears = Ears::open(options)?;
    let room = ears.receive_buffer();
    let clock = Clock::start();
    let store = Store::start(options.discard, options.wait_for_room)?;
    store.tidy(options.into.clone(), options.files.quota);
    let loss = Loss::new(options.simulate_loss, options.seed);
    let engine = make(room).map_err(NetError::config)?;
    let mut driver = Driver::<P>::new(clock, (engine, codec), (ears, store, loss), options, observer);
    let heard = driver.run(stop);
    let mut until = Time::NEVER;
    let ended = driver.end(|| {
        if until == Time::NEVER && stop.load(Ordering::Relaxed) {
            until = clock.now() + DISK_PATIENCE;
        }
        clock.now() < until
    });
    heard?;
    if ended { Ok(driver.last) } else { Err(NetError::DiskStalled(options.into.clone())) }
}

/// Better now than when the first product comes.
fn check_directory(path: &Path) -> Result<(), NetError> {
    let failed = |source| NetError::Directory { path: path.into(), source };
    std::fs::create_dir_all(path).map_err(failed)?;
    access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| failed(errno.into()))
}
