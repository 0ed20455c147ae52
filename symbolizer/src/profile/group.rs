//! What a report ranks: functions, lines, files, modules, threads or Go functions.

use super::go_name::{innermost, is_cgo_stub, is_go, is_runtime, shown};
use super::hash::FastMap;
use super::{Line, Location, LocationId, NO_STACK, Profile, Sample};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What the rows of a report are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// Functions by name.
    #[default]
    Function,
    /// Functions by name and file.
    FileFunction,
    /// Lines of source.
    Line,
    /// Source files.
    File,
    /// Executables and libraries.
    Module,
    /// Threads that allocated, of profiles read by thread.
    Thread,
    /// Go functions outside the runtime: for native samples, those whose cgo calls allocated.
    Go,
}

impl GroupBy {
    /// Every variant by its name on the command line.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("function", Self::Function),
        ("filefunction", Self::FileFunction),
        ("line", Self::Line),
        ("file", Self::File),
        ("module", Self::Module),
        ("thread", Self::Thread),
        ("go", Self::Go),
    ];
}

impl fmt::Display for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, by)| by == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for GroupBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|&(_, by)| by).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            format!("`{text}` is no grouping; one of {names}")
        })
    }
}

/// Name of the row of samples without a Go frame.
pub const NO_GO: &str = "[no Go frame]";
/// Name of the row of samples without a thread.
pub const NO_THREAD: &str = "[unknown thread]";

/// A row of a report: a node of the call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// What the row is called.
    pub name: Arc<str>,
    /// Source file, where the rows have one.
    pub file: Option<Arc<str>>,
    /// Line of source, where the rows have one.
    pub line: Option<i64>,
    /// Executable or library of the first location seen.
    pub module: Option<Arc<str>>,
}

/// Index of a [`Node`].
pub type NodeId = u32;

/// Sorts the frames of a profile into nodes.
pub(crate) struct Grouping<'a> {
    profile: &'a Profile,
    by: GroupBy,
    nodes: Vec<Node>,
    ids: FastMap<Node, NodeId>,
    /// Nodes of each location, innermost first.
    of_location: Vec<Option<Box<[NodeId]>>>,
}

impl<'a> Grouping<'a> {
    pub(crate) fn new(profile: &'a Profile, by: GroupBy) -> Self {
        let of_location = vec![None; profile.locations.len()];
        Self { profile, by, nodes: Vec::new(), ids: FastMap::default(), of_location }
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// The nodes of a sample, leaf first, in `stack`; never none.
    pub(crate) fn stack(&mut self, sample: &Sample, stack: &mut Vec<NodeId>) {
        stack.clear();
        match self.by {
            GroupBy::Thread => stack.push(self.special(sample.label_text("thread").unwrap_or(NO_THREAD))),
            GroupBy::Go => self.go_stack(sample, stack),
            _ => sample.locations.iter().for_each(|&id| stack.extend_from_slice(self.location(id))),
        }
        if stack.is_empty() {
            stack.push(self.special(if self.by == GroupBy::Go { NO_GO } else { NO_STACK }));
        }
    }

    fn location(&mut self, id: LocationId) -> &[NodeId] {
        let index = id.0 as usize;
        if self.of_location[index].is_none() {
            let nodes = self.location_nodes(&self.profile.locations[index]);
            self.of_location[index] = Some(nodes);
        }
        self.of_location[index].as_deref().unwrap_or_default()
    }

    fn location_nodes(&mut self, location: &Location) -> Box<[NodeId]> {
        if self.by == GroupBy::Module {
            let path = location.mapping.map(|id| self.profile.mapping(id).base_name());
            let named = if self.profile.is_unnamed(location) { super::UNKNOWN } else { "[no module]" };
            return Box::new([self.special(path.unwrap_or(named))]);
        }
        if location.lines.is_empty() {
            let node = self.unnamed(location);
            return Box::new([self.id(node)]);
        }
        let lines = location.lines.iter().map(|line| self.line_node(location, line));
        let nodes: Vec<Node> = lines.collect();
        nodes.into_iter().map(|node| self.id(node)).collect()
    }

    fn line_node(&self, location: &Location, line: &Line) -> Node {
        let function = self.profile.function(line.function);
        let file = Some(&function.file).filter(|file| !file.is_empty()).cloned();
        let name = match &*function.name {
            "" => self.profile.fallback_name(location).into(),
            _ => Arc::clone(&function.name),
        };
        let module = self.module(location);
        match self.by {
            GroupBy::Line => Node { name, file, line: Some(line.line).filter(|&n| n != 0), module },
            GroupBy::FileFunction => Node { name, file, line: None, module },
            GroupBy::File => match file {
                Some(file) => Node { name: Arc::clone(&file), file: Some(file), line: None, module },
                None => self.unnamed(location),
            },
            _ => Node { name, file, line: Some(function.start_line).filter(|&n| n != 0), module },
        }
    }

    /// The node of a location without lines.
    fn unnamed(&self, location: &Location) -> Node {
        let module = self.module(location);
        let name = match (self.by, &module) {
            (GroupBy::File, Some(module)) => format!("[{module}]").into(),
            (GroupBy::File, None) => super::UNKNOWN.into(),
            _ => self.profile.fallback_name(location).into(),
        };
        Node { name, module, ..Node::default() }
    }

    fn module(&self, location: &Location) -> Option<Arc<str>> {
        location.mapping.map(|id| self.profile.mapping(id).base_name().into())
    }

    fn special(&mut self, name: &str) -> NodeId {
        self.id(Node { name: name.into(), ..Node::default() })
    }

    fn id(&mut self, node: Node) -> NodeId {
        let key = self.key(&node);
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = self.nodes.len() as NodeId;
        self.ids.insert(key, id);
        self.nodes.push(node);
        id
    }

    /// What makes two nodes the same row: functions of one name are one row, wherever they were seen.
    fn key(&self, node: &Node) -> Node {
        let name = Arc::clone(&node.name);
        match self.by {
            GroupBy::Line => Node { module: None, ..node.clone() },
            GroupBy::FileFunction => Node { name, file: node.file.clone(), ..Node::default() },
            _ => Node { name, ..Node::default() },
        }
    }

    /// The innermost Go function first, then the other ones outside the runtime.
    fn go_stack(&mut self, sample: &Sample, stack: &mut Vec<NodeId>) {
        let profile = self.profile;
        let lines = || {
            let locations = sample.locations.iter().map(|&id| profile.location(id));
            locations.flat_map(|location| location.lines.iter().map(move |line| (location, line)))
        };
        let functions = lines().map(|(_, line)| profile.function(line.function));
        let Some(leaf) = innermost(functions) else { return };
        let mut leaf_seen = false;
        for (location, line) in lines() {
            let function = profile.function(line.function);
            leaf_seen |= std::ptr::eq(function, leaf);
            if leaf_seen && is_go(function) && !is_runtime(&function.name) && !is_cgo_stub(&function.name) {
                let node = self.line_node(location, line);
                let name = shown(&node.name).into();
                stack.push(self.id(Node { name, ..node }));
            }
        }
    }
}
