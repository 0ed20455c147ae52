//! The loaded images, for whoever reads addresses of this process elsewhere.

use super::profile::fork_gate;
use crate::hot::{LoadedImage, for_each_image};
use offheap_wire::Module;
use std::ops::ControlFlow;

/// All of them, with their build ids.
pub(crate) fn loaded_modules() -> Vec<Module> {
    let _gate = fork_gate();
    let mut modules = Vec::new();
    for_each_image(|image| {
        modules.push(describe(image));
        ControlFlow::Continue(())
    });
    modules
}

fn describe(image: &LoadedImage) -> Module {
    let path = image.path().or_else(|| Some(std::fs::read_link("/proc/self/exe").ok()?.to_string_lossy().into()));
    let span = image.span();
    let notes = image.headers(libc::PT_NOTE).filter_map(|header| image.bytes(&image.mapped(header)));
    Module {
        path: path.unwrap_or_default(),
        start: span.start,
        end: span.end,
        build_id: notes.into_iter().find_map(build_id).unwrap_or_default(),
    }
}

/// The GNU build id among an image's notes.
///
/// ```text
/// u32 name length   u32 description length   u32 type   name, padded to 4   description, padded to 4
/// 4                 20                       3          "GNU\0"             the id
/// ```
fn build_id(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    while let Some((head, tail)) = notes.split_at_checked(12) {
        let word = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (name_bytes, id_bytes) = (word(0) as usize, word(4) as usize);
        let name = tail.get(..name_bytes)?;
        let at = name_bytes.next_multiple_of(4);
        let id = tail.get(at..at.checked_add(id_bytes)?)?;
        if word(8) == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = tail.get(at + id_bytes.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_this_process_are_listed_with_their_ids() {
        let modules = loaded_modules();
        let here = loaded_modules as *const () as u64;
        let own = modules.iter().find(|module| (module.start..module.end).contains(&here)).unwrap();
        assert_eq!(own.path, std::env::current_exe().unwrap().to_str().unwrap());
        let libc = modules.iter().find(|module| module.path.ends_with("/libc.so.6")).unwrap();
        assert_eq!(libc.build_id.len(), 40, "{libc:?}");
    }

    #[test]
    fn the_id_is_found_behind_other_notes_and_damage_is_none() {
        let note = |kind: u32, name: &[u8], description: &[u8]| {
            let words = [name.len() as u32, description.len() as u32, kind];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            for part in [name, description] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(5, b"GNU\0", &[1; 13]), note(3, b"Go\0", b"xyz"), note(3, b"GNU\0", &[0xab, 0xcd])].concat();
        assert_eq!(build_id(&notes).as_deref(), Some("abcd"));
        for cut in 0..notes.len() - 2 {
            assert_eq!(build_id(&notes[..cut]), None, "{cut}");
        }
        let mut huge = notes;
        huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(build_id(&huge), None);
    }
}
