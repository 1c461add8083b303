//! README.md is true: its commands parse, its files load, its tables say what the code says, its examples run.
//!
//! What needs Node, Python or a program that is not ours is compared with what `usher demo` prints, and no further.
#![expect(clippy::disallowed_types, reason = "the transcript is told from trees")]
#![expect(
    clippy::expect_used,
    reason = "what the README lacks is a failure of these tests"
)]

use std::{
    error::Error,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use clap::{CommandFactory, Parser, error::ErrorKind};
use rmcp::{ServiceExt, model::CallToolRequestParams, transport::StreamableHttpClientTransport};
use serde_json::{Value, json};
use tempfile::TempDir;
use usher::{
    cli::Cli,
    config::{self, Plan},
};

const README: &str = include_str!("../README.md");
/// Where the files of the examples are.
const ETC: &str = "/etc/usher";
/// The address of the examples.
const ADDRESS: &str = "127.0.0.1:8808";

#[test]
fn every_command_of_ours_is_one() {
    let mut seen = 0;
    for line in commands() {
        let words = words(&line);
        let arguments = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["cargo", "run", "--locked", "--", ref rest @ ..] => rest.to_vec(),
            ["usher" | "target/debug/usher", ref rest @ ..] => rest.to_vec(),
            ["cargo", "build", "--locked", "--profile", "dist"] | ["cargo", "doc", "--open"] => {
                assert!(include_str!("../Cargo.toml").contains("[profile.dist]"));
                continue;
            }
            ["tests/run"] => {
                assert!(top("tests/run").is_file());
                continue;
            }
            ["curl" | "claude" | "openssl" | "npm" | "pip", ..] | ["cargo", "add", ..] => continue,
            _ => panic!("what is `{line}`?"),
        };
        seen += 1;
        let parsed = Cli::try_parse_from(std::iter::once("usher").chain(arguments));
        if let Err(error) = parsed {
            assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{line}: {error}");
        }
    }
    assert!(seen > 15, "{seen} commands");
}

#[test]
fn every_command_we_have_is_named() {
    let cli = Cli::command();
    for command in cli
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = format!("`{}`", command.get_name());
        assert!(README.contains(&name), "{name}");
    }
}

#[test]
fn every_configuration_loads_and_so_does_the_one_in_deploy() {
    let etc = etc();
    let all = blocks("yaml");
    assert!(all.len() >= 7, "{}", all.len());
    for yaml in all {
        load(&etc, &yaml);
    }
    let example = std::fs::read_to_string(top("deploy/usher.yaml")).expect("an example");
    let plan = load(&etc, &example);
    assert_eq!(plan.upstreams.len(), 3);
}

#[test]
fn every_file_of_another_program_is_one_that_we_read_ourselves() {
    let etc = etc();
    let all = blocks("json");
    assert_eq!(all.len(), 4);
    for json in all {
        let file = etc.path().join("mcp.json");
        std::fs::write(&file, &json).expect("written");
        let (plan, notes) = config::load_mcp_json(&file, &|_| None)
            .unwrap_or_else(|rejected| panic!("{json}{:?}", rejected.problems));
        assert_eq!(plan.upstreams.len(), 1, "{json}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn every_default_is_the_one_that_is_documented() {
    let etc = etc();
    let table = rows("| Key | Default |");
    assert!(table.len() > 35, "{}", table.len());
    let server = |place: &str, more: &str| format!("upstreams: {{ x: {{ {place}{more} }} }}\n");
    let (address, program) = ("url: \"https://example.com/\"", "command: [x]");
    for row in table {
        let (key, value) = (row[0].trim_matches('`'), row[1].trim_matches('`'));
        let place = match key {
            "upstreams.*.timeout.start" => program,
            _ => address,
        };
        let implied = format!("{:?}", load(&etc, &server(place, "")));
        // The key as one line of nested mappings; a server needs its place beside it.
        let yaml = match key.strip_prefix("upstreams.*.") {
            Some(rest) => server(place, &format!(", {}", nested(rest, value))),
            None => format!("{}{}\n", server(place, ""), nested(key, value)),
        };
        let said = format!("{:?}", load(&etc, &yaml));
        assert_eq!(said, implied, "{key} is not {value} by default");
    }
}

#[test]
fn the_first_restricted_group_is_restricted_as_it_is_said() {
    let home = TempDir::new().expect("a directory");
    std::fs::create_dir(home.path().join("policies")).expect("made");
    let files = blocks("cedar");
    assert_eq!(files.len(), 2);
    for text in files {
        let name = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("// "));
        std::fs::write(home.path().join(name.expect("a name")), &text).expect("written");
    }
    // What `--connect` would bring.
    let catalog = r#"{"tools":[
        {"name":"github_create_issue","inputSchema":{"type":"object","properties":{"repo":{"type":"string"}},"required":["repo"]}},
        {"name":"github_delete_repo","inputSchema":{"type":"object"}},
        {"name":"docs_search","inputSchema":{"type":"object"}}]}"#;
    std::fs::write(home.path().join("catalog.json"), catalog).expect("written");
    let run = |line: &str| {
        let words = words(&line.replace("--connect", ""));
        let out = Command::new(env!("CARGO_BIN_EXE_usher"))
            .args(&words[1..])
            .args(["--catalog", "catalog.json"])
            .current_dir(home.path())
            .output()
            .expect("usher runs");
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{line}: {errors}");
        assert_eq!(errors, "", "{line}");
        String::from_utf8(out.stdout).expect("UTF-8")
    };
    let block = blocks("sh")
        .into_iter()
        .find(|block| block.starts_with("usher policy"))
        .expect("commands");
    let lines: Vec<String> = block.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let said: Vec<String> = lines.iter().map(|line| run(line)).collect();
    let shown = blocks("text");
    let shown = shown.iter().find(|block| block.starts_with("no: "));
    assert!(
        said[1].starts_with(shown.expect("what is said").as_str()),
        "{}",
        said[1]
    );
    assert!(!said[2].contains("contractors\""), "{}", said[2]);
    let allowed = run(&lines[1].replace("acme/secret", "acme/site"));
    assert!(allowed.starts_with("yes: "), "{allowed}");
    let hidden = run(&lines[1].replace("create_issue", "delete_repo"));
    assert!(hidden.contains("as if it were not there"), "{hidden}");
}

#[test]
fn every_reason_is_a_word_of_the_code_and_every_word_of_a_failed_call_is_explained() {
    let explained: Vec<String> = rows("| Reason | What happened |")
        .iter()
        .flat_map(|row| words_in_backticks(&row[0]))
        .collect();
    assert!(explained.len() > 20, "{}", explained.len());
    let mut code = String::new();
    read_all(&top("src"), &mut code);
    for word in &explained {
        assert!(code.contains(&format!("\"{word}\"")), "{word}");
    }
    for source in [
        include_str!("../src/stack/error.rs"),
        include_str!("../src/upstream/mod.rs"),
    ] {
        let arms = source.lines().filter_map(|line| {
            let word = line.trim().split_once("=> \"")?.1;
            Some(word.split('"').next()?.to_owned())
        });
        let mut known = 0;
        for word in arms {
            known += 1;
            assert!(explained.contains(&word), "{word} is not explained");
        }
        assert!(known > 5);
    }
}

#[test]
fn every_conformance_difference_is_named() {
    let listed = include_str!("conformance/differences.txt");
    let lines = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let named = |line: &str| {
        let mut words = line.split(' ');
        let (revision, scenario) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        assert!(
            README.contains(&format!("| {revision} | `{scenario}` |")),
            "{line}"
        );
    };
    let count = lines.inspect(|line| named(line)).count();
    assert_eq!(
        README.matches("| 2025-11-25 | `").count() + README.matches("| 2026-07-28 | `").count(),
        count
    );
}

#[test]
fn what_the_demo_prints_is_what_is_shown_and_the_examples_run() {
    let demo = Demo::start();
    let printed = demo.said.replace(&demo.address, ADDRESS);
    for line in blocks("text")[0].lines() {
        assert!(
            printed
                .lines()
                .any(|other| other.trim_end() == line.trim_end()),
            "not printed: {line}\n{printed}"
        );
    }
    let close = |text: &str| -> String { text.split_whitespace().collect() };
    for language in ["python", "js"] {
        let block = &blocks(language)[0];
        assert!(close(&printed).contains(&close(block)), "{block}");
    }

    let curl = blocks("sh")
        .into_iter()
        .find(|block| block.starts_with("curl "))
        .expect("an example");
    assert!(printed.contains(curl.trim_end()), "{curl}");
    let answer = post(&demo.address, &words(&joined(&curl)[0]));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains(r#""city":"Paris""#), "{answer}");

    let call = commands()
        .into_iter()
        .find(|line| line.starts_with("target/debug/usher call"))
        .expect("an example");
    let told = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(&words(&call.replace(ADDRESS, &demo.address))[1..])
        .output()
        .expect("it runs");
    assert!(told.status.success(), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stdout).contains("Paris"));

    // The HTTP client of the SDK takes the provider of the process.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(with_rmcp(&format!("http://{}/mcp", demo.address)))
        .expect("the SDK's call");
}

#[test]
fn the_transcript_is_what_happens() {
    let demo = Demo::start();
    let happened = transcript(&demo.address);
    assert!(
        blocks("console").contains(&happened),
        "what happens is\n{happened}"
    );
}

/// A client of 2026-07-28 sees all that the demo has to show: `>` is what it sends, `<` what it gets.
fn transcript(address: &str) -> String {
    let filter =
        r#"{"toolsListChanged":true,"resourceSubscriptions":["calendar+calendar://agenda"]}"#;
    let (mut said, listen) = (String::new(), "subscriptions/listen");
    let mut changes = ask(address, listen, "", &format!(r#""notifications":{filter}"#));
    let mut say = |line: &str| said.extend([line, "\n"]);
    let mut next_change = || worded(&changes.next().expect("the stream stays open"));
    let call = |name: &str, params: &str| ask(address, "tools/call", name, params);

    say(&format!("> {listen} {filter}"));
    say(&next_change());
    for (name, arguments, answer, then) in [
        ("travel_add_to_trip", r#"{"flight":"PAR-TYO-1"}"#, "", true),
        ("travel_book_trip", "{}", "", true),
        (
            "weather_compare_cities",
            r#"{"cities":["Paris","Oslo"],"date":"2026-09-12"}"#,
            "",
            false,
        ),
        (
            "calendar_send_email",
            r#"{"to":"ada@example.com","subject":"Lunch","body":"At noon?"}"#,
            r#"{"action":"accept","content":{"send":true}}"#,
            false,
        ),
        (
            "calendar_draft_invitation",
            r#"{"id":1}"#,
            r#"{"role":"assistant","model":"yours","content":{"type":"text","text":"Come and eat!"}}"#,
            false,
        ),
        (
            "calendar_create_event",
            r#"{"title":"Lunch","date":"2026-09-02"}"#,
            "",
            true,
        ),
    ] {
        let params = format!(r#""name":"{name}","arguments":{arguments}"#);
        say(&format!("> tools/call {name} {arguments}"));
        let mut state = None;
        for message in call(name, &params) {
            say(&worded(&message));
            state = message["result"].get("requestState").cloned().or(state);
            if let Some(asked) = message["result"]["inputRequests"].as_object() {
                let key = asked.keys().next().expect("one question");
                state = Some(json!([key, state]));
            }
        }
        if let Some(state) = state {
            say(&format!("> the same again, with the answer {answer}"));
            let (key, state) = (&state[0], &state[1]);
            let again =
                format!(r#"{params},"inputResponses":{{{key}:{answer}}},"requestState":{state}"#);
            call(name, &again).for_each(|message| say(&worded(&message)));
        }
        if then {
            say(&next_change());
        }
    }
    said
}

/// A message as a line of the transcript.
fn worded(message: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = &message["result"];
    if let Some(asked) = result["inputRequests"].as_object() {
        let question = asked.values().next().expect("one question");
        let params = &question["params"];
        let words = [
            &params["message"],
            &params["messages"][0]["content"]["text"],
        ];
        let words = cut(&words.map(text).concat());
        return format!("< input_required: {}: {words}", text(&question["method"]));
    }
    if result.is_object() {
        let words = cut(&text(&result["content"][0]["text"]));
        return format!("< result: {words}");
    }
    let params = &message["params"];
    let words = [&params["uri"], &params["message"]].map(text).concat();
    format!("< {} {words}", text(&message["method"]))
        .trim_end()
        .to_owned()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Sends one request and hands over the messages of its answer as they come.
fn ask(
    address: &str,
    method: &str,
    name: &str,
    params: &str,
) -> impl Iterator<Item = Value> + use<> {
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"progressToken":1"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{{meta}}}}}}}"#
    );
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("mcp-name: {name}\r\n")
    };
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n\
         {name}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| {
        let json = line.strip_prefix("data: ").unwrap_or(&line);
        serde_json::from_str::<Value>(json)
            .ok()
            .filter(Value::is_object)
    })
}

#[test]
fn the_rust_example_is_the_one_that_is_run() {
    let run = include_str!("readme.rs")
        .split_once("// From here on as in the README.\n")
        .and_then(|(_, rest)| rest.split_once("// To here.\n"))
        .expect("marks")
        .0;
    let shown = blocks("rust")[0].replace(&format!("\"http://{ADDRESS}/mcp\""), "url");
    let close = |text: &str| -> String { text.split_whitespace().collect() };
    assert!(close(&shown).contains(&close(run)), "{shown}");
}

#[expect(clippy::print_stdout, reason = "it is an example")]
async fn with_rmcp(url: &str) -> Result<(), Box<dyn Error>> {
    // From here on as in the README.
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = ().serve(transport).await?;
    let arguments = serde_json::from_str(r#"{"city":"Paris"}"#)?;
    let call = CallToolRequestParams::new("weather_get_weather").with_arguments(arguments);
    println!("{:?}", client.call_tool(call).await?);
    client.cancel().await?;
    Ok(())
    // To here.
}

/// `usher demo` on a free port; killed when dropped.
struct Demo {
    child: Child,
    /// Where it listens: address and port.
    address: String,
    /// What it printed.
    said: String,
}

impl Demo {
    fn start() -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_usher"))
            .args(["demo", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut demo = Self {
            child,
            address: String::new(),
            said: String::new(),
        };
        let stdout = demo.child.stdout.take().expect("a pipe");
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("text");
            demo.said.push_str(&line);
            demo.said.push('\n');
            if let Some(url) = line.strip_prefix("usher is ready at http://") {
                demo.address = url.trim_end_matches("/mcp").to_owned();
            }
            // The last thing it prints.
            if line.starts_with("claude mcp add") {
                return demo;
            }
        }
        panic!("it ended: {}", demo.said);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a `curl` with `-H` and `-d` gets from `address`, head and body.
fn post(address: &str, curl: &[String]) -> String {
    let after = |flag: &str| {
        let flags = curl.windows(2).filter(move |pair| pair[0] == flag);
        flags.map(|pair| pair[1].clone()).collect::<Vec<_>>()
    };
    let body = after("-d").remove(0);
    let path = curl
        .iter()
        .find_map(|word| word.strip_prefix(&format!("http://{ADDRESS}")))
        .expect("an address");
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for header in after("-H") {
        // Writing to a string cannot fail.
        let _ = write!(request, "{header}\r\n");
    }
    let _ = write!(request, "content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

/// The plan of a configuration whose files lie in `etc` and whose variables are all set.
fn load(etc: &TempDir, yaml: &str) -> Plan {
    let path = etc.path().join("usher.yaml");
    let yaml = yaml.replace(ETC, &etc.path().display().to_string());
    std::fs::write(&path, &yaml).expect("written");
    let vars = |_: &str| Some("0123456789abcdef0123456789abcdef".to_owned());
    config::load(&path, &vars).unwrap_or_else(|rejected| {
        panic!("{}\n{yaml}", rejected.drawn(config::Colour::Plain));
    })
}

/// A directory with every file that the examples refer to.
fn etc() -> TempDir {
    let etc = TempDir::new().expect("a directory");
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("issued");
    std::fs::create_dir(etc.path().join("tls")).expect("made");
    let write = |name: &str, text: &str| {
        let path = etc.path().join(name);
        std::fs::write(&path, text).expect("written");
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, owner_only).expect("closed to others");
    };
    write("tls/cert.pem", &issued.cert.pem());
    write("tls/ca.pem", &issued.cert.pem());
    write("tls/key.pem", &issued.signing_key.serialize_pem());
    write("state-key", "0123456789abcdef0123456789abcdef\n");
    write("connections-key", "0123456789abcdef0123456789abcdef\n");
    write("github-secret", "0123456789abcdef\n");
    etc
}

/// `a.b.c` and a value as `a: { b: { c: value } }`.
fn nested(key: &str, value: &str) -> String {
    match key.split_once('.') {
        Some((first, rest)) => format!("{first}: {{ {} }}", nested(rest, value)),
        None => format!("{key}: {value}"),
    }
}

/// The contents of the fenced blocks in this language.
fn blocks(language: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in README.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, String::new())),
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is left open");
    let wanted = all.into_iter().filter(|(of, _)| *of == language);
    wanted.map(|(_, text)| text).collect()
}

/// The cells of the table whose head begins like this.
fn rows(head: &str) -> Vec<Vec<String>> {
    let rest = README.split_once(head).expect("a table").1;
    rest.lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

/// Every command: lines of shell blocks, and what stands between backticks and begins with a program of ours.
fn commands() -> Vec<String> {
    let mut all: Vec<String> = blocks("sh")
        .iter()
        .flat_map(|block| joined(block))
        .collect();
    let prose = README
        .split("```")
        .step_by(2)
        .flat_map(words_in_backticks)
        .filter(|code| {
            ["usher ", "cargo ", "openssl ", "npm ", "pip "]
                .iter()
                .any(|program| code.starts_with(program))
        });
    all.extend(prose);
    all
}

fn words_in_backticks(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.map(|code| code.replace('\n', " ")).collect()
}

/// The lines of a shell block, continued ones joined.
fn joined(block: &str) -> Vec<String> {
    block
        .replace("\\\n", " ")
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words of a command as a shell would split it, up to a comment or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            _ => word.push(c),
        }
    }
    let end = words.iter().position(|word| word == "#" || word == ">");
    words.truncate(end.unwrap_or(words.len()));
    words
}

fn read_all(under: &Path, out: &mut String) {
    for entry in std::fs::read_dir(under).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_all(&path, out);
        } else {
            out.push_str(&std::fs::read_to_string(&path).expect("text"));
        }
    }
}

fn top(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
