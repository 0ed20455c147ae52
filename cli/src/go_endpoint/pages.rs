//! The pages of a Go service that hold its memory statistics.

/// Asked in this order: MemStats are exact and of this moment on each, and the first is the one that most services have.
const PAGES: [&str; 3] = ["/debug/pprof/heap?debug=1", "/debug/vars", "/metrics"];

/// The URLs to ask for what was typed. A heap profile is asked for as text, which alone has the statistics; without a
/// path every known page is tried; any other page is taken as it is.
pub(super) fn of_url(typed: &str) -> Vec<String> {
    let (base, query) = typed.split_once('?').map_or((typed, None), |(base, query)| (base, Some(query)));
    let host_end = base.find("://").map_or(0, |at| at + 3);
    let path_start = base[host_end..].find('/').map_or(base.len(), |at| host_end + at);
    let (host, path) = base.split_at(path_start);
    let path = path.trim_end_matches('/');
    match path {
        "" => PAGES.iter().map(|page| format!("{host}{page}")).collect(),
        "/debug/pprof" => vec![format!("{host}{}", PAGES[0])],
        path if path.ends_with("/heap") || path.ends_with("/allocs") => {
            // A delta over some seconds is not the state of now.
            let kept: Vec<&str> = query
                .into_iter()
                .flat_map(|query| query.split('&'))
                .filter(|part| !part.is_empty() && !part.starts_with("debug=") && !part.starts_with("seconds="))
                .collect();
            vec![format!("{host}{path}?{}", [&kept[..], &["debug=1"]].concat().join("&"))]
        }
        _ => vec![typed.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::of_url;

    #[test]
    fn what_is_asked_for_what_was_typed() {
        for (typed, expected) in [
            ("http://h:6060/debug/pprof/heap", "http://h:6060/debug/pprof/heap?debug=1"),
            ("http://h:6060/debug/pprof/heap?debug=1", "http://h:6060/debug/pprof/heap?debug=1"),
            ("http://h/debug/pprof/heap?gc=1&seconds=30&debug=0", "http://h/debug/pprof/heap?gc=1&debug=1"),
            ("http://h/debug/pprof/", "http://h/debug/pprof/heap?debug=1"),
            ("https://h/svc/debug/pprof/allocs", "https://h/svc/debug/pprof/allocs?debug=1"),
            ("http://h/metrics?name=go", "http://h/metrics?name=go"),
        ] {
            assert_eq!(of_url(typed), [expected], "{typed}");
        }
        assert_eq!(
            of_url("http://h:6060/"),
            ["http://h:6060/debug/pprof/heap?debug=1", "http://h:6060/debug/vars", "http://h:6060/metrics"]
        );
    }
}
