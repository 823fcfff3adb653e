//! Arbitrary status reports: the number of reported PDUs is bounded, and encoding preserves the report. Arbitrary
//! receivers: their reports list exactly the missing PDUs, within the available room.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use farcast_rlc::format::Format;
use farcast_rlc::pdu::{MODULUS, Pdu, SequenceNumber, Status};
use farcast_rlc::report::{ReportForm, report};
use farcast_rlc::wire;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    octets: Vec<u8>,
    vr_r: u16,
    window: u16,
    room: u16,
    /// Lengths of missing and received runs, in turn.
    runs: Vec<(u8, u8)>,
}

fuzz_target!(|input: Input| {
    read(input.octets.clone());
    write(&input);
});

/// Decodes `octets` as a status PDU of the same size, and encodes it again.
fn read(mut octets: Vec<u8>) {
    let format = Format::new(octets.len().min(usize::from(u16::MAX)) as u16);
    if format.check().is_err() {
        return;
    }
    octets[0] &= 0x0F;
    let Ok(Pdu::Status(status)) = wire::decode(&octets, format) else { return };
    assert!(status.octets() <= octets.len());
    for field in &status.fields {
        let named: u32 = field.missing().map(|(_, count)| u32::from(count)).sum();
        assert!(named <= u32::from(MODULUS));
    }
    let mut again = vec![0; octets.len()];
    let pdu: Pdu<Vec<u8>> = Pdu::Status(status.clone());
    wire::encode(&pdu, format, &mut again).expect("what was decoded can be encoded");
    assert_eq!(wire::decode(&again, format), Ok(Pdu::Status(status)));
}

fn write(input: &Input) {
    let first = SequenceNumber::new(input.vr_r);
    let window = input.window % MODULUS;
    let (mut span, mut runs) = (0, Vec::new());
    for &(missing, received) in &input.runs {
        let (missing, received) = (u16::from(missing) + 1, u16::from(received) + 1);
        if span + missing + received <= window {
            runs.push((span, missing));
            span += missing + received;
        }
    }
    let lacks: BTreeSet<u16> = runs.iter().flat_map(|&(start, count)| start..start + count).collect();
    let room = 48 + usize::from(input.room % 4096);
    for form in [ReportForm::List, ReportForm::Bitmap, ReportForm::RelativeList] {
        let missing = runs.iter().map(|&(start, count)| (first.plus(start), count));
        let reports = report(form, first, first.plus(span), window, missing, room);
        let named: BTreeSet<u16> = reports.iter().flat_map(|status| numbers(status, first)).collect();
        assert_eq!(named, lacks);
        let lsn = first.plus(if reports.len() == 1 { span } else { 0 });
        assert!(reports.iter().all(|status| status.bits() <= room && status.ack() == Some(lsn)));
    }
}

fn numbers(status: &Status, base: SequenceNumber) -> Vec<u16> {
    let steps =
        |(first, count): (SequenceNumber, u16)| (0..count).map(move |step| first.plus(step).since(base));
    status.missing().flat_map(steps).collect()
}
