//! The vectors of `vectors/pgm`, most of them captured from OpenPGM, and their meanings.

use std::net::IpAddr;
use std::string::String;
use std::vec;
use std::vec::Vec;

use farcast_fec::{PointSet, ReedSolomon};

use super::encode_whole;
use crate::message::{
    Ack, Body, CcData, Cr, DataKind, Feedback, Fragment, Gsi, Message, Nak, NakKind, Opt, Parity, Poll, Polr,
    Spm, Sqn, Tsi,
};
use crate::wire::{DecodeError, decode, encode, encoded_len, finish};

/// Vectors that OpenPGM sent with a wrong checksum, which is its parity.
const WRONG: [&str; 3] = ["fec_k4_parity_0", "fec_k4_parity_1", "fecvar_k4_parity_0"];

pub(super) struct Vector {
    pub(super) name: String,
    /// The PGM message.
    pub(super) bytes: Vec<u8>,
}

/// Parses hex octets between spaces; `#` begins a comment.
fn parse(text: &str) -> Vec<u8> {
    let code = text.lines().filter_map(|line| line.split('#').next());
    let octets = code.flat_map(str::split_whitespace);
    octets.map(|octet| u8::from_str_radix(octet, 16).expect("a hex octet")).collect()
}

/// Returns every vector, sorted by name; those with an IP header without it.
pub(super) fn all() -> Vec<Vector> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pgm");
    let files = std::fs::read_dir(directory).expect("the directory of vectors");
    let mut all: Vec<Vector> = files
        .map(|file| {
            let path = file.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let mut bytes = parse(&std::fs::read_to_string(&path).expect("a file"));
            if name.starts_with("raw_ip") {
                assert_eq!(bytes[9], 113, "IP protocol 113");
                let header = usize::from(bytes[0] & 0xF) * 4;
                bytes.drain(..header);
            }
            Vector { name, bytes }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns the vector called `name`.
pub(super) fn get(name: &str) -> Vec<u8> {
    all().into_iter().find(|vector| vector.name == name).expect("a vector of this name").bytes
}

fn message(name: &str) -> Message {
    let mut bytes = get(name);
    if WRONG.contains(&name) {
        finish(&mut bytes);
    }
    decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")).message
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn control(name: &str) -> (Body, Vec<Opt>) {
    let body = message(name).body;
    let options = match &body {
        Body::Spm(spm) => spm.options.clone(),
        Body::Nak(nak) => nak.options.clone(),
        Body::Polr(polr) => polr.options.clone(),
        Body::Ack(ack) => ack.options.clone(),
        Body::Poll(poll) => poll.options.clone(),
        _ => vec![],
    };
    (body, options)
}

#[test]
fn every_vector_encodes_to_its_octets() {
    let all = all();
    assert_eq!(all.len(), 57);
    for Vector { name, bytes } in all {
        let mut right = bytes.clone();
        if WRONG.contains(&name.as_str()) {
            assert!(matches!(decode(&bytes), Err(DecodeError::Checksum(_))), "{name}");
            finish(&mut right);
        }
        let packet = decode(&right).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(encode_whole(&packet, &right), right, "{name}");
        assert_eq!(packet.payload.is_empty(), packet.message.data().is_none(), "{name}");
        assert_eq!(encoded_len(&packet.message, 0), right.len(), "{name}");
        // A driver collects several messages in one buffer.
        let mut out = b"before".to_vec();
        encode(&packet.message, 0, &mut out);
        let mut header = right[..right.len() - packet.payload.len()].to_vec();
        header[6..8].fill(0);
        assert_eq!(out.strip_prefix(b"before"), Some(&header[..]), "{name}");
    }
}

#[test]
fn corrected_checksums_are_those_of_the_index() {
    for (name, checksum) in WRONG.into_iter().zip([[0x1F, 0x88], [0; 2], [0xEA, 0x66]]) {
        let mut bytes = get(name);
        finish(&mut bytes);
        assert!(bytes[6..8] == checksum || checksum == [0; 2], "{name}: {:x?}", &bytes[6..8]);
    }
}

#[test]
fn messages_of_a_source_mean_what_they_should() {
    let tsi = Tsi { gsi: Gsi([0x65, 0xB4, 0x80, 0x19, 0xCD, 0x34]), port: 19_424 };
    let spm =
        Spm { sqn: Sqn(9), trail: Sqn(0), lead: Sqn(11), path: ip("10.77.0.1"), options: vec![Opt::Fin] };
    assert_eq!(message("spm_fin"), Message { tsi, port: 7500, body: Body::Spm(spm) });
    let Body::Spm(first) = message("spm_initial").body else { panic!() };
    assert_eq!((first.trail, first.lead, first.is_windowless()), (Sqn(0), Sqn(u32::MAX), false));
    let Body::Spm(special) = message("made_spm_unreach").body else { panic!() };
    assert!(special.is_windowless() && special.options == [Opt::Unreachable]);
    let prm = |on_demand, proactive, octet| vec![Opt::ParityPrm { on_demand, proactive, size: 4, octet }];
    assert_eq!(control("spm_parity_prm").1, prm(true, false, 0));
    assert_eq!(control("spm_parity_prm_pro").1, prm(false, true, 0xAD));
    assert_eq!(control("made_spm_join").1, [Opt::Join(Sqn(50))]);
    assert_eq!(control("made_spm_rst").1, [Opt::Rst { no_naks: true, code: 1 }]);
    assert_eq!(control("made_spm_crqst").1, [Opt::Crqst(1)]);
    let backoff = Opt::NakBackoff { interval_us: 50_000, sqn: Sqn(0) };
    assert_eq!(
        control("made_spm_bo").1,
        [backoff, Opt::NakBackoffRange { max_us: 1_000_000, min_us: 10_000 }]
    );
    let poll = |sqn, subtype, options| match message(options).body {
        Body::Poll(Poll { sqn: s, subtype: t, round: 0, backoff_us, mask, .. }) => {
            assert_eq!((s, t, mask), (Sqn(sqn), subtype, 0));
            backoff_us
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(poll(1, 0, "made_poll"), 100_000);
    poll(2, 1, "made_poll_dlr");
}

#[test]
fn data_mean_what_they_should() {
    let data = |name| message(name).data().expect("data").clone();
    let plain = data("rdata_plain");
    assert_eq!((plain.kind, plain.sqn, plain.trail, plain.len), (DataKind::Repair, Sqn(5), Sqn(0), 100));
    let second = data("odata_fragment_1");
    let first = data("odata_fragment_0");
    let whole = Fragment { first: first.sqn, offset: 0, len: 150, null: false };
    assert_eq!(first.options.fragment, Some(whole));
    assert_eq!(second.options.fragment, Some(Fragment { offset: 78, ..whole }));
    assert!(first.continues(&second) && !second.continues(&first));
    let cc = |stamp, acker| Some(CcData { stamp, acker: ip(acker) });
    assert_eq!(data("odata_pgmcc_election").options.cc, cc(0xFF82_0602, "0.0.0.0"));
    assert_eq!(data("odata_pgmcc_acker").options.cc.map(|cc| cc.acker), Some(ip("10.77.0.2")));
    assert_eq!(data("made_odata_nonzero_isn").sqn, Sqn(u32::MAX - 1));
    assert_eq!(data("made_odata_tgsize").options.group_size, Some(2));
    assert!(data("made_odata_syn").options.syn && data("made_odata_fin").options.fin);
    let parity = |group, var_len| Some(Parity { group, var_len });
    assert_eq!(data("made_rdata_paritygrp").parity, parity(1, false));
    assert_eq!(data("fec_k4_parity_0").parity, parity(0, false));
    assert_eq!(data("fecvar_k4_parity_0").parity, parity(0, true));
}

#[test]
fn messages_about_repair_mean_what_they_should() {
    let tsi = Tsi { gsi: Gsi([0x65, 0xB4, 0x80, 0x19, 0xCD, 0x34]), port: 19_424 };
    let nak = Nak {
        kind: NakKind::Nak,
        parity: false,
        sqn: Sqn(5),
        source: ip("10.77.0.1"),
        group: ip("239.192.0.1"),
        also: vec![Sqn(6)],
        list_octet: 0,
        options: vec![],
    };
    assert_eq!(message("nak_list"), Message { tsi, port: 7500, body: Body::Nak(nak.clone()) });
    let confirmed = Nak { kind: NakKind::Confirmation, list_octet: 0x26, ..nak.clone() };
    assert_eq!(message("ncf_list"), Message { tsi, port: 7500, body: Body::Nak(confirmed) });
    let Body::Nak(parity) = message("nak_parity_cnt1").body else { panic!() };
    assert!(parity.parity && parity.also.is_empty());
    let Body::Nak(null) = message("made_nnak").body else { panic!() };
    assert_eq!((null.kind, null.sqn), (NakKind::NullNak, Sqn(5)));
    let cr = Cr { fields: 1, reference: Sqn(9), link: 0, path: 0, receiver: 655, node: ip("10.77.0.2") };
    assert_eq!(control("made_nak_cr").1, [Opt::Cr(cr)]);
    assert_eq!(control("made_ncf_unreach").1, [Opt::Unreachable, Opt::PathNla(ip("10.77.0.254"))]);
    let redirect =
        Polr { sqn: Sqn(2), round: 0, parity: true, options: vec![Opt::Redirect(ip("10.77.0.99"))] };
    assert_eq!(message("made_polr_redirect").body, Body::Polr(redirect));
    let feedback = Feedback { stamp: 0xFF82_11E1, loss: 0, receiver: ip("10.77.0.2"), leaving: false };
    let ack = Ack { highest: Sqn(41), bitmap: !2, options: vec![Opt::Feedback(feedback)] };
    assert_eq!(message("ack_pgmcc_loss").body, Body::Ack(ack));
    assert_eq!(message("spmr_unicast").body, Body::Spmr);
}

/// The code of OpenPGM's parity (its matrix is in no RFC): generator rows (119, 64, 56, 14) and (199, 167, 13, 108) for
/// groups of four.
#[test]
fn parity_is_the_code_that_we_have() {
    let payload = |name: &str| {
        let mut bytes = get(name);
        finish(&mut bytes);
        let range = decode(&bytes).expect("data").payload;
        bytes[range].to_vec()
    };
    let source: Vec<u8> = (0..4).flat_map(|n| payload(&std::format!("fec_k4_odata_{n}"))).collect();
    let len = source.len() / 4;
    let code = ReedSolomon::new(PointSet::Rizzo, 4, 4, len).expect("a code");
    let mut parity = vec![0; 2 * len];
    code.encode(&source, 0, &mut parity).expect("a block");
    for (n, symbol) in parity.chunks(len).enumerate() {
        assert_eq!(symbol, payload(&std::format!("fec_k4_parity_{n}")), "parity {n}");
    }
    let code = ReedSolomon::new(PointSet::Rizzo, 4, 4, 1).expect("a code");
    let code = &code;
    let row = |index| {
        (0..4).map(move |column: usize| {
            let mut unit = [0; 4];
            unit[column] = 1;
            let mut one = [0];
            code.encode(&unit, index, &mut one).expect("a block");
            one[0]
        })
    };
    assert!(row(0).eq([119, 64, 56, 14]) && row(1).eq([199, 167, 13, 108]));
}
