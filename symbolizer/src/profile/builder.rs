//! Builds a profile in which every string, function and location stands once.

use super::hash::{FastMap, FastSet};
use super::{Function, FunctionId, Line, Location, LocationId, Mapping, MappingId, Profile, Sample};
use crate::address::RuntimeAddress;
use std::sync::Arc;

/// Collects the parts of a profile.
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    profile: Profile,
    strings: FastSet<Arc<str>>,
    functions: FastMap<Function, FunctionId>,
    by_address: FastMap<u64, LocationId>,
    by_mapping: FastMap<(MappingId, u64), LocationId>,
    by_lines: FastMap<Box<[Line]>, LocationId>,
}

impl ProfileBuilder {
    /// An empty profile with these value types.
    #[must_use]
    pub fn new(value_types: Vec<super::ValueType>) -> Self {
        Self { profile: Profile { value_types, ..Profile::default() }, ..Self::default() }
    }

    /// The parts that need no interning: period, times, comments.
    pub fn header(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// The one shared copy of a string.
    pub fn string(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        self.strings.insert(Arc::clone(&shared));
        shared
    }

    /// The function with these properties.
    pub fn function(&mut self, name: &str, system_name: &str, file: &str, start_line: i64) -> FunctionId {
        let function = Function {
            name: self.string(name),
            system_name: self.string(system_name),
            file: self.string(file),
            start_line,
        };
        let next = FunctionId(self.profile.functions.len() as u32);
        let id = *self.functions.entry(function.clone()).or_insert(next);
        if id == next {
            self.profile.functions.push(function);
        }
        id
    }

    /// Add a mapping; the caller sees to it that each stands once.
    pub fn mapping(&mut self, mapping: Mapping) -> MappingId {
        let id = MappingId(self.profile.mappings.len() as u32);
        self.profile.mappings.push(mapping);
        id
    }

    /// The location at this address; it has no lines when it is new.
    pub fn location(&mut self, mapping: MappingId, address: RuntimeAddress) -> LocationId {
        let next = LocationId(self.profile.locations.len() as u32);
        let id = *self.by_mapping.entry((mapping, address.0)).or_insert(next);
        if id == next {
            self.profile.locations.push(Location { mapping: Some(mapping), address, ..Location::default() });
        }
        id
    }

    /// The location of this address, without a mapping for now: see [`Self::assign_mappings`].
    pub fn location_at(&mut self, address: RuntimeAddress) -> LocationId {
        let next = LocationId(self.profile.locations.len() as u32);
        let id = *self.by_address.entry(address.0).or_insert(next);
        if id == next {
            self.profile.locations.push(Location { address, ..Location::default() });
        }
        id
    }

    /// The location with these lines and no address, as in folded stacks.
    pub fn location_of_lines(&mut self, lines: &[Line]) -> LocationId {
        if let Some(&id) = self.by_lines.get(lines) {
            return id;
        }
        let id = LocationId(self.profile.locations.len() as u32);
        self.profile.locations.push(Location { lines: lines.to_vec(), ..Location::default() });
        self.by_lines.insert(lines.into(), id);
        id
    }

    /// Add a location whatever others there are.
    #[cfg(test)]
    pub(crate) fn location_as_given(&mut self, location: Location) -> LocationId {
        let id = LocationId(self.profile.locations.len() as u32);
        self.profile.locations.push(location);
        id
    }

    /// Change a location.
    pub fn location_mut(&mut self, id: LocationId) -> &mut Location {
        &mut self.profile.locations[id.0 as usize]
    }

    /// Add a sample.
    pub fn sample(&mut self, sample: Sample) {
        self.profile.samples.push(sample);
    }

    /// Point every location that has no mapping at the one that holds its address.
    ///
    /// Map sections come after the stacks, so dumps are read with bare addresses first.
    pub fn assign_mappings(&mut self) {
        self.profile.assign_mappings();
    }

    /// The profile.
    #[must_use]
    pub fn finish(self) -> Profile {
        self.profile
    }
}

impl Profile {
    /// Point every location that has no mapping at the one that holds its address.
    pub fn assign_mappings(&mut self) {
        let mut by_start: Vec<(u64, u64, MappingId)> = (0_u32..)
            .zip(&self.mappings)
            .map(|(id, mapping)| (mapping.start.0, mapping.end.0, MappingId(id)))
            .collect();
        by_start.sort_unstable();
        for location in self.locations.iter_mut().filter(|l| l.mapping.is_none()) {
            let address = location.address.0;
            let after = by_start.partition_point(|&(start, ..)| start <= address);
            if let Some(&(_, end, id)) = after.checked_sub(1).and_then(|i| by_start.get(i))
                && address < end
            {
                location.mapping = Some(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProfileBuilder;
    use crate::address::RuntimeAddress;
    use crate::profile::{Line, Mapping, MappingId};
    use std::sync::Arc;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping { start: RuntimeAddress(start), end: RuntimeAddress(end), ..Mapping::default() }
    }

    #[test]
    fn parts_stand_once() {
        let mut builder = ProfileBuilder::default();
        assert!(Arc::ptr_eq(&builder.string("main"), &builder.string("main")));
        let main = builder.function("main", "main", "a.c", 1);
        assert_eq!(main, builder.function("main", "main", "a.c", 1));
        assert_ne!(main, builder.function("main", "main", "b.c", 1));
        let here = builder.location_at(RuntimeAddress(0x10));
        assert_eq!(here, builder.location_at(RuntimeAddress(0x10)));
        assert_ne!(here, builder.location(MappingId(0), RuntimeAddress(0x10)));
        let line = Line { function: main, line: 3, column: 0 };
        assert_eq!(builder.location_of_lines(&[line]), builder.location_of_lines(&[line]));
    }

    #[test]
    fn locations_find_their_mapping() {
        let mut builder = ProfileBuilder::default();
        builder.mapping(mapping(0x3000, 0x4000));
        builder.mapping(mapping(0x1000, 0x2000));
        builder.mapping(mapping(0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000));
        let cases = [
            (0x0fff, None),
            (0x1000, Some(1)),
            (0x1fff, Some(1)),
            (0x2000, None),
            (0x3fff, Some(0)),
            (0xffff_ffff_ff60_0400, Some(2)),
            (u64::MAX, None),
        ];
        let ids = cases.map(|(address, _)| builder.location_at(RuntimeAddress(address)));
        builder.assign_mappings();
        let profile = builder.finish();
        for (id, (address, expected)) in ids.into_iter().zip(cases) {
            assert_eq!(profile.location(id).mapping, expected.map(MappingId), "{address:#x}");
        }
    }
}
