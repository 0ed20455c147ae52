//! The samples of a profile as residents of size classes, and what each site strands.

use super::stranded::{Residents, Shares, share};
use offheap_symbolizer::profile::go_name::innermost;
use offheap_symbolizer::profile::{Profile, Sample, ValueType};
use offheap_wire::BinStats;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name of what no sample explains.
const UNSAMPLED: &str = "[classes without a sampled object]";

/// A site with the waste that is put down to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tenant {
    /// The innermost Go function outside the runtime, else the function that allocated.
    pub(crate) name: String,
    /// Waste of all its classes: an estimate.
    pub(crate) waste: i64,
    /// Live objects in small classes, estimated from samples.
    pub(crate) objects: i64,
    /// Mean age of them in seconds, where it is known.
    pub(crate) age: Option<f64>,
    /// Its classes, the one with most waste first.
    pub(crate) classes: Vec<Stay>,
}

/// What a site has in one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Stay {
    pub(crate) size: u64,
    pub(crate) waste: i64,
    pub(crate) objects: i64,
}

/// Share the waste among the samples.
pub(crate) fn share_among_samples(bins: &[BinStats], profile: &Profile) -> Option<Shares> {
    let objects = profile.value_index("inuse_objects")?;
    let space = profile.value_index("inuse_space")?;
    let residents: Vec<Residents> = profile.samples.iter().map(|sample| residents(sample, objects, space)).collect();
    Some(share(bins, &residents))
}

fn residents(sample: &Sample, objects: usize, space: usize) -> Residents {
    let (objects, space) = (sample.values[objects] as f64, sample.values[space] as f64);
    let mean = if objects > 0.0 { space / objects } else { 0.0 };
    let size = sample.label_number("bytes").map_or(mean, |bytes| bytes as f64);
    Residents { size, objects, age: sample.label_number("age").map(|age| age as f64) }
}

/// The sites by waste, largest first. Their waste, with that of [`UNSAMPLED`], adds up to that of all classes.
pub(crate) fn tenants(bins: &[BinStats], profile: &Profile) -> Option<Vec<Tenant>> {
    let shares = share_among_samples(bins, profile)?;
    let objects = profile.value_index("inuse_objects")?;
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for ((sample, &waste), class) in profile.samples.iter().zip(&shares.of).zip(&shares.class) {
        if let Some(class) = class {
            let sum = sums.entry(site(profile, sample)).or_default();
            sum.add(bins[*class].size, waste, sample.values[objects], sample.label_number("age"));
        }
    }
    for &(class, waste) in &shares.unsampled {
        sums.entry(UNSAMPLED.to_owned()).or_default().add(bins[class].size, waste, 0, None);
    }
    let mut tenants: Vec<Tenant> = sums.into_iter().map(|(name, sum)| sum.tenant(name)).collect();
    // Sites of full slabs strand nothing.
    tenants.retain(|tenant| tenant.waste != 0);
    tenants.sort_by(|a, b| b.waste.cmp(&a.waste).then_with(|| a.name.cmp(&b.name)));
    Some(tenants)
}

#[derive(Default)]
struct Sum {
    by_size: BTreeMap<u64, (i64, i64)>,
    /// Σ objects × age and the objects that have an age.
    aged: (f64, f64),
}

impl Sum {
    fn add(&mut self, size: u64, waste: i64, objects: i64, age: Option<i64>) {
        let stay = self.by_size.entry(size).or_default();
        stay.0 = stay.0.saturating_add(waste);
        stay.1 = stay.1.saturating_add(objects);
        if let Some(age) = age {
            self.aged.0 += objects as f64 * age as f64;
            self.aged.1 += objects as f64;
        }
    }

    fn tenant(self, name: String) -> Tenant {
        let mut classes: Vec<Stay> =
            self.by_size.into_iter().map(|(size, (waste, objects))| Stay { size, waste, objects }).collect();
        classes.sort_by(|a, b| b.waste.cmp(&a.waste).then(a.size.cmp(&b.size)));
        Tenant {
            name,
            waste: classes.iter().map(|stay| stay.waste).sum(),
            objects: classes.iter().map(|stay| stay.objects).sum(),
            age: (self.aged.1 > 0.0).then(|| self.aged.0 / self.aged.1),
            classes,
        }
    }
}

fn site(profile: &Profile, sample: &Sample) -> String {
    let functions = profile.frames(sample).filter_map(|frame| frame.function());
    match innermost(functions) {
        Some(function) => function.name.to_string(),
        None => profile.frames(sample).next().map_or_else(|| "[no stack]".to_owned(), |leaf| leaf.name().into_owned()),
    }
}

/// The profile with one value: the waste of each sample, an estimate. Returns what no sample explains beside it.
pub(crate) fn waste_profile(bins: &[BinStats], mut profile: Profile) -> Option<(Profile, i64)> {
    let shares = share_among_samples(bins, &profile)?;
    for (sample, &waste) in profile.samples.iter_mut().zip(&shares.of) {
        sample.values = vec![waste];
        sample.picked = None;
    }
    profile.samples.retain(|sample| sample.values[0] > 0);
    profile.value_types = vec![ValueType::new("slab_waste", "bytes")];
    profile.default_value_type = None;
    Some((profile, shares.unsampled.iter().map(|(_, waste)| waste).sum()))
}

#[cfg(test)]
mod tests {
    use super::{UNSAMPLED, tenants, waste_profile};
    use crate::analysis::fragmentation::waste;
    use offheap_symbolizer::profile::{
        Function, FunctionId, Label, Line, Location, LocationId, Profile, Sample, ValueType,
    };
    use offheap_wire::BinStats;

    fn bin(size: u64, curregs: u64, curslabs: u64) -> BinStats {
        BinStats { size, nregs: 64, slab_size: size * 64, curregs, curslabs, ..BinStats::default() }
    }

    /// A C function below a Go function.
    fn profile(samples: &[(u32, i64, i64, i64)]) -> Profile {
        let function =
            |name: &str, file: &str| Function { name: name.into(), file: file.into(), ..Function::default() };
        let location =
            |id| Location { lines: vec![Line { function: FunctionId(id), line: 1, column: 0 }], ..Location::default() };
        Profile {
            value_types: ValueType::go_heap(),
            functions: vec![
                function("table_new", "t.c"),
                function("main.handleSessions", "main.go"),
                function("main.handleCache", "main.go"),
            ],
            locations: vec![location(0), location(1), location(2)],
            samples: samples
                .iter()
                .map(|&(go, objects, size, age)| Sample {
                    locations: vec![LocationId(0), LocationId(go)],
                    values: vec![objects, objects * size, objects, objects * size],
                    labels: vec![Label::number("bytes", size, None), Label::number("age", age, None)],
                    ..Sample::default()
                })
                .collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn the_go_function_whose_objects_survive_stands_first_and_everything_adds_up() {
        let bins = [bin(64, 640, 10), bin(448, 1000, 1000), bin(1024, 0, 3)];
        let profile = profile(&[(1, 900, 448, 500), (2, 100, 448, 0), (2, 640, 60, 0), (1, 3, 1 << 20, 9)]);
        let found = tenants(&bins, &profile).unwrap();
        assert_eq!(found[0].name, "main.handleSessions");
        assert_eq!(found[0].classes[0].size, 448);
        assert_eq!((found[0].objects, found[0].age), (900, Some(500.0)));
        assert!(found.iter().any(|tenant| tenant.name == UNSAMPLED && tenant.waste == 3 * 64 * 1024));
        let total: i64 = bins.iter().map(waste).sum();
        assert_eq!(found.iter().map(|tenant| tenant.waste).sum::<i64>(), total);
        assert!(found[0].waste > total * 9 / 10);

        let (drawn, unsampled) = waste_profile(&bins, profile).unwrap();
        assert_eq!(drawn.samples.iter().map(|sample| sample.values[0]).sum::<i64>() + unsampled, total);
        assert_eq!(&*drawn.value_types[0].kind, "slab_waste");
    }

    #[test]
    fn a_profile_of_something_else_names_nobody() {
        let other = Profile { value_types: vec![ValueType::new("cpu", "nanoseconds")], ..Profile::default() };
        assert_eq!(tenants(&[bin(64, 1, 1)], &other), None);
    }
}
