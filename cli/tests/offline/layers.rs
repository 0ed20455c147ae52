//! Imports run one way: the module docs of each crate list its layers, and the sources are held to them.

use std::path::{Path, PathBuf};

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

/// The layers of a crate, leaf first: the names in backticks between `Layers, leaf first` and the full stop, which the
/// crate's own documentation is written with. A name that is no module of the crate is a mistake in the documentation.
fn layers(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("lib.rs")).expect("a crate root");
    let doc: String = text.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    let start = doc.to_lowercase().find("layers, leaf first").expect("the layers stand in the module doc");
    let list = &doc[start..];
    let list = &list[..list.find("`. ").map_or(list.len(), |end| end + 1)];
    let names: Vec<String> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    for name in &names {
        assert!(
            root.join(name).is_dir() || root.join(format!("{name}.rs")).is_file(),
            "{}: {name} is no module",
            root.display()
        );
    }
    names
}

/// What a line of code imports of its own crate: the first name of each path that starts with `crate::`. Doc links count
/// for nothing: they compile to nothing.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("crate::").map(|(at, prefix)| {
        let path = &code[at + prefix.len()..];
        &path[..path.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(path.len())]
    })
}

/// The module at the crate's top that a file belongs to.
fn layer_of<'a>(root: &Path, file: &'a Path) -> &'a str {
    let inside = file.strip_prefix(root).expect("below the root");
    let first = inside.iter().next().and_then(|name| name.to_str()).expect("a name");
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Every import of a crate that `allowed` refuses, told the importing layer and the imported one.
fn faults(root: &Path, allowed: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for file in sources(root) {
        let from = layer_of(root, &file);
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            // Braces directly behind `crate::` would hide the names from this test.
            assert!(!line.contains("use crate::{"), "{}: import each layer by a line of its own", file.display());
            for to in imports(line).filter(|to| *to != from && !allowed(from, to)) {
                faults.push(format!("{}:{}: {from} imports {to}", file.display(), number + 1));
            }
        }
    }
    faults
}

fn root(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// Each import leads to a layer that stands before the importing one.
#[test]
fn the_command_and_the_symbolizer_import_only_what_stands_before() {
    for of in ["src", "../symbolizer/src"] {
        let root = root(of);
        let layers = layers(&root);
        let rank = |name: &str| layers.iter().position(|layer| layer == name);
        let faults = faults(&root, |from, to| {
            // The crate root imports all; what begins with a capital or is a function is re-exported by it.
            let Some(from_rank) = rank(from) else { return matches!(from, "lib" | "main") };
            let siblings = (from, to) == ("image", "formats");
            !siblings && rank(to).is_some_and(|to_rank| to_rank < from_rank)
        });
        assert_eq!(faults, Vec::<String>::new(), "{layers:?}");
    }
}

/// `commands` have one file or folder each, and none knows another.
#[test]
fn commands_never_import_each_other() {
    let root = root("src/commands");
    for file in sources(&root) {
        let own = layer_of(&root, &file);
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let at_top = file.parent() == Some(&root);
            let above = at_top && own != "mod" && code.starts_with("use super::");
            let other = code.contains("crate::commands::") && !code.contains(&format!("crate::commands::{own}::"));
            assert!(!above && !other, "{}:{}: {line}", file.display(), number + 1);
        }
    }
}

/// What runs inside `malloc` knows nothing of the server, nobody imports the glue, and the kernel's calls import nothing.
#[test]
fn the_agent_keeps_its_zones_apart() {
    let faults = faults(&root("../agent/src"), |from, to| match to {
        _ if from == "kernel" => false,
        "control" => matches!(from, "glue" | "lib"),
        "glue" => from == "lib",
        _ => true,
    });
    assert_eq!(faults, Vec::<String>::new());
}

/// `mod.rs` declares and re-exports; what does something has a file with a name of its own.
#[test]
fn a_mod_rs_is_a_table_of_contents() {
    for of in ["src", "../symbolizer/src", "../agent/src"] {
        for file in sources(&root(of)).iter().filter(|file| file.ends_with("mod.rs")) {
            let text = std::fs::read_to_string(file).expect("a source file");
            for (number, line) in text.lines().enumerate() {
                let logic = ["fn ", "impl", "struct ", "enum ", "static ", "const ", "trait "];
                let code = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
                let is_logic = logic.iter().any(|word| code.starts_with(word));
                assert!(!is_logic, "{}:{}: {line}", file.display(), number + 1);
            }
        }
    }
}
