//! The gateway itself on a pipe: the program, as a client starts it.

use std::{
    io::Write as _,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{ExitStatus, Stdio},
};

use nix::sys::signal::Signal;
use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, Command},
};

use super::{PATIENCE, within};

/// A running `usher stdio`. It is killed with the test.
pub(crate) struct Piped {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    // The program reads it at start; it goes with the test.
    _file: NamedTempFile,
}

impl Piped {
    /// Starts the program on this configuration.
    pub(crate) async fn start(configuration: &str) -> Self {
        Self::begin(configuration, None)
    }

    /// The same, with a socket for its output, as Node starts what it calls.
    pub(crate) async fn start_on_socket(configuration: &str) -> Self {
        Self::begin(configuration, Some(UnixStream::pair().unwrap()))
    }

    fn begin(configuration: &str, sockets: Option<(UnixStream, UnixStream)>) -> Self {
        let mut file = NamedTempFile::with_suffix(".yaml").unwrap();
        file.write_all(configuration.as_bytes()).unwrap();
        let (ours, output) = match sockets {
            Some((ours, its)) => (Some(ours), OwnedFd::from(its).into()),
            None => (None, Stdio::piped()),
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["stdio", "-c"])
            .arg(file.path())
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output: Box<dyn AsyncRead + Send + Unpin> = if let Some(ours) = ours {
            ours.set_nonblocking(true).unwrap();
            Box::new(tokio::net::UnixStream::from_std(ours).unwrap())
        } else {
            Box::new(child.stdout.take().unwrap())
        };
        let output = BufReader::new(output).lines();
        Self {
            child,
            input,
            output,
            _file: file,
        }
    }

    pub(crate) async fn say(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// The next line it says.
    pub(crate) async fn hear(&mut self) -> String {
        let line = within(PATIENCE, "a line on the pipe", self.output.next_line()).await;
        line.unwrap().expect("the program ended")
    }

    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        self.hear().await
    }

    /// Asks until what is asked for is known: upstreams are connected to in the background.
    pub(crate) async fn until_listed(&mut self, line: &str) -> String {
        let asking = async {
            loop {
                let answer = self.ask(line).await;
                if !answer.contains("upstream_unavailable") {
                    return answer;
                }
            }
        };
        within(PATIENCE, "a name that is known", asking).await
    }

    /// Tells the program to stop, as a process supervisor does.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), signal).unwrap();
    }

    /// Ends the input, and says what the program says until it ends by itself, in order.
    pub(crate) async fn rest(mut self) -> Vec<String> {
        drop(self.input);
        let work = async {
            let mut lines = Vec::new();
            while let Some(line) = self.output.next_line().await.unwrap() {
                lines.push(line);
            }
            assert!(self.child.wait().await.unwrap().success());
            lines
        };
        within(PATIENCE, "the end of the program", work).await
    }

    /// Says this line and reads no more: the program must end by itself, though its input is open.
    pub(crate) async fn deafen(mut self, line: &str) {
        drop(self.output);
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let ended = within(PATIENCE, "the end of the program", self.child.wait()).await;
        ended.unwrap();
    }

    /// How the program ends by itself, though its input is open.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        let ended = within(PATIENCE, "the end of the program", self.child.wait()).await;
        ended.unwrap()
    }

    /// Goes away: the program must end by itself.
    pub(crate) async fn hang_up(mut self) {
        drop((self.input, self.output));
        let ended = within(PATIENCE, "the end of the program", self.child.wait()).await;
        ended.unwrap();
    }

    /// Ends the input, hears one line more, and goes away while there is nothing to be said: the program must end by itself.
    pub(crate) async fn hang_up_later(mut self) {
        drop(self.input);
        let line = within(PATIENCE, "a line on the pipe", self.output.next_line()).await;
        line.unwrap().expect("the program ended");
        drop(self.output);
        let ended = within(PATIENCE, "the end of the program", self.child.wait()).await;
        ended.unwrap();
    }

    /// Ends the input: the program must end by itself, in order.
    pub(crate) async fn end(mut self) {
        drop(self.input);
        let status = within(PATIENCE, "the end of the program", self.child.wait()).await;
        assert!(status.unwrap().success());
    }
}
