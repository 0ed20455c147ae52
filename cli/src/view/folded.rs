//! Folded stacks: what flame graph tools read.
//!
//! ```text
//! runtime.goexit;main.handlePut;rocksdb_put;rocksdb::Arena::Allocate(unsigned long) 1048576
//! ```

use offheap_symbolizer::profile::{NO_STACK, Profile};
use std::collections::BTreeMap;

/// One line a stack, root first, sorted; stacks that read the same are added up, those without a value are left out.
pub(crate) fn lines(profile: &Profile, value: usize) -> String {
    let mut stacks: BTreeMap<String, i64> = BTreeMap::new();
    for sample in &profile.samples {
        let amount = sample.values[value];
        if amount == 0 {
            continue;
        }
        let names: Vec<String> = profile.frames(sample).rev().map(|frame| name(&frame.name())).collect();
        let stack = if names.is_empty() { NO_STACK.to_owned() } else { names.join(";") };
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
    use offheap_symbolizer::profile::{Line, ProfileBuilder, Sample, ValueType};

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
        assert_eq!(super::lines(&builder.finish(), 0), "[no stack] 1\nmain.main;f(char[1]:?) 7\n");
    }
}
