//! Callers and callees, in the shape that `go tool pprof -tree` and `-peek` made known:
//!
//! ```text
//!      flat  flat%        cum    cum%      calls  calls%  context
//!                               12.0 MiB  100.0%    main.handlePut
//!  10.0 MiB  83.3%   12.0 MiB  100.0%                   rocksdb_put
//!                                2.0 MiB   16.7%      rocksdb::Arena::Allocate
//! ```

use super::json;
use super::ranking::{name, ratio};
use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use super::value::Unit;
use offheap_symbolizer::profile::{Edge, Graph, GraphNode, ValueType};
use serde::Serialize;

/// The part of a call graph that is shown.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// Who shows it.
    pub(crate) command: &'a str,
    pub(crate) graph: &'a Graph,
    /// Nodes of the graph.
    pub(crate) nodes: &'a [&'a GraphNode],
    /// How many more there would be.
    pub(crate) left_out: usize,
}

impl Shown<'_> {
    /// The document of `tree --json` and `peek --json`.
    pub(crate) fn json(&self, value: Option<&ValueType>) -> anyhow::Result<String> {
        let nodes = self.nodes.iter().map(|node| NodeJson::of(self.graph, node)).collect();
        let (sample_type, unit) = value.map_or(("", ""), |value| (&*value.kind, &*value.unit));
        json::document(self.command, &Document { sample_type, unit, total: self.graph.total, nodes })
    }

    /// The text, under a line with the total of the profile of this name.
    pub(crate) fn text(&self, value: Option<&ValueType>, name: &str, by_line: bool, screen: &Screen) -> String {
        let (kind, unit) = (value.map_or("", |value| &*value.kind), Unit::of(value));
        let head = format!("{kind} {} · {name}", unit.headed(self.graph.total.into()));
        let mut shown = format!("{}\n", screen.paint(Style::Strong, &head));
        shown += &text(self.graph, self.nodes.iter().copied(), &unit, by_line, screen);
        if self.left_out > 0 {
            shown += &screen.paint(Style::Faint, &format!("{} more functions; -n 0 shows all", self.left_out));
            shown.push('\n');
        }
        shown
    }
}

#[derive(Serialize)]
struct Document<'a> {
    sample_type: &'a str,
    unit: &'a str,
    total: i64,
    nodes: Vec<NodeJson<'a>>,
}

/// One function with its neighbours.
#[derive(Serialize)]
struct NodeJson<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<i64>,
    module: Option<&'a str>,
    flat: i64,
    cum: i64,
    callers: Vec<EdgeJson<'a>>,
    callees: Vec<EdgeJson<'a>>,
}

#[derive(Serialize)]
struct EdgeJson<'a> {
    name: &'a str,
    value: i64,
}

impl<'a> NodeJson<'a> {
    fn of(graph: &'a Graph, node: &'a GraphNode) -> Self {
        let edges = |edges: &'a [Edge]| {
            edges.iter().map(|edge| EdgeJson { name: &graph.nodes[edge.node].node.name, value: edge.weight }).collect()
        };
        Self {
            name: &node.node.name,
            file: node.node.file.as_deref(),
            line: node.node.line,
            module: node.node.module.as_deref(),
            flat: node.flat,
            cum: node.cum,
            callers: edges(&node.callers),
            callees: edges(&node.callees),
        }
    }
}

fn text<'a>(
    graph: &Graph,
    nodes: impl IntoIterator<Item = &'a GraphNode>,
    unit: &Unit,
    by_line: bool,
    screen: &Screen,
) -> String {
    let mut table = Table::new().number("flat").number("flat%").number("cum").number("cum%");
    table = table.number("calls").number("calls%").name("context");
    for (index, node) in nodes.into_iter().enumerate() {
        if index > 0 {
            table.row([]);
        }
        let edge = |edge: &Edge, prefix: &str, style: Style| {
            let share = if node.cum == 0 { 0.0 } else { edge.weight as f64 / node.cum.unsigned_abs() as f64 };
            let name = name(&graph.nodes[edge.node].node, by_line);
            let (amount, share) = (unit.amount(edge.weight.into()), format!("{:.1}%", share * 100.0));
            let empty = || Cell::from("");
            [
                empty(),
                empty(),
                empty(),
                empty(),
                amount.into(),
                share.into(),
                Cell::styled(format!("{prefix}{name}"), style),
            ]
        };
        for caller in &node.callers {
            table.row(edge(caller, "    ", Style::Faint));
        }
        let percent = |value: i64| format!("{:.1}%", 100.0 * ratio(value.into(), graph.total));
        let own = [unit.amount(node.flat.into()), percent(node.flat), unit.amount(node.cum.into()), percent(node.cum)];
        let own = own.map(|text| Cell::styled(text, Style::Strong));
        let rest = [Cell::from(""), Cell::from(""), Cell::styled(name(&node.node, by_line), Style::Strong)];
        table.row(own.into_iter().chain(rest));
        for callee in &node.callees {
            table.row(edge(callee, "      ", Style::Plain));
        }
    }
    table.render(screen)
}

#[cfg(test)]
mod tests {
    use super::{Screen, Unit, text};
    use offheap_symbolizer::profile::{Edge, Graph, GraphNode, Node};

    #[test]
    fn callers_stand_above_and_callees_below() {
        let node = |name: &str, flat, cum, callers: &[(usize, i64)], callees: &[(usize, i64)]| {
            let edges = |list: &[(usize, i64)]| list.iter().map(|&(node, weight)| Edge { node, weight }).collect();
            GraphNode {
                node: Node { name: name.into(), ..Node::default() },
                flat,
                cum,
                callers: edges(callers),
                callees: edges(callees),
            }
        };
        let graph = Graph {
            total: 10,
            nodes: vec![
                node("main", 0, 10, &[], &[(1, 10)]),
                node("put", 4, 10, &[(0, 10)], &[(2, 6)]),
                node("grow", 6, 6, &[(1, 6)], &[]),
            ],
        };
        let shown = text(&graph, &graph.nodes[1..2], &Unit::Objects, false, &Screen::default());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "flat  flat%  cum    cum%  calls  calls%  context",
                "                             10  100.0%      main",
                "   4  40.0%   10  100.0%                 put",
                "                              6   60.0%        grow",
            ]
        );
    }
}
