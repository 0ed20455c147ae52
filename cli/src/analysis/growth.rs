//! How fast a size grows.

/// The slope of the least-squares line through (seconds, bytes), in bytes per second.
///
/// Over the whole window rather than from its first to its last point: an allocator's figures move in steps, and a step
/// at either end would be taken for growth.
///
/// ```text
/// slope = Σ (t − t̄)(b − b̄) / Σ (t − t̄)²
/// ```
///
/// `None` with fewer than two moments.
pub(crate) fn per_second(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let (count, times, bytes) =
        points.clone().fold((0.0, 0.0, 0.0), |(n, t, b), (time, size)| (n + 1.0, t + time, b + size));
    let (mean_time, mean_bytes) = (times / count, bytes / count);
    let (covariance, variance) = points.fold((0.0, 0.0), |(c, v), (time, size)| {
        (c + (time - mean_time) * (size - mean_bytes), v + (time - mean_time).powi(2))
    });
    (variance > 0.0).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn slopes() {
        for (label, points, expected) in [
            ("nothing", &[][..], None),
            ("one moment", &[(5.0, 1.0), (5.0, 9.0)], None),
            ("steady", &[(0.0, 7.0), (1.0, 7.0), (9.0, 7.0)], Some(0.0)),
            ("line", &[(10.0, 100.0), (12.0, 110.0), (14.0, 120.0)], Some(5.0)),
            ("shrinking", &[(0.0, 4.0), (2.0, 0.0)], Some(-2.0)),
        ] {
            assert_eq!(per_second(points.iter().copied()), expected, "{label}");
        }
        // A step at the end counts for what it is.
        let step = per_second([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 100.0)].into_iter()).unwrap();
        assert!(step > 25.0 && step < 33.4, "{step}");
    }
}
