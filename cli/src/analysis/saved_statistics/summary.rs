//! The summary line, which every version has and which survives most pastes.
//!
//! ```text
//! Allocated: 55410400, active: 59056128, mapped: 65011712                                            (3.x)
//! Allocated: 55410400, active: 59056128, metadata: 2861824, resident: 61739008, mapped: 65011712     (4.0)
//! Allocated: 8868456, active: 9216000, metadata: 2984512 (n_thp 0), resident: 12173312, mapped: 15507456, retained: 0
//! ```

use offheap_wire::Stats;

/// What the line begins with.
pub(super) const START: &str = "Allocated: ";

/// The pairs of the line, in its order; `None` when the text is no complete summary line.
pub(super) fn pairs(line: &str) -> Option<Vec<(String, u64)>> {
    let mut pairs = Vec::new();
    for part in line.trim().split(", ") {
        let (key, value) = part.split_once(':')?;
        let value = value.trim_start();
        let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        let rest = value[digits..].trim();
        // The number of huge pages stands behind `metadata`.
        let in_brackets = rest.starts_with('(') && rest.ends_with(')');
        if !rest.is_empty() && !in_brackets {
            return None;
        }
        pairs.push((key.trim().to_ascii_lowercase(), value[..digits].parse().ok()?));
    }
    is_known(&pairs).then_some(pairs)
}

fn is_known(pairs: &[(String, u64)]) -> bool {
    const KEYS: [&str; 6] = ["allocated", "active", "metadata", "resident", "mapped", "retained"];
    pairs.iter().all(|(key, _)| KEYS.contains(&key.as_str()))
}

/// The summary line as far as it is whole: of a cut one the pairs before the cut, since a cut number looks whole.
pub(super) fn whole_pairs(line: &str) -> Vec<(String, u64)> {
    let end = line.rfind(", ").unwrap_or(0);
    pairs(&line[..end]).unwrap_or_default()
}

/// Enter the pairs where they belong.
pub(super) fn fill(stats: &mut Stats, pairs: &[(String, u64)]) {
    for (key, value) in pairs {
        let field = match key.as_str() {
            "allocated" => &mut stats.allocated,
            "active" => &mut stats.active,
            "metadata" => &mut stats.metadata,
            "resident" => &mut stats.resident,
            "mapped" => &mut stats.mapped,
            "retained" => &mut stats.retained,
            _ => continue,
        };
        *field = Some(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::{pairs, whole_pairs};

    #[test]
    fn only_whole_lines_are_summaries() {
        assert_eq!(
            pairs("Allocated: 1, active: 2, metadata: 3 (n_thp 0), resident: 4").map(|pairs| pairs.len()),
            Some(4)
        );
        for line in [
            "Allocated: 1, act",
            "Allocated: 1, active:",
            "Allocated: , active: 2",
            "Allocated: 1, chunks: 2",
            "Alloc",
            "",
        ] {
            assert_eq!(pairs(line), None, "{line}");
        }
    }

    #[test]
    fn a_number_at_the_cut_is_not_used() {
        assert_eq!(whole_pairs("Allocated: 10, active: 20, metad"), [("allocated".into(), 10), ("active".into(), 20)]);
        assert_eq!(whole_pairs("Allocated: 10, active: 2"), [("allocated".into(), 10)]);
        assert!(whole_pairs("Allocated: 1").is_empty());
    }
}
