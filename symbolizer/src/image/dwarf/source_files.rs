use super::sections::Reader;
use gimli::UnitRef;

/// Path of a file in the file table of a unit: the file's name below its directory, both below the directory of the
/// compilation as far as they are relative.
pub(super) fn path(unit: UnitRef<'_, Reader<'_>>, index: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let mut path = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    // Directory 0 is that of the compilation.
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        join(&mut path, &unit.attr_string(directory).ok()?.to_string_lossy());
    }
    join(&mut path, &unit.attr_string(file.path_name()).ok()?.to_string_lossy());
    Some(path)
}

fn join(path: &mut String, part: &str) {
    // `/a`, `C:/a`, `\a`, `C:\a`
    let is_absolute = part.starts_with(['/', '\\']) || matches!(part.get(1..3), Some(":/" | ":\\"));
    if is_absolute {
        path.clear();
    } else if !path.is_empty() {
        let separator = if path.starts_with('\\') || path.get(1..3) == Some(":\\") { '\\' } else { '/' };
        if !path.ends_with(separator) {
            path.push(separator);
        }
    }
    path.push_str(part);
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn parts_are_joined_as_the_compiler_meant_them() {
        for (path, part, expected) in [
            ("/src", "lib/a.c", "/src/lib/a.c"),
            ("/src/", "a.c", "/src/a.c"),
            ("/src", "/usr/include/b.h", "/usr/include/b.h"),
            ("", "a.c", "a.c"),
            ("C:\\src", "a.c", "C:\\src\\a.c"),
            ("/src", "C:/b/a.c", "C:/b/a.c"),
        ] {
            let mut joined = path.to_owned();
            join(&mut joined, part);
            assert_eq!(joined, expected);
        }
    }
}
