use anyhow::{Context, bail};
use offheap_wire::AGENT_FILE_NAME;
use std::path::{Path, PathBuf};

/// The agent's file: as named by the user, by `OFFHEAP_AGENT`, or beside this program.
pub(crate) fn agent_file(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let configured = std::env::var_os("OFFHEAP_AGENT").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or(configured) {
        return usable(&path).with_context(|| format!("the agent at {}", path.display()));
    }
    let own = std::env::current_exe().context("finding this program's own path")?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = [
        folder.join(AGENT_FILE_NAME),
        folder.join("../lib/offheap").join(AGENT_FILE_NAME),
        folder.join("../lib").join(AGENT_FILE_NAME),
    ];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => usable(path),
        None => bail!(
            "{AGENT_FILE_NAME} is neither beside {} nor in ../lib/offheap; name it with --agent or OFFHEAP_AGENT",
            own.display()
        ),
    }
}

/// An absolute path that `LD_PRELOAD` can carry.
fn usable(path: &Path) -> anyhow::Result<PathBuf> {
    let path = path.canonicalize()?;
    // The loader splits the list at both, and has no way to quote them.
    if path.to_string_lossy().contains([' ', ':']) {
        bail!("{} has a space or colon in its path, which LD_PRELOAD cannot carry; copy it elsewhere", path.display());
    }
    Ok(path)
}
