//! Real children: shell scripts that behave, and such that do not.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use futures_util::{FutureExt, StreamExt};
use tokio::time::Duration;

use super::{super::rig::*, *};
use crate::jsonrpc::Frame;

/// Does what the method of each request says. `$id` is the request's.
const CHILD: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  ok="{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"n\":$id}}"
  case "$line" in
    *'"method":"echo"'*) echo "$ok" ;;
    *'"method":"never"'*) ;;
    *'"method":"noise"'*) echo 'Listening on stdio!'; echo; echo '{"half":'; echo "$ok" ;;
    *'"method":"garbage"'*) i=0; while [ $i -lt 100 ]; do echo garbage; i=$((i+1)); done ;;
    *'"method":"die"'*) echo 'out of cheese' >&2; exit 3 ;;
    *'"method":"last"'*) echo "$ok"; exit 0 ;;
    *'"method":"long"'*) head -c 17000000 /dev/zero | tr '\0' x; echo "$ok" ;;
    *'"method":"big"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"a":"' "$id"; head -c 3000000 /dev/zero | tr '\0' x; printf '"}}\n' ;;
    *'"method":"flood"'*) while :; do echo '{"jsonrpc":"2.0","method":"m"}'; done ;;
    *'"method":"batch"'*) echo "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$id,\"progress\":1}},$ok]" ;;
    *'"method":"burst"'*) i=0; while [ $i -lt 600 ]; do echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$id,\"progress\":$i}}"; i=$((i+1)); done
      echo '{"jsonrpc":"2.0","id":7,"method":"roots/list"}'; echo "$ok"; exit 0 ;;
    *'"method":"environment"'*) env >&2; grep NoNewPrivs /proc/self/status >&2; echo "$ok" ;;
    *'"method":"complain"'*) printf 'red \033[31m\r\n' >&2; head -c 200000 /dev/zero | tr '\0' y >&2; echo end >&2; echo "$ok" ;;
    *'"method":"stubborn"'*) trap '' TERM; echo "$ok" ;;
    *'"method":"closed"'*) exec >&-; sleep 60 ;;
    *'"method":"helper"'*) sleep 300 & echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$!}}" ;;
    *'"method":"orphan"'*) pid=$(sleep 0.2 >/dev/null 2>&1 & echo $!); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$pid}}" ;;
    *'"method":"struck"'*) pid=$(sh -c 'sleep 0.1; kill -40 $$' >/dev/null 2>&1 & echo $!); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$pid}}" ;;
    *'"method":"deaf"'*) exec <&-; echo "$ok"; sleep 60 ;;
  esac
done
"#;

fn command(command: &[&str]) -> StdioSpec {
    StdioSpec {
        command: command.iter().map(|&part| part.to_owned()).collect(),
        told: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
    }
}

async fn start(spec: &StdioSpec, tasks: &Tasks) -> Result<Stdio, UpstreamError> {
    let bounds = PeerBounds::default();
    Stdio::spawn(&UpstreamId::parse("u").unwrap(), spec, &bounds, tasks).await
}

async fn child(tasks: &Tasks) -> Stdio {
    start(&command(&["sh", "-c", CHILD]), tasks).await.unwrap()
}

/// Nothing that is tested here takes longer, and a hang must fail.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future)
        .await
        .expect("hangs")
}

#[tokio::test]
async fn calls_are_answered_in_any_number_and_order() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let calls = (0..200).map(|id| ask(&child, directed(id, "echo")));
    let answers = soon(futures_util::future::join_all(calls)).await;
    for (id, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), [format!("{{\"n\":{id}}}")]);
    }
    assert_eq!(
        soon(ask(&child, notification())).await.unwrap(),
        ["accepted 200"]
    );
}

#[tokio::test]
async fn a_frame_goes_out_on_one_line() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let mut out = directed(1, "echo");
    let text = String::from_utf8(out.frame.to_vec()).unwrap();
    out.frame = text.replace("\"method\"", "\r\n\"method\"").into();
    assert_eq!(soon(ask(&child, out)).await.unwrap(), ["{\"n\":1}"]);
}

#[tokio::test]
async fn noise_is_passed_over_and_batches_and_large_lines_are_read() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let answer = soon(ask(&child, directed(1, "noise"))).await.unwrap();
    assert_eq!(answer, ["{\"n\":1}"]);
    let answer = soon(ask(&child, directed(2, "batch"))).await.unwrap();
    assert_eq!(answer, ["notifications/progress", "{\"n\":2}"]);
    let answer = soon(ask(&child, directed(3, "big"))).await.unwrap();
    assert_eq!(answer[0].len(), 3_000_000 + 8);
}

/// The child of one caller, whose requests are of the call with this number.
#[derive(Debug)]
struct OfOne(u64);

impl Owners for OfOne {
    fn whose(&self, frame: &Frame) -> Option<u64> {
        matches!(frame, Frame::Request(_)).then_some(self.0)
    }

    fn late(&self, _: u64) {}

    fn is_of_one(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_burst_of_a_callers_own_child_comes_whole_and_its_question_with_it() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    child.sort_by(Arc::new(OfOne(1)));
    let answer = soon(ask(&child, directed(1, "burst"))).await.unwrap();
    assert_eq!(answer.len(), 602);
    assert_eq!(answer[600..], ["roots/list", "{\"n\":1}"]);
}

/// A child that answers and ends has answered, also whom it told more than they have read by then.
#[tokio::test]
async fn the_answer_of_a_child_that_has_ended_is_read_though_what_it_told_was_not() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    child.sort_by(Arc::new(OfOne(1)));
    let sent = soon(child.send(directed(1, "burst"))).await.unwrap();
    let Answer::Stream(_, mut frames) = sent else {
        panic!("no stream")
    };
    soon(child.lost()).await;
    let mut last = String::new();
    while let Some(frame) = soon(frames.next()).await {
        last = gist(&frame.unwrap());
    }
    assert_eq!(last, "{\"n\":1}");
}

#[tokio::test]
async fn nothing_but_garbage_ends_the_child() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let error = soon(ask(&child, directed(1, "garbage"))).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    let lost = soon(child.lost()).await;
    assert_eq!(lost.reason(), "upstream_protocol_error");
}

#[tokio::test]
async fn a_line_over_16_mib_ends_the_child() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let error = soon(ask(&child, directed(1, "long"))).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    let lost = soon(child.lost()).await;
    assert!(
        matches!(lost, UpstreamError::TooLarge(max) if max == 16 << 20),
        "{lost}"
    );
}

#[tokio::test]
async fn death_in_a_call_is_told_with_status_and_last_words() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let (silent, dead) = soon(async {
        tokio::join!(
            ask(&child, directed(1, "never")),
            ask(&child, directed(2, "die"))
        )
    })
    .await;
    for error in [
        silent.unwrap_err(),
        dead.unwrap_err(),
        soon(child.lost()).await,
    ] {
        let error = error.to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("out of cheese"), "{error}");
    }
    let after = soon(ask(&child, directed(3, "echo"))).await.unwrap_err();
    assert_eq!(after.reason(), "upstream_unavailable");
}

#[tokio::test]
async fn what_was_said_before_death_is_still_an_answer() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let answer = soon(ask(&child, directed(1, "last"))).await.unwrap();
    assert_eq!(answer, ["{\"n\":1}"]);
    soon(child.lost()).await;
}

#[tokio::test]
async fn a_flood_hurts_nobody_else() {
    let tasks = Tasks::new();
    let (flooding, other) = (child(&tasks).await, child(&tasks).await);
    let mut frames = flooding.unsolicited(HeaderMap::new()).await.unwrap();
    let mut flood = Box::pin(ask(&flooding, directed(1, "flood")));
    assert!((&mut flood).now_or_never().is_none());
    soon(frames.next()).await.unwrap().unwrap();
    for id in 0..50 {
        let answer = soon(ask(&other, directed(id, "echo"))).await;
        assert!(answer.is_ok());
    }
    drop(flood);
    // Its back-pressure must not keep it from being closed.
    soon(flooding.close()).await;
    soon(flooding.lost()).await;
}

#[tokio::test]
async fn an_abandoned_call_leaves_the_others_alone() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let mut hanging = Box::pin(ask(&child, directed(1, "never")));
    assert!((&mut hanging).now_or_never().is_none());
    drop(hanging);
    assert!(soon(ask(&child, directed(2, "echo"))).await.is_ok());
    assert!(soon(ask(&child, directed(1, "echo"))).await.is_err());
}

#[tokio::test]
async fn the_environment_is_the_given_one_and_privileges_cannot_grow() {
    let tasks = Tasks::new();
    let mut spec = command(&["sh", "-c", CHILD]);
    spec.env.insert("TOKEN".into(), "s3cret".to_owned().into());
    let child = start(&spec, &tasks).await.unwrap();
    soon(ask(&child, directed(1, "environment"))).await.unwrap();
    soon(child.close()).await;
    let said = child.last_words();
    let names: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _value)| name)
        // A shell sets these itself.
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    assert!(said.contains("TOKEN=s3cret"), "{said}");
    for name in &names {
        let allowed = ["PATH", "HOME", "LANG", "TMPDIR", "TOKEN"];
        assert!(allowed.contains(name), "{name}");
    }
    if cfg!(target_os = "linux") {
        assert!(said.contains("NoNewPrivs:\\t1"), "{said}");
    }
}

/// SECURITY AUD-8
#[tokio::test]
async fn what_the_words_of_a_command_tell_in_confidence_is_in_no_last_words() {
    let tasks = Tasks::new();
    let script = "echo using $1, $2 and $3 >&2";
    let words = ["hunter2-hunter2", "swordfish-1", "plain-word"];
    let mut spec = command(&["sh", "-c", script, "x-mcp", words[0], words[1], words[2]]);
    let told = [("api-key", words[0]), ("", words[1])];
    spec.told = told.map(|(name, value)| (name.into(), value.into())).into();
    let child = start(&spec, &tasks).await.unwrap();
    soon(child.close()).await;
    assert_eq!(
        child.last_words(),
        "using [redacted:api-key], [redacted:own_credential] and plain-word"
    );
}

#[tokio::test]
async fn stderr_is_kept_bounded_and_printable() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    soon(ask(&child, directed(1, "complain"))).await.unwrap();
    soon(child.close()).await;
    let said = child.last_words();
    assert!(said.ends_with("end"), "{}", said.len());
    assert!((60_000..=64 << 10).contains(&said.len()), "{}", said.len());
    assert!(!said.contains("red"));
}

#[tokio::test]
async fn a_stubborn_child_is_killed_in_the_end() {
    let tasks = Tasks::new();
    // It ignores the end of its input as well as SIGTERM.
    let script = format!("{CHILD} while :; do sleep 1; done");
    let child = start(&command(&["sh", "-c", &script]), &tasks)
        .await
        .unwrap();
    soon(ask(&child, directed(1, "stubborn"))).await.unwrap();
    soon(child.close()).await;
    let lost = soon(child.lost()).await.to_string();
    assert!(lost.contains("closed"), "{lost}");
}

#[tokio::test]
async fn an_orderly_child_is_only_told_by_the_end_of_its_input() {
    let tasks = Tasks::new();
    let directory = tempfile::tempdir().unwrap();
    let mut spec = command(&[
        "sh",
        "-c",
        "trap 'echo x > term' TERM; cat >/dev/null; echo x > done",
    ]);
    spec.cwd = Some(directory.path().to_owned());
    let child = start(&spec, &tasks).await.unwrap();
    soon(child.close()).await;
    assert!(directory.path().join("done").exists());
    assert!(!directory.path().join("term").exists());
}

#[tokio::test]
async fn a_child_that_closes_its_output_or_input_is_lost() {
    let tasks = Tasks::new();
    let silent = child(&tasks).await;
    let error = soon(ask(&silent, directed(1, "closed"))).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");

    let deaf = child(&tasks).await;
    soon(ask(&deaf, directed(1, "deaf"))).await.unwrap();
    loop {
        match soon(ask(&deaf, directed(2, "echo"))).await {
            Ok(answer) => panic!("{answer:?}"),
            Err(error) => assert_eq!(error.reason(), "upstream_unavailable"),
        }
        if deaf.lost().now_or_never().is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn helpers_of_a_child_die_with_the_transport() {
    let tasks = Tasks::new();
    let child = child(&tasks).await;
    let Ok(answer) = soon(ask(&child, directed(1, "helper"))).await else {
        panic!()
    };
    let pid = answer[0].trim_matches(|c: char| !c.is_ascii_digit());
    let helper = nix::unistd::Pid::from_raw(pid.parse().unwrap());
    let alive = || match std::fs::read_to_string(format!("/proc/{helper}/stat")) {
        Ok(stat) => !stat.contains(") Z "),
        Err(_) => nix::sys::signal::kill(helper, None).is_ok() && !cfg!(target_os = "linux"),
    };
    assert!(alive());
    drop(child);
    soon(async {
        while alive() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_missing_program_is_told_clearly() {
    let tasks = Tasks::new();
    for (program, said) in [
        (
            "no-such-program-here",
            "no program `no-such-program-here` in PATH",
        ),
        ("/no/such", "`/no/such` is no program"),
        ("/etc/passwd", "`/etc/passwd` is no program"),
        ("/", "`/` is no program"),
    ] {
        let error = start(&command(&[program]), &tasks)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(start(&command(&[]), &tasks).await.is_err());
}

/// Where it was looked for is not what everybody takes for granted.
#[test]
fn a_relative_program_that_is_not_there_is_told_with_the_place_where_it_was_looked_for() {
    let told = |cwd: Option<&Path>| {
        let error = launch::resolve("./server", None, cwd).unwrap_err();
        error.to_string()
    };
    let here = std::env::current_dir().unwrap().join("server");
    let here = format!("it was looked for at `{}`", here.display());
    assert!(told(None).ends_with(&here), "{}", told(None));
    let there = told(Some(Path::new("/no/such")));
    assert!(
        there.ends_with("it was looked for at `/no/such/server`"),
        "{there}"
    );
}

#[test]
fn a_program_is_found_in_absolute_directories_of_the_path_only() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("p");
    std::fs::write(&program, "").unwrap();
    let path = directory.path().as_os_str();
    assert!(launch::resolve("p", Some(path), None).is_err());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let found = |name, path, cwd| launch::resolve(name, path, cwd).ok();
    assert_eq!(found("p", Some(path), None), Some(program.clone()));
    assert_eq!(
        found("./p", None, Some(directory.path())).map(strip),
        Some(program)
    );
    assert_eq!(found("sh", Some("bin".as_ref()), None), None);
}

/// Without the `.` that a relative name leaves in the middle.
fn strip(path: PathBuf) -> PathBuf {
    path.components().collect()
}

/// As the first process of a container we are whom orphans fall to, and have them to wait for beside our own children.
#[cfg(target_os = "linux")]
#[test]
fn the_death_of_a_child_is_noticed_where_its_helpers_fall_to_us() {
    const ALONE: &str = "USHER_TEST_ORPHANS";
    if std::env::var_os(ALONE).is_none() {
        // Whom orphans fall to is said of a whole process: this gets one of its own.
        let own = std::env::current_exe().unwrap();
        let name = "upstream::transport::stdio::tests::the_death_of_a_child_is_noticed_where_its_helpers_fall_to_us";
        let mut alone = std::process::Command::new(own);
        let ended = alone.args(["--exact", name]).env(ALONE, "1").status();
        assert!(ended.unwrap().success());
        return;
    }
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let tasks = Tasks::new();
        let child = child(&tasks).await;
        let running = |answer: &str| {
            let pid: String = answer.chars().filter(char::is_ascii_digit).collect();
            Path::new("/proc").join(pid).exists()
        };
        let answer = soon(ask(&child, directed(1, "helper"))).await.unwrap();
        // A signal that has no name ends the first of them.
        let struck = soon(ask(&child, directed(4, "struck"))).await.unwrap();
        let orphan = soon(ask(&child, directed(3, "orphan"))).await.unwrap();
        assert!(running(&answer[0]));
        // Whoever has ended is waited for, while the child lives.
        soon(async {
            while running(&orphan[0]) || running(&struck[0]) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let error = soon(ask(&child, directed(2, "die"))).await.unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(
            soon(child.lost())
                .await
                .to_string()
                .contains("out of cheese")
        );
        // It went with the child, and nothing is left of it.
        assert!(!running(&answer[0]));
    });
}
