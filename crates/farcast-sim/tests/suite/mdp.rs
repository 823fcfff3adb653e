//! Law 11 for MDP: a population, which wakes its own receivers, equals single engines, which the star wakes.

use farcast_core::random::RandomStream;
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;

use crate::worlds::{replications, scenario};

const MDP: &str = r#"
receivers = 10
time_limit = "1 h"
[link.forward]
rate = "1 Mbit/s"
delay = "250 ms"
per = 0.1
[link.return]
delay = "250 ms"
[protocol]
name = "mdp"
file = "60 kB"
rate = "1 Mbit/s"
segment_size = "500 B"
answers = "sender"
"#;

fn one(scenario: &Scenario, seed: u64) -> Replication {
    replications(scenario, seed, 1).remove(0)
}

#[test]
fn a_population_equals_engines() {
    let (mut nacks, mut complete) = (0, 0);
    for seed in 0..60 {
        let mut random = RandomStream::derive(seed, &[]);
        let mut pick = |of: &[&str]| of[random.below(of.len() as u64) as usize].to_owned();
        let settings = [
            format!("receivers={}", pick(&["1", "3", "10", "40"])),
            format!("link.forward.per={}", pick(&["0.02", "0.1", "0.4"])),
            format!("link.return.delay={}", pick(&["1 ms", "250 ms", "700 ms"])),
            format!("protocol.parity={}", pick(&["0", "3", "20"])),
            format!("protocol.round_trip={}", pick(&["10 ms", "500 ms", "2 s"])),
            format!("protocol.group_size={}", pick(&["2", "1000"])),
            format!("protocol.named={}", pick(&["false", "true"])),
            // Some sessions end while there is much to do.
            format!("time_limit={}", pick(&["3 s", "1 h", "1 h"])),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let together = one(&scenario(MDP, &settings), seed);
        let alone = one(&scenario(MDP, &settings).with_engines(), seed);
        assert_eq!(together, alone, "seed {seed}: {settings:?}");
        let transfer = together.transfer.unwrap();
        nacks += transfer.count("nacks.sent").unwrap();
        complete += u32::from(transfer.completion_time_s.is_some());
    }
    assert!(nacks > 1000 && complete > 20, "{nacks} {complete}");
}
