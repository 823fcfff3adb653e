//! Losses on the control connection and on the data connections: everything arrives all the same.

use farcast_core::{Span, Time};
use farcast_tcp::ftp::{ClientConfig, Code, Mode, Operation, OperationError, ServerConfig};
use farcast_tcp::{Config, Failure};
use farcast_testkit::{Link, Setup};

use crate::world::{Packet, World, client_config, contents, get, prompt, put, server_config};

/// Returns `true` if a packet belongs to the control connection.
fn is_control(packet: &Packet) -> bool {
    packet.segment.source_port == 21 || packet.segment.destination_port == 21
}

#[test]
fn a_lost_command_and_a_lost_reply_cost_a_timeout_each() {
    for lost in ["PASV", "227"] {
        let configs = (client_config(Mode::Passive), server_config());
        let mut world = World::clean(configs, &[("/a", 5_000)], vec![get("/a")]);
        let mut drops = 1;
        world.network.drop_if(move |leg| {
            let drop = drops > 0 && leg.message.octets.starts_with(lost.as_bytes());
            drops -= i32::from(drop);
            drop
        });
        let world = world.run();
        // The round trips were measured: the timeout is RFC 6298's, SRTT and four times the variation, but 1 s at
        // least. The variation has come down to R/2 (3/4)^n after n equal samples, so that it is the 1 s before long;
        // here it is between that and three round trips.
        let rounds = world.round_trip() * 8;
        let first = world.notes.borrow().report(0).first_arrived.expect("data");
        let late = first.since(Time::ZERO + rounds);
        assert!(late >= Span::from_secs(1) && late < world.round_trip() * 3, "{lost}: {late:?}");
        assert_eq!(world.arrived(0), contents("/a", 5_000));
    }
}

#[test]
fn everything_arrives_whatever_is_lost() {
    for seed in 0..12 {
        for mode in [Mode::Active, Mode::Passive] {
            let link = Link {
                loss: 0.08,
                duplication: 0.03,
                jitter: Span::from_millis(40),
                ..Link::clean(Span::from_millis(150))
            };
            let operations = vec![get("/a"), put("/b", 60_000), get("/a")];
            let configs = (client_config(mode), server_config());
            let world = World::new(Setup::plain(seed), link, configs, &[("/a", 80_000)], operations).run();
            assert_eq!(world.notes.borrow().ended, Some(Ok(())), "{mode:?} {seed}");
            assert_eq!(world.arrived(0), contents("/a", 80_000), "{mode:?} {seed}");
            assert_eq!(world.arrived(2), contents("/a", 80_000), "{mode:?} {seed}");
            assert_eq!(world.shelf.borrow().files["/b"], contents("/b", 60_000), "{mode:?} {seed}");
        }
    }
}

#[test]
fn a_data_connection_cut_in_the_middle_fails_the_file_and_nothing_else() {
    let gone = OperationError::DataConnection(Failure::TimedOut);
    let told = OperationError::Refused(Code::new(426).expect("a code"));
    // Who sends finds out; where that is the server, it says so.
    for (operation, error) in [(get("/a"), told), (put("/b", 400_000), gone)] {
        let tcp = Config { most_retries: 4, send_buffer: 16_384, ..prompt() };
        let client = ClientConfig { tcp: tcp.clone(), ..client_config(Mode::Passive) };
        let server = ServerConfig { tcp, ..server_config() };
        let operations = vec![operation, Operation::Noop];
        let mut world = World::clean((client, server), &[("/a", 400_000)], operations);
        let mut passed = 0;
        world.network.drop_if(move |leg| {
            passed += u32::from(!is_control(&leg.message));
            !is_control(&leg.message) && passed > 60
        });
        let world = world.run();
        assert_eq!(world.notes.borrow().error(0), error);
        assert_eq!(world.notes.borrow().reply(1).0, 200);
        assert_eq!(world.notes.borrow().ended, Some(Ok(())));
        assert!(world.shelf.borrow().transfers[0].is_err());
    }
}
