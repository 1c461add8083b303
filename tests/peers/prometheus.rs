//! What `deploy/` has for Prometheus, in a real one (issue 6).
//! Its configuration, its alerts, and every query of the board for Grafana. Grafana itself is not here: that the board looks
//! well nobody has tried.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Duration, timeout},
};
use usher::metrics::state::STATES;

use crate::{
    client::{peers, venv},
    servers::{free_port, wait_for},
};

/// How long it may take until every query has found something, in seconds; as a rule it takes five.
const PATIENCE: &str = "60";

#[tokio::test]
async fn alerts_ring_when_they_are_to_and_at_no_other_time() {
    for (check, file) in [
        (["check", "config"], "prometheus.yaml"),
        (["test", "rules"], "alerts_test.yaml"),
    ] {
        promtool(&check, &deploy().join("prometheus").join(file)).await;
    }
}

#[tokio::test]
async fn the_board_tells_the_state_of_an_upstream_at_the_instance_that_is_worst_off() {
    let mut series = Vec::new();
    for (upstream, states) in [
        ("calm", ["ready", "ready"]),
        ("half", ["away", "ready"]),
        ("slow", ["ready", "connecting"]),
        ("off", ["disabled", "disabled"]),
    ] {
        for (instance, is) in ["a", "b"].into_iter().zip(states) {
            for state in STATES {
                let labels = format!(
                    r#"job="usher",instance="{instance}",gateway_upstream="{upstream}",usher_state="{state}""#
                );
                let value = u64::from(state == is);
                series.push((format!("usher_upstream_state{{{labels}}}"), value));
            }
        }
    }
    let expected = [("calm", 2.0), ("half", 0.0), ("slow", 1.0), ("off", 3.0)];
    let expected = expected.map(|(upstream, value)| {
        let labels = format!(r#"{{gateway_upstream="{upstream}"}}"#);
        json!({"labels": labels, "value": value})
    });
    let state = panel("State");
    finds(&query_of(&state, ".*"), &series, &expected).await;
    let words = &state["fieldConfig"]["defaults"]["mappings"][0]["options"];
    for (value, word) in ["away", "connecting", "ready", "disabled"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(words[value.to_string()]["text"], word, "{words}");
    }
}

#[tokio::test]
async fn the_board_tells_the_errors_of_the_chosen_methods_and_not_what_a_probe_was_answered() {
    let series = [
        ("tools/call", "timeout"),
        ("tools/call", "-32042"),
        ("tools/call", "-32021"),
        ("prompts/get", "-32603"),
        ("server/discover", "-32601"),
    ]
    .map(|(method, error)| {
        let labels = format!(
            r#"job="usher",instance="a",gateway_upstream="notes",mcp_method_name="{method}",error_type="{error}""#
        );
        let name = "mcp_client_operation_duration_seconds_count";
        (format!("{name}{{{labels}}}"), 60)
    });
    let found = |error: &str| {
        let labels = format!(r#"{{gateway_upstream="notes",error_type="{error}"}}"#);
        json!({"labels": labels, "value": 1.0})
    };
    let errors = panel("Errors");
    let calls = query_of(&errors, "tools/call");
    finds(&calls, &series, &[found("timeout")]).await;
    let all = query_of(&errors, ".*");
    finds(&all, &series, &[found("-32603"), found("timeout")]).await;
}

#[tokio::test]
async fn every_query_of_the_board_finds_something_in_a_prometheus_that_reads_usher() {
    let home = TempDir::new().expect("a directory");
    let [clients, operators, queries] = [free_port(), free_port(), free_port()];
    let _usher = usher(home.path(), clients, operators).await;
    let _prometheus = prometheus(home.path(), operators, queries).await;
    let mut asking = Command::new(venv("python"));
    asking
        .arg(peers().join("observed/board.py"))
        .arg(format!("http://127.0.0.1:{clients}/mcp"))
        .arg(format!("http://127.0.0.1:{queries}"))
        .arg(deploy().join("grafana/usher.json"))
        .arg(PATIENCE)
        .kill_on_drop(true);
    let asked = timeout(Duration::from_secs(120), asking.output());
    let asked = asked.await.expect("it ends").expect("it runs");
    let errors = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    assert_eq!(found["missing"], json!([]), "of {}", found["queries"]);
    assert!(found["queries"].as_u64() > Some(30), "{found}");
}

/// The panel of the board with this title.
fn panel(title: &str) -> Value {
    let board = fs::read_to_string(deploy().join("grafana/usher.json")).expect("the board");
    let mut board: Value = serde_json::from_str(&board).expect("JSON");
    let panels = board["panels"].as_array_mut().expect("panels");
    let found = panels.iter_mut().find(|panel| panel["title"] == title);
    found.expect("a panel").take()
}

/// Its first query, as Grafana would ask for it where these methods are chosen.
fn query_of(panel: &Value, methods: &str) -> String {
    let query = panel["targets"][0]["expr"].as_str().expect("a query");
    let query = query.replace("$__rate_interval", "5m");
    query.replace("$upstream", ".*").replace("$method", methods)
}

/// Has Prometheus ask for `query` ten minutes after it began to see series with these values, each growing by so much a minute if it
/// is a count.
async fn finds(query: &str, series: &[(String, u64)], expected: &[Value]) {
    let series = series.iter().map(|(series, value)| {
        let values = if series.contains("_count{") {
            format!("0+{value}x20")
        } else {
            format!("{value}x20")
        };
        json!({"series": series, "values": values})
    });
    let asked = json!({"expr": query, "eval_time": "10m", "exp_samples": expected});
    let tests = json!({"tests": [{
        "interval": "1m",
        "input_series": series.collect::<Vec<_>>(),
        "promql_expr_test": [asked],
    }]});
    let home = TempDir::new().expect("a directory");
    let file = home.path().join("test.yaml");
    // JSON is YAML.
    fs::write(&file, tests.to_string()).expect("written");
    promtool(&["test", "rules"], &file).await;
}

async fn promtool(check: &[&str], file: &Path) {
    let checked = Command::new(tool("promtool"))
        .args(check)
        .arg(file)
        .output()
        .await
        .expect("it runs");
    let said = [checked.stdout, checked.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(checked.status.success(), "{check:?}\n{said}");
}

/// The binary, with limits of every kind, and with pins. Calls that fail are few a minute, so that some are refused however long
/// a round of calls takes.
async fn usher(home: &Path, clients: u16, operators: u16) -> Child {
    let file = home.join("usher.yaml");
    let program = peers().join("observed/changing.py");
    let configuration = json!({
        "listen": {"address": format!("127.0.0.1:{clients}"), "trusted_proxies": ["127.0.0.1"]},
        "admin": {"address": format!("127.0.0.1:{operators}")},
        "audit": {"dir": "audit", "sinks": {"otlp": "http://127.0.0.1:9"}},
        "bounds": {"meters": 1000},
        "limits": [
            {"per": "tool", "match": "changing_fail", "rate": "2/min"},
            {"per": "tool", "match": "changing_late", "concurrency": 1, "queue": 8},
            {"per": "address", "daily": 1_000_000},
        ],
        "upstreams": {
            "changing": {"command": [venv("python"), program]},
            "apart": {"command": [venv("python"), program], "isolation": "session"},
        },
    });
    // JSON is YAML.
    fs::write(&file, configuration.to_string()).expect("written");
    let mut usher = Command::new(env!("CARGO_BIN_EXE_usher"));
    usher.arg("serve").arg("-c").arg(&file);
    usher.env("XDG_STATE_HOME", home);
    started(usher, clients).await
}

async fn prometheus(home: &Path, operators: u16, queries: u16) -> Child {
    let file = home.join("prometheus.yaml");
    let rules = deploy().join("prometheus/alerts.yaml");
    let configuration = json!({
        "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms"},
        "rule_files": [rules],
        "scrape_configs": [{
            "job_name": "usher",
            "static_configs": [{"targets": [format!("127.0.0.1:{operators}")]}],
        }],
    });
    fs::write(&file, configuration.to_string()).expect("written");
    let mut prometheus = Command::new(tool("prometheus"));
    prometheus
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            home.join("series").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{queries}"));
    started(prometheus, queries).await
}

async fn started(mut command: Command, port: u16) -> Child {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = quiet.stderr(Stdio::null()).kill_on_drop(true).spawn();
    wait_for(port).await;
    child.expect("it starts")
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// A program of Prometheus': as `tests/run` unpacks it, or of this machine.
fn tool(name: &str) -> PathBuf {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/prometheus/usr/bin");
    let unpacked = unpacked.join(name);
    if unpacked.exists() {
        return unpacked;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&paths).map(|path| path.join(name));
    let found = installed.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: run tests/run first"))
}
