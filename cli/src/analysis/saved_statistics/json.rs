//! The JSON form, and this tool's own `offheap.stats/1`.
//!
//! ```text
//! {"jemalloc": {"version": "5.3.0-…",
//!   "arenas": {"narenas": 8, "page": 4096, "bin": [{"size": 8, "nregs": 512, "slab_size": 4096}, …], "lextent": […]},
//!   "stats": {"allocated": 64327720, "active": 369164288, …},
//!   "stats.arenas": {"merged": {"pdirty": 500, "bins": [{"curregs": 5, "curslabs": 3, …}, …]}, "0": {…}}}}
//! ```
//! 4.x has `run_size`, `curruns`, `lrun`, `lruns`, `hchunk`, `hchunks` for the same.

use super::report::{Report, UNDERFLOWED, WITHOUT_STATISTICS, live_large, merge_bins, slab_waste, used_bins};
use offheap_wire::{ArenaStats, BinStats, Stats};
use serde_json::Value;

/// Read the last document of a text; `None` when there is none.
pub(super) fn read(content: &str) -> Option<Report> {
    let starts: Vec<usize> = content
        .match_indices('{')
        .map(|(at, _)| at)
        .filter(|&at| first_key(&content[at..]).is_some_and(|key| key == "jemalloc" || key == "schema"))
        .collect();
    let mut read = starts.iter().filter_map(|&at| document(&content[at..])).collect::<Vec<_>>();
    let count = read.len();
    let mut report = read.pop()?;
    if count > 1 {
        report.notes.insert(0, format!("{count} reports in the input: the last one is read"));
    }
    Some(report)
}

/// The first key of an object.
fn first_key(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.trim_start().strip_prefix('"')?.split('"').next()
}

fn document(text: &str) -> Option<Report> {
    // What stands behind the document (log lines, another report) is not read.
    let (value, cut) = match serde_json::Deserializer::from_str(text).into_iter::<Value>().next()? {
        Ok(value) => (value, false),
        Err(error) if error.is_eof() => (serde_json::from_str(&closed(text)?).ok()?, true),
        Err(_) => return None,
    };
    let mut report = if value["schema"] == "offheap.stats/1" {
        Report { stats: serde_json::from_value(value).ok()?, ..Report::default() }
    } else {
        jemalloc(value.get("jemalloc")?)
    };
    if cut {
        report.notes.push("the JSON is cut: what is whole was read".into());
        report.partial = true;
    }
    Some(report)
}

/// A cut document, shortened to its last whole value and closed. A number that ends at the cut is not whole.
fn closed(text: &str) -> Option<String> {
    let mut open: Vec<char> = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    // Where the text can be cut so that it is whole, and the brackets that are open there.
    let mut whole: Option<(usize, usize)> = None;
    for (at, c) in text.char_indices() {
        if in_string {
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                whole = Some((at + 1, open.len()));
            }
            '}' | ']' => {
                open.pop()?;
                whole = Some((at + 1, open.len()));
            }
            ',' => whole = Some((at, open.len())),
            _ => {}
        }
    }
    let (end, depth) = whole?;
    let mut closed = text[..end].to_owned();
    // Between the last whole place and the cut no bracket was opened or closed, so these are the ones open there.
    closed.extend(open[..depth.min(open.len())].iter().rev());
    Some(closed)
}

fn jemalloc(root: &Value) -> Report {
    let mut report = Report::default();
    let totals = &root["stats"];
    let arenas = &root["arenas"];
    let page_size = number(&arenas["page"]);
    report.stats = Stats {
        jemalloc_version: root["version"].as_str().map(str::to_owned),
        // Totals are kept even when underflowed: whoever judges them says so.
        allocated: totals["allocated"].as_u64(),
        active: totals["active"].as_u64(),
        metadata: totals["metadata"].as_u64(),
        resident: totals["resident"].as_u64(),
        mapped: totals["mapped"].as_u64(),
        retained: totals["retained"].as_u64(),
        page_size,
        narenas: number(&arenas["narenas"]),
        ..Stats::default()
    };
    if has_underflows(totals) || has_underflows(&root["stats.arenas"]) {
        report.notes.push("it has invalid numbers near 2^64 (counters that went below zero): not used".into());
    }
    if root["config"]["stats"] == false {
        report.notes.push(WITHOUT_STATISTICS.into());
    }
    read_arenas(root, page_size, &mut report.stats);
    report
}

fn has_underflows(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_some_and(|number| number >= UNDERFLOWED),
        Value::Array(values) => values.iter().any(has_underflows),
        Value::Object(values) => values.values().any(has_underflows),
        _ => false,
    }
}

fn read_arenas(root: &Value, page_size: Option<u64>, stats: &mut Stats) {
    let Some(sections) = root["stats.arenas"].as_object() else { return };
    let classes = &root["arenas"];
    let mut all_bins = Vec::new();
    let mut all_large = Vec::new();
    for (key, section) in sections {
        if let Ok(index) = key.parse() {
            let own = bins(classes, section);
            stats.arenas.push(arena(index, section, page_size, &own));
            all_bins.extend(own);
            all_large.extend(large(classes, section));
        }
    }
    stats.arenas.sort_by_key(|arena| arena.index);
    if let Some(merged) = sections.get("merged") {
        stats.tcache = first(merged, &["tcache_bytes", "tcache"]);
        stats.dirty = pages(merged, "pdirty", page_size);
        stats.muzzy = pages(merged, "pmuzzy", page_size);
        all_bins = bins(classes, merged);
        all_large = large(classes, merged);
    }
    stats.bins = used_bins(merge_bins(&all_bins));
    stats.large = live_large(all_large);
}

fn arena(index: u32, section: &Value, page_size: Option<u64>, bins: &[BinStats]) -> ArenaStats {
    let huge = number(&section["huge"]["allocated"]).unwrap_or(0);
    ArenaStats {
        index,
        nthreads: number(&section["nthreads"]),
        small_allocated: number(&section["small"]["allocated"]),
        large_allocated: number(&section["large"]["allocated"]).map(|large| large + huge),
        active: pages(section, "pactive", page_size),
        dirty: pages(section, "pdirty", page_size),
        muzzy: pages(section, "pmuzzy", page_size),
        mapped: number(&section["mapped"]),
        retained: number(&section["retained"]),
        resident: number(&section["resident"]),
        metadata: number(&section["base"]).map(|base| base + number(&section["internal"]).unwrap_or(0)),
        tcache: first(section, &["tcache_bytes", "tcache"]),
        dirty_decay_ms: section["dirty_decay_ms"].as_i64(),
        muzzy_decay_ms: section["muzzy_decay_ms"].as_i64(),
        slab_waste: if section["bins"].is_array() { slab_waste(bins) } else { None },
        agent: false,
    }
}

/// Live regions of a section joined with the fixed facts of the classes, by position.
fn bins(classes: &Value, section: &Value) -> Vec<BinStats> {
    let (Some(classes), Some(counts)) = (classes["bin"].as_array(), section["bins"].as_array()) else {
        return Vec::new();
    };
    classes
        .iter()
        .zip(counts)
        .filter_map(|(class, counts)| {
            Some(BinStats {
                size: number(&class["size"])?,
                nregs: number(&class["nregs"])?,
                slab_size: first(class, &["slab_size", "run_size"])?,
                curregs: number(&counts["curregs"])?,
                curslabs: first(counts, &["curslabs", "curruns"])?,
                nonfull_slabs: number(&counts["nonfull_slabs"]),
                nmalloc: number(&counts["nmalloc"]),
                ndalloc: number(&counts["ndalloc"]),
            })
        })
        .collect()
}

fn large(classes: &Value, section: &Value) -> Vec<(u64, u64)> {
    let mut live = Vec::new();
    for (sizes, counts, count) in
        [("lextent", "lextents", "curlextents"), ("lrun", "lruns", "curruns"), ("hchunk", "hchunks", "curhchunks")]
    {
        let (Some(sizes), Some(counts)) = (classes[sizes].as_array(), section[counts].as_array()) else { continue };
        live.extend(
            sizes.iter().zip(counts).filter_map(|(class, live)| Some((number(&class["size"])?, number(&live[count])?))),
        );
    }
    live
}

fn pages(section: &Value, key: &str, page_size: Option<u64>) -> Option<u64> {
    number(&section[key])?.checked_mul(page_size?)
}

fn first(value: &Value, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| number(&value[*key]))
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number < UNDERFLOWED)
}

#[cfg(test)]
mod tests {
    use super::closed;

    #[test]
    fn cut_documents_are_closed_behind_their_last_whole_value() {
        for (cut, expected) in [
            (r#"{"a": 1, "b": 23"#, r#"{"a": 1}"#),
            (r#"{"a": [1, 2], "b"#, r#"{"a": [1, 2]}"#),
            (r#"{"a": {"b": 1, "c": {"d": 5}"#, r#"{"a": {"b": 1, "c": {"d": 5}}}"#),
            (r#"{"a": {"b": "x,}\"", "c": "y"#, r#"{"a": {"b": "x,}\""}}"#),
            (r#"{"a": {"#, r#"{"a": {}}"#),
            (r#"{"a"#, "{}"),
        ] {
            assert_eq!(closed(cut).as_deref(), Some(expected), "{cut}");
        }
        assert_eq!(closed("nothing"), None);
    }
}
