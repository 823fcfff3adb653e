//! The vectors in `vectors/multilink` were written out from RFC 1990 §3 by hand.

use std::vec::Vec;

use crate::multilink::{Format, Header};

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) format: Format,
    /// A PPP frame without its flags and check sequence.
    pub(super) frame: Vec<u8>,
    pub(super) header: Header,
    /// Octets behind the header.
    pub(super) fragment: usize,
}

macro_rules! vector {
    ($format:ident $name:literal, $bits:literal, $sequence:literal, $fragment:literal) => {
        Vector {
            name: $name,
            format: Format::$format,
            frame: parse(include_str!(concat!("../../../../../../vectors/multilink/", $name, ".hex"))),
            header: Header { begins: $bits.contains('B'), ends: $bits.contains('E'), sequence: $sequence },
            fragment: $fragment,
        }
    };
}

/// Hex octets between spaces; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let octets = code.flat_map(str::split_whitespace);
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

/// Every vector with its meaning.
pub(super) fn all() -> Vec<Vector> {
    std::vec![
        vector!(Long "long_whole", "BE", 0, 30),
        vector!(Long "long_first", "B", 0x01_02_03, 10),
        vector!(Long "long_middle", "", 0x01_02_04, 10),
        vector!(Long "long_last", "E", 0x01_02_05, 10),
        vector!(Long "long_highest", "B", 16_777_215, 4),
        vector!(Long "long_null", "BE", 42, 0),
        vector!(Short "short_whole", "BE", 0, 30),
        vector!(Short "short_first", "B", 2748, 10),
        vector!(Short "short_middle", "", 2749, 10),
        vector!(Short "short_last", "E", 4095, 10),
    ]
}

#[test]
fn the_codec_agrees_with_the_vectors() {
    for Vector { name, format, frame, header, fragment } in all() {
        let octets = frame.strip_prefix(&[0xFF, 0x03, 0x00, 0x3D]).expect("a multilink frame");
        let (read, rest) = Header::decode(format, octets).expect(name);
        assert_eq!((read, rest.len()), (header, fragment), "{name}");
        assert_eq!(header.encode(format)[..], octets[..format.octets()], "{name}");
    }
}

#[test]
fn every_file_is_a_vector() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/multilink");
    let files = std::fs::read_dir(directory).expect("the directory of vectors").count();
    assert_eq!(files, all().len());
}
