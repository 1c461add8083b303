//! A program that floods its standard output is ended, and started again without anybody's help (SECURITY OPS-3, REL-2).
//!
//! Its callers are told, and nobody else is held up (issue 2, acceptance 8). The program is a real one: it makes its noise beside the test, as fast as it can and until it is ended.

use std::{cell::Cell, fs, path::PathBuf};

use tempfile::TempDir;

use usher::protocol::Era;

use crate::harness::{Gateway, PATIENCE, Pairing, Revision, Upstream, eventually, tool, within};

/// Serves one tool in either era. When a file appears, or by the first call, it floods, once in all its lives.
const PROGRAM: &str = r##"
marks=$1 era=$2 how=$3
echo started >>"$marks/starts"
[ "$era" = modern ] && done=',"resultType":"complete"' kept=',"ttlMs":0,"cacheScope":"private"'

flood() {
  until [ -e "$marks/go" ]; do sleep 0.02; done
  mkdir "$marks/flooded" 2>/dev/null || return
  echo $BASHPID >"$marks/new" && mv "$marks/new" "$marks/pid"
  case $how in
    line) exec tr '\0' x </dev/zero ;;
    noise) exec yes 'this is no message' ;;
    messages)
      yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"again"}}' | head -n 20000
      : >"$marks/over" ;;
  esac
}
flood &

say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  case $era$line in
    modern*'"server/discover"'*)
      say '"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}'"$kept$done}" ;;
    legacy*'"initialize"'*)
      say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"flooder","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]'"$kept$done}" ;;
    *'"tools/call"'*)
      if [ ! -e "$marks/go" ]; then
        : >"$marks/go"
        [ "$how" = messages ] || continue
        until [ -e "$marks/over" ]; do sleep 0.02; done
      fi
      say '"result":{"content":[{"type":"text","text":"called t"}]'"$done}" ;;
    *) say '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"##;

/// What the program leaves behind of what it did.
struct Marks(TempDir);

impl Marks {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("program"), PROGRAM).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What a configuration says of the program.
    fn block(&self, revision: Revision, how: &str) -> String {
        let era = if revision.era() == Era::Modern {
            "modern"
        } else {
            "legacy"
        };
        let (program, marks) = (self.path("program"), self.0.path());
        let command = format!("[bash, {program:?}, {marks:?}, {era}, {how}]");
        let limits = "call: 25s, list: 25s, connect: 25s, start: 25s, silence: 25s";
        format!("{{ command: {command}, timeout: {{ {limits} }} }}")
    }

    /// How often it was started.
    fn starts(&self) -> usize {
        fs::read_to_string(self.path("starts"))
            .unwrap()
            .lines()
            .count()
    }

    /// Waits until it floods; its process.
    async fn flooding(&self) -> String {
        eventually("it floods", || async {
            fs::read_to_string(self.path("pid")).ok()
        })
        .await
    }
}

/// Whether a process runs; one that has ended and is not yet waited for does not.
fn runs(process: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    state.is_ok_and(|state| !state.contains(") Z "))
}

/// One gateway before a program that floods so, and a sound server.
async fn floods(pair: Pairing, how: &str, asked: bool) {
    let marks = Marks::new();
    let good = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of()
        .placed("bad", &marks.block(pair.upstream, how))
        .upstream("good", &good)
        .start()
        .await;
    let client = pair.client(&gateway).await;
    assert_eq!(client.tools().await, ["bad_t", "good_t"]);
    let starts = marks.starts();
    let endless = how != "messages";

    let over = Cell::new(false);
    let flooded = async {
        if asked {
            let call = async { client.call("bad_t", "{}").await };
            let answer = within(PATIENCE, "a call that is answered by a flood", call).await;
            if endless {
                assert_eq!(answer.tool_error(), "upstream_unavailable", "{answer:?}");
                assert!(answer.text().contains("`bad`"), "{answer:?}");
            } else {
                // It says too much, and what it is asked for.
                assert_eq!(answer.text(), "called t");
            }
        } else {
            fs::write(marks.path("go"), "").unwrap();
        }
        let process = marks.flooding().await;
        if endless {
            let ended = || async { (!runs(&process)).then_some(()) };
            eventually("whatever floods is ended", ended).await;
        } else {
            let said = || async { marks.path("over").exists().then_some(()) };
            eventually("all is said", said).await;
        }
        over.set(true);
    };
    let others = async {
        let mut count = 0;
        while !over.get() || count < 20 {
            assert_eq!(client.call("good_t", "{}").await.text(), "called t");
            count += 1;
        }
        count
    };
    let ((), count) = tokio::join!(flooded, others);
    assert_eq!(good.heard("tools/call").len(), count);

    eventually("it is back by itself", || async {
        let answer = client.call("bad_t", "{}").await;
        if answer.text() == "called t" {
            return Some(());
        }
        assert_eq!(answer.tool_error(), "upstream_unavailable", "{answer:?}");
        None
    })
    .await;
    assert_eq!(client.tools().await, ["bad_t", "good_t"]);
    assert_eq!(
        marks.starts() > starts,
        endless,
        "{starts} and {} starts",
        marks.starts()
    );
}

pairings! {
    async fn a_program_that_answers_with_one_line_without_end_is_ended_and_started_again(pair: Pairing) {
        floods(pair, "line", true).await;
    }
}

pairings! {
    async fn a_program_that_answers_with_lines_that_are_no_messages_is_ended_and_started_again(pair: Pairing) {
        floods(pair, "noise", true).await;
    }
}

pairings! {
    async fn a_program_that_says_much_before_it_answers_is_waited_for(pair: Pairing) {
        floods(pair, "messages", true).await;
    }
}

pairings! {
    async fn a_program_that_floods_unasked_harms_nobody_else_and_comes_back(pair: Pairing) {
        tokio::join!(floods(pair, "line", false), floods(pair, "noise", false), floods(pair, "messages", false));
    }
}
