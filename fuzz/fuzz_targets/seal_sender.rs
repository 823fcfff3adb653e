//! Any datagrams among genuine answers: a sender never panics, takes none that a receiver has not sealed and no one twice,
//! and goes on to take what is genuine.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::Time;
use farcast_fuzz::seal::{Forged, Pair, Said, Way, address};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Said(Said),
    Forged(u8, Forged),
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(way) = Way::arbitrary(&mut input) else { return };
    let mut pair = Pair::new(way);
    pair.say(Time::ZERO, Said::Keys);
    while let (false, Ok(step)) = (input.is_empty(), Step::arbitrary(&mut input)) {
        match step {
            Step::Said(said) => pair.say(Time::ZERO, said),
            Step::Forged(from, forged) => {
                let (mut octets, _) = forged.octets(&pair.up);
                // All that is genuine was taken before.
                assert!(pair.ann.open(address(from), &mut octets).is_err());
            }
        }
    }
    pair.say(Time::ZERO, Said::Keys);
    pair.say(Time::ZERO, Said::Answer);
});
