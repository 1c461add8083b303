//! The gateway as a process of its own on a free port: what is of the whole process cannot be tested beside others.

use std::{io::Write as _, net::SocketAddr, process::Stdio};

use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::{Client, PATIENCE, Revision, within};

/// A running `usher serve`. It is killed with the test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _child: Child,
    // Open for what more it says.
    _told: Lines<BufReader<ChildStdout>>,
    // The program reads it at start; it goes with the test.
    _file: NamedTempFile,
}

impl Served {
    /// Starts the program on this configuration, and waits until it listens.
    pub(crate) async fn start(configuration: &str) -> Self {
        Self::begun(configuration, Command::new(env!("CARGO_BIN_EXE_usher"))).await
    }

    /// The same where no more than so many files may be open.
    pub(crate) async fn start_with_files(configuration: &str, files: usize) -> Self {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_usher")]);
        Self::begun(configuration, command).await
    }

    async fn begun(configuration: &str, mut command: Command) -> Self {
        let mut file = NamedTempFile::with_suffix(".yaml").unwrap();
        write!(
            file,
            "listen: {{ address: \"127.0.0.1:0\" }}\n{configuration}"
        )
        .unwrap();
        let said = NamedTempFile::new().unwrap();
        let mut child = command
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["serve", "-c"])
            .arg(file.path())
            .stdout(Stdio::piped())
            .stderr(said.reopen().unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = async {
            loop {
                let Some(line) = told.next_line().await.unwrap() else {
                    let said = std::fs::read_to_string(said.path()).unwrap();
                    panic!("the program ended: {said}");
                };
                if let Some((_, url)) = line.split_once("http://") {
                    let (address, _) = url.split_once("/mcp").unwrap();
                    return address.parse().unwrap();
                }
            }
        };
        let address = within(PATIENCE, "the program listens", ready).await;
        Self {
            address,
            _child: child,
            _told: told,
            _file: file,
        }
    }

    pub(crate) async fn client(&self, revision: Revision) -> Client {
        let client = Client::connect(self.address, "/mcp", revision).await;
        client.unwrap()
    }
}
