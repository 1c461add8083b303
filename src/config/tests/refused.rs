//! Configurations that do not load: each problem, its line, its column, its hint; and all of them at once.

use super::*;

fn found(line: usize, column: usize, path: &str, message: &str) -> (usize, usize, String, String) {
    (line, column, path.into(), message.into())
}

#[test]
fn what_is_out_of_range_is_told_in_words_and_not_by_what_holds_it() {
    let upstream = "upstreams: { a: { command: [x], timeout: { start: 9999999999999h } } }\n";
    for (yaml, message) in [
        (
            "bounds: { meters: -1 }\n",
            "expected a whole number that is not negative",
        ),
        (
            "limits: [{ per: principal, concurrency: -1 }]\n",
            "expected a whole number that is not negative",
        ),
        (
            "bounds: { meters: [1] }\n",
            "expected a whole number, found a list",
        ),
        (upstream, "a time that is out of range"),
        (
            "bounds: { http: { body: 99999999999999999999GiB } }\n",
            "a size that is out of range",
        ),
        (
            "telemetry: { otlp: \"ftp://x/\" }\n",
            "neither https nor http",
        ),
    ] {
        assert_eq!(only(yaml).message, message, "{yaml}");
    }
}

#[test]
fn everything_that_is_wrong_with_a_rule_about_content_is_told_at_once() {
    let yaml = "\
sanitize:
  rules:
    - { name: Bad Name, pattern: \"(\", action: quarantine }
    - { pattern: \"(?=x)\" }
    - { name: twice, pattern: \"x*\" }
    - { name: twice, action: off }
";
    let told = lines(yaml);
    let told: Vec<_> = told
        .iter()
        .map(|(line, _, path, _)| (*line, path.as_str()))
        .collect();
    let at = |line, rest: &str| (line, format!("sanitize.rules{rest}"));
    let wanted = [
        at(3, "[0].name"),
        at(3, "[0].pattern"),
        at(3, "[0].action"),
        at(4, "[1]"),
        at(4, "[1].pattern"),
        at(5, "[2].pattern"),
        at(6, "[3]"),
        at(6, "[3].name"),
        at(6, "[3].action"),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(line, path)| (*line, path.as_str()))
        .collect();
    assert_eq!(told, wanted);
}

#[test]
fn what_stands_after_an_element_that_could_not_be_read_is_told_with_the_number_it_was_written_with()
{
    let yaml = "\
limits:
  - 7
  - { per: principal, rate: 0/s }
  - 8
  - { per: tool }
  - { per: principal, rate: 1/s, burst: 0 }
";
    let told = lines(yaml);
    let told: Vec<_> = told
        .iter()
        .map(|(line, _, path, _)| (*line, path.as_str()))
        .collect();
    let wanted = [
        (2, "limits[0]"),
        (3, "limits[1].rate"),
        (4, "limits[2]"),
        (5, "limits[3]"),
        (6, "limits[4].burst"),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn every_problem_is_reported_at_once_with_its_line_and_column() {
    let yaml = "\
listen:
  adress: 127.0.0.1:1
  hosts: mcp.example.com
upstreams:
  Git_Hub:
    url: ftp://x
  a:
    comand: [run]
    timeout: { call: 60, list: 1h, silance: 3s }
    protocol: modem
  b:
    url: https://b/mcp
    command: [run]
    concurrency: many
page_size: { items: 0 }
toolsets:
  u: { tools: [x] }
  t: { upstreams: [bb] }
audit: { level: full }
";
    assert_eq!(
        lines(yaml),
        [
            found(2, 3, "listen.adress", "unknown key `adress`"),
            found(3, 10, "listen.hosts", "expected a list, found text"),
            found(
                5,
                3,
                "upstreams.Git_Hub",
                "`Git_Hub` cannot be the key of an upstream"
            ),
            found(
                6,
                10,
                "upstreams.Git_Hub.url",
                "`ftp` is no way to reach a server"
            ),
            found(7, 3, "upstreams.a", "neither `url` nor `command`"),
            found(8, 5, "upstreams.a.comand", "unknown key `comand`"),
            found(9, 22, "upstreams.a.timeout.call", "not a time"),
            found(9, 32, "upstreams.a.timeout.list", "1h is out of range"),
            found(
                9,
                36,
                "upstreams.a.timeout.silance",
                "unknown key `silance`"
            ),
            found(10, 15, "upstreams.a.protocol", "`modem` is no protocol"),
            found(13, 5, "upstreams.b.command", "both `url` and `command`"),
            found(14, 18, "upstreams.b.concurrency", "expected a whole number"),
            found(15, 21, "page_size.items", "0 is out of range"),
            found(17, 3, "toolsets.u", "`u` cannot be the name of a toolset"),
            found(
                18,
                20,
                "toolsets.t.upstreams[0]",
                "there is no upstream `bb`"
            ),
            found(19, 10, "audit.level", "unknown key `level`"),
        ]
    );
}

#[test]
fn hints_say_what_was_meant_or_what_to_do() {
    let hint = |yaml: &str| only(yaml).hint.unwrap_or_default();
    assert_eq!(hint("lisen: {}\n"), "did you mean `listen`?");
    assert_eq!(
        hint("audit: { retentoin: 30d }\n"),
        "did you mean `retention`?"
    );
    assert_eq!(
        hint("listen: { address: \"localhost:80\" }\n"),
        "write `127.0.0.1:80`"
    );
    assert!(
        hint("page_size: { bytes: 1 }\n").contains("between 4KiB and 16MiB; the default is 1MiB")
    );
    assert!(hint("upstreams: { a: { command: npx } }\n").contains("[…]"));
    assert!(
        hint("upstreams: { a: { url: https://a/, timeout: { start: 1m } } }\n")
            .contains("`connect`")
    );
}

#[test]
fn values_outside_the_ranges_of_their_bounds_stop_start_up() {
    for (yaml, path) in [
        ("bounds: { http: { body: 0 } }", "bounds.http.body"),
        (
            "bounds: { http: { h2_streams: 0 } }",
            "bounds.http.h2_streams",
        ),
        (
            "bounds: { http: { idle_time: 2h } }",
            "bounds.http.idle_time",
        ),
        (
            "bounds: { catalog: { schema_depth: 65 } }",
            "bounds.catalog.schema_depth",
        ),
        (
            "bounds: { sessions: { absolute: 30s, idle: 20s } }",
            "bounds.sessions.absolute",
        ),
        ("names: { max: 129 }", "names.max"),
        ("page_size: { items: 10001 }", "page_size.items"),
        (
            "upstreams: { a: { command: [x], timeout: { call: 301s } } }",
            "upstreams.a.timeout.call",
        ),
        (
            "upstreams: { a: { command: [x], timeout: { start: 11m } } }",
            "upstreams.a.timeout.start",
        ),
        (
            "upstreams: { a: { command: [x], concurrency: 1025 } }",
            "upstreams.a.concurrency",
        ),
        (
            "upstreams: { a: { command: [x], concurrency: 0 } }",
            "upstreams.a.concurrency",
        ),
    ] {
        let problem = only(&format!("{yaml}\n"));
        assert_eq!(problem.path, path);
        assert!(
            problem.message.contains("out of range"),
            "{}",
            problem.message
        );
    }
    drop(
        Files::with(
            "upstreams: { a: { command: [x], timeout: { call: 300s }, concurrency: 1024 } }\n",
        )
        .plan(),
    );
}

#[test]
fn an_address_that_others_reach_needs_tls_hosts_and_authentication() {
    let messages = |yaml: &str| -> Vec<String> {
        lines(yaml)
            .into_iter()
            .map(|(.., message)| message)
            .collect()
    };
    let all = messages("listen: { address: 0.0.0.0:80 }\n");
    assert_eq!(all.len(), 3, "{all:?}");
    for word in ["listen.tls", "listen.hosts", "authentication"] {
        assert!(all.iter().any(|message| message.contains(word)), "{word}");
    }
    let some = messages(
        "listen: { address: \"[::]:80\", hosts: [mcp.example.com], tls: terminated_upstream }\n",
    );
    assert_eq!(some.len(), 1, "{some:?}");
    assert!(some[0].contains("authentication"));
}

#[test]
fn addresses_of_upstreams_are_https_unless_loopback_or_plain_http_is_said() {
    let upstream = |rest: &str| format!("upstreams: {{ a: {{ url: {rest} }} }}\n");
    assert!(only(&upstream("\"http://example.com/mcp\"")).hint.is_some());
    assert!(
        only(&upstream("\"https://user:pw@example.com/\""))
            .message
            .contains("user")
    );
    assert!(only(&upstream("/mcp")).message.contains("not an address"));
    for fine in [
        "\"http://example.com/mcp\", plain_http: true",
        "\"http://localhost:1/mcp\"",
        "\"http://localhost/mcp\"",
        "\"http://[::1]:1/mcp\"",
        "\"https://example.com/mcp\"",
    ] {
        drop(Files::with(&upstream(fine)).plan());
    }
}

/// It would be read as that of the scheme, and the credential go to whoever listens there.
#[test]
fn a_port_that_is_none_and_a_fragment_are_refused_in_the_address_of_an_upstream() {
    for url in [
        "http://127.0.0.1:88080/mcp",
        "https://example.com:88080/mcp",
        "https://example.com:mcp/",
        "http://[::1]:99999/",
        "https://example.com:/mcp",
        "https://mcp:mcp/",
    ] {
        let told = only(&format!("upstreams: {{ a: {{ url: \"{url}\" }} }}\n"));
        assert_eq!(told.message, "an address with a port that is none", "{url}");
    }
    let told = only("upstreams: { a: { url: \"https://example.com/mcp#tools\" } }\n");
    assert_eq!(told.message, "an address with a `#` in it");
}

/// It is added, and twice it is no credential.
#[test]
fn a_bearer_token_that_brings_its_scheme_along_is_refused() {
    for written in [
        "\"Bearer ${env:TOKEN}\"",
        "\"bearer ${env:TOKEN}\"",
        "\"BEARER  x\"",
    ] {
        let yaml = format!(
            "upstreams: {{ a: {{ url: \"https://a/mcp\", auth: {{ bearer: {written} }} }} }}\n"
        );
        let told = lines(&yaml);
        let told = told.iter().find(|(_, _, path, message)| {
            path == "upstreams.a.auth.bearer" && message == "a token that begins with `Bearer`"
        });
        assert!(told.is_some(), "{written}");
    }
    let fine = "upstreams: { a: { url: \"https://a/mcp\", auth: { bearer: \"${env:TOKEN}\" } } }\n";
    drop(Files::with(fine).plan());
}

#[test]
fn what_belongs_to_the_other_kind_of_upstream_is_refused() {
    let paths: Vec<String> = lines(
        "upstreams:\n  a: { command: [x], plain_http: true, headers: { a: \"${env:TOKEN}\" } }\n  \
         b: { url: \"https://b/\", env: { A: b }, cwd: / }\n",
    )
    .into_iter()
    .map(|(_, _, path, _)| path)
    .collect();
    assert_eq!(
        paths,
        [
            "upstreams.a.plain_http",
            "upstreams.a.headers",
            "upstreams.b.env",
            "upstreams.b.cwd"
        ]
    );
}

#[test]
fn two_upstreams_cannot_have_one_prefix() {
    let problem = only("upstreams:\n  a: { command: [x], prefix: b }\n  b: { command: [x] }\n");
    assert_eq!(
        (problem.line, problem.path.as_str()),
        (3, "upstreams.b.prefix")
    );
    assert_eq!(problem.message, "`b` and `a` both have the prefix `b`");
    let none = only(
        "upstreams:\n  a: { command: [x], prefix: \"\" }\n  b: { command: [x], prefix: \"\" }\n",
    );
    assert_eq!(none.message, "`b` and `a` both have no prefix");
    assert_eq!(
        only("upstreams: { a: { command: [x], prefix: a_b } }\n").message,
        "not a prefix"
    );
}

#[test]
fn duplicate_keys_are_all_reported() {
    let all = lines("names: { max: 20, max: 30 }\nendpoint: /a\nendpoint: /b\n");
    assert_eq!(
        all,
        [
            found(1, 19, "names.max", "`max` is given twice"),
            found(3, 1, "endpoint", "`endpoint` is given twice"),
        ]
    );
}

#[test]
fn text_that_is_no_yaml_is_refused_with_its_line() {
    let problem = only("listen:\n  address: [1, 2\nnames: {}\n");
    assert!(
        problem.message.starts_with("not YAML"),
        "{}",
        problem.message
    );
    assert!(problem.line >= 2);
    assert!(
        only("a: 1\n---\nb: 2\n")
            .message
            .contains("second document")
    );
    assert!(only("- a\n").message.contains("expected a mapping"));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    assert!(only(bomb).message.contains("too large"));
}

#[test]
fn what_is_no_yaml_has_a_hint_that_fits() {
    for (yaml, word) in [
        ("listen:\n\taddress: x\n", "spaces"),
        ("page_size: { items: 5\n", "`}`"),
        ("toolsets: [a, b\nlisten: x\n", "`]`"),
        ("listen: \"x\n", "quote"),
        ("listen: 'it's'\n", "quote"),
        ("listen: \"C:\\usher\"\n", "backslash"),
        ("listen: \"\\uD800\"\n", "backslash"),
        ("listen:\n  address: x\n address: y\n", "one column"),
        ("a: 1\n  b: 2\n", "one column"),
        ("a: b: c\n", "needs quotes"),
        ("a: @b\n", "needs quotes"),
        ("tools: *\n", "needs quotes"),
        ("tools: *_x\n", "begins with `*`"),
    ] {
        let problem = only(yaml);
        let hint = problem.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(word), "{yaml}: {problem:?}");
    }
}

#[test]
fn problems_of_included_files_name_their_own_file_and_line() {
    let files = Files::with(
        "include: [b.yaml, c.yaml, b.yaml]\nupstreams: { a: { command: [x] } }\nnames: { max: 20 }\n",
    );
    files.add("b.yaml", "\nupstreams:\n  a: { command: [y] }\n  bad: {}\n");
    files.add("c.yaml", "names: { max: 21 }\nzebra: 1\n");
    let all: Vec<(String, usize, String)> = files
        .rejected()
        .problems
        .into_iter()
        .map(|problem| {
            (
                file_name(&problem.file).to_owned(),
                problem.line,
                problem.path,
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            ("usher.yaml".into(), 1, "include".into()),
            ("b.yaml".into(), 3, "upstreams.a".into()),
            ("b.yaml".into(), 4, "upstreams.bad".into()),
            ("c.yaml".into(), 1, "names.max".into()),
            ("c.yaml".into(), 2, "zebra".into()),
        ]
    );
}

#[test]
fn an_included_file_that_is_not_there_is_a_problem_of_the_one_that_includes_it() {
    let files = Files::with("names: {}\ninclude: [b.yaml,\n  none.yaml]\n");
    files.add("b.yaml", "include: [gone/x.yaml]\n");
    let problems = files.rejected().problems;
    let places: Vec<_> = problems
        .iter()
        .map(|problem| (file_name(&problem.file), problem.line, problem.column))
        .collect();
    assert_eq!(places, [("usher.yaml", 3, 3), ("b.yaml", 1, 11)]);
    for (problem, name) in problems.iter().zip(["none.yaml", "gone/x.yaml"]) {
        assert_eq!(problem.path, "include");
        assert!(problem.message.contains(name), "{}", problem.message);
        let hint = problem.hint.as_deref().unwrap_or_default();
        assert!(
            hint.contains("relative to this one") && !hint.contains("init"),
            "{hint}"
        );
    }
}

#[test]
fn a_file_that_others_may_write_to_is_refused() {
    for mode in [0o620, 0o602, 0o666] {
        let files = Files::new();
        files.add_with_mode("usher.yaml", "names: {}\n", mode);
        let problem = files.rejected().problems.remove(0);
        assert!(problem.message.contains("others may write"), "{mode:o}");
    }
    let files = Files::with("include: [b.yaml]\n");
    files.add_with_mode("b.yaml", "names: {}\n", 0o664);
    assert_eq!(file_name(&files.rejected().problems[0].file), "b.yaml");
}

// SECURITY OPS-1
#[test]
fn a_file_that_everybody_may_replace_is_refused() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let files = Files::with("names: {}\n");
    let directory = files.path("");
    for (mode, fine) in [(0o777, false), (0o1777, true), (0o775, true), (0o700, true)] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        if fine {
            drop(files.plan());
            continue;
        }
        let problem = files.rejected().problems.remove(0);
        assert!(
            problem.message.contains("everybody may put another file"),
            "{problem:?}"
        );
    }
}

#[test]
fn a_missing_file_is_one_problem_with_a_way_out() {
    let problem = Files::new().rejected().problems.remove(0);
    assert!(problem.message.contains("cannot be read"));
    assert!(problem.hint.is_some_and(|hint| hint.contains("usher init")));
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_not_said_to_be_missing() {
    let files = Files::with("names: {}\n");
    let problem = load(&files.path("usher.yaml/inside"), &vars)
        .expect_err("a problem")
        .problems
        .remove(0);
    assert!(problem.message.contains("cannot be read"));
    assert_eq!(problem.hint, None);
}

#[test]
fn one_mistake_is_one_problem() {
    assert_eq!(
        only("upstreams: { a: { url: [x] } }\n").path,
        "upstreams.a.url"
    );
    assert_eq!(
        only("toolsets: { t: { tools: x } }\n").path,
        "toolsets.t.tools"
    );
}

#[test]
fn the_drawing_marks_the_place_and_gives_the_hint() {
    let files = Files::with("listen:\n  adress: x\n");
    let drawn = files.rejected().drawn(Colour::Plain);
    assert!(drawn.contains("usher.yaml:2:3"), "{drawn}");
    assert!(drawn.contains("^^^^^^"), "{drawn}");
    assert!(drawn.contains("did you mean `address`?"), "{drawn}");
    assert!(!drawn.contains('\u{1b}'));
    let json = files.rejected().json();
    let first = json.root().elements().next().expect("one");
    assert_eq!(first.member("line").and_then(|node| node.as_i64()), Some(2));
    assert!(first.member("place").is_none());
}

#[test]
fn what_is_said_for_policies_is_checked_where_it_stands() {
    let rejected = Files::with(
        r#"policy: { dir: "", enforce_case: true }
upstreams:
  a:
    url: https://example.com/mcp
    tags: { "x": [""] }
    tools: { annotations: { "": { destructive: true }, y: { deadly: true } } }
"#,
    )
    .rejected();
    let told: Vec<_> = rejected
        .problems
        .iter()
        .map(|problem| (problem.line, problem.path.as_str()))
        .collect();
    for wanted in [(1, "policy.dir"), (5, "upstreams.a.tags.x")] {
        assert!(told.contains(&wanted), "{wanted:?} {told:?}");
    }
    for word in ["enforce_case", "deadly"] {
        let named = rejected
            .problems
            .iter()
            .any(|problem| problem.message.contains(word) || problem.path.contains(word));
        assert!(named, "{word} {told:?}");
    }
}

#[test]
fn without_files_what_needs_them_is_refused_and_stdout_is_needed() {
    let paths = |audit: &str| {
        let all = lines(&format!("audit: {{ {audit} }}\n")).into_iter();
        let paths = all.map(|(_, _, path, _)| path);
        paths
            .filter(|path| path.starts_with("audit"))
            .collect::<Vec<_>>()
    };
    assert_eq!(paths("files: false"), ["audit.files"]);
    let stdout = "sinks: { stdout: true }";
    assert_eq!(
        paths(&format!("files: false, durability: kernel, {stdout}")),
        ["audit.durability"]
    );
    assert_eq!(
        paths(
            "files: false, dir: x, durability: strict, retention: 30d, sinks: { stdout: true, otlp: \"http://127.0.0.1:1\" }"
        ),
        [
            "audit.dir",
            "audit.durability",
            "audit.retention",
            "audit.sinks.otlp"
        ]
    );
}
