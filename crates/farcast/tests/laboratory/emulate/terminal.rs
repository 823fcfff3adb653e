//! View of a running emulation, on a terminal that script(1) makes. Keys change the link, and the terminal is restored
//! at the end.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::run::{Emulate, Way, link, need};
use crate::common::{Place, Running, wait_until};

/// Control sequences of xterm that switch to the alternate screen, and back.
const OTHER_SCREEN: (&str, &str) = ("\x1b[?1049h", "\x1b[?1049l");
/// Control sequences that hide the cursor, and show it.
const CURSOR: (&str, &str) = ("\x1b[?25l", "\x1b[?25h");

/// A process that is killed when its test ends.
struct Shown(Child);

impl Drop for Shown {
    fn drop(&mut self) {
        // Where all went well, the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the view of the emulation of process `pid` on a terminal of 80 by 24. The output goes into the file `screen`,
/// the terminal's settings into `before` and `after`, the exit code into `code`.
fn view(place: &Place, pid: u32) -> Shown {
    need("script", "bsdutils");
    let farcast = env!("CARGO_BIN_EXE_farcast");
    let line = format!(
        "stty rows 24 cols 80; stty -a >before; {farcast} emulate --control {pid}; echo $? >code; stty -a >after"
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    // It runs the user's shell, which differs between machines.
    script.env("SHELL", "/bin/sh").env("TERM", "xterm-256color").current_dir(place.root());
    let screen = fs::File::create(place.path("screen")).unwrap();
    script.stdin(Stdio::piped()).stdout(screen.try_clone().unwrap()).stderr(screen);
    Shown(script.spawn().unwrap())
}

/// Returns the present content of the file `name` of a place.
fn text(place: &Place, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(place.path(name)).unwrap_or_default()).into_owned()
}

/// Returns every snapshot so far of a watch that goes on.
fn snapshots(watch: &Running) -> Vec<Value> {
    let text = watch.stdout();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns `true` if the second of `codes` stands behind the last first one in the output.
fn is_undone(drawn: &str, codes: (&str, &str)) -> bool {
    drawn.contains(codes.0) && drawn.rfind(codes.1) > drawn.rfind(codes.0)
}

#[test]
fn keys_change_the_link_and_the_terminal_is_given_back() {
    let place = Place::new();
    let link = link(Way::new(8_000_000, 30, 100_000), Way::new(1_000_000, 20, 100_000));
    let emulation = Emulate::toml(&place, "viewed", &link).options(&["--quiet"]).near("exec sleep 300");
    let emulation = place.start("viewed", emulation.command());
    let pid = emulation.child.id();
    let ask = |request: &str| place.farcast(["emulate", "--control", &pid.to_string(), request]).output();
    wait_until("the emulation answers", || ask("{\"describe\":{}}").unwrap().status.success());
    let every = "{\"watch\":{\"every\":\"100 ms\"}}";
    let watch = place.start("watch", place.farcast(["emulate", "--control", &pid.to_string(), every]));

    let mut view = view(&place, pid);
    let mut keys = view.0.stdin.take().unwrap();
    wait_until("the view shows the link", || {
        assert!(view.0.try_wait().unwrap().is_none(), "{}", text(&place, "screen"));
        text(&place, "screen").contains("Mbit/s")
    });
    // Forward alone: an outage of a second, and a tenth of the rate more; then of the way back a tenth less.
    let rates = || {
        let last = snapshots(&watch).pop().unwrap_or_default();
        [&last["forward"]["rate_bps"], &last["return"]["rate_bps"]].map(Value::as_u64)
    };
    assert_eq!(rates(), [Some(8_000_000), Some(1_000_000)]);
    keys.write_all(b"\to+").unwrap();
    wait_until("the rate forward has changed", || rates() != [Some(8_000_000), Some(1_000_000)]);
    assert_eq!(rates(), [Some(8_800_000), Some(1_000_000)]);
    keys.write_all(b"\t-").unwrap();
    wait_until("the rate of the way back has changed", || rates()[1] != Some(1_000_000));
    assert_eq!(rates(), [Some(8_800_000), Some(900_000)]);
    let outage = |way: &str| {
        let left =
            snapshots(&watch).iter().filter_map(|one| one[way]["outage_s"].as_f64()).collect::<Vec<_>>();
        left.into_iter().fold(0.0, f64::max)
    };
    let (forward, back) = (outage("forward"), outage("return"));
    assert!(forward > 0.5 && forward <= 1.0 && back == 0.0, "{forward} s forward, {back} s back");

    keys.write_all(b"q").unwrap();
    wait_until("the view ends", || view.0.try_wait().unwrap().is_some());
    let drawn = text(&place, "screen");
    assert_eq!(text(&place, "code"), "0\n", "{drawn}");
    assert!(is_undone(&drawn, OTHER_SCREEN) && is_undone(&drawn, CURSOR), "{drawn:?}");
    let settings = text(&place, "before");
    assert!(settings.contains("rows 24; columns 80;") && settings.contains(" icanon "), "{settings}");
    assert_eq!(text(&place, "after"), settings);
    // The emulation goes on, until it is told to end.
    assert!(ask("{\"stop\":{}}").unwrap().status.success());
    emulation.wait();
    watch.succeed();
}
