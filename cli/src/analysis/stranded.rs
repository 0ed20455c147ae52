//! Who is stranded: the slab waste of each size class, shared among the sites that live in it.
//!
//! A slab is given back only when its last region is free, so its free regions are held by its live objects. Which
//! object shares its slab with how many free regions is not recorded anywhere; what is known is how many objects of each
//! site live in a class, and how old they are. Hence an estimate:
//!
//! ```text
//! share of a site = waste of the class × w / Σ w,    w = Σ over its live objects of (age + 1 s)
//! ```
//!
//! Old objects weigh more because it is survivors that keep slabs of a burst from being given back, while young ones
//! fill regions that are free already. Without ages every object weighs the same. The shares of a class add up to its
//! waste exactly: what rounding leaves goes to the largest remainders.

use super::fragmentation;
use offheap_wire::BinStats;

/// Objects of one site and one size that live together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Residents {
    /// Bytes of one object, as requested or as its class.
    pub(crate) size: f64,
    /// Live objects, estimated from samples.
    pub(crate) objects: f64,
    /// Mean age in seconds, where it is known.
    pub(crate) age: Option<f64>,
}

impl Residents {
    fn weight(&self) -> f64 {
        let weight = self.objects * (self.age.unwrap_or(0.0).max(0.0) + 1.0);
        if weight.is_finite() { weight.max(0.0) } else { 0.0 }
    }
}

/// How the waste was shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// Waste of each entry of the residents that were given, in their order.
    pub(crate) of: Vec<i64>,
    /// Index of the class that each lives in; `None` for large allocations, which have no slab.
    pub(crate) class: Vec<Option<usize>>,
    /// Classes of which no live object was sampled, by index, with their waste.
    pub(crate) unsampled: Vec<(usize, i64)>,
}

/// Share the waste of the classes among those who live in them.
pub(crate) fn share(bins: &[BinStats], residents: &[Residents]) -> Shares {
    let sizes: Vec<u64> = bins.iter().map(|bin| bin.size).collect();
    let class: Vec<Option<usize>> = residents.iter().map(|resident| class_of(&sizes, resident.size)).collect();
    let mut shares = Shares { of: vec![0; residents.len()], class, unsampled: Vec::new() };
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); bins.len()];
    for (index, class) in shares.class.iter().enumerate() {
        if let Some(class) = class {
            members[*class].push(index);
        }
    }
    for (class, (bin, members)) in bins.iter().zip(&members).enumerate() {
        let waste = fragmentation::waste(bin);
        let weights: Vec<f64> = members.iter().map(|&member| residents[member].weight()).collect();
        match apportion(waste, &weights) {
            Some(parts) => members.iter().zip(parts).for_each(|(&member, part)| shares.of[member] = part),
            None if waste != 0 => shares.unsampled.push((class, waste)),
            None => {}
        }
    }
    shares
}

/// Index of the class that holds objects of this size: the smallest that fits. `sizes` ascend, and lack classes that
/// were never used; classes lie at most a quarter (16 bytes at the low end) apart, so one further up is not it.
fn class_of(sizes: &[u64], size: f64) -> Option<usize> {
    let index = sizes.partition_point(|&class| (class as f64) < size.floor());
    let class = *sizes.get(index)? as f64;
    (size > 0.0 && class <= (size * 1.25).max(size + 16.0)).then_some(index)
}

/// Split a whole number in proportion to weights, its parts adding up to it; `None` without weights.
fn apportion(whole: i64, weights: &[f64]) -> Option<Vec<i64>> {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return None;
    }
    let exact: Vec<f64> = weights.iter().map(|weight| whole as f64 * (weight / total)).collect();
    let mut parts: Vec<i64> = exact.iter().map(|part| part.floor() as i64).collect();
    let mut left = whole - parts.iter().sum::<i64>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
    // Fewer than one is left for each part, but for what floating point loses on sizes beyond 2^53.
    for &index in order.iter().cycle() {
        let step = left.signum();
        if step == 0 {
            break;
        }
        let step = if left.unsigned_abs() > parts.len() as u64 { left / parts.len() as i64 } else { step };
        parts[index] += step;
        left -= step;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::{Residents, apportion, class_of, share};
    use offheap_wire::BinStats;

    fn bin(size: u64, nregs: u64, curregs: u64, curslabs: u64) -> BinStats {
        BinStats { size, nregs, slab_size: size * nregs, curregs, curslabs, ..BinStats::default() }
    }

    fn residents(size: f64, objects: f64, age: Option<f64>) -> Residents {
        Residents { size, objects, age }
    }

    #[test]
    fn shares_add_up_to_the_class_whatever_the_weights() {
        for (whole, weights) in [
            (100, vec![1.0, 1.0, 1.0]),
            (7, vec![0.1; 10]),
            (-5, vec![1.0, 2.0]),
            (0, vec![3.0, 4.0]),
            (1, vec![1.0; 7]),
            (i64::MAX / 2, vec![1.0, 1.0, 1e-9]),
            (3_456_789_012_345, vec![1.0 / 3.0; 333]),
        ] {
            let parts = apportion(whole, &weights).unwrap();
            assert_eq!(parts.iter().sum::<i64>(), whole, "{weights:?}");
        }
        assert_eq!(apportion(5, &[]), None);
        assert_eq!(apportion(5, &[0.0, 0.0]), None);
        assert_eq!(apportion(5, &[f64::INFINITY]), None);
        assert_eq!(apportion(100, &[3.0, 1.0]).unwrap(), [75, 25]);
    }

    #[test]
    fn sizes_find_their_class() {
        let sizes = [8, 16, 32, 64, 448, 512, 14336];
        for (size, class) in [
            (1.0, Some(0)),
            (8.0, Some(0)),
            (9.0, Some(1)),
            (33.0, None),
            (49.0, Some(3)),
            (385.0, Some(4)),
            (448.4, Some(4)),
            (449.0, Some(5)),
            (1000.0, None),
            (14336.0, Some(6)),
            (14337.0, None),
            (0.0, None),
            (f64::NAN, None),
        ] {
            assert_eq!(class_of(&sizes, size), class, "{size}");
        }
    }

    #[test]
    fn waste_goes_to_those_who_live_in_the_class() {
        let bins = [bin(64, 64, 64, 2), bin(448, 64, 10, 10), bin(512, 8, 0, 1)];
        let (waste_64, waste_448, waste_512) = (64 * 64, 64 * 448 * 10 - 4480, 4096);
        let found = share(
            &bins,
            &[
                residents(60.0, 30.0, None),
                residents(448.0, 9.0, None),
                residents(400.0, 1.0, None),
                residents(1e6, 5.0, None),
            ],
        );
        assert_eq!(found.of[0], waste_64);
        assert_eq!(found.of[1] + found.of[2], waste_448);
        assert_eq!(found.of[2], waste_448 / 10);
        assert_eq!(found.of[3], 0, "large allocations have no slab");
        assert_eq!(found.class, [Some(0), Some(1), Some(1), None]);
        assert_eq!(found.unsampled, [(2, waste_512)]);
    }

    #[test]
    fn old_objects_weigh_more() {
        let bins = [bin(448, 64, 100, 100)];
        let found = share(&bins, &[residents(448.0, 50.0, Some(99.0)), residents(448.0, 50.0, Some(0.0))]);
        let waste = 64 * 448 * 100 - 44800;
        assert_eq!(found.of.iter().sum::<i64>(), waste);
        assert!((found.of[1] - waste / 101).abs() <= 1, "{found:?}");
    }
}
