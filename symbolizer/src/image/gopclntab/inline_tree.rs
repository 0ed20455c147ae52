use super::header::Layout;
use crate::image::bytes::{i32_at, u32_at};

/// An inlined call (`runtime.inlinedCall`), one entry of a function's inline tree.
///
/// ```text
/// Go 1.20:  0 function id u8 · 4 name i32 · 8 parent pc i32 · 12 start line i32
/// Go 1.18:  0 parent i16 · 2 function id u8 · 4 file i32 · 8 line i32 · 12 name i32 · 16 parent pc i32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlinedCall {
    /// Offset among the function names.
    pub(super) name: u32,
    /// An instruction of the caller whose line is that of the call, from the start of the function.
    pub(super) parent_pc: u32,
    /// Line of the `func` keyword; 0 when the layout lacks it.
    pub(super) start_line: u32,
}

impl InlinedCall {
    /// Entry `index` of the tree at the start of `tree`.
    pub(super) fn parse(tree: &[u8], index: u32, layout: Layout) -> Option<Self> {
        let (size, name, parent_pc, start_line) = match layout {
            Layout::Go118 => (20, 12, 16, None),
            Layout::Go120 => (16, 4, 8, Some(12)),
        };
        let at = u64::from(index) * size;
        Some(Self {
            name: u32::try_from(i32_at(tree, at + name)?).ok()?,
            parent_pc: u32::try_from(i32_at(tree, at + parent_pc)?).ok()?,
            start_line: start_line.and_then(|field| u32_at(tree, at + field)).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn both_layouts() {
        let call = InlinedCall { name: 100, parent_pc: 7, start_line: 0 };
        let old = words(&[0; 5].into_iter().chain([-1, 3, 42, 100, 7]).collect::<Vec<_>>());
        assert_eq!(InlinedCall::parse(&old, 1, Layout::Go118), Some(call));
        let new = words(&[0, 0, 0, 0, 0, 100, 7, 41]);
        assert_eq!(InlinedCall::parse(&new, 1, Layout::Go120), Some(InlinedCall { start_line: 41, ..call }));
    }

    #[test]
    fn outside_or_negative() {
        assert_eq!(InlinedCall::parse(&words(&[0, 1, 2, 3]), 1, Layout::Go120), None);
        assert_eq!(InlinedCall::parse(&words(&[0, -1, 2, 3]), 0, Layout::Go120), None);
        assert_eq!(InlinedCall::parse(&[], u32::MAX, Layout::Go118), None);
    }
}
