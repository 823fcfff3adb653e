//! Any fragments on any links, which join, leave and fall silent: reassembly never panics, stays within its bounds,
//! releases what fragments hold and nothing twice, and always comes to rest.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::{Span, Time};
use farcast_ppp::multilink::{Format, Header, Reassembler, ReassemblyConfig};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Join(u8),
    Leave(u8),
    /// Content of a frame: header and fragment.
    Octets {
        link: u8,
        octets: Vec<u8>,
    },
    /// Valid header with a number near the last one, which random octets seldom contain.
    Near {
        link: u8,
        ahead: i8,
        begins: bool,
        ends: bool,
        octets: u8,
    },
    Wait(u16),
}

const MOST_FRAGMENTS: u32 = 32;
const MOST_OCTETS: u64 = 2000;
const MRRU: u16 = 300;

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok((short, idle)) = <(bool, u8)>::arbitrary(&mut input) else { return };
    let format = if short { Format::Short } else { Format::Long };
    let idle = (idle > 0).then(|| Span::from_millis(idle.into()));
    let bounds =
        ReassemblyConfig { mrru: MRRU, most_fragments: MOST_FRAGMENTS, most_octets: MOST_OCTETS, idle };
    let mut reassembler = Reassembler::new(bounds, format).expect("valid");
    let (mut now, mut near, mut counted) = (Time::ZERO, 0u64, 0);
    let (mut taken, mut released) = (0, 0);
    while !input.is_empty() {
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        match step {
            Step::Join(link) => reassembler.join(now, link.into()),
            Step::Leave(link) => reassembler.leave(now, link.into()),
            Step::Octets { link, octets } => {
                let Ok((header, fragment)) = Header::decode(format, &octets) else { continue };
                assert_eq!(header.encode(format)[..], octets[..format.octets()]);
                let took = reassembler.receive(now, link.into(), header, fragment.to_vec());
                taken += if took.is_ok() { fragment.len() } else { 0 };
                counted += 1;
            }
            Step::Near { link, ahead, begins, ends, octets } => {
                near = near.saturating_add_signed(ahead.into());
                let header = Header { begins, ends, sequence: format.wrap(near) };
                let took = reassembler.receive(now, (link % 4).into(), header, vec![0; octets.into()]);
                taken += if took.is_ok() { usize::from(octets) } else { 0 };
                counted += 1;
            }
            Step::Wait(millis) => {
                let until = now + Span::from_millis(millis.into());
                while let Some(due) = reassembler.poll_timeout().filter(|&due| due <= until) {
                    assert!(due >= now, "a timer in the past");
                    now = due;
                    reassembler.handle_timeout(now);
                    assert!(
                        reassembler.poll_timeout().is_none_or(|next| next > now),
                        "a timer that stays due"
                    );
                }
                now = until;
            }
        }
        while let Some(packet) = reassembler.poll_packet() {
            assert!(!packet.is_empty() && packet.len() <= usize::from(MRRU) + 2);
            released += packet.len();
        }
        assert!(reassembler.held() <= MOST_FRAGMENTS as usize && reassembler.held_octets() <= MOST_OCTETS);
        assert!(released as u64 + reassembler.held_octets() <= taken as u64);
        let c = reassembler.counters();
        assert_eq!(c.fragments + c.not_member + c.backwards + c.late + c.duplicates, counted);
    }
});
