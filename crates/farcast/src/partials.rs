//! `farcast partials`: data on disk of products that are not complete.

use std::path::Path;
use std::time::{Duration, SystemTime};

use farcast_files::partials::{self, Partial};
use farcast_files::{ProductId, Quota, Usage};
use serde_json::{Value, json};

use crate::output::Output;
use crate::progress::{percent, size};
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure};

mod args;

pub(crate) use args::PartialsArgs;

/// Number of digits of an identifier that are shown.
const SHORT: usize = 8;

#[expect(clippy::disallowed_methods, reason = "ages are counted from now, and the command line is no engine")]
pub(crate) fn run(args: &PartialsArgs) -> Result<Exit, Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::usage(format!("\"{}\" is not a directory", args.dir.display())));
    }
    let (quota, now) = (args.quota.quota(), SystemTime::now());
    let before = partials::list(&args.dir)?;
    if args.expired {
        partials::tidy(&args.dir, &quota, now, Duration::ZERO)?;
    }
    for id in chosen(args, &before)? {
        partials::remove(&args.dir, id)?;
    }
    let left = partials::list(&args.dir)?;
    let gone = |one: &&Partial| left.iter().all(|other| other.id != one.id);
    let removed: Vec<ProductId> = before.iter().filter(gone).map(|one| one.id).collect();
    let usage = partials::usage(&args.dir, &left, &quota)?;
    let shown = Shown { dir: &args.dir, left: &left, removed: &removed, usage, quota, now };
    let output = Output::of(args.json, args.quiet);
    if args.json {
        output.object(&shown.object());
    } else {
        output.result(&shown.text());
    }
    Ok(Exit::Done)
}

/// Returns the products that `--remove` and `--all` name.
fn chosen(args: &PartialsArgs, all: &[Partial]) -> Result<Vec<ProductId>, Failure> {
    if args.all {
        return Ok(all.iter().filter(|one| !one.in_use).map(|one| one.id).collect());
    }
    let one = |wanted: &String| {
        let mut found = all.iter().filter(|one| one.id.to_string().starts_with(wanted.as_str()));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one.id),
            (None, _) => {
                Err(Failure::usage(format!("no product here has an identifier that begins with {wanted}")))
            }
            (Some(_), Some(_)) => Err(Failure::usage(format!(
                "several identifiers begin with {wanted}; give more of its digits"
            ))),
        }
    };
    args.remove.iter().map(one).collect()
}

/// Data for the table and for the JSON object.
struct Shown<'a> {
    dir: &'a Path,
    left: &'a [Partial],
    removed: &'a [ProductId],
    /// Disk space and files in use, and the limits.
    usage: (Usage, Usage),
    quota: Quota,
    now: SystemTime,
}

impl Shown<'_> {
    fn text(&self) -> Text {
        let removed = Text::lines(self.removed.iter().map(|id| format!("removed: {}", short(*id))));
        let left = if self.left.is_empty() {
            Text::line(&format!("nothing unfinished in {}", self.dir.display()))
        } else {
            self.table().render()
        };
        let (used, limit) = self.usage;
        let all = format!(
            "in all: {} of {}, {} of {} files, {} of {} products",
            size(used.octets),
            size(limit.octets),
            used.inodes,
            limit.inodes,
            self.left.len(),
            self.quota.products
        );
        removed.then(left).then(Text::line(&all))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("id", Align::Left),
            ("name", Align::Left),
            ("size", Align::Right),
            ("here", Align::Right),
            ("on disk", Align::Right),
            ("files", Align::Right),
            ("last data", Align::Right),
            ("kept", Align::Left),
        ]);
        for one in self.left {
            let age = self.now.duration_since(one.last).unwrap_or_default();
            table.row([
                short(one.id),
                name(one).unwrap_or_else(|| "-".into()),
                one.size.map_or_else(|| "-".into(), size),
                one.size.map_or_else(|| "-".into(), |whole| percent(one.held, whole)),
                size(one.usage.octets),
                one.usage.inodes.to_string(),
                format!("{} ago", span(age)),
                self.kept(one),
            ]);
        }
        table
    }

    /// Returns in words the time until which `one` is kept.
    fn kept(&self, one: &Partial) -> String {
        if one.in_use {
            return "being received".into();
        }
        if !one.verified && !one.plain {
            return "until a receiver starts: its list of files is not here".into();
        }
        let most = one.left(&self.quota);
        match one.expires(&self.quota).duration_since(self.now) {
            // The limit holds even if the clock ran backwards.
            Ok(left) if left > most => format!("for {} of a receiver's running", span(most)),
            Ok(left) => format!("for {}", span(left)),
            Err(_) if one.left(&self.quota).is_zero() => "until a receiver starts: too old".into(),
            // The date is impossible, or no receiver ran while the time passed.
            Err(_) => format!("for {} of a receiver's running", span(one.left(&self.quota))),
        }
    }

    fn object(&self) -> Value {
        let (used, limit) = self.usage;
        let rows: Vec<Value> = self
            .left
            .iter()
            .map(|one| {
                json!({
                    "id": one.id.to_string(),
                    "name": name(one),
                    "size_bytes": one.size,
                    "held_bytes": one.held,
                    "disk_bytes": one.usage.octets,
                    "files": one.usage.inodes,
                    "last_data_unix_s": unix(one.last),
                    "expires_unix_s": unix(one.expires(&self.quota)),
                    "in_use": one.in_use,
                    "verified": one.verified,
                    "plain": one.plain,
                })
            })
            .collect();
        json!({
            "directory": self.dir.display().to_string(),
            "partials": rows,
            "removed": self.removed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "disk_bytes": used.octets,
            "disk_bytes_allowed": limit.octets,
            "files": used.inodes,
            "files_allowed": limit.inodes,
            "products_allowed": self.quota.products,
        })
    }
}

fn name(one: &Partial) -> Option<String> {
    one.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned())
}

fn short(id: ProductId) -> String {
    id.to_string()[..SHORT].to_owned()
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Returns a time in its two largest units.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if days > 0 => format!("{days} d {} h", hours % 24),
        () if hours > 0 => format!("{hours} h {} min", minutes % 60),
        () if minutes > 0 => format!("{minutes} min"),
        () => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        let shown = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(shown(59), "59 s");
        assert_eq!(shown(61), "1 min");
        assert_eq!(shown(3 * 3600 + 119), "3 h 1 min");
        assert_eq!(shown(14 * 86_400 - 1), "13 d 23 h");
    }
}
