//! A real Prometheus scrapes `serve`, evaluates `rules`, and raises the alert for the planted program alone.

use crate::kit::{offheap, succeed};
use crate::planted::Planted;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Patience with what is awaited; a test that passes does not take this long.
const PATIENCE: Duration = Duration::from_secs(90);

/// A child that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `offheap serve` on a free port, and its address.
fn serve(arguments: &[&Path], options: &[&str]) -> (Running, String) {
    let mut child = offheap()
        .arg("serve")
        .args(arguments)
        .args(["--listen", "127.0.0.1:0"])
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout is a pipe")).read_line(&mut line).expect("it prints a line");
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("no address in `{line}`")).to_owned();
    (Running(child), url)
}

fn get(url: &str) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    ureq::get(url).call().ok()?.into_body().into_reader().read_to_end(&mut body).ok()?;
    Some(body)
}

/// Alerts that fire, as (name, target).
fn firing(prometheus: &str) -> Vec<(String, String)> {
    let Some(body) = get(&format!("{prometheus}/api/v1/alerts")) else { return Vec::new() };
    let Ok(answer) = serde_json::from_slice::<Value>(&body) else { return Vec::new() };
    let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    alerts
        .iter()
        .filter(|alert| alert["state"] == "firing")
        .map(|alert| (text(&alert["labels"]["alertname"]), text(&alert["labels"]["target"])))
        .collect()
}

#[test]
fn prometheus_raises_the_alert_for_the_fragmented_program_alone() {
    let (fragmented, healthy) = (Planted::start("fragmented"), Planted::start("healthy"));
    let gone = fragmented.file("gone.sock");
    let (_serve, url) = serve(&[&fragmented.socket(), &healthy.socket(), &gone], &[]);
    let rules = succeed(offheap().args(["rules", "--for", "1s", "--min-rss", "1MB"]), 0).stdout;
    std::fs::write(fragmented.file("rules.yml"), rules).expect("the file can be written");
    let target = url.strip_prefix("http://").expect("a URL");
    let configuration = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\n\
         scrape_configs: [{{job_name: offheap, static_configs: [{{targets: ['{target}']}}]}}]\n"
    );
    std::fs::write(fragmented.file("prometheus.yml"), configuration).expect("the file can be written");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let _prometheus = Running(
        Command::new("prometheus")
            .arg(format!("--config.file={}", fragmented.file("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", fragmented.file("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed by scripts/setup"),
    );
    let prometheus = format!("http://127.0.0.1:{port}");
    let name = |path: &Path| path.display().to_string();
    let expected = [
        ("HighMemoryFragmentation".to_owned(), name(&fragmented.socket())),
        ("OffheapNotMeasured".to_owned(), name(&gone)),
    ];
    let begin = Instant::now();
    let mut found = Vec::new();
    while begin.elapsed() < PATIENCE {
        found = firing(&prometheus);
        if expected.iter().all(|alert| found.contains(alert)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    found.sort();
    assert_eq!(found, expected, "and nothing for {}", name(&healthy.socket()));
}

#[test]
fn profiles_are_named_and_metrics_of_the_gone_are_down() {
    let planted = Planted::start("fragmented");
    let (_serve, url) = serve(&[&planted.socket()], &[]);
    let profile = planted.file("heap.pb.gz");
    std::fs::write(&profile, get(&format!("{url}/debug/pprof/heap")).expect("a profile")).expect("written");
    let top = succeed(Command::new("go").args(["tool", "pprof", "-top"]).arg(&profile), 0).stdout;
    assert!(String::from_utf8_lossy(&top).contains("session_new"), "{}", String::from_utf8_lossy(&top));
    let metrics = || String::from_utf8(get(&format!("{url}/metrics")).expect("metrics")).expect("UTF-8");
    let socket = planted.socket().display().to_string();
    let up = metrics();
    assert!(up.contains(&format!("offheap_up{{target=\"{socket}\"}} 1\n")), "{up}");
    assert!(up.contains(&format!("jemalloc_active_bytes{{target=\"{socket}\"}} ")), "{up}");
    assert!(up.contains(&format!("offheap_class_waste_bytes{{target=\"{socket}\",size=\"448\"}} ")), "{up}");
    let checked = planted.file("metrics.txt");
    std::fs::write(&checked, &up).expect("written");
    let input = std::fs::File::open(&checked).expect("just written");
    succeed(Command::new("promtool").args(["check", "metrics"]).stdin(input), 0);
    drop(planted);
    // A reading of a moment ago may be handed out once more.
    let begin = Instant::now();
    while !metrics().contains(&format!("offheap_up{{target=\"{socket}\"}} 0\n")) {
        assert!(begin.elapsed() < PATIENCE, "never down: {}", metrics());
    }
}

#[test]
fn a_textfile_is_complete_and_has_the_metrics() {
    let planted = Planted::start("healthy");
    let file = planted.file("offheap.prom");
    succeed(offheap().arg("serve").arg(planted.socket()).arg("--textfile").arg(&file).arg("--once"), 0);
    let text = std::fs::read_to_string(&file).expect("the file exists");
    assert!(text.contains("offheap_up{") && text.contains("offheap_fragmentation_index{"), "{text}");
    let left: Vec<_> = std::fs::read_dir(file.parent().expect("a folder"))
        .expect("the folder can be read")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.contains("prom") && name != "offheap.prom")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    succeed(offheap().args(["serve", "x", "--textfile", "metrics.txt", "--once"]), 2);
}

#[test]
fn serving_beyond_this_machine_needs_a_token_or_a_word() {
    let output = succeed(offheap().args(["serve", "x", "--listen", "0.0.0.0:0"]), 2);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("--token-file") && message.contains("--public"), "{message}");
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret\n").expect("written");
    let (_serve, url) = serve(&[Path::new("x")], &["--token-file", token.to_str().expect("UTF-8")]);
    assert!(get(&format!("{url}/metrics")).is_none(), "without the token nothing is served");
    let answer = ureq::get(format!("{url}/metrics")).header("Authorization", "Bearer s3cret").call();
    assert_eq!(answer.expect("with the token it is").status(), 200);
}
