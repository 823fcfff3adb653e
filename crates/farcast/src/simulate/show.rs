//! Summary of a simulation for people.

use farcast_sim::outcome::{
    Direction, FlowTogether, Measure, Remedies, Replication, StageTogether, Together, reasons,
};
use farcast_sim::scenario::Scenario;
use farcast_stats::StatsError;

use crate::table::{Align, Table};
use crate::text::Text;
use farcast_transfer::words::counted;

/// Returns the heading and the tables: of the transfer, of the links, of the flows, of the stages.
pub(super) fn summary(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    replications: &[Replication],
) -> Result<Text, StatsError> {
    let title = if scenario.name().is_empty() { name } else { scenario.name() };
    let why = why(replications, scenario.remedies());
    Ok(of(title, &who(scenario.receivers(), scenario.flows()), seed, &Together::of(replications)?, &why))
}

/// Returns the reasons for which receivers and flows of `replications` were left incomplete, with options that help.
pub(super) fn why<R: AsRef<Replication>>(replications: &[R], help: Option<&Remedies>) -> Vec<String> {
    let all = || replications.iter().map(AsRef::as_ref);
    let mut why = help.map_or_else(Vec::new, |help| reasons(all(), help));
    let flows = replications.first().map_or(&[][..], |first| first.as_ref().flows.as_slice());
    for (number, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.has_end) {
        let open: Vec<u64> = all()
            .filter_map(|one| one.flows.get(number))
            .filter(|flow| flow.completion_time_s.is_none())
            .map(|flow| flow.octets)
            .collect();
        if let Some((least, most)) = open.iter().min().zip(open.iter().max()) {
            let octets = if least == most { most.to_string() } else { format!("{least} to {most}") };
            why.push(format!(
                "in {} of {}: the flow {} was not done at the end; {octets} octets of it had arrived. Raise time_limit.",
                open.len(),
                replications.len(),
                flow.name
            ));
        }
    }
    why
}

/// Returns the summary of any world, with its `title` and its participants in `who`.
pub(super) fn of(title: &str, who: &str, seed: u64, summary: &Together, why: &[String]) -> Text {
    let heading = format!("{title}: {who}, {}, seed {seed}", counted(summary.replications, "replication"));
    let mut text = Text::line(&heading).paragraph(measures(summary));
    if !summary.flows.is_empty() {
        text = text.paragraph(flows(&summary.flows));
    }
    for stage in &summary.stages {
        text = text.paragraph(figures(stage));
    }
    if summary.unfinished > 0 {
        let unfinished = format!(
            "{} of {} replications ended with {} incomplete: there is no mean, and quantiles count them as later \
             than all others",
            summary.unfinished,
            summary.replications,
            if summary.flows.is_empty() { "receivers" } else { "receivers or flows" }
        );
        text = text.paragraph(Text::line(&unfinished)).then(Text::lines(why));
    }
    text
}

/// Returns the participants in words.
pub(super) fn who(receivers: u64, flows: usize) -> String {
    let named = match flows {
        1 => "1 flow".to_owned(),
        n => format!("{n} flows"),
    };
    let who = if receivers == 1 { "1 receiver".to_owned() } else { format!("{receivers} receivers") };
    match (receivers, flows) {
        (_, 0) => who,
        (0, _) => named,
        (..) => format!("{who}, {named}"),
    }
}

/// Returns a table of times and of octets. Without a transfer it has no figures of the protocol.
fn measures(summary: &Together) -> Text {
    let mut table = table_of("");
    table.row(row("completion time", &summary.completion_time_s, "s"));
    if let Some(transfer) = &summary.transfer {
        table.row(row("median receiver's time", &transfer.median_receiver_time_s, "s"));
        if let Some(confirmed) = &transfer.confirmed_time_s {
            table.row(row("all are confirmed after", confirmed, "s"));
        }
        for figure in &transfer.figures {
            table.row(row(figure.label, &figure.measure, unit_of(figure.name).1));
        }
    }
    table.row(row("octets forward", &summary.forward.octets, "B"));
    table.row(row("airtime forward", &summary.forward.airtime_s, "s"));
    table.row(row("octets return", &summary.back.octets, "B"));
    table.row(row("airtime return", &summary.back.airtime_s, "s"));
    table.render()
}

/// Makes a table of measures with this heading.
fn table_of(what: &str) -> Table {
    let heading = [what, "mean", "95 % interval", "sd", "5 %", "median", "95 %"];
    let align = |(index, text)| (text, if index == 0 { Align::Left } else { Align::Right });
    Table::new(&heading.into_iter().enumerate().map(align).collect::<Vec<_>>())
}

/// Splits a figure's name into the name without its unit, and the unit. A unit is the end of the name.
pub(crate) fn unit_of(name: &str) -> (&str, &'static str) {
    match (name.strip_suffix("_s"), name.strip_suffix("_percent")) {
        (Some(what), _) => (what, "s"),
        (_, Some(what)) => (what, "%"),
        _ => (name, ""),
    }
}

/// Returns a table of the figures that a stage reports.
fn figures(stage: &StageTogether) -> Text {
    let mut table = table_of(&format!("stage {}", stage.name));
    for (name, measure) in &stage.figures {
        let (what, unit) = unit_of(name);
        table.row(row(&what.replace('_', " "), measure, unit));
    }
    table.render()
}

fn row(what: &str, measure: &Measure, unit: &str) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("-".into(), |value| with_unit(value, unit));
    let interval = match (measure.mean, measure.ci95_half_width) {
        (Some(_), Some(half)) => format!("\u{b1} {}", with_unit(half, unit)),
        _ => "-".into(),
    };
    vec![
        what.into(),
        number(measure.mean),
        interval,
        number(measure.sd),
        number(measure.p05),
        number(measure.p50),
        number(measure.p95),
    ]
}

fn with_unit(value: f64, unit: &str) -> String {
    let places = if value >= 1000.0 { 0 } else { 2 };
    let space = if unit.is_empty() { "" } else { " " };
    format!("{value:.places$}{space}{unit}")
}

/// Returns a table with a row for each flow, and the columns that any flow has.
fn flows(flows: &[FlowTogether]) -> Text {
    type Cell = fn(&FlowTogether) -> String;
    let columns: [(&str, Align, Cell); 17] = [
        ("flow", Align::Left, |flow| flow.name.clone()),
        ("protocol", Align::Left, |flow| flow.protocol.into()),
        ("direction", Align::Left, |flow| direction(flow.direction).into()),
        ("goodput", Align::Right, |flow| mean(Some(&flow.goodput_bit_per_s), 1e-3, 1, " kbit/s")),
        ("95 % interval", Align::Right, |flow| interval(&flow.goodput_bit_per_s)),
        ("time", Align::Right, |flow| mean(flow.completion_time_s.as_ref(), 1.0, 2, " s")),
        ("client's clock", Align::Right, |flow| mean(flow.client_time_s.as_ref(), 1.0, 3, " s")),
        ("delivered", Align::Right, |flow| mean(flow.delivery_time_s.as_ref(), 1.0, 3, " s")),
        ("session", Align::Right, |flow| mean(flow.session_s.as_ref(), 1.0, 2, " s")),
        ("segments", Align::Right, |flow| mean(flow.segments.as_ref(), 1.0, 1, "")),
        ("again", Align::Right, |flow| mean(flow.retransmits.as_ref(), 1.0, 1, "")),
        ("timeouts", Align::Right, |flow| mean(flow.timeouts.as_ref(), 1.0, 1, "")),
        ("loss", Align::Right, |flow| mean(flow.loss.as_ref(), 100.0, 2, " %")),
        ("delay", Align::Right, |flow| mean(flow.delay_mean_s.as_ref(), 1e3, 2, " ms")),
        ("95 % delay", Align::Right, |flow| mean(flow.delay_p95_s.as_ref(), 1e3, 2, " ms")),
        ("jitter", Align::Right, |flow| mean(flow.jitter_s.as_ref(), 1e3, 2, " ms")),
        ("dropped", Align::Right, |flow| mean(Some(&flow.dropped), 1.0, 1, "")),
    ];
    let used = |(_, _, cell): &&(&str, Align, Cell)| flows.iter().any(|flow| !cell(flow).is_empty());
    let columns: Vec<_> = columns.iter().filter(used).collect();
    let heading: Vec<(&str, Align)> = columns.iter().map(|&&(name, align, _)| (name, align)).collect();
    let mut table = Table::new(&heading);
    for flow in flows {
        table.row(columns.iter().map(|(_, _, cell)| cell(flow)));
    }
    table.render()
}

const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Return => "return",
    }
}

/// Returns the mean in another unit. It is a dash without a mean, and empty if the flow has no such measure.
fn mean(measure: Option<&Measure>, scale: f64, places: usize, unit: &str) -> String {
    let Some(measure) = measure else { return String::new() };
    measure.mean.map_or("-".into(), |mean| format!("{:.places$}{unit}", mean * scale))
}

fn interval(goodput: &Measure) -> String {
    goodput.ci95_half_width.map_or("-".into(), |half| format!("\u{b1} {:.1} kbit/s", half / 1e3))
}
