//! `receivers`, or `[[groups]]` of receivers that are alike.

use farcast_core::Span;

use crate::document::{DocumentError, Reader};
use crate::links::LossSpec;

/// Most receivers of a document in all; memory runs out long before.
pub const MOST: u32 = 1 << 30;

/// Receivers that are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Number of receivers.
    pub receivers: u32,
    /// Additional delay from the channel to the receivers.
    pub delay: Span,
    /// Losses of the receivers, if they differ from those of `link.forward`.
    pub losses: Option<LossSpec>,
}

/// Reads `receivers`, or `[[groups]]`.
///
/// # Errors
/// Neither of them, both, or more than [`MOST`] receivers in all.
pub fn read(top: &mut Reader<'_>) -> Result<Vec<Group>, DocumentError> {
    let Some(tables) = top.optional_tables("groups")? else {
        let receivers = top.integer("receivers", 1..=MOST)?;
        return Ok(vec![Group { receivers, delay: Span::ZERO, losses: None }]);
    };
    if top.optional_integer("receivers", 1..=MOST)?.is_some() {
        return Err(top.refuse(
            "receivers",
            "there are groups, and they say how many receivers they have",
            "either receivers or [[groups]]",
        ));
    }
    let mut groups = Vec::new();
    let mut left = MOST;
    for mut table in tables {
        table.text("name")?;
        if left == 0 {
            return Err(table.refuse(
                "receivers",
                "there are too many receivers in all",
                format!("at most {MOST}"),
            ));
        }
        let receivers = table.integer("receivers", 1..=left)?;
        left -= receivers;
        let delay = table.span_or("delay", Span::ZERO)?;
        let losses = LossSpec::read_own(&mut table)?;
        groups.push(Group { receivers, delay, losses });
        table.finish()?;
    }
    if groups.is_empty() {
        return Err(top.refuse("groups", "it is empty", "at least one [[groups]]"));
    }
    Ok(groups)
}
