//! `farcast compare`: differences between two sets of replications.

use farcast_lab::compare::{Compared, Comparison, LeftOut, Options, compare};
use farcast_lab::report;
use farcast_lab::table::Table as Data;

use crate::args::CompareArgs;
use crate::laboratory::{VERSION, write_page};
use crate::output::Output;
use crate::sweep::significant;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure, outputs};

/// Number of comparisons that are written out as sentences for a reader.
const MOST_SENTENCES: usize = 12;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> Result<Exit, Failure> {
    let output = Output::of(args.json, args.quiet);
    outputs::files(&[("--report", args.report.as_deref())])?;
    let [a, b] = [&args.a, &args.b].map(|path| Data::read(path).map_err(Failure::wrong));
    let level = args.confidence.get();
    if !(0.5..=0.9999).contains(&level) {
        return Err(Failure::usage("--confidence: intervals are of 50 % to 99.99 %"));
    }
    let options = Options { columns: args.column.clone(), paired: args.paired, level };
    let (a, b) = (a?, b?);
    for (path, table) in [(&args.a, &a), (&args.b, &b)] {
        if table.is_empty() {
            return Err(Failure::usage(format!(
                "{} has no row: there is nothing to compare",
                path.display()
            )));
        }
    }
    let compared = compare(&a, &b, &options).map_err(Failure::wrong)?;
    let Compared { all, left_out } = &compared;
    if let Some(path) = &args.report {
        let names = [args.a.display().to_string(), args.b.display().to_string()];
        let page = report::compare([&names[0], &names[1]], [&a, &b], &compared, VERSION);
        write_page(path, &page, &output)?;
    }
    if args.json {
        output.object(all);
        tell_left_out(left_out, &output);
    } else {
        output.result(&text(args, all));
        tell_left_out(left_out, &output);
    }
    Ok(Exit::Done)
}

/// Prints the comparisons that were left out, each with its reason.
fn tell_left_out(left_out: &[LeftOut], output: &Output) {
    for one in left_out.iter().take(MOST_SENTENCES) {
        output.line(&format!("not compared: {}", one.words()));
    }
    let more = left_out.len().saturating_sub(MOST_SENTENCES);
    if more > 0 {
        output.line(&format!("not compared: {more} more like these"));
    }
}

fn text(args: &CompareArgs, all: &[Comparison]) -> Text {
    let which = format!("A is {}, B is {}", args.a.display(), args.b.display());
    let mut parts = vec![Text::line(&which), table(all)];
    parts.push(Text::lines(all.iter().take(MOST_SENTENCES).map(|one| one.words() + ".")));
    if all.len() > MOST_SENTENCES {
        let differ = all.iter().filter(|one| one.differs).count();
        let differ = format!("In all {differ} of {} comparisons the means differ.", all.len());
        parts.push(Text::line(&differ));
    }
    Text::paragraphs(parts)
}

fn table(all: &[Comparison]) -> Text {
    let keys: Vec<&str> =
        all.first().map_or_else(Vec::new, |one| one.settings.iter().map(|(key, _)| key.as_str()).collect());
    let mut heading: Vec<(&str, Align)> = keys.iter().map(|key| (*key, Align::Right)).collect();
    heading.push(("figure", Align::Left));
    let numbers = ["A", "sd", "n", "B", "sd", "n", "B - A", "interval", "p", "p of shape"];
    heading.extend(numbers.map(|name| (name, Align::Right)));
    heading.push(("", Align::Left));
    let mut table = Table::new(&heading);
    for one in all {
        let mut cells: Vec<String> = one.settings.iter().map(|(_, value)| value.clone()).collect();
        cells.push(one.column.clone());
        for sample in [&one.a, &one.b] {
            cells.push(significant(sample.mean));
            cells.push(sample.sd.map_or_else(|| "-".to_owned(), significant));
            cells.push(sample.n.to_string());
        }
        cells.push(significant(one.difference));
        cells.push(format!("\u{b1} {}", significant(one.half_width)));
        cells.extend([one.p_adjusted, one.ks_p].map(probability));
        cells.push(if one.differs { "differs".into() } else { String::new() });
        table.row(cells);
    }
    table.render()
}

fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}
