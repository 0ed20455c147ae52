//! `offheap rules`

use crate::analysis::check::Thresholds;
use crate::exit::Outcome;
use crate::output;
use crate::view::alerting_rules::{self, Series};
use crate::words::{duration, size};
use std::time::Duration;

/// Grafana's view of the same metrics.
const DASHBOARD: &str = include_str!("../view/dashboard.json");

/// Arguments of `rules`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// HighMemoryFragmentation when the index is above
    #[arg(long, default_value_t = Thresholds::default().index, value_parser = Thresholds::parse_index, value_name = "RATIO")]
    index: f64,
    /// … and RSS is above
    #[arg(long, value_parser = size::parse, default_value = "1.5GB", value_name = "SIZE")]
    min_rss: u64,
    /// GoHeapToRssMismatch when RSS / Go heap in use is above
    #[arg(long, default_value_t = Thresholds::default().go_ratio, value_parser = Thresholds::parse_ratio, value_name = "RATIO")]
    go_ratio: f64,
    /// … and RSS is above
    #[arg(long, value_parser = size::parse, default_value = "2GB", value_name = "SIZE")]
    go_min_rss: u64,
    /// Both for this long; by default 5m, and 10m for the Go heap
    #[arg(long = "for", value_parser = duration::parse, value_name = "TIME")]
    hold: Option<Duration>,
    /// Label matchers that pick the series, for example `job="offheap"`
    #[arg(long, default_value = "", value_parser = selector, value_name = "MATCHERS")]
    selector: String,
    /// Series with the Go heap in use; this one comes from `serve --go` and from Go's own Prometheus client
    #[arg(long, default_value = "go_memstats_heap_inuse_bytes", value_parser = metric_name, value_name = "NAME")]
    go_metric: String,
    /// Labels by which that series is joined, when it is scraped elsewhere: `pod` or `namespace,pod`
    #[arg(long, value_parser = labels, value_name = "LABELS")]
    on: Option<String>,
    /// Print the Grafana dashboard instead
    #[arg(long)]
    dashboard: bool,
}

/// Print the rules file.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.dashboard {
        output::print(DASHBOARD)?;
        return Ok(Outcome::Done);
    }
    let default = Thresholds::default();
    let thresholds = Thresholds {
        index: args.index,
        min_rss: args.min_rss,
        go_ratio: args.go_ratio,
        go_min_rss: args.go_min_rss,
        index_for: args.hold.unwrap_or(default.index_for),
        go_for: args.hold.unwrap_or(default.go_for),
        ..default
    };
    let series = Series { selector: &args.selector, go_heap: &args.go_metric, on: args.on.as_deref() };
    output::print(&alerting_rules::render(&thresholds, &series))?;
    Ok(Outcome::Done)
}

/// Matchers go into a YAML block and a PromQL expression as they are.
fn selector(text: &str) -> Result<String, String> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    if inner.contains(['\n', '\r', '{', '}']) {
        return Err(r#"write matchers in one line, for example job="offheap",env="prod""#.to_owned());
    }
    Ok(inner.to_owned())
}

fn metric_name(text: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let right = !text.is_empty() && text.chars().all(letter) && !text.starts_with(|c: char| c.is_ascii_digit());
    if right { Ok(text.to_owned()) } else { Err(format!("`{text}` is not the name of a metric")) }
}

fn labels(text: &str) -> Result<String, String> {
    text.split(',').try_for_each(|label| metric_name(label.trim()).map(|_| ()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{DASHBOARD, labels, metric_name, selector};

    #[test]
    fn what_goes_into_an_expression_is_looked_at() {
        assert_eq!(selector(r#"{job="x"}"#).as_deref(), Ok(r#"job="x""#));
        assert!(selector("job=\"x\"\n evil: 1").is_err());
        assert!(metric_name("go_memstats_heap_inuse_bytes").is_ok());
        assert!(metric_name("1x").is_err() && metric_name("a b").is_err() && metric_name("").is_err());
        assert!(labels("namespace,pod").is_ok() && labels("pod)").is_err());
    }

    #[test]
    fn the_dashboard_is_json_and_its_panels_ask_for_metrics_that_exist() {
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        assert!(panels.len() > 5);
        for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()) {
            let expression = target["expr"].as_str().unwrap();
            assert!(
                ["offheap_", "jemalloc_", "process_", "go_memstats_"].iter().any(|family| expression.contains(family)),
                "{expression}"
            );
        }
    }
}
