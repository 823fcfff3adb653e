//! `[[programs]]`: programs that run on the hosts of an emulated scenario.
//!
//! | key | what |
//! |---|---|
//! | `name` | name in messages |
//! | `on` | `"hub"`, `"terminals"` (each of them), or the number of one terminal, from 0, as text |
//! | `command` | a command line, run by `sh -c` |
//! | `start` | time of its start; 0 s if absent |
//! | `background` | `true` if the emulation does not wait for its end |

use farcast_core::Span;

use crate::document::{DocumentError, Reader};

/// Hosts on which a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// The hub.
    Hub,
    /// Each terminal.
    Terminals,
    /// The terminal of this number, from 0.
    Terminal(u32),
}

/// A program to run during an emulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name in messages.
    pub name: String,
    /// Hosts on which it runs.
    pub on: On,
    /// A command line for `sh -c`.
    pub command: String,
    /// Time of its start.
    pub start: Span,
    /// True if the emulation does not wait for its end.
    pub background: bool,
}

/// Reads `[[programs]]`; an absent list is empty.
///
/// # Errors
/// The first program that is wrong.
pub fn read(top: &mut Reader<'_>) -> Result<Vec<Program>, DocumentError> {
    top.optional_tables("programs")?.unwrap_or_default().into_iter().map(one).collect()
}

fn one(mut table: Reader<'_>) -> Result<Program, DocumentError> {
    let name = table.text("name")?;
    let on = match &*table.text("on")? {
        "hub" => On::Hub,
        "terminals" => On::Terminals,
        number => On::Terminal(number.parse().map_err(|_| {
            table.refuse("on", "there is no such host", "\"hub\", \"terminals\", or a terminal such as \"0\"")
        })?),
    };
    let command = table.text("command")?;
    let start = table.span_or("start", Span::ZERO)?;
    let background = table.flag_or("background", false)?;
    table.finish()?;
    Ok(Program { name, on, command, start, background })
}
