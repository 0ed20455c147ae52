//! Flame graphs.

mod colour;
mod stacks;
mod svg;
mod tree;

pub(crate) use colour::Kind;
pub(crate) use stacks::Side;
pub(crate) use svg::{Picture, empty, render};
pub(crate) use tree::Tree;
