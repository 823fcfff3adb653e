//! One client: what it has sent, what it is yet to take, and what it watches.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use farcast_core::{Span, Time};
use rustix::event::PollFlags;

use super::snapshot::Marks;
use super::{Answer, Handler, LONGEST_LINE, Line, Request};

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    /// The client has gone, or has been told all that it asked for.
    Gone,
    /// It sent a line beyond the limit.
    LongLine,
    /// It did not take what it asked for.
    Slow,
}

/// What came of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// It was a request.
    Request,
    /// It was none.
    Malformed,
}

/// A connection with one client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// What it has sent and is not yet served: one octet more than a line may have, for its end.
    input: Vec<u8>,
    /// Whether it will send nothing more.
    closed: bool,
    /// Whether it takes nothing more. What it has sent is done all the same.
    deaf: bool,
    /// The line that it is yet to take, and how much of it has gone.
    output: Vec<u8>,
    taken: usize,
    /// Since when it has something to take.
    waits_since: Option<Time>,
    watch: Option<Pace>,
    marks: Option<Marks>,
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    every: Span,
    next: Time,
}

impl Connection {
    /// A connection over `stream`, which does not block.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            input: Vec::with_capacity(LONGEST_LINE + 1),
            closed: false,
            deaf: false,
            output: Vec::new(),
            taken: 0,
            waits_since: None,
            watch: None,
            marks: None,
        }
    }

    /// What to wait for. No request is read before the client has taken the last one's answer.
    pub(super) fn interest(&self) -> PollFlags {
        match (self.waits_since, self.closed) {
            (Some(_), _) => PollFlags::OUT,
            (None, false) => PollFlags::IN,
            (None, true) => PollFlags::empty(),
        }
    }

    /// When it wants to be served whatever has come, if a client gets `patience` to take a line.
    pub(super) fn deadline(&self, patience: Span) -> Time {
        let dropped = self.waits_since.map_or(Time::NEVER, |since| since + patience);
        self.watch.map_or(dropped, |pace| pace.next.min(dropped))
    }

    /// Takes what the socket is ready for, serves the requests that are complete, and sends the snapshot that is due.
    /// `each` is told of every line.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn serve(
        &mut self,
        now: Time,
        patience: Span,
        ready: PollFlags,
        handler: &mut impl Handler,
        mut each: impl FnMut(Served),
    ) -> Result<(), Leave> {
        self.send(now);
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read();
        }
        // It may have closed one way only, and wait for what it watches.
        self.deaf |= self.closed && ready.contains(PollFlags::HUP);
        while self.waits_since.is_none() {
            let Some(line) = self.line()? else { break };
            if let Some(served) = self.answer(now, &line, handler) {
                each(served);
                self.send(now);
            }
        }
        self.watch(now, handler);
        if self.waits_since.is_some_and(|since| now.since(since) >= patience) {
            return Err(Leave::Slow);
        }
        let watches = self.watch.is_some() && !self.deaf;
        let idle = self.waits_since.is_none() && !watches && self.input.is_empty();
        if self.closed && idle { Err(Leave::Gone) } else { Ok(()) }
    }

    /// Sends one last sentence as far as it goes.
    pub(super) fn dismiss(mut self, sentence: &str) {
        self.put(&Line::Error(sentence.into()));
        // Whoever does not take it is gone all the same.
        let _ = self.stream.write(&self.output);
    }

    fn read(&mut self) {
        let room = LONGEST_LINE + 1 - self.input.len();
        if self.closed || room == 0 {
            return;
        }
        let mut buffer = [0; LONGEST_LINE + 1];
        match self.stream.read(&mut buffer[..room]) {
            Ok(0) => self.closed = true,
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error) => self.closed = !is_passing(&error),
        }
    }

    /// Takes the next line out of the input, without its end; the last one may have none.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Leave> {
        if let Some(end) = self.input.iter().position(|&octet| octet == b'\n') {
            let rest = self.input.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.input, rest);
            line.pop();
            return Ok(Some(line));
        }
        if self.input.len() > LONGEST_LINE {
            return Err(Leave::LongLine);
        }
        let last = self.closed && !self.input.is_empty();
        Ok(last.then(|| std::mem::take(&mut self.input)))
    }

    /// Does what a line asks for and writes the answer. An empty line asks for nothing.
    fn answer(&mut self, now: Time, line: &[u8], handler: &mut impl Handler) -> Option<Served> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(error) => {
                self.put(&Line::Error(error.to_string()));
                return Some(Served::Malformed);
            }
        };
        let answer = self.act(now, request, handler);
        self.put(&answer.map_or_else(Line::Error, Line::Ok));
        Some(Served::Request)
    }

    fn act(&mut self, now: Time, request: Request, handler: &mut impl Handler) -> Result<Answer, String> {
        match request {
            Request::Set(change) => handler.set(change)?,
            Request::Watch { every } => self.watch = Some(Pace { every, next: now }),
            Request::Snapshot => return Ok(Answer::Snapshot(Box::new(self.snapshot(handler)))),
            Request::Describe => return Ok(Answer::Description(Box::new(handler.describe()))),
            Request::Stop => handler.stop(),
        }
        Ok(Answer::Done)
    }

    /// The state now, with the rates since this client last saw it.
    fn snapshot(&mut self, handler: &mut impl Handler) -> super::Snapshot {
        let mut snapshot = handler.snapshot();
        snapshot.take_rates(self.marks.as_ref());
        self.marks = Some(snapshot.marks());
        snapshot
    }

    /// Sends the snapshot that is due. While the client has not taken the last line it is left out: the next one says
    /// all that it would have said.
    fn watch(&mut self, now: Time, handler: &mut impl Handler) {
        let Some(pace) = self.watch.as_mut().filter(|pace| pace.next <= now) else { return };
        let next = pace.next + pace.every;
        pace.next = if next > now { next } else { now + pace.every };
        if self.waits_since.is_some() || self.deaf {
            return;
        }
        let snapshot = self.snapshot(handler);
        self.put(&Line::Snapshot(Box::new(snapshot)));
        self.send(now);
    }

    /// Puts a line into the output, which is empty.
    fn put(&mut self, line: &Line) {
        self.output.clear();
        self.taken = 0;
        // A vector takes whatever comes, and the lines have no keys that JSON does not have.
        if serde_json::to_writer(&mut self.output, line).is_ok() {
            self.output.push(b'\n');
        }
    }

    /// Sends what the socket takes of the output.
    fn send(&mut self, now: Time) {
        while self.taken < self.output.len() && !self.deaf {
            match self.stream.write(&self.output[self.taken..]) {
                Ok(count) => self.taken += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.waits_since.get_or_insert(now);
                    return;
                }
                Err(error) => self.deaf = !is_passing(&error),
            }
        }
        self.waits_since = None;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Whether a connection goes on after `error`.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
