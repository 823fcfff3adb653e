//! Small scenarios that together lead to every key.

/// A scenario to read.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Name of the sample in sections.
    pub name: &'static str,
    /// Text in TOML.
    pub text: &'static str,
}

/// Files that samples refer to.
pub const ATTACHED: [(&str, &str); 3] = [
    ("losses.txt", "00010\n01000\n"),
    ("rates.trace", "1\n2\n3\n"),
    ("timeline.csv", "time_s,rate_bit_per_s,delay_s\n0,1e6,0.25\n"),
];

/// All samples.
pub const SAMPLES: &[Sample] = &[
    Sample { name: "star", text: STAR },
    Sample { name: "groups", text: GROUPS },
    Sample { name: "tree", text: TREE },
    Sample { name: "pipe", text: PIPE },
    Sample { name: "losses", text: LOSSES },
    Sample { name: "other losses", text: OTHER_LOSSES },
    Sample { name: "hold", text: HOLD },
    Sample { name: "trace", text: TRACE },
    Sample { name: "timeline", text: TIMELINE },
    Sample { name: "bgan forward", text: BGAN_FORWARD },
    Sample { name: "bgan return", text: BGAN_RETURN },
    Sample { name: "ppp", text: PPP },
    Sample { name: "multilink", text: MULTILINK },
    Sample { name: "other multilink", text: OTHER_MULTILINK },
    Sample { name: "umts", text: UMTS },
    Sample { name: "mftp", text: MFTP },
    Sample { name: "norm", text: NORM },
    Sample { name: "mdp", text: MDP },
    Sample { name: "one-way", text: ONE_WAY },
    Sample { name: "pgm", text: PGM },
    Sample { name: "other pgm", text: OTHER_PGM },
    Sample { name: "tcp", text: TCP },
    Sample { name: "ftp", text: FTP },
    Sample { name: "cbr", text: CBR },
];

const STAR: &str = r#"
receivers = 2
protocol = { file = "1 MB", rate = "500 kbit/s" }
link = { forward.delay = "250 ms", return.delay = "250 ms" }
[[programs]]
name = "p"
on = "hub"
command = "true"
[tune]
[[tune.case]]
name = "c"
set = ["receivers=4"]
"#;

const GROUPS: &str = r#"
protocol = { file = "1 MB", rate = "500 kbit/s" }
[[groups]]
name = "g"
receivers = 2
"#;

const TREE: &str = r#"
protocol = { name = "pgm", file = "1 MB", rate = "500 kbit/s" }
[[node]]
name = "s"
kind = "source"
[[node]]
name = "e"
kind = "element"
[[node]]
name = "p"
kind = "repairer"
[[node]]
name = "w"
kind = "router"
[[node]]
name = "r"
kind = "receiver"
[[node]]
name = "h"
kind = "host"
[[edge]]
name = "a"
from = "s"
to = ["e"]
link.forward = { rate = "2 Mbit/s", delay = "250 ms" }
[[edge]]
name = "b"
from = "e"
to = ["p", "w"]
[[edge]]
name = "c"
from = "w"
to = ["r", "h"]
[[flow]]
name = "f"
protocol = "cbr"
from = "s"
to = "h"
rate = "1 Mbit/s"
"#;

const PIPE: &str = r#"
[link.forward]
kind = "pipe"
[link.return]
kind = "pipe"
[[link.stages]]
name = "s"
kind = "pipe"
direction = "forward"
"#;

const LOSSES: &str = r#"
[link.forward]
ber = 1e-6
gilbert_elliott = { p = 0.1, r = 0.5 }
outages = { start = "1 s", length = "1 s" }
error_vector = "00010"
[link.return]
ber = 1e-6
gilbert_elliott = { p = 0.1, r = 0.5 }
outages = { start = "1 s", length = "1 s" }
error_vector = "00010"
"#;

const OTHER_LOSSES: &str = r#"
[link.forward]
gilbert_elliott = { good = "1 s", bad = "1 s" }
outages = { between = "10 s", length = "1 s" }
error_vector_file = "losses.txt"
[link.return]
gilbert_elliott = { good = "1 s", bad = "1 s" }
outages = { between = "10 s", length = "1 s" }
error_vector_file = "losses.txt"
"#;

const HOLD: &str = r#"
[link.forward]
kind = "hold"
start = "1 s"
length = "1 s"
[link.return]
kind = "hold"
start = "1 s"
length = "1 s"
[[link.stages]]
name = "s"
kind = "hold"
direction = "forward"
start = "1 s"
length = "1 s"
"#;

const TRACE: &str = r#"
[link.forward]
kind = "trace"
trace = "rates.trace"
[link.return]
kind = "trace"
trace = "rates.trace"
[[link.stages]]
name = "s"
kind = "trace"
direction = "forward"
trace = "rates.trace"
"#;

const TIMELINE: &str = r#"
[link.forward]
kind = "timeline"
timeline = "timeline.csv"
[link.return]
kind = "timeline"
timeline = "timeline.csv"
[[link.stages]]
name = "s"
kind = "timeline"
direction = "forward"
timeline = "timeline.csv"
"#;

const BGAN_FORWARD: &str = r#"
[link.forward]
kind = "bgan"
[[link.stages]]
name = "s"
kind = "bgan"
direction = "forward"
"#;

const BGAN_RETURN: &str = r#"
[link.return]
kind = "bgan"
[[link.stages]]
name = "s"
kind = "bgan"
direction = "return"
"#;

const PPP: &str = r#"
[[link.stages]]
name = "s"
kind = "ppp"
forward = { rate = "64 kbit/s" }
return = { rate = "64 kbit/s" }
"#;

const MULTILINK: &str = r#"
[[link.stages]]
name = "s"
kind = "multilink"
links = 4
rate = "2400 bit/s"
"#;

/// Sample that shows the defaults that follow from the rate.
const OTHER_MULTILINK: &str = r#"
[[link.stages]]
name = "s"
kind = "multilink"
links = 4
rate = "9600 bit/s"
"#;

const UMTS: &str = r#"
[[link.stages]]
name = "s"
kind = "umts"
forward = { rate = "384 kbit/s" }
return = { rate = "64 kbit/s" }
"#;

const MFTP: &str = r#"
receivers = 2
[protocol]
name = "mftp"
file = "1 MB"
rate = "500 kbit/s"
"#;

const NORM: &str = r#"
receivers = 2
[protocol]
name = "norm"
file = "1 MB"
rate = "500 kbit/s"
"#;

const MDP: &str = r#"
receivers = 1
[protocol]
name = "mdp"
file = "1 MB"
rate = "500 kbit/s"
"#;

const ONE_WAY: &str = r#"
receivers = 2
[protocol]
name = "one-way"
file = "1 MB"
rate = "500 kbit/s"
"#;

const PGM: &str = r#"
receivers = 2
[protocol]
name = "pgm"
file = "1 MB"
rate = "500 kbit/s"
source = {}
receiver = {}
element = {}
repairer = {}
"#;

/// Sample that shows the defaults that follow from the round trip.
const OTHER_PGM: &str = r#"
receivers = 2
protocol = { name = "pgm", file = "1 MB", rate = "500 kbit/s", round_trip = "800 ms" }
"#;

const TCP: &str = r#"
[[traffic]]
name = "f"
protocol = "tcp"
[link.forward]
delay = "250 ms"
"#;

const FTP: &str = r#"
[[traffic]]
name = "f"
protocol = "ftp"
size = "1 MB"
[link.forward]
delay = "250 ms"
"#;

const CBR: &str = r#"
[[traffic]]
name = "f"
protocol = "cbr"
rate = "1 Mbit/s"
"#;
