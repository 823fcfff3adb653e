use farcast_core::{BitRate, Probability};
use farcast_emu::control::{
    Answer, Bin, Change, Count, Description, DirectionState, Lateness, LinkDirection, ProgramPhase,
    ProgramState, Snapshot, TerminalState,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::draw::{draw, per_cent, seconds};
use super::keys::{Action, press};
use super::state::View;
use super::*;

fn count(packets: u64, octets: u64) -> Count {
    Count { packets, octets }
}

fn terminals(count: u32) -> Vec<TerminalState> {
    let terminal = |terminal| TerminalState {
        terminal,
        delivered: Count { packets: 990, octets: 1_485_000 },
        lost: Count { packets: u64::from(terminal), octets: 0 },
    };
    (0..count).map(terminal).collect()
}

fn lateness() -> Lateness {
    let edges = [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2];
    let bins = edges.into_iter().map(Some).chain([None]).zip([4000, 900, 300, 80, 20, 9, 3, 1, 1]);
    Lateness {
        packets: 5314,
        p50_s: 24e-6,
        p99_s: 0.0008,
        p999_s: 0.0043,
        max_s: 0.0271,
        valid: true,
        limit_s: Some(0.0052),
        bins: bins.map(|(below_s, packets)| Bin { below_s, packets }).collect(),
    }
}

fn program(
    name: &str,
    host: &str,
    phase: ProgramPhase,
    exit_code: Option<i32>,
    signal: Option<i32>,
) -> ProgramState {
    ProgramState { name: name.into(), host: host.into(), phase, exit_code, signal }
}

/// Returns a view after a minute of a link of 2 Mbit/s. The rate rises over the first 20 s, and there is an outage from
/// 40 s to 45 s.
fn minute() -> View {
    let mut view = View::default();
    view.ask(String::new());
    view.hear(AnswerLine::Ok(Answer::Description(Box::new(Description {
        version: "0.1.0".into(),
        pid: 4711,
        link: "geo".into(),
        seed: 7,
        ..Description::default()
    }))));
    for step in 0..=120_u32 {
        let time_s = f64::from(step) / 2.0;
        let share = if (40.0..45.0).contains(&time_s) { 0.0 } else { (time_s / 20.0).min(1.0) };
        let forward = DirectionState {
            entered: count(5300, 7_950_000),
            delivered: count(5253, 7_879_500),
            lost: count(12, 18_000),
            given_up: Count::default(),
            dropped: count(3, 4500),
            inside: count(43, 64_500),
            queue_octets: Some(12_345),
            entered_bps: 2_100_000.0,
            delivered_bps: 2e6 * share,
            rate_bps: Some(2_000_000),
            delay_s: Some(0.26),
            queue_limit_octets: Some(65_000),
            per: Some(0.001),
            outage_s: Some(3.25),
        };
        let back =
            DirectionState { rate_bps: Some(128_000), delay_s: Some(0.26), ..DirectionState::default() };
        let programs = vec![
            program("http", "far", ProgramPhase::Running, None, None),
            program("curl", "near", ProgramPhase::Ended, Some(22), None),
            program("later", "near", ProgramPhase::Waiting, None, None),
            program("ping", "near", ProgramPhase::Ended, None, Some(15)),
        ];
        let snapshot = Snapshot {
            time_s,
            interval_s: 0.5,
            forward,
            back,
            terminals: terminals(30),
            lateness: lateness(),
            programs,
        };
        view.hear(AnswerLine::Snapshot(Box::new(snapshot)));
    }
    view
}

fn drawn(view: &View, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    terminal.backend().buffer().clone()
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect();
    buffer.content.chunks(width.max(1)).map(row).collect()
}

fn picture(view: &View, width: u16, height: u16) -> String {
    rows(&drawn(view, width, height)).join("\n")
}

#[test]
fn a_narrow_terminal_shows_everything_that_matters() {
    let picture = picture(&minute(), 80, 24);
    for text in [
        "farcast emulate geo  seed 7  60.0 s  VALID",
        "0.1.0  process 4711",
        "\u{25b6} forward: hub to terminals",
        "\u{25b6} return: terminals to hub",
        "OUTAGE 3.2 s",
        "out 2 Mbit/s  in 2.1 Mbit/s",
        "out 0 bit/s  in 0 bit/s",
        "inside 43 packets, queue 12.3 kB",
        "lost 12 (0.226 %), dropped 3",
        "set 2 Mbit/s, 260 ms, loss 0.1 %",
        "set 128 kbit/s, 260 ms",
        "terminals 1 to 3 of 30",
        "p50 24 us  p99 800 us (limit 5.2 ms)  p99.9 4.3 ms  max 27.1 ms ",
        "lateness of 5314 packets",
        "exit code 22",
        "q quit  o outage 1 s  +- rate  dD delay  lL loss  Tab way  \u{2191}\u{2193} scroll  s stop",
    ] {
        assert!(picture.contains(text), "{text} is not in\n{picture}");
    }
}

#[test]
fn a_wide_terminal_shows_more() {
    let picture = picture(&minute(), 160, 50);
    for text in
        ["terminals 1 to 24 of 30", "22       990 ", "22 (2.17 %)", "signal 15", "waiting", "5 ms", "s stop"]
    {
        assert!(picture.contains(text), "{text} is not in\n{picture}");
    }
}

#[test]
fn the_chart_is_the_last_minute_and_its_top_the_rate() {
    let view = minute();
    // Each column is a second. It is the mean of two points while the rate rises, then the rate, except for the outage.
    let chart = view.chart(LinkDirection::Forward, 60);
    let expected = |second: u64| match second {
        40..45 => 0,
        // A column has two points, such as those at 44.5 and 45, of which one is in the outage.
        _ => (2_000_000.0 * ((second as f64 + 0.75) / 20.0).min(1.0)) as u64,
    };
    for second in [0, 5, 19, 30, 41, 43, 50, 59] {
        assert_eq!(chart[second as usize], Some(expected(second)), "second {second}");
    }
    assert_eq!(view.chart(LinkDirection::Return, 60), vec![Some(0); 60]);
    // On the screen the plateau is full blocks from the bottom to the top of the chart's rows, the outage is empty.
    let rows = rows(&drawn(&view, 122, 24));
    let column = |second: usize| rows[2..5].iter().map(move |row| row.chars().nth(1 + second).unwrap());
    assert!(column(30).all(|symbol| symbol == '\u{2588}'), "{}", rows.join("\n"));
    assert!(column(42).all(|symbol| symbol == ' '), "{}", rows.join("\n"));
    // With more columns than points there are gaps, with none there is nothing.
    assert_eq!(view.chart(LinkDirection::Forward, 600).iter().flatten().count(), 120);
    assert_eq!(view.chart(LinkDirection::Forward, 0), []);
}

#[test]
fn charts_take_what_tables_do_not_need() {
    let mut view = minute();
    // On the plateau a column of the chart is full blocks. The chart has an eighth of 40 lines at least and a third at
    // most.
    let chart = |view: &View, height: u16| {
        let rows = rows(&drawn(view, 122, height));
        rows[2..].iter().take_while(|row| row.chars().nth(31) == Some('\u{2588}')).count()
    };
    assert_eq!(chart(&view, 40), 5);
    view.latest.as_mut().unwrap().terminals = terminals(2);
    assert_eq!(chart(&view, 40), 13);
    // Four programs take seven lines with their frame, and 15 are neither theirs nor the chart's.
    assert_eq!(chart(&view, 32), 10);
    assert_eq!(chart(&view, 29), 7);
    for height in [26, 29, 32, 40] {
        let shown = picture(&view, 122, height);
        assert!(shown.contains("signal 15") && shown.contains("max 27.1 ms"), "{shown}");
    }
    // Before the first snapshot, the view shows no numbers.
    let nothing = picture(&View::default(), 80, 24);
    assert!(nothing.contains("waiting for the emulation") && !nothing.contains("seed"), "{nothing}");
}

#[test]
fn an_invalid_run_is_told_in_red() {
    let mut view = minute();
    view.latest.as_mut().unwrap().lateness.valid = false;
    let buffer = drawn(&view, 80, 24);
    assert!(rows(&buffer)[0].contains("60.0 s  INVALID"));
    let at = u16::try_from(rows(&buffer)[0].find("INVALID").unwrap()).unwrap();
    assert_eq!(buffer[(at, 0)].fg, Color::Red);
    let buffer = drawn(&minute(), 80, 24);
    assert_eq!(buffer[(at, 0)].fg, Color::Green);
}

#[test]
fn any_size_and_any_number_can_be_drawn() {
    let mut extreme = minute();
    let latest = extreme.latest.as_mut().unwrap();
    latest.forward = DirectionState {
        entered: count(u64::MAX, u64::MAX),
        delivered: count(u64::MAX, u64::MAX),
        lost: count(u64::MAX, u64::MAX),
        queue_octets: Some(u64::MAX),
        entered_bps: f64::INFINITY,
        delivered_bps: f64::NAN,
        rate_bps: Some(u64::MAX),
        delay_s: Some(f64::MAX),
        per: Some(f64::MIN_POSITIVE),
        outage_s: Some(f64::INFINITY),
        ..DirectionState::default()
    };
    latest.back.delay_s = Some(-1.0);
    latest.terminals = terminals(3);
    latest.lateness.bins = vec![Bin { below_s: Some(f64::NAN), packets: u64::MAX }; 500];
    extreme.scroll = usize::MAX;
    for view in [&View::default(), &minute(), &extreme] {
        for width in [1, 2, 3, 10, 39, 80, 200] {
            for height in [1, 2, 3, 5, 9, 17, 24, 100] {
                assert_eq!(
                    drawn(view, width, height).content.len(),
                    usize::from(width) * usize::from(height)
                );
            }
        }
    }
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let mut view = minute();
    view.description.link = "a\u{1b}[2Jb".into();
    view.latest.as_mut().unwrap().programs[0].name = "x\u{7}\u{9b}\ny".into();
    view.message = "no\r\u{1b}c".into();
    let buffer = drawn(&view, 80, 24);
    assert!(buffer.content.iter().all(|cell| !cell.symbol().contains(char::is_control)));
}

fn key(view: &mut View, code: KeyCode) -> Action {
    press(view, KeyEvent::new(code, KeyModifiers::NONE))
}

/// Returns the names and changes that a letter asks for.
fn asked(view: &mut View, letter: char) -> Vec<(String, Change)> {
    let Action::Ask(questions) = key(view, KeyCode::Char(letter)) else {
        panic!("{letter} asks for nothing")
    };
    let change = |(what, request)| match request {
        Request::Set(change) => (what, change),
        other => panic!("{other:?}"),
    };
    questions.into_iter().map(change).collect()
}

#[test]
fn keys_change_the_chosen_ways() {
    let mut view = minute();
    let rates = |asked: Vec<(String, Change)>| -> Vec<_> {
        asked.into_iter().map(|(_, change)| (change.way, change.rate.map(BitRate::as_bps))).collect()
    };
    let (forward, back) = (Some(LinkDirection::Forward), Some(LinkDirection::Return));
    assert_eq!(rates(asked(&mut view, '+')), [(forward, Some(2_200_000)), (back, Some(140_800))]);
    assert_eq!(rates(asked(&mut view, '-')), [(forward, Some(1_800_000)), (back, Some(115_200))]);
    assert_eq!(key(&mut view, KeyCode::Tab), Action::Draw);
    assert!(!picture(&view, 80, 24).contains("\u{25b6} return"));
    let delays = |asked: Vec<(String, Change)>| (asked.len(), asked[0].1.delay);
    assert_eq!(delays(asked(&mut view, 'D')), (1, Some(Span::from_millis(286))));
    assert_eq!(delays(asked(&mut view, 'd')), (1, Some(Span::from_millis(234))));
    let losses = |asked: Vec<(String, Change)>| asked[0].1.per.map(Probability::get);
    assert_eq!(losses(asked(&mut view, 'L')), Some(0.002));
    assert_eq!(losses(asked(&mut view, 'l')), Some(0.0005));
    let outage = asked(&mut view, 'o');
    assert_eq!(outage[0].0, "forward: an outage of 1 s");
    let expected = Change { way: forward, outage: Some(Span::from_secs(1)), ..Change::default() };
    assert_eq!(outage[0].1, expected);
    // The way back has no losses yet.
    key(&mut view, KeyCode::Tab);
    assert_eq!(losses(asked(&mut view, 'L')), Some(0.001));
    assert_eq!(key(&mut view, KeyCode::Char('l')), Action::Draw);
    assert_eq!(view.message, "no loss here that can be changed so");
    key(&mut view, KeyCode::Tab);
    assert_eq!(asked(&mut view, 'o')[0].1.way, None);
}

#[test]
fn keys_stay_within_what_can_be_set() {
    let mut view = minute();
    view.way = Some(LinkDirection::Forward);
    for (letter, state, expected) in [
        ('-', DirectionState { rate_bps: Some(1), ..DirectionState::default() }, "{\"rate\":\"1 bit/s\"}"),
        (
            '+',
            DirectionState { rate_bps: Some(u64::MAX), ..DirectionState::default() },
            "{\"rate\":\"1000000000000 bit/s\"}",
        ),
        ('d', DirectionState { delay_s: Some(0.0), ..DirectionState::default() }, "{\"delay\":\"0 ns\"}"),
        (
            'D',
            DirectionState { delay_s: Some(0.0), ..DirectionState::default() },
            "{\"delay\":\"1000000 ns\"}",
        ),
        (
            'D',
            DirectionState { delay_s: Some(1e300), ..DirectionState::default() },
            "{\"delay\":\"1000000000000000 ns\"}",
        ),
        ('L', DirectionState { per: Some(0.7), ..DirectionState::default() }, "{\"per\":\"1\"}"),
        ('l', DirectionState { per: Some(1.5e-6), ..DirectionState::default() }, "{\"per\":\"0\"}"),
    ] {
        view.latest.as_mut().unwrap().forward = state;
        let change = Change { way: None, ..asked(&mut view, letter)[0].1.clone() };
        let written = serde_json::to_string(&Request::Set(change)).unwrap();
        assert_eq!(written, format!("{{\"set\":{expected}}}"));
        // The change is a valid request.
        assert!(Request::parse(written.as_bytes()).is_ok(), "{written}");
    }
    // Before the first snapshot no state is known, and keys change nothing.
    let mut empty = View::default();
    for letter in "+-dDlL".chars() {
        assert_eq!(key(&mut empty, KeyCode::Char(letter)), Action::Draw);
    }
}

#[test]
fn the_emulation_is_stopped_by_two_keys_and_left_by_one() {
    let mut view = minute();
    assert_eq!(key(&mut view, KeyCode::Char('s')), Action::Draw);
    assert_eq!(view.message, "press s again to end the emulation");
    assert_eq!(key(&mut view, KeyCode::Down), Action::Draw);
    assert_eq!(key(&mut view, KeyCode::Char('s')), Action::Draw);
    let stop = Action::Ask(vec![("stop".into(), Request::Stop)]);
    assert_eq!(key(&mut view, KeyCode::Char('s')), stop);
    assert_eq!(key(&mut view, KeyCode::Char('q')), Action::Quit);
    assert_eq!(press(&mut view, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
}

#[test]
fn the_table_scrolls_to_its_ends_and_no_further() {
    let mut view = minute();
    for (code, first) in [
        (KeyCode::Up, 1),
        (KeyCode::Down, 2),
        (KeyCode::PageDown, 12),
        (KeyCode::End, 28),
        (KeyCode::Down, 28),
        (KeyCode::Home, 1),
        (KeyCode::PageUp, 1),
    ] {
        key(&mut view, code);
        let shown = picture(&view, 160, 24);
        let title = format!("terminals {first} to {} of 30", first + 2);
        assert!(shown.contains(&title), "{title} is not in\n{shown}");
    }
}

#[test]
fn answers_are_told_with_what_was_asked() {
    let mut view = View::default();
    for what in ["", "forward: rate 1 Mbit/s", "return: delay 5 ms"] {
        view.ask(what.into());
    }
    view.hear(AnswerLine::Ok(Answer::Done));
    assert_eq!(view.message, "");
    view.hear(AnswerLine::Snapshot(Box::default()));
    view.hear(AnswerLine::Ok(Answer::Done));
    assert_eq!(view.message, "forward: rate 1 Mbit/s: done");
    view.hear(AnswerLine::Error("there is no such stage".into()));
    assert_eq!(view.message, "return: delay 5 ms: there is no such stage");
    // An answer without a question is shown, and is no failure.
    view.hear(AnswerLine::Error("16 clients are connected already".into()));
    assert_eq!(view.message, "16 clients are connected already");
}

#[test]
fn quantities_are_written_as_people_do() {
    let spans = [
        (0.0, "0 s"),
        (24e-6, "24 us"),
        (1.234e-3, "1.23 ms"),
        (0.26, "260 ms"),
        (1.0, "1 s"),
        (12.34, "12.3 s"),
        (4321.0, "4321 s"),
        (f64::NAN, "0 s"),
    ];
    for (span, text) in spans {
        assert_eq!(seconds(span), text);
    }
    for (probability, text) in
        [(0.0, "0 %"), (1e-6, "0.0001 %"), (0.001, "0.1 %"), (0.5, "50 %"), (1.0, "100 %")]
    {
        assert_eq!(per_cent(probability), text);
    }
}

#[test]
fn words_are_a_process_a_request_or_both() {
    let of = |words: &[&str]| understood(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
    let stop = r#"{"stop": {}}"#;
    let (pid, request) = (Some(12), Some(Request::Stop));
    assert_eq!(of(&[]).unwrap(), Words { pid: None, request: None });
    assert_eq!(of(&["12"]).unwrap(), Words { pid, request: None });
    assert_eq!(of(&[stop]).unwrap(), Words { pid: None, request: request.clone() });
    assert_eq!(of(&["12", stop]).unwrap(), Words { pid, request });
    for wrong in [&["twelve"][..], &["-1"], &["12", "stop"], &[stop, stop], &["1", stop, stop]] {
        assert!(of(wrong).is_err(), "{wrong:?}");
    }
}
