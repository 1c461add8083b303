//! Configurations that load, and what plan they are.

use std::time::Duration;

use super::*;

/// As everything else that a file names.
#[test]
fn a_working_directory_counts_from_the_file_that_names_it() {
    let files = Files::with(
        "include: [more/team.yaml]\nupstreams: { a: { command: [x], cwd: sub }, b: { command: [x], cwd: / } }\n",
    );
    for directory in ["more", "sub", "more/own"] {
        fs::create_dir(files.path(directory)).unwrap();
    }
    files.add(
        "more/team.yaml",
        "upstreams: { c: { command: [x], cwd: own } }\n",
    );
    let plan = files.plan();
    let cwd = plan.upstreams.iter().map(|one| match &one.endpoint {
        Endpoint::Stdio(stdio) => stdio.cwd.clone().unwrap(),
        Endpoint::Http(_) => panic!("a program"),
    });
    let cwd: Vec<PathBuf> = cwd.collect();
    assert_eq!(cwd, [files.path("sub"), "/".into(), files.path("more/own")]);
}
use crate::{
    audit::recorder::{Watermark, Watermarks},
    catalog::rules::Charset,
    pins::Mode,
    protocol::Revision,
    upstream::spec::{Endpoint, HttpTransport, Isolation, Pin, UpstreamSpec, UrlElicitation},
};

/// The worked example of the product description, without the blocks that are not built yet.
const EXAMPLE: &str = r#"
listen:
  address: 127.0.0.1:8808            # non-loopback needs tls or `tls: terminated_upstream`, hosts, and an auth method
  hosts: [mcp.example.com]           # Host/Origin allow list beyond loopback names
  tls: { cert: ${file:cert.pem}, key: ${file:key.pem}, client_ca: ${file:cert.pem} }
endpoint: /mcp                       # every upstream, and /mcp/u/NAME for one upstream with original names

upstreams:
  github:
    url: https://api.githubcopilot.com/mcp/
    auth: { bearer: "${env:TOKEN}" }
  files:
    command: [npx, -y, "@modelcontextprotocol/server-filesystem", /data]
    env: { NODE_OPTIONS: "--max-old-space-size=256" }
  warehouse:
    url: https://warehouse.internal/mcp
    auth: { token_exchange: { token_url: https://login.internal/token, client_id: usher, client_secret: "${env:TOKEN}", resource: https://warehouse.internal/ } }
    isolation: principal             # shared | principal | session (section 6)
    protocol: auto                   # auto | modern | legacy | a revision
    prefix: wh                       # default: the upstream's key; "" = none
    tools: { allow: ["query_*"], rename: { query_sql: sql }, describe: { sql: "…" } }
    timeout: { call: 60s, list: 15s, connect: 5s }
    concurrency: 64
    definitions: { pin: quarantine } # section 11

toolsets:
  oncall: { tools: ["github_*issue*", "wh_sql"], prompts: ["*"], upstreams: [files] }   # served at /mcp/oncall

limits:
  - { per: principal, rate: 50/s, burst: 200 }
  - { per: [principal, tool], match: "github_*", rate: 30/min }
  - { per: upstream, name: warehouse, concurrency: 16, queue: 32 }
  - { per: tenant, daily: 100000 }

state:    { store: memory }          # or valkey://… (section 14)
"#;

#[test]
fn the_worked_example_loads_and_means_what_it_says() {
    let files = Files::with(EXAMPLE);
    files.add("cert.pem", CERT);
    files.add("key.pem", KEY);
    let plan = files.plan();
    assert_eq!(plan.listen.address.to_string(), "127.0.0.1:8808");
    assert_eq!(plan.listen.hosts, ["mcp.example.com"]);
    assert!(plan.listen.tls.is_some_and(|tls| tls.client_ca.is_some()));
    let ids: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["github", "files", "warehouse"]);
    let prefixes: Vec<&str> = plan
        .catalog
        .upstreams
        .iter()
        .map(|one| &*one.prefix)
        .collect();
    assert_eq!(prefixes, ["github", "files", "wh"]);
    assert_eq!(plan.upstreams[0].isolation, Isolation::Session);
    assert_eq!(plan.upstreams[1].isolation, Isolation::Shared);
    assert_eq!(plan.upstreams[2].isolation, Isolation::Principal);
    assert_eq!(plan.catalog.upstreams[2].tools.allow, ["query_*"]);
    assert_eq!(plan.catalog.upstreams[2].rename["query_sql"], "sql");
    assert_eq!(&*plan.catalog.toolsets[0].name, "oncall");
    assert_eq!(plan.catalog.toolsets[0].upstreams[0].as_str(), "files");
    let Endpoint::Stdio(files) = &plan.upstreams[1].endpoint else {
        panic!("a program");
    };
    assert_eq!(files.command[2], "@modelcontextprotocol/server-filesystem");
    let pinned: Vec<_> = plan.pins.modes.values().copied().collect();
    assert_eq!(pinned, [Mode::Watch, Mode::Watch, Mode::Quarantine]);
    let told = |one: &UpstreamSpec| plan.pins.modes[&one.id] == one.definitions;
    assert!(plan.upstreams.iter().all(told));
    assert!(plan.pins.directory.is_none() && plan.pins.forgets_approvals());
}

#[test]
fn an_empty_file_is_every_default() {
    let plan = Files::with("# nothing\n").plan();
    assert_eq!(plan.listen.address.to_string(), raw::LISTEN_ADDRESS);
    assert_eq!(plan.endpoint, "/mcp");
    assert_eq!(plan.catalog.names.max, 64);
    assert_eq!(plan.catalog.pages.items, 500);
    assert_eq!(plan.listen.bounds.body_bytes, 16 << 20);
    assert!(plan.upstreams.is_empty() && plan.state_keys.is_empty());
}

#[test]
fn the_starter_loads_as_it_is() {
    for operator in [None, Some("ana")] {
        let plan = Files::with(&starter(operator)).plan();
        assert!(plan.upstreams.is_empty() && plan.auth.is_none());
        assert_eq!(plan.policy.is_some(), operator.is_some());
    }
}

#[test]
fn the_starter_is_not_written_over_a_file_that_exists() {
    let files = Files::new();
    let path = files.path("usher.yaml");
    write_new(&path, &starter(None)).expect("written");
    assert!(write_new(&path, "other").is_err());
    assert_eq!(fs::read_to_string(&path).expect("read"), starter(None));
}

#[test]
fn every_key_that_is_given_reaches_the_plan() {
    let plan = Files::with(
        "endpoint: /a/b\n\
         upstreams:\n\
         \x20 one:\n\
         \x20   url: http://10.0.0.7:3000/sse\n\
         \x20   transport: sse\n\
         \x20   plain_http: true\n\
         \x20   protocol: 2024-11-05\n\
         \x20   prefix: \"\"\n\
         \x20   headers: { X-Key: \"k ${env:TOKEN}\" }\n\
         \x20   timeout: { call: 2m, list: 500ms, connect: 1s, silence: 10s }\n\
         \x20   concurrency: 1\n\
         \x20   poll: 1h\n\
         \x20   stale_for: 0s\n\
         \x20   url_elicitation: shared\n\
         names: { max: 128, charset: spec }\n\
         page_size: { items: 7, bytes: 64KiB }\n\
         bounds:\n\
         \x20 http: { body: 1MiB, h2_streams: 10, drain: 5s }\n\
         \x20 catalog: { items: 5, pattern: 100 }\n\
         \x20 sessions: { total: 9, idle: 1m, absolute: 2m }\n",
    )
    .plan();
    let one = &plan.upstreams[0];
    let Endpoint::Http(http) = &one.endpoint else {
        panic!("an address");
    };
    assert_eq!(http.transport, HttpTransport::Sse);
    assert_eq!(one.protocol, Pin::Revision(Revision::V2024_11_05));
    assert_eq!(http.headers[0].0, "x-key");
    assert_eq!(
        secrecy::ExposeSecret::expose_secret(&http.headers[0].1),
        "k t0ken-marker-9f"
    );
    assert_eq!(one.timeouts.call, Duration::from_secs(120));
    assert_eq!(one.timeouts.list, Duration::from_millis(500));
    assert_eq!((one.concurrency, one.poll), (1, Duration::from_secs(3_600)));
    assert_eq!(one.stale_for, Duration::ZERO);
    assert_eq!(one.url_elicitation, UrlElicitation::Shared);
    assert_eq!(&*plan.catalog.upstreams[0].prefix, "");
    assert_eq!(
        (plan.catalog.names.max, plan.catalog.names.charset),
        (128, Charset::Spec)
    );
    assert_eq!(
        (plan.catalog.pages.items, plan.catalog.pages.bytes),
        (7, 64 << 10)
    );
    assert_eq!(
        (plan.listen.bounds.body_bytes, plan.listen.bounds.h2_streams),
        (1 << 20, 10)
    );
    assert_eq!(
        (plan.catalog.bounds.items, plan.catalog.bounds.pattern_chars),
        (5, 100)
    );
    assert_eq!(plan.sessions.total, 9);
    assert_eq!(plan.endpoint, "/a/b");
}

#[test]
fn values_that_look_like_other_types_stay_text_where_text_is_wanted() {
    let plan = Files::with(
        "upstreams:\n  a:\n    command: [run, 8080, no, 1.10]\n    env: { PORT: 8080, ON: yes, V: 1.10 }\n",
    )
    .plan();
    let Endpoint::Stdio(stdio) = &plan.upstreams[0].endpoint else {
        panic!("a program");
    };
    assert_eq!(stdio.command, ["run", "8080", "no", "1.10"]);
    let value = |name: &str| secrecy::ExposeSecret::expose_secret(&stdio.env[name]).to_owned();
    assert_eq!(
        (value("PORT"), value("ON"), value("V")),
        ("8080".into(), "yes".into(), "1.10".into())
    );
}

#[test]
fn references_are_resolved_in_any_scalar_and_need_no_quotes() {
    let files = Files::with(
        "listen: { address: 127.0.0.1:${env:PORT} }\n\
         page_size: { items: ${file:items} }\n\
         upstreams: { a: { command: [run, \"${file:items}-${env:PORT}\"] } }\n",
    );
    files.add("items", "42\n");
    let plan = files.plan();
    assert_eq!(plan.listen.address.port(), 9000);
    assert_eq!(plan.catalog.pages.items, 42);
    let Endpoint::Stdio(stdio) = &plan.upstreams[0].endpoint else {
        panic!("a program");
    };
    assert_eq!(stdio.command[1], "42-9000");
}

#[test]
fn included_files_add_their_upstreams_after_those_of_the_first() {
    let files = Files::with("include: [team/b.yaml]\nupstreams: { a: { command: [run] } }\n");
    fs::create_dir(files.path("team")).expect("a directory");
    files.add(
        "team/b.yaml",
        "include: [c.yaml]\nupstreams: { b: { command: [run] } }\n",
    );
    files.add(
        "team/c.yaml",
        "upstreams: { c: { url: \"https://c/mcp\" } }\nnames: { max: 32 }\n",
    );
    let plan = files.plan();
    let ids: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(plan.catalog.names.max, 32);
}

#[test]
fn anchors_may_repeat_a_block() {
    let plan = Files::with(
        "upstreams:\n  a: { command: [run], timeout: &t { call: 3s } }\n  b: { command: [run], timeout: *t }\n",
    )
    .plan();
    assert_eq!(plan.upstreams[1].timeouts.call, Duration::from_secs(3));
}

#[test]
fn the_schema_describes_the_keys_that_are_read() {
    let schema = schema();
    let text = schema.as_str();
    for key in [
        "\"upstreams\"",
        "\"terminated_upstream\"",
        "\"plain_http\"",
        "\"stale_for\"",
    ] {
        assert!(text.contains(key), "{key}");
    }
    let root = schema.root();
    let closed = root
        .member("additionalProperties")
        .and_then(|node| node.as_bool());
    assert_eq!(closed, Some(false));
}

#[test]
fn a_program_has_a_minute_to_start_unless_said_otherwise() {
    let start = |yaml: &str| Files::with(yaml).plan().upstreams[0].timeouts.start;
    assert_eq!(
        start("upstreams: { a: { command: [x] } }\n"),
        Duration::from_secs(60)
    );
    assert_eq!(
        start("upstreams: { a: { command: [x], timeout: { start: 2m } } }\n"),
        Duration::from_secs(120)
    );
}

#[test]
fn policies_lie_beside_the_file_and_labels_are_kept_for_them() {
    let files = Files::with(
        r#"
policy: { enforce_cases: true }
upstreams:
  github:
    url: https://api.githubcopilot.com/mcp/
    tags: { "*secret*": [internal, careful] }
    tools: { annotations: { "delete_*": { destructive: true, idempotent: false } } }
"#,
    );
    let plan = files.plan();
    let policy = plan.policy.unwrap();
    assert_eq!(policy.dir, files.path("policies"));
    assert!(policy.enforce_cases);
    let labels = &plan.catalog.upstreams[0].labels;
    assert_eq!(labels.tags[0].0, "*secret*");
    assert_eq!(labels.tags[0].1, ["internal".into(), "careful".into()]);
    assert_eq!(labels.pins[0].1.destructive, Some(true));
    assert_eq!(labels.pins[0].1.idempotent, Some(false));
    assert_eq!(labels.pins[0].1.read_only, None);
    let files = Files::with("policy: { dir: /etc/usher/policies }\nupstreams: {}\n");
    let policy = files.plan().policy.unwrap();
    assert_eq!(policy.dir, Path::new("/etc/usher/policies"));
    assert!(!policy.enforce_cases);
    assert_eq!(Files::with("upstreams: {}\n").plan().policy, None);
}

#[test]
fn what_is_said_of_tools_by_globs_keeps_the_order_of_the_file_since_the_last_counts() {
    let files = Files::with(
        r#"
upstreams:
  shop:
    url: https://shop.example.com/mcp
    tools: { annotations: { "get_*": { read_only: true }, "*": { read_only: false }, "a": { idempotent: true } } }
    validate: { tools: { "z": { results: flag }, "*": { results: off }, "b": { arguments: off } } }
"#,
    );
    let naming = &files.plan().catalog.upstreams[0];
    let pins = naming.labels.pins.iter().map(|(glob, _)| glob.as_str());
    assert_eq!(Vec::from_iter(pins), ["get_*", "*", "a"]);
    let held = naming
        .validation
        .tools
        .iter()
        .map(|(glob, _)| glob.as_str());
    assert_eq!(Vec::from_iter(held), ["z", "*", "b"]);
}

/// SECURITY 6: a share that somebody sets counts whatever is left, a default only where that is little.
#[test]
fn a_share_of_the_disk_that_is_set_counts_on_a_disk_of_any_size() {
    let marks = |disk: &str| {
        let text = format!(
            "audit: {{ dir: a, {disk} }}\nupstreams: {{ x: {{ url: \"https://x.example/mcp\" }} }}\n"
        );
        Files::with(&text).plan().audit.unwrap().watermarks
    };
    let default = Watermarks::default();
    assert_eq!(marks(""), default);
    let set = marks("disk: { warn: 85, refuse: 95 }");
    assert_eq!(
        (set.warn, set.refuse),
        (Watermark::share(85), Watermark::share(95))
    );
    assert_ne!(set, default);
    let one = marks("disk: { warn: 60 }");
    assert_eq!(
        (one.warn, one.refuse),
        (Watermark::share(60), default.refuse)
    );
}
