//! The report: one page that needs nothing else.

use crate::kit::{offheap, scratch, text};

/// Two observations of a process whose native memory grows from 40 to 80 MiB.
fn recording() -> String {
    // The tag and the schema come first, by which a recording is recognised.
    let header = r#"{"kind":"header","schema":"offheap.record/1","pid":17,"exe":"/srv/bin/ingest","started_at":1790000000.0,"agent_version":"0.1.0","jemalloc_version":"5.3.1","every":5.0}"#;
    let observation = |taken_at: f64, mebibytes: u64| {
        serde_json::json!({
            "kind": "observation", "taken_at": taken_at,
            "stats": {
                "allocated": mebibytes << 20, "active": (mebibytes * 2) << 20, "resident": (mebibytes * 2 + 4) << 20,
                "bins": [{"size": 448, "nregs": 64, "slab_size": 28672, "curregs": 64, "curslabs": 100, "nonfull_slabs": 99}],
            },
            "ledger": [
                {"owner": "Go heap in use", "bytes": 10 << 20},
                {"owner": "jemalloc live", "bytes": mebibytes << 20},
            ],
            "sites": [{"name": "main.(*Store<T>).Put", "bytes": mebibytes << 20}],
        })
    };
    let end = serde_json::json!({"kind": "end", "taken_at": 1.790_000_070e9, "reason": "the process ended"});
    let lines = [
        header.to_owned(),
        observation(1.79e9, 40).to_string(),
        observation(1.790_000_060e9, 80).to_string(),
        end.to_string(),
    ];
    lines.join("\n") + "\n"
}

#[test]
fn a_recording_becomes_charts_and_tables() {
    let folder = scratch();
    let (file, page) = (folder.path().join("series.jsonl"), folder.path().join("x.html"));
    std::fs::write(&file, recording()).expect("it can be written");
    offheap(&["report", text(&file), "-o", text(&page)]).code(0).says("");
    let html = std::fs::read_to_string(&page).expect("it was written");
    for part in [
        "offheap: ingest (17)",
        "2 observations, one every 5 s",
        "the process ended",
        "index 0.500",
        "RSS by owner",
        "<polygon",
        "<td class=\"n\">90.0 MiB</td><td class=\"n\">100.0%</td><td class=\"name\">RSS</td>",
        "fragmentation index 0.500",
        "<td class=\"name\">448 B</td>",
        "<td class=\"n\">+40.0 MiB</td><td class=\"n\">80.0 MiB</td><td class=\"name\">main.(*Store&lt;T&gt;).Put</td>",
    ] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
    // Nothing is fetched from anywhere.
    assert!(!html.contains("src=") && !html.contains("href="), "{html}");

    // Cut inside the last line but one: what is whole is drawn, and the exit code tells.
    let cut = recording();
    std::fs::write(&file, &cut[..cut.len() - 120]).expect("it can be written");
    offheap(&["report", text(&file), "-o", text(&page)]).code(4).mentions(&["is damaged and left out"]);
}

#[test]
fn a_profile_becomes_tables_and_a_flame_graph() {
    let folder = scratch();
    let page = folder.path().join("x.html");
    offheap(&["report", "h20-symbolized.heap", "-o", text(&page)]).code(0);
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("store::Arena::grow</td>") && html.contains("data:image/svg+xml;base64,"), "{html}");
    offheap(&["report", "h03-no-stacks.heap", "-o", text(&page)]).code(3);
    offheap(&["report", "h29b-elf.heap", "-o", text(&page)]).code(1).mentions(&["an ELF file"]);
}
