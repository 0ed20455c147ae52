//! `offheap tree PROFILE`

use crate::exit::Outcome;
use crate::load::{Options, Select, Source, load_last};
use crate::output;
use crate::view::callgraph::{self, Document, NodeJson};
use crate::view::json;
use crate::view::screen::Style;
use crate::view::value::Unit;
use offheap_symbolizer::profile::{Graph, GraphNode, GroupBy};

/// Functions shown when nothing is said.
const USUAL_NODES: usize = 40;

/// Arguments of `tree`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profile: a file, `-`, a URL, or pid:N; of several dumps of one process the last is shown
    #[arg(required = true, value_name = "PROFILE")]
    inputs: Vec<Source>,
    /// What a node is: function, filefunction, line, file, module, go
    #[arg(long, value_name = "WHAT", default_value = "function")]
    by: GroupBy,
    /// Functions to show, 0 for all [default: 40, all with --json]
    #[arg(short = 'n', long = "rows", value_name = "N")]
    rows: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    options: Options,
}

/// Read, select, print the callers and callees of the largest functions.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut loaded = load_last(&args.inputs, &args.options)?;
    let value = args.select.value(&loaded.profile)?;
    args.select.apply(&mut loaded.profile);
    let graph =
        if loaded.profile.value_types.is_empty() { Graph::default() } else { loaded.profile.graph(value, args.by) };
    let nodes: Vec<&GraphNode> = graph.nodes.iter().filter(|node| node.cum != 0).collect();
    let value_type = loaded.profile.value_types.get(value);
    let kind = value_type.map_or("", |value| &*value.kind);
    if nodes.is_empty() {
        output::note(&format!("{}: nothing to show: no sample has a value of {kind}", loaded.name()));
    }
    let usual = if args.json { 0 } else { USUAL_NODES };
    let count = match args.rows.unwrap_or(usual) {
        0 => nodes.len(),
        count => count.min(nodes.len()),
    };
    if args.json {
        let nodes = nodes[..count].iter().map(|node| NodeJson::of(&graph, node)).collect();
        let unit = value_type.map_or("", |value| &*value.unit);
        output::print(&json::document("tree", &Document { sample_type: kind, unit, total: graph.total, nodes })?)?;
    } else if !nodes.is_empty() {
        let screen = output::screen();
        let unit = Unit::of(value_type);
        let head = format!("{kind} {} · {}", unit.named(graph.total.into()), loaded.name());
        let mut text = format!("{}\n", screen.paint(Style::Strong, &head));
        text += &callgraph::text(&graph, nodes[..count].iter().copied(), &unit, args.by == GroupBy::Line, &screen);
        if count < nodes.len() {
            text += &screen.paint(Style::Faint, &format!("{} more functions; -n 0 shows all", nodes.len() - count));
            text.push('\n');
        }
        output::print(&text)?;
    }
    Ok(loaded.outcome(nodes.is_empty()))
}
