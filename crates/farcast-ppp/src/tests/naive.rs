//! Second implementations, slow and plain: the check sequence bit by bit, and a deframer that takes a recording apart.

use std::vec::Vec;

use super::{DeframerCounters, Fcs, Framing};

/// The register behind `octets`, before the complement, shifted bit by bit: RFC 1662 appendix C with the polynomials of
/// its §C.1 and §C.3.
pub(super) fn register(fcs: Fcs, octets: &[u8]) -> u32 {
    let (polynomial, start) = match fcs {
        Fcs::Fcs16 => (0x8408, 0xFFFF),
        Fcs::Fcs32 => (0xEDB8_8320, 0xFFFF_FFFF),
    };
    octets.iter().fold(start, |register, &octet| {
        (0..8).fold(register ^ u32::from(octet), |register, _| {
            if register & 1 == 1 { register >> 1 ^ polynomial } else { register >> 1 }
        })
    })
}

/// The residues that RFC 1662 appendix C gives.
pub(super) const fn residue(fcs: Fcs) -> u32 {
    match fcs {
        Fcs::Fcs16 => 0xF0B8,
        Fcs::Fcs32 => 0xDEBB_20E3,
    }
}

/// The packets in a recording of a line, and the fates of its frames.
pub(super) fn deframe(framing: Framing, mru: u16, line: &[u8]) -> (Vec<(u16, Vec<u8>)>, DeframerCounters) {
    let mut counters = DeframerCounters::default();
    let mut pieces: Vec<&[u8]> = line.split(|&octet| octet == 0x7E).collect();
    // What is before the first flag and behind the last is in no frame.
    pieces.pop();
    let frames = pieces.iter().skip(1);
    let packets = frames.filter_map(|frame| packet(framing, mru, frame, &mut counters)).collect();
    (packets, counters)
}

fn packet(
    framing: Framing,
    mru: u16,
    frame: &[u8],
    counters: &mut DeframerCounters,
) -> Option<(u16, Vec<u8>)> {
    let check = if framing.fcs == Fcs::Fcs16 { 2 } else { 4 };
    let mut content = Vec::new();
    let mut escape = false;
    for &octet in frame {
        if octet < 32 && framing.accm & 1 << octet != 0 {
            continue;
        }
        if octet == 0x7D && !escape {
            escape = true;
        } else {
            content.push(if escape { octet ^ 0x20 } else { octet });
            escape = false;
        }
        if content.len() > usize::from(mru) + 4 + check {
            counters.too_long += 1;
            return None;
        }
    }
    let body = content.len().checked_sub(check);
    let fate = match (escape, body) {
        (true, _) => &mut counters.aborted,
        (false, _) if content.is_empty() => return None,
        (false, None | Some(0 | 1)) => &mut counters.too_short,
        _ if register(framing.fcs, &content) != residue(framing.fcs) => &mut counters.bad_fcs,
        _ => match fields(framing, &content[..body?]) {
            Err("address") => &mut counters.bad_address,
            Err("control") => &mut counters.bad_control,
            Err(_) => &mut counters.bad_protocol,
            Ok((_, information)) if information.len() > mru.into() => &mut counters.too_long,
            Ok((protocol, information)) => {
                counters.good += 1;
                return Some((protocol, information.to_vec()));
            }
        },
    };
    *fate += 1;
    None
}

fn fields(framing: Framing, body: &[u8]) -> Result<(u16, &[u8]), &'static str> {
    let rest = if body[0] == 0xFF && body[1] == 0x03 {
        &body[2..]
    } else if body[0] == 0xFF {
        return Err("control");
    } else if framing.acfc {
        body
    } else {
        return Err("address");
    };
    let length = match rest.iter().position(|octet| octet % 2 == 1) {
        Some(0) if framing.pfc => 1,
        Some(1) => 2,
        _ => return Err("protocol"),
    };
    let protocol = rest[..length].iter().fold(0, |number, &octet| number << 8 | u16::from(octet));
    Ok((protocol, &rest[length..]))
}
