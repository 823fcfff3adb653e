use proptest::prelude::*;
use std::vec::Vec;

use crate::lcp::{Code, ConfigurationOption, ECHO_OCTETS, LcpError, Packet, echo};

#[test]
fn lengths_and_codes_are_checked() {
    for (octets, error) in [
        (&[][..], LcpError::Short(0)),
        (&[9, 0, 0], LcpError::Short(3)),
        (&[9, 0, 0, 3], LcpError::Length(3)),
        (&[9, 0, 0, 9, 1, 2, 3, 4], LcpError::Length(9)),
        (&[9, 0, 0xFF, 0xFF, 1, 2, 3, 4], LcpError::Length(0xFFFF)),
        (&[0, 0, 0, 4], LcpError::Code(0)),
        (&[12, 0, 0, 4], LcpError::Code(12)),
        (&[9, 0, 0, 7, 1, 2, 3, 4], LcpError::Short(7)),
        (&[11, 0, 0, 4], LcpError::Short(4)),
        (&[8, 0, 0, 5, 1], LcpError::Short(5)),
    ] {
        assert_eq!(Packet::parse(octets), Err(error), "{octets:?}");
    }
    // What is behind the length is padding.
    let padded = Packet::parse(&[5, 1, 0, 5, 7, 9, 9]).expect("good");
    assert_eq!((padded.code, padded.data), (Code::TerminateRequest, &[7][..]));
}

#[test]
fn options_are_checked_before_any_is_used() {
    let request = |options: &[u8]| {
        let mut octets = std::vec![1, 0, 0, 4 + options.len() as u8];
        octets.extend(options);
        Packet::parse(&octets)
            .map(|packet| packet.options().map(|o| std::format!("{o:?}")).collect::<Vec<_>>())
    };
    for (options, kind) in [
        (&[3][..], 3),
        (&[3, 0], 3),
        (&[3, 1], 3),
        (&[3, 3], 3),
        (&[7, 2, 1, 3, 5], 1),
        (&[2, 5, 0, 0, 0], 2),
        (&[5, 2], 5),
        (&[7, 3, 0], 7),
        (&[8, 4, 0, 0], 8),
        (&[17, 3, 0], 17),
        (&[18, 3, 0], 18),
    ] {
        assert_eq!(request(options), Err(LcpError::OptionLength(kind)), "{options:?}");
    }
    let known = request(&[17, 4, 0x05, 0xDC, 18, 2, 19, 5, 3, 1, 2]);
    let meant = ["Ok(Mrru(1500))", "Ok(ShortSequence)", "Ok(Other(19, [3, 1, 2]))"];
    assert_eq!(known.expect("good"), meant);
    // A Configure-Reject has options too, an Echo-Request never.
    assert!(Packet::parse(&[4, 0, 0, 5, 1]).is_err());
    let octets = echo(Code::EchoRequest, 1, 0x0101_0101);
    assert_eq!(Packet::parse(&octets).expect("good").options().count(), 0);
}

#[test]
fn data_beyond_the_length_field_is_cut_off() {
    let data = std::vec![1; 70_000];
    let mut out = Vec::new();
    Packet { code: Code::DiscardRequest, identifier: 1, data: &data }.emit(&mut out);
    assert_eq!((out.len(), &out[..4]), (65_535, &[11, 1, 0xFF, 0xFF][..]));
    assert_eq!(Packet::parse(&out).expect("good").data.len(), 65_531);
}

proptest! {
    #[test]
    fn what_is_written_is_read(code in 1_u8..=11, identifier: u8, data in proptest::collection::vec(any::<u8>(), 4..40)) {
        let code = Code::new(code).expect("known");
        // Of configuration packets the data are options: one that is unknown.
        let data = if code as u8 <= 4 { [&[0xF0, data.len() as u8 + 2], &data[..]].concat() } else { data };
        let packet = Packet { code, identifier, data: &data };
        let mut out = Vec::new();
        packet.emit(&mut out);
        prop_assert_eq!(Packet::parse(&out), Ok(packet));
    }

    /// Options of a packet that was taken lie behind one another and fill it.
    #[test]
    fn any_octets_are_taken_or_refused(mut octets in proptest::collection::vec(0_u8..20, 0..40), fit: bool) {
        if fit && octets.len() >= 4 {
            (octets[0], octets[2], octets[3]) = (octets[0] % 4 + 1, 0, octets.len() as u8);
        }
        if let Ok(packet) = Packet::parse(&octets) {
            prop_assert!(packet.data.len() + 4 <= octets.len());
            let lengths = packet.options().map(|option| match option.expect("checked") {
                ConfigurationOption::Mru(_) | ConfigurationOption::Mrru(_) => 4,
                ConfigurationOption::Accm(_) | ConfigurationOption::MagicNumber(_) => 6,
                ConfigurationOption::Pfc | ConfigurationOption::Acfc | ConfigurationOption::ShortSequence => 2,
                ConfigurationOption::Other(_, data) => 2 + data.len(),
            });
            let configures = packet.code as u8 <= 4;
            prop_assert_eq!(lengths.sum::<usize>(), if configures { packet.data.len() } else { 0 });
        }
    }

    #[test]
    fn an_echo_is_the_packet_that_it_says(identifier: u8, magic: u32, reply: bool) {
        let code = if reply { Code::EchoReply } else { Code::EchoRequest };
        let octets = echo(code, identifier, magic);
        let mut out = Vec::new();
        Packet { code, identifier, data: &magic.to_be_bytes() }.emit(&mut out);
        prop_assert_eq!(&octets[..], &out);
        prop_assert_eq!(out.len(), ECHO_OCTETS);
    }
}
