//! The life of the agent in its host. Nothing imports this zone.

mod constructor;
mod deepbind;
mod defaults;
mod environment;
mod fork;
mod leaving;
mod namespaces;
mod operators;
mod sandbox;
