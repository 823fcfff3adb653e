//! What somebody announces who has nothing to send.

use std::net::{IpAddr, SocketAddr};

use farcast_mftp::message::{Announce, AnnounceOptions, GroupModel};

/// An announcement that a receiver joins at once; a test says only what it needs to be otherwise.
pub(crate) fn announcement(server: SocketAddr, group: IpAddr) -> Announce {
    Announce {
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
        backoff_window_ms: None,
        product_id: Some([7; 32]),
        parity_symbols: None,
        commitment: None,
    }
}
