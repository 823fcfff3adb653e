//! Client of a running emulation.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::Builder;

use farcast_core::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

use super::peer::user_of;
use super::server::timespec;
use super::{Answer, AnswerLine, ControlError, Request, Snapshot, running, socket_name};
use crate::Clock;

/// Longest wait for an answer.
const PATIENCE: Span = Span::from_secs(5);
/// Longest line accepted, in octets: a snapshot of a hundred thousand terminals.
const LONGEST_LINE: usize = 16 << 20;
/// Most snapshots kept that come before an answer. Beyond, the oldest are dropped.
const MOST_KEPT: usize = 16;

/// A connection to a running emulation.
#[derive(Debug)]
pub struct Control {
    pid: u32,
    stream: UnixStream,
    clock: Clock,
    input: Vec<u8>,
    /// Octets of the input that are known to hold no end of a line.
    searched: usize,
    /// Requests without an answer so far.
    owed: usize,
    /// Lines that came before an answer that was awaited.
    kept: VecDeque<AnswerLine>,
}

impl Control {
    /// Connects to the emulation of process `pid`. Without a `pid`, connects to the only emulation of this user in this
    /// network namespace (for root, of any user).
    ///
    /// # Errors
    /// [`ControlError::NoneRunning`], [`ControlError::Several`], [`ControlError::NotRunning`],
    /// [`ControlError::OtherUser`], [`ControlError::Busy`], or the system's error.
    pub fn connect(pid: Option<u32>) -> Result<Self, ControlError> {
        if let Some(pid) = pid {
            return Self::open(pid);
        }
        let mut found = Vec::new();
        for pid in running() {
            match Self::open(pid) {
                // Any user can take such a name, and an emulation that has just ended does not count.
                Err(ControlError::OtherUser { .. } | ControlError::NotRunning { .. }) => {}
                control => found.push((pid, control)),
            }
        }
        match found.len() {
            0 => Err(ControlError::NoneRunning),
            1 => found.remove(0).1,
            _ => Err(ControlError::Several(found.iter().map(|(pid, _)| *pid).collect())),
        }
    }

    fn open(pid: u32) -> Result<Self, ControlError> {
        let mut socket = knock(pid)?;
        let owner = user_of(&socket).map_err(ControlError::when(CONNECT))?;
        let user = geteuid();
        if owner != user {
            if !user.is_root() {
                return Err(ControlError::OtherUser { pid });
            }
            socket = knock_as(owner, pid).unwrap_or(Ok(socket))?;
        }
        let (stream, clock) = (UnixStream::from(socket), Clock::start());
        Ok(Self { pid, stream, clock, input: Vec::new(), searched: 0, owed: 0, kept: VecDeque::new() })
    }

    /// Returns the process id of the emulation.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a request and waits for its answer, at most 5 s. Lines that come before the answer are kept for
    /// [`next`](Self::next): answers to requests [sent](Self::send) before, and the newest 16 snapshots of a watch.
    ///
    /// # Errors
    /// [`ControlError::Refused`] with the emulation's reason, [`ControlError::Ended`], [`ControlError::Silent`], or
    /// [`ControlError::Malformed`].
    pub fn request(&mut self, request: &Request) -> Result<Answer, ControlError> {
        let mut before = self.owed;
        self.send(request)?;
        let until = self.clock.now() + PATIENCE;
        loop {
            let now = self.clock.now();
            match self.receive(until.since(now))? {
                Some(AnswerLine::Ok(answer)) if before == 0 => return Ok(answer),
                Some(AnswerLine::Error(sentence)) if before == 0 => {
                    return Err(ControlError::Refused(sentence));
                }
                Some(line) => {
                    before -= usize::from(is_answer(&line));
                    self.keep(line);
                }
                None if now >= until => return Err(silent()),
                None => {}
            }
        }
    }

    /// Requests a snapshot now and every `every`. Returns an iterator over the snapshots, until the emulation ends.
    ///
    /// # Errors
    /// Like [`request`](Self::request).
    pub fn watch(mut self, every: Span) -> Result<SnapshotStream, ControlError> {
        self.request(&Request::Watch { every })?;
        self.kept.retain(|line| !is_answer(line));
        Ok(SnapshotStream { control: Some(self), every })
    }

    /// Sends a request. Its answer is one of the next lines: answers come in the order of their requests.
    ///
    /// # Errors
    /// [`ControlError::Ended`], or [`ControlError::Silent`] if the emulation has not read it within 5 s.
    pub fn send(&mut self, request: &Request) -> Result<(), ControlError> {
        let mut line =
            serde_json::to_vec(request).map_err(|error| ControlError::Malformed(error.to_string()))?;
        line.push(b'\n');
        let until = self.clock.now() + PATIENCE;
        let mut rest = &*line;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => self.pass(&error, PollFlags::OUT, until)?,
            }
        }
        self.owed += 1;
        Ok(())
    }

    /// Returns the next line, if one comes within `limit`.
    ///
    /// # Errors
    /// [`ControlError::Ended`] or [`ControlError::Malformed`].
    pub fn next(&mut self, limit: Span) -> Result<Option<AnswerLine>, ControlError> {
        match self.kept.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.receive(limit),
        }
    }

    fn keep(&mut self, line: AnswerLine) {
        self.kept.push_back(line);
        let mut snapshots = self.kept.iter().enumerate().filter(|(_, line)| !is_answer(line));
        if let (Some((oldest, _)), true) = (snapshots.next(), snapshots.count() >= MOST_KEPT) {
            self.kept.remove(oldest);
        }
    }

    /// Reads the next line from the socket.
    fn receive(&mut self, limit: Span) -> Result<Option<AnswerLine>, ControlError> {
        let until = self.clock.now() + limit;
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(line) = self.line() {
                let line: AnswerLine = serde_json::from_slice(&line)
                    .map_err(|error| ControlError::Malformed(error.to_string()))?;
                self.owed = self.owed.saturating_sub(usize::from(is_answer(&line)));
                return Ok(Some(line));
            }
            if self.input.len() > LONGEST_LINE {
                return Err(ControlError::Malformed(format!("a line of more than {LONGEST_LINE} octets")));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ControlError::Ended),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) => match self.pass(&error, PollFlags::IN, until) {
                    Err(ControlError::Silent { .. }) => return Ok(None),
                    other => other?,
                },
            }
        }
    }

    /// Takes a line out of the input.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.input[self.searched..].iter().position(|&octet| octet == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.input.len();
            return None;
        };
        self.searched = 0;
        let rest = self.input.split_off(end + 1);
        Some(std::mem::replace(&mut self.input, rest))
    }

    /// Waits until `until` for the readiness in `flags`, if `error` says that the socket is not ready.
    fn pass(&self, error: &io::Error, flags: PollFlags, until: Time) -> Result<(), ControlError> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock => {
                let now = self.clock.now();
                if now >= until {
                    return Err(silent());
                }
                let mut sources = [PollFd::new(&self.stream, flags)];
                match poll(&mut sources, Some(&timespec(until.since(now)))) {
                    Ok(_) | Err(Errno::INTR) => Ok(()),
                    Err(errno) => Err(ControlError::when("wait for the emulation")(errno)),
                }
            }
            _ => Err(ControlError::Ended),
        }
    }
}

/// Action for errors of the system while connecting.
const CONNECT: &str = "connect to the emulation";

/// Connects to the socket of process `pid`.
fn knock(pid: u32) -> Result<OwnedFd, ControlError> {
    let address = SocketAddrUnix::new_abstract_name(socket_name(pid).as_bytes())
        .map_err(ControlError::when(CONNECT))?;
    // Not blocking: if the server accepts no connection, connecting would wait for ever.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(ControlError::when(CONNECT))?;
    match connect(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::CONNREFUSED) => Err(ControlError::NotRunning { pid, running: running() }),
        Err(Errno::AGAIN) => Err(ControlError::Busy { pid }),
        Err(errno) => Err(ControlError::when(CONNECT)(errno)),
    }
}

/// Connects as the user `owner`; `None` if the system does not allow this process to act as that user.
///
/// An emulation in a user namespace knows only its own user. Root outside has no number in it (`user_namespaces(7)`),
/// and looks like any other user. Root, who may act as any user, therefore connects as the owner. This needs a thread
/// of its own: on Linux each thread has its own credentials (`credentials(7)`), which end with it.
fn knock_as(owner: Uid, pid: u32) -> Option<Result<OwnedFd, ControlError>> {
    let work = move || set_thread_res_uid(owner, owner, owner).is_ok().then(|| knock(pid));
    let thread = Builder::new().name("knock".into()).spawn(work).ok()?;
    thread.join().unwrap_or(None)
}

/// Returns `true` if a line answers a request.
fn is_answer(line: &AnswerLine) -> bool {
    !matches!(line, AnswerLine::Snapshot(_))
}

fn silent() -> ControlError {
    ControlError::Silent { seconds: PATIENCE.as_nanos() / 1_000_000_000 }
}

/// Snapshots of a running emulation, until it ends.
#[derive(Debug)]
pub struct SnapshotStream {
    /// The connection, until the end.
    control: Option<Control>,
    every: Span,
}

impl SnapshotStream {
    fn step(&mut self) -> Result<Option<Snapshot>, ControlError> {
        let limit = self.every + PATIENCE;
        let Some(control) = &mut self.control else { return Ok(None) };
        match control.next(limit) {
            Ok(Some(AnswerLine::Snapshot(snapshot))) => Ok(Some(*snapshot)),
            Ok(Some(AnswerLine::Error(sentence))) => Err(ControlError::Refused(sentence)),
            Ok(Some(AnswerLine::Ok(_))) => Err(ControlError::Malformed("an answer to no request".into())),
            Ok(None) => Err(silent()),
            Err(ControlError::Ended) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Iterator for SnapshotStream {
    type Item = Result<Snapshot, ControlError>;

    /// Waits for the next snapshot. After an error or the emulation's end there are no more.
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            self.control = None;
        }
        step.transpose()
    }
}
