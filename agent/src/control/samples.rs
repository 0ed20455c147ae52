//! `GET /v1/profile/samples`: the live samples with everything that offline analysis needs.

use super::jobs::Agent;
use super::modules::loaded_modules;
use super::process;
use super::watched_fd::memory_file;
use crate::hot;
use crate::kernel;
use offheap_wire::{LiveSample, SampleSite, SampleTable, StackEnd};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};

impl Agent {
    /// The table, written to a memory file so that a slow reader holds no more than that.
    pub(crate) fn sample_file(&self) -> io::Result<File> {
        let mut file = BufWriter::with_capacity(64 << 10, memory_file(c"offheap-samples")?);
        serde_json::to_writer(&mut file, &self.sample_table())?;
        file.write_all(b"\n")?;
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }

    /// The table as of now.
    pub(crate) fn sample_table(&self) -> SampleTable {
        let state = self.profiler.state();
        let now_ns = kernel::now_ns();
        let sites = hot::sample_view();
        let mut threads: BTreeMap<u64, String> = BTreeMap::new();
        for sample in sites.iter().flat_map(|site| &site.live) {
            threads.entry(u64::from(sample.thread)).or_default();
        }
        threads.retain(|id, name| {
            // A thread that has ended has no name any more.
            let comm = fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
            comm.trim_end_matches('\n').clone_into(name);
            !name.is_empty()
        });
        SampleTable {
            schema: "offheap.samples/1".into(),
            taken_at: process::now(),
            recording_since: state.recording_since,
            pid: std::process::id(),
            host: process::host_name(),
            exe: process::exe(),
            started_at: process::started_at(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
            lg_sample: state.lg_sample,
            dropped: hot::sample_counts().1,
            maps: fs::read("/proc/thread-self/maps")
                .map_or_else(|_| String::new(), |maps| String::from_utf8_lossy(&maps).into()),
            modules: loaded_modules(),
            threads,
            sites: sites.into_iter().map(|site| on_the_wire(site, now_ns)).collect(),
        }
    }
}

fn on_the_wire(site: hot::SiteView, now_ns: u64) -> SampleSite {
    let live = |sample: &hot::SampleView| LiveSample {
        size: sample.size,
        usable: sample.usable,
        age: now_ns.saturating_sub(sample.at_ns) as f64 / 1e9,
        thread: u64::from(sample.thread),
    };
    SampleSite {
        live: site.live.iter().map(live).collect(),
        // Without frames, why it ended says nothing.
        end: if site.stack.is_empty() { StackEnd::default() } else { site.end },
        stack: site.stack,
        alloc_objects: site.objects,
        alloc_bytes: site.bytes,
        alloc_samples: site.samples,
    }
}
