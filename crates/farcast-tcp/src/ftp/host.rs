//! Addresses in commands and replies: host-port (RFC 959 section 4.1.2), and the extended forms (RFC 2428).

use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// Writes an address as PORT has it: `h1,h2,h3,h4,p1,p2`.
pub(super) fn write_host_port(address: SocketAddrV4) -> String {
    let ([a, b, c, d], [high, low]) = (address.ip().octets(), address.port().to_be_bytes());
    format!("{a},{b},{c},{d},{high},{low}")
}

/// Reads `h1,h2,h3,h4,p1,p2`.
pub(super) fn read_host_port(text: &str) -> Option<SocketAddrV4> {
    let mut numbers = text.split(',').map(|number| {
        let short = number.len() <= 3 && number.bytes().all(|digit| digit.is_ascii_digit());
        number.parse::<u8>().ok().filter(|_| short)
    });
    let mut next = || numbers.next().flatten();
    let host = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    let port = u16::from_be_bytes([next()?, next()?]);
    numbers.next().is_none().then(|| SocketAddrV4::new(host, port))
}

/// Finds the host-port in the text of a 227. It may stand anywhere, in parentheses or not (RFC 1123 section 4.1.2.6).
pub(super) fn find_host_port(text: &str) -> Option<SocketAddrV4> {
    let numeric = |c: char| c.is_ascii_digit() || c == ',';
    text.split(|c| !numeric(c)).find_map(read_host_port)
}

/// Reason for which an extended address cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extended {
    /// The text is not an address.
    Malformed,
    /// The network protocol is not known.
    Protocol,
}

/// Writes an address as EPRT has it: `|1|192.0.2.1|port|` or `|2|2001:db8::1|port|`.
pub(super) fn write_extended(address: SocketAddr) -> String {
    let protocol = if address.is_ipv4() { 1 } else { 2 };
    format!("|{protocol}|{}|{}|", address.ip(), address.port())
}

/// Reads the argument of EPRT.
pub(super) fn read_extended(text: &str) -> Result<SocketAddr, Extended> {
    let [protocol, host, port] = fields(text).ok_or(Extended::Malformed)?;
    let host = match protocol {
        "1" => IpAddr::V4(host.parse::<Ipv4Addr>().map_err(|_| Extended::Malformed)?),
        "2" => IpAddr::V6(host.parse::<Ipv6Addr>().map_err(|_| Extended::Malformed)?),
        _ => return Err(Extended::Protocol),
    };
    Ok(SocketAddr::new(host, read_port(port).ok_or(Extended::Malformed)?))
}

/// Finds the port in the text of a 229: `(|||port|)`.
pub(super) fn find_port(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once('(')?;
    let (inner, _) = rest.split_once(')')?;
    let ["", "", port] = fields(inner)? else { return None };
    read_port(port)
}

/// Splits a text into the three fields between four delimiters, which are any visible character of ASCII (RFC 2428
/// section 2).
fn fields(text: &str) -> Option<[&str; 3]> {
    let delimiter = text.chars().next().filter(char::is_ascii_graphic)?;
    let mut parts = text[1..].split(delimiter);
    let fields = [parts.next()?, parts.next()?, parts.next()?];
    (parts.next() == Some("") && parts.next().is_none()).then_some(fields)
}

fn read_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port > 0 && text.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn host_ports_are_those_of_the_rfcs() {
        // RFC 959 section 4.1.2 gives the order; the port is 19 * 256 + 137.
        let address = "132.235.1.2:5001".parse().expect("an address");
        assert_eq!(write_host_port(address), "132,235,1,2,19,137");
        assert_eq!(read_host_port("132,235,1,2,19,137"), Some(address));
        for text in
            ["Entering Passive Mode (132,235,1,2,19,137).", "=132,235,1,2,19,137", "1,2 132,235,1,2,19,137"]
        {
            assert_eq!(find_host_port(text), Some(address), "{text}");
        }
        for text in [
            "",
            "1,2,3,4,5",
            "1,2,3,4,5,6,7",
            "1,2,3,4,5,256",
            "1,2,3,4,5,+6",
            "1,2,3,4,,6",
            "0001,2,3,4,5,6",
        ] {
            assert_eq!(find_host_port(text), None, "{text}");
        }
    }

    #[test]
    fn extended_addresses_are_those_of_rfc_2428() {
        for (text, address) in [
            ("|1|132.235.1.2|6275|", "132.235.1.2:6275"),
            ("|2|1080::8:800:200C:417A|5282|", "[1080::8:800:200c:417a]:5282"),
            ("!1!132.235.1.2!6275!", "132.235.1.2:6275"),
        ] {
            assert_eq!(read_extended(text).map(|a| a.to_string()).as_deref(), Ok(address), "{text}");
        }
        assert_eq!(read_extended("|3|132.235.1.2|6275|"), Err(Extended::Protocol));
        for text in [
            "",
            "|",
            "||||",
            "|1|132.235.1.2|6275",
            "|1|::1|80|",
            "|2|1.2.3.4|80|",
            "|1|1.2.3.4|0|",
            "é1é1.2.3.4é80é",
        ] {
            assert!(read_extended(text).is_err(), "{text}");
        }
        assert_eq!(find_port("Entering Extended Passive Mode (|||6446|)"), Some(6446));
        for text in ["(|||0|)", "(||6446|)", "(|1||6446|)", "|||6446|", "(|||6446)", "(|||65536|)"] {
            assert_eq!(find_port(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(host: [u8; 4], wide: [u16; 8], port in 1u16..) {
            let plain = SocketAddrV4::new(host.into(), port);
            prop_assert_eq!(read_host_port(&write_host_port(plain)), Some(plain));
            for address in [SocketAddr::V4(plain), SocketAddr::new(Ipv6Addr::from(wide).into(), port)] {
                prop_assert_eq!(read_extended(&write_extended(address)), Ok(address));
            }
        }
    }
}
