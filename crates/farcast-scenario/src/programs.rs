//! `[[programs]]`: what the hosts of an emulated scenario run.
//!
//! | key | what |
//! |---|---|
//! | `name` | what messages call it |
//! | `on` | `"hub"`, `"terminals"` (each of them), or the number of one terminal, from 0, as text |
//! | `command` | a command line, run by `sh -c` |
//! | `start` | when it starts; at once without it |
//! | `background` | whether the emulation does not wait for its end |

use farcast_core::Span;

use crate::document::{DocumentError, Reader};

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// At the hub.
    Hub,
    /// At each terminal.
    Terminals,
    /// At this terminal.
    Terminal(u32),
}

/// A program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// What messages call it.
    pub name: String,
    /// Where it runs.
    pub on: On,
    /// A command line for `sh -c`.
    pub command: String,
    /// When it starts.
    pub start: Span,
    /// Whether nobody waits for its end.
    pub background: bool,
}

/// Reads `[[programs]]`; none, if there are none.
///
/// # Errors
/// What is wrong with the first that is.
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
