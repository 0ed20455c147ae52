//! How full the slabs are.

use offheap_wire::{HeapMap, SlabClass};
use serde::Serialize;

/// Steps of the histogram: below 10 %, below 20 %, … up to full.
pub(crate) const STEPS: usize = 10;

/// The heap map, summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Occupancy {
    pub(crate) slabs: u64,
    /// Bytes of free regions.
    pub(crate) waste: u64,
    /// Bytes of mappings that were looked through.
    pub(crate) scanned: u64,
    pub(crate) truncated: bool,
    /// Slabs by occupancy, all classes together.
    pub(crate) histogram: [u64; STEPS],
    /// The class with most waste first.
    pub(crate) classes: Vec<ClassOccupancy>,
}

/// One size class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ClassOccupancy {
    pub(crate) size: u64,
    pub(crate) slabs: u64,
    pub(crate) waste: u64,
    /// Regions in use of all.
    pub(crate) utilization: f64,
    pub(crate) histogram: [u64; STEPS],
}

/// Step of a slab with so many free regions.
pub(crate) fn step(free: u64, nregs: u64) -> usize {
    let used = nregs.saturating_sub(free);
    usize::try_from(used.saturating_mul(STEPS as u64) / nregs.max(1)).unwrap_or(STEPS).min(STEPS - 1)
}

/// Sum up a map.
pub(crate) fn occupancy(map: &HeapMap) -> Occupancy {
    let mut classes: Vec<ClassOccupancy> =
        map.classes.iter().filter(|class| !class.slabs.is_empty()).map(of_class).collect();
    classes.sort_by(|a, b| b.waste.cmp(&a.waste).then(a.size.cmp(&b.size)));
    let mut histogram = [0; STEPS];
    for class in &classes {
        histogram.iter_mut().zip(class.histogram).for_each(|(sum, count)| *sum += count);
    }
    Occupancy {
        slabs: classes.iter().map(|class| class.slabs).sum(),
        waste: classes.iter().map(|class| class.waste).sum(),
        scanned: map.scanned,
        truncated: map.truncated,
        histogram,
        classes,
    }
}

fn of_class(class: &SlabClass) -> ClassOccupancy {
    let mut histogram = [0; STEPS];
    for &(_, free) in &class.slabs {
        histogram[step(free, class.nregs)] += 1;
    }
    let free: u64 = class.slabs.iter().map(|(_, free)| free).sum();
    let slabs = class.slabs.len() as u64;
    let regions = slabs.saturating_mul(class.nregs).max(1);
    ClassOccupancy {
        size: class.size,
        slabs,
        waste: free.saturating_mul(class.size),
        utilization: 1.0 - free as f64 / regions as f64,
        histogram,
    }
}

#[cfg(test)]
mod tests {
    use super::{occupancy, step};
    use offheap_wire::{HeapMap, SlabClass};

    #[test]
    fn steps_of_a_tenth() {
        for (free, nregs, expected) in [
            (64, 64, 0),
            (63, 64, 0),
            (58, 64, 0),
            (57, 64, 1),
            (32, 64, 5),
            (1, 64, 9),
            (0, 64, 9),
            (9, 3, 0),
            (0, 0, 0),
        ] {
            assert_eq!(step(free, nregs), expected, "{free} of {nregs}");
        }
    }

    #[test]
    fn the_class_with_most_waste_comes_first() {
        let class = |size, nregs, slabs: &[u64]| SlabClass {
            size,
            nregs,
            slab_size: size * nregs,
            slabs: (0..).zip(slabs.iter().copied()).collect(),
        };
        let map = HeapMap {
            scanned: 99,
            classes: vec![class(8, 512, &[0, 10]), class(448, 64, &[63, 63, 0]), class(64, 64, &[])],
            ..HeapMap::default()
        };
        let found = occupancy(&map);
        assert_eq!((found.slabs, found.waste), (5, 126 * 448 + 80));
        assert_eq!(found.histogram, [2, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(found.classes.iter().map(|class| class.size).collect::<Vec<_>>(), [448, 8]);
        assert!((found.classes[0].utilization - 66.0 / 192.0).abs() < 1e-12);
    }
}
