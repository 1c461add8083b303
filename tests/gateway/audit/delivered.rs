//! Records beside the file: to a receiver of OpenTelemetry, and to stdout (SECURITY AUD-4, AUD-9).

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    process::Command,
};
use usher::{
    audit::{
        key::VerifyingKey,
        verify::{Kind, checkpoints_in, verify},
    },
    tasks::Tasks,
};

use crate::harness::{Gateway, Play, Revision, Upstream, eventually, text_result, tool};

/// A receiver of OTLP over HTTP.
struct Receiver {
    address: std::net::SocketAddr,
    /// What it answers next; 200 when there is nothing.
    answers: Arc<Mutex<VecDeque<u16>>>,
    /// The numbers of the records that it took.
    taken: Arc<Mutex<Vec<u64>>>,
    requests: Arc<Mutex<Vec<Value>>>,
    tasks: Tasks,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            answers: Arc::default(),
            taken: Arc::default(),
            requests: Arc::default(),
            tasks: Tasks::new(),
        };
        let (answers, taken) = (receiver.answers.clone(), receiver.taken.clone());
        let requests = receiver.requests.clone();
        receiver.tasks.spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut text = Vec::new();
                let body = loop {
                    let mut buffer = [0; 65_536];
                    let read = socket.read(&mut buffer).await.unwrap();
                    text.extend_from_slice(&buffer[..read]);
                    let Some(head) = memchr::memmem::find(&text, b"\r\n\r\n") else {
                        continue;
                    };
                    let fields = String::from_utf8(text[..head].to_vec()).unwrap();
                    assert!(fields.starts_with("POST /v1/logs HTTP/1.1"), "{fields}");
                    let fields = fields.to_lowercase();
                    assert!(fields.contains("content-type: application/json"), "{fields}");
                    let length = fields.lines().find_map(|line| line.strip_prefix("content-length:"));
                    let length: usize = length.unwrap().trim().parse().unwrap();
                    if text.len() >= head + 4 + length {
                        break text.split_off(head + 4);
                    }
                };
                let status = answers.lock().unwrap().pop_front().unwrap_or(200);
                let body: Value = serde_json::from_slice(&body).unwrap();
                if status == 200 {
                    taken.lock().unwrap().extend(sequences(&body));
                    requests.lock().unwrap().push(body);
                }
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        receiver
    }

    fn answer(&self, statuses: &[u16]) {
        self.answers.lock().unwrap().extend(statuses);
    }

    fn taken(&self) -> Vec<u64> {
        self.taken.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

fn sequences(body: &Value) -> Vec<u64> {
    let records = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
    let seq = |record: &Value| {
        let all = record["attributes"].as_array().unwrap();
        let one = all.iter().find(|one| one["key"] == "usher.audit.seq");
        one.unwrap()["value"]["intValue"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    records.as_array().unwrap().iter().map(seq).collect()
}

// SECURITY AUD-9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_gets_every_record_in_order_though_it_was_away_and_the_gateway_was_restarted() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    receiver.answer(&[503, 429]);
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("done")));
    let setting = format!(
        "audit: {{ dir: '{}', sinks: {{ otlp: \"http://{}\" }} }}",
        directory.path().display(),
        receiver.address
    );
    let mut last = 0;
    for life in 0..3 {
        let gateway = Gateway::of().setting(&setting).upstream("notes", &notes);
        let gateway = gateway.start().await;
        let client = gateway.client(Revision::V2026_07_28).await;
        for _ in 0..5 {
            client.call("notes_t", "{}").await.result();
        }
        eventually("it is there", || async {
            (receiver.answers.lock().unwrap().is_empty() && !receiver.taken().is_empty())
                .then_some(())
        })
        .await;
        gateway.app.clone().shutdown().await;
        let written = eventually("what was written is delivered", || async {
            let taken = receiver.taken();
            let end = last_of(directory.path());
            (taken.last() == Some(&end)).then_some(end)
        });
        last = written.await;
        assert_eq!(
            receiver.taken(),
            (1..=last).collect::<Vec<_>>(),
            "life {life}"
        );
    }
    // Checkpoints are among them: a cut tail is noticed by who keeps what was sent.
    let kept: String = receiver
        .requests
        .lock()
        .unwrap()
        .iter()
        .flat_map(originals)
        .collect();
    let outside = checkpoints_in(kept.as_bytes()).unwrap();
    assert!(outside.len() >= 3, "one at the end of each life");
    let key = std::fs::read_to_string(directory.path().join("key.pub")).unwrap();
    let key = [VerifyingKey::parse(&key).unwrap()];
    let report = verify(directory.path(), &key, &outside, |_| {}).unwrap();
    assert_eq!(
        (report.faults, report.last.unwrap().seq),
        (Vec::new(), last)
    );
    let newest = usher::audit::log::segments(directory.path())
        .unwrap()
        .pop()
        .unwrap();
    std::fs::remove_file(newest.path).unwrap();
    let report = verify(directory.path(), &key, &outside, |_| {}).unwrap();
    assert!(
        matches!(report.faults[0].kind, Kind::Cut { .. }),
        "{:?}",
        report.faults
    );
}

/// The records as they stand in the file, each in a line.
fn originals(body: &Value) -> Vec<String> {
    let records = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
    let original = |record: &Value| {
        let all = record["attributes"].as_array().unwrap();
        let one = all.iter().find(|one| one["key"] == "log.record.original");
        format!(
            "{}\n",
            one.unwrap()["value"]["stringValue"].as_str().unwrap()
        )
    };
    records.as_array().unwrap().iter().map(original).collect()
}

fn last_of(directory: &std::path::Path) -> u64 {
    let mut follower = usher::audit::follow::Follower::after(directory, 0);
    loop {
        let batch = follower.read(usize::MAX, usize::MAX).unwrap();
        if batch.is_empty() {
            return batch.last;
        }
    }
}

// SECURITY AUD-4, AUD-9
#[tokio::test]
async fn stdout_gets_the_records_and_the_logs_the_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    std::fs::write(
        &file,
        format!(
            "listen: {{ address: \"127.0.0.1:0\" }}\naudit: {{ dir: audit, sinks: {{ stdout: true }} }}\nupstreams: {{ notes: {{ {} }} }}\n",
            notes.place()
        ),
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["serve", "-c"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The first record comes by itself.
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.starts_with(r#"{"hash":""#), "{first}");
    let id = nix::unistd::Pid::from_raw(child.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    let mut all = vec![first];
    while let Some(line) = lines.next_line().await.unwrap() {
        all.push(line);
    }
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success());
    let audit = directory.path().join("audit");
    let written =
        std::fs::read_to_string(usher::audit::log::segments(&audit).unwrap().remove(0).path);
    assert_eq!(
        all.join("\n") + "\n",
        written.unwrap(),
        "the lines of the file and no others"
    );
    // And who has collected the logs alone has the checkpoints.
    for collected in [all.join("\n").into_bytes(), output.stderr] {
        let outside = checkpoints_in(&collected[..]).unwrap();
        let text = String::from_utf8_lossy(&collected);
        assert!(!outside.is_empty(), "{text}");
        let key = std::fs::read_to_string(audit.join("key.pub")).unwrap();
        let key = [VerifyingKey::parse(&key).unwrap()];
        let report = verify(&audit, &key, &outside, |_| {}).unwrap();
        assert_eq!(report.faults, []);
        assert!(report.outside.is_some());
    }
}
