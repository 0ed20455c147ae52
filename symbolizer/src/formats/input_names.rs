//! Names that came with the input.

use crate::address::RuntimeAddress;
use crate::profile::hash::FastMap;
use crate::profile::{Function, FunctionId, Line, Profile};
use std::sync::Arc;

/// Names of addresses that stood in the input itself: of lower trust than those of any image.
#[derive(Clone, Debug, Default)]
pub struct InputNames {
    /// The main executable, by the input's own account.
    pub binary: Option<String>,
    by_address: FastMap<u64, Vec<String>>,
}

impl InputNames {
    /// Add the names of an address, innermost first.
    pub(crate) fn insert(&mut self, address: RuntimeAddress, chain: Vec<String>) {
        if !chain.is_empty() {
            self.by_address.insert(address.0, chain);
        }
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// The names of a location's address, innermost first. The table may have the return address as it stands in the
    /// stack or, for callers, one byte less, as locations have it.
    #[must_use]
    pub fn get(&self, location_address: RuntimeAddress) -> Option<&[String]> {
        let as_printed = self.by_address.get(&location_address.0.wrapping_add(1));
        as_printed.or_else(|| self.by_address.get(&location_address.0)).map(Vec::as_slice)
    }

    /// Name the locations that are still without a name; how many that were.
    ///
    /// To be called after [`symbolize`](crate::symbolize()), which knows better.
    pub fn apply(&self, profile: &mut Profile) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut known = FastMap::<&str, FunctionId>::default();
        let mut named = 0;
        let unnamed: Vec<usize> =
            (0..profile.locations.len()).filter(|&i| profile.is_unnamed(&profile.locations[i])).collect();
        for index in unnamed {
            let Some(chain) = self.get(profile.locations[index].address) else { continue };
            let lines = chain.iter().map(|name| {
                let function = *known.entry(name).or_insert_with(|| {
                    let shared: Arc<str> = name.as_str().into();
                    let function = Function { name: Arc::clone(&shared), system_name: shared, ..Function::default() };
                    profile.functions.push(function);
                    FunctionId(profile.functions.len() as u32 - 1)
                });
                Line { function, line: 0, column: 0 }
            });
            profile.locations[index].lines = lines.collect();
            named += 1;
        }
        named
    }
}
