//! Connection with one client: its input, its output, and its watch.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use farcast_core::{Span, Time};
use rustix::event::PollFlags;

use super::snapshot::Marks;
use super::{Answer, AnswerLine, Handler, LONGEST_LINE, Request};

/// Reason for which a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leave {
    /// The client has gone, or has received all answers.
    Gone,
    /// The client sent a line beyond the limit.
    LongLine,
    /// The client did not read its answers in time.
    Slow,
}

/// Result of handling a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// The line was a request.
    Request,
    /// The line was not a request.
    Malformed,
}

/// A connection with one client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// Octets received and not served yet. The limit is one octet more than a line may have, for its end.
    input: Vec<u8>,
    /// The client sends nothing more.
    closed: bool,
    /// The client reads nothing more. Its requests are carried out all the same.
    deaf: bool,
    /// Line that is being sent; `taken` octets of it have gone.
    output: Vec<u8>,
    taken: usize,
    /// Time since which a line waits to be sent.
    waits_since: Option<Time>,
    watch: Option<SnapshotPace>,
    marks: Option<Marks>,
}

#[derive(Clone, Copy, Debug)]
struct SnapshotPace {
    every: Span,
    next: Time,
}

impl Connection {
    /// Creates a connection over `stream`, which does not block.
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

    /// Returns the events to wait for. No request is read before the client has read the last answer.
    pub(super) fn interest(&self) -> PollFlags {
        match (self.waits_since, self.closed) {
            (Some(_), _) => PollFlags::OUT,
            (None, false) => PollFlags::IN,
            (None, true) => PollFlags::empty(),
        }
    }

    /// Returns the time at which the connection must be served even without events, if a client gets `patience` to read
    /// a line.
    pub(super) fn deadline(&self, patience: Span) -> Time {
        let dropped = self.waits_since.map_or(Time::NEVER, |since| since + patience);
        self.watch.map_or(dropped, |pace| pace.next.min(dropped))
    }

    /// Reads from the socket if it is ready, serves complete requests, and sends a snapshot that is due. Calls `each`
    /// for every line.
    ///
    /// # Errors
    /// The reason for which the connection is over.
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
        // The client may have closed one direction only, and still wait for a watch.
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

    /// Sends one last sentence, as far as the socket takes it.
    pub(super) fn dismiss(mut self, sentence: &str) {
        self.put(&AnswerLine::Error(sentence.into()));
        // The client is dropped even if it does not read the sentence.
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

    /// Carries out the request on a line and writes the answer. An empty line is ignored.
    fn answer(&mut self, now: Time, line: &[u8], handler: &mut impl Handler) -> Option<Served> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(error) => {
                self.put(&AnswerLine::Error(error.to_string()));
                return Some(Served::Malformed);
            }
        };
        let answer = self.act(now, request, handler);
        self.put(&answer.map_or_else(AnswerLine::Error, AnswerLine::Ok));
        Some(Served::Request)
    }

    fn act(&mut self, now: Time, request: Request, handler: &mut impl Handler) -> Result<Answer, String> {
        match request {
            Request::Set(change) => handler.set(change)?,
            Request::Watch { every } => self.watch = Some(SnapshotPace { every, next: now }),
            Request::Snapshot => return Ok(Answer::Snapshot(Box::new(self.snapshot(handler)))),
            Request::Describe => return Ok(Answer::Description(Box::new(handler.describe()))),
            Request::Stop => handler.stop(),
        }
        Ok(Answer::Done)
    }

    /// Returns a snapshot with the rates since this client's last snapshot.
    fn snapshot(&mut self, handler: &mut impl Handler) -> super::Snapshot {
        let mut snapshot = handler.snapshot();
        snapshot.take_rates(self.marks.as_ref());
        self.marks = Some(snapshot.marks());
        snapshot
    }

    /// Sends the snapshot that is due. If the client has not read the last line, the snapshot is skipped: the next one
    /// has all its information.
    fn watch(&mut self, now: Time, handler: &mut impl Handler) {
        let Some(pace) = self.watch.as_mut().filter(|pace| pace.next <= now) else { return };
        let next = pace.next + pace.every;
        pace.next = if next > now { next } else { now + pace.every };
        if self.waits_since.is_some() || self.deaf {
            return;
        }
        let snapshot = self.snapshot(handler);
        self.put(&AnswerLine::Snapshot(Box::new(snapshot)));
        self.send(now);
    }

    /// Puts a line into the output, which is empty.
    fn put(&mut self, line: &AnswerLine) {
        self.output.clear();
        self.taken = 0;
        // Writing to a vector cannot fail, and the lines have only keys that JSON allows.
        if serde_json::to_writer(&mut self.output, line).is_ok() {
            self.output.push(b'\n');
        }
    }

    /// Sends as much of the output as the socket takes.
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

/// Returns `true` if a connection goes on after `error`.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
