//! Files as other programs write them, served and imported.

use secrecy::ExposeSecret;

use super::*;
use crate::{
    config::{
        load,
        tests::{Files, vars},
    },
    upstream::spec::{Endpoint, HttpTransport},
};

const CLAUDE: &str = r#"{
	"mcpServers": {
		"filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"] },
		"GitHub": {
			"command": "docker",
			"args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
			"env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_claudeMARKER0123456789", "LOG": "debug" }
		},
		"remote": { "command": "npx", "args": ["mcp-remote", "https://x.example/sse", "--header", "Authorization: Bearer remoteMARKER"] },
		"old": { "command": "x", "disabled": true }
	}
}"#;

const CURSOR: &str = r#"{
  "mcpServers": {
    "linear": { "url": "https://mcp.linear.app/sse", "type": "sse" },
    "api server": {
      "url": "https://api.example.com/mcp?apiKey=queryMARKER&v=1",
      "headers": { "Authorization": "Bearer cursorMARKER", "X-Team": "${env:TEAM}" }
    },
    "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"] }
  }
}"#;

const VSCODE: &str = r#"{
  // comments and trailing commas are common here
  "inputs": [
    { "type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true },
  ],
  "servers": {
    "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/" },
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask", "--root=${workspaceFolder}/src"],
      "env": { "PERPLEXITY_API_KEY": "${input:perplexity-key}", "HOME_OF": "${env:TOKEN}" }, /* a block */
      "envFile": "${workspaceFolder}/.env",
    },
  },
}"#;

#[test]
fn what_the_environment_has_already_need_not_be_set() {
    let files = Files::new();
    files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x","args":["${TOKEN}","${NOWHERE}"],"env":{"PORT_TOKEN":"letmein-0123","PORT":"${PORT}"}}}}"#,
    );
    let import = imported(&files, &["mcp.json"]);
    let present = import
        .exports
        .iter()
        .map(|one| (one.name.as_str(), one.present));
    let mut present: Vec<_> = present.collect();
    present.sort_unstable();
    assert_eq!(
        present,
        [
            ("NOWHERE", false),
            ("PORT", true),
            ("PORT_TOKEN", false),
            ("TOKEN", true)
        ]
    );
}

#[test]
fn headers_that_are_no_secret_are_imported_as_they_are() {
    let files = Files::new();
    files.add(
        "mcp.json",
        r#"{"mcpServers":{"gh":{"url":"https://gh.example/mcp","headers":{"X-MCP-Toolsets":"repos","Accept-Language":"de","X-Api-Key":"letmein"}}}}"#,
    );
    let import = imported(&files, &["mcp.json"]);
    for told in ["X-MCP-Toolsets: repos", "Accept-Language: de"] {
        assert!(import.yaml.contains(told), "{}", import.yaml);
    }
    assert!(!import.yaml.contains("letmein"), "{}", import.yaml);
    let names: Vec<&str> = import.exports.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["GH_X_API_KEY"]);
    // By its name alone, to whoever knows whether it is one after all.
    let told = |name: &str| format!("`gh.headers` stands in the file as it is: {name}");
    assert_eq!(
        import.notes,
        [told("X-MCP-Toolsets"), told("Accept-Language")]
    );
}

#[test]
fn headers_that_may_hold_a_secret_are_imported_as_references() {
    for (name, value) in [
        ("X-Session-Id", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
        ("X-Access", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("X-Login", "ana:hunter2"),
    ] {
        let files = Files::new();
        let text = format!(
            r#"{{"mcpServers":{{"a":{{"url":"https://a.example/mcp","headers":{{"{name}":"{value}"}}}}}}}}"#
        );
        files.add("mcp.json", &text);
        let import = imported(&files, &["mcp.json"]);
        assert!(!import.yaml.contains(value), "{}", import.yaml);
        assert_eq!((import.exports.len(), import.notes.len()), (1, 0), "{name}");
    }
}

pub(super) fn imported(files: &Files, names: &[&str]) -> Import {
    let paths: Vec<PathBuf> = names.iter().map(|name| files.path(name)).collect();
    match import(&paths, &vars) {
        Ok(import) => import,
        Err(rejected) => panic!("{}", rejected.drawn(crate::config::Colour::Plain)),
    }
}

pub(super) fn everything_set(name: &str) -> Option<String> {
    Some(vars(name).unwrap_or_else(|| format!("value-of-{name}")))
}

pub(super) fn endpoint<'a>(plan: &'a Plan, key: &str) -> &'a Endpoint {
    &plan
        .upstreams
        .iter()
        .find(|one| one.id.as_str() == key)
        .unwrap_or_else(|| panic!("no {key}"))
        .endpoint
}

fn words<'a>(plan: &'a Plan, key: &str) -> &'a [String] {
    match endpoint(plan, key) {
        Endpoint::Stdio(stdio) => &stdio.command,
        Endpoint::Http(_) => panic!("a program"),
    }
}

const CODE: &str = r#"{
  "numStartups": 7,
  "mcpServers": { "time": { "command": "uvx", "args": "mcp-server-time" } },
  "projects": {
    "HERE/shop": {
      "allowedTools": [],
      "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${workspaceFolder}"] },
        "time": { "command": "uvx", "args": ["mcp-server-time"] }
      }
    },
    "HERE/blog": { "mcpServers": { "own": { "command": "./server", "args": ["-q"] } } },
    "HERE/gone": { "mcpServers": { "lost": { "command": "./server" } } }
  }
}"#;

#[test]
fn what_claude_code_keeps_for_a_project_is_imported_and_not_served_to_everybody() {
    let files = Files::new();
    for project in ["shop", "blog"] {
        std::fs::create_dir(files.path(project)).unwrap();
    }
    let here = files.path("");
    let here = here.to_str().unwrap().trim_end_matches('/');
    let file = files.add("claude.json", &CODE.replace("HERE", here));
    let import = imported(&files, &["claude.json"]);
    let expected = format!(
        r#"
  time:
    command: [uvx, mcp-server-time]
  files:
    command: [npx, "-y", "@modelcontextprotocol/server-filesystem", {here}/shop]
  own:
    command: ["./server", "-q"]
    cwd: {here}/blog
"#
    );
    assert!(import.yaml.ends_with(&expected), "{}", import.yaml);
    assert_eq!(
        import.notes,
        [
            "`time.args` is one text there, and is one argument here".to_owned(),
            format!("`files` is of the project {here}/shop"),
            format!("`time` is of the project {here}/shop"),
            "`time` is there twice and was taken once".to_owned(),
            format!("`own` is of the project {here}/blog"),
            format!("`lost` is of the project {here}/gone, which is not there, and was left out"),
        ]
    );
    let (plan, notes) = load_mcp_json(&file, &vars).unwrap();
    assert_eq!(plan.upstreams.len(), 1);
    assert_eq!(
        notes[1],
        format!("`files` is of the project {here}/shop and was left out; `usher import` takes it")
    );
    assert_eq!(notes.len(), 5);
}

#[test]
fn each_kind_of_file_is_imported_into_a_configuration_that_loads_without_its_secrets() {
    let files = Files::new();
    for (name, text) in [
        ("claude.json", CLAUDE),
        ("cursor.json", CURSOR),
        ("mcp.json", VSCODE),
    ] {
        files.add(name, text);
        let import = imported(&files, &[name]);
        assert!(!import.yaml.contains("MARKER"), "{}", import.yaml);
        files.add("usher.yaml", &import.yaml);
        let plan = match load(&files.path("usher.yaml"), &everything_set) {
            Ok(plan) => plan,
            Err(rejected) => panic!(
                "{}\n{}",
                import.yaml,
                rejected.drawn(crate::config::Colour::Plain)
            ),
        };
        assert!(plan.upstreams.len() >= 2, "{name}");
        for export in &import.exports {
            assert!(
                import.yaml.contains(&format!("${{env:{}}}", export.name)),
                "{export:?}"
            );
        }
    }
}

#[test]
fn several_files_become_one_configuration_and_what_is_the_same_is_taken_once() {
    let files = Files::new();
    files.add("claude.json", CLAUDE);
    files.add("cursor.json", CURSOR);
    files.add("mcp.json", VSCODE);
    let import = imported(&files, &["claude.json", "cursor.json", "mcp.json"]);
    files.add("usher.yaml", &import.yaml);
    let plan = load(&files.path("usher.yaml"), &everything_set).expect("loads");
    let keys: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(
        keys,
        [
            "filesystem",
            "github",
            "remote",
            "linear",
            "api-server",
            "github-2",
            "perplexity"
        ]
    );
    let notes = import.notes.join("\n");
    assert!(notes.contains("`filesystem` is there twice"), "{notes}");
    assert!(notes.contains("it is `github-2` here"), "{notes}");
    assert!(notes.contains("`old` is switched off"), "{notes}");
    assert!(
        notes.contains("`perplexity.envFile` was left out, and nobody knows"),
        "{notes}"
    );
    let names: Vec<&str> = import
        .exports
        .iter()
        .map(|export| export.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "REMOTE_TOKEN",
            "API_SERVER_APIKEY",
            "API_SERVER_TOKEN",
            "TEAM",
            "PERPLEXITY_KEY",
            "TOKEN",
        ]
    );
    assert!(import.exports[5].from.contains("Perplexity API Key"));
}

#[test]
fn a_file_is_served_as_it_is_with_its_secrets() {
    let files = Files::new();
    let path = files.add("claude.json", CLAUDE);
    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    assert_eq!(words(&plan, "filesystem")[0], "npx");
    assert_eq!(
        words(&plan, "remote")[4],
        "Authorization: Bearer remoteMARKER"
    );
    let Endpoint::Stdio(github) = endpoint(&plan, "github") else {
        panic!("a program");
    };
    assert_eq!(
        github.env["GITHUB_PERSONAL_ACCESS_TOKEN"].expose_secret(),
        "ghp_claudeMARKER0123456789"
    );
    assert!(
        notes.iter().any(|note| note == "`GitHub` is `github` here"),
        "{notes:?}"
    );
}

#[test]
fn addresses_headers_and_transports_are_served_too() {
    let files = Files::new();
    let path = files.add("cursor.json", CURSOR);
    let (plan, _) = load_mcp_json(&path, &everything_set).expect("loads");
    let Endpoint::Http(linear) = endpoint(&plan, "linear") else {
        panic!("an address");
    };
    assert_eq!(linear.transport, HttpTransport::Sse);
    let Endpoint::Http(api) = endpoint(&plan, "api-server") else {
        panic!("an address");
    };
    assert_eq!(api.url.query(), Some("apiKey=queryMARKER&v=1"));
    let values: Vec<&str> = api
        .headers
        .iter()
        .map(|(_, value)| value.expose_secret())
        .collect();
    assert_eq!(values, ["Bearer cursorMARKER", "value-of-TEAM"]);
}

#[test]
fn inputs_and_folders_of_vs_code_are_understood_and_what_is_not_set_is_named() {
    let files = Files::new();
    std::fs::create_dir(files.path(".vscode")).expect("a directory");
    let path = files.add(".vscode/mcp.json", VSCODE);
    let rejected = load_mcp_json(&path, &vars).expect_err("an input is not set");
    assert_eq!(rejected.problems.len(), 1);
    assert_eq!(
        (rejected.problems[0].line, rejected.problems[0].column),
        (12, 38)
    );
    assert!(
        rejected.problems[0]
            .message
            .contains("`PERPLEXITY_KEY` is not set")
    );
    let (plan, _) = load_mcp_json(&path, &everything_set).expect("loads");
    let root = files.path("src");
    assert_eq!(
        words(&plan, "perplexity")[3],
        format!("--root={}", root.display())
    );
}

#[test]
fn variables_with_defaults_and_a_programs_own_variables_are_expanded() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x","args":["${PORT}","${NONE:-7}","k:${OWN}"],"env":{"OWN":"mine"}}}}"#,
    );
    let (plan, _) = load_mcp_json(&path, &vars).expect("loads");
    assert_eq!(words(&plan, "a"), ["x", "9000", "7", "k:mine"]);
}

#[test]
fn what_names_no_server_is_left_out_and_told() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x"},"b":{"args":["y"],"env":{"API_KEY":"leftMARKER"}}}}"#,
    );
    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    assert_eq!(words(&plan, "a"), ["x"]);
    assert_eq!(plan.upstreams.len(), 1);
    let import = import(std::slice::from_ref(&path), &vars).expect("imports");
    assert!(!import.yaml.contains("  b:"), "{}", import.yaml);
    assert!(import.exports.is_empty(), "{:?}", import.exports);
    for notes in [notes, import.notes] {
        assert!(
            notes
                .iter()
                .any(|note| note.starts_with("`b` names neither")),
            "{notes:?}"
        );
    }
}

#[test]
fn problems_are_reported_at_their_place_in_the_original_file() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"url\": \"ftp://x\" },\n    \"b\": 5\n  }\n}\n",
    );
    for rejected in [
        load_mcp_json(&path, &vars).expect_err("wrong"),
        import(std::slice::from_ref(&path), &vars).expect_err("wrong"),
    ] {
        let places: Vec<(usize, usize)> = rejected
            .problems
            .iter()
            .map(|problem| (problem.line, problem.column))
            .collect();
        assert_eq!(places, [(3, 19), (4, 10)]);
    }
    let empty = files.add("empty.json", "{}");
    let rejected = load_mcp_json(&empty, &vars).expect_err("nothing there");
    assert!(rejected.problems[0].message.contains("mcpServers"));
}

#[test]
fn http_to_another_machine_is_taken_over_and_said() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"servers":{"a":{"url":"http://10.1.1.1/mcp"}}}"#,
    );
    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    assert_eq!(plan.upstreams.len(), 1);
    assert!(notes[0].contains("plain_http"));
}

/// The words of the command `docker` with these arguments, as imported, and the variables that are to be set.
fn imported_words(args: &[&str]) -> (Vec<String>, Vec<String>) {
    let import = imported_program(&serde_json::json!({ "command": "docker", "args": args }));
    let names = |import: &Import| import.exports.iter().map(|one| one.name.clone()).collect();
    let exports = names(&import);
    let files = Files::with(&import.yaml);
    // A reference stands for its own name.
    let named = |name: &str| Some(format!("<{name}>"));
    let plan = load(&files.path("usher.yaml"), &named).expect("loads");
    (words(&plan, "a")[1..].to_vec(), exports)
}

/// The import of one server, `a`, that is this object.
fn imported_program(server: &impl std::fmt::Display) -> Import {
    let files = Files::new();
    let file = format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
    files.add("mcp.json", &file);
    imported(&files, &["mcp.json"])
}

#[test]
fn a_secret_that_is_joined_to_its_flag_is_hidden_and_the_next_word_stays() {
    for (args, wanted, export) in [
        (
            &["run", "--env=API_KEY=abcdef12345", "ghcr.io/x/srv:1"][..],
            &["run", "--env=API_KEY=<A_API_KEY>", "ghcr.io/x/srv:1"][..],
            "A_API_KEY",
        ),
        (
            &["--header=Authorization: Bearer abcdef123456789", "serve"],
            &["--header=Authorization: Bearer <A_TOKEN>", "serve"],
            "A_TOKEN",
        ),
        (
            &["--token=abcdef12345", "serve"],
            &["--token=<A_TOKEN>", "serve"],
            "A_TOKEN",
        ),
        (
            &["--token", "abcdef12345==", "serve"],
            &["--token", "<A_TOKEN>", "serve"],
            "A_TOKEN",
        ),
        (
            &["--key=ghp_0123456789abcdef", "--api-key", "--verbose"],
            &["--key=<A_KEY>", "--api-key", "--verbose"],
            "A_KEY",
        ),
    ] {
        let (words, exports) = imported_words(args);
        assert_eq!(words, wanted);
        assert_eq!(exports, [export]);
    }
}

#[test]
fn words_that_only_stand_by_a_secrets_name_are_left_alone() {
    for args in [
        ["--max-tokens", "4096"],
        ["--maxTokens", "4096"],
        ["--max_tokens=4096", "serve"],
        ["--password-stdin", "serve"],
        ["--no-auth-token", "serve"],
        ["--token-file", "/run/token"],
        ["--tokenfile=/run/token", "serve"],
        ["-e", "API_KEY"],
        ["--root=/key=token", "serve"],
    ] {
        let (words, exports) = imported_words(&args);
        assert_eq!(words, args);
        assert_eq!(exports, [""; 0], "{args:?}");
    }
}

#[test]
fn a_secret_within_an_argument_makes_the_argument_a_reference() {
    for (args, wanted) in [
        (
            ["server", "postgresql://bob:hunter2@db/x"],
            ["server", "<A_URL>"],
        ),
        (
            ["server", "mongodb://bob:hun#ter2@db:1/x"],
            ["server", "<A_URL>"],
        ),
        (["server", "redis://:hunter2@db"], ["server", "<A_URL>"]),
        (
            ["--dsn=redis://:hunter2@db", "serve"],
            ["--dsn=<A_URL>", "serve"],
        ),
        (
            ["mcp-remote", "https://mcp.example.com/mcp?token=abcdef123"],
            ["mcp-remote", "<A_URL>"],
        ),
        (
            ["-e", "DB_PASSWORD=hunter22"],
            ["-e", "DB_PASSWORD=<A_DB_PASSWORD>"],
        ),
        (
            ["--env", "API_KEY=abcdef12345"],
            ["--env", "API_KEY=<A_API_KEY>"],
        ),
        (
            ["--headers", r#"{"Authorization": "Bearer ntn_xyz"}"#],
            ["--headers", "<A_SECRET>"],
        ),
    ] {
        let (words, exports) = imported_words(&args);
        assert_eq!(words, wanted);
        assert_eq!(exports.len(), 1, "{args:?}");
    }
    for plain in [
        ["clone", "ssh://git@host/x"],
        ["get", "https://registry.example.com:8443/@scope/x"],
        ["get", "https://example.com?to=me:you@example.com"],
        ["--db", "postgres://db.example.com:5432/x"],
        ["--json", r#"{"max_tokens": 5, "token": 7}"#],
    ] {
        let (words, exports) = imported_words(&plain);
        assert_eq!(words, plain);
        assert_eq!(exports, [""; 0], "{plain:?}");
    }
}

#[test]
fn a_secret_in_a_command_that_is_a_list_is_hidden_too() {
    let import = imported_program(&serde_json::json!({
        "command": ["x", "--token", "listMARKER"],
        "args": ["--api-key", "argsMARKER"],
    }));
    assert!(!import.yaml.contains("MARKER"), "{}", import.yaml);
}

#[test]
fn a_variable_whose_value_holds_a_secret_becomes_a_reference() {
    let import = imported_program(&serde_json::json!({
        "command": "x",
        "env": {
            "DATABASE_URL": "postgres://u:MARKER@h/db",
            "NOTION_HEADERS": r#"{"Authorization": "Bearer MARKER"}"#,
            "ADO": "Server=db;User Id=sa;Password=MARKER",
            "HOST": "postgres://h:5432/db",
        },
    }));
    assert!(!import.yaml.contains("MARKER"), "{}", import.yaml);
    assert!(import.yaml.contains("h:5432"), "{}", import.yaml);
    let names: Vec<&str> = import.exports.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["DATABASE_URL", "NOTION_HEADERS", "ADO"]);
}

#[test]
fn a_secret_that_no_reference_can_replace_is_told() {
    let notes = |args: &[&str]| {
        imported_program(&serde_json::json!({ "command": "sh", "args": args })).notes
    };
    for args in [
        ["-c", "API_KEY=abcdef123456 exec srv"],
        ["-c", "exec srv --token abcdef123456"],
        ["--db", "postgres://bob:hunter2@${HOST}/x"],
    ] {
        let notes = notes(&args);
        assert_eq!(notes.len(), 1, "{args:?}");
        assert!(notes[0].contains("may be a secret"), "{notes:?}");
    }
    for args in [
        ["-c", "exec srv --token \"$TOKEN\" --root /"],
        ["--db", "postgres://bob:${PASSWORD}@${HOST}/x"],
        ["--headers", r#"{"Authorization": "Bearer ${TOKEN}"}"#],
    ] {
        assert_eq!(notes(&args), [""; 0], "{args:?}");
    }
}

#[test]
fn the_user_and_password_of_an_address_become_its_auth() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"servers":{"a":{"url":"https://us%40er:passw0rd@host/mcp"},"b":{"url":"https://${env:ME}:${env:PW}@host/"}}}"#,
    );
    let import = imported(&files, &["mcp.json"]);
    assert!(!import.yaml.contains("passw0rd"), "{}", import.yaml);
    assert!(!import.yaml.contains('@'), "{}", import.yaml);
    let names: Vec<&str> = import.exports.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["A_USER", "A_PASSWORD", "ME", "PW"]);
    files.add("usher.yaml", &import.yaml);
    drop(load(&files.path("usher.yaml"), &everything_set).expect("loads"));

    let (plan, _) = load_mcp_json(&path, &everything_set).expect("loads");
    let Endpoint::Http(http) = endpoint(&plan, "a") else {
        panic!("an address");
    };
    assert_eq!(http.url, "https://host/mcp");
}

#[test]
fn a_password_in_an_address_is_in_no_message() {
    let files = Files::new();
    for url in [
        "https://passw0rd@host/mcp",
        "https://:passw0rd@host/mcp",
        "ftp://user:passw0rd@host/mcp",
    ] {
        let file = serde_json::json!({ "mcpServers": { "a": { "url": url } } });
        let path = files.add("mcp.json", &file.to_string());
        for rejected in [
            import(std::slice::from_ref(&path), &vars).expect_err("wrong"),
            load_mcp_json(&path, &vars).expect_err("wrong"),
        ] {
            let drawn = rejected.drawn(crate::config::Colour::Plain);
            assert!(!drawn.contains("passw0rd"), "{drawn}");
            assert!(!drawn.contains("basic:"), "{drawn}");
            assert_eq!(rejected.problems.len(), 1, "{drawn}");
        }
    }
}
