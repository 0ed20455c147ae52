//! The ports on which a process listens itself: its sockets (`/proc/PID/fd`) looked up in the table of its network
//! namespace (`/proc/PID/net/tcp`), so that a neighbour's port is never asked.

use crate::target::living_thread;
use anyhow::Context;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Addresses to ask, those that only the loopback interface reaches first: an endpoint meant for operators.
pub(super) fn ports(pid: u32) -> anyhow::Result<Vec<SocketAddr>> {
    let process = i32::try_from(living_thread(pid)).map_err(anyhow::Error::from).and_then(|pid| Ok(Process::new(pid)?));
    let process = process.with_context(|| format!("process {pid}: it has ended"))?;
    let descriptors = process
        .fd()
        .with_context(|| format!("process {pid}: its descriptors cannot be listed; run as its user or root"))?;
    let own: BTreeSet<u64> = descriptors
        .flatten()
        .filter_map(|descriptor| match descriptor.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect();
    let entries = process.tcp().unwrap_or_default().into_iter().chain(process.tcp6().unwrap_or_default());
    Ok(reachable(entries.filter(|entry| own.contains(&entry.inode))))
}

/// The listening ones that the loopback interface reaches, each port once.
fn reachable(entries: impl Iterator<Item = TcpNetEntry>) -> Vec<SocketAddr> {
    let mut found: Vec<(bool, SocketAddr)> = entries
        .filter(|entry| entry.state == TcpState::Listen)
        .filter_map(|entry| {
            let address = entry.local_address;
            match address.ip() {
                ip if ip.is_loopback() => Some((false, address)),
                // A socket for every address of IPv6 takes IPv4 as well, unless it was told not to.
                ip if ip.is_unspecified() => {
                    Some((true, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port())))
                }
                _ => None,
            }
        })
        .collect();
    found.sort();
    let mut ports = BTreeSet::new();
    found.retain(|(_, address)| ports.insert(address.port()));
    found.into_iter().map(|(_, address)| address).collect()
}
