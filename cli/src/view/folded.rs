//! Folded stacks: what flame graph tools read.
//!
//! ```text
//! runtime.goexit;main.handlePut;rocksdb_put;rocksdb::Arena::Allocate(unsigned long) 1048576
//! ```

use offheap_symbolizer::profile::{NO_STACK, NO_THREAD, Profile};
use std::collections::BTreeMap;

/// One line a stack, root first, sorted; stacks that read the same are added up, those without a value are left out.
/// The thread, where threads are kept apart, is the outermost frame: a line has no other place for it.
pub(crate) fn lines(profile: &Profile, value: usize, by_thread: bool) -> String {
    let mut stacks: BTreeMap<String, i64> = BTreeMap::new();
    for sample in &profile.samples {
        let amount = sample.values[value];
        if amount == 0 {
            continue;
        }
        let names: Vec<String> = profile.frames(sample).rev().map(|frame| name(&frame.name())).collect();
        let stack = if names.is_empty() { NO_STACK.to_owned() } else { names.join(";") };
        let thread = by_thread.then(|| sample.label_text("thread").unwrap_or(NO_THREAD));
        let stack = thread.map(|thread| format!("{};{stack}", name(thread))).unwrap_or(stack);
        let sum = stacks.entry(stack).or_default();
        *sum = sum.saturating_add(amount);
    }
    stacks.iter().map(|(stack, amount)| format!("{stack} {amount}\n")).collect()
}

/// A name that cannot end its frame or its line, nor be taken for a value: `;` becomes `:`, control characters `?`.
fn name(name: &str) -> String {
    let name = name.trim();
    let name = if name.is_empty() { "?" } else { name };
    name.chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if c.is_control() {
                '?'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use offheap_symbolizer::profile::{Label, Line, ProfileBuilder, Sample, ValueType};

    #[test]
    fn equal_stacks_are_added_and_names_stay_inside_their_frame() {
        let mut builder = ProfileBuilder::new(vec![ValueType::new("inuse_space", "bytes")]);
        let ids = ["main.main", "f(char[1];\n)"].map(|name| {
            let function = builder.function(name, name, "", 0);
            builder.location_of_lines(&[Line { function, line: 0, column: 0 }])
        });
        for (locations, value) in [(vec![ids[1], ids[0]], 5), (vec![ids[0]], 0), (vec![ids[1], ids[0]], 2), (vec![], 1)]
        {
            builder.sample(Sample { locations, values: vec![value], ..Sample::default() });
        }
        assert_eq!(super::lines(&builder.finish(), 0, false), "[no stack] 1\nmain.main;f(char[1]:?) 7\n");
    }

    #[test]
    fn threads_that_are_kept_apart_stand_at_the_root() {
        let mut builder = ProfileBuilder::new(vec![ValueType::new("inuse_space", "bytes")]);
        let function = builder.function("malloc_it", "malloc_it", "", 0);
        let location = builder.location_of_lines(&[Line { function, line: 0, column: 0 }]);
        let thread = |name: &str| vec![Label::text("thread", name)];
        for (labels, value) in [(thread("flush; 7"), 1), (thread("main"), 2), (vec![], 4), (thread("main"), 8)] {
            builder.sample(Sample { locations: vec![location], values: vec![value], labels, ..Sample::default() });
        }
        let profile = builder.finish();
        let apart = "[unknown thread];malloc_it 4\nflush: 7;malloc_it 1\nmain;malloc_it 10\n";
        assert_eq!(super::lines(&profile, 0, true), apart);
        assert_eq!(super::lines(&profile, 0, false), "malloc_it 15\n");
    }
}
