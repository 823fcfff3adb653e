use super::*;
use proptest::prelude::*;

mod tshark;
mod vectors;

#[test]
fn numbers_wrap_at_24_and_12_bits() {
    for (format, bits) in [(Format::Long, 24), (Format::Short, 12)] {
        let numbers = 1u64 << bits;
        assert_eq!(u64::from(format.largest()), numbers - 1);
        assert_eq!(format.wrap(numbers - 1), (numbers - 1) as u32);
        assert_eq!(format.wrap(3 * numbers + 5), 5);
        // Near the wrap, on both sides.
        assert_eq!(format.unwrap(2, 5 * numbers - 3), Some(5 * numbers + 2));
        assert_eq!(format.unwrap((numbers - 2) as u32, 5 * numbers + 1), Some(5 * numbers - 2));
        // Half the numbers ahead is ahead; one more is behind.
        assert_eq!(format.unwrap((numbers / 2) as u32, 0), Some(numbers / 2));
        assert_eq!(format.unwrap((numbers / 2 + 1) as u32, 0), None, "before the first");
        assert_eq!(format.unwrap((numbers / 2 + 1) as u32, numbers), Some(numbers / 2 + 1));
        assert_eq!(format.unwrap(0, u64::MAX), None, "beyond the last");
    }
}

#[test]
fn what_is_no_header_is_refused() {
    let decode = |format, octets: &'static [u8]| Header::decode(format, octets).map(|(header, _)| header);
    assert_eq!(decode(Format::Long, &[0xC0, 0, 0]), Err(HeaderError::Short(3, 4)));
    assert_eq!(decode(Format::Short, &[0xC0]), Err(HeaderError::Short(1, 2)));
    assert_eq!(decode(Format::Short, &[]), Err(HeaderError::Short(0, 2)));
    for bit in 0..6 {
        let reserved = 1 << bit;
        let octets = [0x80 | reserved, 0, 0, 0];
        assert_eq!(Header::decode(Format::Long, &octets), Err(HeaderError::Reserved(reserved)));
    }
    for reserved in [0x10, 0x20, 0x30] {
        let octets = [0x40 | reserved, 0];
        assert_eq!(Header::decode(Format::Short, &octets), Err(HeaderError::Reserved(reserved)));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(begins: bool, ends: bool, count: u64, rest: [u8; 3]) {
        for format in [Format::Long, Format::Short] {
            let header = Header { begins, ends, sequence: format.wrap(count) };
            let mut octets = header.encode(format);
            prop_assert_eq!(octets.len(), format.octets());
            octets.extend(rest);
            prop_assert_eq!(Header::decode(format, &octets), Ok((header, &rest[..])));
        }
    }

    #[test]
    fn a_count_is_found_again_from_anywhere_near(count in 0u64..1 << 40, skew in -2047i64..=2048) {
        for format in [Format::Long, Format::Short] {
            let near = count.saturating_add_signed(-skew);
            prop_assert_eq!(format.unwrap(format.wrap(count), near), Some(count));
        }
    }
}
