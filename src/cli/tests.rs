//! The command line as a whole: it is well-formed, helps everywhere, and ends with the right code.

use clap::{CommandFactory, Parser};

use super::*;

fn commands(command: &clap::Command) -> Vec<&clap::Command> {
    let mut all = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        all.push(sub);
        all.extend(commands(sub));
    }
    all
}

#[test]
fn every_command_explains_itself_with_an_example() {
    Cli::command().debug_assert();
    let cli = Cli::command();
    let all = commands(&cli);
    assert!(all.len() >= 12);
    for command in all {
        let help = command.get_after_help().map(ToString::to_string);
        assert!(command.get_about().is_some(), "{}", command.get_name());
        let help = help.unwrap_or_default();
        assert!(help.contains("Example"), "{}", command.get_name());
        assert!(help.contains("usher "), "{}", command.get_name());
    }
}

#[test]
fn every_command_with_a_result_gives_it_as_json() {
    // What serves, and what is for programs anyway: schemas and scripts.
    const NONE: [&str; 7] = [
        "demo",
        "serve",
        "stdio",
        "schema",
        "config",
        "audit",
        "completions",
    ];
    let cli = Cli::command();
    let has_json = |command: &clap::Command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_long() == Some("json"))
    };
    let without = commands(&cli).into_iter().filter(|command| {
        !command.has_subcommands() && !has_json(command) && !NONE.contains(&command.get_name())
    });
    let without: Vec<_> = without.map(clap::Command::get_name).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn sources_of_a_gateway_exclude_each_other() {
    for arguments in [
        vec!["usher", "serve", "-c", "a", "--mcp-json", "b"],
        vec!["usher", "catalog", "--url", "http://x/", "-c", "a"],
        vec![
            "usher",
            "call",
            "t",
            "{}",
            "--url",
            "http://x/",
            "--mcp-json",
            "b",
        ],
        vec!["usher", "read", "u", "--url", "http://x/", "--as", "ana"],
        vec!["usher", "prompt", "p", "novalue"],
        vec!["usher", "import"],
    ] {
        let error = Cli::try_parse_from(&arguments).expect_err("a mistake");
        assert_eq!(error.exit_code(), 2, "{arguments:?}");
    }
}

#[tokio::test]
async fn commands_end_with_the_code_of_what_happened() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let run = async |arguments: &[&str]| {
        let cli = Cli::try_parse_from(arguments).expect("well-formed");
        obey(cli.command).await
    };
    let (good, bad, made) = (file("good.yaml"), file("bad.yaml"), file("made.yaml"));
    assert_eq!(run(&["usher", "init", &good]).await, Ended::Well);
    assert_eq!(run(&["usher", "init", &good]).await, Ended::Failed);
    assert_eq!(run(&["usher", "check", "-c", &good]).await, Ended::Well);
    for command in ["check", "test"] {
        let arguments = ["usher", "policy", command, "--dir", &file("policies")];
        assert_eq!(run(&arguments).await, Ended::Well, "{command}");
    }
    // Beside a configuration of one's own only the policies are written, and those that exist stay.
    std::fs::remove_dir_all(file("policies")).expect("removed");
    let ana = ["usher", "init", &good, "--operator", "ana"];
    assert_eq!(run(&ana).await, Ended::Well);
    assert_eq!(run(&ana).await, Ended::Failed);
    // Nor is anybody put into those that exist, which is a failure where it was asked for.
    let (other, third) = (file("other.yaml"), file("third.yaml"));
    let bob = ["usher", "init", &other, "--operator", "bob", "--json"];
    assert_eq!(run(&bob).await, Ended::Failed);
    assert_eq!(run(&["usher", "check", "-c", &other]).await, Ended::Well);
    let nobody = ["usher", "init", &third];
    assert_eq!(run(&nobody).await, Ended::Well);
    let line = crate::config::permit_line("b\"ob");
    crate::config::write_new(file("policies/more.cedar").as_ref(), &line).expect("written");
    let arguments = ["usher", "policy", "check", "--dir", &file("policies")];
    assert_eq!(run(&arguments).await, Ended::Well);
    let arguments = ["usher", "policy", "test", "--dir", &file("policies")];
    assert_eq!(run(&arguments).await, Ended::Well);
    crate::config::write_new(bad.as_ref(), "zebra: 1\n").expect("written");
    assert_eq!(
        run(&["usher", "check", "-c", &bad, "--json"]).await,
        Ended::Misused
    );
    assert_eq!(run(&["usher", "serve", "-c", &bad]).await, Ended::Misused);
    assert_eq!(
        run(&["usher", "call", "t", "[]", "-c", &good]).await,
        Ended::Misused
    );
    let twice = ["usher", "prompt", "p", "city=Oslo", "day=1", "city=Paris"];
    let place = ["-c", &good];
    assert_eq!(run(&[&twice[..], &place].concat()).await, Ended::Misused);
    let servers = file("mcp.json");
    let text = r#"{"mcpServers":{"a":{"command":"true"}}}"#;
    crate::config::write_new(servers.as_ref(), text).expect("written");
    assert_eq!(
        run(&["usher", "import", &servers, "-o", &made]).await,
        Ended::Well
    );
    assert_eq!(
        run(&["usher", "import", &servers, "-o", &made]).await,
        Ended::Failed
    );
    assert_eq!(run(&["usher", "check", "-c", &made]).await, Ended::Well);
    let missing = file("none.json");
    assert_eq!(run(&["usher", "import", &missing]).await, Ended::Misused);
}

/// Whoever revokes a key need not have the secrets of everything else.
#[tokio::test]
async fn what_is_wrong_elsewhere_keeps_nobody_from_keys_pins_and_connections() {
    use std::os::unix::fs::PermissionsExt as _;
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        crate::config::write_new(&path, text).expect("written");
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, own).expect("mode set");
        path.display().to_string()
    };
    let run = async |arguments: &[&str]| {
        let arguments = ["usher"].iter().chain(arguments);
        obey(Cli::try_parse_from(arguments).expect("well-formed").command).await
    };
    let secret = file("secret", &"5e".repeat(32));
    let keys = format!("keys: {{ file: keys.json, secret: '${{file:{secret}}}' }}");
    let store = format!("connections: {{ store: store, keys: ['${{file:{secret}}}'] }}");
    let upstream = |more: &str| {
        format!(
            "upstreams: {{ a: {{ url: 'https://a.example/mcp', auth: {{ authorization_code: {{ {more} }} }} }} }}"
        )
    };
    let login = "client_id: c, client_secret: '${env:USHER_TEST_NOBODY}'";
    let sound = |more: &str| {
        let upstream = upstream(login);
        format!(
            "auth: {{ {keys} }}\nstate: {{ dir: state, key: '${{env:USHER_TEST_NOBODY}}' }}\n{store}\n{upstream}\n{more}\n"
        )
    };
    let elsewhere = file("elsewhere.yaml", &sound("zebra: 1"));
    let config = ["-c", &elsewhere];
    for (arguments, ended) in [
        (&["keys", "create", "ci", "--owner", "ana"][..], Ended::Well),
        (&["keys", "list"], Ended::Well),
        (&["keys", "revoke", "ci"], Ended::Well),
        (&["pins", "status"], Ended::Well),
        (&["connections", "list"], Ended::Well),
        // Its server is to take the tokens back.
        (&["connections", "revoke", "a", "--all"], Ended::Misused),
        (&["check"], Ended::Misused),
        (&["serve"], Ended::Misused),
    ] {
        let arguments = [arguments, &config].concat();
        assert_eq!(run(&arguments).await, ended, "{arguments:?}");
    }
    let text = std::fs::read_to_string(directory.path().join("keys.json")).expect("read");
    assert!(text.contains("revoked"), "{text}");
    // What they need is wrong, or what is wrong has taken it away.
    for (number, text) in [
        "auth: [",
        "auth: { keys: { file: 7 } }\nstate: { dir: [] }\nconnections: { store: 7 }",
        "auth: 7\nstate: 7\nconnections: 7",
        "zebra: 1",
    ]
    .into_iter()
    .enumerate()
    {
        let broken = file(&format!("broken-{number}.yaml"), text);
        for command in [
            ["keys", "list"],
            ["pins", "status"],
            ["connections", "list"],
        ] {
            let arguments = [&command[..], &["-c", &broken]].concat();
            assert_eq!(run(&arguments).await, Ended::Misused, "{arguments:?}");
        }
    }
    // Its secret is needed for a new key, and for no other.
    let text = "auth: { keys: { file: keys.json, secret: '${env:USHER_TEST_NOBODY}' } }";
    let without = file("without.yaml", text);
    for (arguments, ended) in [
        (
            &["keys", "create", "cd", "--owner", "ana"][..],
            Ended::Misused,
        ),
        (&["keys", "list", "--all"], Ended::Well),
    ] {
        let arguments = [arguments, &["-c", &without]].concat();
        assert_eq!(run(&arguments).await, ended, "{arguments:?}");
    }
}

#[tokio::test]
async fn a_check_runs_the_cases_that_it_knows_the_items_of() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        drop(std::fs::remove_file(&path));
        crate::config::write_new(&path, text).expect("written");
        path.display().to_string()
    };
    let policies = directory.path().join("policies");
    std::fs::create_dir(&policies).expect("made");
    file(
        "policies/main.cedar",
        r#"@id("ana") permit (principal == User::"ana", action, resource);"#,
    );
    let items = "items: [{ tool: notes_t, upstream: notes, arguments: {} }]\n";
    let case = |tool: &str, expect: &str| {
        format!("cases: [{{ name: a case, user: ana, call: {tool}, expect: {expect} }}]\n")
    };
    for (cases, tested, enforced) in [
        (case("notes_t", "allow"), Ended::Well, Ended::Well),
        (case("notes_t", "hidden"), Ended::Failed, Ended::Misused),
        // A server has to be asked for that.
        (case("notes_x", "hidden"), Ended::Failed, Ended::Well),
    ] {
        file("policies/cases.yaml", &format!("{items}{cases}"));
        for (enforce, ended) in [(false, Ended::Well), (true, enforced)] {
            let text = format!("policy: {{ dir: policies, enforce_cases: {enforce} }}\n");
            let config = file("usher.yaml", &text);
            for more in [&[][..], &["--json"]] {
                let arguments = [&["usher", "check", "-c", &config], more].concat();
                let cli = Cli::try_parse_from(&arguments).expect("well-formed");
                assert_eq!(obey(cli.command).await, ended, "{enforce} {cases}");
            }
        }
        let arguments = ["usher", "policy", "test", "--dir"];
        let dir = policies.display().to_string();
        let cli = Cli::try_parse_from(arguments.into_iter().chain([&*dir])).expect("well-formed");
        assert_eq!(obey(cli.command).await, tested, "{cases}");
    }
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_a_failure_and_a_bad_address_a_misuse() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let url = format!("http://{address}/mcp");
    for (url, ended) in [(url.as_str(), Ended::Failed), ("nonsense", Ended::Misused)] {
        let cli =
            Cli::try_parse_from(["usher", "read", "x://y", "--url", url]).expect("well-formed");
        assert_eq!(obey(cli.command).await, ended, "{url}");
    }
}

#[tokio::test]
async fn the_client_calls_reads_and_prompts_at_a_server_of_the_newest_revision() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let tasks = crate::tasks::Tasks::new();
    let demo = crate::demo::start(&tasks).await.expect("servers");
    let url = demo.weather_url.as_str();
    for (arguments, ended) in [
        (
            vec!["call", "get_weather", r#"{"city":"Paris"}"#],
            Ended::Well,
        ),
        // Its city is mirrored in a header, which only the definition says.
        (
            vec![
                "call",
                "get_forecast",
                r#"{"city":"São Paulo","date":"2026-09-02"}"#,
            ],
            Ended::Well,
        ),
        (vec!["call", "no_such_tool", "{}"], Ended::Failed),
        (vec!["read", "weather://cities", "--json"], Ended::Well),
        (vec!["read", "weather://none"], Ended::Failed),
        (vec!["prompt", "what_to_wear", "city=Oslo"], Ended::Well),
        (vec!["catalog"], Ended::Well),
        (vec!["catalog", "--json"], Ended::Well),
    ] {
        let place = ["--url", url];
        let arguments = ["usher"].iter().chain(&arguments).chain(&place);
        let cli = Cli::try_parse_from(arguments).expect("well-formed");
        let said = format!("{:?}", cli.command);
        assert_eq!(obey(cli.command).await, ended, "{said}");
    }
    tasks.finish().await;
}

#[tokio::test]
async fn where_no_gateway_listens_the_cause_is_told_and_what_to_look_at() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", free.local_addr().expect("an address"));
    drop(free);
    let client = client::Client::new(&url, None).expect("a client");
    let answer = client
        .request("tools/list", crate::json::Json::empty_object())
        .await;
    let Err(refused::Refused::Silence(said)) = answer else {
        panic!("{answer:?}");
    };
    assert!(said.contains(&url), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    assert!(said.contains("`usher serve`"), "{said}");
}

#[test]
fn an_address_without_its_scheme_is_answered_with_the_scheme() {
    let said = |url: &str| client::Client::new(url, None).err().unwrap_or_default();
    for url in [
        "127.0.0.1:8808/mcp",
        "localhost:8808",
        "nonsense",
        "ftp://x/",
    ] {
        assert!(said(url).contains("begin with `http://`"), "{}", said(url));
    }
    for url in ["http://", "http:///mcp", "https://a b/"] {
        assert!(said(url).ends_with("is not an address"), "{}", said(url));
    }
    for url in [
        "HTTP://127.0.0.1:8808/mcp",
        "https://[::1]:1/mcp",
        "http://[::1]/mcp",
    ] {
        assert_eq!(said(url), "", "{url}");
    }
    // It would be read as that of the scheme.
    for url in ["http://127.0.0.1:88080/mcp", "https://x.example:88080/mcp"] {
        assert!(
            said(url).ends_with("has a port that is none"),
            "{}",
            said(url)
        );
    }
}

#[test]
fn whoever_approves_without_a_name_is_told_of_all() {
    let parse = |more: &[&str]| {
        let arguments = ["usher", "pins", "approve", "x"];
        Cli::try_parse_from(arguments.iter().chain(more))
    };
    let said = parse(&[]).expect_err("nothing named").to_string();
    let wanted = said.split("Usage").next().unwrap_or_default();
    assert!(
        wanted.contains("NAMES") && wanted.contains("--all"),
        "{said}"
    );
    assert!(parse(&["--all"]).is_ok());
    assert!(parse(&["a", "b"]).is_ok());
    for both in [
        &["a", "--all"][..],
        &["--all", "--digest", "3f"],
        &["--digest", "3f"],
    ] {
        assert!(parse(both).is_err(), "{both:?}");
    }
}
