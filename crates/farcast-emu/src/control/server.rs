//! The server's thread: one poll set for the socket and all clients.

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use farcast_core::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::geteuid;

use super::Handler;
use super::connection::{Connection, Leave, Served};
use super::peer::user_of;
use crate::{Clock, EmuError};

/// How many clients may be connected at once.
pub const MOST_CONNECTIONS: usize = 16;
/// The longest line of a client in octets, without its end.
pub const LONGEST_LINE: usize = 4096;
/// How long a client may take for a line before it is dropped.
pub const PATIENCE: Span = Span::from_secs(5);

/// How many connections are taken before clients are served again.
const BATCH: usize = 64;
/// How long no connection is taken when the system has refused one, as for want of descriptors.
const PAUSE: Span = Span::from_secs(1);

/// What clients have done, and why some are not served any more. Counts saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ControlCounters {
    /// Clients that were let in.
    pub accepted: u64,
    /// Clients that were refused because they are another user's.
    pub other_user: u64,
    /// Clients that were refused because [`MOST_CONNECTIONS`] were there.
    pub too_many: u64,
    /// Clients that were dropped because of a line beyond [`LONGEST_LINE`].
    pub long_line: u64,
    /// Clients that were dropped because they did not take a line within [`PATIENCE`].
    pub slow: u64,
    /// Requests, those among them that could not be done.
    pub requests: u64,
    /// Lines that were no requests.
    pub malformed: u64,
}

/// Serves the clients of a running emulation on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct ControlServer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the server's thread and its owner both have.
#[derive(Debug)]
struct Shared {
    /// Written to when the server is to end.
    end: OwnedFd,
    counters: Mutex<ControlCounters>,
}

impl ControlServer {
    /// Listens at the abstract socket `name` ([`socket_name`](super::socket_name) of this process, where clients are to
    /// find it) in the network namespace of the calling thread, and serves who connects by `handler`.
    ///
    /// # Errors
    /// What the system says against it, as when the name is taken or has more than 107 octets.
    pub fn start(name: &str, handler: impl Handler + Send + 'static) -> Result<Self, EmuError> {
        Self::start_with(name, PATIENCE, handler)
    }

    pub(super) fn start_with(
        name: &str,
        patience: Span,
        handler: impl Handler + Send + 'static,
    ) -> Result<Self, EmuError> {
        let action = || format!("listen at the control socket {name}");
        let listen = || {
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            listener.set_nonblocking(true)?;
            Ok::<_, io::Error>(listener)
        };
        let listener = listen().map_err(EmuError::when(action()))?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let end = eventfd(0, flags).map_err(EmuError::when(action()))?;
        let shared = Arc::new(Shared { end, counters: Mutex::default() });
        let server = Server {
            listener,
            clients: Vec::new(),
            handler,
            clock: Clock::start(),
            patience,
            listens_from: Time::ZERO,
            ready: Vec::new(),
            shared: Arc::clone(&shared),
        };
        let thread = Builder::new().name("control".into()).spawn(|| server.run());
        Ok(Self { shared, thread: Some(thread.map_err(EmuError::when("start the control thread"))?) })
    }

    /// What clients have done so far.
    pub fn counters(&self) -> ControlCounters {
        *self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // It cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // If the handler has panicked, that was said when it did.
            let _ = thread.join();
        }
    }
}

struct Server<H> {
    listener: UnixListener,
    clients: Vec<Connection>,
    handler: H,
    clock: Clock,
    patience: Span,
    /// When connections are taken again.
    listens_from: Time,
    /// What poll said of each client.
    ready: Vec<PollFlags>,
    shared: Arc<Shared>,
}

impl<H: Handler> Server<H> {
    fn run(mut self) {
        while let Some(knocks) = self.wait() {
            self.serve();
            if knocks {
                self.accept();
            }
        }
    }

    /// Waits until there is something to do: whether somebody wants to connect, or `None` at the end.
    fn wait(&mut self) -> Option<bool> {
        let now = self.clock.now();
        let deadlines = self.clients.iter().map(|client| client.deadline(self.patience));
        let paused = self.listens_from > now;
        let pause = if paused { self.listens_from } else { Time::NEVER };
        let timeout = timespec(deadlines.fold(pause, Time::min).since(now));
        let knock = if paused { PollFlags::empty() } else { PollFlags::IN };
        let mut sources =
            vec![PollFd::new(&self.shared.end, PollFlags::IN), PollFd::new(&self.listener, knock)];
        sources.extend(self.clients.iter().map(|client| PollFd::new(client, client.interest())));
        match poll(&mut sources, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        self.ready.clear();
        self.ready.extend(sources[2..].iter().map(PollFd::revents));
        let (end, knocks) = (sources[0].revents(), sources[1].revents());
        end.is_empty().then_some(!knocks.is_empty())
    }

    /// Serves every client that something came of or for which something is due.
    fn serve(&mut self) {
        let now = self.clock.now();
        let mut ready = self.ready.drain(..);
        let (clients, handler, patience) =
            (std::mem::take(&mut self.clients), &mut self.handler, self.patience);
        let shared = &*self.shared;
        for mut client in clients {
            let flags = ready.next().unwrap_or(PollFlags::empty());
            let served = client.serve(now, patience, flags, handler, |served| match served {
                Served::Request => shared.count(|counters| &mut counters.requests),
                Served::Malformed => shared.count(|counters| &mut counters.malformed),
            });
            match served {
                Ok(()) => self.clients.push(client),
                Err(Leave::Gone) => {}
                Err(Leave::LongLine) => {
                    shared.count(|counters| &mut counters.long_line);
                    client.dismiss(&format!(
                        "a line of more than {LONGEST_LINE} octets: no request needs that"
                    ));
                }
                Err(Leave::Slow) => shared.count(|counters| &mut counters.slow),
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..BATCH {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.listens_from = self.clock.now() + PAUSE;
                        return;
                    }
                },
            }
        }
    }

    /// Lets a client in who may and for whom there is room; tells others why not.
    fn admit(&mut self, stream: UnixStream) {
        let peer = user_of(&stream);
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let client = Connection::new(stream);
        if !peer.is_ok_and(|user| user == geteuid() || user.is_root()) {
            self.shared.count(|counters| &mut counters.other_user);
            client.dismiss("this emulation belongs to another user");
        } else if self.clients.len() >= MOST_CONNECTIONS {
            self.shared.count(|counters| &mut counters.too_many);
            client.dismiss(&format!("{MOST_CONNECTIONS} clients are connected already: close one of them"));
        } else {
            self.shared.count(|counters| &mut counters.accepted);
            self.clients.push(client);
        }
    }
}

impl Shared {
    fn count(&self, counter: impl FnOnce(&mut ControlCounters) -> &mut u64) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counter(&mut counters);
        *counter = counter.saturating_add(1);
    }
}

/// `span` for the system's calls.
pub(super) fn timespec(span: Span) -> Timespec {
    let nanoseconds = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
    }
}
