//! `farcast simulate` of a tree: packets on its edges, and figures of its receivers and elements.

use farcast_delivery::FigureValue;
use farcast_lab::report;
use farcast_scenario::Document;
use farcast_sim::outcome::{EdgeDirection, HeardOutcome, NodeOutcome, Together, TreeReplication};
use farcast_sim::scenario::TreeScenario;

use crate::args::SimulateArgs;
use crate::laboratory::{VERSION, write_page};
use crate::output::Output;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure};

use super::{Result_, look, show};

/// Runs the command for a tree.
pub(super) fn run(
    args: &SimulateArgs,
    name: &str,
    document: &Document,
    output: &Output,
) -> Result<Exit, Failure> {
    let scenario = TreeScenario::read(document).map_err(super::bad_file)?;
    if args.show {
        output.result(&super::shown(document, scenario.default_queues()));
        return Ok(Exit::Done);
    }
    super::tell_queues(scenario.default_queues(), output);
    let unused = super::tell_unused(document, output);
    // The receivers of a tree are at nodes, and a page shows the nodes.
    let plan = super::plan(args, u64::MAX);
    let memory = super::memory(args, &scenario, &plan)?;
    let interrupted = crate::interrupt::interrupted()?;
    look::look(args, &scenario, &interrupted, output)?;
    let replications = super::replications(&scenario, &plan, &memory, &interrupted, output)?;
    let common: Vec<_> = replications.iter().map(|one| one.common.clone()).collect();
    let summary = Together::of(&common)?;
    if let Some(path) = &args.report {
        let title = if scenario.name().is_empty() { name } else { scenario.name() };
        write_page(path, &report::simulation(title, document, &replications, args.seed, VERSION)?, output)?;
    }
    if args.json {
        output.object(&Result_ {
            scenario: name,
            seed: args.seed,
            default_queues: super::default_queues(scenario.default_queues()),
            unused: &unused,
            advice: &[],
            replications: &replications,
            summary: &summary,
        });
    } else {
        let title = if scenario.name().is_empty() { name } else { scenario.name() };
        let who = show::who(scenario.receivers().into(), scenario.flow_count());
        let why = show::why(&replications, scenario.remedies());
        let own = [edges(&replications), nodes(&replications), elements(&replications)];
        let text = std::iter::once(show::of(title, &who, args.seed, &summary, &why))
            .chain(own.into_iter().flatten());
        output.result(&Text::paragraphs(text));
    }
    Ok(if summary.unfinished > 0 { Exit::Incomplete } else { Exit::Done })
}

/// Returns the mean of `value` over all replications.
fn mean(replications: &[TreeReplication], value: impl Fn(&TreeReplication) -> f64) -> f64 {
    replications.iter().map(value).sum::<f64>() / replications.len().max(1) as f64
}

/// Returns the mean of `value` over the replications for which it is known.
fn mean_of(replications: &[TreeReplication], value: impl Fn(&TreeReplication) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = replications.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn count(value: f64) -> String {
    if value == 0.0 { String::new() } else { format!("{value:.1}") }
}

/// Returns a table of packets by kind, with a row for each direction of an edge, as means over replications.
fn edges(replications: &[TreeReplication]) -> Option<Text> {
    type Way = (&'static str, fn(&TreeReplication, usize) -> &EdgeDirection);
    const WAYS: [Way; 2] =
        [("forward", |one, edge| &one.edges[edge].forward), ("return", |one, edge| &one.edges[edge].back)];
    let first = replications.first()?;
    let mut kinds: Vec<&str> = Vec::new();
    for direction in
        replications.iter().flat_map(|one| &one.edges).flat_map(|edge| [&edge.forward, &edge.back])
    {
        for (kind, _) in &direction.packets {
            if !kinds.contains(kind) {
                kinds.push(kind);
            }
        }
    }
    let mut heading = vec![("packets of edge", Align::Left), ("", Align::Left)];
    heading.extend(kinds.iter().chain(&["dropped", "lost"]).map(|kind| (*kind, Align::Right)));
    let mut table = Table::new(&heading);
    for (number, edge) in first.edges.iter().enumerate() {
        for (way, direction) in WAYS {
            let cell = |value: &dyn Fn(&EdgeDirection) -> u64| {
                count(mean(replications, |one| value(direction(one, number)) as f64))
            };
            let mut row = vec![if way == "forward" { edge.name.clone() } else { String::new() }, way.into()];
            row.extend(kinds.iter().map(|kind| cell(&|direction| direction.packets_of(kind))));
            row.extend([cell(&|direction| direction.dropped), cell(&|direction| direction.lost)]);
            table.row(row);
        }
    }
    Some(table.render())
}

/// Returns a table with a row for each node with receivers, as means over replications.
fn nodes(replications: &[TreeReplication]) -> Option<Text> {
    let first = replications.first().filter(|first| !first.nodes.is_empty())?;
    let mut table = Table::new(&[
        ("receivers at", Align::Left),
        ("receivers", Align::Right),
        ("incomplete", Align::Right),
        ("time", Align::Right),
        ("NAKs", Align::Right),
        ("goodput", Align::Right),
        ("useless", Align::Right),
        ("repairs", Align::Right),
        ("repaired after", Align::Right),
        ("at most", Align::Right),
    ]);
    for (number, node) in first.nodes.iter().enumerate() {
        let over = |value: &dyn Fn(&NodeOutcome) -> Option<f64>| {
            mean_of(replications, |one| value(&one.nodes[number]))
        };
        let heard =
            |value: &dyn Fn(&HeardOutcome) -> Option<f64>| over(&|node| node.heard.as_ref().and_then(value));
        let with = |value: Option<f64>, scale: f64, places: usize, unit: &str| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{:.places$}{unit}", value * scale))
        };
        table.row([
            node.name.clone(),
            node.receivers.to_string(),
            with(over(&|node| Some(node.incomplete.into())), 1.0, 1, ""),
            with(over(&|node| node.completion_time_s), 1.0, 2, " s"),
            with(over(&|node| Some(node.naks as f64)), 1.0, 1, ""),
            with(heard(&|heard| Some(heard.goodput_bit_per_s)), 1e-3, 1, " kbit/s"),
            with(heard(&|heard| Some(heard.useless_octets as f64)), 1.0, 0, " B"),
            with(heard(&|heard| Some(heard.repairs as f64)), 1.0, 1, ""),
            with(heard(&|heard| heard.repair_latency_mean_s), 1.0, 3, " s"),
            with(heard(&|heard| Some(heard.repair_latency_max_s)), 1.0, 3, " s"),
        ]);
    }
    Some(table.render())
}

/// Returns a table with a row for each element and the figures that have a label, as means over replications.
fn elements(replications: &[TreeReplication]) -> Option<Text> {
    let first = replications.first().filter(|first| !first.elements.is_empty())?;
    let labels = first.elements.iter().flat_map(|element| &element.figures).filter_map(|figure| figure.label);
    let mut heading = vec![("element", Align::Left)];
    for label in labels {
        if !heading.contains(&(label, Align::Right)) {
            heading.push((label, Align::Right));
        }
    }
    let mut table = Table::new(&heading);
    for (number, element) in first.elements.iter().enumerate() {
        let mut row = vec![element.name.clone()];
        for (label, _) in &heading[1..] {
            let figure = |one: &TreeReplication| {
                let figure =
                    one.elements[number].figures.iter().find(|figure| figure.label == Some(label))?;
                if let FigureValue::Count(count) = figure.value { Some(count as f64) } else { None }
            };
            row.push(mean_of(replications, figure).map_or_else(String::new, count));
        }
        table.row(row);
    }
    Some(table.render())
}
