//! A scripted authorization server: it gives tokens that say whose they are, and remembers what it was asked.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use usher::tasks::Tasks;

/// It ends with the test.
pub(super) struct Issuer {
    at: SocketAddr,
    shared: Arc<Shared>,
    tasks: Tasks,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<String>>,
    given: AtomicUsize,
    /// How many seconds its tokens live.
    life: AtomicUsize,
    /// The subject tokens that it does not take.
    ended: Mutex<HashSet<String>>,
    /// What is answered instead of tokens: a status and a body, in which `$asked` is the form.
    instead: Mutex<Option<(u16, String)>>,
}

impl Issuer {
    pub(super) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let at = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            life: AtomicUsize::new(300),
            ..Shared::default()
        });
        let tasks = Tasks::new();
        let (own, ours) = (tasks.clone(), Arc::clone(&shared));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&ours);
                own.spawn(async move { shared.serve(stream).await });
            }
        });
        Self { at, shared, tasks }
    }

    /// Its token endpoint.
    pub(super) fn token_url(&self) -> String {
        format!("http://{}/token", self.at)
    }

    /// The forms that it was sent.
    pub(super) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// From now on it answers this instead of tokens.
    pub(super) fn answer(&self, status: u16, body: &str) {
        *self.shared.instead.lock().unwrap() = Some((status, body.to_owned()));
    }

    /// From now on its tokens live for so many seconds.
    pub(super) fn gives_for(&self, secs: usize) {
        self.shared.life.store(secs, Ordering::SeqCst);
    }

    /// From now on it does not take this subject token.
    pub(super) fn ends(&self, subject: &str) {
        self.shared.ended.lock().unwrap().insert(subject.to_owned());
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Shared {
    async fn serve(&self, mut stream: TcpStream) {
        let mut sent = Vec::new();
        let mut part = [0; 4_096];
        let form = loop {
            let read = stream.read(&mut part).await.unwrap_or(0);
            if read == 0 {
                return;
            }
            sent.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&sent);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |length| length.parse().unwrap());
                if body.len() >= length {
                    break body.to_owned();
                }
            }
        };
        self.asked.lock().unwrap().push(form.clone());
        let subject = form
            .split('&')
            .find_map(|field| field.strip_prefix("subject_token="))
            .unwrap_or("service");
        let number = self.given.fetch_add(1, Ordering::SeqCst);
        let mut instead = self.instead.lock().unwrap().clone();
        if self.ended.lock().unwrap().contains(subject) {
            instead = Some((400, r#"{"error":"invalid_grant"}"#.to_owned()));
        }
        let life = self.life.load(Ordering::SeqCst);
        let (status, body) = instead.unwrap_or_else(|| {
            let body = format!(
                r#"{{"access_token":"t0k-{subject}-{number}","token_type":"Bearer","expires_in":{life},"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}}"#
            );
            (200, body)
        });
        let body = body.replace("$asked", &form);
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        drop(stream.write_all(answer.as_bytes()).await);
    }
}
