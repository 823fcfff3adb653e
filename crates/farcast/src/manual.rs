//! `farcast completions` and `farcast manual`: completions for shells and pages for man(1), from the definition of the
//! command line.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::{CompletionsArgs, ManualArgs};
use crate::cli::Cli;
use crate::output::Output;
use crate::{Exit, Failure, stdio};

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(Shell::from(args.shell), &mut Cli::command(), "farcast", &mut text);
    stdio::print(|out| out.write_all(&text));
    Exit::Done
}

/// Writes a page for the program and one for each of its commands.
pub(crate) fn manual(args: &ManualArgs) -> Result<Exit, Failure> {
    let output = Output::for_people();
    std::fs::create_dir_all(&args.out).map_err(|error| cannot(&args.out, &error))?;
    let mut command = Cli::command();
    // Building gives subcommands the names and headings that they otherwise get only when clap parses.
    command.build();
    let pages = pages(&command)?;
    for (name, text) in &pages {
        let path = args.out.join(name);
        farcast_lab::study::files::write_text(&path, text).map_err(Failure::wrong)?;
    }
    output.line(&format!(
        "{} holds {} pages: man {}",
        args.out.display(),
        pages.len(),
        args.out.join("farcast.1").display()
    ));
    Ok(Exit::Done)
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write into {}: {error}", path.display()))
}

/// Returns the pages of a command and of all its subcommands, as file names and roff(7) texts.
fn pages(command: &clap::Command) -> Result<Vec<(String, String)>, Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).render(&mut text)?;
    let mut all = vec![(format!("{name}.1"), String::from_utf8_lossy(&text).into_owned())];
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        all.extend(pages(inner)?);
    }
    Ok(all)
}
