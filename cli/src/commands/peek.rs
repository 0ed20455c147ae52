//! `offheap peek PROFILE REGEX`

use crate::exit::Outcome;
use crate::load::{Options, Select, Source, load_last};
use crate::output;
use crate::view::callgraph::{self, Document, NodeJson};
use crate::view::json;
use crate::view::screen::Style;
use crate::view::value::Unit;
use offheap_symbolizer::profile::{Graph, GraphNode, GroupBy};
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
    /// What a node is: function, filefunction, line, file, module, go
    #[arg(long, value_name = "WHAT", default_value = "function")]
    by: GroupBy,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    options: Options,
}

/// Read, select, print the callers and callees of the functions that match.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut loaded = load_last(std::slice::from_ref(&args.input), &args.options)?;
    let value = args.select.value(&loaded.profile)?;
    args.select.apply(&mut loaded.profile);
    let graph =
        if loaded.profile.value_types.is_empty() { Graph::default() } else { loaded.profile.graph(value, args.by) };
    let is_wanted = |node: &&GraphNode| node.cum != 0 && args.wanted.is_match(&node.node.name);
    let nodes: Vec<&GraphNode> = graph.nodes.iter().filter(is_wanted).collect();
    let value_type = loaded.profile.value_types.get(value);
    let kind = value_type.map_or("", |value| &*value.kind);
    if nodes.is_empty() {
        output::note(&format!("{}: no function with a value of {kind} matches {}", loaded.name(), args.wanted));
    }
    if args.json {
        let nodes = nodes.iter().map(|node| NodeJson::of(&graph, node)).collect();
        let unit = value_type.map_or("", |value| &*value.unit);
        output::print(&json::document("peek", &Document { sample_type: kind, unit, total: graph.total, nodes })?)?;
    } else if !nodes.is_empty() {
        let screen = output::screen();
        let unit = Unit::of(value_type);
        let head = format!("{kind} {} · {}", unit.named(graph.total.into()), loaded.name());
        let mut text = format!("{}\n", screen.paint(Style::Strong, &head));
        text += &callgraph::text(&graph, nodes.iter().copied(), &unit, args.by == GroupBy::Line, &screen);
        output::print(&text)?;
    }
    Ok(loaded.outcome(nodes.is_empty()))
}
