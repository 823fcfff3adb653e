use super::*;

#[test]
fn sizes_and_what_follows_from_them() {
    for (octets, refused) in [(0, true), (5, true), (6, false), (1505, false), (1506, true), (u16::MAX, true)]
    {
        let checked = Format::new(octets).check();
        assert_eq!(checked, if refused { Err(FormatError::PduOctets(octets)) } else { Ok(()) });
    }
    assert_eq!(Format::new(126).indicator_octets(), 1);
    assert_eq!(Format::new(127).indicator_octets(), 2);
    assert_eq!((Format::new(42).room(None), Format::new(42).room(Some(EndedBefore::Exactly))), (40, 39));
    assert_eq!(Format::new(130).room(Some(EndedBefore::OneOctetShort)), 126);
    assert_eq!((Format::new(42).status_bits(), Format::new(42).piggyback_bits(10)), (336, 72));
    assert_eq!((Format::new(130).piggyback_bits(10), Format::new(130).piggyback_bits(1)), (64, 0));
}

#[test]
fn the_error_names_the_key() {
    let message = std::string::ToString::to_string(&FormatError::PduOctets(3));
    assert_eq!(message, "pdu_octets is 3: it must be 6 to 1505");
}

/// Octets are neither lost nor made: the data, the indicator, the rest and unusable octets add up to the room.
#[test]
fn every_placement_adds_up() {
    for (octets, indicator) in [(42, 1), (130, 2)] {
        let format = Format::new(octets);
        for room in 0..octets {
            for len in 1..usize::from(octets) + 3 {
                let placement = format.place(room, len);
                let room = usize::from(room);
                match placement {
                    Placement::Part { octets } => {
                        assert!(len > room);
                        assert_eq!(usize::from(octets), room);
                    }
                    Placement::Exactly => assert_eq!(len, room),
                    Placement::OneOctetShort => assert_eq!((len + 1, indicator), (room, 2)),
                    Placement::Ends { left } => {
                        let dead = room - len - indicator - usize::from(left);
                        assert!(dead == 0 || (dead, left, indicator) == (1, 0, 2), "{room} {len}");
                        // With indicators of two octets, an SDU never begins in the last octet.
                        assert!(indicator == 1 || left != 1);
                    }
                }
            }
        }
    }
}
