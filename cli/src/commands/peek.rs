//! `offheap peek PROFILE REGEX`

use crate::exit::Outcome;
use crate::load::{Query, Source};
use crate::output;
use crate::view::callgraph;
use offheap_symbolizer::profile::{GraphNode, GroupBy};
use regex::Regex;

/// Arguments of `peek`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profile: a file, `-`, a URL, or pid:N
    #[arg(value_name = "PROFILE")]
    input: Source,
    /// Functions to look at
    #[arg(value_name = "REGEX")]
    wanted: Regex,
    #[command(flatten)]
    query: Query,
}

/// Read, select, print the callers and callees of the functions that match.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let query = &args.query;
    let answer = query.ask(std::slice::from_ref(&args.input))?;
    let graph = answer.graph(query.by);
    let is_wanted = |node: &&GraphNode| node.cum != 0 && args.wanted.is_match(&node.node.name);
    let nodes: Vec<&GraphNode> = graph.nodes.iter().filter(is_wanted).collect();
    let name = answer.loaded.name();
    if nodes.is_empty() {
        output::note(&format!("{name}: no function with a value of {} matches {}", answer.kind(), args.wanted));
    }
    let graph = callgraph::Shown { command: "peek", graph: &graph, nodes: &nodes, left_out: 0 };
    if query.json {
        output::print(&graph.json(answer.value_type())?)?;
    } else if !nodes.is_empty() {
        output::print(&graph.text(answer.value_type(), &name, query.by == GroupBy::Line, &output::screen()))?;
    }
    Ok(answer.loaded.outcome(nodes.is_empty()))
}
