//! Test of whether calls of single Iridium channels last exponential times, as the paper has fitted.

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Stage, Time};
use farcast_link::multilink::{Calls, Detection, LinkConfig, Multilink, MultilinkConfig};
use farcast_sim::traffic::FlowMessage;
use farcast_stats::chi_square_exponential;

use crate::study::StudyError;

/// Number of calls that the paper collected.
const CALLS: usize = 394;
/// Number of classes of the test, equally probable under the fitted density. The paper does not give its own.
const CLASSES: u64 = 20;
/// Level of the test.
const LEVEL: f64 = 0.05;
/// Rate of a channel; nothing is sent over it.
const RATE: BitRate = BitRate::from_bps(2400).unwrap();

/// Returns the number of samples, out of `samples` samples of a channel's calls, that the paper's test rejects.
pub(super) fn rejected(seed: u64, samples: u64) -> Result<u64, StudyError> {
    let mut rejected = 0;
    for sample in 0..samples {
        let test = chi_square_exponential(&durations(RandomStream::derive(seed, &[sample]))?, CLASSES)?;
        rejected += u64::from(test.p_value < LEVEL);
    }
    Ok(rejected)
}

/// Returns the durations of the calls of one channel, in minutes.
fn durations(stream: RandomStream) -> Result<Vec<f64>, StudyError> {
    // The time until a modem reports does not count: a call is over when it drops.
    let (between, redial) = (Span::from_secs(50 * 60), Span::from_secs(30));
    let detection = Detection::Carrier { after: Span::ZERO };
    let calls = Some(Calls { time_between_drops: between, redial, detection });
    let link = LinkConfig { calls, ..LinkConfig::new(RATE) };
    let mut bundle = Multilink::<FlowMessage>::new(&MultilinkConfig::new(vec![link]), stream)?;
    let mut now = Time::ZERO;
    while bundle.drops().len() < CALLS {
        now += between * CALLS as u64;
        bundle.handle_timeout(now);
    }
    let mut up = Time::ZERO;
    let mut duration = |at: Time| {
        let lasted = at.since(up).as_secs_f64() / 60.0;
        up = at + redial;
        lasted
    };
    Ok(bundle.drops()[..CALLS].iter().map(|drop| duration(drop.at)).collect())
}
