//! Whether a profile is worth ranking.

use super::Profile;

/// Shares of the value of all samples, as magnitudes, between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// In samples whose stack is empty or one frame deep: above half, unwinding was broken.
    pub shallow: f64,
    /// In samples whose leaf has no name.
    pub unnamed_leaf: f64,
    /// In samples that have a frame without a name.
    pub unnamed_frame: f64,
}

impl Profile {
    /// Judge the profile by the value of this index. `None` when there is no value at all.
    #[must_use]
    pub fn health(&self, value: usize) -> Option<Health> {
        let unnamed: Vec<bool> = self.locations.iter().map(|location| self.is_unnamed(location)).collect();
        let mut sums = [0_f64; 4];
        for sample in &self.samples {
            let is_unnamed = |id: &super::LocationId| unnamed[id.0 as usize];
            let parts = [
                true,
                sample.locations.len() <= 1,
                sample.locations.first().is_none_or(is_unnamed),
                sample.locations.is_empty() || sample.locations.iter().any(is_unnamed),
            ];
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += if part { sample.values[value].unsigned_abs() as f64 } else { 0.0 };
            }
        }
        let [all, shallow, unnamed_leaf, unnamed_frame] = sums;
        (all > 0.0).then(|| Health {
            shallow: shallow / all,
            unnamed_leaf: unnamed_leaf / all,
            unnamed_frame: unnamed_frame / all,
        })
    }
}
