//! Announcements without a product, and packets with a forged source address.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use farcast_mftp::message::{Announce, AnnounceOptions, GroupModel};

/// Returns an announcement that a receiver joins at once. A test changes the fields that it needs.
pub(crate) fn announcement(server: SocketAddr, group: IpAddr) -> Announce {
    Announce {
        turn: None,
        server,
        response: server,
        private: group,
        announce_duration_s: 10,
        options: AnnounceOptions {
            model: GroupModel::OpenUnlimited,
            stay_in_group: false,
            restart: false,
            overwrite: true,
            late_entry: true,
        },
        application: "farcast".into(),
        block_size: 100,
        data_rate_bps: 1_000_000,
        product_name: "forged".into(),
        transfer_duration_s: 1000,
        dtu_size: 1000,
        product_size: 100_000,
        error_threshold: None,
        user_data: None,
        hosts: None,
        host_set: None,
        backoff_window_ms: None,
        product_id: Some([7; 32]),
        parity_symbols: None,
        commitment: None,
    }
}

/// Returns an IPv4 packet with a UDP datagram. The kernel fills in the IP checksum, and UDP has none.
pub(crate) fn packet(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let udp = 8 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp).to_be_bytes());
    packet.extend([0, 0, 0, 0, 1, 17, 0, 0]);
    packet.extend(from.ip().octets());
    packet.extend(to.ip().octets());
    for word in [from.port(), to.port(), udp, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}
