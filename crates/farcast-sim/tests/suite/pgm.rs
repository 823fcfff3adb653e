//! Law 11 for PGM: a population equals single engines. A group gets a file under either rate control.

use farcast_core::random::RandomStream;

use crate::worlds::{replications, scenario};

const PGM: &str = r#"
receivers = 10
time_limit = "1 h"
[link.forward]
rate = "1 Mbit/s"
delay = "250 ms"
per = 0.1
[link.return]
delay = "250 ms"
[protocol]
name = "pgm"
file = "60 kB"
rate = "1 Mbit/s"
segment_size = "500 B"
"#;

#[test]
fn a_population_equals_engines() {
    let (mut naks, mut complete) = (0, 0);
    for seed in 0..30 {
        let mut random = RandomStream::derive(seed, &[]);
        let mut pick = |of: &[&str]| of[random.below(of.len() as u64) as usize].to_owned();
        let settings = [
            format!("receivers={}", pick(&["1", "3", "10", "40"])),
            format!("link.forward.per={}", pick(&["0.02", "0.1", "0.4"])),
            format!("link.return.delay={}", pick(&["1 ms", "250 ms", "700 ms"])),
            format!("protocol.round_trip={}", pick(&["10 ms", "500 ms", "2 s"])),
            format!("protocol.group_size={}", pick(&["2", "1000"])),
            format!("protocol.named={}", pick(&["false", "true"])),
            // A receiver that expects a hundredth of the round trip asks so often that nothing gets through; all
            // sessions end sooner or later.
            format!("time_limit={}", pick(&["3 s", "20 s", "20 s"])),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let together = replications(&scenario(PGM, &settings), seed, 1).remove(0);
        let alone = replications(&scenario(PGM, &settings).with_engines(), seed, 1).remove(0);
        assert_eq!(together, alone, "seed {seed}: {settings:?}");
        let transfer = together.transfer.unwrap();
        naks += transfer.count("naks.sent").unwrap();
        complete += u32::from(transfer.completion_time_s.is_some());
    }
    assert!(naks > 500 && complete > 10, "{naks} {complete}");
}

#[test]
fn a_group_has_its_file_at_a_rate_and_under_congestion_control() {
    for control in ["fixed", "pgmcc"] {
        let control = format!("protocol.rate_control={control}");
        let settings = [control.as_str(), "receivers=20", "protocol.named=true", "link.forward.per=0.01"];
        let one = replications(&scenario(PGM, &settings), 1, 1).remove(0);
        let transfer = one.transfer.unwrap();
        assert_eq!((transfer.incomplete, transfer.completion_time_s.is_some()), (0, true), "{settings:?}");
    }
}
