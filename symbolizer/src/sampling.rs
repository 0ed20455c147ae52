//! From sampled to estimated values.
//!
//! Both allocators take samples as a Poisson process over bytes: each allocated byte is picked with the same small
//! probability, one in R on average. An allocation of size z is a sample when any of its bytes is picked, so
//!
//! ```text
//! p(z) = 1 − (1 − 1/R)^z ≈ 1 − e^(−z/R)            k(z) = 1/p(z)
//! ```
//!
//! and one sample stands for k(z) allocations of its size. The estimate of a sum over samples of *one* size is exact in
//! the mean; over several sizes the mean size is an approximation of z, good when the sizes are alike and bad when they
//! are not: sixteen bytes and eight megabytes have k of 32768 and 1.
//!
//! jemalloc 5.3 solves this at the source. It adds k(z) and z·k(z) sample by sample while recording, giving exact
//! estimates C objects and S bytes for whatever a line sums up, and prints C·p(S/C) and S·p(S/C): numbers that turn back
//! into C and S when a reader corrects *that line* by its own mean. (S·p)/(C·p) = S/C, so the mean survives the
//! printing. Hence the rule of the reader: correct each printed line by itself, then add. Adding printed numbers of
//! different lines first gives nonsense. Older versions print plain sums; there the same rule is the usual
//! approximation, made for the smallest group that was printed.

/// Mean number of bytes between samples, R.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SamplingPeriod(pub u64);

/// Estimated objects and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Allocations.
    pub objects: f64,
    /// Bytes of them.
    pub bytes: f64,
}

impl SamplingPeriod {
    /// Everything is recorded: a period of 0 or 1 is no sampling.
    #[must_use]
    pub fn is_everything(self) -> bool {
        self.0 <= 1
    }

    /// p(z): the probability that an allocation of this size is a sample.
    #[must_use]
    pub fn probability(self, size_bytes: f64) -> f64 {
        if self.is_everything() || size_bytes <= 0.0 {
            return 1.0;
        }
        // 1 − e^(−x) loses all its digits for small x (16 bytes at 2^19 leave x = 3·10⁻⁵); expm1 keeps them.
        -(-size_bytes / self.0 as f64).exp_m1()
    }

    /// k(z): how many allocations a sample of this size stands for.
    ///
    /// The derivation says nothing about a size of zero; one sample then counts as itself.
    #[must_use]
    pub fn weight(self, size_bytes: f64) -> f64 {
        self.probability(size_bytes).recip()
    }

    /// Correct one printed line of `count` objects and `bytes` bytes.
    ///
    /// A line without objects has no mean size: its bytes stay as they are. Counts may be negative, as those of Go's
    /// text are when it was written between two of its updates; the mean of such a line is that of its magnitudes.
    #[must_use]
    pub fn correct(self, count: i64, bytes: i64) -> Estimate {
        let (count, bytes) = (count as f64, bytes as f64);
        if count == 0.0 || bytes == 0.0 {
            return Estimate { objects: count, bytes };
        }
        let k = self.weight(bytes / count);
        Estimate { objects: count * k, bytes: bytes * k }
    }

    /// Relative standard error of an estimate that rests on `picked` samples of this mean size.
    ///
    /// Of N allocations n are picked, n binomial with mean N·p and variance N·p·(1 − p). The estimate is n/p, its
    /// relative standard deviation √(N·p·(1 − p))/(N·p) = √((1 − p)/(N·p)) ≈ √((1 − p)/n). For sizes far below R that
    /// is the familiar 1/√n; allocations far larger than R are all seen, and the error vanishes.
    #[must_use]
    pub fn relative_error(self, picked: u64, mean_size_bytes: f64) -> f64 {
        if picked == 0 {
            return 1.0;
        }
        let missed = 1.0 - self.probability(mean_size_bytes);
        (missed / picked as f64).sqrt()
    }
}

impl std::ops::Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::AddAssign for Estimate {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Round an estimate to what a profile holds. Values beyond 2^63 saturate, as only damaged input has them.
#[must_use]
pub fn round(value: f64) -> i64 {
    // `as` saturates and turns NaN into 0.
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::{Estimate, SamplingPeriod, round};

    const R: SamplingPeriod = SamplingPeriod(524_288);

    #[test]
    fn lines_are_corrected_by_their_own_mean() {
        for (label, period, count, bytes, objects, estimated) in [
            ("small objects", R, 4, 64, 131_074, 2_097_184),
            ("large objects are all seen", R, 2, 16_777_216, 2, 16_777_218),
            ("a line that jemalloc 5.3 compensated", R, 36, 5183, 131_115, 18_876_960),
            ("everything is recorded", SamplingPeriod(1), 5, 20_480, 5, 20_480),
            ("a period of zero", SamplingPeriod(0), 5, 20_480, 5, 20_480),
            ("nothing live", R, 0, 0, 0, 0),
            ("bytes without objects", R, 0, 8, 0, 8),
            ("objects without bytes", R, 3, 0, 3, 0),
            ("negative counts", R, -4, -64, -131_074, -2_097_184),
        ] {
            let Estimate { objects: o, bytes: b } = period.correct(count, bytes);
            assert_eq!((round(o), round(b)), (objects, estimated), "{label}");
        }
    }

    #[test]
    fn compensated_lines_turn_back_into_what_was_recorded() {
        // What jemalloc 5.3 does for a line that sums up several sizes, then what a reader does with the print.
        let samples = [(16.0, 4.0), (8_388_608.0, 2.0), (300.0, 7.0)];
        let mut truth = Estimate::default();
        for (size, n) in samples {
            let k = R.weight(size);
            truth += Estimate { objects: n * k, bytes: size * n * k };
        }
        let p = R.probability(truth.bytes / truth.objects);
        let (printed_count, printed_bytes) = ((truth.objects * p).round() as i64, (truth.bytes * p).round() as i64);
        let read = R.correct(printed_count, printed_bytes);
        assert!((read.bytes / truth.bytes - 1.0).abs() < 0.02, "{} of {}", read.bytes, truth.bytes);
        assert!((read.objects / truth.objects - 1.0).abs() < 0.02, "{} of {}", read.objects, truth.objects);
    }

    #[test]
    fn the_error_vanishes_for_large_objects() {
        assert!((R.relative_error(100, 16.0) - 0.1).abs() < 1e-4);
        assert!(R.relative_error(1, 64.0 * 524_288.0) < 1e-10);
        assert_eq!(R.relative_error(0, 16.0), 1.0);
    }

    #[test]
    fn rounding_saturates() {
        assert_eq!(round(f64::INFINITY), i64::MAX);
        assert_eq!(round(f64::NAN), 0);
        assert_eq!(round(-2.5), -3);
    }
}
