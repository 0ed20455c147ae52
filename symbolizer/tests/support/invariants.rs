//! What holds of every input, valid or not.

use offheap_symbolizer::formats::{ParseOptions, Parsed, parse, parse_with, pprof};
use offheap_symbolizer::profile::{GroupBy, Part, Profile, SortBy, diff, diff_profile, merge};

/// Read these bytes and do with the result what commands do. Returns whether they were read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let by_thread = ParseOptions { by_thread: true, max_inflated_bytes: Some(64 << 20), ..ParseOptions::default() };
    let options = ParseOptions { by_thread: false, ..by_thread.clone() };
    if let Ok(parsed) = parse_with(bytes, &by_thread) {
        check_ids(&parsed.profile);
    }
    match parse_with(bytes, &options) {
        Ok(parsed) => {
            check_parsed(parsed);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn check_parsed(mut parsed: Parsed) {
    assert!(!parsed.format.is_empty());
    assert!(parsed.damage.len() <= 60, "damage is told in a bounded number of words");
    assert!(parsed.notes.iter().chain(parsed.damage.iter().map(|d| &d.what)).all(|text| text.len() < 2000));
    let names = std::mem::take(&mut parsed.input_names);
    let profile = &mut parsed.profile;
    check_ids(profile);
    check_reports(profile);
    check_round_trip(profile);
    names.apply(profile);
    profile.prune_allocator();
    profile.refresh_mapping_flags();
    check_ids(profile);
    check_reports(profile);
}

/// Every index points to something, every sample has all its values.
fn check_ids(profile: &Profile) {
    for location in &profile.locations {
        assert!(location.mapping.is_none_or(|id| (id.0 as usize) < profile.mappings.len()));
        assert!(location.lines.iter().all(|line| (line.function.0 as usize) < profile.functions.len()));
    }
    for sample in &profile.samples {
        assert_eq!(sample.values.len(), profile.value_types.len());
        assert!(sample.locations.iter().all(|id| (id.0 as usize) < profile.locations.len()));
    }
}

fn check_reports(profile: &Profile) {
    for value in 0..profile.value_types.len() {
        for (_, by) in GroupBy::NAMES {
            let table = profile.rank(value, by);
            assert_eq!(table.total, profile.total(value));
            assert!(
                table.rows.len()
                    <= 1 + profile.locations.iter().map(|l| l.lines.len().max(1)).sum::<usize>()
                        + profile.samples.len()
            );
        }
        let graph = profile.graph(value, GroupBy::Function);
        assert_eq!(graph.total, profile.total(value));
        if let Some(health) = profile.health(value) {
            assert!((0.0..=1.0).contains(&health.shallow) && (0.0..=1.0).contains(&health.unnamed_frame));
        }
        let kind = profile.value_types[value].kind.to_string();
        let change = diff(profile, profile, &kind, GroupBy::Function, SortBy::Cum).expect("the same types");
        assert!(change.rows.iter().all(|row| row.delta() == 0));
    }
    if !profile.value_types.is_empty() {
        let twice = merge(&[Part::new(profile), Part::new(profile)]).expect("the same types");
        check_ids(&twice);
        check_ids(&diff_profile(profile, profile).expect("the same types"));
    }
}

/// What is written is read again as the same, but for what the format has no place for.
fn check_round_trip(profile: &Profile) {
    if profile.value_types.is_empty() || profile.value_types.iter().any(|t| t.kind.is_empty()) {
        return;
    }
    let again = parse(&pprof::encode(profile)).expect("our own file");
    assert_eq!(again.damage, [], "our own file");
    let again = again.profile;
    assert_eq!(again.value_types, profile.value_types);
    assert_eq!(again.samples.len(), profile.samples.len());
    assert_eq!((again.period, again.time_nanos), (profile.period, profile.time_nanos));
    for (read, written) in again.samples.iter().zip(&profile.samples) {
        assert_eq!((&read.locations, &read.values), (&written.locations, &written.values));
    }
    for (read, written) in again.locations.iter().zip(&profile.locations) {
        assert_eq!((read.mapping, read.address), (written.mapping, written.address));
        assert_eq!(read.lines.len(), written.lines.len());
    }
    assert_eq!(again.functions, profile.functions);
}
