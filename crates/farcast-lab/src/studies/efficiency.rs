//! Study of the cost of repair: octets on the wire over those of the file, by number of receivers and loss, beside
//! the least that is possible.
//!
//! There is no paper: the reference is 1/(1 - p), the amount to send to a receiver that loses a part p of everything.
//! With many receivers the unluckiest one decides, so that even an ideal code needs more. A row of its own shows that
//! amount.

mod ideal;

use farcast_scenario::Document;
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;
use farcast_stats::Summary;

use crate::study::rules::unpublished;
use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict};

pub(super) const STUDY: Study = Study {
    name: "efficiency",
    citation: "octets on the wire over octets of the file, by receivers and losses, beside 1/(1 - p)",
    // Two ways leave out the greatest number of receivers; the longer file is sent to one number of receivers.
    settings: (LOSSES.len() * (WAYS.len() * (RECEIVERS.len() + 1) - 2)) as u64,
    replications: (10, 2),
    columns: ["1/(1 - p)", "farcast"],
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// A link of 10 Mbit/s, 250 ms each way, with independent losses.
const SCENARIO: &str = "\
receivers = 1
time_limit = \"4 h\"

[link.forward]
rate = \"10 Mbit/s\"
delay = \"250 ms\"
per = 0.01

[link.return]
delay = \"250 ms\"
";

/// Numbers of receivers. Larger groups take more memory than a study may ask for; see `docs/src/efficiency.md`.
const RECEIVERS: [u32; 5] = [1, 10, 100, 1000, 10_000];

const LOSSES: [f64; 3] = [0.01, 0.05, 0.2];

/// Number of receivers at which the ways are judged.
const JUDGED: u32 = 1000;

/// A file to send.
struct File {
    table: &'static str,
    octets: f64,
    /// Value of `protocol.file`.
    size: &'static str,
    /// Number of segments of 1,400 octets.
    segments: u32,
    /// Block size in segments: the longest with which MFTP sends parity before any request and which divides the file
    /// evenly.
    mftp_block: &'static str,
}

/// File for all numbers of receivers.
const SHORT: File = File {
    table: "octets on the wire over the file's 1 MB",
    octets: 1e6,
    size: "1 MB",
    segments: 715,
    mftp_block: "715",
};

/// File for the number of receivers that is judged: with a longer file, the loss of the unluckiest receiver is nearer
/// to the mean.
const LONG: File = File {
    table: "octets on the wire over the file's 10 MB",
    octets: 1e7,
    size: "10 MB",
    segments: 7143,
    mftp_block: "1430",
};

/// A protocol and its way of repair.
struct RepairMethod {
    name: &'static str,
    /// Table `[protocol]` of the scenario.
    protocol: &'static str,
    /// True if one symbol repairs many losses.
    is_coded: bool,
    /// True if receivers can ask for repair.
    asks: bool,
    /// Most receivers. A sender that tracks each of its members takes long for more, and so do receivers with an
    /// engine each.
    most: u32,
}

/// Ways to compare. Each puts 1,400 octets of the file into a datagram, and gets the number of receivers and the loss
/// as settings if it has such settings.
const WAYS: [RepairMethod; 6] = [
    RepairMethod {
        name: "MFTP, repetition",
        protocol: "name = \"mftp\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\ndtu_size = \"1400 B\"\n\
                   group = \"open_unlimited\"\nparity = 0\n",
        is_coded: false,
        asks: true,
        most: u32::MAX,
    },
    RepairMethod {
        name: "MFTP, automatic parity",
        protocol: "name = \"mftp\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\ndtu_size = \"1400 B\"\n\
                   group = \"open_limited\"\nblock_size = BLOCK\nparity = \"auto\"\n",
        is_coded: true,
        asks: true,
        most: 1000,
    },
    RepairMethod {
        name: "MDP",
        protocol: "name = \"mdp\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\nsegment_size = \"1400 B\"\n\
                   CODE\nanswers = \"sender\"\ngroup_size = RECEIVERS\n",
        is_coded: true,
        asks: true,
        most: 1000,
    },
    RepairMethod {
        name: "NORM, reactive",
        protocol: "name = \"norm\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\nsegment_size = \"1400 B\"\n\
                   block_size = SEGMENTS\nparity_ahead = 0\nexpected_loss = LOSS\ngroup_size = RECEIVERS\n",
        is_coded: true,
        asks: true,
        most: u32::MAX,
    },
    RepairMethod {
        name: "NORM, automatic",
        protocol: "name = \"norm\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\nsegment_size = \"1400 B\"\n\
                   block_size = SEGMENTS\nparity_ahead = \"auto\"\nexpected_loss = LOSS\ngroup_size = RECEIVERS\n",
        is_coded: true,
        asks: true,
        most: u32::MAX,
    },
    RepairMethod {
        name: "one way",
        protocol: "name = \"one-way\"\nfile = \"FILE\"\nrate = \"10 Mbit/s\"\nsymbol_size = \"1400 B\"\n\
                   repeat = 1\noverhead_percent = 100\n",
        is_coded: true,
        asks: false,
        most: u32::MAX,
    },
];

/// MDP's code has 255 symbols. These are the longest blocks that leave enough parity for the unluckiest of 1,000.
const MDP_CODES: [(f64, &str); 3] = [
    (0.01, "block_size = 239\nparity = 16"),
    (0.05, "block_size = 220\nparity = 35"),
    (0.2, "block_size = 179\nparity = 76"),
];

/// Rate of the link, in octets per second, and below its delay, in seconds.
const RATE: f64 = 1.25e6;
const DELAY: f64 = 0.25;

const CODED: &str = "with codes, 1,000 receivers take at most 10 % more than the limit";
const UNJUDGED: &str = "the limit is one receiver's; nothing is demanded of these";
const WITHOUT: &str = "closed form: the unluckiest receiver of a code over the whole file, without headers";
const NO_LIMIT: &str = "there is no limit to compare with";

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let mut requests = Vec::new();
    let mut tables =
        [(&SHORT, &RECEIVERS[..]), (&LONG, &[JUDGED])].map(|(file, all)| (file, all, Vec::new()));
    for (file, all, rows) in &mut tables {
        for loss in LOSSES {
            for &receivers in *all {
                let (row, column) = (format!("an ideal code, {loss} lost"), named(receivers));
                let ideal = ideal::symbols(file.segments, loss, receivers) / f64::from(file.segments);
                let judged = Judged { published: Some(limit(loss)), ..unpublished(ideal, None, WITHOUT) };
                rows.push(Row::new(
                    STUDY.name,
                    RowPlace { item: file.table, row: &row, column: &column },
                    3,
                    judged,
                ));
            }
        }
        for way in &WAYS {
            for loss in LOSSES {
                for &receivers in all.iter().filter(|&&receivers| receivers <= way.most) {
                    let replications = runner.run(&scenario(way, file, loss, receivers)?)?;
                    let (row, column) = (format!("{way}, {loss} lost", way = way.name), named(receivers));
                    let ratio = sum_up(&replications, |one| Some(octets(way, one)? / file.octets))?;
                    let judged = judge(way, loss, receivers, &ratio);
                    rows.push(Row::new(
                        STUDY.name,
                        RowPlace { item: file.table, row: &row, column: &column },
                        3,
                        judged,
                    ));
                    if way.asks && file.size == SHORT.size {
                        let nacks = sum_up(&replications, nacks)?;
                        let judged = unpublished(nacks.mean, nacks.ci95_half_width, NO_LIMIT);
                        requests.push(Row::new(
                            STUDY.name,
                            RowPlace { item: NACKS, row: &row, column: &column },
                            1,
                            judged,
                        ));
                    }
                }
            }
        }
    }
    Ok(tables.into_iter().flat_map(|(.., rows)| rows).chain(requests).collect())
}

const NACKS: &str = "requests for repair";

fn named(receivers: u32) -> String {
    if receivers == 1 { "1 receiver".to_owned() } else { format!("{receivers} receivers") }
}

/// Returns the amount to send, as a multiple of the file, to a receiver that loses a part `loss`.
fn limit(loss: f64) -> f64 {
    1.0 / (1.0 - loss)
}

fn scenario(way: &RepairMethod, file: &File, loss: f64, receivers: u32) -> Result<Scenario, StudyError> {
    let code = MDP_CODES.iter().find(|&&(of, _)| loss.total_cmp(&of).is_eq()).map_or("", |&(_, code)| code);
    let protocol = [
        ("FILE", file.size),
        ("BLOCK", file.mftp_block),
        ("SEGMENTS", &file.segments.to_string()),
        ("CODE", code),
        ("LOSS", &loss.to_string()),
        ("RECEIVERS", &receivers.to_string()),
    ]
    .into_iter()
    .fold(way.protocol.to_owned(), |protocol, (key, value)| protocol.replace(key, value));
    let mut document = Document::parse(STUDY.name, &format!("{SCENARIO}\n[protocol]\n{protocol}"))?;
    document.set(&format!("receivers={receivers}"))?;
    document.set(&format!("link.forward.per={loss}"))?;
    Ok(Scenario::read(&document)?)
}

fn sum_up(
    replications: &[Replication],
    of: impl Fn(&Replication) -> Option<f64>,
) -> Result<Summary, StudyError> {
    let numbers = replications.iter().map(of).collect::<Option<Vec<f64>>>().ok_or_else(|| {
        StudyError::Internal(format!("{}: a replication has no such number", STUDY.name).into())
    })?;
    if replications.iter().any(|one| one.completion_time_s.is_none()) {
        let text = format!("{}: somebody did not get the file within 4 h", STUDY.name);
        return Err(StudyError::Internal(text.into()));
    }
    Ok(Summary::of(&numbers)?)
}

/// Returns the octets that were sent. A one-way sender cannot know when to end. Its octets are those up to the one
/// that completes the last receiver, at the link's rate since the first symbol.
fn octets(way: &RepairMethod, replication: &Replication) -> Option<f64> {
    if way.asks {
        return Some(replication.forward.octets as f64);
    }
    let begun = replication.transfer.as_ref()?.data_begins_s?;
    Some((replication.completion_time_s? - begun - DELAY) * RATE)
}

/// Returns the number of requests that receivers sent; the link of this study loses none of them.
fn nacks(replication: &Replication) -> Option<f64> {
    let transfer = replication.transfer.as_ref()?;
    let count = transfer.count("naks.sent").or_else(|| transfer.count("nacks.sent"))?;
    Some(count as f64)
}

fn judge(way: &RepairMethod, loss: f64, receivers: u32, ratio: &Summary) -> Judged {
    let limit = limit(loss);
    let is_judged = way.is_coded && receivers == JUDGED;
    let agrees = ratio.mean <= 1.1 * limit;
    Judged {
        published: Some(limit),
        farcast: ratio.mean,
        ci95_half_width: ratio.ci95_half_width,
        verdict: match (is_judged, agrees) {
            (false, _) => Verdict::NotPublished,
            (true, true) => Verdict::Agrees,
            (true, false) => Verdict::Differs,
        },
        rule: if is_judged {
            Rule { sentence: CODED, agrees_within: Some((limit, 1.1 * limit)) }
        } else {
            Rule { sentence: UNJUDGED, agrees_within: None }
        },
    }
}
