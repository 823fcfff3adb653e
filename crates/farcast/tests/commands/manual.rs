//! `farcast completions` and `farcast manual`: bash completes with them, man(1) reads them, and every command is there.

use std::fs;
use std::process::Command;

use crate::common::Place;

/// Returns the commands that the program's help lists.
fn commands(place: &Place) -> Vec<String> {
    let help = place.run("help", place.farcast(["--help"])).stdout;
    let list = help.split("Commands:").nth(1).unwrap();
    let names = list.lines().skip(1).take_while(|line| !line.trim().is_empty());
    let name = |line: &str| {
        (line.starts_with("  ") && !line.starts_with("   "))
            .then(|| line.split_whitespace().next().unwrap().to_owned())
    };
    names.filter_map(name).filter(|name| name != "help").collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let place = Place::new();
    let ended = place.run("completions", place.farcast(["completions", "bash"]));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let script = place.path("farcast.bash");
    fs::write(&script, &ended.stdout).unwrap();
    let completed = |words: &str, last: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={last}; _farcast farcast \"${{COMP_WORDS[{last}]}}\" \
             \"${{COMP_WORDS[{}]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            last - 1
        );
        let ran = Command::new("bash").args(["--norc", "-c", &line]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(completed("farcast swe", 1), ["sweep"]);
    assert_eq!(completed("farcast sweep --vary a=1 --preci", 4), ["--precision"]);
    assert_eq!(completed("farcast key rev", 2), ["revoke"]);
    assert_eq!(completed("farcast key trust a --as rec", 5), ["receiver"]);
    for shell in ["zsh", "fish"] {
        let ended = place.run("completions", place.farcast(["completions", shell]));
        assert!(ended.stdout.contains("sweep") && ended.stdout.contains("tune"), "{shell}");
    }
}

#[test]
fn every_command_has_a_page() {
    let place = Place::new();
    let out = place.path("man1");
    let ended = place.run("manual", place.farcast(["manual", "--out", out.to_str().unwrap()]));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let commands = commands(&place);
    assert!(commands.len() >= 15, "{commands:?}");
    for command in &commands {
        let page = fs::read_to_string(out.join(format!("farcast-{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH OPTIONS"), "{command}");
    }
    assert!(fs::read_to_string(out.join("farcast.1")).unwrap().contains("farcast\\-sweep(1)"));
    assert!(out.join("farcast-model-pftk.1").exists() && out.join("farcast-key-trust.1").exists());
}
