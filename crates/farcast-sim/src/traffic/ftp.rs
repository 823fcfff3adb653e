//! FTP flow: a session that transfers files one after the other, with a client at one end and a server at the other.

use std::collections::BTreeMap;

use farcast_core::engine::{Arrival, Engine};
use farcast_core::{Span, Time};
use farcast_tcp::Config;
use farcast_tcp::ftp::{
    Answer, Client, ClientConfig, ClientEvent, Completion, Contents, FileId, FileReport, FtpConfigError,
    Mode, Operation, Refusal, Request, Server, ServerConfig, ServerEvent,
};
use serde::Serialize;

use super::{Counts, End, Flow, FlowMessage, FlowReport, TcpReport};
use crate::address::{hub_address, receiver_address};

/// Time limit longer than any session, so that neither side hangs up because a link is slow.
const FOREVER: Span = Span::from_secs(100 * 365 * 24 * 3600);

/// Settings of an [`Ftp`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtpConfig {
    /// TCP settings of both ends.
    pub tcp: Config,
    /// End that the files come from.
    pub source: End,
    /// `true` if the client stores the files (put); `false` if it fetches them (get).
    pub put: bool,
    /// Side that opens data connections.
    pub mode: Mode,
    /// `true` if the client asks for the server's system (SYST) after the login.
    pub syst: bool,
    /// Sizes of the files in octets.
    pub files: Vec<u64>,
    /// Time from the end of one file to the beginning of the next.
    pub gap: Span,
    /// Number of the flow's terminal, which decides the address.
    pub terminal: u32,
    /// Seeds of ports and sequence numbers: the client's, and the server's.
    pub seeds: [u64; 2],
}

/// Times of one file. They are in seconds from the flow's start, and absent where they were not reached.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct FtpFile {
    /// Size in octets.
    pub octets: u64,
    /// Time of the client's first command for the file.
    pub requested_s: Option<f64>,
    /// Time at which the client asked for the file (RETR), or offered it (STOR).
    pub commanded_s: Option<f64>,
    /// Start of the client's clock: the data connection was open and the preliminary reply had come.
    pub clock_started_s: Option<f64>,
    /// Final reading of the client's clock: until the whole file was received (get), or was in the send buffer (put).
    pub client_time_s: Option<f64>,
    /// Time at which the whole file had arrived.
    pub delivered_s: Option<f64>,
    /// Time at which the client knew that the file was done.
    pub completed_s: Option<f64>,
}

impl FtpFile {
    /// Returns the seconds from the start of the client's clock until the whole file had arrived.
    pub fn delivery_time_s(&self) -> Option<f64> {
        Some(self.delivered_s? - self.clock_started_s?)
    }
}

/// Counters and times of an FTP session. Times are in seconds from the flow's start.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FtpReport {
    /// Counters of the sending ends of the data connections.
    #[serde(flatten)]
    pub tcp: TcpReport,
    /// Time at which the login was complete.
    pub login_s: Option<f64>,
    /// Time at which the session was over: the reply to QUIT had come.
    pub session_s: Option<f64>,
    /// Segments that the client sent on the control connection, including acknowledgments.
    pub control_segments: u64,
    /// Mean final reading of the client's clock; absent until every file is transferred.
    pub client_time_s: Option<f64>,
    /// Mean time from the start of the client's clock until a file had arrived; absent until every file is transferred.
    pub delivery_time_s: Option<f64>,
    /// Files, in the order in which they were transferred.
    pub files: Vec<FtpFile>,
}

/// State of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    size: u64,
    report: Option<FileReport>,
    /// Time at which the server had the whole file.
    stored: Option<Time>,
}

/// FTP session: login, files, QUIT. The receiving side consumes a file at once.
#[derive(Clone, Debug)]
pub struct Ftp {
    client: Client,
    server: Server,
    /// Addresses of segments to the client and to the server; the segments hold the ports.
    to_client: Arrival,
    to_server: Arrival,
    /// End at which the client is.
    at: End,
    put: bool,
    files: Vec<Known>,
    /// Index of the file that each request of the server is about.
    requests: BTreeMap<FileId, usize>,
    start: Time,
    /// Octets that had arrived when the flow was stopped.
    stopped: Option<u64>,
    completed: Option<Time>,
}

impl Ftp {
    /// Makes a flow that has not started.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn new(config: FtpConfig) -> Result<Self, FtpConfigError> {
        let at = if config.put { config.source } else { config.source.other() };
        let terminal = receiver_address(config.terminal).ip();
        let address = |end| if end == End::Hub { hub_address() } else { terminal };
        let [own, other] = [at, at.other()].map(address);
        let [to_client, to_server] =
            [(other, own), (own, other)].map(|(from, to)| Arrival::new((from, 0).into(), (to, 0).into()));
        let client = Client::new(ClientConfig {
            tcp: config.tcp.clone(),
            mode: config.mode,
            syst: config.syst,
            gap: config.gap,
            patience: FOREVER,
            most_waiting: config.files.len().max(1),
            seed: config.seeds[0],
            ..ClientConfig::new(own, other)
        })?;
        let server = Server::new(ServerConfig {
            tcp: config.tcp,
            idle_limit: FOREVER,
            most_sessions: 1,
            seed: config.seeds[1],
            ..ServerConfig::new(other)
        })?;
        let files = config.files.iter().map(|&size| Known { size, ..Known::default() }).collect();
        Ok(Self {
            client,
            server,
            to_client,
            to_server,
            at,
            put: config.put,
            files,
            requests: BTreeMap::new(),
            start: Time::ZERO,
            stopped: None,
            completed: None,
        })
    }

    /// Returns the client's operation on file `number`, whose path is its number.
    fn operation(&self, number: usize) -> Operation {
        let path = number.to_string();
        if self.put {
            Operation::Store { path, size: self.files[number].size, offset: 0 }
        } else {
            Operation::Retrieve { path, offset: 0 }
        }
    }

    /// Returns the octets of files that have arrived in order.
    fn octets(&self) -> u64 {
        if self.put { self.server.octets_received() } else { self.client.octets_received() }
    }

    /// Handles the events of both engines, and answers the server.
    fn heed(&mut self, now: Time) {
        while let Some(event) = self.client.poll_event() {
            self.heed_client(&event);
        }
        while let Some(event) = self.server.poll_event() {
            self.heed_server(now, event);
        }
    }

    fn heed_client(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Finished { file, result: Ok(Completion::File(report)) } => {
                // The client numbers its operations from 0, and has no others.
                if let Some(known) = self.files.get_mut(file.0 as usize) {
                    known.report = Some(*report);
                }
            }
            ClientEvent::Ended(Ok(())) if self.stopped.is_none() => {
                let delivered = (0..self.files.len()).map(|number| self.delivered(number));
                self.completed = delivered.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
            }
            _ => {}
        }
    }

    fn heed_server(&mut self, now: Time, event: ServerEvent) {
        match event {
            ServerEvent::Asked { session, file, request } => {
                let answer = self.answer(file, &request);
                // A session that has ended meanwhile needs no answer.
                let _ = self.server.answer(now, session, answer);
            }
            ServerEvent::Transferred { file, result, .. } => {
                let known = self.requests.remove(&file).and_then(|number| self.files.get_mut(number));
                if let Some((known, report)) = known.zip(result.ok()) {
                    known.stored = report.delivered;
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self, file: FileId, request: &Request) -> Answer {
        let missing = Answer::Refused(Refusal::Missing);
        let (Request::Retrieve { path, .. } | Request::Store { path, .. }) = request else {
            return if matches!(request, Request::Keep { .. }) { Answer::Done } else { missing };
        };
        let number = path.trim_start_matches('/').parse().ok();
        let Some((number, known)) = number.and_then(|n: usize| Some((n, self.files.get(n)?))) else {
            return missing;
        };
        self.requests.insert(file, number);
        if self.put { Answer::Done } else { Answer::Octets(known.size) }
    }

    /// Returns the time at which the whole of file `number` had arrived, once the client knows that the file is done.
    fn delivered(&self, number: usize) -> Option<Time> {
        let known = self.files.get(number)?;
        let report = known.report?;
        if self.put { known.stored } else { report.delivered }
    }

    fn file(&self, number: usize) -> FtpFile {
        let known = self.files[number];
        let since = |at: Time| at.since(self.start).as_secs_f64();
        FtpFile {
            octets: known.size,
            requested_s: known.report.map(|report| since(report.requested)),
            commanded_s: known.report.map(|report| since(report.commanded)),
            clock_started_s: known.report.map(|report| since(report.clock_started)),
            client_time_s: known.report.map(|report| report.client_time().as_secs_f64()),
            delivered_s: self.delivered(number).map(since),
            completed_s: known.report.map(|report| since(report.completed)),
        }
    }

    /// Returns the counters and times so far.
    fn counts(&self) -> FtpReport {
        let data = if self.put { self.client.data_report() } else { self.server.data_report() };
        let session = self.client.session();
        let files: Vec<FtpFile> = (0..self.files.len()).map(|number| self.file(number)).collect();
        let mean = |value: fn(&FtpFile) -> Option<f64>| {
            let all: Option<Vec<f64>> = files.iter().map(value).collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        };
        let ended = session.ended.filter(|_| self.completed.is_some());
        FtpReport {
            tcp: TcpReport {
                segments: data.segments,
                retransmits: data.retransmits,
                timeouts: data.timeouts,
            },
            login_s: session.logged_in.map(|at| at.since(self.start).as_secs_f64()),
            session_s: ended.map(|at| at.since(self.start).as_secs_f64()),
            control_segments: session.control.segments_sent,
            client_time_s: mean(|file| file.client_time_s),
            delivery_time_s: mean(FtpFile::delivery_time_s),
            files,
        }
    }
}

/// Returns the octets of a segment to hand to its receiver: text, or nothing for a file's octets. `None` if the text is
/// gone, which happens only where its receiver no longer needs it.
fn text(contents: Contents<'_>) -> Option<&[u8]> {
    match contents {
        Contents::Octets(octets) => Some(octets),
        Contents::File { .. } => Some(&[]),
        Contents::Gone => None,
    }
}

impl Flow for Ftp {
    fn start(&mut self, now: Time) {
        self.start = now;
        self.client.connect(now);
        for number in 0..self.files.len() {
            // There is room for all of them, and the paths are numbers.
            let _ = self.client.submit(now, self.operation(number));
        }
        self.client.quit(now);
        self.heed(now);
    }

    fn stop(&mut self, now: Time) {
        if self.stopped.is_none() && self.completed.is_none() {
            self.stopped = Some(self.octets());
        }
        self.client.disconnect(now);
        self.heed(now);
    }

    fn handle(&mut self, now: Time, end: End, message: &FlowMessage) {
        let FlowMessage::Tcp(segment) = message else { return };
        // The engines count what they refuse.
        if end == self.at {
            let from = &self.to_client;
            if let Some(octets) = text(self.server.contents(segment, from.destination.ip())) {
                let _ = self.client.handle_octets(now, from, segment, octets);
            }
        } else {
            let from = &self.to_server;
            if let Some(octets) = text(self.client.contents(segment, from.destination.ip())) {
                let _ = self.server.handle_octets(now, from, segment, octets);
            }
        }
        self.heed(now);
    }

    fn refused(&mut self, now: Time, end: End, message: &FlowMessage) {
        let FlowMessage::Tcp(segment) = message else { return };
        if end == self.at {
            self.client.refused(now, segment, self.to_server.destination.ip());
        } else {
            self.server.refused(now, segment, self.to_client.destination.ip());
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.client.handle_timeout(now);
        self.server.handle_timeout(now);
        self.heed(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)> {
        let sent = self.client.poll_transmit(now, now).map(|transmit| (self.at, transmit));
        let sent =
            sent.or_else(|| self.server.poll_transmit(now, now).map(|transmit| (self.at.other(), transmit)));
        sent.map(|(end, transmit)| (end, FlowMessage::Tcp(transmit.message)))
    }

    fn poll_timeout(&self) -> Time {
        let deadlines = self.client.poll_timeout().into_iter().chain(self.server.poll_timeout());
        deadlines.map(|deadline| deadline.at).min().unwrap_or(Time::NEVER)
    }

    fn has_end(&self) -> bool {
        true
    }

    fn completed(&self) -> Option<Time> {
        self.completed
    }

    fn report(&self) -> FlowReport {
        let octets = self.stopped.unwrap_or_else(|| self.octets());
        FlowReport { octets, counts: Counts::Ftp(self.counts()) }
    }
}
