//! What `usher call`, `usher prompt` and `usher catalog` say of a running gateway that refuses.

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, process::Stdio};

use nix::{
    fcntl::OFlag,
    sys::{
        signal::{Signal, kill},
        stat::Mode,
    },
    unistd::{Pid, mkfifo},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::audit::records;
use crate::harness::{
    Gate, Gateway, Heard, PATIENCE, Play, Revision, Upstream, eventually, tool, within,
};

/// What a command says on stderr of the gateway at this path; it always fails.
async fn said(gateway: &Gateway, path: &str, arguments: &[&str]) -> String {
    let url = format!("http://{}{path}", gateway.address);
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command
        .args(arguments)
        .args(["--url", &url])
        .env_remove("USHER_TOKEN")
        .kill_on_drop(true);
    let ended = within(PATIENCE, "the command ends", command.output()).await;
    let ended = ended.unwrap();
    assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[tokio::test]
async fn a_failure_is_said_by_whom_it_is_and_a_name_suggested_only_where_none_is_known() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("own"), tool("away")])
        .prompts(&["plan", "plan2"])
        .on("tools/call", |heard: &Heard| {
            if heard.text("name").as_deref() == Some("away") {
                return Play::Status(500);
            }
            let failed = r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#;
            Play::Result(failed.into())
        })
        .on("prompts/get", |_: &Heard| {
            Play::Error(r#"{"code":-32602,"message":"expected string at city"}"#.into())
        });
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let own = said(&gateway, "/mcp", &["call", "notes_own"]).await;
    assert!(own.contains("the tool says that it failed"), "{own}");
    let away = said(&gateway, "/mcp", &["call", "notes_away"]).await;
    assert!(!away.contains("the tool says"), "{away}");
    assert!(away.contains("the gateway says this"), "{away}");
    assert!(away.contains("`upstream_"), "{away}");
    let lacking = said(&gateway, "/mcp", &["prompt", "notes_plan"]).await;
    assert!(lacking.contains("expected string at city"), "{lacking}");
    assert!(!lacking.contains("did you mean"), "{lacking}");
    assert!(!lacking.contains("usher catalog"), "{lacking}");
    let slip = said(&gateway, "/mcp", &["prompt", "notes_plam"]).await;
    assert!(slip.contains("did you mean `notes_plan`"), "{slip}");
    let unlike = said(&gateway, "/mcp", &["call", "zzz"]).await;
    let catalog = format!("`usher catalog --url http://{}/mcp`", gateway.address);
    assert!(unlike.contains(&catalog), "{unlike}");
}

#[tokio::test]
async fn the_catalog_of_a_toolset_that_is_not_there_is_refused_with_these_words() {
    let notes = Upstream::http(Revision::V2026_07_28);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let refused = said(&gateway, "/mcp/nope", &["catalog"]).await;
    assert!(refused.contains("no toolset or server"), "{refused}");
}

// SECURITY OPS-1
#[tokio::test]
async fn what_init_writes_is_taken_whatever_the_mask_of_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    let run = async |mask: &str, arguments: &str| {
        let mut command = Command::new("sh");
        let script = format!("umask {mask} && exec \"$0\" {arguments}");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_usher")])
            .current_dir(directory.path())
            .kill_on_drop(true);
        let ended = within(PATIENCE, "the command ends", command.output()).await;
        ended.unwrap()
    };
    for mask in ["002", "000", "022"] {
        let place = format!("at-{mask}");
        std::fs::create_dir(directory.path().join(&place)).unwrap();
        let init = run(mask, &format!("init {place}/usher.yaml --operator ana")).await;
        assert!(init.status.success(), "{init:?}");
        let check = run(mask, &format!("check -c {place}/usher.yaml")).await;
        assert!(check.status.success(), "{mask}: {check:?}");
    }
}

#[tokio::test]
async fn the_demo_ends_with_its_terminal() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["demo", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(demo.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = said.next_line().await.unwrap() {
            if line.starts_with("usher is ready at ") {
                return;
            }
        }
        panic!("it ended");
    };
    within(PATIENCE, "it is ready", ready).await;
    let process = Pid::from_raw(demo.id().unwrap().try_into().unwrap());
    kill(process, Signal::SIGHUP).unwrap();
    within(PATIENCE, "it ends", demo.wait()).await.unwrap();
}

/// Nothing that it has started by then is left behind.
#[tokio::test]
async fn a_signal_that_comes_while_a_pipe_is_prepared_ends_it_in_an_orderly_way() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    mkfifo(&file, Mode::S_IRWXU).unwrap();
    let mut running = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["stdio", "-c"])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // Opens once the program reads it, and waits for nobody: a program that ends before would never.
    let mut writing = eventually("the program reads its configuration", async || {
        let mut how = std::fs::OpenOptions::new();
        how.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        how.open(&file).ok()
    })
    .await;
    let process = Pid::from_raw(running.id().unwrap().try_into().unwrap());
    kill(process, Signal::SIGTERM).unwrap();
    // A few bytes have room in the pipe.
    writing.write_all(b"audit: off\n").unwrap();
    drop(writing);
    let ended = within(PATIENCE, "it ends", running.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{ended}");
}

#[tokio::test]
async fn that_a_proxy_is_not_used_is_said_by_whatever_starts_a_gateway() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let yaml = "listen: { address: \"127.0.0.1:0\" }\naudit: off\n";
    std::fs::write(&file, yaml).unwrap();
    for command in ["serve", "stdio"] {
        let mut running = Command::new(env!("CARGO_BIN_EXE_usher"))
            .args([command, "-c"])
            .arg(&file)
            .env("HTTPS_PROXY", "http://me:hunter2@proxy.example")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(running.stderr.take().unwrap()).lines();
        let told = async {
            loop {
                let line = said.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("{command} says nothing of it"));
                if line.contains("is not used") {
                    return line;
                }
            }
        };
        let told = within(PATIENCE, "it is said", told).await;
        assert!(told.contains("HTTPS_PROXY"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
        running.kill().await.unwrap();
    }
}

/// SECURITY 10.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_holds_credentials_dumps_no_core_whatever_the_limit_of_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let yaml = "listen: { address: \"127.0.0.1:0\" }\naudit: off\n";
    std::fs::write(&file, yaml).unwrap();
    let config = file.to_str().unwrap();
    for arguments in [
        ["serve", "-c", config],
        ["stdio", "-c", config],
        ["demo", "--port", "0"],
    ] {
        let most = "ulimit -S -c \"$(ulimit -H -c)\" && exec \"$0\" \"$@\"";
        let mut running = Command::new("sh")
            .args(["-c", most, env!("CARGO_BIN_EXE_usher")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let limits = format!("/proc/{}/limits", running.id().unwrap());
        eventually("no core is dumped", async || {
            let limits = std::fs::read_to_string(&limits).unwrap();
            let core = limits.lines().find(|it| it.starts_with("Max core file"))?;
            let core: Vec<_> = core.split_whitespace().skip(4).collect();
            (core == ["0", "0", "bytes"]).then_some(())
        })
        .await;
        running.kill().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_there_is_called_whoever_else_does_not_answer() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("own")]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let place = notes.place();
    std::fs::write(
        &file,
        format!(
            "audit: off\nupstreams:\n  away: {{ command: [sleep, '600'], timeout: {{ start: 10m }} }}\n  notes: {{ {place} }}\n"
        ),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command
        .args(["call", "notes_own", "-c"])
        .arg(&file)
        .kill_on_drop(true);
    // It would wait for all others much longer.
    let ended = within(PATIENCE, "the command ends", command.output()).await;
    let ended = ended.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn nobody_waits_for_a_server_that_cannot_have_what_is_asked_for() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("own")]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let place = notes.place();
    std::fs::write(
        &file,
        format!(
            "audit: off\nupstreams:\n  away: {{ command: [sleep, '600'], timeout: {{ start: 10m }} }}\n  notes: {{ {place} }}\n"
        ),
    )
    .unwrap();
    // Of the one it is known what it has; the other could not have the second either, and what it has is waited for briefly.
    for slip in ["notes_onw", "note_own"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command
            .args(["call", slip, "-c"])
            .arg(&file)
            .kill_on_drop(true);
        let ended = within(PATIENCE, "the command ends", command.output()).await;
        let ended = ended.unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(told.contains("did you mean `notes_own`"), "{slip}: {told}");
        // It may be one that the other has.
        assert!(told.contains("away: still connecting"), "{slip}: {told}");
    }
}

/// It would pass for a server that offers nothing.
#[tokio::test]
async fn a_server_whose_lists_cannot_be_read_is_not_well() {
    let broken = [r#"{"resultType":"complete"}"#, r#"{"tools":{}}"#];
    for (list, code) in broken
        .map(|list| (list, 1))
        .into_iter()
        .chain([(r#"{"tools":[]}"#, 0)])
    {
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("own")])
            .on("tools/list", move |_: &Heard| Play::Result(list.into()));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("usher.yaml");
        let place = notes.place();
        std::fs::write(
            &file,
            format!("audit: off\nupstreams: {{ notes: {{ {place} }} }}\n"),
        )
        .unwrap();
        let run = async |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
            command
                .args(arguments)
                .arg("-c")
                .arg(&file)
                .kill_on_drop(true);
            within(PATIENCE, "the command ends", command.output())
                .await
                .unwrap()
        };
        let check = run(&["check", "--connect"]).await;
        let told = String::from_utf8(check.stdout).unwrap();
        assert_eq!(check.status.code(), Some(code), "{list}: {told}");
        assert!(told.contains("ready"), "{told}");
        let words = "its `tools/list` could not be read";
        assert_eq!(told.contains(words), code == 1, "{told}");
        let catalog = run(&["catalog"]).await;
        let told = String::from_utf8(catalog.stderr).unwrap();
        assert_eq!(told.contains(words), code == 1, "{told}");
    }
}

#[tokio::test]
async fn the_catalog_is_shown_as_somebody_sees_it() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("a"), tool("b")]);
    let directory = tempfile::tempdir().unwrap();
    let (file, policies) = (
        directory.path().join("usher.yaml"),
        directory.path().join("policies"),
    );
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(
        policies.join("main.cedar"),
        r#"permit(principal == User::"ana", action, resource == Tool::"notes_a");"#,
    )
    .unwrap();
    let place = notes.place();
    std::fs::write(
        &file,
        format!("policy: {{ dir: policies }}\nupstreams: {{ notes: {{ {place} }} }}\n"),
    )
    .unwrap();
    for (who, sees) in [
        (&["--as", "ana"][..], &["notes_a"][..]),
        (&["--as", "ben"], &[]),
        (&[], &["notes_a", "notes_b"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command
            .args(["catalog", "--json", "-c"])
            .arg(&file)
            .args(who);
        command.kill_on_drop(true);
        let ended = within(PATIENCE, "the command ends", command.output()).await;
        let told = String::from_utf8(ended.unwrap().stdout).unwrap();
        let names: Vec<_> = ["notes_a", "notes_b"]
            .into_iter()
            .filter(|name| told.contains(name))
            .collect();
        assert_eq!(names, sees, "{who:?}: {told}");
    }
}

#[tokio::test]
async fn what_is_called_and_got_as_somebody_is_decided_by_their_policies_and_recorded_as_theirs() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("a"), tool("b")])
        .prompts(&["plan"]);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("policies")).unwrap();
    std::fs::write(
        at("policies").join("main.cedar"),
        r#"permit(principal == User::"ana", action, resource == Tool::"notes_a");
permit(principal == User::"ana", action, resource == Prompt::"notes_plan");"#,
    )
    .unwrap();
    let text = format!(
        "audit: {{ dir: {} }}\npolicy: {{ dir: policies }}\nupstreams: {{ notes: {{ {} }} }}\n",
        at("records").display(),
        notes.place()
    );
    std::fs::write(at("usher.yaml"), text).unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command.args(arguments).arg("-c").arg(at("usher.yaml"));
        command.kill_on_drop(true);
        within(PATIENCE, "the command ends", command.output())
            .await
            .unwrap()
    };
    for (arguments, code) in [
        (&["call", "notes_a", "--as", "ana"][..], 0),
        (&["prompt", "notes_plan", "--as", "ana"], 0),
        (&["call", "notes_b", "--as", "ana"], 1),
        (&["call", "notes_a", "--as", "ben"], 1),
        (&["prompt", "notes_plan", "--as", "ben"], 1),
        (&["call", "notes_a"], 1),
    ] {
        let ended = run(arguments).await;
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {ended:?}");
    }
    assert_eq!(notes.heard("tools/call").len(), 1);
    let told = run(&[
        "audit",
        "query",
        "--json",
        "--principal",
        "ana",
        "--tool",
        "notes_a",
    ])
    .await;
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(r#""name":"ana""#), "{told}");
    assert!(!told.contains("auth_method"), "{told}");
}

/// What `check --connect` says of servers that do not come, in one line each.
async fn checked(upstreams: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    std::fs::write(&file, format!("audit: off\nupstreams: {{ {upstreams} }}\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command.args(["check", "--connect", "-c"]).arg(&file);
    command.kill_on_drop(true);
    let ended = within(PATIENCE, "the command ends", command.output()).await;
    let ended = ended.unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

/// SECURITY EGR-2
#[tokio::test]
async fn a_server_that_was_sent_no_credential_asks_for_a_login_and_refuses_none() {
    let closed = Upstream::http(Revision::V2026_07_28)
        .on("server/discover", |_: &Heard| Play::Status(401))
        .on("initialize", |_: &Heard| Play::Status(401));
    let place = closed.place();
    let told = checked(&format!("closed: {{ {place} }}")).await;
    assert!(told.contains("asks for a login (HTTP 401)"), "{told}");
    assert!(told.contains("authorization_code: {}"), "{told}");
    let told = checked(&format!("closed: {{ {place}, headers: {{ X-Who: me }} }}")).await;
    assert!(
        told.contains("refused our credential with HTTP 401"),
        "{told}"
    );
    assert!(!told.contains("authorization_code"), "{told}");
}

/// It may be about anything, such as a host that the server does not know.
#[tokio::test]
async fn a_server_that_refuses_the_request_itself_asks_for_no_login_and_is_told_in_its_words() {
    let error = r#"{"code":-32000,"message":"Access is only allowed at localhost:8931"}"#;
    let refusing = move |_: &Heard| Play::Refused(403, error.into());
    let closed = Upstream::http(Revision::V2026_07_28)
        .on("server/discover", refusing)
        .on("initialize", refusing);
    let told = checked(&format!("closed: {{ {} }}", closed.place())).await;
    let words = "refused the request with HTTP 403: ";
    assert!(told.contains(words), "{told}");
    assert!(told.contains("only allowed at localhost:8931"), "{told}");
    assert!(
        !told.contains("login") && !told.contains("authorization_code"),
        "{told}"
    );
}

/// SECURITY OPS-3, AUD-8
#[tokio::test]
async fn a_program_that_does_not_come_in_time_is_told_with_what_it_said() {
    let told = checked(
        "slow: { command: [sh, -c, 'echo looking for $KEY >&2; echo Welcome, $KEY; exec sleep 600'], \
         env: { KEY: hunter2-hunter2 }, timeout: { start: 2s } }",
    )
    .await;
    assert!(told.contains("no answer in time"), "{told}");
    assert!(told.contains("its last words: looking for"), "{told}");
    assert!(told.contains("no message: Welcome, "), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

/// Has a command run that starts a server which neither answers nor ends by itself, and sends it a signal once that runs, or once
/// `until` says so. How the command ended, and what it said.
async fn stopped(
    arguments: &[&str],
    yaml: &str,
    directory: &Path,
    signal: Signal,
    until: impl Future<Output = ()>,
) -> std::process::Output {
    let file = directory.join("usher.yaml");
    std::fs::write(&file, yaml).unwrap();
    let running = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(arguments)
        .arg("-c")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let process = Pid::from_raw(running.id().unwrap().try_into().unwrap());
    until.await;
    kill(process, signal).unwrap();
    let ended = within(PATIENCE, "the command ends", running.wait_with_output()).await;
    ended.unwrap()
}

/// A server that says where its process is, and nothing more; it does not even end with its input.
const HANGING: &str = "command: [sh, -c, 'echo $$ > pid.new; mv pid.new pid; exec sleep 600']";

/// Where that process is, once it runs.
async fn hanging(directory: &Path) -> Pid {
    let file = directory.join("pid");
    let pid = eventually("the server runs", async || {
        std::fs::read_to_string(&file).ok()
    });
    Pid::from_raw(pid.await.trim().parse().unwrap())
}

/// Whether it does, and does not only wait for somebody to ask how it ended.
fn runs(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(") ").next();
        state.is_some_and(|state| !state.starts_with('Z'))
    })
}

#[tokio::test]
async fn a_command_that_a_signal_ends_leaves_no_server_behind() {
    for (arguments, signal, code) in [
        (&["catalog"][..], Signal::SIGINT, 130),
        (&["check", "--connect"], Signal::SIGTERM, 143),
        (&["call", "hangs_x"], Signal::SIGINT, 130),
        (&["policy", "check", "--connect"], Signal::SIGTERM, 143),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        std::fs::create_dir(here.join("policies")).unwrap();
        std::fs::write(
            here.join("policies/a.cedar"),
            "permit(principal, action, resource);",
        )
        .unwrap();
        let yaml = format!(
            "audit: off\nupstreams: {{ hangs: {{ {HANGING}, cwd: {} }} }}\n",
            here.display()
        );
        let started = async {
            hanging(here).await;
        };
        let ended = stopped(arguments, &yaml, here, signal, started).await;
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {ended:?}");
        let server = hanging(here).await;
        eventually("the server is gone", async || (!runs(server)).then_some(())).await;
    }
}

#[tokio::test]
async fn a_call_that_a_signal_ends_is_on_record_as_cut_off() {
    let gate = Gate::new();
    let held = gate.clone();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("slow")])
        .on("tools/call", move |_: &Heard| {
            Play::Gated(
                Vec::new(),
                held.clone(),
                Box::new(Play::Result("{}".into())),
            )
        });
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let yaml = format!(
        "audit: {{ dir: '{}' }}\nupstreams: {{ notes: {{ {} }} }}\n",
        here.join("log").display(),
        notes.place()
    );
    let heard = async {
        notes.until_heard("tools/call", 1).await;
    };
    let ended = stopped(&["call", "notes_slow"], &yaml, here, Signal::SIGINT, heard).await;
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(
        told.contains("whether the call took effect is unknown"),
        "{told}"
    );
    let told = records(&here.join("log"), "tools/call");
    assert_eq!(told.last().unwrap()["stage"], "outcome", "{told:#?}");
    assert_eq!(told.last().unwrap()["reason"], "shutting_down");
}
