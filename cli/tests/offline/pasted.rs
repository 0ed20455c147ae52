//! Inputs as they come out of mails, tickets and archives.

use crate::kit::{command, offheap, read, run, scratch, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

#[test]
fn a_dump_with_something_before_each_line_is_the_same_dump() {
    let folder = scratch();
    let path = folder.path().join("pasted.txt");
    let top = |path: &str| offheap(&["top", path, "--json"]).code(0);
    for input in ["h01-plain.heap", "h21-legacy-one-line.heap", "g01-debug1.txt"] {
        let plain = String::from_utf8(read(input)).expect("the input is text");
        let expected = top(input).stdout;
        for (prefix, below) in [("    ", ""), ("\t", ""), ("> ", "\nAny idea?\n"), (">> ", ""), ("| ", "")] {
            let pasted: String = plain.lines().map(|line| format!("{prefix}{line}\n")).collect();
            std::fs::write(&path, pasted + below).expect("the folder is ours");
            top(text(&path))
                .prints(&expected)
                .mentions(&[&format!("every line begins with `{}`", prefix.replace('\t', "\\t"))]);
        }
        // A code block.
        std::fs::write(&path, format!("```\n{plain}```\n")).expect("the folder is ours");
        top(text(&path)).prints(&expected);
        // The first line was copied from its first letter on.
        std::fs::write(&path, plain.replace('\n', "\n    ")).expect("the folder is ours");
        top(text(&path)).prints(&expected);
        std::fs::write(&path, plain.lines().map(|line| format!("12:00:01 {line}\n")).collect::<String>())
            .expect("the folder is ours");
        offheap(&["top", text(&path)])
            .code(1)
            .mentions(&["(line 1) begins with `12:00:01 `; cut off what stands before"]);
    }
}

#[test]
fn statistics_are_read_out_of_gzip() {
    let folder = scratch();
    let path = folder.path().join("stats.gz");
    for input in ["s01-fragmented-51.txt", "r04-live-stats-530.json"] {
        let packed = gzip(&read(input));
        std::fs::write(&path, &packed).expect("the folder is ours");
        for command in ["stats", "frag"] {
            let expected = offheap(&[command, input, "--json"]).code(0).stdout;
            offheap(&[command, text(&path), "--json"]).code(0).prints(&expected);
        }
        let expected = offheap(&["check", input]).stdout;
        offheap(&["check", text(&path)]).code(0).prints(&expected);
        std::fs::write(&path, &packed[..packed.len() - 4]).expect("the folder is ours");
        offheap(&["stats", text(&path)]).code(4).mentions(&["stats.gz: the gzip stream is cut"]);
    }
}

#[test]
fn the_go_page_and_the_maps_are_read_out_of_gzip() {
    let folder = scratch();
    let (page, maps) = (folder.path().join("page.gz"), folder.path().join("maps.gz"));
    std::fs::write(&page, gzip(&read("r05-live-go126-debug1.txt"))).expect("the folder is ours");
    offheap(&["check", "s01-fragmented-51.txt", "--go", text(&page)])
        .prints(&offheap(&["check", "s01-fragmented-51.txt", "--go", "r05-live-go126-debug1.txt"]).stdout);
    let dump = read("h01-plain.heap");
    let at = dump.windows(17).position(|window| window == b"MAPPED_LIBRARIES:").expect("it has a map section");
    std::fs::write(&maps, gzip(&dump[at + 18..])).expect("the folder is ours");
    let expected = offheap(&["top", "h01-plain.heap", "--json"]).stdout;
    offheap(&["top", "h09-no-maps.heap", "--maps", text(&maps), "--json"]).code(0).prints(&expected);
}

#[test]
fn a_file_may_have_any_name() {
    let folder = scratch();
    let path = folder.path().join(OsStr::from_bytes(b"st\xe4ts.txt"));
    std::fs::copy(crate::kit::field().join("s01-fragmented-51.txt"), &path).expect("the folder is ours");
    for arguments in [&["stats"][..], &["frag"], &["check"]] {
        run(command().args(arguments).arg(&path)).code(0);
    }
    std::fs::write(&path, b"no statistics").expect("the folder is ours");
    run(command().arg("stats").arg(&path)).code(1).mentions(&["st\u{fffd}ts.txt: no allocator statistics"]);
    std::fs::copy(crate::kit::field().join("h01-plain.heap"), &path).expect("the folder is ours");
    run(command().arg("report").arg(&path).arg("-o").arg(folder.path().join("x.html"))).code(0);
}
