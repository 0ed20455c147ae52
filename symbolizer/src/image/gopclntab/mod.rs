//! The Go function table, `runtime.pclntab`: functions, lines and inlined calls of all Go code, kept even by
//! `-ldflags "-w -s"` because the runtime itself walks stacks with it.

mod header;
mod inline_tree;
mod module_data;
mod names;
mod pc_value;
mod table;

pub use names::Gopclntab;
