//! One Usher with all the servers behind it.

use std::{
    fs::{self, File},
    process::Stdio,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Map, Value, json};
use tokio::{
    process::{Child, Command},
    time::{interval, timeout},
};

use crate::{
    LISTS,
    client::{Client, Connection},
    servers::{Server, World, free_port, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(120);

/// A running Usher. Dropped without being stopped, it is killed.
pub(crate) struct Usher {
    connection: Connection,
    log: String,
    process: Child,
}

impl Usher {
    /// Starts `usher serve` in front of `servers`.
    pub(crate) async fn start(world: &World, servers: &[Server]) -> Self {
        let port = free_port();
        let listen = json!({"address": format!("127.0.0.1:{port}")});
        let file = configure(world, servers, json!({"listen": listen}));
        Self::serve(world, &file, port, &[]).await
    }

    /// Starts `usher serve` with a configuration that names this port, and with these variables.
    pub(crate) async fn serve(
        world: &World,
        file: &str,
        port: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        let log = world.path("usher.log");
        let errors = File::create(&log).expect("the world can be written to");
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
            .args(["serve", "-c", file])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let mut process = command.kill_on_drop(true).spawn().expect("usher starts");
        tokio::select! {
            status = process.wait() => panic!("usher ended: {status:?}\n{}", read(&log)),
            () = wait_for(port) => {}
        }
        Self {
            connection: Connection::Url(format!("http://127.0.0.1:{port}/mcp")),
            log,
            process,
        }
    }

    /// How to reach it.
    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Waits until the lists are as long as all the servers' together. Does not look at what is in them.
    pub(crate) async fn wait_until_it_lists(&self, expected: [usize; 4]) {
        let client = Client::example("rmcp-client").era("auto");
        let steps = LISTS.map(|op| json!({"op": op}));
        let mut seen = [0; 4];
        let listed = async {
            let mut every = interval(Duration::from_millis(250));
            while seen != expected {
                every.tick().await;
                let results = client.run(&self.connection, &steps).await;
                seen = [0, 1, 2, 3].map(|list| length(&results[list]));
            }
        };
        if timeout(PATIENCE, listed).await.is_err() {
            let log = read(&self.log);
            panic!("usher lists {seen:?} of {LISTS:?} instead of {expected:?}\n{log}");
        }
    }

    /// Ends it as a supervisor would, and checks that it goes in peace.
    pub(crate) async fn stop(mut self) {
        let id = self.process.id().expect("usher still runs");
        let id = Pid::from_raw(id.try_into().expect("process ids are small"));
        kill(id, Signal::SIGTERM).expect("usher can be signalled");
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let log = read(&self.log);
        let status = ended.unwrap_or_else(|_| panic!("usher ignores SIGTERM\n{log}"));
        let status = status.expect("usher can be waited for");
        assert!(status.success(), "usher ended with {status}\n{log}");
    }
}

/// Writes a configuration with `servers` as upstreams, and with what else it is to say; its path.
pub(crate) fn configure(world: &World, servers: &[Server], mut configuration: Value) -> String {
    let upstreams = servers.iter().map(|server| {
        let mut upstream = server.configuration.clone();
        match &server.connection {
            Connection::Url(url) => upstream["url"] = json!(url),
            Connection::Command(line) => {
                upstream["command"] = json!(["sh", "-c", format!("exec {line}")]);
            }
        }
        (server.prefix.to_owned(), upstream)
    });
    configuration["upstreams"] = Value::Object(Map::from_iter(upstreams));
    let file = world.path("usher.yaml");
    // JSON is YAML.
    fs::write(&file, configuration.to_string()).expect("the world can be written to");
    file
}

fn length(result: &Value) -> usize {
    let lists = result["ok"].as_object().into_iter().flat_map(Map::values);
    lists.filter_map(Value::as_array).map(Vec::len).sum()
}

fn read(log: &str) -> String {
    fs::read_to_string(log).unwrap_or_default()
}
