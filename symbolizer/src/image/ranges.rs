use std::ops::Range;

/// Values by the ranges of addresses that they stand for. Ranges may overlap.
#[derive(Debug)]
pub(in crate::image) struct RangeMap<T> {
    /// By start and end, with the largest end up to here: how far back a range that covers an address can stand.
    entries: Vec<(Range<u64>, u64, T)>,
}

impl<T: Copy + Ord> RangeMap<T> {
    /// The ranges that cover the address, with their values: the latest start first, of equal ranges the largest value.
    pub(in crate::image) fn covering(&self, address: u64) -> impl Iterator<Item = (&Range<u64>, T)> {
        let before = self.entries.partition_point(|(range, ..)| range.start <= address);
        let near = self.entries[..before].iter().rev().take_while(move |(_, reach, _)| *reach > address);
        near.filter(move |(range, ..)| range.contains(&address)).map(|(range, _, value)| (range, *value))
    }

    pub(in crate::image) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T: Copy + Ord> FromIterator<(Range<u64>, T)> for RangeMap<T> {
    /// Empty ranges are left out.
    fn from_iter<I: IntoIterator<Item = (Range<u64>, T)>>(ranges: I) -> Self {
        let with_reach = |(range, value): (Range<u64>, T)| (range, 0, value);
        let mut entries: Vec<_> = ranges.into_iter().filter(|(range, _)| !range.is_empty()).map(with_reach).collect();
        entries.sort_unstable_by_key(|(range, _, value)| (range.start, range.end, *value));
        let mut furthest = 0;
        for (range, reach, _) in &mut entries {
            furthest = range.end.max(furthest);
            *reach = furthest;
        }
        Self { entries }
    }
}

#[cfg(test)]
mod tests {
    use super::RangeMap;

    #[test]
    fn the_innermost_range_comes_first() {
        let ranges = [(10..100, 'a'), (20..30, 'b'), (20..30, 'c'), (40..40, 'd'), (150..151, 'e')];
        let map: RangeMap<char> = ranges.into_iter().collect();
        let at = |address| map.covering(address).map(|(_, value)| value).collect::<String>();
        for (address, expected) in
            [(9, ""), (10, "a"), (20, "cba"), (30, "a"), (40, "a"), (99, "a"), (100, ""), (150, "e"), (151, "")]
        {
            assert_eq!(at(address), expected, "at {address}");
        }
    }
}
