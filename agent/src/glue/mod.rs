//! The life of the agent in its host. Nothing imports this zone.

#[allow(unsafe_code)]
mod constructor;
#[allow(unsafe_code)]
mod deepbind;
#[allow(unsafe_code)]
mod defaults;
mod environment;
#[allow(unsafe_code)]
mod errno;
#[allow(unsafe_code)]
mod fork;
#[allow(unsafe_code)]
mod leaving;
#[allow(unsafe_code)]
mod namespaces;
#[allow(unsafe_code)]
mod next;
#[allow(unsafe_code)]
mod operators;
#[allow(unsafe_code)]
mod preload;
#[allow(unsafe_code)]
mod sandbox;
