//! `offheap tree PROFILE`

use crate::exit::Outcome;
use crate::load::{Query, Source};
use crate::output;
use crate::view::callgraph;
use offheap_symbolizer::profile::{GraphNode, GroupBy};

/// Functions shown when nothing is said.
const USUAL_NODES: usize = 40;

/// Arguments of `tree`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles: files, `-`, URLs, or pid:N; of each process the last one counts, several processes are added up
    #[arg(required = true, value_name = "PROFILE")]
    inputs: Vec<Source>,
    /// Functions to show, 0 for all [default: 40, all with --json]
    #[arg(short = 'n', long = "rows", value_name = "N")]
    rows: Option<usize>,
    #[command(flatten)]
    query: Query,
}

/// Read, select, print the callers and callees of the largest functions.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let query = &args.query;
    let answer = query.ask(&args.inputs)?;
    let graph = answer.graph(query.by);
    let nodes: Vec<&GraphNode> = graph.nodes.iter().filter(|node| node.cum != 0).collect();
    let usual = if query.json { 0 } else { USUAL_NODES };
    let count = match args.rows.unwrap_or(usual) {
        0 => nodes.len(),
        count => count.min(nodes.len()),
    };
    let name = answer.loaded.name();
    if nodes.is_empty() {
        output::note(&format!("{name}: nothing to show: no sample has a value of {}", answer.kind()));
    }
    let graph =
        callgraph::Shown { command: "tree", graph: &graph, nodes: &nodes[..count], left_out: nodes.len() - count };
    if query.json {
        output::print(&graph.json(answer.value_type())?)?;
    } else if !nodes.is_empty() {
        output::print(&graph.text(answer.value_type(), &name, query.by == GroupBy::Line, &output::screen()))?;
    }
    Ok(answer.loaded.outcome(nodes.is_empty()))
}
