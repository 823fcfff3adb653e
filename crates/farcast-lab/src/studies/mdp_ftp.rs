//! Muddasani and Horan, "Assessment of the Multicast Dissemination Protocol for Constrained Satellite Channels"
//! (NMSU-ECE-03-002, 2003): the transfers by FTP, and in [`mdp`] those by MDP.
//!
//! Each replication is one session with one file, because the report speaks of single-attempt trials. Parameters that
//! the report leaves open are fixed once for all settings; only the file, the errors of the vector and the frame
//! change.

mod mdp;
mod session;

use farcast_sim::outcome::{FlowCounts, Measure, Replication};
use farcast_sim::scenario::Scenario;
use farcast_stats::Summary;

use crate::shipped;
use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict, rules};

pub(super) const STUDY: Study = Study {
    name: "mdp-ftp",
    citation: "S. Muddasani and S. Horan, Assessment of the Multicast Dissemination Protocol for Constrained \
               Satellite Channels (NMSU-ECE-03-002, 2003)",
    settings: (FILES.len() * CHANNELS.len() + FURTHER.len()) as u64 + mdp::SETTINGS,
    replications: (64, 8),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// The published runs.
const RUNS: &str = include_str!("../../vectors/mdp-ftp/ftp_runs.csv");

const CLOSE: &str = "where no bit is wrong only escapes are drawn, and a mean agrees within 3 %";
const SOME_END: &str = "not all our transfers end within 4 h, so there is no mean";
const ALL_ENDED: &str = "all of the paper's transfers ended, so it has a mean; not all of ours do within 4 h, so there is \
                         none to compare";
const NO_RUNS: &str = "the report as we have it prints no such runs";
const CLIENT_ONLY: &str = "the report has the client's clock only";
const FIGURE: &str = "the report has it in a figure only";

/// Further settings of the link's simulator, tried with 1 MB at a bit error rate of 1e-5 and frames of 1500: the name
/// of each, and its assignments.
const FURTHER: [(&str, &[&str]); 3] = [
    ("BER 1e-5, way back of 2400 bit/s", &["link.stages.serial.return.rate=\"2400 bit/s\""]),
    (
        "BER 1e-5, 5 s each way",
        &["link.stages.serial.forward.delay=\"5 s\"", "link.stages.serial.return.delay=\"5 s\""],
    ),
    (
        "BER 1e-5, cut off for 60 s",
        &["link.stages.serial.forward.start=\"30 s\"", "link.stages.serial.forward.length=\"60 s\""],
    ),
];

/// A file: its name in the table of runs, its size in octets, and its title here.
struct File {
    name: &'static str,
    octets: u32,
    title: &'static str,
}

/// Files. 1 MB is 1000 times 1024 octets: the report's 97.6 % of the channel follows from it (Conclusions).
const FILES: [File; 2] = [File { name: "100K", octets: 102_400, title: "a file of 100 KB" }, LARGE];

const LARGE: File = File { name: "1M", octets: 1_024_000, title: "a file of 1 MB" };

/// A channel with the frame used on it.
struct FramedChannel {
    /// Bit error rate, as the table of runs writes it.
    ber: &'static str,
    /// Errors in a vector of ten million bits (Table 2).
    errors: u32,
    /// MTU in octets.
    frame: u32,
}

impl FramedChannel {
    const fn new(ber: &'static str, errors: u32, frame: u32) -> Self {
        Self { ber, errors, frame }
    }

    fn column(&self) -> String {
        format!("BER {}, frames of {}", self.ber, self.frame)
    }

    /// Returns `true` if FTP may stop here, as the report saw at high bit error rates.
    const fn may_stop(&self) -> bool {
        self.errors >= 100
    }
}

/// Channels. The first three have the frame that Table 3 finds best, and published runs.
const CHANNELS: [FramedChannel; 7] = [
    FramedChannel::new("0", 0, 1500),
    FramedChannel::new("1e-6", 10, 1500),
    FramedChannel::new("1e-5", 100, 650),
    FramedChannel::new("1e-4", 1000, 128),
    FramedChannel::new("1e-5", 100, 1500),
    FramedChannel::new("1e-4", 1000, 650),
    FramedChannel::new("1e-4", 1000, 1500),
];

/// Rate of the channel in (10), in bit/s: that of the report's MDP, not that of the line.
const CHANNEL_BPS: f64 = 88_000.0;

/// Octets of each packet that are not data: IP and TCP headers, and below 12 octets of timestamps.
const IP_AND_TCP: u32 = 40;
const TIMESTAMPS: u32 = 12;

/// Returns the socket's send buffer in octets of data, at frames of `frame` octets.
///
/// Linux 2.4 counts memory. Each segment takes its data and about 350 octets around it: room for headers, and the
/// buffer's own record. The shipped scenario has the data that fits 32 KiB at frames of 1500.
const fn send_buffer(frame: u32) -> u32 {
    const MEMORY: u32 = 32 << 10;
    const AROUND: u32 = 350;
    let data = frame - IP_AND_TCP - TIMESTAMPS;
    MEMORY / (data + AROUND) * data
}

/// Returns the number of packets that fit before the line at frames of `frame` octets, in Linux 2.4. These are four
/// in the device's queue, one that waits for the line, one in framing, and the content of the buffers of the serial
/// driver and of asynchronous PPP.
const fn device_queue(frame: u32) -> u32 {
    const BUFFERS: u32 = 4096 + 256;
    const FRAMING: u32 = 5;
    6 + BUFFERS / (frame + FRAMING)
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let (mut rows, mut ftp) = (Vec::new(), Vec::new());
    for file in &FILES {
        let cells = CHANNELS.iter().map(|channel| FileCell::simulate(runner, file, channel, &[]));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let columns = || CHANNELS.iter().map(FramedChannel::column).zip(&cells);
        let items: [(&str, usize, Item<'_>); 6] = [
            ("client's clock, s", 2, FileCell::client),
            ("client's clock, median, s", 2, FileCell::median),
            ("until the last octet was received, s", 2, FileCell::delivery),
            ("throughput (10), % of 88 kbit/s", 1, FileCell::throughput),
            ("transfers that end within 4 h, %", 1, FileCell::share),
            ("segments sent again", 1, FileCell::again),
        ];
        for (item, decimals, judge) in items {
            for (column, cell) in columns() {
                let place = RowPlace { item, row: file.title, column: &column };
                rows.extend(judge(cell)?.map(|judged| Row::new(STUDY.name, place, decimals, judged)));
            }
        }
        if file.name == LARGE.name {
            for (column, extra) in FURTHER {
                let cell = FileCell::simulate(runner, file, &CHANNELS[4], extra)?;
                let place = RowPlace { item: "client's clock, s", row: file.title, column };
                let judged = cell.client()?.or(cell.median()?);
                rows.extend(judged.map(|judged| Row::new(STUDY.name, place, 2, judged)));
            }
        }
        ftp.push((file.name, cells));
    }
    mdp::rows(runner, &ftp, &mut rows)?;
    Ok(rows)
}

/// Returns the verdict on an item of a cell; `None` if the cell has no such row.
type Item<'a> = fn(&FileCell<'a>) -> Result<Option<Judged>, StudyError>;

/// One file over one channel.
struct FileCell<'a> {
    file: &'a File,
    channel: &'a FramedChannel,
    /// Mean of the published runs, and their number.
    published: Option<(f64, u64)>,
    /// Result of each replication.
    transfers: Vec<Transfer>,
}

/// Result of one transfer. Times are in seconds.
#[derive(Clone, Copy)]
struct Transfer {
    /// Time by the client's clock: until it had written the last octet into the send buffer.
    client: Option<f64>,
    /// Time from the same start until the server had received the last octet.
    delivery: Option<f64>,
    /// Segments that were sent again.
    again: u64,
}

impl<'a> FileCell<'a> {
    /// Simulates the cell, as does
    /// `farcast simulate sgls --set traffic.files.files=.. --set link.stages.serial.forward.vector_errors=..`.
    fn simulate(
        runner: &Runner<'_>,
        file: &'a File,
        channel: &'a FramedChannel,
        extra: &[&str],
    ) -> Result<Self, StudyError> {
        let mut document = shipped::document("sgls")?;
        for setting in settings(file, channel) {
            document.set(&setting)?;
        }
        for setting in extra {
            document.set(setting)?;
        }
        let replications = runner.run(&Scenario::read(&document)?)?;
        let transfers = replications.iter().map(transfer).collect::<Option<_>>().ok_or_else(|| {
            StudyError::Internal(format!("{}: a replication has no file", STUDY.name).into())
        })?;
        let published = published(file, channel).filter(|_| extra.is_empty());
        Ok(Self { file, channel, published, transfers })
    }

    /// Returns the times of all transfers; `None` if one did not end.
    fn times(&self, of: fn(&Transfer) -> Option<f64>) -> Option<Vec<f64>> {
        // The client's clock may have stopped although the data in the buffer never arrived.
        let ended = |one: &Transfer| one.delivery.and(of(one));
        self.transfers.iter().map(ended).collect()
    }

    fn client(&self) -> Result<Option<Judged>, StudyError> {
        let Some(times) = self.times(|one| one.client) else { return Ok(None) };
        let ours = Summary::of(&times)?;
        Ok(Some(match self.published {
            Some((mean, _)) if self.channel.errors == 0 => within_3_percent(mean, &ours),
            Some((mean, runs)) => rules::mean(mean, runs, &ours)?,
            None => rules::unpublished(ours.mean, ours.ci95_half_width, NO_RUNS),
        }))
    }

    /// Returns the verdict on the median, if there is no mean. Transfers that do not end are later than all others.
    fn median(&self) -> Result<Option<Judged>, StudyError> {
        if self.times(|one| one.client).is_some() {
            return Ok(None);
        }
        let ended = self.transfers.iter().map(|one| one.delivery.and(one.client));
        let Some(median) = Measure::of(ended)?.p50 else { return Ok(None) };
        let mut judged = rules::unpublished(median, None, SOME_END);
        if let Some((mean, _)) = self.published {
            judged.published = Some(mean);
            judged.verdict = Verdict::Undetermined;
            judged.rule.sentence = ALL_ENDED;
        }
        Ok(Some(judged))
    }

    fn delivery(&self) -> Result<Option<Judged>, StudyError> {
        let Some(times) = self.times(|one| one.delivery) else { return Ok(None) };
        let ours = Summary::of(&times)?;
        Ok(Some(rules::unpublished(ours.mean, ours.ci95_half_width, CLIENT_ONLY)))
    }

    /// Returns the share of the channel by (10). It follows from the mean time, so it has no interval of its own.
    fn throughput(&self) -> Result<Option<Judged>, StudyError> {
        let Some(times) = self.times(|one| one.client) else { return Ok(None) };
        let bits = 8.0 * f64::from(self.file.octets);
        let percent = 100.0 * bits / Summary::of(&times)?.mean / CHANNEL_BPS;
        Ok(Some(rules::unpublished(percent, None, FIGURE)))
    }

    fn share(&self) -> Result<Option<Judged>, StudyError> {
        if !self.channel.may_stop() {
            return Ok(None);
        }
        let ended = self.transfers.iter().filter(|one| one.delivery.is_some()).count() as u64;
        let all = self.transfers.len() as u64;
        if let Some((_, runs)) = self.published {
            return Ok(Some(rules::share(100.0, runs, ended, all)?));
        }
        let (share, half) = rules::our_share(ended, all)?;
        Ok(Some(rules::unpublished(share, Some(half), NO_RUNS)))
    }

    fn again(&self) -> Result<Option<Judged>, StudyError> {
        let counts: Vec<_> = self.transfers.iter().map(|one| one.again as f64).collect();
        let ours = Summary::of(&counts)?;
        Ok(Some(rules::unpublished(ours.mean, ours.ci95_half_width, "the report does not count them")))
    }
}

/// Returns the assignments that make this cell of the shipped scenario. Some follow the defaults of pppd and Linux
/// 2.4: headers are compressed, the device's queue is short and reports its drops to TCP, and writers are woken late.
fn settings(file: &File, channel: &FramedChannel) -> [String; 9] {
    [
        "time_limit=\"4 h\"".to_owned(),
        format!("traffic.files.files=[\"{} B\"]", file.octets),
        format!("traffic.files.mss=\"{} B\"", channel.frame - IP_AND_TCP),
        format!("traffic.files.send_buffer=\"{} B\"", send_buffer(channel.frame)),
        format!("link.stages.serial.forward.vector_errors={}", channel.errors),
        "link.stages.serial.vj=true".to_owned(),
        format!("link.stages.serial.forward.queue_packets={}", device_queue(channel.frame)),
        "traffic.files.local_congestion=true".to_owned(),
        "traffic.files.write_space=\"third\"".to_owned(),
    ]
}

fn transfer(replication: &Replication) -> Option<Transfer> {
    let FlowCounts::Ftp(report) = &replication.flows.first()?.counts else { return None };
    let file = report.files.first()?;
    let (client, delivery) = (file.client_time_s, file.delivery_time_s());
    Some(Transfer { client, delivery, again: report.tcp.retransmits })
}

/// Returns the mean of the published runs, and their number.
fn published(file: &File, channel: &FramedChannel) -> Option<(f64, u64)> {
    let runs = published_runs(RUNS, file.name, channel.ber, channel.frame)?;
    Some((Summary::of(&runs).ok()?.mean, runs.len() as u64))
}

/// Returns the runs of a table, in the order of their files.
fn published_runs(table: &str, file: &str, ber: &str, frame: u32) -> Option<Vec<f64>> {
    let here = format!("{file},{ber},{frame},");
    let runs = table.lines().find_map(|line| line.strip_prefix(&here))?;
    runs.split(',').map(str::parse).collect::<Result<_, _>>().ok()
}

fn within_3_percent(published: f64, ours: &Summary) -> Judged {
    let within = (0.97 * published, 1.03 * published);
    let agrees = within.0 <= ours.mean && ours.mean <= within.1;
    Judged {
        published: Some(published),
        farcast: ours.mean,
        ci95_half_width: ours.ci95_half_width,
        verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
        rule: Rule { sentence: CLOSE, agrees_within: Some(within) },
    }
}
