//! `--help`: a screen of what most people need, and the rest by section.
//!
//! This module lists the options that the screen shows. Their sections are the headings that they have in `args`. A
//! command that is not listed here shows all its options.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// Help of a command that has more options than a screen has lines.
struct Page {
    command: &'static str,
    /// Options on the screen: those that most people need.
    main: &'static [&'static str],
    examples: &'static str,
}

const PAGES: &[Page] = &[
    Page {
        command: "send",
        main: &[
            "paths",
            "to",
            "rate",
            "name",
            "speaks",
            "receivers",
            "wait-for",
            "wait",
            "interface",
            "ttl",
            "json",
            "quiet",
        ],
        examples: "
  farcast send reports/ --to 239.255.1.1 --rate '20 Mbit/s' --receivers station-7,station-8
  farcast send image.iso --to 239.255.1.1 --rate max --wait-for 3
  farcast send image.iso --to station-7.example.org --rate '2 Mbit/s'",
    },
    Page {
        command: "receive",
        main: &["from", "into", "name", "speaks", "once", "on_complete", "interface", "json", "quiet"],
        examples: "
  farcast receive --from 239.255.1.1 --into inbox --name station-7
  farcast receive --from 239.255.1.1 --into inbox --once --on-complete 'ls -l \"$FARCAST_DIR\"'
  farcast receive --from 232.1.1.1 --source head-end.example.org --into inbox",
    },
    Page {
        command: "simulate",
        main: &["scenario", "traffic", "set", "replications", "timeline", "show", "list", "json", "quiet"],
        examples: "
  farcast simulate mftp-bgan --set receivers=80 --set link.forward.per=0.005 -n 400
  farcast simulate geo --traffic 'tcp, size = 10 MB' --report run.html",
    },
    Page {
        command: "sweep",
        main: &["scenario", "vary", "set", "replications", "precision", "out", "column", "json", "quiet"],
        examples: "
  farcast sweep mftp-bgan --vary link.forward.per=0.001..0.02*8 --vary receivers=20,80 --out losses
  farcast sweep geo --traffic 'tcp, size = 10 MB' --vary 'link.forward.delay=50 ms..300 ms/6'",
    },
    Page {
        command: "tune",
        main: &["scenario", "vary", "minimise", "subject_to", "set", "plan", "json", "quiet"],
        examples: "
  farcast tune mftp-bgan
  farcast tune mftp-bgan --vary protocol.srt.n=1..10 --minimise completion_time_s.p95 --plan best.toml",
    },
    Page {
        command: "emulate",
        main: &["link", "command", "far", "shell", "set", "timeline", "control", "list", "quiet"],
        examples: "
  farcast emulate geo --far 'python3 -m http.server' -- sh -c 'curl -o copy $FARCAST_PEER:8000/file'
  farcast emulate leo --set link.forward.per=0.01 --shell
  farcast emulate --control '{\"set\": {\"outage\": \"5 s\"}}'",
    },
];

/// Name of the section that holds all sections.
const ALL: &str = "all";

/// Returns the help that a command line asks for, after clap has refused the command line with `error`. The result is
/// the command whose help is to be printed, or a sentence about a wrong section. `None` if the command line asks for no
/// help.
pub(crate) fn asked(
    error: &clap::Error,
    words: impl Iterator<Item = OsString>,
) -> Option<Result<Command, String>> {
    let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    // "farcast help send all" means "farcast send --help all", but clap takes its last word for a command.
    let worded = words.first().is_some_and(|word| word == "help");
    match error.kind() {
        ErrorKind::DisplayHelp => {}
        ErrorKind::InvalidSubcommand if worded => {}
        _ => return None,
    }
    if worded {
        words.remove(0);
    }
    let mut command = <super::cli::Cli as clap::CommandFactory>::command();
    command.build();
    let mut depth = 0;
    while let Some(inner) = words.get(depth).and_then(|word| command.find_subcommand(word)) {
        command = inner.clone();
        depth += 1;
    }
    let section = if worded {
        if words.len() > depth + 1 || (depth == 0 && !words.is_empty()) {
            return None;
        }
        words.get(depth)
    } else {
        // The first one is the one that clap has seen: no option takes it as its value.
        let help = words.iter().position(|word| word == "--help" || word == "-h");
        help.and_then(|at| words.get(at + 1)).filter(|word| !word.starts_with('-'))
    };
    Some(page(command, section.map(String::as_str)))
}

/// Returns `command` with only the requested part of its help visible, for printing in short form.
fn page(command: Command, section: Option<&str>) -> Result<Command, String> {
    let page = PAGES.iter().find(|page| page.command == command.get_name());
    let sections = page.map_or_else(Vec::new, |_| sections(&command));
    match (section, page) {
        (None, Some(page)) => Ok(screen(command, page, &sections)),
        (None | Some(ALL), _) => Ok(whole(command, page)),
        (Some(section), _) if sections.iter().any(|one| one == section) => Ok(only(command, section)),
        (Some(section), _) => {
            let there: Vec<&str> = sections.iter().map(String::as_str).chain([ALL]).collect();
            let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
            Err(format!("the help of {name} has no section {section:?}: it has {}", there.join(", ")))
        }
    }
}

/// Returns the section names of an option: the first word of its heading, or of each heading that " and " joins.
fn sections_of(arg: &Arg) -> impl Iterator<Item = String> + '_ {
    let headings = arg.get_help_heading().into_iter().flat_map(|heading| heading.split(" and "));
    headings.filter_map(|heading| heading.split_whitespace().next().map(str::to_lowercase))
}

fn sections(command: &Command) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for section in command.get_arguments().filter(|arg| !arg.is_hide_set()).flat_map(sections_of) {
        if !all.contains(&section) {
            all.push(section);
        }
    }
    all
}

fn screen(command: Command, page: &Page, sections: &[String]) -> Command {
    let name = command.get_bin_name().unwrap_or(page.command).to_owned();
    let more = format!("More: {name} --help SECTION, which is {} or {ALL}.", sections.join(", "));
    let notes = format!("{}\n\n{more}", notes(&command, Some(page)));
    let shown = |arg: &Arg| page.main.contains(&arg.get_id().as_str()) || arg.get_id() == "help";
    command
        .mut_args(|arg| if shown(&arg) { arg.help_heading(Resettable::Reset) } else { arg.hide(true) })
        .after_help(notes)
}

fn whole(command: Command, page: Option<&Page>) -> Command {
    let notes = notes(&command, page);
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    command.about(about).mut_arg("help", |help| help.help("Print help")).after_help(notes)
}

fn only(command: Command, section: &str) -> Command {
    command
        .mut_args(|arg| {
            let hidden = arg.is_hide_set() || sections_of(&arg).all(|one| one != section);
            arg.hide(hidden)
        })
        .help_template("{all-args}")
}

/// Returns the text below the options.
fn notes(command: &Command, page: Option<&Page>) -> String {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.map_or(own.clone(), |page| format!("Examples:{}\n\n{own}", page.examples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_on_the_screen_or_in_a_section() {
        for page in PAGES {
            let mut cli = <crate::cli::Cli as clap::CommandFactory>::command();
            cli.build();
            let command = cli.find_subcommand(page.command).unwrap();
            for name in page.main {
                assert!(command.get_arguments().any(|arg| arg.get_id() == name), "{} {name}", page.command);
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
                let shown = page.main.contains(&arg.get_id().as_str()) || sections_of(arg).next().is_some();
                assert!(shown, "{} {}: nobody finds it", page.command, arg.get_id());
            }
        }
    }

    /// Returns all pages of the book as one text.
    fn book() -> String {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
        let folders = ["", "tutorials", "papers"].map(|name| root.join(name));
        let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let paths = entries.map(|entry| entry.unwrap().path());
        let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        pages.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    /// Collects the options of a command and of its subcommands that no page names.
    fn unnamed(command: &Command, book: &str, found: &mut Vec<String>) {
        let is_named = |option: &str| {
            book.match_indices(option).any(|(at, _)| {
                !book[at + option.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
            })
        };
        let options = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
        let missing = options.map(|option| format!("--{option}")).filter(|option| !is_named(option));
        found.extend(missing.map(|option| format!("{} {option}", command.get_name())));
        for inner in command.get_subcommands() {
            unnamed(inner, book, found);
        }
    }

    #[test]
    fn each_option_stands_in_the_book() {
        let mut cli = <crate::cli::Cli as clap::CommandFactory>::command();
        cli.build();
        let mut found = Vec::new();
        unnamed(&cli, &book(), &mut found);
        assert!(found.is_empty(), "on no page of docs/src: {found:#?}");
    }
}
