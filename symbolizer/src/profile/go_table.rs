//! For each Go function, what it holds on the Go heap beside what its cgo calls hold outside of it.

use super::Profile;
use super::group::{GroupBy, NO_GO, Node};
use super::hash::FastMap;
use std::sync::Arc;

/// The Go function table, of the bytes in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoTable {
    /// Bytes in use on the Go heap.
    pub go_total: i64,
    /// Bytes in use outside of it, in the native profile.
    pub native_total: i64,
    /// The part of `native_total` that no Go function stands behind.
    pub native_without_go: i64,
    /// The part of `go_total` that the Go runtime holds for itself.
    pub go_in_runtime: i64,
    /// The functions, largest sum of both flat values first.
    pub functions: Vec<GoFunction>,
}

/// One Go function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoFunction {
    /// What it is called, and where it stands.
    pub node: Node,
    /// Go-heap bytes for which it is the innermost function outside the runtime.
    pub go_flat: i64,
    /// Go-heap bytes with it anywhere in the stack.
    pub go_cum: i64,
    /// Native bytes for which it is the innermost Go function outside the runtime.
    pub native_flat: i64,
    /// Native bytes with it anywhere in the stack.
    pub native_cum: i64,
    /// Standard error of `native_flat` that sampling leaves, where it is known.
    pub native_flat_error: Option<f64>,
}

/// Join a Go heap profile and a native one by Go function. Each is scaled by its own period already.
///
/// `None` when one of them has no bytes in use.
#[must_use]
pub fn go_table(go: &Profile, native: &Profile) -> Option<GoTable> {
    let (go_value, native_value) = (go.live_bytes_index()?, native.live_bytes_index()?);
    let (go_rank, native_rank) = (go.rank(go_value, GroupBy::Go), native.rank(native_value, GroupBy::Go));
    let mut table = GoTable { go_total: go_rank.total, native_total: native_rank.total, ..GoTable::default() };
    let mut joined = FastMap::<Arc<str>, usize>::default();
    for (is_native, rows) in [(false, go_rank.rows), (true, native_rank.rows)] {
        for row in rows {
            if &*row.node.name == NO_GO {
                *(if is_native { &mut table.native_without_go } else { &mut table.go_in_runtime }) = row.flat;
                continue;
            }
            let functions = &mut table.functions;
            let index = *joined.entry(Arc::clone(&row.node.name)).or_insert_with(|| {
                functions.push(GoFunction { node: row.node.clone(), ..GoFunction::default() });
                functions.len() - 1
            });
            let function = &mut functions[index];
            let (flat, cum) = match is_native {
                true => (&mut function.native_flat, &mut function.native_cum),
                false => (&mut function.go_flat, &mut function.go_cum),
            };
            *flat = flat.saturating_add(row.flat);
            *cum = cum.saturating_add(row.cum);
            if is_native {
                function.native_flat_error = row.flat_error;
            }
        }
    }
    table.functions.sort_by(|a, b| {
        let flat = |f: &GoFunction| f.go_flat.saturating_add(f.native_flat);
        let cum = |f: &GoFunction| f.go_cum.saturating_add(f.native_cum);
        flat(b).cmp(&flat(a)).then_with(|| cum(b).cmp(&cum(a))).then_with(|| a.node.name.cmp(&b.node.name))
    });
    Some(table)
}

impl Profile {
    /// Index of the bytes in use, by whichever of its two names.
    #[must_use]
    pub fn live_bytes_index(&self) -> Option<usize> {
        self.value_index("inuse_space").or_else(|| self.value_index("space"))
    }
}

#[cfg(test)]
mod tests {
    use super::go_table;
    use crate::profile::{Line, Profile, ProfileBuilder, Sample, ValueType};

    fn profile(stacks: &[(&[&str], i64)]) -> Profile {
        let mut builder = ProfileBuilder::new(ValueType::go_heap());
        for (stack, bytes) in stacks {
            let mut locations = Vec::new();
            for name in *stack {
                let function = builder.function(name, name, "", 0);
                locations.push(builder.location_of_lines(&[Line { function, line: 1, column: 0 }]));
            }
            builder.sample(Sample { locations, values: vec![0, 0, 1, *bytes], ..Sample::default() });
        }
        builder.finish()
    }

    #[test]
    fn both_sides_of_a_function_stand_side_by_side() {
        let go = profile(&[
            (&["runtime.mallocgc", "main.(*Cache[...]).Add", "main.handler", "main.main"], 100),
            (&["runtime.malg", "runtime.newproc1"], 7),
        ]);
        let native = profile(&[
            (&["malloc", "put", "runtime.asmcgocall.abi0", "main._Cfunc_put", "main.handler", "main.main"], 1000),
            (
                &[
                    "malloc",
                    "put",
                    "runtime.cgocall",
                    "main._Cfunc_put",
                    "main.(*Cache[go.shape.int]).Add",
                    "main.main",
                ],
                500,
            ),
            (&["malloc", "worker", "start_thread"], 30),
        ]);
        let table = go_table(&go, &native).expect("heap profiles");
        assert_eq!((table.go_total, table.go_in_runtime), (107, 7));
        assert_eq!((table.native_total, table.native_without_go), (1530, 30));
        let rows: Vec<_> =
            table.functions.iter().map(|f| (&*f.node.name, f.go_flat, f.native_flat, f.go_cum, f.native_cum)).collect();
        assert_eq!(
            rows,
            [
                ("main.handler", 0, 1000, 100, 1000),
                ("main.(*Cache[...]).Add", 100, 500, 100, 500),
                ("main.main", 0, 0, 100, 1500),
            ]
        );
    }
}
