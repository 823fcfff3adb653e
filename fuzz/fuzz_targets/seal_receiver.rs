//! Any datagrams among genuine ones: a receiver never panics, takes nothing that its sender has not said, nothing but
//! keys and old content twice, and goes on to take what is genuine.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::{Span, Time};
use farcast_fuzz::seal::{Forged, Pair, Said, Way, address};
use farcast_seal::Class;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Said(Said),
    Forged(u8, Forged),
    Wait(u32),
    Close,
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(way) = Way::arbitrary(&mut input) else { return };
    let mut pair = Pair::new(way);
    let (mut now, mut closed) = (Time::ZERO, false);
    pair.say(now, Said::Keys);
    while let (false, Ok(step)) = (input.is_empty(), Step::arbitrary(&mut input)) {
        match step {
            Step::Said(said) => pair.say(now, said),
            Step::Wait(micros) => now += Span::from_micros(micros.into()),
            Step::Close => {
                closed |= pair.bob.sender_of(pair.ann.session()).is_some();
                pair.bob.close(pair.ann.session());
            }
            Step::Forged(from, forged) => {
                let (mut octets, genuine) = forged.octets(&pair.down);
                let _ = pair.bob.wants_key(now, &octets);
                match pair.bob.open(now, address(from), &mut octets) {
                    // Those of an epoch that is known are not looked at.
                    Ok(opened) if opened.class == (Class::Keys { new: false }) => {}
                    // What came before its key.
                    Ok(opened) => assert!(genuine && !closed, "{opened:?}"),
                    Err(_) => {}
                }
            }
        }
    }
    if !closed {
        pair.say(now, Said::Keys);
        let mut control = b"goes on".to_vec();
        pair.ann.seal_control(&mut control).expect("counters are left");
        assert!(pair.bob.open(now, address(1), &mut control).is_ok());
    }
});
