//! A client's clock, and the time of delivery: closed forms for a transfer that a window limits.
//!
//! The window is ten segments, in flight from the first round on, so that each round trip carries ten.

use farcast_core::Time;
use farcast_tcp::ftp::{ClientConfig, Mode, ServerConfig};
use farcast_tcp::{Config, InitialWindow, ReceiveWindow, Window};

use crate::world::{World, client_config, get, prompt, put, server_config};

const SEGMENT: u64 = 1_000;
const WINDOW: u32 = 10;

fn limited(send_buffer: u64) -> Config {
    Config {
        mss: SEGMENT as u16,
        timestamps: None,
        initial_window: InitialWindow::Segments(WINDOW),
        receive_window: ReceiveWindow { size: Window::Segments(WINDOW), first: None },
        send_buffer,
        ..prompt()
    }
}

fn configs(mode: Mode, send_buffer: u64) -> (ClientConfig, ServerConfig) {
    let tcp = limited(send_buffer);
    (ClientConfig { tcp: tcp.clone(), ..client_config(mode) }, ServerConfig { tcp, ..server_config() })
}

#[test]
fn the_clock_of_a_put_stops_before_the_end_by_what_is_in_the_send_buffer() {
    let (size, buffer) = (102_400, 16_384);
    for mode in [Mode::Passive, Mode::Active] {
        let world = World::clean(configs(mode, buffer), &[], vec![put("/a", size)]).run();
        let (report, round) = (world.notes.borrow().report(0), world.round_trip());
        // The last octet is taken when all but a buffer are acknowledged: 86,016 octets, in the ninth round.
        assert_eq!(report.client_time(), round * (size - buffer).div_ceil(10 * SEGMENT), "{mode:?}");
        assert_eq!(report.client_time(), round * 9);
        // The 103 segments leave in eleven rounds; the last arrives half a round trip after it left.
        let delivered = world.shelf.borrow().transfers[0].expect("a transfer").delivered.expect("everything");
        let there = world.network.delay(world.client, world.server);
        assert_eq!(delivered, report.clock_started + round * 10 + there);
        assert_eq!(report.completed, report.clock_started + round * 11);
        assert_eq!(report.octets, size);
    }
}

#[test]
fn the_clock_of_a_put_without_a_limit_of_the_buffer_does_not_run() {
    let world = World::clean(configs(Mode::Passive, u64::MAX), &[], vec![put("/a", 102_400)]).run();
    let report = world.notes.borrow().report(0);
    assert!(report.client_time().is_zero());
    assert_eq!(report.completed, report.clock_started + world.round_trip() * 11);
}

#[test]
fn the_clock_of_a_get_stops_with_the_last_octet() {
    for buffer in [16_384, u64::MAX] {
        for mode in [Mode::Passive, Mode::Active] {
            let world = World::clean(configs(mode, buffer), &[("/a", 102_400)], vec![get("/a")]).run();
            let (report, round) = (world.notes.borrow().report(0), world.round_trip());
            // 150 comes with the first of eleven flights.
            assert_eq!(report.clock_started, Time::ZERO + round * 8, "{mode:?} {buffer}");
            assert_eq!(report.client_time(), round * 10);
            assert_eq!(report.delivered, Some(report.clock_stopped));
            assert_eq!(
                report.commanded,
                report.clock_started - round * if mode == Mode::Passive { 1 } else { 2 }
            );
        }
    }
}

#[test]
fn the_server_takes_a_file_as_sent_when_its_buffer_has_the_last_octet() {
    let world = World::clean(configs(Mode::Passive, 16_384), &[("/a", 102_400)], vec![get("/a")]).run();
    let sent = world.shelf.borrow().transfers[0].expect("a transfer");
    assert_eq!(sent.completed.since(sent.opened), world.round_trip() * 9);
    assert_eq!((sent.octets, sent.delivered), (102_400, None));
    // Its octets may be asked for until the last is acknowledged.
    assert_eq!(world.shelf.borrow().released, [sent.file]);
}
