//! The laws of engines, for a client and a server over lossy links.

use farcast_core::Span;
use farcast_tcp::ftp::Mode;
use farcast_testkit::{Link, Network, Setup, laws};

use crate::world::{Packet, World, client_config, get, put, server_config};

fn session(mode: Mode) -> impl Fn(Setup) -> Network<Packet> {
    move |setup| {
        let operations = vec![get("/a"), put("/b", 30_000), get("/missing")];
        let link = Link::lossy(Span::from_millis(100), 0.05);
        let configs = (client_config(mode), server_config());
        World::new(setup, link, configs, &[("/a", 40_000)], operations).network
    }
}

#[test]
fn clients_and_servers_obey_the_laws_of_engines() {
    for mode in [Mode::Passive, Mode::Active] {
        laws::all(0..4, Span::from_millis(5), session(mode), |network| {
            network.now() > farcast_core::Time::ZERO
        });
    }
}
