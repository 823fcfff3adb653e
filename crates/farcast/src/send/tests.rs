//! Options of the command line and keys of a scenario reach equal configurations, and so do the defaults of both.

use std::fmt::Debug;
use std::net::SocketAddr;

use farcast_core::Span;
use farcast_mftp::{Group, Pace, Product, SenderConfig as MftpConfig};
use farcast_scenario::document::Document;
use farcast_sim::scenario::{Scenario, mdp, norm, one_way, pgm};
use farcast_transfer::send::{
    OneWayObject, SendJob, SendMdp, SendMftp, SendNorm, SendOneWay, SendPgm, SendProtocol,
};

use crate::cli::{Cli, Command};

const SIZE: u64 = 1_000_000;

fn source() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 6003))
}

/// Returns the job of `farcast send` with these arguments.
fn job(protocol: &str, args: &[&str]) -> SendJob {
    let fixed = ["farcast", "send", "file", "--unsealed", "--to", "239.255.54.2:5402", "--interface", "lo"];
    let by = ["--protocol", protocol];
    let words = fixed.iter().chain(&by).chain(args);
    let cli = Cli::read(words.map(Into::into)).unwrap();
    let Command::Send(args) = cli.command else { panic!("send") };
    args.job
}

/// Returns a scenario with these lines in its `[protocol]`.
fn scenario(protocol: &str, lines: &str) -> Scenario {
    let text = format!("receivers = 3\n[protocol]\nname = \"{protocol}\"\nfile = \"1 MB\"\n{lines}");
    Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap()
}

/// Checks that defaults are the same at each of `rates`, with and without named receivers, and that each pair of options
/// and keys makes the same configuration, which differs from the default one.
#[track_caller]
fn agree<C: PartialEq + Debug>(
    protocol: &str,
    rates: &[&str],
    pairs: &[(&[&str], &str)],
    real: impl Fn(&SendJob) -> C,
    simulated: impl Fn(&Scenario) -> C,
) {
    let simulated = |lines: &str| simulated(&scenario(protocol, lines));
    for rate in rates {
        let keys = simulated(&format!("rate = \"{rate}\""));
        assert_eq!(real(&job(protocol, &["--rate", rate])), keys, "{protocol} at {rate}");
        if protocol != "one-way" {
            let named = simulated(&format!("rate = \"{rate}\"\nnamed = true"));
            assert_eq!(real(&job(protocol, &["--rate", rate, "--receivers", "1,2,3"])), named, "{protocol}");
        }
    }
    for (args, lines) in pairs {
        let keys = simulated(&format!("rate = \"2 Mbit/s\"\n{lines}"));
        assert_ne!(keys, simulated("rate = \"2 Mbit/s\""), "{lines} changes nothing");
        assert_eq!(real(&job(protocol, &[&["--rate", "2 Mbit/s"], *args].concat())), keys, "{args:?}");
    }
}

#[test]
fn norm_is_sent_as_it_is_simulated() {
    let pairs: &[(&[&str], &str)] = &[
        (&["--parity", "16"], "parity = 16"),
        (&["--parity", "off", "--segment-size", "500"], "parity = 0\nsegment_size = \"500 B\""),
        (&["--block-size", "100", "--parity-ahead", "3"], "block_size = 100\nparity_ahead = 3"),
        (&["--expected-loss", "5 %", "--group-size", "50"], "expected_loss = 0.05\ngroup_size = 50"),
        (&["--backoff", "2", "--robust", "9"], "backoff = 2\nrobust = 9"),
        (&["--rtt", "3 s", "--burst", "1 MiB"], "round_trip = \"3 s\"\nburst = \"1 MiB\""),
        (&["--answers", "sender"], "answers = \"sender\""),
    ];
    // The simulator chooses nodes and addresses itself.
    let plain = |config: farcast_norm::SenderConfig| farcast_norm::SenderConfig {
        node: farcast_delivery::nack::NodeId(1),
        instance: 1,
        source: source(),
        group: source(),
        ackers: vec![farcast_delivery::nack::NodeId(1); config.ackers.len()],
        ..config
    };
    let real = |job: &SendJob| {
        let object = farcast_norm::Object {
            kind: farcast_norm::Kind::File,
            size: SIZE,
            info: b"file".to_vec(),
            vouched: None,
        };
        plain(SendNorm::new(job, None).unwrap().configuration(job, vec![object], source(), 1))
    };
    let simulated = |scenario: &Scenario| plain(norm::sender(scenario).unwrap().clone());
    agree("norm", &["2 Mbit/s", "64 kbit/s", "500 Mbit/s"], pairs, real, simulated);
}

#[test]
fn mdp_is_sent_as_it_is_simulated() {
    let pairs: &[(&[&str], &str)] = &[
        (&["--parity", "16"], "parity = 16"),
        (&["--parity", "off", "--segment-size", "500"], "parity = 0\nsegment_size = \"500 B\""),
        (&["--block-size", "100", "--parity-ahead", "3"], "block_size = 100\nparity_ahead = 3"),
        (&["--rtt", "3 s", "--robust", "9"], "round_trip = \"3 s\"\nrobust = 9"),
        (&["--answers", "sender", "--gap", "2 s"], "answers = \"sender\"\ngap = \"2 s\""),
        (&["--counts", "payload"], "counts = \"payload\""),
    ];
    let plain = |config: farcast_mdp::SenderConfig| farcast_mdp::SenderConfig {
        node: farcast_mdp::NodeId(1),
        source: source(),
        group: source(),
        ackers: vec![farcast_mdp::NodeId(1); config.ackers.len()],
        ..config
    };
    let real = |job: &SendJob| {
        let object = farcast_mdp::Object { size: SIZE, info: b"file".to_vec(), vouched: None };
        plain(SendMdp::new(job, None).unwrap().configuration(job, vec![object], source()))
    };
    let simulated = |scenario: &Scenario| plain(mdp::sender(scenario).unwrap().clone());
    agree("mdp", &["2 Mbit/s", "64 kbit/s"], pairs, real, simulated);
}

#[test]
fn pgm_is_sent_as_it_is_simulated() {
    let pairs: &[(&[&str], &str)] = &[
        (&["--segment-size", "500"], "segment_size = \"500 B\""),
        (&["--group-size", "500"], "group_size = 500"),
        (&["--rtt", "3 s", "--burst", "1 MiB"], "round_trip = \"3 s\"\nburst = \"1 MiB\""),
        (&["--spread", "2 s", "--linger", "1 min"], "backoff = \"2 s\"\nlinger = \"1 min\""),
        (&["--cc"], "rate_control = \"pgmcc\""),
        (&["--parity", "auto"], "parity = \"auto\""),
        (&["--parity-ahead", "2", "--block-size", "8"], "parity_ahead = 2\nblock_size = 8"),
    ];
    let plain = |config: farcast_pgm::SenderConfig| farcast_pgm::SenderConfig {
        tsi: farcast_pgm::Tsi { gsi: farcast_pgm::Gsi([0; 6]), port: 1 },
        source: source(),
        group: source(),
        named: vec![farcast_delivery::nack::NodeId(1); config.named.len()],
        ..config
    };
    let real = |job: &SendJob| {
        let object = farcast_pgm::Object { size: SIZE, name: b"file".to_vec(), vouched: None };
        plain(SendPgm::new(job, None).unwrap().configuration(job, vec![object], source()))
    };
    let simulated = |scenario: &Scenario| plain(pgm::sender(scenario).unwrap().clone());
    agree("pgm", &["2 Mbit/s", "64 kbit/s", "500 Mbit/s"], pairs, real, simulated);
}

#[test]
fn one_way_is_sent_as_it_is_simulated() {
    let pairs: &[(&[&str], &str)] = &[
        (&["--overhead", "25"], "overhead_percent = 25"),
        (&["--repeat", "3", "--symbol-size", "500"], "repeat = 3\nsymbol_size = \"500 B\""),
        (&["--for", "90 s"], "for = \"90 s\""),
        (&["--burst", "1 KiB"], "burst = \"1 KiB\""),
    ];
    let plain = |config: farcast_oneway::SenderConfig| farcast_oneway::SenderConfig {
        session: 1,
        id: [1; 32],
        source: source(),
        group: source(),
        ..config
    };
    let real = |job: &SendJob| {
        let object = OneWayObject { id: [1; 32], name: "file".into(), size: SIZE, head: 0 };
        plain(SendOneWay::new(job, None).unwrap().configuration(job, object).unwrap())
    };
    let simulated = |scenario: &Scenario| plain(one_way::sender(scenario).unwrap().clone());
    agree("one-way", &["2 Mbit/s", "64 kbit/s", "500 Mbit/s"], pairs, real, simulated);
}

const FIXED: &str = "pass_wait = \"fixed\"\nnak_timing = \"end_of_first_pass\"";

/// Returns the configuration of MFTP with which `farcast send` with these arguments sends 1 MB.
fn mftp_sent(args: &[&str]) -> MftpConfig {
    let job = job("mftp", args);
    let product = Product { id: [1; 32], size: SIZE, name: "file".into() };
    let server = "10.0.0.1:5402".parse().unwrap();
    SendMftp::new(&job, None).unwrap().configuration(&job, 0, product, server)
}

/// Returns the configuration of MFTP of a scenario with these lines in its `[protocol]`.
fn mftp_simulated(lines: &str) -> MftpConfig {
    scenario("mftp", lines).sender().unwrap().clone()
}

#[test]
fn mftp_at_its_defaults_is_sent_as_it_is_simulated() {
    for rate in ["2 Mbit/s", "64 kbit/s", "500 Mbit/s", "max"] {
        let open = mftp_simulated(&format!("rate = \"{rate}\"\ngroup_limit = 1024"));
        let mut real = mftp_sent(&["--rate", rate]);
        real.transmission = open.transmission;
        assert_eq!(real, open, "{rate}");
        let closed = mftp_simulated(&format!("rate = \"{rate}\"\ngroup = \"closed\""));
        let mut real = mftp_sent(&["--rate", rate, "--receivers", "a,b,c"]);
        // The simulator chooses the receivers' names itself.
        (real.transmission, real.group) = (closed.transmission, closed.group.clone());
        assert!(matches!(&closed.group, Group::Closed(listed) if listed.len() == 3));
        assert_eq!(real, closed, "{rate}, listed");
    }
}

#[test]
fn the_draft_preset_is_the_draft_alone() {
    let draft = mftp_simulated("preset = \"draft\"\nrate = \"1 Mbit/s\"");
    let plain = MftpConfig {
        group: Group::OpenLimited { limit: 1 << 22 },
        pace: Pace::Rate { rate: "1 Mbit/s".parse().unwrap(), overhead: 28, credit: Span::ZERO, granule: 1 },
        ask_twice: false,
        silence: Span::ZERO,
        transfer_limit: Span::from_secs(30 * 24 * 3600),
        ..MftpConfig::new(draft.product.clone(), draft.server, draft.private)
    };
    assert_eq!(draft, plain);
}

#[test]
fn nobody_is_waited_for_where_nobody_registers() {
    let config = mftp_simulated("rate = \"1 Mbit/s\"\ngroup = \"open_unlimited\"\nstart_receivers = 2");
    assert_eq!((config.start.receivers, config.start.after), (None, Some(Span::from_secs(3))));
}

#[test]
fn options_and_keys_of_mftp_are_the_same_settings() {
    for (args, lines) in [
        (&["--parity", "16"][..], "parity = 16"),
        (&["--parity", "off", "--dtu-size", "500 B"], "parity = 0\ndtu_size = \"500 B\""),
        (&["--block-size", "100", "--spread", "2 s"], "block_size = 100\nspread = \"2 s\""),
        (&["--pass-wait", "fixed", "--nak-timing", "end-of-first-pass"], FIXED),
        (&["--rtt", "3 s", "--silence", "9 s"], "round_trip = \"3 s\"\nsilence = \"9 s\""),
        (&["--time-limit", "1 h", "--burst", "1 MiB"], "transfer_limit = \"1 h\"\nburst = \"1 MiB\""),
        (&["--wait-for", "2", "--no-late-entry"], "start_receivers = 2\nlate_entry = false"),
        (
            &["--start-after", "8 s", "--announce-time", "9 s"],
            "start_after = \"8 s\"\nannounce_limit = \"9 s\"",
        ),
        (&["--status-retry", "block+4rtt", "--status-retries", "3"], "[protocol.srt]\nn = 4\nretries = 3"),
        (&["--status-retry", "2 s"], "[protocol.srt]\ntime = \"2 s\""),
    ] {
        let keys = mftp_simulated(&format!("rate = \"2 Mbit/s\"\ngroup_limit = 1024\n{lines}"));
        let mut real = mftp_sent(&[&["--rate", "2 Mbit/s"], args].concat());
        real.transmission = keys.transmission;
        assert_eq!(real, keys, "{args:?}");
    }
}
