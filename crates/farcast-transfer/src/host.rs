//! Hosts as people write them: addresses, and names that the system's resolver knows.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use ipnet::IpNet;

/// Default port: that of MFTP.
const PORT: u16 = 5402;

/// Reason for which a name gives no usable address.
#[derive(Debug)]
pub enum HostError {
    /// The resolver has no answer.
    Unknown {
        /// Option that gives the name.
        option: &'static str,
        /// The name.
        name: String,
        /// Error of the resolver.
        error: io::Error,
    },
    /// The name has addresses of the other family only.
    OtherFamily {
        /// Option that gives the name.
        option: &'static str,
        /// The name.
        name: String,
        /// Family that is needed.
        wanted: Family,
    },
}

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { option, name, error } => {
                let said = error.to_string();
                let said = said.strip_prefix("failed to lookup address information: ").unwrap_or(&said);
                write!(
                    f,
                    "{option}: the address of {name} cannot be found: {said}; check the name with `getent ahosts \
                     {name}`, or give its address"
                )
            }
            Self::OtherFamily { option, name, wanted } => {
                write!(
                    f,
                    "{option}: {name} has no {wanted} address, and needs one here; give another host or group"
                )
            }
        }
    }
}

impl std::error::Error for HostError {}

/// Family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// Host, by address or by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// Address.
    Address(IpAddr),
    /// Address with the name of an interface behind it, as in `fe80::1%eth0`.
    Zoned {
        /// The address.
        address: IpAddr,
        /// Name of the interface.
        zone: String,
    },
    /// Name that the resolver knows.
    Name(String),
}

impl Host {
    /// Returns the interface that the text names, if it names one.
    pub fn zone(&self) -> Option<&str> {
        if let Self::Zoned { zone, .. } = self { Some(zone) } else { None }
    }

    /// Returns the address, if the host was given by address.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) | Self::Zoned { address, .. } => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// Returns the host's address. A name is looked up, which may take as long as the resolver tries. Of its addresses,
    /// the first of the `wanted` family is taken, or without a wanted family the first IPv4 address, else the first
    /// IPv6 address. An address is returned as given.
    ///
    /// # Errors
    /// The resolver does not know the name, or knows only addresses of the other family. The `option` names the place
    /// of the name in the message.
    pub fn resolve(&self, option: &'static str, wanted: Option<Family>) -> Result<IpAddr, HostError> {
        match self {
            Self::Address(address) | Self::Zoned { address, .. } => Ok(*address),
            Self::Name(name) => choose(option, name, &look_up(option, name)?, wanted),
        }
    }
}

impl FromStr for Host {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Some((before, zone, "")) = zoned(bare)
            && let Ok(address) = before.parse()
        {
            return Ok(Self::Zoned { address, zone });
        }
        match bare.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if is_name(text) => Ok(Self::Name(text.into())),
            Err(_) => {
                Err("it must be an address or a host name, as in \"10.1.2.3\" or \"head-end.example.org\"")
            }
        }
    }
}

/// Splits an IPv6 address at its zone (RFC 4007 §11) into the text before the zone, the zone, and the text behind it.
fn zoned(text: &str) -> Option<(&str, String, &str)> {
    let (before, rest) = text.split_once('%')?;
    before.trim_start_matches('[').parse::<Ipv6Addr>().ok()?;
    let end = if text.starts_with('[') { rest.find(']')? } else { rest.len() };
    let (zone, behind) = rest.split_at(end);
    // The longest name of an interface has 15 octets (netdevice(7)).
    let fits = (1..16).contains(&zone.len()) && !zone.contains(|c: char| c == '/' || c.is_whitespace());
    fits.then(|| (before, zone.to_owned(), behind))
}

/// Returns `true` if `text` may be a host's name. A text that ends in a number is an address with an error in it:
/// resolvers take "239.255.1" for 239.255.0.1.
fn is_name(text: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|octet| octet.is_ascii_digit()) || last.starts_with("0x");
    text.len() <= 253 && text.chars().all(of_name) && !text.starts_with(['-', '.']) && !numeric
}

/// Returns all addresses of a name, in the resolver's order.
fn look_up(option: &'static str, name: &str) -> Result<Vec<IpAddr>, HostError> {
    let unknown = |error| HostError::Unknown { option, name: name.into(), error };
    let found = (name, PORT).to_socket_addrs().map_err(unknown)?;
    Ok(found.map(|address| address.ip()).collect())
}

fn choose(
    option: &'static str,
    name: &str,
    all: &[IpAddr],
    wanted: Option<Family>,
) -> Result<IpAddr, HostError> {
    let of = |family| all.iter().copied().find(|address| Family::of(*address) == family);
    let found = match wanted {
        Some(family) => of(family),
        None => of(Family::V4).or(of(Family::V6)),
    };
    let wanted = wanted.unwrap_or(Family::V4);
    found.ok_or_else(|| HostError::OtherFamily { option, name: name.into(), wanted })
}

/// Host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// Address that may contain the number of an interface.
    Address(SocketAddr),
    /// Address with the name of an interface behind it, as in `fe80::1%eth0`.
    Zoned {
        /// The address and port.
        address: SocketAddr,
        /// Name of the interface.
        zone: String,
    },
    /// Name and port.
    Name {
        /// Name that the resolver knows.
        name: String,
        /// UDP port.
        port: u16,
    },
}

impl Endpoint {
    /// Returns the address, if the endpoint was given by address.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) | Self::Zoned { address, .. } => Some(address.ip()),
            Self::Name { .. } => None,
        }
    }

    /// Returns the interface that the text names, if it names one.
    pub fn zone(&self) -> Option<&str> {
        if let Self::Zoned { zone, .. } = self { Some(zone) } else { None }
    }

    /// Returns the address and port, with the rules and errors of [`Host::resolve`].
    pub fn resolve(&self, option: &'static str, wanted: Option<Family>) -> Result<SocketAddr, HostError> {
        match self {
            Self::Address(address) | Self::Zoned { address, .. } => Ok(*address),
            Self::Name { name, port } => {
                let address = choose(option, name, &look_up(option, name)?, wanted)?;
                Ok(SocketAddr::new(address, *port))
            }
        }
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "it must be an address or a host name, and a port if it is not 5402, as in \
            \"239.255.1.1:5402\", \"[ff15::1]:5402\" or \"head-end.example.org\"";
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if let Some((before, zone, behind)) = zoned(text) {
            let address = if text.starts_with('[') {
                format!("{before}{behind}").parse::<Self>()?
            } else {
                before.parse::<Self>()?
            };
            let Self::Address(address) = address else { return Err(FORMS) };
            return Ok(Self::Zoned { address, zone });
        }
        let (host, port) = if let Ok(host) = text.parse() {
            (host, PORT)
        } else {
            let (name, port) = text.split_once(':').ok_or(FORMS)?;
            (name.parse().map_err(|_| FORMS)?, port.parse().map_err(|_| FORMS)?)
        };
        match host {
            Host::Address(address) => Ok(Self::Address(SocketAddr::new(address, port))),
            Host::Zoned { address, zone } => {
                Ok(Self::Zoned { address: SocketAddr::new(address, port), zone })
            }
            Host::Name(name) => Ok(Self::Name { name, port }),
        }
    }
}

/// Senders that a receiver hears: a prefix of addresses, or all addresses of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// Prefix of addresses.
    Prefix(IpNet),
    /// Name of a host.
    Name(String),
}

impl Accepted {
    /// Returns the prefixes. A name becomes a prefix for each of its addresses.
    ///
    /// # Errors
    /// The resolver does not know the name. The `option` names the place of the name in the message.
    pub fn resolve(&self, option: &'static str) -> Result<Vec<IpNet>, HostError> {
        match self {
            Self::Prefix(prefix) => Ok(vec![*prefix]),
            Self::Name(name) => Ok(look_up(option, name)?.into_iter().map(IpNet::from).collect()),
        }
    }
}

impl FromStr for Accepted {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match (text.parse::<IpNet>(), text.parse()) {
            (Ok(prefix), _) => Ok(Self::Prefix(prefix)),
            (_, Ok(Host::Address(address) | Host::Zoned { address, .. })) => Ok(Self::Prefix(address.into())),
            (_, Ok(Host::Name(name))) => Ok(Self::Name(name)),
            (Err(_), Err(_)) => Err(
                "it must be an address or a prefix, as in \"10.1.2.3\" or \"10.1.2.0/24\", or a host name; separate \
                 several by commas",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Option<Endpoint> {
        text.parse().ok()
    }

    #[test]
    fn an_address_is_never_looked_up() {
        for (text, address, port) in [
            ("239.255.1.1:7", "239.255.1.1", 7),
            ("239.255.1.1", "239.255.1.1", PORT),
            ("[ff15::1]:7", "ff15::1", 7),
            ("[ff15::1]", "ff15::1", PORT),
            ("ff15::1", "ff15::1", PORT),
        ] {
            let address = SocketAddr::new(address.parse().unwrap(), port);
            assert_eq!(endpoint(text), Some(Endpoint::Address(address)), "{text}");
        }
        let scoped = endpoint("[fe80::1%3]:7").unwrap().resolve("--to", None).unwrap();
        assert_eq!(scoped.to_string(), "[fe80::1%3]:7");
        assert_eq!("10.1.2.3".parse(), Ok(Accepted::Prefix("10.1.2.3/32".parse().unwrap())));
        assert_eq!("10.1.2.0/24".parse(), Ok(Accepted::Prefix("10.1.2.0/24".parse().unwrap())));
    }

    #[test]
    fn a_name_may_have_a_port() {
        for (text, name, port) in [
            ("localhost:7", "localhost", 7),
            ("updates.example.org", "updates.example.org", PORT),
            ("a_b-1.example.org.:7", "a_b-1.example.org.", 7),
            ("7eleven", "7eleven", PORT),
        ] {
            assert_eq!(endpoint(text), Some(Endpoint::Name { name: name.into(), port }), "{text}");
        }
    }

    #[test]
    fn an_address_with_an_error_is_no_name() {
        let long = "n".repeat(254);
        for text in [
            "239.255.1",
            "239.255.1:5402",
            "300.1.1.1",
            "1",
            "0x7f",
            "10.1.2.3:70000",
            "head-end:70000",
            "",
            ":7",
            "a b",
            "-a",
            ".a",
            "a:b:c",
            "[localhost]:7",
            "b\u{fc}ro",
            "10.1.2.0/24",
            &long,
        ] {
            assert_eq!(endpoint(text), None, "{text}");
        }
    }

    #[test]
    fn the_family_is_the_wanted_one_or_else_ipv4() {
        let (four, six): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let chosen = |all: &[IpAddr], wanted| choose("--to", "host", all, wanted).map_err(|e| e.to_string());
        assert_eq!(chosen(&[six, four], None), Ok(four));
        assert_eq!(chosen(&[six], None), Ok(six));
        assert_eq!(chosen(&[four, six], Some(Family::V6)), Ok(six));
        for (all, wanted) in [(six, Family::V4), (four, Family::V6)] {
            let said = chosen(&[all], Some(wanted)).unwrap_err();
            assert!(said.contains(&format!("--to: host has no {wanted} address")), "{said}");
        }
    }
}
