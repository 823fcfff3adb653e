//! Thread of the control server: one poll set for the socket and all clients.

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

/// Most clients connected at once.
pub const MOST_CONNECTIONS: usize = 16;
/// The longest line of a client in octets, without its end.
pub const LONGEST_LINE: usize = 4096;
/// Time that a client has to read a line before it is dropped.
pub const PATIENCE: Span = Span::from_secs(5);

/// Most connections accepted before clients are served again.
const BATCH: usize = 64;
/// Pause of accepting after the system has refused a connection, for example for lack of descriptors.
const PAUSE: Span = Span::from_secs(1);

/// Counts of clients and requests, and of the reasons for dropped clients. Counts saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ControlCounters {
    /// Clients that were let in.
    pub accepted: u64,
    /// Clients that were refused because they belong to another user.
    pub other_user: u64,
    /// Clients that were refused because [`MOST_CONNECTIONS`] were there.
    pub too_many: u64,
    /// Clients that were dropped because of a line beyond [`LONGEST_LINE`].
    pub long_line: u64,
    /// Clients that were dropped because they did not take a line within [`PATIENCE`].
    pub slow: u64,
    /// Requests, including those that failed.
    pub requests: u64,
    /// Lines that were no requests.
    pub malformed: u64,
}

/// Control server of a running emulation, on a thread of its own. Ends when dropped.
#[derive(Debug)]
pub struct ControlServer {
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
}

/// State that the server's thread and its owner share.
#[derive(Debug)]
struct ServerState {
    /// Event that ends the server when it is written to.
    end: OwnedFd,
    counters: Mutex<ControlCounters>,
}

impl ControlServer {
    /// Listens at the abstract socket `name` in the network namespace of the calling thread, and serves clients by
    /// `handler`. Clients look for the name [`socket_name`](super::socket_name) of this process.
    ///
    /// # Errors
    /// The system's error, for example if the name is taken or has more than 107 octets.
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
        let shared = Arc::new(ServerState { end, counters: Mutex::default() });
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

    /// Returns the counts of clients and requests so far.
    pub fn counters(&self) -> ControlCounters {
        *self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // The write cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic of the handler was reported when it happened.
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
    /// Time from which connections are accepted again.
    listens_from: Time,
    /// Events that poll returned for each client.
    ready: Vec<PollFlags>,
    shared: Arc<ServerState>,
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

    /// Waits for events. Returns `true` if a client wants to connect, and `None` at the end.
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

    /// Serves every client that has an event or a deadline that is due.
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

    /// Accepts a client that has the right, if there is room. Sends the reason to others.
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

impl ServerState {
    fn count(&self, counter: impl FnOnce(&mut ControlCounters) -> &mut u64) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counter(&mut counters);
        *counter = counter.saturating_add(1);
    }
}

/// Returns `span` in the form of the system's calls.
pub(super) fn timespec(span: Span) -> Timespec {
    let nanoseconds = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
    }
}
