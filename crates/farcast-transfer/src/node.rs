//! Node ids of NORM: 32 bits that identify a host.

use std::net::IpAddr;

use farcast_delivery::nack::NodeId;

use crate::Error;

/// Prefix that separates the ids of senders from those of receivers at the same address.
const SENDER: &[u8] = b"farcast: the node that sends from ";

/// Returns the node called `name`. A name of digits is the id itself. An address gives its 32 bits, as in NRL's tools.
/// Any other name is hashed.
///
/// # Errors
/// The digits are no id that a node may have.
pub fn of_name(name: &str) -> Result<NodeId, Error> {
    let node = if name.bytes().all(|octet| octet.is_ascii_digit()) {
        NodeId(name.parse().unwrap_or(NodeId::ANY.0))
    } else if let Ok(address) = name.parse() {
        of_address(address)
    } else {
        hashed(name.as_bytes())
    };
    if node.is_somebody() {
        return Ok(node);
    }
    Err(Error::usage(format!("{name:?} is no node: an id is 1 to 4294967294, or an address, or a name")))
}

/// Returns the node at `address`: the address itself, or the last 32 bits of an IPv6 address.
pub fn of_address(address: IpAddr) -> NodeId {
    match address {
        IpAddr::V4(address) => NodeId(address.to_bits()),
        IpAddr::V6(address) => NodeId(address.to_bits() as u32),
    }
}

/// Returns the node that sends from `address`. It differs from the node that receives there.
pub fn of_sender(address: IpAddr) -> NodeId {
    hashed(&[SENDER, address.to_string().as_bytes()].concat())
}

fn hashed(octets: &[u8]) -> NodeId {
    let digest = blake3::hash(octets);
    let [a, b, c, d, ..] = *digest.as_bytes();
    let node = NodeId(u32::from_be_bytes([a, b, c, d]));
    if node.is_somebody() { node } else { NodeId(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_number_an_address_or_hashed() {
        let node = |name| of_name(name).ok();
        assert_eq!(node("7"), Some(NodeId(7)));
        assert_eq!(node("10.0.0.1"), Some(NodeId(0x0A00_0001)));
        assert_eq!(node("fe80::1:2:3"), Some(NodeId(0x0002_0003)));
        assert_eq!(node("station-7"), node("station-7"));
        assert_ne!(node("station-7"), node("station-8"));
        for nobody in ["0", "4294967295", "4294967296", "0.0.0.0", "255.255.255.255"] {
            assert_eq!(node(nobody), None, "{nobody}");
        }
        let address = "10.0.0.1".parse().unwrap();
        assert_ne!(of_sender(address), of_address(address));
    }
}
