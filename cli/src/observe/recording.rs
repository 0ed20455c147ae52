//! A recording: one JSON document a line, so that a file that was cut short loses one line at most.
//!
//! ```text
//! {"kind":"header","schema":"offheap.record/1","pid":17,"exe":"/srv/app",…}
//! {"kind":"observation","taken_at":1790000000.5,"stats":{…},"ledger":[…],"sites":[…]}
//! {"kind":"end","taken_at":1790000600.0,"reason":"the process ended"}
//! ```

use super::observation::Observation;
use serde::{Deserialize, Serialize};

/// A line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first one.
    Header(Header),
    /// A moment.
    Observation(Box<Observation>),
    /// The last one, when the recording was not cut short.
    End(End),
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Always `offheap.record/1`.
    pub(crate) schema: String,
    /// Pid of the host in its own namespace.
    pub(crate) pid: u32,
    pub(crate) exe: Option<String>,
    /// Start of the host, Unix seconds.
    pub(crate) started_at: Option<f64>,
    pub(crate) agent_version: String,
    pub(crate) jemalloc_version: String,
    /// Seconds between two observations.
    pub(crate) every: f64,
}

/// Why it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) taken_at: f64,
    pub(crate) reason: String,
}

/// What could be read of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recording {
    pub(crate) header: Header,
    /// In the order of their times.
    pub(crate) observations: Vec<Observation>,
    /// `None` when it was cut short.
    pub(crate) end: Option<End>,
    /// Lines that could not be read, counted from 1.
    pub(crate) damaged: Vec<usize>,
}

impl Line {
    /// As it stands in the file, with the line feed.
    pub(crate) fn encode(&self) -> anyhow::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

impl Recording {
    /// The bytes are a recording.
    pub(crate) fn looks_like(bytes: &[u8]) -> bool {
        bytes.starts_with(b"{\"kind\":\"header\",\"schema\":\"offheap.record/")
    }

    /// Read what is whole; `None` when the header is not.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let (_, first) = lines.next()?;
        let Ok(Line::Header(header)) = serde_json::from_slice(first) else { return None };
        let mut recording = Self { header, ..Self::default() };
        for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Line::Observation(observation)) => recording.observations.push(*observation),
                Ok(Line::End(end)) => recording.end = Some(end),
                Ok(Line::Header(_)) | Err(_) => recording.damaged.push(index + 1),
            }
        }
        recording.observations.sort_by(|a, b| a.taken_at.total_cmp(&b.taken_at));
        Some(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OwnerBytes, SiteBytes};
    use super::{End, Header, Line, Recording};
    use crate::observe::Observation;

    fn file() -> Vec<u8> {
        let header = Header { schema: "offheap.record/1".into(), pid: 17, every: 1.5, ..Header::default() };
        let observation = |taken_at| Observation {
            taken_at,
            ledger: vec![OwnerBytes { owner: "Go heap".into(), bytes: 5 }],
            sites: vec![SiteBytes { name: "main.leak".into(), bytes: 7 }],
            ..Observation::default()
        };
        let end = End { taken_at: 3.0, reason: "the process ended".into() };
        let lines = [
            Line::Header(header),
            Line::Observation(Box::new(observation(2.0))),
            Line::Observation(Box::new(observation(1.0))),
            Line::End(end),
        ];
        lines.iter().flat_map(|line| line.encode().unwrap()).collect()
    }

    #[test]
    fn what_was_written_is_read_in_the_order_of_time() {
        let bytes = file();
        assert!(Recording::looks_like(&bytes));
        let recording = Recording::read(&bytes).unwrap();
        assert_eq!((recording.header.pid, recording.header.every), (17, 1.5));
        assert_eq!(recording.observations.iter().map(|o| o.taken_at).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(recording.observations[0].rss(), Some(5));
        assert_eq!(recording.end.unwrap().reason, "the process ended");
        assert!(recording.damaged.is_empty());
    }

    #[test]
    fn a_cut_file_loses_the_cut_line_alone() {
        let bytes = file();
        for length in 0..bytes.len() {
            let Some(recording) = Recording::read(&bytes[..length]) else {
                assert!(length < bytes.iter().position(|byte| *byte == b'\n').unwrap());
                continue;
            };
            let whole = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
            assert!(recording.observations.len() + 1 >= whole.min(3), "cut at {length}");
            assert!(recording.damaged.len() <= 1, "cut at {length}");
        }
    }
}
