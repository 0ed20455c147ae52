//! End-to-end: fragmentation planted and found, judged by scripts and by Prometheus.

#[allow(dead_code)]
#[path = "../services/kit.rs"]
mod kit;

mod odd_hosts;
mod planted;
mod prometheus;
mod rules;
mod saved;
