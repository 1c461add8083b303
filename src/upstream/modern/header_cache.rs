//! What tools ask to have in headers now, read anew for calls that were refused for theirs (PROTOCOL B3, D6).
//!
//! Guarantees: however many calls are refused, the list is read once at a time, and what came of that is good for all who wait
//! for it and for whoever comes within [`COALESCE`]; where each principal may see something else, for that principal alone,
//! whoever else comes in between. Bounds: kept of a list are names and headers, of [`MOST`] principals' lists, of which the oldest
//! goes first. Deliberately absent: whether a call may go by what was read.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Semaphore, time::Instant};

use crate::{
    call::Grantee,
    catalog::Listing,
    json::{Json, Node},
    protocol::mirror::{self, ParamHeader},
    upstream::{UpstreamError, supervisor::COALESCE},
};

/// How many principals' readings are kept.
const MOST: usize = 16;

/// The headers of one server's tools, as they were read last for calls that were refused.
#[derive(Debug)]
pub(super) struct HeaderCache {
    /// Held by the one that is reading.
    turn: Semaphore,
    /// The last reading for each principal; key `None`: shared by all. Locked for moments, never across an await.
    last: Mutex<Readings>,
}

/// A reading that is over, however it went.
#[derive(Debug)]
struct Reading {
    ended: Instant,
    asked: Asked,
}

impl Reading {
    /// Whether it is good still.
    fn is_good(&self) -> bool {
        self.ended.elapsed() < COALESCE
    }
}

type Readings = HashMap<Option<Grantee>, Reading>;

/// What each tool asks for, by its server's name for it; nothing where that could not be read.
type Asked = HashMap<String, Arc<[ParamHeader]>>;

impl Default for HeaderCache {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            last: Mutex::default(),
        }
    }
}

impl HeaderCache {
    /// What the tool `local` asks for now, as `whose` list says, which `read` reads unless somebody just has.
    pub(super) async fn headers(
        &self,
        whose: Option<Grantee>,
        local: &str,
        read: impl Future<Output = Result<Listing, UpstreamError>>,
    ) -> Option<Arc<[ParamHeader]>> {
        let _turn = self.turn.acquire().await;
        let known = self.last().get(&whose).and_then(|last| {
            let headers = last.asked.get(local).map(Arc::clone);
            last.is_good().then_some(headers)
        });
        if let Some(known) = known {
            return known;
        }
        let asked = read
            .await
            .map_or_else(|_| Asked::new(), |list| asked(&list));
        let headers = asked.get(local).map(Arc::clone);
        self.keep(whose, asked);
        headers
    }

    /// From now on this is known, and nothing of readings that are not good any longer.
    fn keep(&self, whose: Option<Grantee>, asked: Asked) {
        let mut last = self.last();
        last.retain(|_, reading| reading.is_good());
        if last.len() >= MOST {
            let oldest = last.iter().min_by_key(|(_, reading)| reading.ended);
            if let Some(oldest) = oldest.map(|(whose, _)| whose.clone()) {
                last.remove(&oldest);
            }
        }
        let ended = Instant::now();
        last.insert(whose, Reading { ended, asked });
    }

    fn last(&self) -> MutexGuard<'_, Readings> {
        // Each is put there whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the tools of a list ask for; of two of one name the first counts.
fn asked(list: &Listing) -> Asked {
    let mut all = Asked::new();
    for tool in &*list.items {
        if let Some((name, headers)) = one(tool) {
            all.entry(name).or_insert(headers);
        }
    }
    all
}

/// A tool's name and headers, if its annotations keep to the rules.
fn one(tool: &Json) -> Option<(String, Arc<[ParamHeader]>)> {
    let name = tool.root().member("name").and_then(Node::as_str)?;
    let headers = mirror::of_tool(tool).ok()?;
    Some((name.into_owned(), headers.into()))
}
