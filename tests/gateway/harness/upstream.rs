//! A scripted upstream of any revision: what it offers, what it answers, what it heard, and what it heard that was wrong.

use std::{
    net::SocketAddr,
    sync::{Arc, MutexGuard},
};

use usher::tasks::Tasks;

use super::{
    PATIENCE, Revision,
    json::quote,
    script::{Heard, Play, Script},
    stage::{Out, Stage, Wire},
    wire, within,
};

/// A scripted upstream. It ends with the test, which fails if the gateway said anything wrong to it.
pub(crate) struct Upstream {
    pub(super) stage: Arc<Stage>,
    address: SocketAddr,
    tasks: Tasks,
}

impl Upstream {
    /// Over Streamable HTTP.
    pub(crate) fn http(revision: Revision) -> Self {
        Self::over(Wire::Http, revision)
    }

    /// Over the two-endpoint transport of 2024-11-05.
    pub(crate) fn sse() -> Self {
        Self::over(Wire::Sse, Revision::V2024_11_05)
    }

    /// As a process.
    pub(crate) fn pipe(revision: Revision) -> Self {
        Self::over(Wire::Pipe, revision)
    }

    fn over(wire: Wire, revision: Revision) -> Self {
        let tasks = Tasks::new();
        let stage = Arc::new(Stage::new(wire, revision, tasks.clone()));
        let address = wire::serve(&stage, &tasks);
        Self {
            stage,
            address,
            tasks,
        }
    }

    /// Whether it is reached as a process.
    pub(crate) fn is_piped(&self) -> bool {
        self.stage.wire == Wire::Pipe
    }

    /// What a configuration says of it.
    pub(crate) fn place(&self) -> String {
        let port = self.address.port();
        match self.stage.wire {
            Wire::Http => format!("url: \"http://127.0.0.1:{port}/mcp\""),
            Wire::Sse => format!("url: \"http://127.0.0.1:{port}/sse\""),
            Wire::Pipe => format!("command: [bash, -c, '{RELAY}', relay, \"{port}\"]"),
        }
    }

    /// Offers these tools, as [`super::tool`] or otherwise.
    pub(crate) fn tools<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        self.offer(0, tools);
        self
    }

    /// Offers prompts of these names.
    pub(crate) fn prompts(self, names: &[&str]) -> Self {
        self.offer(
            1,
            names
                .iter()
                .map(|name| format!("{{\"name\":{}}}", quote(name))),
        );
        self
    }

    pub(crate) fn resources<T: Into<String>>(self, items: impl IntoIterator<Item = T>) -> Self {
        self.offer(2, items);
        self
    }

    pub(crate) fn templates<T: Into<String>>(self, items: impl IntoIterator<Item = T>) -> Self {
        self.offer(3, items);
        self
    }

    /// Replaces a list: 0 tools, 1 prompts, 2 resources, 3 templates.
    pub(crate) fn offer<T: Into<String>>(&self, list: usize, items: impl IntoIterator<Item = T>) {
        self.script().lists[list] = items.into_iter().map(Into::into).collect();
    }

    /// Lists in pages of this many items.
    pub(crate) fn paged(self, items: usize) -> Self {
        self.script().page = items;
        self
    }

    /// Says how long lists are good, and for whom; told in the modern era only.
    pub(crate) fn cached(self, ttl_millis: u64, scope: &'static str) -> Self {
        self.script().hints = (ttl_millis, scope);
        self
    }

    /// Tells of changes, by every way that its revision has, and takes subscriptions and log levels.
    pub(crate) fn telling(self) -> Self {
        self.script().tells = true;
        self.capabilities(
            r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#,
        )
    }

    /// Says that it has these, instead of the usual ones.
    pub(crate) fn capabilities(self, capabilities: &str) -> Self {
        capabilities.clone_into(&mut self.script().capabilities);
        self
    }

    /// Answers to nobody without a credential.
    pub(crate) fn closed(self) -> Self {
        self.script().closed = true;
        self
    }

    pub(crate) fn instructions(self, text: &str) -> Self {
        self.script().instructions = Some(text.to_owned());
        self
    }

    /// Says something else of itself from now on: what it has, and its instructions.
    pub(crate) fn redeployed(&self, capabilities: &str, instructions: &str) {
        let mut script = self.script();
        capabilities.clone_into(&mut script.capabilities);
        script.instructions = Some(instructions.to_owned());
    }

    /// Answers requests of this method so.
    pub(crate) fn on(
        self,
        method: &str,
        answer: impl Fn(&Heard) -> Play + Send + Sync + 'static,
    ) -> Self {
        self.now_on(method, answer);
        self
    }

    /// The same, from now on.
    pub(crate) fn now_on(
        &self,
        method: &str,
        answer: impl Fn(&Heard) -> Play + Send + Sync + 'static,
    ) {
        self.script()
            .answers
            .insert(method.to_owned(), Arc::new(answer));
    }

    /// Answers requests of this method as every upstream does.
    pub(crate) fn as_usual(&self, method: &str) {
        self.script().answers.remove(method);
    }

    /// Is not there: connections end at once, and those that are open are cut.
    pub(crate) fn down(&self) {
        self.script().down = true;
        self.stage.cut_all();
    }

    /// Is there again.
    pub(crate) fn up(&self) {
        self.script().down = false;
    }

    /// Says a message on every pipe that is open, to whoever may listen.
    pub(crate) async fn say(&self, message: &str) {
        for outlet in self.stage.outlets() {
            let frame = Out::Frame(self.stage.scripted(message.to_owned()));
            outlet.out.send(frame).await.unwrap();
        }
    }

    /// Everything of one method that it heard.
    pub(crate) fn heard(&self, method: &str) -> Vec<Heard> {
        self.stage.heard(method)
    }

    /// The last of one method.
    pub(crate) fn last(&self, method: &str) -> Heard {
        let heard = self.heard(method).pop();
        heard.unwrap_or_else(|| panic!("heard no `{method}`"))
    }

    /// Waits until it has heard so many of one method.
    pub(crate) async fn until_heard(&self, method: &str, count: usize) -> Heard {
        let waiting = async {
            loop {
                let news = self.stage.news();
                let heard = self.heard(method);
                if heard.len() >= count {
                    return heard[count - 1].clone();
                }
                news.await;
            }
        };
        within(
            PATIENCE,
            &format!("heard `{method}` {count} times"),
            waiting,
        )
        .await
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.stage.script()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.tasks.stop();
        let faults = self.stage.faults();
        if !std::thread::panicking() {
            assert!(
                faults.is_empty(),
                "the gateway said wrong things: {faults:#?}"
            );
        }
    }
}

/// Ties a process's standard input and output to a connection to the test.
const RELAY: &str = "exec 3<>/dev/tcp/127.0.0.1/$1 4<&0; (cat <&4 >&3; kill 0) & cat <&3; kill 0";
