//! Round trips of a session: counted by hand from the commands and replies of RFC 959, and compared with the engines.

use farcast_core::{Span, Time};
use farcast_tcp::ftp::{ClientConfig, Mode};

use crate::world::{World, client_config, get, put, server_config};

/// Four segments: they leave in one flight.
const SMALL: usize = 5_000;

fn at(world: &World, round_trips: u64) -> Time {
    Time::ZERO + world.round_trip() * round_trips
}

#[test]
fn the_first_octet_arrives_after_eight_round_trips_and_with_syst_after_nine() {
    // SYN, 220, USER, PASS, (SYST), TYPE, PASV, SYN of the data connection, RETR; active: PORT, RETR brings the SYN,
    // and its answer the data.
    for mode in [Mode::Passive, Mode::Active] {
        for extended in [false, true] {
            for (syst, rounds) in [(false, 8), (true, 9)] {
                let config = ClientConfig { syst, extended, ..client_config(mode) };
                let world = World::clean((config, server_config()), &[("/a", SMALL)], vec![get("/a")]).run();
                let report = world.notes.borrow().report(0);
                assert_eq!(report.first_arrived, Some(at(&world, rounds)), "{mode:?} {extended} {syst}");
                // 226 comes with the data, QUIT takes one more.
                assert_eq!(report.completed, at(&world, rounds));
                let ended = world.network.engine(world.client).engine.session().ended;
                assert_eq!(ended, Some(at(&world, rounds + 1)));
            }
        }
    }
}

#[test]
fn the_session_is_there_after_two_round_trips_and_the_login_after_four() {
    let world = World::clean((client_config(Mode::Passive), server_config()), &[], vec![]).run();
    let session = world.network.engine(world.client).engine.session();
    assert_eq!(session.connected, Some(at(&world, 1)));
    assert_eq!(session.greeted, Some(at(&world, 2)));
    assert_eq!(session.logged_in, Some(at(&world, 4)));
    assert_eq!(session.ended, Some(at(&world, 5)));
    assert_eq!((session.commands, session.replies), (3, 4));
    assert_eq!(session.octets_sent, "USER anonymous\r\nPASS farcast@\r\nQUIT\r\n".len() as u64);
    let heard =
        "220 farcast FTP server ready.\r\n331 Password required.\r\n230 Logged in.\r\n221 Goodbye.\r\n";
    assert_eq!(session.octets_received, heard.len() as u64);
}

#[test]
fn each_further_file_takes_three_round_trips() {
    for mode in [Mode::Passive, Mode::Active] {
        let files = [("/a", SMALL), ("/b", SMALL), ("/c", 1)];
        let operations = vec![get("/a"), get("/b"), get("/c")];
        let world = World::clean((client_config(mode), server_config()), &files, operations).run();
        let notes = world.notes.borrow();
        for (number, rounds) in [(0, 8), (1, 11), (2, 14)] {
            assert_eq!(notes.report(number).first_arrived, Some(at(&world, rounds)), "{mode:?} {number}");
            assert_eq!(notes.report(number).completed, at(&world, rounds));
        }
        assert_eq!(notes.report(1).requested, at(&world, 8));
        let ended = world.network.engine(world.client).engine.session().ended;
        assert_eq!(ended, Some(at(&world, 15)));
    }
}

#[test]
fn a_gap_lies_between_files_and_nowhere_else() {
    let gap = Span::from_secs(7);
    let config = ClientConfig { gap, ..client_config(Mode::Passive) };
    let operations = vec![get("/a"), get("/a"), get("/a")];
    let world = World::clean((config, server_config()), &[("/a", SMALL)], operations).run();
    let notes = world.notes.borrow();
    assert_eq!(notes.report(1).requested, at(&world, 8) + gap);
    assert_eq!(notes.report(2).requested, at(&world, 11) + gap * 2);
    let ended = world.network.engine(world.client).engine.session().ended;
    assert_eq!(ended, Some(at(&world, 15) + gap * 2));
}

#[test]
fn a_put_waits_for_the_preliminary_reply_and_its_data_for_the_last_one() {
    for mode in [Mode::Passive, Mode::Active] {
        let world = World::clean((client_config(mode), server_config()), &[], vec![put("/a", 5_000)]).run();
        let report = world.notes.borrow().report(0);
        // STOR leaves at 7 R (active: 6 R), 150 comes at 8 R; the data takes half a round trip, 226 the other half.
        assert_eq!(report.clock_started, at(&world, 8), "{mode:?}");
        assert_eq!(report.client_time(), Span::ZERO);
        assert_eq!(report.completed, at(&world, 9));
        let delivered = world.shelf.borrow().transfers[0].expect("a transfer").delivered;
        let there = world.network.delay(world.client, world.server);
        assert_eq!(delivered, Some(at(&world, 8) + there));
        let ended = world.network.engine(world.client).engine.session().ended;
        assert_eq!(ended, Some(at(&world, 10)));
    }
}

#[test]
fn a_restart_costs_one_round_trip() {
    let operation = farcast_tcp::ftp::Operation::Retrieve { path: "/a".into(), offset: 1_000 };
    let world =
        World::clean((client_config(Mode::Passive), server_config()), &[("/a", SMALL)], vec![operation])
            .run();
    let report = world.notes.borrow().report(0);
    assert_eq!((report.first_arrived, report.octets), (Some(at(&world, 9)), SMALL as u64 - 1_000));
}
