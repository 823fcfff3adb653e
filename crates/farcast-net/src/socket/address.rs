//! Addresses that are valid on one link only, or for one sender only.

use std::net::{IpAddr, SocketAddr};

/// Returns `true` if `group` is for source-specific multicast (RFC 4607).
pub(crate) fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => matches!(group.segments(), [first, 0, ..] if first & 0xfff0 == 0xff30),
    }
}

/// Returns `address`, with the interface `scope` if it is valid on a link only (RFC 4007).
pub(crate) fn scoped(address: SocketAddr, scope: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) if v6.scope_id() == 0 => {
            let [first, second, ..] = v6.ip().octets();
            let on_a_link = matches!((first, second & 0xc0), (0xfe, 0x80));
            let to_a_link = first == 0xff && matches!(second & 0x0f, 1 | 2);
            if on_a_link || to_a_link {
                v6.set_scope_id(scope);
            }
            v6.into()
        }
        other => other,
    }
}

pub(super) fn unscoped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) => {
            v6.set_scope_id(0);
            v6.into()
        }
        v4 @ SocketAddr::V4(_) => v4,
    }
}
