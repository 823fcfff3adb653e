//! Any octets: decoding never panics, and what decodes encodes to a PDU of the configured size that decodes to the same.
//!
//! The first octet of the input sets the format, so that data PDUs mostly have the right size.
#![no_main]

use farcast_rlc::format::Format;
use farcast_rlc::pdu::Pdu;
use farcast_rlc::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, octets)) = input.split_first() else { return };
    let longer = if choice & 2 == 0 { 0 } else { u16::from(choice >> 4) };
    let pdu_octets = (octets.len() as u16).saturating_add(longer);
    let format = Format { pdu_octets, header_extension: choice & 1 != 0 };
    if format.check().is_err() {
        return;
    }
    let mut again = vec![0; wire::wire_len(format)];
    let Ok(pdu) = wire::decode(octets, format) else { return };
    if let Pdu::Data(data) = &pdu {
        let carried: usize = data.segments.iter().map(|segment| segment.data.len()).sum();
        assert!(carried <= usize::from(format.room(data.ended_before)));
    }
    let len = wire::encode(&pdu, format, &mut again).expect("what was decoded can be encoded");
    assert_eq!(len, usize::from(pdu_octets));
    assert_eq!(wire::decode(&again, format), Ok(pdu));
});
