//! Where inputs come from and results go: odd names, pipes, links, full disks.

use crate::kit::{command, field, offheap, run, scratch, text};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_full_disk_behind_standard_output_is_named() {
    for arguments in [&["top", "h20-symbolized.heap"][..], &["convert", "h20-symbolized.heap", "-o", "-"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        run(command().args(arguments).stdout(full))
            .code(1)
            .mentions(&["standard output: the disk is full, and what was written is cut"]);
    }
}

#[test]
fn standard_input_is_read_once() {
    let input = std::fs::File::open(field().join("h20-symbolized.heap")).expect("it is there");
    run(command().args(["diff", "-", "-"]).stdin(input)).code(2).mentions(&["can be read once"]);
}

#[test]
fn file_names_of_all_sorts() {
    let folder = scratch();
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xe9\x1b[31m.heap"));
    std::fs::copy(field().join("h20-symbolized.heap"), &odd).expect("it can be copied");
    let shown = run(command().arg("top").arg(&odd)).code(0);
    assert!(shown.stdout.contains("store::Arena::grow") && !(shown.stdout + &shown.stderr).contains('\x1b'));
    std::fs::remove_file(&odd).expect("it can be removed");
    let missing = run(command().arg("top").arg(&odd)).code(1).mentions(&["no such file"]);
    assert!(!missing.stderr.contains('\x1b'), "{:?}", missing.stderr);
}

#[test]
fn a_file_that_is_written_again_keeps_its_permissions_and_its_links() {
    let folder = scratch();
    let [private, link, fresh] = ["private.folded", "link.folded", "fresh.folded"].map(|name| folder.path().join(name));
    std::fs::write(&private, "").expect("it can be written");
    std::fs::set_permissions(&private, Permissions::from_mode(0o640)).expect("they can be set");
    offheap(&["convert", "h20-symbolized.heap", "-o", text(&private)]).code(0);
    let metadata = std::fs::metadata(&private).expect("it is there");
    assert!(metadata.len() > 0);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);

    std::os::unix::fs::symlink("fresh.folded", &link).expect("a link can be made");
    offheap(&["convert", "h20-symbolized.heap", "-o", text(&link)]).code(0);
    assert!(link.is_symlink() && fresh.is_file());
}

#[test]
fn a_pipe_gives_its_bytes_once() {
    let folder = scratch();
    let page = folder.path().join("x.html");
    for name in ["/dev/stdin", "-"] {
        let input = std::fs::read(field().join("h20-symbolized.heap")).expect("it is there");
        let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
        // Shorter than a pipe holds.
        writer.write_all(&input).expect("it can be written");
        drop(writer);
        run(command().args(["report", name, "-o", text(&page)]).stdin(reader)).code(0);
        let page = std::fs::read_to_string(&page).expect("it was written");
        assert!(page.contains("store::Arena::grow"), "{name}");
    }
}

#[test]
fn a_place_without_statistics_or_recordings_is_named_in_words() {
    let folder = scratch();
    let (missing, out) = (folder.path().join("missing"), folder.path().join("x.html"));
    let (missing, here, out) = (text(&missing), text(folder.path()), text(&out));
    for (arguments, code, said) in [
        (&["stats", missing][..], 1, "no such file; expected a pid"),
        (&["frag", missing], 1, "no such file; expected a pid"),
        (&["report", missing, "-o", out], 1, "no such file; expected a recording"),
        (&["stats", here], 1, "a directory; name the file in it"),
        (&["report", here, "-o", out], 1, "a directory; name the file in it"),
        (&["top", "h09-no-maps.heap", "--maps", here], 1, "a directory; name the file in it"),
        (&["frag", "/dev/zero"], 1, "a device"),
    ] {
        let run = offheap(arguments).code(code).mentions(&[said]);
        assert!(!run.stderr.contains("os error"), "{}", run.stderr);
    }
    let check = offheap(&["check", missing]).code(3);
    assert!(check.stdout.starts_with("UNKNOWN: ") && check.stdout.contains("no such file; expected a pid"));
}
