//! `offheap serve TARGET…`

use crate::exit::{Outcome, WrongUsage};
use crate::go_endpoint::GoEndpoint;
use crate::interrupt::Interrupt;
use crate::output;
use crate::serve::{Access, Served, Site, metrics, serve};
use crate::words::duration;
use anyhow::{Context, anyhow, bail};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Variable that holds the token, so that it stands in no list of processes.
const TOKEN_VARIABLE: &str = "OFFHEAP_SERVE_TOKEN";

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pids, sockets or process names. They may come and go: one that is not there is served as down
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// Serve the Go heap of the targets too, for GoHeapToRssMismatch: `auto`, or TARGET=URL for one of them; may be
    /// repeated
    #[arg(long, value_name = "auto|TARGET=URL")]
    go: Vec<String>,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:9577", value_name = "ADDR")]
    listen: String,
    /// File with a token that clients must send (`Authorization: Bearer …`); or set OFFHEAP_SERVE_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve beyond this machine without a token
    #[arg(long)]
    public: bool,
    /// Write the metrics to a file for node_exporter's textfile collector instead of listening
    #[arg(long, value_name = "FILE.prom", conflicts_with_all = ["listen", "token_file", "public"])]
    textfile: Option<PathBuf>,
    /// With --textfile: pause between two files
    #[arg(long, value_parser = duration::parse, default_value = "15s", value_name = "TIME", requires = "textfile")]
    every: Duration,
    /// With --textfile: write once and end, for a timer
    #[arg(long, requires = "textfile")]
    once: bool,
}

/// Serve until a signal ends it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let targets = targets(args)?;
    if let Some(path) = &args.textfile {
        return textfile(path, &targets, args);
    }
    let access = access(args.token_file.as_deref())?;
    let addresses: Vec<SocketAddr> = args
        .listen
        .to_socket_addrs()
        .with_context(|| format!("--listen {}: not an address; write for example 127.0.0.1:9577", args.listen))?
        .collect();
    let wide = addresses.iter().find(|address| !address.ip().is_loopback());
    if let (Some(address), Access::Anyone, false) = (wide, &access, args.public) {
        bail!(WrongUsage(format!(
            "--listen {address} can be reached from other machines, and heap profiles are nobody's business: give a \
             token (--token-file FILE or {TOKEN_VARIABLE}), or say --public"
        )));
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(|error| cannot_listen(&args.listen, error))?;
    output::print(&format!("listening on http://{}\n", listener.local_addr()?))?;
    serve(&listener, Site { targets }, access)?;
    Ok(Outcome::Done)
}

fn targets(args: &Args) -> anyhow::Result<Vec<Arc<Served>>> {
    let auto = args.go.iter().any(|go| go == "auto");
    let mut pairs = Vec::new();
    for go in args.go.iter().filter(|go| *go != "auto") {
        match go.split_once('=') {
            Some((target, url)) if args.targets.iter().any(|name| name == target) => pairs.push((target, url)),
            _ => bail!(WrongUsage(format!(
                "--go {go}: write `auto`, or TARGET=URL with one of the targets as it was typed"
            ))),
        }
    }
    let endpoint = |name: &String| {
        let given = pairs.iter().find(|(target, _)| target == name).map(|(_, url)| *url);
        // Anything can be named as an endpoint; what it is shows when it is read.
        let Ok(endpoint) = given.or(auto.then_some("auto")).map(str::parse::<GoEndpoint>).transpose();
        endpoint
    };
    Ok(args.targets.iter().map(|name| Served::new(name, endpoint(name))).collect())
}

fn access(file: Option<&Path>) -> anyhow::Result<Access> {
    let token = match file {
        Some(path) => {
            Some(std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?)
        }
        None => std::env::var(TOKEN_VARIABLE).ok(),
    };
    match token.as_deref().map(str::trim) {
        None => Ok(Access::Anyone),
        Some("") => bail!("the token is empty, which would admit everybody; write one, or leave it out"),
        Some(token) => Ok(Access::Token(token.to_owned())),
    }
}

/// The file is complete or absent: the collector may look at any time.
fn textfile(path: &Path, targets: &[Arc<Served>], args: &Args) -> anyhow::Result<Outcome> {
    if path.extension().is_none_or(|extension| extension != "prom") {
        bail!(WrongUsage(format!("{}: node_exporter reads only files that end in .prom", path.display())));
    }
    let interrupt = Interrupt::hold();
    loop {
        output::write(path, metrics(targets).as_bytes())?;
        if args.once || interrupt.wait(args.every) {
            return Ok(Outcome::Done);
        }
    }
}

fn cannot_listen(address: &str, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            anyhow!("--listen {address}: another program listens there; choose another port, or 0 for any that is free")
        }
        io::ErrorKind::AddrNotAvailable => {
            anyhow!("--listen {address}: no interface of this machine has that address; `ip addr` lists those it has")
        }
        io::ErrorKind::PermissionDenied => {
            anyhow!("--listen {address}: ports below 1024 are for root; choose a higher one")
        }
        _ => anyhow::Error::new(error).context(format!("--listen {address}: cannot listen there")),
    }
}

#[cfg(test)]
mod tests {
    use super::cannot_listen;
    use std::io::{self, ErrorKind};

    #[test]
    fn an_address_that_cannot_be_had_is_no_error_number() {
        for (kind, expected) in [
            (ErrorKind::AddrInUse, "another program listens there; choose another port"),
            (ErrorKind::AddrNotAvailable, "no interface of this machine"),
            (ErrorKind::PermissionDenied, "ports below 1024"),
        ] {
            let error = format!("{:#}", cannot_listen("10.0.0.1:80", io::Error::from(kind)));
            assert!(error.starts_with("--listen 10.0.0.1:80: ") && error.contains(expected), "{error}");
            assert!(!error.contains("os error"), "{error}");
        }
    }
}
