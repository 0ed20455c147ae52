//! What is typed wrong ends with 2, whether the parser sees it or the command; with 3, UNKNOWN, for a monitoring plugin.

use crate::kit::{offheap, scratch, text};

/// Nothing is asked of a process first: none of the targets exists.
#[test]
fn words_that_do_not_go_together_are_wrong_usage() {
    for (line, told) in [
        ("--no-such-option", "--no-such-option"),
        ("no-such-command", "no-such-command"),
        ("top", "<PROFILE>"),
        ("top h01-plain.heap --by colour", "thread"),
        ("top h01-plain.heap --focus (", "--focus"),
        ("stats nobody --every 1s", "--every"),
        ("profile stop nobody --lg-sample 19", "--lg-sample belongs to `profile start`"),
        ("dump nobody -o /proc/x --lg-sample 19", "--for"),
        ("trigger nobody --keep 3", "give one of --rss"),
        ("trigger nobody --rss 1GB --dir /a,b", "a comma"),
        ("serve nobody --listen 0.0.0.0:0", "or say --public"),
        ("serve nobody --go elsewhere=http://127.0.0.1/", "with one of the targets"),
        ("serve nobody --textfile metrics.txt", ".prom"),
        ("frag s04-64k-pages.txt --map /proc/x.svg", "asks a live target"),
        ("flame h02-mixed-sizes.heap --by waste -o /proc/x.svg", "add --stats"),
        ("flame h02-mixed-sizes.heap --by waste --base h01-plain.heap -o /proc/x.svg", "--base"),
        ("diff h02-mixed-sizes.heap", "two profiles"),
        ("diff --go g03-four-types.pb.gz h20-symbolized.heap --sample alloc_space", "inuse_space"),
        ("diff --go auto h02-mixed-sizes.heap", "pid:N"),
        ("convert h02-mixed-sizes.heap -o /proc/x.svg", "offheap flame"),
        ("man no-such-command", "offheap help"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let run = offheap(&words);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}\n{}", run.stderr);
        assert!(run.stderr.contains(told), "{line}: {}", run.stderr);
    }
    for line in ["check", "check nobody --no-such-option"] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(offheap(&words).code, Some(3), "{line}");
    }
}

/// What depends on the input is a failure.
#[test]
fn what_only_the_input_can_tell_is_no_wrong_usage() {
    offheap(&["top", "h01-plain.heap", "--sample", "cpu"]).code(1).mentions(&["inuse_space", "alloc_objects"]);
    offheap(&["top", "h20-symbolized.heap", "--sysroot", "h01-plain.heap"]).code(1).mentions(&["not a directory"]);
    let folder = scratch();
    let named_otherwise = folder.path().join("x.svg");
    offheap(&["convert", "h20-symbolized.heap", "-o", text(&named_otherwise), "--to", "folded"]).code(0);
}

/// The exit codes stand in the help of the whole, and so on its manual page.
#[test]
fn exit_codes_are_told() {
    let help = offheap(&["help"]).code(0).stdout;
    let page = offheap(&["man"]).code(0).stdout;
    for code in ["0 done", "1 failed", "2 wrong usage", "3 nothing to show", "4 damaged"] {
        assert!(help.contains(code) && page.contains(code), "{code}\n{help}");
    }
}
