//! What repair costs: octets on the wire over those of the file, by how many receive and what they lose, beside what
//! nobody can do without.
//!
//! No paper: the reference is 1/(1 - p), what a receiver that loses a part p of everything must be sent. With many
//! receivers the worst of them decides, so that even an ideal code needs more.

use farcast_scenario::Document;
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;
use farcast_stats::Summary;

use crate::study::{Judged, Row, Rule, Runner, Study, StudyError, Verdict};

pub(super) const STUDY: Study = Study {
    name: "efficiency",
    citation: "octets on the wire over octets of the file, by receivers and losses, beside 1/(1 - p)",
    // Of one way the greatest number is left out.
    settings: (LOSSES.len() * (WAYS.len() * RECEIVERS.len() - 1)) as u64,
    replications: (10, 2),
    columns: ["1/(1 - p)", "farcast"],
    needs: super::nothing,
    reproduce,
};

/// A file of 1 MB, a link of 10 Mbit/s, 250 ms each way, and losses that are independent of one another.
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

/// How many receive. More take memory that a study cannot ask for: `docs/src/efficiency.md` says how to ask for them.
const RECEIVERS: [u32; 5] = [1, 10, 100, 1000, 10_000];

const LOSSES: [f64; 3] = [0.01, 0.05, 0.2];

/// A way to repair.
struct Way {
    name: &'static str,
    /// `[protocol]`.
    protocol: &'static str,
    /// Whether one symbol repairs many losses.
    is_coded: bool,
    /// The most receivers of which it is asked: a sender that keeps account of each of its members takes long for more.
    most: u32,
}

/// Each fits 1,400 octets of the file into a datagram, and knows how many receive, and what they lose, where that is
/// asked for.
const WAYS: [Way; 4] = [
    Way {
        name: "MFTP, repetition",
        protocol: "name = \"mftp\"\nfile = \"1 MB\"\nrate = \"10 Mbit/s\"\ndtu_size = \"1400 B\"\n\
                   group = \"open_unlimited\"\nparity = 0\n",
        is_coded: false,
        most: u32::MAX,
    },
    Way {
        name: "MFTP, automatic parity",
        protocol: "name = \"mftp\"\nfile = \"1 MB\"\nrate = \"10 Mbit/s\"\ndtu_size = \"1400 B\"\n\
                   group = \"open_limited\"\nblock_size = 715\nparity = \"auto\"\n",
        is_coded: true,
        most: 1000,
    },
    Way {
        name: "NORM, reactive",
        protocol: "name = \"norm\"\nfile = \"1 MB\"\nrate = \"10 Mbit/s\"\nsegment_size = \"1400 B\"\n\
                   block_size = 715\nparity_ahead = 0\nexpected_loss = LOSS\ngroup_size = RECEIVERS\n",
        is_coded: true,
        most: u32::MAX,
    },
    Way {
        name: "NORM, automatic",
        protocol: "name = \"norm\"\nfile = \"1 MB\"\nrate = \"10 Mbit/s\"\nsegment_size = \"1400 B\"\n\
                   block_size = 715\nparity_ahead = \"auto\"\nexpected_loss = LOSS\ngroup_size = RECEIVERS\n",
        is_coded: true,
        most: u32::MAX,
    },
];

/// Octets of the file.
const FILE: f64 = 1e6;

const CODED: &str = "with codes, 1,000 receivers take at most 10 % more than the limit";
const UNJUDGED: &str = "the limit is one receiver's; nothing is demanded of these";
const NO_LIMIT: &str = "there is no limit to compare with";

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let (mut ratios, mut requests) = (Vec::new(), Vec::new());
    for way in &WAYS {
        for loss in LOSSES {
            for receivers in RECEIVERS.into_iter().filter(|&receivers| receivers <= way.most) {
                let replications = runner.run(&scenario(way, loss, receivers)?)?;
                let (row, column) = (format!("{way}, {loss} lost", way = way.name), named(receivers));
                let ratio = sum_up(&replications, |one| Some(one.forward.octets as f64 / FILE))?;
                let judged = judge(way, loss, receivers, &ratio);
                ratios.push(Row::new(STUDY.name, (RATIO, &row, &column), 3, judged));
                let nacks = sum_up(&replications, nacks)?;
                let judged = crate::study::rules::unpublished(nacks.mean, nacks.ci95_half_width, NO_LIMIT);
                requests.push(Row::new(STUDY.name, (NACKS, &row, &column), 1, judged));
            }
        }
    }
    ratios.extend(requests);
    Ok(ratios)
}

const RATIO: &str = "octets on the wire over the file's";
const NACKS: &str = "requests for repair";

fn named(receivers: u32) -> String {
    if receivers == 1 { "1 receiver".to_owned() } else { format!("{receivers} receivers") }
}

fn scenario(way: &Way, loss: f64, receivers: u32) -> Result<Scenario, StudyError> {
    let protocol = way.protocol.replace("LOSS", &loss.to_string());
    let protocol = protocol.replace("RECEIVERS", &receivers.to_string());
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

/// Requests that receivers sent; none of them is lost on its way here.
fn nacks(replication: &Replication) -> Option<f64> {
    let transfer = replication.transfer.as_ref()?;
    let count = transfer.count("naks.sent").or_else(|| transfer.count("nacks.sent"))?;
    Some(count as f64)
}

fn judge(way: &Way, loss: f64, receivers: u32, ratio: &Summary) -> Judged {
    let limit = 1.0 / (1.0 - loss);
    let is_judged = way.is_coded && receivers == 1000;
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
